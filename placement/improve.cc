#include "placement/improve.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "placement/embedding.h"
#include "placement/nearby.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

class Climber {
 public:
  Climber(const ClusterState& state, const GangRequest& request, const GangClasses& classes, Pricing& pricing,
          int trials, std::vector<PodPlacement>& pods, Quality& quality)
      : state_(state),
        request_(request),
        classes_(classes),
        pricing_(pricing),
        trials_(trials),
        pods_(pods),
        quality_(quality),
        launchers_(classes.gpu_pods < int(request.pods.size())),
        largest_(Largest(request.pods)),
        used_(state.fabric().nodes.size(), 0),
        count_(used_.size(), 0) {
    for (const PodPlacement& pod : pods_) {
      if (pod.node == kNone) continue;  // a pod without GPUs, placed later
      used_[std::size_t(pod.node)] |= pod.gpus;
      ++count_[std::size_t(pod.node)];
    }
    for (std::size_t list = 0; list < request.allowed_nodes.size(); ++list) {
      auto& bits = allowed_.emplace_back(used_.size(), 0);
      for (NodeId n : request.allowed_nodes[list]) {
        if (n >= 0 && std::size_t(n) < bits.size()) bits[std::size_t(n)] = 1;
      }
    }
    constexpr std::size_t kOthers = 12;
    const auto used =
        std::size_t(std::count_if(count_.begin(), count_.end(), [](int there) { return there > 0; }));
    targets_ = NodesNear(state, pods_, used + kOthers);
  }

  void Climb() {
    bool better = true;
    while (better && trials_ > 0) better = ExchangeNodes() || ExchangePods() || MovePods();
  }

 private:
  bool Movable(std::size_t pod) const {
    return !request_.pods[pod].fixed_node && request_.pods[pod].gpus > 0;
  }
  bool Allowed(std::size_t pod, NodeId node) const {
    const auto& list = request_.pods[pod].allowed;
    return !list || allowed_[*list][std::size_t(node)] != 0;
  }
  // Room for `pods` pods of the gang, each taken for the largest: unlike pods move less, and never to where
  // they lack room.
  bool Room(NodeId node, int pods) const {
    return state_.node(node).unusable.empty() && state_.Copies(node, largest_, pods) >= pods;
  }
  static Resources Largest(const std::vector<PodRequest>& pods) {
    Resources out;
    std::map<std::string, std::int64_t> extended;
    for (const PodRequest& pod : pods) {
      out.milli_cpu = std::max(out.milli_cpu, pod.resources.milli_cpu);
      out.memory_bytes = std::max(out.memory_bytes, pod.resources.memory_bytes);
      for (const auto& [name, amount] : pod.resources.extended)
        extended[name] = std::max(extended[name], amount);
    }
    out.extended.assign(extended.begin(), extended.end());
    return out;
  }
  std::uint32_t Free(NodeId node) const { return state_.node(node).free_gpus; }

  // Keeps pods_ as they are now if that is better; the caller undoes otherwise.
  bool Keep() {
    --trials_;
    const Quality tried = pricing_.Price(pods_, quality_.step_micros);
    if (!Better(tried, quality_)) return false;
    if (FirstBroken(state_.dense(), request_, classes_, pods_)) return false;
    if (launchers_ && !KeepsClasses(state_.dense(), classes_, pods_, cell_of_class_)) return false;
    quality_ = tried;
    return true;
  }

  bool ExchangePods() {
    for (std::size_t a = 0; a < pods_.size() && trials_ > 0; ++a) {
      if (!Movable(a)) continue;
      for (std::size_t b = a + 1; b < pods_.size() && trials_ > 0; ++b) {
        if (!Movable(b) || pods_[a] == pods_[b] || !(request_.pods[a] == request_.pods[b])) continue;
        std::swap(pods_[a], pods_[b]);
        if (Keep()) return true;
        std::swap(pods_[a], pods_[b]);
      }
    }
    return false;
  }

