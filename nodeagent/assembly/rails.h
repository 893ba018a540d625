#pragma once

#include <string>
#include <vector>

#include "topology/node.h"

namespace heddle::nodeagent {

// A NIC as the measurement of roles and rails sees it.
struct RailNic {
  topology::Transport transport = topology::Transport::kEthernet;
  int rate_gbps = 0;  // of its active ports together; 0 when all are down
  bool up = false;
  std::vector<topology::PciDistance> distance;  // to each GPU, by position
  friend bool operator==(const RailNic&, const RailNic&) = default;
};

struct RailPlace {
  topology::NicRole role = topology::NicRole::kManagement;
  topology::Fact<int> rail = topology::Missing::kNotApplicable;  // of compute NICs
  friend bool operator==(const RailPlace&, const RailPlace&) = default;
};

struct Rails {
  std::vector<RailPlace> places;  // by position of the NIC
  // The farthest GPU by which a rail was told: PIX and PXB are PCIe switches, PHB a host bridge, NODE a NUMA node.
  topology::PciDistance reach = topology::PciDistance::kPix;
  std::vector<std::string> notes;  // what else the rails stand on, and why some are unknown
};

// Which NICs carry the traffic of GPUs, and on which rail, from measurements only: names and slots mean
// nothing.
//
// Compute are the RDMA NICs behind a PCIe switch with a GPU (PIX, PXB), of the transport that most of that
// bandwidth has, with at least half of the best rate. A NIC without link counts as well: a pulled cable takes
// a rail down, it does not make a storage NIC. Where no switch is visible at all (VMs; Grace, whose GPUs hang
// on no PCIe switch), those on a GPU's host bridge or NUMA node take their place. Other RDMA NICs are for
// storage, other NICs for management.
//
// The rail of a NIC is the number of the GPU it belongs to. NICs and GPUs that are equally near are dealt out
// in order: as many NICs to each GPU, or as many GPUs to each NIC, and then rails count NICs. Numbers of GPUs
// and not ranks among those that have a NIC, so a NIC that is missing from the bus does not rename the rails
// behind it.
//
// `gpus`: how many. `nics` in PCI order, which is how boards are wired; device names may come in any order.
Rails MeasureRails(int gpus, const std::vector<RailNic>& nics);

}  // namespace heddle::nodeagent
