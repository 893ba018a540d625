#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "placement/explanation.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

constexpr std::size_t kMostSubstitutes =
    7;  // with the planned node, eight OR-terms on the pod (design section 5)

class SubstituteLists {
 public:
  SubstituteLists(ClusterState& state, const GangRequest& request, const GangClasses& classes,
                  const std::vector<PodPlacement>& pods)
      : state_(state),
        request_(request),
        classes_(classes),
        racks_(state.dense().domains_span_nodes()),
        used_(state.fabric().nodes.size(), 0) {
    for (const PodPlacement& pod : pods) used_[std::size_t(pod.node)] = 1;
    if (!classes.uniform) return;
    // Shape 0 is that of the pods with GPUs.
    const auto first = std::find_if(request.pods.begin(), request.pods.end(),
                                    [](const PodRequest& pod) { return pod.gpus > 0; });
    shapes_.push_back(std::size_t(first - request.pods.begin()));
    usual_tier_ = TierFor(shapes_.front());
  }

  // Where the pod may go without any other pod moving: inside the cell that its class must share.
  std::int32_t For(std::size_t pod, const PodPlacement& place) {
    const std::size_t shape = ShapeOf(pod);
    const Tier tier = classes_.uniform && request_.pods[pod].gpus > 0 ? usual_tier_ : TierFor(pod);
    // Inside a domain over nodes the pod's own rack comes first, so racks have lists of their own.
    const std::int32_t rack = racks_ ? RackOf(place.node) : kNone;
    // Where GPUs are alike it does not matter which of them are free.
    const std::uint32_t gpus = state_.dense().gpus_differ() ? place.gpus : 0;
    // Where leaves are judged a node whose cables are swapped has a list of its own.
    const std::int32_t ports = classes_.judged_by_gpu ? state_.dense().pattern(place.node) : 0;
    const Key key{tier, state_.dense().cell(tier, place.node), rack, ports, gpus, shape};
    if (!usual_ || (usual_->tier == tier && usual_->rack == rack && usual_->ports == ports &&
                    usual_->gpus == gpus && usual_->shape == shape)) {
      if (!usual_) {
        usual_ = key;
        of_cell_.assign(std::size_t(state_.dense().cells(tier)), kNone);
      }
      std::int32_t& list = of_cell_[std::size_t(key.cell)];
      if (list == kNone) list = Add(pod, place, tier);
      return list;
    }
    const auto known = lists_.find(key);
    if (known != lists_.end()) return known->second;
    return lists_.emplace(key, Add(pod, place, tier)).first->second;
  }
  std::vector<std::vector<NodeId>> sets() && { return std::move(sets_); }

