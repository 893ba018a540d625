#include "placement/axis_report.h"

#include <algorithm>
#include <array>

#include "placement/dense.h"
#include "placement/pricing.h"
#include "placement/rank_ports.h"
#include "placement/traffic.h"

namespace heddle::placement {
namespace {

using topology::kNone;

Level LevelOf(const DenseFabric& dense, const GpuPort& a, const GpuPort& b) {
  const bool nvlink = a.nvlink_gbps > 0 && b.nvlink_gbps > 0 && a.domain != kNone && a.domain == b.domain;
  if (nvlink) return Level::kNvlink;
  if (a.node == b.node) return Level::kNode;
  if (a.leaf != kNone && a.leaf == b.leaf) return Level::kLeaf;
  const auto together = [&](Tier tier) {
    const std::int32_t cell = dense.cell(tier, a.node);
    return cell == dense.cell(tier, b.node) && dense.known(tier, cell);
  };
  if (together(Tier::kUnit)) return Level::kUnit;
  if (together(Tier::kSpine)) return Level::kSpine;
  return Level::kSite;
}

}  // namespace

std::string_view BoundName(Bound bound) {
  constexpr std::array<std::string_view, 5> kNames{"NVLink", "PCIe", "NIC", "leaf crossing", "uplink"};
  return kNames[std::size_t(bound)];
}

std::vector<AxisReport> ReportAxes(const ClusterState& state, const GangRequest& request,
                                   const std::vector<PodPlacement>& pods, const Quality& quality) {
  const DenseFabric& dense = state.dense();
  std::vector<GpuPort> ranks;
  ranks.reserve(std::size_t(request.parallelism.world()));
  ReadPorts(dense, pods, ranks);
  const StepTraffic traffic = TrafficPerStep(request.parallelism, request.model);
  Pricing pricing(state, request);
  pricing.Price(pods);
  const auto world = std::int64_t(ranks.size());
  std::vector<AxisReport> reports;
  for (const Axis axis : kReportedAxes) {
    const auto [stride, size] = TrafficStrideOf(request.parallelism, axis);
    if (size < 2) continue;
    const auto a = std::size_t(axis);
    AxisReport report{.axis = axis,
                      .size = size,
                      .groups = world / size,
                      .edges = quality.edges[a],
                      .leaf_crossings = quality.leaf_crossings[a],
                      .bytes = WireBytes(traffic.of(axis)),
                      .micros = quality.axis_micros[a],
                      .bottleneck = pricing.BottleneckOf(axis)};
    // The closing edge of a ring is no farther than the farthest of the others' ends lie apart, but it may be
    // farther than each of them; a chain of stages does not close.
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const auto next = NextInGroup(axis, {stride, size}, rank);
      if (!next) continue;
      report.worst =
          std::max(report.worst, LevelOf(dense, ranks[std::size_t(rank)], ranks[std::size_t(*next)]));
    }
    reports.push_back(report);
  }
  return reports;
}

}  // namespace heddle::placement
