#pragma once

#include <optional>
#include <string>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::extender {

// What is wrong with the hardware that a gang uses, while its pods run on it. They are not moved: a process that
// computes slowly is worth more than one that is killed. But a person can be told.
struct SlotFault {
  std::string reason;    // "GpuUnhealthy" before "RailDegraded"
  std::string sentence;  // names the first rank that meets it, and how many more there are
  friend bool operator==(const SlotFault&, const SlotFault&) = default;
};

// A GPU that is not healthy or has lost a NIC, or a compute NIC that carries less than its link's rate.
bool IsFaulty(const topology::Node& node);

// A rank whose GPUs use a NIC that carries less than it should, or have lost one.
struct SlowRank {
  int rank = 0;
  std::string sentence;  // "a rail of node-03 (rank 2) is degraded: mlx5_4 has no link"
};
// By rank; none where the gang stays inside of one NVLink domain and so needs no rails, or has no plan.
std::vector<SlowRank> RanksOnDegradedRails(const crds::Gang& gang, const Snapshot& snapshot);

// The faults of the GPUs in a gang's slots and, where it reaches beyond one NVLink domain, of the NICs that those GPUs
// use; nothing where all is well, or where the gang has no plan.
std::optional<SlotFault> SlotFaultOf(const crds::Gang& gang, const Snapshot& snapshot);

// Whether the Gang's reason and message say just these faults already.
bool SaysItsFaults(const crds::Gang& gang, const Snapshot& snapshot);

}  // namespace heddle::extender
