#include "placement/backtrack.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"
#include "placement/embedding.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

// Nodes that a frame keeps to come back to, over all frames: 16 MiB.
constexpr std::size_t kKeptNodes = std::size_t(1) << 22;

// The next larger number with as many bits, within `width` bits; 0 = none (Gosper's hack). Requires: bits !=
// 0.
std::uint32_t NextCombination(std::uint32_t bits, int width) {
  CHECK(bits != 0);
  const std::uint64_t low = std::uint64_t(1) << std::countr_zero(bits);
  const std::uint64_t ripple = std::uint64_t(bits) + low;
  const std::uint64_t next = (((ripple ^ bits) >> 2) / low) | ripple;
  return next >> width != 0 ? 0 : std::uint32_t(next);
}

// Bit i of `packed` chooses the i-th set bit of `of`; and back.
std::uint32_t Spread(std::uint32_t packed, std::uint32_t of) {
  std::uint32_t out = 0;
  for (; of != 0; of &= of - 1, packed >>= 1) out |= (packed & 1U) != 0 ? of & -of : 0;
  return out;
}
std::uint32_t Pack(std::uint32_t chosen, std::uint32_t of) {
  std::uint32_t out = 0;
  for (int i = 0; of != 0; of &= of - 1, ++i) out |= (chosen & of & -of) != 0 ? 1U << i : 0;
  return out;
}

}  // namespace

Backtrack::Backtrack(ClusterState& state, const GangRequest& request, const GangClasses& classes,
                     const std::vector<PodPlacement>& hints, std::int64_t budget)
    : state_(state), request_(request), classes_(classes), hints_(hints), budget_(budget) {
  const std::size_t pods = request.pods.size(), nodes = state.fabric().nodes.size();
  keep_ = std::max<std::size_t>(16, kKeptNodes / pods);
  cut_ = !state.dense().cells_bound() && !CellsDecide(state.dense(), classes);
  places_.assign(pods, {});
  for (int t = 0; t < kTierCount; ++t) {
    const auto tier = std::size_t(t);
    pinned_[tier].assign(classes.gpus[tier].size(), kNone);
    members_[tier].assign(classes.gpus[tier].size(), 0);
    gpus_left_[tier].assign(classes.gpus[tier].begin(), classes.gpus[tier].end());
  }
  pods_on_node_.assign(nodes, 0);
  pods_in_unit_.assign(std::size_t(state.dense().cells(Tier::kUnit)), 0);
  for (const auto& list : request.allowed_nodes) {
    auto& bits = allowed_.emplace_back(nodes, 0);
    for (NodeId n : list) {
      if (n >= 0 && std::size_t(n) < nodes) bits[std::size_t(n)] = 1;
    }
  }
}

bool Backtrack::Allowed(std::int32_t pod, NodeId node) const {
  const auto& list = request_.pods[std::size_t(pod)].allowed;
  return !list || allowed_[*list][std::size_t(node)] != 0;
}

Backtrack::Outcome Backtrack::Run(const Visit& visit, bool every_set) {
  every_set_ = every_set || classes_.judged_by_gpu;
  const auto mark = state_.Mark();
  Outcome outcome = Outcome::kImpossible;
  bool found = false;
  if (!PlaceFixed()) {
    if (pod_in_conflict_ < 0) outcome = Outcome::kGaveUp;
  } else {
    outcome = Search([&](const std::vector<PodPlacement>& places) {
      found = true;
      return visit(places);
    });
  }
  saw_all_ = outcome == Outcome::kImpossible;
  if (found) outcome = Outcome::kFound;
  state_.Rollback(mark);
  return outcome;
}

