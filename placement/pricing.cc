#include "placement/pricing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "placement/constants.h"

namespace heddle::placement {

using topology::kNone;

Pricing::Pricing(const ClusterState& state, const GangRequest& request)
    : state_(state),
      request_(request),
      bytes_(BytesPerStep(request.parallelism, request.model)),
      lanes_(state.dense()) {
  leaf_up_.assign(state.fabric().leaves.size(), 0);
  leaf_down_.assign(state.fabric().leaves.size(), 0);
  seen_.assign(state.fabric().domains.size(), 0);
}

Quality Pricing::Price(const std::vector<PodPlacement>& pods) {
  ranks_.clear();
  Quality quality;
  const bool whole = ReadWholeNodes(pods);
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp}) {
    const AxisStride stride = StrideOf(request_.parallelism, axis);
    if (axis == Axis::kTp) {
      quality.tp_groups = int(request_.parallelism.world() / stride.size);
      if (stride.size == 1) quality.tp_groups_in_domain = quality.tp_groups;
    }
    if (stride.size < 2) continue;
    if (whole && PriceInsideNodes(axis, stride, quality)) continue;
    if (whole && PriceBetweenNodes(axis, stride, quality)) continue;
    if (ranks_.empty()) ReadRanks(pods);
    PriceAxis(axis, quality);
  }
  quality.step_micros =
      std::accumulate(quality.axis_micros.begin(), quality.axis_micros.end(), std::int64_t{0});
  CountDomains(pods, quality);
  return quality;
}

void Pricing::ReadRanks(const std::vector<PodPlacement>& pods) {
  ranks_.reserve(std::size_t(request_.parallelism.world()));
  for (const PodPlacement& pod : pods) {
    for (std::uint32_t left = pod.gpus; left != 0; left &= left - 1) {
      ranks_.push_back(state_.dense().port(pod.node, std::countr_zero(left)));
    }
  }
  CHECK(std::int64_t(ranks_.size()) == request_.parallelism.world());
}

bool Pricing::ReadWholeNodes(const std::vector<PodPlacement>& pods) {
  whole_.clear();
  lane_count_ = 0;
  for (const PodPlacement& pod : pods) {
    if (pod.gpus == 0) continue;
    const int gpus = state_.dense().gpus(pod.node);
    if (lane_count_ == 0) lane_count_ = gpus;
    if (gpus != lane_count_ || std::popcount(pod.gpus) != gpus) return false;
    whole_.push_back(pod.node);
  }
  return lane_count_ > 0 && std::int64_t(whole_.size()) * lane_count_ == request_.parallelism.world();
}

// A ring collective passes every edge but one in each pass; the chain's slowest pair sets its pace.
double Pricing::CostOf(Axis axis, bool closed, int size, std::int64_t mbps, std::int64_t tenths) const {
  const auto a = std::size_t(axis);
  const double latency =
      closed ? double(tenths) * (size - 1) / size + kRingBaseTenths : double(tenths) / (size - 1);
  return bytes_.bytes[a] * 8 / double(mbps) + double(bytes_.messages[a]) * latency / 10;
}

// Groups of neighbouring GPUs of one node: nodes of one pattern cost the same.
bool Pricing::PriceInsideNodes(Axis axis, AxisStride stride, Quality& quality) {
  const std::int64_t block = stride.stride * stride.size;
  if (block > lane_count_ || lane_count_ % block != 0) return false;
  const bool closed = axis != Axis::kPp;
  const DenseFabric& dense = state_.dense();
  double worst = 0;
  std::int32_t priced = kNone;
  for (const topology::NodeId node : whole_) {
    if (axis == Axis::kTp && dense.port(node, 0).domain != kNone) {
      quality.tp_groups_in_domain += lane_count_ / stride.size;
    }
    if (dense.pattern(node) == priced) continue;
    priced = dense.pattern(node);
    for (std::int64_t first = 0; first < lane_count_; ++first) {
      if (first % block >= stride.stride) continue;  // not the first of a group
      std::int64_t mbps = std::numeric_limits<std::int64_t>::max(), tenths = 0;
      const std::int64_t last = first + (stride.size - 1) * stride.stride;
      for (std::int64_t from = first; closed ? from <= last : from < last; from += stride.stride) {
        const std::int64_t next = from == last ? first : from + stride.stride;
        const Hop hop = dense.Between(dense.port(node, int(from)), dense.port(node, int(next)));
        mbps = std::min(mbps, hop.mbps);
        tenths += hop.tenths_us;
      }
      worst = std::max(worst, CostOf(axis, closed, stride.size, mbps, tenths));
    }
  }
  quality.axis_micros[std::size_t(axis)] = std::llround(worst);
  return true;
}

