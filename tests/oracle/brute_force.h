#pragma once

#include <cstdint>

#include "placement/planner.h"

namespace heddle::oracle {

struct Truth {
  bool complete = false;  // every assignment was priced, but for those that differ by equal nodes only
  bool feasible = false;
  std::int64_t best_micros = 0;
};

// Prices every assignment that keeps the requirements; gives up after `budget` of them.
Truth PriceEverything(const placement::ClusterState& state, const placement::GangRequest& request,
                      std::int64_t budget);

}  // namespace heddle::oracle
