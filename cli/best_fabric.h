#pragma once

#include <optional>
#include <vector>

#include "cli/ground.h"
#include "placement/cluster_state.h"
#include "placement/gang.h"
#include "placement/plan.h"

namespace heddle::cli {

// The planner's answer on the fabric where it is best: a gang lies on one.
struct BestFabric {
  const Ground* ground = nullptr;  // of those that were asked; null = there was none
  std::optional<placement::ClusterState> state;
  placement::Decision decision;
};

// By predicted step; of refusals that of the fabric with the most GPUs. Pure.
BestFabric DecideOnBest(const std::vector<Ground>& grounds, const placement::GangRequest& request);

}  // namespace heddle::cli
