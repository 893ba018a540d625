// How Pricing takes gangs that have their nodes whole: a node's GPUs at once where its lanes are alike, and runs
// of like nodes at once. Rank by rank (pricing.cc) gives the same, later.
#include <algorithm>
#include <bit>

#include "placement/pricing.h"

namespace heddle::placement {

using topology::kNone;
using topology::NodeId;

bool Pricing::ReadWholeNodes(const std::vector<PodPlacement>& pods) {
  whole_.clear();
  lane_count_ = 0;
  std::uint32_t held = 0;  // of the node that the pods before have begun
  for (const PodPlacement& pod : pods) {
    if (pod.gpus == 0) continue;
    if (held == 0) {
      const int gpus = dense_.gpus(pod.node);
      if (lane_count_ == 0) lane_count_ = gpus;
      if (gpus != lane_count_) return false;
      whole_.push_back(pod.node);
    } else if (pod.node != whole_.back() || std::countr_zero(pod.gpus) < int(std::bit_width(held))) {
      return false;
    }
    held |= pod.gpus;
    if (std::popcount(held) == lane_count_) held = 0;
  }
  if (held != 0 || lane_count_ == 0) return false;
  if (std::int64_t(whole_.size()) * lane_count_ != request_.parallelism.world()) return false;
  FindRuns();
  return true;
}

// A run is nodes that follow each other in rank order, are alike in all that a price asks of them and, where NVLink
// domains span nodes, lie in one. On a torus every node is a run.
void Pricing::FindRuns() {
  const std::size_t nodes = whole_.size();
  run_end_.resize(nodes);
  for (std::size_t at = nodes; at-- > 0;) {
    const bool joined =
        at + 1 < nodes && !dense_.is_torus() && dense_.Alike(whole_[at], whole_[at + 1]) &&
        (!dense_.domains_span_nodes() ||
         (dense_.domain(whole_[at]) != kNone && dense_.domain(whole_[at]) == dense_.domain(whole_[at + 1])));
    run_end_[at] = joined ? run_end_[at + 1] : std::int32_t(at) + 1;
  }
}

// Groups of neighbouring GPUs of one node: nodes that are alike inside cost the same.
bool Pricing::TallyInsideNodes(const Cut& cut, Quality& quality) {
  const auto [stride, size] = cut.stride;
  const std::int64_t block = stride * size;
  if (block > lane_count_ || lane_count_ % block != 0) return false;
  std::int32_t known = kNone;
  for (const NodeId node : whole_) {
    if (cut.axis == Axis::kTp && dense_.domain(node) != kNone) {
      quality.tp_groups_in_domain += lane_count_ / size;
    }
    if (dense_.inside(node) == known) continue;
    known = dense_.inside(node);
    for (std::int64_t first = 0; first < lane_count_; ++first) {
      if (first % block >= stride) continue;  // not the first of a group
      GroupTally tally;
      StartGroup();
      Enter(node, size, tally);
      CountRanks(tally);
      const std::int64_t last = first + (size - 1) * stride;
      for (std::int64_t from = first; cut.closed ? from <= last : from < last; from += stride) {
        const std::int64_t next = from == last ? first : from + stride;
        GroupCounts none;  // inside a node no edge is on the network
        CountEdge(dense_.Between(dense_.port(node, int(from)), dense_.port(node, int(next))), cut.axis, 1,
                  tally, none);
      }
      if (tallies_.empty() || !(tallies_.back() == tally)) tallies_.push_back(tally);
    }
  }
  return true;
}

// Groups of the same GPU of many nodes: all lanes of a node are taken as one for as long as they are alike, and
// groups over nodes of the same runs as one.
bool Pricing::TallyBetweenNodes(const Cut& cut, Quality& quality) {
  if (cut.stride.stride % lane_count_ != 0) return false;
  const auto step = std::size_t(cut.stride.stride / lane_count_), size = std::size_t(cut.stride.size);
  for (std::size_t outer = 0; outer < whole_.size(); outer += step * size) {
    for (std::size_t first = outer; first < outer + step;) {
      const Alike alike{first, step, GroupsAlike(first, step, size, outer + step)};
      GroupCounts counts;
      if (TallyAllLanes(cut, alike, counts)) {
        Count(cut.axis, counts, alike.groups * lane_count_, quality);
      } else {
        for (int lane = 0; lane < lane_count_; ++lane) TallyLane(cut, alike, lane, quality);
      }
      first += std::size_t(alike.groups);
    }
  }
  return true;
}

// The group and those that start after it, before `end`, whose every node lies in the run of its own.
std::int64_t Pricing::GroupsAlike(std::size_t first, std::size_t step, std::size_t size,
                                  std::size_t end) const {
  std::size_t groups = end - first;
  for (std::size_t at = first; groups > 1 && at < first + step * size; at += step) {
    groups = std::min(groups, std::size_t(run_end_[at]) - at);
  }
  return std::int64_t(groups);
}

// Calls visit(from, to, edges) for the edges between nodes of one run, which are alike, and for each edge between
// two runs; enters every node. False = visit said so, and the rest was left out.
template <class Visit>
bool Pricing::WalkRuns(const Cut& cut, const Alike& alike, GroupTally& tally, const Visit& visit) {
  const std::size_t step = alike.step, last = alike.first + std::size_t(cut.stride.size - 1) * step;
  StartGroup();
  for (std::size_t at = alike.first;;) {
    const std::size_t within = (std::min(std::size_t(run_end_[at]) - 1, last) - at) / step;
    EnterRun(whole_[at], std::int64_t(within) + 1, 1, tally);
    if (within > 0 && !visit(whole_[at], whole_[at + step], std::int64_t(within))) return false;
    at += within * step;
    if (at == last) break;
    if (!visit(whole_[at], whole_[at + step], 1)) return false;
    at += step;
  }
  if (cut.closed && !visit(whole_[last], whole_[alike.first], 1)) return false;
  CountRanks(tally);
  return true;
}

// False = some lanes differ, and nothing has changed.
bool Pricing::TallyAllLanes(const Cut& cut, const Alike& alike, GroupCounts& counts) {
  const std::size_t crossings = row_crossings_.size();
  GroupTally tally;
  const bool all_alike = WalkRuns(cut, alike, tally, [&](NodeId from, NodeId to, std::int64_t edges) {
    Lanes::Row& row = lanes_.Between(from, to);
    if (!row.unlike.empty()) return false;
    if (CountEdge(row.hop, cut.axis, edges, tally, counts)) {
      row_crossings_.push_back({tallies_.size(), &row, kNone, edges * alike.groups});
    }
    return true;
  });
  if (!all_alike) {
    row_crossings_.resize(crossings);
    return false;
  }
  tallies_.push_back(tally);
  counts.in_domain = tally.domains == 1 && dense_.domain(whole_[alike.first]) != kNone;
  return true;
}

void Pricing::TallyLane(const Cut& cut, const Alike& alike, int lane, Quality& quality) {
  GroupTally tally;
  GroupCounts counts;
  WalkRuns(cut, alike, tally, [&](NodeId from, NodeId to, std::int64_t edges) {
    Lanes::Row& row = lanes_.Between(from, to);
    if (CountEdge(row.At(lane), cut.axis, edges, tally, counts)) {
      row_crossings_.push_back({tallies_.size(), &row, lane, edges * alike.groups});
    }
    return true;
  });
  tallies_.push_back(tally);
  counts.in_domain = tally.domains == 1 && dense_.domain(whole_[alike.first]) != kNone;
  Count(cut.axis, counts, alike.groups, quality);
}

// Groups that go through several GPUs of each of several nodes, as where every GPU is a replica.
bool Pricing::TallyThroughNodes(const Cut& cut, Quality& quality) {
  const std::int64_t block = cut.stride.stride * cut.stride.size;
  if (lane_count_ % cut.stride.stride != 0 || block % lane_count_ != 0) return false;
  const auto nodes = std::size_t(block / lane_count_);
  for (std::size_t first = 0; first < whole_.size(); first += nodes) {
    for (int lane = 0; lane < cut.stride.stride; ++lane) TallyRing(cut, first, nodes, lane, quality);
  }
  return true;
}

// The group of `nodes` nodes from a position on that starts at this GPU of each.
void Pricing::TallyRing(const Cut& cut, std::size_t first, std::size_t nodes, int lane, Quality& quality) {
  const int stride = int(cut.stride.stride), last_lane = lane_count_ - stride + lane;
  const std::size_t end = first + nodes;
  GroupTally tally;
  GroupCounts counts;
  const auto edges = [&](NodeId from, int from_lane, NodeId to, int to_lane, std::int64_t times) {
    const GpuPort &here = dense_.port(from, from_lane), &next = dense_.port(to, to_lane);
    const Hop hop = dense_.Between(here, next);
    if (CountEdge(hop, cut.axis, times, tally, counts)) AddFlow(here, next, hop.mbps, times);
  };
  StartGroup();
  for (std::size_t at = first; at < end;) {
    const std::size_t run_end = std::min(std::size_t(run_end_[at]), end);
    const auto run = std::int64_t(run_end - at);
    const NodeId node = whole_[at];
    EnterRun(node, run, lane_count_ / stride, tally);
    for (int from = lane; from < last_lane; from += stride) edges(node, from, node, from + stride, run);
    if (run > 1) edges(node, last_lane, whole_[at + 1], lane, run - 1);
    if (run_end < end) edges(whole_[run_end - 1], last_lane, whole_[run_end], lane, 1);
    at = run_end;
  }
  if (cut.closed) edges(whole_[end - 1], last_lane, whole_[first], lane, 1);
  CountRanks(tally, lane_count_ / stride);
  counts.in_domain = tally.domains == 1 && dense_.domain(whole_[first]) != kNone;
  Count(cut.axis, counts, 1, quality);
  FinishGroup(tally);
}

}  // namespace heddle::placement