// Groups of the same GPU of many nodes: all lanes of a node are priced as one, for as long as they are alike.
bool Pricing::PriceBetweenNodes(Axis axis, AxisStride stride, Quality& quality) {
  if (stride.stride % lane_count_ != 0) return false;
  const auto step = std::size_t(stride.stride / lane_count_), size = std::size_t(stride.size);
  const bool closed = axis != Axis::kPp;
  const auto a = std::size_t(axis);
  group_mbps_.clear();
  group_tenths_.clear();
  node_crossings_.clear();
  used_rows_.clear();
  std::int64_t edges = 0, misaligned = 0, crossings = 0, in_domain_groups = 0;
  for (std::size_t outer = 0; outer < whole_.size(); outer += step * size) {
    for (std::size_t first = outer; first < outer + step; ++first) {
      std::int64_t mbps = std::numeric_limits<std::int64_t>::max();
      std::int32_t tenths = 0;
      bool in_domain = true;
      const std::size_t last = first + (size - 1) * step;
      for (std::size_t from = first; closed ? from <= last : from < last; from += step) {
        Lanes::Row& row = lanes_.Between(whole_[from], whole_[from == last ? first : from + step]);
        if (!row.alike) {
          for (Lanes::Row* used : used_rows_) used->uses = 0;
          return false;
        }
        mbps = std::min(mbps, row.hop.mbps);
        tenths += row.hop.tenths_us;
        in_domain = in_domain && !row.hop.network;  // another node over NVLink: one domain
        if (!row.hop.network) continue;
        ++edges;
        misaligned += row.hop.crosses_rail ? 1 : 0;
        if (!row.hop.crosses_leaf) continue;
        ++crossings;
        if (row.uses++ == 0) used_rows_.push_back(&row);
        node_crossings_.emplace_back(group_mbps_.size(), &row);
      }
      in_domain_groups += in_domain ? 1 : 0;
      group_mbps_.push_back(mbps);
      group_tenths_.push_back(tenths);
    }
  }
  ShareBetweenNodes(axis);
  double worst = 0;
  for (std::size_t g = 0; g < group_mbps_.size(); ++g) {
    worst = std::max(worst, CostOf(axis, closed, stride.size, group_mbps_[g], group_tenths_[g]));
  }
  quality.axis_micros[a] = std::llround(worst);
  quality.edges[a] += edges * lane_count_;
  quality.rail_misaligned += misaligned * lane_count_;
  quality.leaf_crossings[a] += crossings * lane_count_;
  if (axis == Axis::kTp) quality.tp_groups_in_domain += int(in_domain_groups * lane_count_);
  return true;
}

// As ShareUplinks, with the flows of each pair of patterns counted together. A group's slowest lane is what
// counts, since all its lanes have the same latency.
void Pricing::ShareBetweenNodes(Axis axis) {
  const DenseFabric& dense = state_.dense();
  const auto each_lane = [&](const Lanes::Row& row, const auto& look) {
    for (int lane = 0; lane < lane_count_; ++lane)
      look(dense.port(row.from, lane).leaf, dense.port(row.to, lane).leaf);
  };
  for (const Lanes::Row* row : used_rows_) {
    each_lane(*row, [&](topology::LeafId from, topology::LeafId to) {
      if (from != kNone) leaf_up_[std::size_t(from)] += row->hop.mbps * row->uses;
      if (to != kNone) leaf_down_[std::size_t(to)] += row->hop.mbps * row->uses;
    });
  }
  const int percent = axis == Axis::kPp ? kCrossingSendPercent : kCrossingCollectivePercent;
  for (Lanes::Row* row : used_rows_) {
    double part = 1;
    each_lane(*row, [&](topology::LeafId from, topology::LeafId to) {
      part = std::min({part, PartOf(from, leaf_up_), PartOf(to, leaf_down_)});
    });
    row->shared_mbps = std::max<std::int64_t>(1, std::int64_t(double(row->hop.mbps) * part) * percent / 100);
  }
  for (const auto& [group, row] : node_crossings_) {
    group_mbps_[group] = std::min(group_mbps_[group], row->shared_mbps);
  }
  for (Lanes::Row* row : used_rows_) {
    row->uses = 0;
    each_lane(*row, [&](topology::LeafId from, topology::LeafId to) {
      if (from != kNone) leaf_up_[std::size_t(from)] = 0;
      if (to != kNone) leaf_down_[std::size_t(to)] = 0;
    });
  }
}