// Bound pods with known GPUs stand before anything is searched. Their GPUs may be counted as taken already. False and
// nobody in conflict: cells say nothing of whether they keep the requirements.
bool Backtrack::PlaceFixed() {
  for (std::size_t p = 0; p < request_.pods.size(); ++p) {
    const PodRequest& pod = request_.pods[p];
    const bool stands = pod.fixed_node && (pod.fixed_gpus || pod.gpus == 0);
    if (!stands) continue;
    const PodPlacement place{*pod.fixed_node, pod.fixed_gpus.value_or(0)};
    const bool pairs = PairsHold(std::int32_t(p), place);
    if (!pairs || !Pin(std::int32_t(p), place.node)) {
      if (!pairs || !cut_) pod_in_conflict_ = int(p);
      return false;
    }
    places_[p] = place;
    const std::uint32_t free = state_.node(place.node).free_gpus & place.gpus;
    if (free != 0) state_.Take(place.node, free, {});
    ++pods_on_node_[std::size_t(place.node)];
    ++pods_in_unit_[std::size_t(state_.dense().cell(Tier::kUnit, place.node))];
  }
  return true;
}

void Backtrack::OrderPods() {
  order_.clear();
  const std::vector<FillOrder> orders = FillOrders(request_, classes_);
  for (std::int32_t pod : orders.front().pods) {
    if (places_[std::size_t(pod)].node == kNone) order_.push_back(pod);
  }
  if (largest_first_) {
    const auto larger = [this](std::int32_t a, std::int32_t b) {
      for (int t = int(Tier::kRoot) - 1; t >= 0; --t) {
        const auto& of_pod = classes_.of_pod[std::size_t(t)];
        const std::int32_t one = of_pod[std::size_t(a)], other = of_pod[std::size_t(b)];
        if (one == other) continue;
        const auto& gpus = classes_.gpus[std::size_t(t)];
        const int difference = gpus[std::size_t(one)] - gpus[std::size_t(other)];
        return difference != 0 ? difference > 0 : one < other;
      }
      return false;
    };
    std::stable_sort(order_.begin(), order_.end(), larger);
  }
  for (std::size_t p = 0; p < request_.pods.size(); ++p) {
    if (request_.pods[p].gpus == 0 && places_[p].node == kNone) order_.push_back(std::int32_t(p));
  }
}

Backtrack::Outcome Backtrack::Search(const Visit& visit) {
  OrderPods();
  frames_.assign(order_.size(), {});
  gpus_unplaced_ = 0;
  for (std::int32_t pod : order_) gpus_unplaced_ += request_.pods[std::size_t(pod)].gpus;
  std::size_t depth = 0;
  bool fresh = true;
  while (true) {
    if (depth == order_.size()) {
      if (!FirstBroken(state_.dense(), request_, classes_, places_) && visit(places_)) return Outcome::kFound;
      if (depth == 0) return Outcome::kImpossible;  // all were bound already
      --depth;
      fresh = false;
    }
    Frame& frame = frames_[depth];
    if (fresh) {
      frame = {};
      frame.pod = order_[depth];
      ListNodes(frame);
    } else {
      Unplace(frame);
    }
    if (budget_ < 0) return Outcome::kGaveUp;
    fresh = NextPlace(frame);
    if (fresh) {
      ++depth;
    } else if (depth-- == 0) {
      return cut_ ? Outcome::kGaveUp : Outcome::kImpossible;
    }
  }
}

