#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "placement/cost.h"

namespace heddle::placement {

// What one group of an axis crosses: all that its time depends on.
struct GroupTally {
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();
  std::int64_t near_mbps = kNothing;  // the slowest edge inside an NVLink domain or a node
  std::int64_t net_mbps = kNothing;   // the slowest edge over the network, after sharing
  std::int32_t tenths_us = 0;         // latency of all edges together
  std::int32_t domains = 1;           // NVLink domains; a node without one counts as one
  friend bool operator==(const GroupTally&, const GroupTally&) = default;
};

// Predicted time of one axis for groups of one gang. Thread rule: one owner; it remembers recent answers.
class GroupCost {
 public:
  GroupCost(const Parallelism& parallelism, const ModelHints& model);

  // Microseconds per training step of one group of `size` ranks.
  double Micros(Axis axis, int size, const GroupTally& tally);

 private:
  struct Known {
    GroupTally tally;
    double micros = -1;
  };
  double Compute(Axis axis, int size, const GroupTally& tally) const;

  AxisBytes bytes_;
  std::array<Known, kAxisCount> known_;  // the last answer by axis: most groups are alike
};

}  // namespace heddle::placement
