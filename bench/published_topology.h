#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "crds/node_topology.h"
#include "topology/synthetic.h"

namespace heddle::bench {

// So many servers of 8 H100 at the least, in units of 16.
inline std::vector<topology::Node> Machines(int nodes) {
  return topology::ParseSynthetic(
             fmt::format("su:{} node:16 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100",
                         (nodes + 15) / 16))
      .value()
      .nodes;
}

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