void Pricing::PriceAxis(Axis axis, Quality& quality) {
  const auto [stride, size] = StrideOf(request_.parallelism, axis);
  const std::int64_t world = std::int64_t(ranks_.size()), block = stride * size;
  const auto a = std::size_t(axis);
  // A chain of stages does not close; a ring of two has its one edge in both directions.
  const bool closed = axis != Axis::kPp;
  group_mbps_.clear();
  group_tenths_.clear();
  crossings_.clear();
  const DenseFabric& dense = state_.dense();
  for (std::int64_t outer = 0; outer < world; outer += block) {
    for (std::int64_t inner = 0; inner < stride; ++inner) {
      std::int64_t mbps = std::numeric_limits<std::int64_t>::max();
      std::int32_t tenths = 0;
      bool in_domain = true;
      const std::int64_t first = outer + inner, last = first + (size - 1) * stride;
      for (std::int64_t from = first; closed ? from <= last : from < last; from += stride) {
        const GpuPort& here = ranks_[std::size_t(from)];
        const GpuPort& next = ranks_[std::size_t(from == last ? first : from + stride)];
        const Hop hop = dense.Between(here, next);
        mbps = std::min(mbps, hop.mbps);
        tenths += hop.tenths_us;
        in_domain = in_domain && here.domain != kNone && here.domain == next.domain;
        if (!hop.network) continue;
        ++quality.edges[a];
        quality.rail_misaligned += hop.crosses_rail ? 1 : 0;
        if (!hop.crosses_leaf) continue;
        ++quality.leaf_crossings[a];
        crossings_.push_back({std::int64_t(group_mbps_.size()), here.leaf, next.leaf, hop.mbps});
      }
      if (axis == Axis::kTp) quality.tp_groups_in_domain += in_domain ? 1 : 0;
      group_mbps_.push_back(mbps);
      group_tenths_.push_back(tenths);
    }
  }
  ShareUplinks(axis);
  double worst = 0;
  for (std::size_t g = 0; g < group_mbps_.size(); ++g) {
    worst = std::max(worst, CostOf(axis, closed, size, group_mbps_[g], group_tenths_[g]));
  }
  quality.axis_micros[a] = std::llround(worst);
}

// Flows of one axis leave together. Where a leaf's way up is too narrow for them and for what other gangs
// send, every flow gets the same fraction of what it wants.
void Pricing::ShareUplinks(Axis axis) {
  if (crossings_.empty()) return;
  for (const Crossing& crossing : crossings_) {
    if (crossing.from != kNone) leaf_up_[std::size_t(crossing.from)] += crossing.mbps;
    if (crossing.to != kNone) leaf_down_[std::size_t(crossing.to)] += crossing.mbps;
  }
  const int percent = axis == Axis::kPp ? kCrossingSendPercent : kCrossingCollectivePercent;
  for (const Crossing& crossing : crossings_) {
    const double part = std::min(PartOf(crossing.from, leaf_up_), PartOf(crossing.to, leaf_down_));
    const auto mbps = std::max<std::int64_t>(1, std::int64_t(double(crossing.mbps) * part) * percent / 100);
    auto& group = group_mbps_[std::size_t(crossing.group)];
    group = std::min(group, mbps);
  }
  for (const Crossing& crossing : crossings_) {
    if (crossing.from != kNone) leaf_up_[std::size_t(crossing.from)] = 0;
    if (crossing.to != kNone) leaf_down_[std::size_t(crossing.to)] = 0;
  }
}

// What a leaf's way up leaves of what is wanted of it.
double Pricing::PartOf(topology::LeafId leaf, const std::vector<std::int64_t>& wanted) const {
  if (leaf == kNone) return 1.0;
  const std::int64_t up = std::int64_t(state_.fabric().leaves[std::size_t(leaf)].up_gbps) * 1000;
  const std::int64_t all = wanted[std::size_t(leaf)] + state_.leaf_load_gbps(leaf) * 1000;
  return up > 0 && all > up ? double(up) / double(all) : 1.0;
}

void Pricing::CountDomains(const std::vector<PodPlacement>& pods, Quality& quality) {
  ++round_;
  quality.whole_domains_left = state_.whole_domains();
  for (const PodPlacement& pod : pods) {
    if (pod.gpus == 0) continue;
    const topology::DomainId domain = state_.fabric().nodes[std::size_t(pod.node)].domain;
    if (domain == kNone || seen_[std::size_t(domain)] == round_) continue;
    seen_[std::size_t(domain)] = round_;
    quality.whole_domains_left -= state_.domain_is_whole(domain) ? 1 : 0;
  }
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
