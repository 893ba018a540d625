#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/fabrics.h"
#include "cli/table.h"

namespace heddle::cli {

// One line for each node that has a NodeTopology.
std::string NodeTable(const std::vector<crds::NodeTopology>& topologies, const Style& style);

// One node as a tree: GPU, its NICs by distance, their rail, link and leaf port.
std::string NodeTree(const crds::NodeTopology& topology, const Style& style);

// One fabric: what it is made of, its leaves by rail and scalable unit, NVLink domains over nodes, and what
// is wrong.
std::string FabricText(const topology::Fabric& fabric, const Style& style);

}  // namespace heddle::cli
