#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/collective.h"
#include "placement/plan.h"

namespace heddle::placement {

// The axes with groups of their own, in the order in which a plan speaks of them.
inline constexpr std::array kReportedAxes{Axis::kTp, Axis::kCp, Axis::kEp, Axis::kFsdp, Axis::kDp, Axis::kPp};

// What the slowest group of an axis is held back by.
enum class Bound : std::uint8_t { kNvlink, kPcie, kNic, kCrossing, kUplink };
// "NVLink", "PCIe", "NIC", "leaf crossing" (what it costs even alone), "uplink" (shared with others)
std::string_view BoundName(Bound bound);
struct AxisBottleneck {
  Bound bound = Bound::kNvlink;
  std::int64_t gbps = 0;  // what the group counts on there, one way
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  friend bool operator==(const AxisBottleneck&, const AxisBottleneck&) = default;
};

// What one axis of a placed gang crosses and costs: the explanation of a plan as values.
struct AxisReport {
  Axis axis = Axis::kTp;
  int size = 1;  // ranks of one group
  std::int64_t groups = 0;
  // The smallest level that holds both ends of every edge of every group: kNvlink where none leaves its
  // NVLink domain.
  Level worst = Level::kNvlink;
  std::int64_t edges = 0;           // that leave NVLink
  std::int64_t leaf_crossings = 0;  // of them, between two leaves
  double bytes = 0;                 // on the wire per GPU and step, as predicted
  std::int64_t micros = 0;          // per step, as predicted
  AxisBottleneck bottleneck;
  friend bool operator==(const AxisReport&, const AxisReport&) = default;
};

// One for each of kReportedAxes with groups of two or more. `pods` by pod index,
// all placed; `quality` is Evaluate's answer for them.
std::vector<AxisReport> ReportAxes(const ClusterState& state, const GangRequest& request,
                                   const std::vector<PodPlacement>& pods, const Quality& quality);

}  // namespace heddle::placement
