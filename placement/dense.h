#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/fabric.h"

namespace heddle::placement {

// The tiers that nest: every cell of one lies whole inside one cell of the next. Of a dragonfly, a group is a
// cell of kSpine: its leaves reach each other as those under one spine do.
enum class Tier : std::uint8_t { kNode, kDomain, kUnit, kSpine, kSite, kRoot };
inline constexpr int kTierCount = 6;

// Where one GPU's traffic goes, resolved once per fabric.
struct GpuPort {
  topology::NodeId node = topology::kNone;
  topology::DomainId domain = topology::kNone;
  topology::LeafId leaf = topology::kNone;
  std::int16_t rail = topology::kNone;
  std::int32_t net_gbps = 0;     // its NIC's share; never 0: without a NIC it borrows one
  std::int32_t nvlink_gbps = 0;  // what NCCL reaches over NVLink; 0 = no NVLink
};
GpuPort PortOf(const topology::Fabric& fabric, topology::NodeId node, int gpu);

// So many GPUs of a node as bits, from the first on; 32 at most.
constexpr std::uint32_t AllGpus(int count) {
  return count >= 32 ? ~0U : (1U << count) - 1;
}

// One hop of a ring or chain between two GPUs.
struct Hop {
  std::int64_t mbps = 0;       // alone on its way, Mb/s
  std::int32_t tenths_us = 0;  // latency of one step, tenths of a microsecond
  bool network = false;        // leaves the node and its NVLink domain
  bool crosses_leaf = false;   // … and its two NICs are not known to sit on one leaf
  bool crosses_rail = false;   // … and they are on two different rails
  friend bool operator==(const Hop&, const Hop&) = default;
};

// The way between two nodes of a 3D torus, routed one dimension after the other and around the ends where
// that is shorter. All zero off a torus.
struct TorusWay {
  int links = 0;    // in all: Fabric::TorusHops
  int longest = 0;  // … along one dimension
  friend bool operator==(const TorusWay&, const TorusWay&) = default;
};

// The slow way, for a single question; DenseFabric::Between gives the same answer.
Hop HopOf(const topology::Fabric& fabric, const GpuPort& a, const GpuPort& b);

// The fabric as flat arrays, immutable, shared by every state of one topology generation.
// Cells are numbered so that the children of a cell are a range and names ascend.
class DenseFabric {
 public:
  explicit DenseFabric(const topology::Fabric& fabric);

  int cells(Tier tier) const { return int(first_child_[std::size_t(tier)].size()) - 1; }
  std::int32_t cell(Tier tier, topology::NodeId node) const {
    return cell_[std::size_t(tier)][std::size_t(node)];
  }
  // The cells of the tier below that lie in `cell`, as [first, second). Requires: tier > kNode.
  std::pair<std::int32_t, std::int32_t> children(Tier tier, std::int32_t cell) const {
    const auto& first = first_child_[std::size_t(tier)];
    return {first[std::size_t(cell)], first[std::size_t(cell) + 1]};
  }
  topology::NodeId node_at(std::int32_t node_cell) const { return node_at_[std::size_t(node_cell)]; }
  // A cell that stands for something real: an NVLink domain, a unit with leaves, a set of spines. Nodes whose
  // place nobody knows get cells of their own, which prove nothing.
  bool known(Tier tier, std::int32_t cell) const { return known_[std::size_t(tier)][std::size_t(cell)]; }
  bool all_known(Tier tier) const { return all_known_[std::size_t(tier)]; }
  // False when some NVLink domain spans scalable units, or one node of it has a unit that nobody knows: then what fits
  // into cells of units may not fit (CellsDecide).
  bool nested() const { return nested_; }
  // Whether nodes of one unit or site lie in one cell: what does not fit into cells then fits nowhere. An NVLink domain
  // that spans units takes nodes out of theirs.
  bool cells_bound() const { return cells_bound_; }
  std::string CellName(Tier tier, std::int32_t cell) const;

