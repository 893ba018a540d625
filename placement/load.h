#pragma once

#include <vector>

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

// What a placed gang sends over the leaves' links to the switches above, on average over a training step: the
// load that other gangs find there. Each leaf stands once. Empty where no leaf's way up is narrower than what
// hangs below it, since nothing is shared there. `pods` by pod index, all placed; `quality` is Evaluate's
// answer for them.
std::vector<LeafLoad> LoadOf(const ClusterState& state, const GangRequest& request,
                             const std::vector<PodPlacement>& pods, const Quality& quality);

// How much of a step is communication where nobody says how long the computing takes: the middle of the 20 to
// 40 % that large jobs report (performance anchors, section 1).
inline constexpr int kCommunicationPercent = 30;

}  // namespace heddle::placement
