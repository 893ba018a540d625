#pragma once

#include <span>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// The RoCE ports among `watched`, in its order: what can be set lossless. A port of a bond has its own interface, as
// DCB is set on each of them. PCI address and driver are read from sys/class/net. Ports without an interface are left
// out: there is nothing to set.
std::vector<QosPort> QosPorts(const base::FileTree& files, std::span<const WatchedPort> watched);
// The same of all NICs of a machine, whatever their role.
std::vector<QosPort> QosPorts(const base::FileTree& files, const Readings& readings,
                              const topology::Node& node);

}  // namespace heddle::nodeagent
