#pragma once

#include <string>
#include <vector>

#include "base/file_tree.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// The SR-IOV virtual functions of a NIC, which pods hold in its place.
struct VirtualFunctions {
  std::vector<std::string>
      devices;  // their RDMA devices, "mlx5_12", in the order of physical functions and names
  // One that a driver of the kernel has shows no RDMA device here, or one whose name no list of NCCL can hold. It may
  // show it elsewhere: where RDMA devices belong to network namespaces (`rdma system set netns exclusive`), only the
  // pod that holds it sees it.
  bool hidden = false;
  friend bool operator==(const VirtualFunctions&, const VirtualFunctions&) = default;
};

// sys/bus/pci/devices/ADDRESS/{virtfn*,infiniband,driver} of a NIC of `node` and of the other physical functions of its
// card that no other NIC stands for: of a bond the driver shows one RDMA device, on the first of them.
VirtualFunctions ReadVirtualFunctions(const base::FileTree& files, const topology::Node& node,
                                      const topology::Nic& nic);

}  // namespace heddle::nodeagent
