#include "crds/place_labels.h"

#include <algorithm>

namespace heddle::crds {
namespace {

bool Says(const std::string& value) {
  constexpr std::array<std::string_view, 7> kNothing{
      "", "-", "none", "null", "unknown", "not-available", "no-imds-data"};
  return std::find(kNothing.begin(), kNothing.end(), value) == kNothing.end();
}

// Empty = no label says.
std::string LeafOf(topology::Transport transport, const PlaceLabels& labels) {
  for (const PlaceLabel& label : kPlaceLabels) {
    if (label.transport != transport) continue;
    const auto found = labels.find(std::string(label.key));
    if (found != labels.end() && Says(found->second)) return found->second;
  }
  return {};
}

}  // namespace

PlaceLabels PlaceLabelsOf(const PlaceLabels& labels) {
  PlaceLabels kept;
  for (const PlaceLabel& label : kPlaceLabels) {
    const auto found = labels.find(std::string(label.key));
    if (found != labels.end() && Says(found->second)) kept.insert(*found);
  }
  return kept;
}

void FillLeaves(topology::Node& node, const PlaceLabels& labels) {
  if (labels.empty()) return;
  for (topology::Nic& nic : node.nics) {
    // All of EFA is one network, storage or not.
    if (nic.role != topology::NicRole::kCompute && nic.transport != topology::Transport::kEfa) continue;
    const std::string leaf = LeafOf(nic.transport, labels);
    if (leaf.empty()) continue;
    for (topology::NicPort& port : nic.ports) {
      if (!port.leaf_port && port.leaf_port.missing() == topology::Missing::kUnknown) {
        port.leaf_port = topology::LeafPort{leaf, {}};
      }
    }
  }
}

}  // namespace heddle::crds
