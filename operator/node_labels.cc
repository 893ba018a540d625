#include "operator/node_labels.h"

#include <algorithm>
#include <array>
#include <set>

#include "crds/keys.h"
#include "crds/label_value.h"

namespace heddle::operators {
namespace {

namespace keys = crds::keys;

constexpr std::array kOwned{keys::kLabelNvlinkDomain, keys::kLabelUnit, keys::kLabelSite,
                            keys::kLabelRails,        kLabelMachine,    kLabelFabric};

void Set(Labels& labels, std::string_view key, std::string value) {
  if (!value.empty()) labels.emplace(std::string(key), std::move(value));
}

// Rail → the leaf where this node's NICs of that rail end, or "" where there are several (planes, dual-ToR).
std::map<int, std::string> LeavesByRail(const topology::Node& node) {
  std::map<int, std::string> leaves;
  for (const topology::Nic& nic : node.nics) {
    if (nic.role != topology::NicRole::kCompute || !nic.rail) continue;
    for (const topology::NicPort& port : nic.ports) {
      const std::string leaf = port.leaf_port ? port.leaf_port->leaf : "";
      const auto [at, added] = leaves.emplace(*nic.rail, leaf);
      if (!added && at->second != leaf) at->second.clear();
    }
  }
  return leaves;
}

}  // namespace

Labels TopologyLabels(std::string_view fabric_name, const topology::Fabric& fabric, topology::NodeId id) {
  Labels labels;
  if (id < 0 || static_cast<std::size_t>(id) >= fabric.nodes.size()) return labels;
  const topology::FabricNode& member = fabric.nodes[static_cast<std::size_t>(id)];
  Set(labels, kLabelFabric, crds::IdentityLabel(fabric_name));
  Set(labels, keys::kLabelSite, crds::IdentityLabel(fabric.site));
  Set(labels, kLabelMachine, crds::ReadableLabel(member.node.machine));
  if (member.unit != topology::kNone) {
    // Each fabric counts its units from su-0, and a scheduler that knows only this label must not mix them
    // up.
    const std::string& unit = fabric.units[static_cast<std::size_t>(member.unit)].name;
    Set(labels, keys::kLabelUnit, crds::IdentityLabel(std::string(fabric_name) + "-" + unit));
  }
  if (member.domain != topology::kNone) {
    Set(labels, keys::kLabelNvlinkDomain,
        crds::IdentityLabel(fabric.domains[static_cast<std::size_t>(member.domain)].id));
  }
  const std::map<int, std::string> leaves = LeavesByRail(member.node);
  if (!leaves.empty()) Set(labels, keys::kLabelRails, std::to_string(leaves.size()));
  for (const auto& [rail, leaf] : leaves) Set(labels, keys::LeafLabel(rail), crds::IdentityLabel(leaf));
  return labels;
}

bool OwnsLabel(std::string_view key) {
  if (std::find(kOwned.begin(), kOwned.end(), key) != kOwned.end()) return true;
  if (!key.starts_with(keys::kLabelLeafPrefix)) return false;
  const std::string_view rail = key.substr(keys::kLabelLeafPrefix.size());
  return !rail.empty() && rail.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<kube::Json> LabelPatch(const kube::Json& node, const Labels& wanted) {
  const Labels present = kube::Labels(node);
  kube::Json changes = kube::Json::object();
  for (const auto& [key, value] : present) {
    if (OwnsLabel(key) && !wanted.contains(key)) changes[key] = nullptr;
  }
  for (const auto& [key, value] : wanted) {
    const auto at = present.find(key);
    if (at == present.end() || at->second != value) changes[key] = value;
  }
  if (changes.empty()) return std::nullopt;
  // The uid is a precondition: a Node that was made anew under this name is another machine.
  return kube::Json{{"metadata", {{"uid", kube::Uid(node)}, {"labels", std::move(changes)}}}};
}

}  // namespace heddle::operators
