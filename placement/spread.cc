#include "placement/spread.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "placement/pricing.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

struct AxisWeight {
  Axis axis;
  std::int64_t weight;
};
// The gigabytes of the default objective times six (traffic.cc).
constexpr std::array<AxisWeight, 6> kWeights{{{Axis::kTp, 384},
                                              {Axis::kEp, 384},
                                              {Axis::kCp, 96},
                                              {Axis::kFsdp, 48},
                                              {Axis::kDp, 24},
                                              {Axis::kPp, 1}}};

std::int64_t CrossingsOf(const Quality& quality) {
  return std::accumulate(quality.leaf_crossings.begin(), quality.leaf_crossings.end(), std::int64_t{0});
}

// How many of the cells, the fullest first, hold so many GPUs; at least one. Requires: `rooms` is a heap.
std::int64_t FewestFor(std::int64_t gpus, std::vector<std::int64_t> rooms) {
  std::int64_t count = 0;
  for (; gpus > 0 && !rooms.empty() && rooms.front() > 0; ++count) {
    gpus -= rooms.front();
    std::pop_heap(rooms.begin(), rooms.end());
    rooms.pop_back();
  }
  return std::max<std::int64_t>(1, count);
}

}  // namespace

Spread::Spread(const ClusterState& state, const GangRequest& request)
    : state_(state),
      request_(request),
      wide_(state.fabric().shape == topology::Shape::kDragonfly ? Tier::kSpine : Tier::kUnit) {}

void Spread::ReadGroups() {
  if (!units_.empty()) return;
  std::vector<std::int32_t> pod_of_rank;
  pod_of_rank.reserve(std::size_t(request_.parallelism.world()));
  int largest = 0;
  for (std::size_t p = 0; p < request_.pods.size(); ++p) {
    const int gpus = request_.pods[p].gpus;
    for (int gpu = 0; gpu < gpus; ++gpu) pod_of_rank.push_back(std::int32_t(p));
    if (gpus > 0 && (smallest_pod_ == 0 || gpus < smallest_pod_)) smallest_pod_ = gpus;
    largest = std::max(largest, gpus);
  }
  CHECK(largest > 0 && std::int64_t(pod_of_rank.size()) == request_.parallelism.world());
  for (const auto& [axis, weight] : kWeights) {
    const auto [stride, size] = StrideOf(request_.parallelism, axis);
    if (size < 2) continue;
    // The ranks of pods that are alike are in groups of the same pods: the first of each says it.
    const bool alike = largest == smallest_pod_ && stride % largest == 0;
    ReadGroupsOf(weight, {stride, size}, alike ? largest : 1, pod_of_rank);
  }
  units_.resize(std::size_t(state_.dense().cells(wide_)));
  domains_.resize(std::size_t(state_.dense().cells(Tier::kDomain)));
}

void Spread::ReadGroupsOf(std::int64_t weight, const AxisStride& cut, int step,
                          const std::vector<std::int32_t>& pod_of_rank) {
  AxisGroups groups{.weight = weight};
  groups.pods.reserve(request_.pods.size());
  const std::int64_t world = std::int64_t(pod_of_rank.size()), block = cut.stride * cut.size;
  bool alone = false;  // a group in one pod is known: all those are one and the same
  for (std::int64_t outer = 0; outer < world; outer += block) {
    for (std::int64_t head = outer; head < outer + cut.stride; head += step) {
      const std::size_t begin = groups.pods.size();
      int gpus = 0;
      for (std::int64_t rank = head; rank < head + block; rank += cut.stride) {
        const std::int32_t pod = pod_of_rank[std::size_t(rank)];
        if (groups.pods.size() > begin && groups.pods.back() == pod) continue;
        groups.pods.push_back(pod);
        gpus += request_.pods[std::size_t(pod)].gpus;
      }
      if (groups.pods.size() == begin + 1 && std::exchange(alone, true)) {
        groups.pods.pop_back();
        continue;
      }
      groups.first.push_back(std::int32_t(begin));
      groups.gpus = std::max(groups.gpus, gpus);
    }
  }
  groups.first.push_back(std::int32_t(groups.pods.size()));
  axes_.push_back(std::move(groups));
}

void Spread::Meet(Met& met, std::uint32_t group, int& cells, std::int64_t& all) {
  // Each further pod in a cell costs half of the one before, so that taking from the emptier cell is a step down.
  constexpr int kFirst = 64, kHalvings = 6;
  if (met.group != group) met = {group, 0};
  if (met.pods == 0) ++cells;
  all += kFirst >> std::min(met.pods, kHalvings);
  ++met.pods;
}

void Spread::StartGroup() {
  if (++group_ != 0) return;
  std::fill(units_.begin(), units_.end(), Met{});
  std::fill(domains_.begin(), domains_.end(), Met{});
  group_ = 1;
}

