#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// What sysfs says of RDMA devices that only those who hand them out need.
struct DeviceFiles {
  std::map<std::string, std::string> verbs;            // "mlx5_0" → "uverbs0"
  bool rdma_cm = false;                                // the module rdma_ucm is loaded
  std::set<std::pair<std::string, int>> without_ipv4;  // RoCE ports whose GID (NicPort::gid_index) holds IPv6
  std::set<std::pair<std::string, int>> unnumbered;    // and those whose GID holds no address that was given
  // Of compute NICs that NCCL drives by verbs, as VirtualFunctions says it: NIC → devices, and NICs with hidden ones.
  std::map<std::string, std::vector<std::string>> functions;
  std::set<std::string> hidden_functions;
  friend bool operator==(const DeviceFiles&, const DeviceFiles&) = default;
};

// sys/class/infiniband_verbs/*/ibdev, sys/class/misc/rdma_cm, one GID of each RoCE port of `node`, and of its compute
// NICs what ReadVirtualFunctions reads.
DeviceFiles ReadDeviceFiles(const base::FileTree& files, const topology::Node& node);

}  // namespace heddle::nodeagent
