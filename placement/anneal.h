#pragma once

#include <cstdint>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "placement/spread.h"

namespace heddle::placement {

// Bounded search around a place for small gangs by threshold accepting (Dueck and Scheuer, J. Comput. Phys. 90,
// 1990): pods move, trade places or are dealt anew over a few nodes, and a somewhat worse place is walked
// through where a better one may lie behind it. What keeps every requirement and is faster, or spreads less and
// may still be chosen, is offered to `front`. Deterministic; at most `trials` prices. Requires: no pod is bound,
// `front` is not empty and its places have all pods with GPUs.

// From the fastest place to faster ones.
void Anneal(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
            Pricing& pricing, int trials, Front& front);

// From the chosen place to those that spread less and are as fast; then, from the least spread met, to faster ones
// again. `least`: what no place goes below.
void Gather(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
            Pricing& pricing, int trials, std::int64_t least, Spread& spread, Front& front);

// How many trials a gang of this size is worth, about 3 ms; none where filling and climbing have to do. Gathering
// gets a third of that.
int AnnealTrialsFor(std::int64_t world);
int GatherTrialsFor(std::int64_t world);

}  // namespace heddle::placement
