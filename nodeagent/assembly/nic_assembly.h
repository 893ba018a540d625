#pragma once

#include <vector>

#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// The NICs of a machine without role and rail, in PCI order: RDMA devices joined with their interfaces, bonds
// and leaves, then the interfaces that no RDMA device stands for.
std::vector<topology::Nic> AssembleNics(const Readings& readings);

// A device's NUMA node: sysfs, else what hwloc found from its CPU list.
topology::Fact<int> NumaOf(const Readings& readings, const std::string& pci);

}  // namespace heddle::nodeagent
