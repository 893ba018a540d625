#include "placement/nearby.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "placement/content.h"
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
};

bool operator<(const Rank& a, const Rank& b) {
  const auto fields = [](const Rank& rank) {
    return std::tie(rank.unit_pod, rank.unit_content, rank.domain_pod, rank.domain_content, rank.content,
                    rank.cell);
  };
  return fields(a) < fields(b);
}

// The nodes of the lowest keys of all that were offered.
template <class Key>
class First {
 public:
  explicit First(std::size_t count) : count_(count) {}
  void Offer(const Key& key, NodeId node) {
    if (kept_.size() == count_) {
      if (count_ == 0 || !(key < kept_.front().first)) return;
      std::pop_heap(kept_.begin(), kept_.end());
      kept_.pop_back();
    }
    kept_.emplace_back(key, node);
    std::push_heap(kept_.begin(), kept_.end());
  }
  std::vector<std::pair<Key, NodeId>> Sorted() && {
    std::sort_heap(kept_.begin(), kept_.end());
    return std::move(kept_);
  }

 private:
  std::size_t count_;
  std::vector<std::pair<Key, NodeId>> kept_;  // a heap, the highest first
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
      nodes_[n].content = ContentOf(dense_, NodeId(n), open);
      for (CellFacts* facts : {&nodes_[n], &Domain(NodeId(n)), &Unit(NodeId(n))}) {
        facts->room += std::popcount(open);
        if (facts != &nodes_[n]) facts->content += nodes_[n].content;
      }
    }
  }

  std::vector<NodeId> List(std::size_t most) {
    std::vector<NodeId> out = used_;
    if (out.size() >= most) return out;
    First<Rank> near(most - out.size());
    First<std::pair<std::int32_t, Rank>> roomy(most - out.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].first_pod != kNoPod || nodes_[n].room == 0) continue;
      const Rank rank = RankOf(NodeId(n));
      near.Offer(rank, NodeId(n));
      roomy.Offer(std::pair(-Domain(NodeId(n)).room, rank), NodeId(n));
    }
    const auto nearest = std::move(near).Sorted();
    const auto roomiest = std::move(roomy).Sorted();
    const std::size_t count = nearest.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const NodeId node : {nearest[i].second, roomiest[i].second}) {
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
