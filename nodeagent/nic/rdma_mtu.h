#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/node.h"

namespace heddle::nodeagent {

// The RDMA MTU that goes into Ethernet frames of that MTU, as the kernel derives active_mtu of a RoCE port: the
// greatest of 256, 512, … 4096 that fits beside its headers. 0 where none fits.
int RoceMtu(int netdev_mtu);

// What the InfiniBand and RoCE NICs of jobs carry at once, by NicPort::rdma_mtu: as the driver says it (verbs.h), else
// of RoCE by the rule above. EFA's is nobody else's.
struct RdmaMtus {
  int bytes = 0;                    // the greatest
  std::vector<std::string> faults;  // a sentence for each NIC that carries less
};
// Nothing: no such NIC says its MTU.
std::optional<RdmaMtus> CompareRdmaMtus(const topology::Node& node);

}  // namespace heddle::nodeagent
