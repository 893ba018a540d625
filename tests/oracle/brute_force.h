#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "placement/planner.h"

namespace heddle::oracle {

struct Truth {
  bool complete = false;  // every assignment was priced, but for those that differ by equal nodes only
  bool feasible = false;
  std::int64_t best_micros = 0;
  // The least spread of the places that are no slower than the plan, and of those within 1 % of the fastest.
  std::int64_t as_fast_spread = 0, near_spread = 0;
};

using SpreadOfPods = std::function<std::int64_t(const std::vector<placement::PodPlacement>&)>;

// Prices every assignment that keeps the requirements; gives up after `budget` of them. `planned`: the plan's price, in
// microseconds; 0 = there is none.
Truth PriceEverything(const placement::ClusterState& state, const placement::GangRequest& request,
                      std::int64_t budget, std::int64_t planned, const SpreadOfPods& spread);

}  // namespace heddle::oracle
