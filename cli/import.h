#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/cluster_files.h"
#include "cli/output.h"

namespace heddle::cli {

struct ImportOptions {
  std::vector<std::string> sources;  // as ParseSourceWord reads them
  std::optional<int>
      gpus_per_node;             // of hosts that no NCCL XML or topo -m describes; nothing = 8, said aloud
  std::optional<int> link_gbps;  // of links whose speed no file says; nothing = 400, said aloud
  std::string transport;         // "ib", "roce", "efa", "ethernet"; empty = ib, and roce for LLDP
  bool nvlink_blocks = false;    // Slurm's blocks are NVLink domains
  base::WallTime now;            // stands in the objects as the time at which they were seen
};

// `fabric import`: what admins already hold, as a List of NodeTopologies and a Fabric that `plan --topology`
// takes. What contradicts itself, and what was taken for granted, goes to `err`; cables of hosts that end
// where they should not stand in the Fabric's status as well. Text is YAML. Exit codes: 0, or 2 where a file
// is not what it should be.
Output ImportFabric(const ImportOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
