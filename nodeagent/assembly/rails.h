#pragma once

#include <string>
#include <vector>

#include "topology/node.h"

namespace heddle::nodeagent {

// A NIC as the measurement of roles and rails sees it.
struct RailNic {
  topology::Transport transport = topology::Transport::kEthernet;
  int rate_gbps = 0;  // of its active ports together; 0 when all are down
  bool whole = true;  // no port of it is down: one that lost a port says no more what the card can carry
  std::vector<topology::PciDistance> distance;  // to each GPU, by position
  std::string pci;       // its function: those of one card differ in the last digit only
  std::string pci_id;    // vendor and device, "15b3:1021"; empty = unknown
  std::string board;     // tells cards of one PCI id apart: one port or two, 200 or 400 Gb/s; empty = unknown
  bool storage = false;  // its owner says that it is for storage (storage_nics.h), wherever it stands
  bool silent = false;   // it has no RDMA device (silent_nics.h): it keeps its place, and carries nothing
  bool given = false;    // and somebody took it from its driver on purpose: no GPU has lost it
  friend bool operator==(const RailNic&, const RailNic&) = default;
};

struct RailPlace {
  topology::NicRole role = topology::NicRole::kManagement;
  topology::Fact<int> rail = topology::Missing::kNotApplicable;  // of compute NICs
  friend bool operator==(const RailPlace&, const RailPlace&) = default;
};

// A GPU without a NIC that it should have, as others have theirs.
struct BareGpu {
  int gpu = 0;                        // by position
  int rail = 0;                       // that its NIC was on
  bool silent = false;                // the NIC is one of those given, and silent; else it is none of them
  bool others = false;                // it has more NICs on that rail; else it borrows another's
  std::vector<std::string> pci = {};  // of the silent NICs, where it is known which ones those are
  friend bool operator==(const BareGpu&, const BareGpu&) = default;
};

struct Rails {
  std::vector<RailPlace> places;  // by position of the NIC
  // The farthest GPU by which a rail was told: PIX and PXB are PCIe switches, PHB a host bridge, NODE a NUMA node.
  topology::PciDistance reach = topology::PciDistance::kPix;
  std::vector<std::string> notes;  // what else the rails stand on, and why some are unknown
  std::vector<BareGpu> bare;       // in the order of their groups
};

// Which NICs carry the traffic of GPUs, and on which rail, from measurements only: names and slots mean
// nothing.
//
// Compute are the RDMA NICs behind a PCIe switch with a GPU (PIX, PXB), of the transport that most of that
// bandwidth has, with more than half of the best rate. Where no switch is visible at all (VMs; Grace, whose GPUs hang
// on no PCIe switch), those on a GPU's host bridge or NUMA node take their place. Other RDMA NICs are for storage,
// other NICs for management.
//
// A pulled cable or a lost lane takes a rail down, and makes neither a rail of a storage NIC nor a storage NIC of a
// rail. So a NIC that is down, has a port down or runs at exactly half of the best rate is compute if it is of a kind
// (PCI id and board, where they are known) with one that runs at more; and also if some GPU has no such NIC as near,
// unless it is down and its PCI id is another.
// Where no link is up the kind with the most cards leads. Where a kind that has a card for each GPU is all down, or the
// best of it has exactly half of the best rate, and the cards with more are fewer than GPUs, those are for storage: the
// leaves of the rails are off, or storage is faster than they.
//
// A NIC that its owner keeps for storage is that, and counts for nothing else here.
//
// The rail of a NIC is the number of the GPU it belongs to. NICs and GPUs that are equally near are dealt out
// in order: as many NICs to each GPU, or as many GPUs to each NIC as most have, and then rails count NICs. Numbers of
// GPUs and not ranks among those that have a NIC, so a NIC that is missing from the bus does not rename the rails
// behind it.
//
// A machine with fewer NICs than GPUs may be made so. That a NIC is missing is believed of a silent one, and else where
// NICs share a PCIe switch with GPUs and three GPUs of four have theirs. A GPU that is left with others on its rail has
// lost one if most GPUs have more of them than it, and where none is silent, if three of four have. One that is given
// away counts as there, and says nothing of its neighbours.
//
// `gpus`: how many. `nics` in PCI order, which is how boards are wired; device names may come in any order.
Rails MeasureRails(int gpus, const std::vector<RailNic>& nics);

}  // namespace heddle::nodeagent
