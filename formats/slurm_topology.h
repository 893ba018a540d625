#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::formats {

struct SlurmSwitch {
  std::string name;
  std::vector<std::string> switches;  // below it; empty for one that has hosts
  std::vector<std::string> nodes;     // as listed, each once
  std::int64_t link_speed = 0;        // whatever its author meant by it: Slurm ignores it; 0 = not said
  int line = 0;
  friend bool operator==(const SlurmSwitch&, const SlurmSwitch&) = default;
};

struct SlurmBlock {
  std::string name;
  std::vector<std::string> nodes;
  int line = 0;
  friend bool operator==(const SlurmBlock&, const SlurmBlock&) = default;
};

// What Slurm's topology plugins are told. It names a switch for each host, never a NIC, a rail or a port.
struct SlurmTopology {
  std::vector<SlurmSwitch> switches;  // as listed
  std::vector<SlurmBlock> blocks;     // as listed
  std::vector<int> block_sizes;       // in hosts, as listed
  // What Slurm itself would only warn of, as sentences: a host on two leaves, a switch below two others,
  // topologies of topology.yaml beside the one that counts.
  std::vector<std::string> notes;
};

// `topology.conf` of the plugins topology/tree and topology/block. Errors name the line: a key that is not of
// the format, a name that stands twice, a child that is no switch, switches in a circle, too many hosts.
[[nodiscard]] base::Result<SlurmTopology> ParseSlurmConf(std::string_view text);

// `topology.yaml` (Slurm 25.05): of its topologies the one with `cluster_default: true`, else the first, if
// that is a tree or has blocks. Errors as above.
[[nodiscard]] base::Result<SlurmTopology> ParseSlurmYaml(const std::string& text);

// What both forms are held to, and the notes that come of it.
[[nodiscard]] base::Status CheckSlurmTopology(SlurmTopology& topology);

}  // namespace heddle::formats