 private:
  struct Key {
    Tier tier;
    std::int32_t cell, rack, ports;
    std::uint32_t gpus;
    std::size_t shape;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.tier, a.cell, a.rack, a.ports, a.gpus, a.shape) <
             std::tie(b.tier, b.cell, b.rack, b.ports, b.gpus, b.shape);
    }
  };

  std::int32_t Add(std::size_t pod, const PodPlacement& place, Tier tier) {
    sets_.push_back(List(pod, place, tier));
    return std::int32_t(sets_.size()) - 1;
  }

  Tier TierFor(std::size_t pod) const {
    for (std::size_t t = 0; t < std::size_t(Tier::kUnit); ++t) {
      if (classes_.pods[t][std::size_t(classes_.of_pod[t][pod])] > 1) return Tier(t);
    }
    return Tier::kUnit;
  }

  std::int32_t RackOf(NodeId node) const {
    const DenseFabric& dense = state_.dense();
    const std::int32_t rack = dense.cell(Tier::kDomain, node);
    const auto [first, last] = dense.children(Tier::kDomain, rack);
    return last - first > 1 ? rack : kNone;
  }

  // Pods that ask for the same share a list. Few shapes: a linear look is enough.
  std::size_t ShapeOf(std::size_t pod) {
    if (classes_.uniform && request_.pods[pod].gpus > 0) return 0;
    const PodRequest& wanted = request_.pods[pod];
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      if (request_.pods[shapes_[s]].gpus == wanted.gpus &&
          request_.pods[shapes_[s]].allowed == wanted.allowed &&
          request_.pods[shapes_[s]].resources == wanted.resources) {
        return s;
      }
    }
    shapes_.push_back(pod);
    return shapes_.size() - 1;
  }

  std::vector<NodeId> List(std::size_t pod, const PodPlacement& place, Tier tier) {
    const DenseFabric& dense = state_.dense();
    const PodRequest& wanted = request_.pods[pod];
    std::int32_t first = dense.cell(tier, place.node), last = first + 1;
    for (int t = int(tier); t > 0; --t) {
      first = dense.children(Tier(t), first).first;
      last = dense.children(Tier(t), last - 1).second;
    }
    // Same domain, then the same GPUs free, then sound ones, then the tightest; names last.
    std::vector<std::uint64_t>& ranked = ranked_;
    ranked.clear();
    for (std::int32_t cell = first; cell < last; ++cell) {
      const NodeId node = dense.node_at(cell);
      if (used_[std::size_t(node)] || !MayTake(wanted, node)) continue;
      const std::uint32_t free = state_.open_gpus(node);
      const bool same = !dense.gpus_differ() || (free & place.gpus) == place.gpus;
      if (classes_.judged_by_gpu && !(same && OnTheSameLeaves(place, node))) continue;
      if (!HoldsNvlink(pod, node)) continue;
      const bool elsewhere =
          !racks_ || dense.cell(Tier::kDomain, node) != dense.cell(Tier::kDomain, place.node);
      const bool odd = (dense.odd_gpus(node) & place.gpus) != 0;
      ranked.push_back(std::uint64_t(elsewhere) << 63 | std::uint64_t(!same) << 62 |
                       std::uint64_t(odd) << 61 | std::uint64_t(std::popcount(free)) << 32 |
                       std::uint32_t(cell));
    }
    const std::size_t keep = std::min(ranked.size(), kMostSubstitutes);
    std::partial_sort(ranked.begin(), ranked.begin() + std::ptrdiff_t(keep), ranked.end());
    std::vector<NodeId> out;
    out.reserve(keep);
    for (std::size_t i = 0; i < keep; ++i)
      out.push_back(dense.node_at(std::int32_t(std::uint32_t(ranked[i]))));
    return out;
  }

  // A leaf or spine that is required held for the pod's own leaves, and a swapped cable ends on another one. Requires:
  // the node has the pod's GPUs, or its GPUs do not differ.
  bool OnTheSameLeaves(const PodPlacement& place, NodeId node) const {
    const DenseFabric& dense = state_.dense();
    for (std::uint32_t left = place.gpus; left != 0; left &= left - 1) {
      const int gpu = std::countr_zero(left);
      const int there = std::min(gpu, dense.gpus(node) - 1);
      if (dense.port(place.node, gpu).leaf != dense.port(node, there).leaf) return false;
    }
    return true;
  }

  bool HoldsNvlink(std::size_t pod, NodeId node) const {
    return state_.dense().domain(node) != kNone ||
           !classes_.needs_nvlink[std::size_t(classes_.of_pod[std::size_t(Tier::kDomain)][pod])];
  }

  bool MayTake(const PodRequest& wanted, NodeId node) const {
    if (!state_.usable(node) || state_.free_gpus(node) < wanted.gpus) return false;
    if (wanted.allowed) {
      const auto& nodes = request_.allowed_nodes[*wanted.allowed];
      if (!std::binary_search(nodes.begin(), nodes.end(), node)) return false;
    }
    return state_.Fits(node, wanted.resources);
  }

  ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  const bool racks_;  // some NVLink domain spans nodes
  std::vector<char> used_;
  Tier usual_tier_ = Tier::kUnit;      // of a uniform gang's pods with GPUs
  std::vector<std::size_t> shapes_;    // a pod of each
  std::vector<std::uint64_t> ranked_;  // of List
  std::map<Key, std::int32_t> lists_;  // index into sets_
  // Most pods of a gang differ in nothing but the cell; those are not looked up by key.
  std::optional<Key> usual_;
  std::vector<std::int32_t> of_cell_;  // kNone = not yet
  std::vector<std::vector<NodeId>> sets_;
};

}  // namespace

Substitutes FindSubstitutes(ClusterState& state, const GangRequest& request, const GangClasses& classes,
                            const std::vector<PodPlacement>& pods) {
  SubstituteLists lists(state, request, classes, pods);
  Substitutes out;
  out.of_pod.assign(pods.size(), kNone);
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!request.pods[p].fixed_node) out.of_pod[p] = lists.For(p, pods[p]);
  }
  out.sets = std::move(lists).sets();
  return out;
}

}  // namespace heddle::placement
