#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kube/object.h"
#include "topology/fabric.h"

namespace heddle::operators {

using Labels = std::map<std::string, std::string>;

inline constexpr std::string_view kLabelMachine = "heddle.dev/machine";
inline constexpr std::string_view kLabelFabric = "heddle.dev/fabric";  // the Fabric object's name

// The topology labels of one node of a fabric, for schedulers that know nothing of Heddle. What is not known,
// or true of no whole host, has no label. Links that flap change nothing here: these are facts of cabling.
Labels TopologyLabels(std::string_view fabric_name, const topology::Fabric& fabric, topology::NodeId node);

// Whether a label is one of ours: it is removed when no longer true. All others belong to others.
bool OwnsLabel(std::string_view key);

// The merge patch that makes a Node's own labels `wanted`, foreign ones untouched; nothing when they already
// are.
std::optional<kube::Json> LabelPatch(const kube::Json& node, const Labels& wanted);

}  // namespace heddle::operators
