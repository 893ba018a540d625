#pragma once

#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"

namespace heddle::placement {

// Bounded hill-climbing: exchanges two pods, the gang's contents of two nodes, or moves one pod to other
// GPUs, while the price falls and every requirement holds. Deterministic; at most `trials` prices. Bound pods
// stay.
void Improve(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
             Pricing& pricing, int trials, std::vector<PodPlacement>& pods, Quality& quality);

// How many trials a gang of this size is worth: small gangs are searched well, large ones are left as they
// were built.
int TrialsFor(std::int64_t world);

}  // namespace heddle::placement
