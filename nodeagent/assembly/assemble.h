#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "nodeagent/assembly/identity.h"
#include "nodeagent/gpu/probe.h"
#include "nodeagent/leaf/probe.h"
#include "nodeagent/nic/exclusion.h"
#include "nodeagent/nic/net_probe.h"
#include "nodeagent/nic/rdma_probe.h"
#include "nodeagent/nic/silent_nics.h"
#include "nodeagent/nic/storage_nics.h"
#include "nodeagent/pci/hwloc_probe.h"
#include "nodeagent/pci/probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// One look at a machine: what every probe said. Each stands for itself; that one failed hides no other.
struct Readings {
  Identity identity;
  Locality locality;
  PciTree pci;
  GpuReadings gpus;
  RdmaReadings rdma;
  std::vector<SilentNic> silent_nics;
  bool rdma_exclusive = false;  // a pod may have those without an RDMA device; asked only where there are any
  NetReadings net;
  LeafReadings leaves;
  StorageNics storage;
  std::string boot_id;      // the kernel's, of this run of the machine; empty = not told
  bool file_alone = false;  // all of this is what a supplied file says: nobody asked a device (nccl/import.h)
};

// A port that is congested: no fault of its link.
struct Congestion {
  base::WallTime since;  // whole seconds
  std::string evidence;  // as it was when that began
  friend bool operator==(const Congestion&, const Congestion&) = default;
};

// What the readings come to.
struct Observation {
  topology::Node node;
  std::vector<Exclusion> excluded;
  bool file_alone = false;  // as Readings::file_alone: nothing is known of how GPUs and links do
  std::string no_driver;    // why the driver could not be asked; empty when it was
  bool nvswitches_unseen =
      false;          // NVLinks end in switches, and the PCI bus shows none: a rack's, or a VM's host's
  bool xgmi = false;  // what counts as NVLinks is AMD's xGMI
  std::vector<std::string> unlisted_gpus;  // on the bus, and not listed by a driver that answers; sentences
  bool gpus_unreadable = false;            // GPUs are on the bus, and their driver does not answer
  std::set<int> unasked_gpus;  // those of them that nothing else stands against (GpuHealth::Apply), by index
  bool bus_unread = false;     // no GPU was found, and the PCI bus could not be read: nobody knows
  // GPUs with NVLinks that trained to less than is usual in this node, as sentences; and whether the driver says no
  // speed, so that the one of their generation stands for it.
  std::vector<std::string> slow_nvlinks;
  // By GPU, the links that the driver says are not up; of those only the ones that are up on another GPU, where there
  // are any: export variants have slots that no board uses.
  std::map<int, std::vector<int>> inactive_nvlinks;
  // By GPU, links of which the driver never said whether they are up, beyond those that node.nvlink counts: so many may
  // be up where more should be (ApplyHealth).
  std::map<int, int> untold_nvlinks;
  bool assumed_nvlink_speed = false;
  std::optional<std::vector<std::string>> fabric_faults;  // of the NVLink fabric; nothing: NVML says nothing
  // By ApplyHealth (health.h). What stands against any NVLink; nothing: nobody watches them. Ports, by NIC and
  // number, whose state cannot be read, and why.
  std::optional<std::vector<std::string>> nvlink_faults;
  std::map<std::pair<std::string, int>, std::string> unread_ports;
  // By ApplyHealth, too: InfiniBand ports whose leaves are asked what their ends have counted, and why that is not
  // known, or not in full; empty: it is.
  std::map<std::pair<std::string, int>, std::string> leaf_ends;
  // By ApplyHealth, too: ports that are congested.
  std::map<std::pair<std::string, int>, Congestion> congestion;
  // Ports that pods and plans do not get for now though nothing is wrong with them, and why (publish/report.cc).
  std::map<std::pair<std::string, int>, std::string> withdrawn_ports;
  std::optional<std::vector<std::string>>
      pcie_faults;                      // links that are not full; nothing: none could be judged
  std::vector<std::string> problems;    // what could not be read, as sentences
  std::string pci_source;               // the file that the PCIe tree is from; empty: sysfs
  std::vector<std::string> rail_notes;  // what else the rails stand on, and why some are unknown
  topology::PciDistance rail_reach = topology::PciDistance::kPix;  // as Rails::reach
  bool derived_mtus = false;  // the RDMA MTU of a compute port is that of its interface: no driver said one
  // NCCL's topology file of this machine, where the PCIe tree is from one (pci_source); by Discovery.
  std::string nccl_topology;
  std::vector<std::string> shared_leaf_names;  // as LeafReadings::shared_names
  std::string boot_id;                         // as Readings::boot_id
  std::string given_storage;           // which NICs are for storage by --storage; a sentence, empty: none
  std::vector<std::string> lost_nics;  // GPUs without a NIC of their own, which others here have; sentences
  std::string lost_gpus;  // which rails stand as if GPUs were there that are gone; a sentence, empty: none
  friend bool operator==(const Observation&, const Observation&) = default;
};

// Pure and total.
Observation Assemble(const Readings& readings);

}  // namespace heddle::nodeagent
