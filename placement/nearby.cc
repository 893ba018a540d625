#include "placement/nearby.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/random.h"
#include "placement/dense.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

constexpr std::int32_t kNoPod = std::numeric_limits<std::int32_t>::max();

struct CellFacts {
  std::int32_t first_pod = kNoPod;
  std::int32_t room = 0;      // open GPUs
  std::uint64_t content = 0;  // equal for cells with equally open nodes
};

struct Rank {
  std::int32_t unit_pod;
  std::uint64_t unit_content;
  std::int32_t domain_pod;
  std::uint64_t domain_content, content;
  std::int32_t cell;
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

class Neighbourhood {
 public:
  Neighbourhood(const ClusterState& state, const std::vector<PodPlacement>& pods)
      : dense_(state.dense()),
        nodes_(std::size_t(dense_.cells(Tier::kNode))),
        domains_(std::size_t(dense_.cells(Tier::kDomain))),
        units_(std::size_t(dense_.cells(Tier::kUnit))) {
    for (std::size_t p = 0; p < pods.size(); ++p) {
      if (pods[p].node == kNone || pods[p].gpus == 0) continue;
      CellFacts& node = nodes_[std::size_t(pods[p].node)];
      if (node.first_pod == kNoPod) used_.push_back(pods[p].node);
      for (CellFacts* facts : {&node, &Domain(pods[p].node), &Unit(pods[p].node)}) {
        facts->first_pod = std::min(facts->first_pod, std::int32_t(p));
      }
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const std::uint32_t open = state.open_gpus(NodeId(n));
      const std::uint64_t seed = std::uint64_t(dense_.odd_gpus(NodeId(n))) << 32 | open;
      nodes_[n].content = base::Random(seed).Next();
      for (CellFacts* facts : {&nodes_[n], &Domain(NodeId(n)), &Unit(NodeId(n))}) {
        facts->room += std::popcount(open);
        if (facts != &nodes_[n]) facts->content += nodes_[n].content;
      }
    }
  }

  std::vector<NodeId> List(std::size_t most) {
    std::vector<NodeId> out = used_;
    if (out.size() >= most) return out;
    std::vector<std::pair<Rank, NodeId>> near;
    std::vector<std::pair<std::pair<std::int32_t, Rank>, NodeId>> roomy;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].first_pod != kNoPod || nodes_[n].room == 0) continue;
      const Rank rank = RankOf(NodeId(n));
      near.emplace_back(rank, NodeId(n));
      roomy.emplace_back(std::pair(-Domain(NodeId(n)).room, rank), NodeId(n));
    }
    const std::size_t count = std::min(most - out.size(), near.size());
    std::partial_sort(near.begin(), near.begin() + std::ptrdiff_t(count), near.end());
    std::partial_sort(roomy.begin(), roomy.begin() + std::ptrdiff_t(count), roomy.end());
    for (std::size_t i = 0; i < count; ++i) {
      for (const NodeId node : {near[i].second, roomy[i].second}) {
        if (out.size() < most && nodes_[std::size_t(node)].first_pod == kNoPod) {
          nodes_[std::size_t(node)].first_pod = 0;  // listed
          out.push_back(node);
        }
      }
    }
    return out;
  }

 private:
  CellFacts& Domain(NodeId node) { return domains_[std::size_t(dense_.cell(Tier::kDomain, node))]; }
  CellFacts& Unit(NodeId node) { return units_[std::size_t(dense_.cell(Tier::kUnit, node))]; }
  Rank RankOf(NodeId node) {
    const CellFacts &unit = Unit(node), &domain = Domain(node);
    return {unit.first_pod,
            unit.content,
            domain.first_pod,
            domain.content,
            nodes_[std::size_t(node)].content,
            dense_.cell(Tier::kNode, node)};
  }

  const DenseFabric& dense_;
  std::vector<CellFacts> nodes_, domains_, units_;  // nodes by id, the others by cell
  std::vector<NodeId> used_;
};

}  // namespace

std::vector<NodeId> NodesNear(const ClusterState& state, const std::vector<PodPlacement>& pods,
                              std::size_t most) {
  return Neighbourhood(state, pods).List(most);
}

}  // namespace heddle::placement
