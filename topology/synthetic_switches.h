#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric.h"
#include "topology/synthetic_line.h"

namespace heddle::topology {

// Inside of the synthetic notation: what stands above the hosts.

struct SyntheticLeaf {
  std::string name;
  int plane = 0;
  std::int64_t down_gbps = 0;  // of all its host ports, before any fault
};
// The leaves of the unit or ToR that `group` is in: by rail, then plane; of a ToR one, or two. None in a
// torus, with EFA, or without NICs. `down_gbps` counts the hosts of `group` alone.
std::vector<SyntheticLeaf> LeavesOfUnit(const SyntheticLine& line, const HostGroup& group);

// What a person would declare of this cluster.
Declaration DeclareSwitches(const SyntheticLine& line, const SyntheticTree& tree);

}  // namespace heddle::topology
