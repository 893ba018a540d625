#include "placement/load.h"

#include <algorithm>
#include <cmath>

#include "placement/dense.h"
#include "placement/rank_ports.h"
#include "placement/traffic.h"

namespace heddle::placement {

std::vector<LeafLoad> LoadOf(const ClusterState& state, const GangRequest& request,
                             const std::vector<PodPlacement>& pods, const Quality& quality) {
  const DenseFabric& dense = state.dense();
  if (!dense.oversubscribed() || quality.step_micros <= 0) return {};
  std::vector<GpuPort> ranks;
  ranks.reserve(std::size_t(request.parallelism.world()));
  ReadPorts(dense, pods, ranks);
  const StepTraffic traffic = TrafficPerStep(request.parallelism, request.model);
  const double computing = ComputeMicrosPerStep(request.parallelism, request.model);
  const auto sending = double(quality.step_micros);
  const double step = computing > 0 ? computing + sending : sending * 100 / kCommunicationPercent;
  std::vector<double> mbps(state.fabric().leaves.size(), 0);
  const auto world = std::int64_t(ranks.size());
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kFsdp, Axis::kDp, Axis::kPp}) {
    const auto [stride, size] = TrafficStrideOf(request.parallelism, axis);
    if (size < 2) continue;
    const double rate = WireBytes(traffic.of(axis)) * 8 / step;  // bits per microsecond are Mb/s
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const auto next = NextInGroup(axis, {stride, size}, rank);
      if (!next) continue;
      const GpuPort &from = ranks[std::size_t(rank)], &to = ranks[std::size_t(*next)];
      const Hop hop = dense.Between(from, to);
      if (!hop.crosses_leaf) continue;
      // A ring sends one way, up from one leaf and down to the other: half of each counts for both ways.
      for (const topology::LeafId leaf : {from.leaf, to.leaf}) {
        if (leaf != topology::kNone) mbps[std::size_t(leaf)] += std::min(rate, double(hop.mbps)) / 2;
      }
    }
  }
  std::vector<LeafLoad> out;
  for (std::size_t leaf = 0; leaf < mbps.size(); ++leaf) {
    if (mbps[leaf] >= 1) out.push_back({topology::LeafId(leaf), std::llround(mbps[leaf])});
  }
  return out;
}

}  // namespace heddle::placement
