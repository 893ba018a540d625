#pragma once

#include <string>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/nic/rdma_probe.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {

// A NIC that the PCI bus shows and that has no RDMA device, though it should: its driver lost it or never took it.
struct SilentNic {
  std::string pci;
  std::string driver;       // that has the function; empty: none has
  bool infiniband = false;  // the bus calls it InfiniBand; else it is of a model that has RDMA devices here
  friend bool operator==(const SilentNic&, const SilentNic&) = default;
};

// By PCI address. Left out are virtual functions, those that WhyExcluded leaves out, those that somebody took from
// their driver on purpose (for a virtual machine, for DPDK), EFA, which Assemble knows by itself, and Ethernet
// functions of a card with an RDMA device: a bond of both of its ports has one for the two. Nothing where the RDMA
// devices, or the place of one, could not be read. Reads a few files of the NICs that may be silent, and none on a
// machine without.
std::vector<SilentNic> FindSilentNics(const base::FileTree& files, const PciTree& tree,
                                      const RdmaReadings& rdma);

}  // namespace heddle::nodeagent
