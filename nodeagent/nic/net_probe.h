#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/nic/exclusion.h"
#include "topology/node.h"

namespace heddle::nodeagent {

struct Netdev {
  std::string name;
  std::string pci;        // empty for virtual interfaces, and where the bus is not PCI
  bool hardware = false;  // has a device below it: not lo, veth, bridges, bonds
  topology::LinkState state = topology::LinkState::kUnknown;
  int gbps = 0;  // 0 = not said
  int mtu = 0;
  int type = 0;                                    // ARPHRD: 1 Ethernet, 32 InfiniBand
  std::string bond;                                // the bond it is a slave of
  std::vector<std::string> slaves;                 // of a bond, in its order
  bool state_unread = false, rate_unread = false;  // as RdmaPort's
  int assumed_gbps = 0;                            // as RdmaPort's
  friend bool operator==(const Netdev&, const Netdev&) = default;
};

struct NetReadings {
  std::map<std::string, Netdev, std::less<>> netdevs;
  std::vector<Exclusion> excluded;  // virtual functions
  std::vector<std::string> problems;
};

// sys/class/net: hardware interfaces and bonds. Interfaces of containers and bridges are left out silently: a
// node has one pair for each of its pods.
NetReadings ProbeNet(const base::FileTree& files);

}  // namespace heddle::nodeagent
