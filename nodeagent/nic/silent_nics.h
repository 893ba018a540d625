#pragma once

#include <string>
#include <vector>

#include "base/file_tree.h"
#include "nodeagent/nic/rdma_probe.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {

// A NIC that the PCI bus shows and that has no RDMA device, though it should: its driver lost it or never took it. Or
// one that somebody took from its driver on purpose.
struct SilentNic {
  std::string pci;
  std::string driver;       // that has the function; empty: none has
  bool infiniband = false;  // the bus calls it InfiniBand
  bool given = false;       // its driver keeps it for a virtual machine or DPDK, and nothing is wrong
  // Nothing but a part for RDMA on the auxiliary bus tells it. That is there also where no driver of RDMA shall be
  // loaded: it may be the host's own network card.
  bool by_part = false;
  friend bool operator==(const SilentNic&, const SilentNic&) = default;
};

// By PCI address: what the bus calls InfiniBand, what is of a model that has RDMA devices here, and functions with a
// part for RDMA on the auxiliary bus. Left out are virtual functions, those that WhyExcluded leaves out, and Ethernet
// functions of a card with an RDMA device: a bond of both of its ports has one for the two.
// Functions that are given away are here whatever they are. Nothing else where the RDMA devices, or the place of one,
// could not be read. Reads a few links and files where a network function has no RDMA device.
std::vector<SilentNic> FindSilentNics(const base::FileTree& files, const PciTree& tree,
                                      const RdmaReadings& rdma);

// A driver that keeps a function for somebody else: a virtual machine (vfio-pci, mlx5_vfio_pci) or DPDK.
bool IsGivenAway(std::string_view driver);

// Whether a pod may have an RDMA device to itself, out of the host's sight: `rdma system` says "netns exclusive". That
// is ib_core's parameter netns_mode, which shows what the module was loaded with and what `rdma system set netns` made
// of it since. False where it is not there or cannot be read.
bool RdmaIsExclusive(const base::FileTree& files);

}  // namespace heddle::nodeagent
