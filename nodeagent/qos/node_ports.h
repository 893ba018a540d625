#pragma once

#include <vector>

#include "nodeagent/health/link_health.h"
#include "nodeagent/qos/port_io.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// Every port of the node, sorted by name. `watched`: which interface and RDMA device each of the compute and storage
// ports has, as the last look found; a port that is not in it has those of its NIC. Pure.
std::vector<QosPort> QosPortsOf(const topology::Node& node, const std::vector<PortHealth>& watched);

}  // namespace heddle::nodeagent
