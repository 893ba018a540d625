#pragma once

#include <span>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

enum class QosPortsWanted : std::uint8_t {
  kAll,   // whatever a policy may speak of: InfiniBand, EFA and ports without an interface get a reason
  kRoce,  // those that can be set: RoCE, with an interface
};

// Ports of `node`, in its order. `watched` says which interface and RDMA device each has, as the last look found: of a
// bond each port has an interface of its own, on which DCB is set, and all are port 1 of its RDMA device. A port that
// is not watched has those of its NIC. PCI address and driver are those of the interface in sys/class/net of `files`,
// else those of the NIC. `files` may be null.
std::vector<QosPort> QosPorts(QosPortsWanted wanted, const topology::Node& node,
                              std::span<const WatchedPort> watched, const base::FileTree* files);

// Every port of the machine as WatchedPorts has it, those of management NICs too, whose counters are not watched. Pure.
std::vector<WatchedPort> WatchedPortsOfAllRoles(const Readings& readings, const topology::Node& node);

}  // namespace heddle::nodeagent
