#include "placement/pricing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "placement/constants.h"
#include "placement/rank_ports.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

// The links that two leaves' traffic shares with others'; see DenseFabric::link_mbps.
Flow FlowBetween(const DenseFabric& dense, const GpuPort& from, const GpuPort& to, std::int64_t mbps) {
  const auto leaves = std::int32_t(dense.fabric().leaves.size());
  Flow flow;
  flow.mbps = mbps;
  if (from.leaf != kNone) flow.links[0] = from.leaf;
  if (to.leaf != kNone) flow.links[1] = to.leaf + leaves;
  return flow;
}

// The largest hints come to 1e30; thirty years a step is as good as never, and the sum of six does not overflow.
std::int64_t WholeMicros(double micros) {
  return std::llround(std::min(micros, 1e15));
}

// What crossing a leaf leaves of a flow that is alone on its way.
void Cross(std::int64_t mbps, Axis axis, GroupTally& tally) {
  const int percent = axis == Axis::kPp ? kCrossingSendPercent : kCrossingCollectivePercent;
  const std::int64_t left = std::max<std::int64_t>(1, mbps * percent / 100);
  if (left >= tally.net_mbps) return;
  tally.net_mbps = left;
  tally.crosses_leaf = true;
  tally.shared = false;
}

void Pass(const Hop& hop, GroupTally& tally) {
  if (!hop.network) {
    tally.near_mbps = std::min(tally.near_mbps, hop.mbps);
    tally.pcie = tally.pcie || hop.tenths_us == kPcieStepTenths;
    return;
  }
  if (hop.mbps < tally.net_mbps) {
    tally.net_mbps = hop.mbps;
    tally.crosses_leaf = false;  // what was slowest until now did; the caller says whether this one does
  }
  tally.extra_tenths = std::max(tally.extra_tenths, hop.tenths_us - kNetStepTenths);
  tally.crosses_rail = tally.crosses_rail || hop.crosses_rail;
}

}  // namespace

Pricing::Pricing(const ClusterState& state, const GangRequest& request, Stride by)
    : state_(state),
      dense_(state.dense()),
      request_(request),
      by_(by),
      cost_(request.parallelism, request.model),
      sharing_(state.dense().link_mbps()),
      shares_links_(state.dense().oversubscribed() || !state.link_load_mbps().empty()),
      lanes_(state.dense(), shares_links_) {
  seen_.assign(state.fabric().domains.size() + state.fabric().nodes.size(), 0);
  ranks_there_.resize(seen_.size());
}

Quality Pricing::Price(const std::vector<PodPlacement>& pods, std::int64_t limit_micros) {
  ranks_.clear();
  Quality quality;
  const bool hides = cost_.windows().backward_us > 0;
  const bool whole = by_ == Stride::kWholeNodes && ReadWholeNodes(pods);
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp}) {
    const Cut cut{axis, TrafficStrideOf(request_.parallelism, axis), axis != Axis::kPp};
    if (axis == Axis::kTp) {
      quality.tp_groups = int(request_.parallelism.world() / cut.stride.size);
      if (cut.stride.size == 1) quality.tp_groups_in_domain = quality.tp_groups;
    }
    if (cut.stride.size < 2) continue;
    tallies_.clear();
    crossings_.clear();
    row_crossings_.clear();
    flows_.clear();
    if (!whole || (!TallyInsideNodes(cut, quality) && !TallyBetweenNodes(cut, quality) &&
                   !TallyThroughNodes(cut, quality))) {
      if (ranks_.empty()) ReadRanks(pods);
      TallyRanks(cut, quality);
    }
    ShareLinks(axis);
    TakeWorst(cut, quality);
    quality.step_micros += quality.axis_micros[std::size_t(axis)];
    if (!hides && quality.step_micros > limit_micros) return quality;
  }
  HideBehindCompute(quality);
  quality.step_micros =
      std::accumulate(quality.axis_micros.begin(), quality.axis_micros.end(), std::int64_t{0});
  if (quality.step_micros <= limit_micros) CountDomains(pods, whole, quality);
  return quality;
}

AxisBottleneck Pricing::BottleneckOf(Axis axis) const {
  return placement::BottleneckOf(cost_.traffic().of(axis), worst_[std::size_t(axis)]);
}

void Pricing::ReadRanks(const std::vector<PodPlacement>& pods) {
  ranks_.reserve(std::size_t(request_.parallelism.world()));
  ReadPorts(dense_, pods, ranks_);
  CHECK(std::int64_t(ranks_.size()) == request_.parallelism.world());
}

void Pricing::StartGroup() {
  met_.clear();
  if (++mark_ != 0) return;
  std::fill(seen_.begin(), seen_.end(), 0);
  mark_ = 1;
}

bool Pricing::IsNewDomain(NodeId node, int ranks) {
  const topology::DomainId domain = dense_.domain(node);
  const std::size_t slot =
      domain != kNone ? std::size_t(domain) : state_.fabric().domains.size() + std::size_t(node);
  if (seen_[slot] == mark_) {
    ranks_there_[slot] += ranks;
    return false;
  }
  seen_[slot] = mark_;
  ranks_there_[slot] = ranks;
  met_.push_back(std::int32_t(slot));
  return true;
}