  const GpuPort& port(topology::NodeId node, int gpu) const {
    return ports_[std::size_t(first_port_[std::size_t(node)]) + std::size_t(gpu)];
  }
  int gpus(topology::NodeId node) const {
    return first_port_[std::size_t(node) + 1] - first_port_[std::size_t(node)];
  }
  topology::DomainId domain(topology::NodeId node) const { return facts_[std::size_t(node)].domain; }
  // Whether some NVLink domain has GPUs of two nodes.
  bool domains_span_nodes() const { return domains_span_nodes_; }
  // Equal for nodes whose ports are alike, GPU by GPU: the same leaves, rails and rates.
  std::int32_t pattern(topology::NodeId node) const { return facts_[std::size_t(node)].pattern; }
  // Equal for nodes whose ports differ in their leaves at most, and those leaves in nothing but their nodes.
  std::int32_t kind(topology::NodeId node) const { return facts_[std::size_t(node)].kind; }
  // Equal for nodes that are cabled alike among their own GPUs, wherever they lie: rails, rates, and which of
  // them share a leaf.
  std::int32_t cabling(topology::NodeId node) const { return facts_[std::size_t(node)].cabling; }
  // Whether no leaf of the one is a leaf of the other, for sure.
  bool UnderOtherLeaves(topology::NodeId a, topology::NodeId b) const {
    return leaves_in_units_ && facts_[std::size_t(a)].unit != facts_[std::size_t(b)].unit;
  }
  // Alike in everything but the links of a torus: patterns, and what joins their GPUs.
  bool Alike(topology::NodeId a, topology::NodeId b) const {
    const NodeFacts &one = facts_[std::size_t(a)], &other = facts_[std::size_t(b)];
    return one.pattern == other.pattern && one.generation == other.generation &&
           one.nvswitch == other.nvswitch;
  }
  bool is_torus() const { return !torus_.empty(); }
  // Equal for nodes whose GPUs reach each other alike, whatever they are cabled to.
  std::int32_t inside(topology::NodeId node) const { return facts_[std::size_t(node)].inside; }
  // 0 = none; of unlike GPUs of one node, of all.
  std::int16_t nvlink_generation(topology::NodeId node) const { return facts_[std::size_t(node)].generation; }
  bool has_nvswitch(topology::NodeId node) const { return facts_[std::size_t(node)].nvswitch; }
  // GPUs whose NVLink, NIC rate or leaf differ from what their unit has at that position.
  std::uint32_t odd_gpus(topology::NodeId node) const { return odd_[std::size_t(node)]; }
  bool any_odd_gpus() const { return any_odd_gpus_; }
  // Whether some node's GPUs differ in leaf, rail or rates: else it is all one which of them a pod has.
  bool gpus_differ() const { return gpus_differ_; }
  // GPUs of the node with most.
  int largest_node() const { return largest_node_; }

  // One way of every shared link, Mb/s: of leaf l upwards at [l], downwards at [l + leaves]; 0 = not known. Of a leaf
  // that stands for those of all planes, what all of them carry.
  const std::vector<std::int64_t>& link_mbps() const { return link_mbps_; }
  // Whether the hosts under some leaf could fill its way up.
  bool oversubscribed() const { return oversubscribed_; }
  Hop Between(const GpuPort& a, const GpuPort& b) const;
  TorusWay WayBetween(topology::NodeId a, topology::NodeId b) const;
  // x, y and z of a node; kNone where it has none. Requires: the fabric is a torus.
  const std::array<int, 3>& torus(topology::NodeId node) const { return torus_[std::size_t(node)]; }
  int Hops(topology::LeafId a, topology::LeafId b) const;
  bool OneSpineOver(std::span<const topology::LeafId> leaves) const;
  const topology::Fabric& fabric() const { return fabric_; }

 private:
  // What pricing asks of each node, in one place: 28 bytes.
  struct NodeFacts {
    topology::DomainId domain = topology::kNone;
    std::int32_t pattern = 0, kind = 0, inside = 0, cabling = 0;
    std::int32_t unit = 0;  // cell
    std::int16_t generation = 0;
    bool nvswitch = false;
  };
  void NumberCells();
  template <class Describe>
  std::vector<std::int32_t> Patterns(const Describe& describe) const;
  void FindOddGpus();
  void DescribeNodes();
  void ClassifyLeaves();

  const topology::Fabric& fabric_;
  std::array<std::vector<std::int32_t>, kTierCount> cell_;
  std::array<std::vector<std::int32_t>, kTierCount> first_child_;
  std::array<std::vector<bool>, kTierCount> known_;
  std::array<bool, kTierCount> all_known_{};
  std::vector<topology::NodeId> node_at_;
  bool nested_ = true, cells_bound_ = true;
  std::vector<std::int32_t> first_port_;
  std::vector<GpuPort> ports_;
  std::vector<NodeFacts> facts_;  // by node
  bool domains_span_nodes_ = false;
  bool leaves_in_units_ = true;  // no leaf has nodes of two units
  std::vector<std::uint32_t> odd_;
  bool any_odd_gpus_ = false;
  bool gpus_differ_ = false;
  int largest_node_ = 0;
  std::vector<std::int64_t> link_mbps_;
  bool oversubscribed_ = false;
  std::vector<std::array<int, 3>> torus_;  // by node; empty off a torus
  // Leaves with equal spines, or of one dragonfly group, are alike; hops are looked up by kind, so that the
  // table stays small.
  std::vector<std::int32_t> leaf_kind_;
  std::vector<std::int8_t> kind_hops_;
  int kinds_ = 0;
};

}  // namespace heddle::placement
