#include "placement/spares.h"

#include <algorithm>

#include "placement/dense.h"

namespace heddle::placement {

int SparesLeftBy(const GangRequest& request) {
  const bool bound = std::any_of(request.pods.begin(), request.pods.end(),
                                 [](const PodRequest& pod) { return pod.fixed_node.has_value(); });
  return bound ? 0 : request.spares;
}

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

std::set<topology::NodeId> NodesNeeded(const ClusterState& state, const GangRequest& request,
                                       const std::vector<PodPlacement>& place) {
  std::set<topology::NodeId> nodes;
  std::set<topology::DomainId> domains;
  for (const PodPlacement& pod : place) {
    if (pod.node == topology::kNone) continue;
    nodes.insert(pod.node);
    const topology::DomainId domain = state.fabric().nodes[std::size_t(pod.node)].domain;
    if (pod.gpus != 0 && domain != topology::kNone) domains.insert(domain);
  }
  const int spares = SparesLeftBy(request);
  for (const topology::DomainId domain : domains) {
    for (const topology::NodeId node : SparesOf(state, state.fabric().domains[std::size_t(domain)], spares))
      nodes.insert(node);
  }
  return nodes;
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
