#pragma once

#include <optional>
#include <string>

#include "crds/gpu_indexes.h"
#include "crds/object_meta.h"
#include "topology/node.h"

namespace heddle::crds {

// The GPUs that a Node says pods may be given.
struct OfferedGpus {
  int count = 0;         // of all GPU resources together
  std::string resource;  // one that has some; empty = none has
};
// Nothing where the Node does not say what it offers, as in a file that was cut.
std::optional<OfferedGpus> OfferedGpusOf(const Json& node);

// Those beside what the node's agent finds.
GpuCounts CompareGpus(int allocatable, const topology::Node& found);

// All that decides whether gangs may get a node. The planner, and whoever says what it will do, fill in what they know:
// what is left out condemns none.
struct NodeUse {
  bool gone = false;  // its agent reports, and there is no Node
  bool ready = true;
  bool cordoned = false;
  std::string
      published;  // what a Fabric or the report itself speaks against it: "Excluded", "NoTopology"; else empty
  bool silent = false;  // its agent has stopped to report
  std::optional<GpuCounts> gpus;
};
// By the Node alone.
NodeUse NodeUseOf(const Json& node);

inline constexpr const char* kExcludedNode = "Excluded";
inline constexpr const char* kGpuCountMismatch = "GpuCountMismatch";

// The first reason, in one of the words of docs/conditions.md#nodes-that-no-gang-may-use; empty = gangs may get it.
std::string WhyOutOfUse(const NodeUse& use);

}  // namespace heddle::crds
