#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "topology/node.h"

namespace heddle::crds {

// What clouds and topology programs write on a Node about its place in the network. Where neither a switch nor
// lldpd can be asked, as on EFA and in virtual machines, nothing else tells.

using PlaceLabels = std::map<std::string, std::string>;

// The label that names the switch or block nearest to a host, and the one transport of which that is true.
struct PlaceLabel {
  std::string_view key;
  topology::Transport transport;
};

// In order of preference. Sources: AWS "Amazon EC2 topology" (layers are counted from the top, and the last is
// the one that an instance hangs on); GKE "view the physical topology of nodes"; OKE "RDMA network locality";
// topograph, "node labels and annotations" (tier-0 since 1.0, leaf before). Azure labels no node so.
// topograph names one switch of a host. That is true where all NICs hang on one; a host of InfiniBand or of
// rail-optimised RoCE has one for each rail, so its labels are taken for EFA only.
inline constexpr std::array<PlaceLabel, 6> kPlaceLabels{{
    {"topology.k8s.aws/network-node-layer-4", topology::Transport::kEfa},
    {"topology.k8s.aws/network-node-layer-3", topology::Transport::kEfa},
    {"fabric.topograph.run/tier-0", topology::Transport::kEfa},
    {"network.topology.nvidia.com/leaf", topology::Transport::kEfa},
    {"cloud.google.com/gce-topology-subblock", topology::Transport::kRoce},
    {"oci.oraclecloud.com/rdma.local_block_id", topology::Transport::kRoce},
}};

// Those of `labels` that are in kPlaceLabels and say something: OKE writes "no-imds-data" and its like where it
// does not know.
PlaceLabels PlaceLabelsOf(const PlaceLabels& labels);

// Gives the ports of NICs that carry jobs the leaf that a label names, where nothing else was known of it. What
// was measured, is stale or ambiguous stays. Such a leaf has no port: many rails and hosts share its name.
void FillLeaves(topology::Node& node, const PlaceLabels& labels);

}  // namespace heddle::crds
