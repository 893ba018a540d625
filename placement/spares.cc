#include "placement/spares.h"

#include <vector>

#include "placement/dense.h"

namespace heddle::placement {

SparesHeld::SparesHeld(ClusterState& state, int spares) : state_(state), mark_(state.Mark()) {
  if (spares <= 0) return;
  for (const topology::NvlinkDomain& domain : state.fabric().domains) {
    if (domain.nodes.size() < 2) continue;
    std::vector<topology::NodeId> kept;
    for (const topology::NodeId node : domain.nodes) {
      const int free = state.free_gpus(node);
      if (free > 0 && free == state.dense().gpus(node)) kept.push_back(node);
    }
    if (kept.size() >= std::size_t(spares)) {
      kept.erase(kept.begin(), kept.end() - spares);
    } else {
      kept = domain.nodes;
    }
    for (const topology::NodeId node : kept) {
      if (state.free_gpus(node) > 0) state.Take(node, state.open_gpus(node), {});
    }
  }
}

}  // namespace heddle::placement
