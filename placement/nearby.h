#pragma once

#include <cstddef>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

// The nodes that a search around a place looks at: those of the gang, by its first pod on each; then, until `most` are
// listed, others with open GPUs: in turn the next of the gang's own units and domains, and the next of the domain with
// most room. Ordered by what is on the nodes and around them, by their numbers only where nothing else tells them
// apart, so that a search by lot goes the same way whatever nodes are called.
std::vector<topology::NodeId> NodesNear(const ClusterState& state, const std::vector<PodPlacement>& pods,
                                        std::size_t most);

}  // namespace heddle::placement