void Pricing::Enter(NodeId node, int ranks, GroupTally& tally) {
  tally.domains += IsNewDomain(node, ranks) ? 1 : 0;
  tally.generation = std::min(tally.generation, dense_.nvlink_generation(node));
  tally.nvswitch = tally.nvswitch && dense_.has_nvswitch(node);
}

// As Enter, for so many like nodes of which the group has `ranks` each: no domain of one node is met twice.
void Pricing::EnterRun(NodeId node, std::int64_t nodes, int ranks, GroupTally& tally) {
  if (dense_.domains_span_nodes()) return Enter(node, int(nodes) * ranks, tally);
  tally.domains += std::int32_t(nodes);
  tally.generation = std::min(tally.generation, dense_.nvlink_generation(node));
  tally.nvswitch = tally.nvswitch && dense_.has_nvswitch(node);
}

// Of the domains entered since StartGroup; `ranks` in each where EnterRun did not need to tell them apart.
void Pricing::CountRanks(GroupTally& tally, int ranks) const {
  tally.fewest = tally.most = met_.empty() ? ranks : ranks_there_[std::size_t(met_.front())];
  for (const std::int32_t slot : met_) {
    tally.fewest = std::min(tally.fewest, ranks_there_[std::size_t(slot)]);
    tally.most = std::max(tally.most, ranks_there_[std::size_t(slot)]);
  }
}

// True = it crosses between leaves whose links are shared, and the caller says over which.
bool Pricing::CountEdge(const Hop& hop, Axis axis, std::int64_t times, GroupTally& tally,
                        GroupCounts& counts) const {
  Pass(hop, tally);
  if (!hop.network) return false;
  counts.edges += times;
  counts.misaligned += hop.crosses_rail ? times : 0;
  if (!hop.crosses_leaf) return false;
  counts.leaf_crossings += times;
  if (!shares_links_) Cross(hop.mbps, axis, tally);
  return shares_links_;
}

void Pricing::Count(Axis axis, const GroupCounts& counts, std::int64_t groups, Quality& quality) {
  const auto a = std::size_t(axis);
  quality.edges[a] += counts.edges * groups;
  quality.rail_misaligned += counts.misaligned * groups;
  quality.leaf_crossings[a] += counts.leaf_crossings * groups;
  if (axis == Axis::kTp && counts.in_domain) quality.tp_groups_in_domain += int(groups);
}

void Pricing::TallyRanks(const Cut& cut, Quality& quality) {
  const auto [stride, size] = cut.stride;
  const std::int64_t world = std::int64_t(ranks_.size()), block = stride * size;
  for (std::int64_t outer = 0; outer < world; outer += block) {
    for (std::int64_t inner = 0; inner < stride; ++inner) TallyGroup(cut, outer + inner, quality);
  }
}

void Pricing::TallyGroup(const Cut& cut, std::int64_t first, Quality& quality) {
  const auto [stride, size] = cut.stride;
  const std::int64_t last = first + (size - 1) * stride;
  GroupTally tally;
  GroupCounts counts;
  StartGroup();
  for (std::int64_t from = first; from <= last; from += stride) {
    const GpuPort& here = ranks_[std::size_t(from)];
    Enter(here.node, 1, tally);
    if (from == last && !cut.closed) break;
    const GpuPort& next = ranks_[std::size_t(from == last ? first : from + stride)];
    const Hop hop = dense_.Between(here, next);
    if (CountEdge(hop, cut.axis, 1, tally, counts)) AddFlow(here, next, hop.mbps, 1);
  }
  counts.in_domain = tally.domains == 1 && ranks_[std::size_t(first)].domain != kNone;
  Count(cut.axis, counts, 1, quality);
  CountRanks(tally);
  FinishGroup(tally);
}

// An edge of the group that is being tallied, over links that it shares.
void Pricing::AddFlow(const GpuPort& from, const GpuPort& to, std::int64_t mbps, std::int64_t count) {
  crossings_.push_back({tallies_.size(), flows_.size(), mbps});
  flows_.push_back(FlowBetween(dense_, from, to, mbps));
  flows_.back().count = count;
}

// The group's flows want no more than its pace.
void Pricing::FinishGroup(GroupTally& tally) {
  for (auto flow = crossings_.rbegin(); flow != crossings_.rend() && flow->group == tallies_.size(); ++flow) {
    flows_[flow->flow].mbps = tally.net_mbps;
  }
  tallies_.push_back(tally);
}

