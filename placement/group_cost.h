#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "placement/traffic.h"

namespace heddle::placement {

// What one group of an axis crosses: all that its time depends on.
struct GroupTally {
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int16_t kNewest = std::numeric_limits<std::int16_t>::max();
  std::int64_t near_mbps = kNothing;  // the slowest edge inside an NVLink domain or a node
  std::int64_t net_mbps = kNothing;   // the slowest edge over the network, after sharing
  std::int32_t domains = 0;           // NVLink domains; a node without one counts as one
  std::int32_t fewest = 1, most = 1;  // ranks in one of them
  std::int32_t extra_tenths = 0;      // latency beyond one leaf's, of the farthest edge
  std::int16_t generation = kNewest;  // of NVLink, the oldest; 0 = none, or not known
  bool nvswitch = true;               // every domain has switches
  bool pcie = false;                  // some edge inside is PCIe
  bool crosses_rail = false;
  bool crosses_leaf = false;  // the slowest edge over the network does
  bool shared = false;        // … and has less than it could have alone
  friend bool operator==(const GroupTally&, const GroupTally&) = default;
};

// Predicted time of the axes for groups of one gang. Thread rule: one owner; it remembers answers.
class GroupCost {
 public:
  GroupCost(const Parallelism& parallelism, const ModelHints& model);

  // Microseconds per training step of one group's calls, hidden or not.
  double Micros(Axis axis, const GroupTally& tally);
  // The same without what runs beside computation; `left` is what is left to hide behind.
  double VisibleMicros(Axis axis, const GroupTally& tally, Windows& left) const;
  // The computation of one step that calls may hide behind; nothing without the model's tflops.
  const Windows& windows() const { return windows_; }
  const StepTraffic& traffic() const { return traffic_; }

 private:
  struct Known {
    GroupTally tally;
    double micros = -1;
  };
  Known& Slot(Axis axis, const GroupTally& tally);

  StepTraffic traffic_;
  Windows windows_;
  std::array<std::vector<Known>, kAxisCount>
      known_;  // by hash: most groups are alike; empty = nobody asked yet
};

// The call that takes most of the axis's time, as NCCL would run it.
Prediction MainCall(const AxisTraffic& traffic, const GroupTally& tally);

}  // namespace heddle::placement