void Backtrack::ListNodes(Frame& frame) {
  const DenseFabric& dense = state_.dense();
  const PodRequest& pod = request_.pods[std::size_t(frame.pod)];
  std::int32_t first = 0, last = dense.cells(Tier::kNode);
  for (int t = 0; t < int(Tier::kRoot); ++t) {
    std::int32_t cell =
        pinned_[std::size_t(t)][std::size_t(classes_.of_pod[std::size_t(t)][std::size_t(frame.pod)])];
    if (cell == kNone) continue;
    first = cell;
    last = cell + 1;
    for (int down = t; down > 0; --down) {
      first = dense.children(Tier(down), first).first;
      last = dense.children(Tier(down), last - 1).second;
    }
    break;
  }
  const NodeId hint = hints_.empty() ? kNone : hints_[std::size_t(frame.pod)].node;
  const std::int32_t home = hint == kNone ? kNone : dense.cell(Tier::kUnit, hint);
  struct Ranked {
    bool far, unused_node, scatters, odd;
    std::int32_t fewest_peers, left, cell;
    auto key() const { return std::tie(far, unused_node, scatters, fewest_peers, odd, left, cell); }
  };
  std::vector<Ranked> ranked;
  for (std::int32_t cell = first; cell < last; ++cell) {
    --budget_;
    const NodeId node = dense.node_at(cell);
    if (pod.fixed_node ? *pod.fixed_node != node : !CanHold(frame.pod, node)) continue;
    const std::int32_t unit = dense.cell(Tier::kUnit, node);
    const std::uint32_t sound = state_.node(node).free_gpus & ~dense.odd_gpus(node);
    const topology::DomainId domain = state_.fabric().nodes[std::size_t(node)].domain;
    const int together = domain == kNone ? state_.free_gpus(node) : state_.free_gpus_in_domain(domain);
    ranked.push_back({home != kNone && unit != home, pods_on_node_[std::size_t(node)] == 0,
                      together < gpus_unplaced_, std::popcount(sound) < pod.gpus,
                      -pods_in_unit_[std::size_t(unit)], state_.free_gpus(node) - pod.gpus, cell});
  }
  const auto worse = [](const Ranked& a, const Ranked& b) { return b.key() < a.key(); };
  std::sort(ranked.begin(), ranked.end(), worse);
  if (ranked.size() > keep_) {
    ranked.erase(ranked.begin(), ranked.end() - std::ptrdiff_t(keep_));
    cut_ = true;
  }
  for (const Ranked& r : ranked) frame.nodes.push_back(dense.node_at(r.cell));
}

bool Backtrack::CanHold(std::int32_t pod, NodeId node) const {
  const PodRequest& wanted = request_.pods[std::size_t(pod)];
  if (!state_.node(node).unusable.empty() || state_.free_gpus(node) < wanted.gpus || !Allowed(pod, node))
    return false;
  const DenseFabric& dense = state_.dense();
  const auto& where = state_.fabric().nodes[std::size_t(node)];
  const auto left = [&](Tier tier) {
    return gpus_left_[std::size_t(tier)][std::size_t(classes_.of_pod[std::size_t(tier)][std::size_t(pod)])];
  };
  if (state_.free_gpus(node) < left(Tier::kNode)) return false;
  if (where.domain != kNone) {
    if (state_.free_gpus_in_domain(where.domain) < left(Tier::kDomain)) return false;
  } else if (wanted.gpus > 0 &&
             (classes_
                  .needs_nvlink[std::size_t(classes_.of_pod[std::size_t(Tier::kDomain)][std::size_t(pod)])] ||
              state_.free_gpus(node) < left(Tier::kDomain))) {
    return false;
  }
  if (where.unit != kNone && dense.nested() && state_.free_gpus_in_unit(where.unit) < left(Tier::kUnit))
    return false;
  return state_.Fits(node, wanted.resources);
}

bool Backtrack::NextPlace(Frame& frame) {
  while (!frame.nodes.empty()) {
    const NodeId node = frame.nodes.back();
    if (frame.gpus == 0 && LikeOneTried(frame, node)) {
      frame.nodes.pop_back();
      continue;
    }
    std::uint32_t gpus = frame.gpus;
    const bool first = !frame.placed && gpus == 0;
    if ((request_.pods[std::size_t(frame.pod)].gpus > 0 || first) && NextGpus(frame, node, gpus)) {
      frame.gpus = gpus;
      --budget_;
      if (budget_ < 0) return false;
      if (PairsHold(frame.pod, {node, gpus}) && Pin(frame.pod, node)) {
        Place(frame, node, gpus);
        return true;
      }
      if (request_.pods[std::size_t(frame.pod)].gpus > 0) continue;
    }
    if (pods_on_node_[std::size_t(node)] == 0) frame.tried.push_back(node);
    frame.nodes.pop_back();
    frame.gpus = 0;
    frame.placed = false;
  }
  return false;
}

