#pragma once

#include <vector>

#include "cli/import_machine.h"
#include "formats/slurm_topology.h"
#include "topology/fabric.h"

namespace heddle::cli {

struct SlurmOptions {
  topology::Transport transport = topology::Transport::kInfiniBand;
  int gbps = 400;  // of a NIC whose rate no machine file says
  bool nvlink_blocks = false;
};

// Hosts on the leaves that Slurm names, all NICs of a host on its one leaf: which NIC is on which rail is
// nothing that Slurm knows. Without a tree the blocks are the leaves. With `nvlink_blocks` a block is an
// NVLink domain over its hosts. NICs are the machine's compute NICs, else one for each GPU.
std::vector<topology::Node> SlurmHosts(const formats::SlurmTopology& slurm, const Machines& machines,
                                       const SlurmOptions& options, ImportFindings& findings);

// The tree above the leaves.
topology::Declaration SlurmSwitches(const formats::SlurmTopology& slurm, ImportFindings& findings);

// With hosts from a source that saw their cables: takes out those that Slurm does not run jobs on, and names
// those that only Slurm knows. Hosts are compared by their names up to the first dot.
void KeepSlurmHosts(const formats::SlurmTopology& slurm, bool nvlink_blocks,
                    std::vector<topology::Node>& nodes, ImportFindings& findings);

}  // namespace heddle::cli
