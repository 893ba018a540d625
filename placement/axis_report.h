#pragma once

#include <cstdint>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

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
  friend bool operator==(const AxisReport&, const AxisReport&) = default;
};

// One for each axis with groups of two or more, in the order tp, cp, ep, fsdp, dp, pp. `pods` by pod index,
// all placed; `quality` is Evaluate's answer for them.
std::vector<AxisReport> ReportAxes(const ClusterState& state, const GangRequest& request,
                                   const std::vector<PodPlacement>& pods, const Quality& quality);

}  // namespace heddle::placement
