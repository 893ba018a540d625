#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/node.h"

namespace heddle::nodeagent {

// The RDMA MTU that goes into Ethernet frames of that MTU, as the kernel derives active_mtu of a RoCE port: the
// greatest of 256, 512, … 4096 that fits beside its headers. 0 where none fits.
int RoceMtu(int netdev_mtu);

// What the RoCE NICs of jobs carry at once, by the rule above: sysfs does not show active_mtu, and InfiniBand's and
// EFA's are not the interface's.
struct RdmaMtus {
  int bytes = 0;                    // the greatest
  std::vector<std::string> faults;  // a sentence for each NIC that carries less
};
// Nothing: no such NIC says its MTU.
std::optional<RdmaMtus> CompareRdmaMtus(const topology::Node& node);

}  // namespace heddle::nodeagent