// Free GPUs of one node are alike unless leaves or spines are required: then every set is tried.
bool Backtrack::NextGpus(const Frame& frame, NodeId node, std::uint32_t& gpus) const {
  const int wanted = request_.pods[std::size_t(frame.pod)].gpus;
  if (wanted == 0) return true;
  const std::uint32_t free = state_.node(node).free_gpus & AllGpus(state_.dense().gpus(node));
  if (std::popcount(free) < wanted) return false;
  if (every_set_) {
    const std::uint32_t next =
        gpus == 0 ? AllGpus(wanted) : NextCombination(Pack(gpus, free), std::popcount(free));
    gpus = next == 0 ? 0 : Spread(next, free);
    return next != 0;
  }
  if (gpus != 0) return false;
  const std::uint32_t hint = hints_.empty() ? 0 : hints_[std::size_t(frame.pod)].gpus;
  gpus = hint != 0 && (hint & free) == hint && std::popcount(hint) == wanted
             ? hint
             : SlotsOf(free, state_.dense().odd_gpus(node), wanted, 1, false).front();
  return true;
}

// Two untouched servers with equal leaves, rates inside and out, and room are one choice.
bool Backtrack::LikeOneTried(const Frame& frame, NodeId node) const {
  if (request_.pods[std::size_t(frame.pod)].fixed_node || pods_on_node_[std::size_t(node)] != 0) return false;
  const auto& nodes = state_.fabric().nodes;
  const auto alone = [&](NodeId n) {
    const auto domain = nodes[std::size_t(n)].domain;
    return domain == kNone || state_.fabric().domains[std::size_t(domain)].nodes.size() == 1;
  };
  if (!alone(node)) return false;
  return std::any_of(frame.tried.begin(), frame.tried.end(), [&](NodeId other) {
    const auto& a = nodes[std::size_t(node)];
    const auto& b = nodes[std::size_t(other)];
    if (!alone(other) || a.unit != b.unit || a.unit == kNone || a.node.site != b.node.site) return false;
    if ((a.domain == kNone) != (b.domain == kNone) || !state_.dense().Alike(node, other)) return false;
    if (!(state_.node(node) == state_.node(other))) return false;
    for (const auto& bits : allowed_) {
      if (bits[std::size_t(node)] != bits[std::size_t(other)]) return false;
    }
    return std::none_of(request_.pods.begin(), request_.pods.end(), [&](const PodRequest& pod) {
      return pod.fixed_node && (*pod.fixed_node == node || *pod.fixed_node == other);
    });
  });
}