  bool MovePods() {
    for (std::size_t p = 0; p < pods_.size() && trials_ > 0; ++p) {
      if (!Movable(p)) continue;
      for (NodeId node : targets_) {
        if (trials_ <= 0 || !Allowed(p, node)) continue;
        const PodPlacement before = pods_[p];
        const bool stays = node == before.node;
        if (!Room(node, count_[std::size_t(node)] + (stays ? 0 : 1))) continue;
        const std::uint32_t open = Free(node) & ~(used_[std::size_t(node)] & ~(stays ? before.gpus : 0U));
        if (MoveTo(p, before, node, open)) return true;
      }
    }
    return false;
  }

  bool MoveTo(std::size_t p, PodPlacement before, NodeId node, std::uint32_t open) {
    const int size = request_.pods[p].gpus;
    if (std::popcount(open) < size) return false;
    const int count = std::popcount(open) / size;
    for (std::uint32_t slot : SlotsOf(open, state_.dense().odd_gpus(node), size, count, false)) {
      if (trials_ <= 0) return false;
      if (PodPlacement{node, slot} == before) continue;
      pods_[p] = {node, slot};
      if (Keep()) {
        used_[std::size_t(before.node)] &= ~before.gpus;
        --count_[std::size_t(before.node)];
        used_[std::size_t(node)] |= slot;
        ++count_[std::size_t(node)];
        return true;
      }
      pods_[p] = before;
    }
    return false;
  }

  bool ExchangeNodes() {
    for (std::size_t i = 0; i < targets_.size() && trials_ > 0; ++i) {
      const NodeId a = targets_[i];
      if (count_[std::size_t(a)] == 0) continue;
      for (std::size_t j = 0; j < targets_.size() && trials_ > 0; ++j) {
        const NodeId b = targets_[j];
        if (i == j || (count_[std::size_t(b)] > 0 && j < i) || !CanTrade(a, b)) continue;
        Trade(a, b);
        if (Keep()) return true;
        Trade(a, b);
      }
    }
    return false;
  }

  bool CanTrade(NodeId a, NodeId b) const {
    if ((used_[std::size_t(a)] & ~Free(b)) != 0 || (used_[std::size_t(b)] & ~Free(a)) != 0) return false;
    for (std::size_t p = 0; p < pods_.size(); ++p) {
      if (pods_[p].node != a && pods_[p].node != b) continue;
      const NodeId other = pods_[p].node == a ? b : a;
      if (!Movable(p) || !Allowed(p, other) || !Room(other, count_[std::size_t(pods_[p].node)])) return false;
    }
    return true;
  }

  void Trade(NodeId a, NodeId b) {
    for (PodPlacement& pod : pods_) {
      if (pod.node == a) {
        pod.node = b;
      } else if (pod.node == b) {
        pod.node = a;
      }
    }
    std::swap(used_[std::size_t(a)], used_[std::size_t(b)]);
    std::swap(count_[std::size_t(a)], count_[std::size_t(b)]);
  }

  const ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  Pricing& pricing_;
  int trials_;
  std::vector<PodPlacement>& pods_;
  Quality& quality_;
  const bool launchers_;  // some pods are without GPUs
  const Resources largest_;
  std::vector<std::uint32_t> used_;
  std::vector<int> count_;
  std::vector<std::vector<char>> allowed_;
  std::vector<NodeId> targets_;
  std::vector<std::int32_t> cell_of_class_;  // of KeepsClasses
};

}  // namespace

void Improve(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
             Pricing& pricing, int trials, std::vector<PodPlacement>& pods, Quality& quality) {
  if (trials <= 0) return;
  Climber(state, request, classes, pricing, trials, pods, quality).Climb();
}

int TrialsFor(std::int64_t world) {
  if (world <= 32) return 2000;
  constexpr std::int64_t kImproved = 256;  // ranks, as Anneal: beyond, so few trials find nothing
  if (world > kImproved) return 0;
  return int(std::min<std::int64_t>(100, 8192 / world));
}

}  // namespace heddle::placement
