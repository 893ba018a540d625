#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"

namespace heddle::nodeagent {

// Who else sends over the wire of a port: its PCI function's virtual functions (virtfnN; Linux, Documentation/ABI/
// testing/sysfs-bus-pci) and mlx5's scalable ones (mlx5_core.sf.N; mlx5 core/sf/dev/dev.c), which have RDMA devices of
// their own. What takes the port's link down takes it down for all of them.
struct PortFunctions {
  std::vector<std::string> rdma_devices;  // of theirs, those that are seen from here; sorted
  // Of one that has a driver and shows no RDMA device, why nobody can tell whether it is used; empty = there is none.
  // A virtual machine has it (vfio-pci), or a network namespace that RDMA devices are exclusive to.
  std::string unseen;
};

// `pci_address`: of the port's own function ("0000:17:00.0"); empty = it is on no PCI bus, and there are none. One
// without a driver is idle, and so is one that has an interface here and no RDMA. Reads sys/bus/pci/devices/ADDRESS.
// Total.
PortFunctions FunctionsOf(const base::FileTree& files, std::string_view pci_address);

}  // namespace heddle::nodeagent
