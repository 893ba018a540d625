#pragma once

#include <cstdint>
#include <vector>

#include "placement/planner.h"

namespace heddle::oracle {

// A fabric, what is free of it and one gang: what the planner and the exact solver are both asked.
struct Instance {
  topology::Fabric fabric;
  std::vector<placement::NodeState> nodes;
  placement::GangRequest request;
};

// Equal arguments give equal instances on every machine. 2 … max_nodes nodes of 4 or 8 GPUs in 1 … 8 uneven units,
// whole or fragmented, and a gang of 2 … 256 ranks in 1 … 64 pods whose requirements nest (none judges single GPUs).
// Requires: max_nodes >= 2.
Instance MakeInstance(std::uint64_t seed, int max_nodes);

// At most 8 nodes and 6 pods: few enough assignments to price every one. Requirements of every kind.
Instance MakeTinyInstance(std::uint64_t seed);

}  // namespace heddle::oracle