Spread::Reach Spread::Of(const std::vector<PodPlacement>& pods) {
  return Walk(pods, false);
}

std::int64_t Spread::WorstOf(const std::vector<PodPlacement>& pods) {
  return Walk(pods, true).worst;
}

// `nodes_once`: pods on the node of the one before are passed over, which leaves the worst as it is.
Spread::Reach Spread::Walk(const std::vector<PodPlacement>& pods, bool nodes_once) {
  ReadGroups();
  const DenseFabric& dense = state_.dense();
  Reach reach;
  for (const AxisGroups& axis : axes_) {
    int most_units = 0, most_domains = 0;
    std::int64_t all = 0;
    for (std::size_t g = 0; g + 1 < axis.first.size(); ++g) {
      StartGroup();
      int units = 0, domains = 0;
      NodeId last = topology::kNone;
      for (std::int32_t i = axis.first[g]; i < axis.first[g + 1]; ++i) {
        const NodeId node = pods[std::size_t(axis.pods[std::size_t(i)])].node;
        if (nodes_once && node == last) continue;
        last = node;
        Meet(units_[std::size_t(dense.cell(wide_, node))], group_, units, all);
        Meet(domains_[std::size_t(dense.cell(Tier::kDomain, node))], group_, domains, all);
      }
      most_units = std::max(most_units, units);
      most_domains = std::max(most_domains, domains);
    }
    reach.all += axis.weight * all;
    reach.worst += axis.weight * (most_units + most_domains);
  }
  return reach;
}

std::int64_t Spread::Least() {
  ReadGroups();
  const DenseFabric& dense = state_.dense();
  std::vector<std::int64_t> in_unit(units_.size(), 0), in_domain(domains_.size(), 0);
  for (std::size_t n = 0; n < state_.fabric().nodes.size(); ++n) {
    const int open = std::popcount(state_.open_gpus(NodeId(n)));
    if (open < smallest_pod_) continue;
    in_unit[std::size_t(dense.cell(wide_, NodeId(n)))] += open;
    in_domain[std::size_t(dense.cell(Tier::kDomain, NodeId(n)))] += open;
  }
  std::make_heap(in_unit.begin(), in_unit.end());
  std::make_heap(in_domain.begin(), in_domain.end());
  std::int64_t least = 0;
  for (const AxisGroups& axis : axes_) {
    least += axis.weight * (FewestFor(axis.gpus, in_unit) + FewestFor(axis.gpus, in_domain));
  }
  return least;
}

bool Front::Wants(const Quality& quality) const {
  return places_.empty() || quality.step_micros <= limit_micros() || Better(quality, fastest().quality);
}

bool Front::LessSpread(const Place& a, const Place& b) const {
  if (spread_ == nullptr) return Better(a.found.quality, b.found.quality);
  if (a.spread != b.spread) return a.spread < b.spread;
  if (a.crossings != b.crossings) return a.crossings < b.crossings;
  return Better(a.found.quality, b.found.quality);
}

void Front::Offer(const std::vector<PodPlacement>& pods, const Quality& quality) {
  if (!Wants(quality)) return;
  tried_.found.quality = quality;
  tried_.crossings = CrossingsOf(quality);
  tried_.found.pods = pods;
  tried_.spread = kNotRead;
  if (!places_.empty()) {
    ReadSpread(places_.front());
    ReadSpread(tried_);
  }
  for (const Place& known : places_) {
    if (!Better(quality, known.found.quality) && !LessSpread(tried_, known)) return;
  }
  std::erase_if(places_, [this, &quality](const Place& known) {
    return !Better(known.found.quality, quality) && !LessSpread(known, tried_);
  });
  places_.push_back(tried_);
  const std::int64_t limit = limit_micros();
  std::erase_if(places_, [limit](const Place& known) { return known.found.quality.step_micros > limit; });
}

std::int64_t Front::limit_micros() const {
  const std::int64_t micros = fastest().quality.step_micros;
  return spread_ != nullptr ? AsFast(micros) : micros;
}

const Found& Front::fastest() const {
  CHECK(!places_.empty());
  const auto faster = [](const Place& a, const Place& b) { return Better(a.found.quality, b.found.quality); };
  return std::min_element(places_.begin(), places_.end(), faster)->found;
}

const Front::Place& Front::Chosen() const {
  CHECK(!places_.empty());
  const auto less = [this](const Place& a, const Place& b) { return LessSpread(a, b); };
  return *std::min_element(places_.begin(), places_.end(), less);
}

const Found& Front::chosen() const {
  return Chosen().found;
}
void Front::ReadSpread(Place& place) {
  if (spread_ != nullptr && place.spread == kNotRead) place.spread = spread_->WorstOf(place.found.pods);
}

std::int64_t Front::chosen_spread() {
  CHECK(!places_.empty());
  ReadSpread(places_.front());  // the only one that may not have been read
  return Chosen().spread;
}

}  // namespace heddle::placement
