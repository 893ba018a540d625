#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "bench/peers/peers.h"
#include "placement/dense.h"

namespace heddle::peers {
namespace {

using placement::ClusterState;
using placement::DenseFabric;
using placement::GangRequest;
using placement::PodPlacement;
using placement::PodRequest;
using placement::Tier;
using topology::NodeId;

struct Domain {
  std::int32_t cell;
  int slices;  // that it holds, then that it is given; below the slices' level pods
};

class RackPacking {
 public:
  RackPacking(const ClusterState& state, const GangRequest& request, int slice)
      : state_(state), pod_(request.pods.front()), pods_(request.pods.size()), slice_(slice) {
    const auto& domains = state.fabric().domains;
    const bool over_nodes = std::any_of(domains.begin(), domains.end(),
                                        [](const topology::NvlinkDomain& d) { return d.spans_nodes; });
    levels_ = {Tier::kSpine, Tier::kUnit};
    if (over_nodes) levels_.push_back(Tier::kDomain);
    levels_.push_back(Tier::kNode);
    int largest = 0;
    for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
      largest = std::max(largest, state.dense().gpus(NodeId(n)));
    }
    if (over_nodes && pod_.gpus * slice > largest) slice_tier_ = Tier::kDomain;
  }

  Assignment Place() {
    Count();
    const int slices = int(pods_) / slice_;
    std::size_t level =
        std::size_t(std::find(levels_.begin(), levels_.end(), slice_tier_) - levels_.begin()) + 1;
    std::vector<Domain> chosen;
    while (chosen.empty() && level-- > 0) {
      std::vector<Domain> domains = All(levels_[level]);
      if (domains.empty()) return std::nullopt;
      if (domains.front().slices >= slices || level == 0) chosen = Fewest(domains, slices);
      if (level == 0) break;
    }
    if (chosen.empty()) return std::nullopt;
    for (; levels_[level] > slice_tier_; ++level) {
      std::vector<Domain> below;
      for (const Domain& domain : chosen) {
        AddBelow(levels_[level], domain.cell, levels_[level + 1], below);
      }
      Sort(below);
      chosen = Fewest(below, slices);
      CHECK(!chosen.empty());
    }
    return GiveNodes(slice_tier_ == Tier::kNode ? chosen : NodesBelow(chosen));
  }

 private:
  // Phase 1: how many slices each node holds, summed up the tree.
  void Count() {
    const DenseFabric& dense = state_.dense();
    for (int t = 0; t < placement::kTierCount; ++t) {
      held_[std::size_t(t)].assign(std::size_t(dense.cells(Tier(t))), 0);
    }
    for (std::int32_t cell = 0; cell < dense.cells(Tier::kNode); ++cell) {
      const NodeId node = dense.node_at(cell);
      const int pods = PodsOn(state_, node, pod_);
      held_[0][std::size_t(cell)] = slice_tier_ == Tier::kNode ? pods / slice_ : pods;
    }
    for (int t = 1; t < placement::kTierCount; ++t) {
      for (std::int32_t cell = 0; cell < dense.cells(Tier(t)); ++cell) {
        const auto [first, last] = dense.children(Tier(t), cell);
        int& held = held_[std::size_t(t)][std::size_t(cell)];
        for (std::int32_t child = first; child < last; ++child) held += Held(Tier(t - 1), child);
        if (Tier(t) == slice_tier_) held /= slice_;
      }
    }
  }

  // Below the level of the slices each domain's own nodes take what the domain was given.
  std::vector<Domain> NodesBelow(const std::vector<Domain>& domains) const {
    std::vector<Domain> nodes;
    for (const Domain& domain : domains) {
      std::vector<Domain> below;
      AddBelow(slice_tier_, domain.cell, Tier::kNode, below);
      Sort(below);
      const std::vector<Domain> chosen = Fewest(below, domain.slices * slice_);
      CHECK(!chosen.empty());
      nodes.insert(nodes.end(), chosen.begin(), chosen.end());
    }
    return nodes;
  }

  int Held(Tier tier, std::int32_t cell) const { return held_[std::size_t(tier)][std::size_t(cell)]; }

  // Most free first, then by name: cells are numbered so that names ascend.
  static void Sort(std::vector<Domain>& domains) {
    std::sort(domains.begin(), domains.end(), [](const Domain& a, const Domain& b) {
      return std::tie(b.slices, a.cell) < std::tie(a.slices, b.cell);
    });
  }

  std::vector<Domain> All(Tier tier) const {
    std::vector<Domain> domains;
    for (std::int32_t cell = 0; cell < state_.dense().cells(tier); ++cell) {
      if (const int held = Held(tier, cell); held > 0) domains.push_back({cell, held});
    }
    Sort(domains);
    return domains;
  }

  void AddBelow(Tier tier, std::int32_t cell, Tier until, std::vector<Domain>& out) const {
    if (tier == until) {
      if (const int held = Held(tier, cell); held > 0) out.push_back({cell, held});
      return;
    }
    const auto [first, last] = state_.dense().children(tier, cell);
    for (std::int32_t child = first; child < last; ++child) {
      AddBelow(Tier(int(tier) - 1), child, until, out);
    }
  }

  // Phase 2: from the front until the rest fits one domain, and that the tightest. Empty = they hold less.
  static std::vector<Domain> Fewest(const std::vector<Domain>& sorted, int slices) {
    std::vector<Domain> out;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i].slices < slices) {
        out.push_back(sorted[i]);
        slices -= sorted[i].slices;
        continue;
      }
      std::size_t best = i;
      for (std::size_t j = i + 1; j < sorted.size() && sorted[j].slices >= slices; ++j) {
        if (sorted[j].slices < sorted[best].slices) best = j;
      }
      out.push_back({sorted[best].cell, slices});
      return out;
    }
    return {};
  }

  std::vector<PodPlacement> GiveNodes(std::vector<Domain> nodes) const {
    std::sort(nodes.begin(), nodes.end(), [](const Domain& a, const Domain& b) { return a.cell < b.cell; });
    std::vector<PodPlacement> out;
    out.reserve(pods_);
    for (const Domain& domain : nodes) {
      const NodeId node = state_.dense().node_at(domain.cell);
      std::uint32_t free = state_.node(node).free_gpus;
      for (int left = domain.slices * (slice_tier_ == Tier::kNode ? slice_ : 1); left > 0; --left) {
        std::uint32_t gpus = 0;
        for (int i = 0; i < pod_.gpus; ++i, free &= free - 1) gpus |= free & -free;
        out.push_back({node, gpus});
      }
    }
    CHECK(out.size() == pods_);
    return out;
  }

  const ClusterState& state_;
  const PodRequest& pod_;
  const std::size_t pods_;
  const int slice_;
  std::vector<Tier> levels_;  // top first
  Tier slice_tier_ = Tier::kNode;
  std::array<std::vector<int>, placement::kTierCount> held_;
};

}  // namespace

Assignment PackRacks(const ClusterState& state, const GangRequest& request, int slice) {
  CHECK(slice > 0 && request.pods.size() % std::size_t(slice) == 0);
  return RackPacking(state, request, slice).Place();
}

}  // namespace heddle::peers