// Flows of one axis leave together. Where a leaf's way up is too narrow for them and for what other gangs
// send, they share it.
void Pricing::ShareLinks(Axis axis) {
  if (!shares_links_) return;
  CountRowFlows();
  sharing_.Share(flows_, state_.link_load_mbps());
  const auto slow = [&](std::size_t group, std::int64_t alone, const Flow& flow) {
    GroupTally& tally = tallies_[group];
    // What crossing costs alone is not paid again where the link is full anyway.
    Cross(alone, axis, tally);
    if (flow.part >= 1) return;
    const auto given = std::max<std::int64_t>(1, std::int64_t(double(flow.mbps) * flow.part));
    if (given >= tally.net_mbps) return;
    tally.net_mbps = given;
    tally.shared = true;
  };
  for (const Crossing& crossing : crossings_) slow(crossing.group, crossing.mbps, flows_[crossing.flow]);
  for (const RowCrossing& crossing : row_crossings_) {
    const int lanes = crossing.lane == kNone ? lane_count_ : 1;
    for (int lane = 0; lane < lanes; ++lane) {
      slow(crossing.group, crossing.row->At(crossing.lane == kNone ? lane : crossing.lane).mbps,
           flows_[crossing.flow + std::size_t(lane)]);
    }
  }
}

// Each pair of patterns has its flows once, one a lane, counted as often as the gang's nodes make them; groups
// that run slower than the pair could have flows of their own.
void Pricing::CountRowFlows() {
  rows_.clear();
  for (RowCrossing& crossing : row_crossings_) {
    Lanes::Row& row = *crossing.row;
    const std::int64_t pace = tallies_[crossing.group].net_mbps;
    const auto add = [&](int lane, std::int64_t count) {
      flows_.push_back(FlowBetween(dense_, dense_.port(row.from, lane), dense_.port(row.to, lane), pace));
      flows_.back().count = count;
    };
    crossing.flow = flows_.size();
    if (crossing.lane != kNone) {
      add(crossing.lane, crossing.edges);
    } else if (pace != row.hop.mbps) {
      for (int lane = 0; lane < lane_count_; ++lane) add(lane, crossing.edges);
    } else if (row.listed) {
      crossing.flow = row.first_flow;
      row.uses += crossing.edges;
    } else {
      row.listed = true;
      row.uses = crossing.edges;
      row.first_flow = crossing.flow;
      rows_.push_back(&row);
      for (int lane = 0; lane < lane_count_; ++lane) add(lane, 0);
    }
  }
  for (Lanes::Row* row : rows_) {
    for (int lane = 0; lane < lane_count_; ++lane) {
      flows_[row->first_flow + std::size_t(lane)].count = row->uses;
    }
    row->listed = false;
  }
}

void Pricing::TakeWorst(const Cut& cut, Quality& quality) {
  double most = -1;
  const GroupTally* worst = nullptr;
  for (const GroupTally& tally : tallies_) {
    const double micros = cost_.Micros(cut.axis, tally);
    if (micros <= most) continue;
    most = micros;
    worst = &tally;
  }
  CHECK(worst != nullptr);
  worst_[std::size_t(cut.axis)] = *worst;
  quality.axis_micros[std::size_t(cut.axis)] = WholeMicros(most);
}

// Shards before replicas, as their calls come first; the sum does not depend on it.
void Pricing::HideBehindCompute(Quality& quality) {
  Windows left = cost_.windows();
  if (left.backward_us <= 0) return;
  for (const Axis axis : {Axis::kFsdp, Axis::kDp}) {
    if (cost_.traffic().of(axis).ranks < 2) continue;
    const auto a = std::size_t(axis);
    quality.axis_micros[a] = WholeMicros(cost_.VisibleMicros(axis, worst_[a], left));
  }
}

void Pricing::CountDomains(const std::vector<PodPlacement>& pods, bool whole, Quality& quality) {
  StartGroup();
  quality.whole_domains_left = state_.whole_domains();
  const auto leave = [&](NodeId node) {
    const topology::DomainId domain = dense_.domain(node);
    if (domain == kNone || !IsNewDomain(node, 0)) return;
    quality.whole_domains_left -= state_.domain_is_whole(domain) ? 1 : 0;
  };
  if (whole) {
    for (const NodeId node : whole_) leave(node);
    return;
  }
  for (const PodPlacement& pod : pods) {
    if (pod.gpus != 0) leave(pod.node);
  }
}

// The network holds a group back where a wider one would make it faster; else what is inside does.
AxisBottleneck BottleneckOf(const AxisTraffic& traffic, const GroupTally& tally) {
  const Prediction call = MainCall(traffic, tally);
  bool network = tally.net_mbps != GroupTally::kNothing;
  if (network && tally.near_mbps != GroupTally::kNothing) {
    GroupTally wider = tally;
    wider.net_mbps *= 2;
    network = MainCall(traffic, wider).micros < call.micros;
  }
  Bound bound = tally.pcie ? Bound::kPcie : Bound::kNvlink;
  if (network) bound = tally.shared ? Bound::kUplink : tally.crosses_leaf ? Bound::kCrossing : Bound::kNic;
  return {bound, (network ? tally.net_mbps : tally.near_mbps) / 1000, call.algorithm, call.protocol};
}

bool Better(const Quality& a, const Quality& b) {
  const auto key = [](const Quality& q) {
    return std::tuple(q.step_micros,
                      std::accumulate(q.leaf_crossings.begin(), q.leaf_crossings.end(), std::int64_t{0}),
                      q.rail_misaligned, -q.whole_domains_left);
  };
  return key(a) < key(b);
}

}  // namespace heddle::placement
