#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "topology/fabric.h"

namespace heddle::cli {

using FabricPtr = std::shared_ptr<const topology::Fabric>;

// What the cluster's NodeTopologies and Fabrics say, read as far as they can be.
struct FabricReading {
  std::vector<crds::NodeTopology> topologies;             // those that reported, sorted by name
  std::vector<FabricPtr> fabrics;                         // by object name
  std::map<std::string, topology::Declaration> declared;  // by Fabric
  std::vector<std::string> notes;                         // what had to be left out, as sentences
};
FabricReading ReadFabrics(const std::vector<crds::Json>& topologies, const std::vector<crds::Json>& fabrics);

// "InfiniBand", or "InfiniBand at berlin".
std::string Title(const topology::Fabric& fabric);

// The fabric that most of these nodes belong to; null when none belongs to any.
FabricPtr FabricOfMost(const std::vector<FabricPtr>& fabrics, const std::vector<std::string>& nodes);

}  // namespace heddle::cli
