#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
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
  bool in_files = false;                                  // no cluster was asked
};
FabricReading ReadFabrics(const std::vector<crds::Json>& topologies, const std::vector<crds::Json>& fabrics);
// The same of what was read one by one: topologies that reported, with their cables counted.
FabricReading AssembleReading(std::vector<crds::NodeTopology> topologies,
                              std::map<std::string, topology::Declaration> declared);

// That nothing is known of this node, and who lists those of which something is. `what`: "a topology".
base::Error NoSuchNode(const FabricReading& reading, const std::string& node, std::string_view what);

// "InfiniBand", or "InfiniBand at berlin".
std::string Title(const topology::Fabric& fabric);

// The fabric that most of these nodes belong to; null when none belongs to any.
FabricPtr FabricOfMost(const std::vector<FabricPtr>& fabrics, const std::vector<std::string>& nodes);

}  // namespace heddle::cli