// Every rank of the pod against the first placed rank of each of its groups: necessary, and cheap.
bool Backtrack::PairsHold(std::int32_t pod, const PodPlacement& place) const {
  if (!classes_.judged_by_gpu) return true;
  const DenseFabric& dense = state_.dense();
  const auto& nodes = state_.fabric().nodes;
  std::uint32_t left = place.gpus;
  std::vector<GpuPort> own;
  for (; left != 0; left &= left - 1) own.push_back(dense.port(place.node, std::countr_zero(left)));
  const auto port_of = [&](std::int64_t rank, GpuPort& port) {
    const std::int32_t owner = classes_.pod_of_rank[std::size_t(rank)];
    const std::int32_t index = std::int32_t(rank) - classes_.first_rank[std::size_t(owner)];
    if (owner == pod) {
      port = own[std::size_t(index)];
      return true;
    }
    const PodPlacement& there = places_[std::size_t(owner)];
    if (there.node == kNone) return false;
    std::uint32_t gpus = there.gpus;
    for (int i = 0; i < index; ++i) gpus &= gpus - 1;
    port = dense.port(there.node, std::countr_zero(gpus));
    return true;
  };
  for (const Requirement& requirement : classes_.require) {
    if (requirement.level != Level::kLeaf && requirement.level != Level::kSpine) continue;
    const auto [stride, size] = StrideOf(request_.parallelism, requirement.axis);
    for (std::int32_t i = 0; i < std::int32_t(own.size()); ++i) {
      const std::int64_t rank = classes_.first_rank[std::size_t(pod)] + i;
      const std::int64_t head = rank / (stride * size) * stride * size + rank % stride;
      for (std::int64_t other = head; other < head + stride * size; other += stride) {
        GpuPort port;
        if (other == rank || !port_of(other, port)) continue;
        const GpuPort& mine = own[std::size_t(i)];
        const auto& a = nodes[std::size_t(mine.node)];
        const auto& b = nodes[std::size_t(port.node)];
        if (mine.node == port.node || (mine.domain != kNone && mine.domain == port.domain)) break;
        if (mine.leaf != kNone && mine.leaf == port.leaf) break;
        if (requirement.level == Level::kLeaf) return false;
        const std::array<topology::LeafId, 2> leaves{mine.leaf, port.leaf};
        if ((a.unit == kNone || a.unit != b.unit) && !dense.OneSpineOver(leaves)) return false;
        break;
      }
    }
  }
  return true;
}

bool Backtrack::Pin(std::int32_t pod, NodeId node) {
  for (int t = 0; t < int(Tier::kRoot); ++t) {
    const auto tier = std::size_t(t);
    const auto c = std::size_t(classes_.of_pod[tier][std::size_t(pod)]);
    if (pinned_[tier][c] != kNone && pinned_[tier][c] != state_.dense().cell(Tier(t), node)) return false;
  }
  for (int t = 0; t < int(Tier::kRoot); ++t) {
    const auto tier = std::size_t(t);
    const auto c = std::size_t(classes_.of_pod[tier][std::size_t(pod)]);
    pinned_[tier][c] = state_.dense().cell(Tier(t), node);
    ++members_[tier][c];
    gpus_left_[tier][c] -= request_.pods[std::size_t(pod)].gpus;
  }
  return true;
}

void Backtrack::Unpin(std::int32_t pod) {
  for (int t = 0; t < int(Tier::kRoot); ++t) {
    const auto tier = std::size_t(t);
    const auto c = std::size_t(classes_.of_pod[tier][std::size_t(pod)]);
    if (--members_[tier][c] == 0) pinned_[tier][c] = kNone;
    gpus_left_[tier][c] += request_.pods[std::size_t(pod)].gpus;
  }
}

void Backtrack::Place(Frame& frame, NodeId node, std::uint32_t gpus) {
  frame.mark = state_.Mark();
  frame.placed = true;
  gpus_unplaced_ -= request_.pods[std::size_t(frame.pod)].gpus;
  places_[std::size_t(frame.pod)] = {node, gpus};
  const PodRequest& pod = request_.pods[std::size_t(frame.pod)];
  state_.Take(node, gpus,
              pod.fixed_node ? Resources{} : pod.resources);  // a bound pod's room is counted already
  ++pods_on_node_[std::size_t(node)];
  ++pods_in_unit_[std::size_t(state_.dense().cell(Tier::kUnit, node))];
}

void Backtrack::Unplace(Frame& frame) {
  if (!frame.placed) return;
  const NodeId node = places_[std::size_t(frame.pod)].node;
  state_.Rollback(frame.mark);
  gpus_unplaced_ += request_.pods[std::size_t(frame.pod)].gpus;
  Unpin(frame.pod);
  places_[std::size_t(frame.pod)] = {};
  --pods_on_node_[std::size_t(node)];
  --pods_in_unit_[std::size_t(state_.dense().cell(Tier::kUnit, node))];
}

}  // namespace heddle::placement
