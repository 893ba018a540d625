#pragma once

#include <string>
#include <utility>

#include "crds/node_topology.h"

namespace heddle::bench {

// What the agent of that node would have published of that machine.
inline crds::NodeTopology PublishedTopology(std::string name, topology::Node machine) {
  crds::NodeTopology object;
  object.name = std::move(name);
  object.status.node = std::move(machine);
  object.status.node.name = object.name;
  object.status.hash = topology::ContentHash(object.status.node);
  object.status.observed_at = base::WallTime{};
  return object;
}

}  // namespace heddle::bench
