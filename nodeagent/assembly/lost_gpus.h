#pragma once

#include <string>
#include <vector>

#include "nodeagent/pci/probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// An RDMA NIC as the search for lost GPUs sees it.
struct PlacedNic {
  std::string name;
  std::string pci;
  std::string model;  // equal for cards of one kind: PCI ids and, where the card tells it, the board's
  topology::Transport transport = topology::Transport::kInfiniBand;
  int rate_gbps = 0;  // 0 while it is down
};

// The GPUs by which rails are numbered, in that order.
struct RailGpus {
  // PCI addresses. Of a GPU that is gone: that of a NIC which stood beside it, or of a GPU on the same NUMA node.
  std::vector<std::string> places;
  std::vector<std::string>
      orphans;   // NICs that stand beside lost GPUs behind a switch, by name, in the order given
  int lost = 0;  // GPUs that are gone
};

// A GPU that fell off the bus leaves its NIC without a GPU: without this the NIC looks like one for storage, and the
// rails behind it are renumbered. That a GPU is gone is believed only on evidence. Below one root port, or on one NUMA
// node where no GPU and NIC share a switch, there are fewer GPUs than elsewhere beside as many NICs of the model that
// most GPUs have; fewer GPUs are missing than are left; and with those there are as many as the driver lists
// (`listed`), or a power of two, which is how boards come. So a machine of eight GPUs has lost none, whatever NICs
// it has for storage.
//
// `gpus`: the addresses of those on the bus, in the order of their numbers. `nics` in PCI order. Pure.
RailGpus FindLostGpus(const PciTree& tree, std::vector<std::string> gpus, std::size_t listed,
                      const std::vector<PlacedNic>& nics);

}  // namespace heddle::nodeagent
