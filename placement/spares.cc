#include "placement/spares.h"

#include <vector>

#include "placement/dense.h"

namespace heddle::placement {

std::vector<topology::NodeId> SparesOf(const ClusterState& state, const topology::NvlinkDomain& domain,
                                       int spares) {
  std::vector<topology::NodeId> kept;
  if (spares <= 0 || domain.nodes.size() < 2) return kept;
  for (const topology::NodeId node : domain.nodes) {
    const int free = state.free_gpus(node);
    if (free > 0 && free == state.dense().gpus(node)) kept.push_back(node);
  }
  if (kept.size() > std::size_t(spares)) kept.erase(kept.begin(), kept.end() - spares);
  return kept;
}

SparesHeld::SparesHeld(ClusterState& state, int spares) : state_(state), mark_(state.Mark()) {
  if (spares <= 0) return;
  for (const topology::NvlinkDomain& domain : state.fabric().domains) {
    if (domain.nodes.size() < 2) continue;
    std::vector<topology::NodeId> kept = SparesOf(state, domain, spares);
    if (kept.size() < std::size_t(spares)) kept = domain.nodes;
    for (const topology::NodeId node : kept) {
      if (state.free_gpus(node) > 0) state.Take(node, state.open_gpus(node), {});
    }
  }
}

}  // namespace heddle::placement
