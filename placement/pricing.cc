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
    : state_(state), request_(request), bytes_(BytesPerStep(request.parallelism, request.model)) {
  ranks_.reserve(std::size_t(request.parallelism.world()));
  leaf_up_.assign(state.fabric().leaves.size(), 0);
  leaf_down_.assign(state.fabric().leaves.size(), 0);
  seen_.assign(state.fabric().domains.size(), 0);
}

Quality Pricing::Price(const std::vector<PodPlacement>& pods) {
  ranks_.clear();
  for (const PodPlacement& pod : pods) {
    for (std::uint32_t left = pod.gpus; left != 0; left &= left - 1) {
      ranks_.push_back(state_.dense().port(pod.node, std::countr_zero(left)));
    }
  }
  CHECK(std::int64_t(ranks_.size()) == request_.parallelism.world());
  Quality quality;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp})
    PriceAxis(axis, quality);
  quality.step_micros =
      std::accumulate(quality.axis_micros.begin(), quality.axis_micros.end(), std::int64_t{0});
  CountDomains(pods, quality);
  return quality;
}

void Pricing::PriceAxis(Axis axis, Quality& quality) {
  const auto [stride, size] = StrideOf(request_.parallelism, axis);
  const std::int64_t world = std::int64_t(ranks_.size()), block = stride * size;
  const auto a = std::size_t(axis);
  if (axis == Axis::kTp) quality.tp_groups = int(world / size);
  if (axis == Axis::kTp && size == 1) quality.tp_groups_in_domain = quality.tp_groups;
  if (size < 2) return;
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
    // A ring collective passes every edge but one in each pass; the chain's slowest pair sets its pace.
    const double tenths = closed ? double(group_tenths_[g]) * (size - 1) / size + kRingBaseTenths
                                 : double(group_tenths_[g]) / (size - 1);
    worst = std::max(worst,
                     bytes_.bytes[a] * 8 / double(group_mbps_[g]) + double(bytes_.messages[a]) * tenths / 10);
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
  const auto share = [this](topology::LeafId leaf, const std::vector<std::int64_t>& wanted) {
    if (leaf == kNone) return 1.0;
    const std::int64_t up = std::int64_t(state_.fabric().leaves[std::size_t(leaf)].up_gbps) * 1000;
    const std::int64_t all = wanted[std::size_t(leaf)] + state_.leaf_load_gbps(leaf) * 1000;
    return up > 0 && all > up ? double(up) / double(all) : 1.0;
  };
  const int percent = axis == Axis::kPp ? kCrossingSendPercent : kCrossingCollectivePercent;
  for (const Crossing& crossing : crossings_) {
    const double part = std::min(share(crossing.from, leaf_up_), share(crossing.to, leaf_down_));
    const auto mbps = std::max<std::int64_t>(1, std::int64_t(double(crossing.mbps) * part) * percent / 100);
    auto& group = group_mbps_[std::size_t(crossing.group)];
    group = std::min(group, mbps);
  }
  for (const Crossing& crossing : crossings_) {
    if (crossing.from != kNone) leaf_up_[std::size_t(crossing.from)] = 0;
    if (crossing.to != kNone) leaf_down_[std::size_t(crossing.to)] = 0;
  }
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
