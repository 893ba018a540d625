#pragma once

#include <cstdint>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"

namespace heddle::placement {

// Bounded search around a place for small gangs by threshold accepting (Dueck and Scheuer, J. Comput. Phys. 90,
// 1990): pods move, trade places or are dealt anew over a few nodes, and a somewhat dearer place is walked
// through where a cheaper one may lie behind it. The cheapest that keeps every requirement replaces a dearer
// one. Deterministic; at most `trials` prices. Requires: no pod is bound, all pods with GPUs are placed.
void Anneal(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
            Pricing& pricing, int trials, std::vector<PodPlacement>& pods, Quality& quality);

// How many trials a gang of this size is worth, about 3 ms; none where filling and climbing have to do.
int AnnealTrialsFor(std::int64_t world);

}  // namespace heddle::placement
