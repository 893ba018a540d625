#pragma once

#include <string>

#include "base/file_tree.h"
#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// NCCL's topology file (NCCL_TOPO_FILE; RCCL's dialect where the GPUs are AMD's) of a machine, with what NCCL
// does not find by itself: the rail and the plane of each compute NIC. `files` is the machine's tree, for what
// no probe reads: CPU masks and model, and whether GPUDirect RDMA's module is loaded.
//
// Only what is known is written; NCCL asks the machine for the rest. PCIe switches are those that NCCL would
// write: of the two bridge ports on the way through a switch the upper one. What NCCL cannot express is lost:
// it knows no host bridges, so PHB and NODE are both "one <cpu>".
std::string NcclTopologyOf(const base::FileTree& files, const Readings& readings, const Observation& seen);

}  // namespace heddle::nodeagent
