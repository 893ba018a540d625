#include "placement/communicator.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "placement/pricing.h"

namespace heddle::placement {
namespace {

// A pod for each node, in the order in which the ranks come to them: NCCL knows GPUs and hosts, and no pods.
std::vector<PodPlacement> ByNode(const std::vector<PodPlacement>& pods) {
  std::vector<PodPlacement> nodes;
  for (const PodPlacement& pod : pods) {
    if (pod.gpus == 0) continue;
    const auto known =
        std::find_if(nodes.begin(), nodes.end(), [&](const auto& one) { return one.node == pod.node; });
    if (known == nodes.end()) {
      nodes.push_back(pod);
    } else {
      known->gpus |= pod.gpus;
    }
  }
  return nodes;
}

GangRequest RequestOf(const std::vector<PodPlacement>& pods) {
  GangRequest request;
  for (const PodPlacement& pod : pods) request.pods.push_back({.gpus = std::popcount(pod.gpus)});
  return request;
}

// What a group of an axis meets inside its nodes, and another between them, is what one over all of them meets.
GroupTally Joined(const GroupTally& inside, const GroupTally& between, int ranks_of_a_node) {
  GroupTally all = between;
  all.near_mbps = std::min(inside.near_mbps, between.near_mbps);
  all.net_mbps = std::min(inside.net_mbps, between.net_mbps);
  all.fewest *= ranks_of_a_node;
  all.most *= ranks_of_a_node;
  all.extra_tenths = std::max(inside.extra_tenths, between.extra_tenths);
  all.generation = std::min(inside.generation, between.generation);
  all.nvswitch = inside.nvswitch && between.nvswitch;
  all.pcie = inside.pcie || between.pcie;
  all.crosses_rail = inside.crosses_rail || between.crosses_rail;
  return all;
}

GroupTally TallyOf(const ClusterState& state, GangRequest request, const std::vector<PodPlacement>& pods,
                   Axis axis, int ranks) {
  (axis == Axis::kPp ? request.parallelism.pp : request.parallelism.dp) = ranks;
  Pricing pricing(state, request);
  pricing.Price(pods);
  return pricing.WorstOf(axis);
}

GroupTally TallyOfAll(const ClusterState& state, const std::vector<PodPlacement>& pods, int ranks) {
  const std::vector<PodPlacement> nodes = ByNode(pods);
  const int each = std::popcount(nodes.front().gpus);
  const bool equal = std::all_of(nodes.begin(), nodes.end(),
                                 [&](const auto& one) { return std::popcount(one.gpus) == each; });
  GangRequest request = RequestOf(nodes);
  // Where nodes have unlike shares there are no lanes from one to the next, and rank follows rank.
  if (!equal || each == 1 || nodes.size() == 1)
    return TallyOf(state, std::move(request), nodes, Axis::kDp, ranks);
  request.parallelism.tp = each;
  request.parallelism.dp = int(nodes.size());
  Pricing pricing(state, request);
  pricing.Price(nodes);
  return Joined(pricing.WorstOf(Axis::kTp), pricing.WorstOf(Axis::kDp), each);
}

AxisTraffic OneCall(Collective collective, int ranks, double bytes) {
  AxisTraffic traffic;
  traffic.ranks = ranks;
  traffic.count = 1;
  traffic.transfers[0] = {.collective = collective, .bytes = bytes, .calls = 1};
  return traffic;
}

}  // namespace

Communicator::Communicator(const ClusterState& state, const std::vector<PodPlacement>& pods) {
  for (const PodPlacement& pod : pods) ranks_ += std::popcount(pod.gpus);
  CHECK(ranks_ >= 2);
  all_ = TallyOfAll(state, pods, ranks_);
  next_ = TallyOf(state, RequestOf(pods), pods, Axis::kPp, ranks_);
}

Prediction Communicator::Predict(Collective collective, double bytes) const {
  return MainCall(OneCall(collective, ranks_, bytes), collective == Collective::kSendRecv ? next_ : all_);
}

AxisBottleneck Communicator::BottleneckOf(Collective collective, double bytes) const {
  return placement::BottleneckOf(OneCall(collective, ranks_, bytes),
                                 collective == Collective::kSendRecv ? next_ : all_);
}

}  // namespace heddle::placement
