#include "placement/dense.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "placement/constants.h"

namespace heddle::placement {
namespace {

using topology::Fabric;
using topology::kNone;
using topology::LeafId;
using topology::NodeId;

std::int32_t Root(std::vector<std::int32_t>& parent, std::int32_t item) {
  while (parent[std::size_t(item)] != item) {
    parent[std::size_t(item)] = parent[std::size_t(parent[std::size_t(item)])];
    item = parent[std::size_t(item)];
  }
  return item;
}

// The dragonfly group that a leaf is known to be in.
std::int32_t GroupOf(const Fabric& fabric, const topology::Leaf& leaf) {
  return fabric.shape == topology::Shape::kDragonfly ? leaf.group : kNone;
}

// Units whose leaves share a spine or a dragonfly group, joined: index = unit, value = the smallest unit of
// its set.
std::vector<std::int32_t> UnitsBySpine(const Fabric& fabric) {
  std::vector<std::int32_t> parent(fabric.units.size());
  std::iota(parent.begin(), parent.end(), 0);
  std::vector<std::int32_t> unit_of_spine(fabric.spines.size(), kNone);
  std::vector<std::int32_t> unit_of_group(fabric.declaration.groups.size(), kNone);
  const auto join = [&parent](std::int32_t& first, std::int32_t unit) {
    if (first == kNone) first = unit;
    const std::int32_t a = Root(parent, first), b = Root(parent, unit);
    parent[std::size_t(std::max(a, b))] = std::min(a, b);
  };
  for (const topology::Leaf& leaf : fabric.leaves) {
    if (leaf.unit == kNone) continue;
    for (std::int32_t spine : leaf.spines) join(unit_of_spine[std::size_t(spine)], leaf.unit);
    const std::int32_t group = GroupOf(fabric, leaf);
    if (group != kNone) join(unit_of_group[std::size_t(group)], leaf.unit);
  }
  for (std::int32_t u = 0; u < std::int32_t(parent.size()); ++u) parent[std::size_t(u)] = Root(parent, u);
  return parent;
}

int NvlinkGbps(const topology::Node& node, int index) {
  const topology::NvLink& nvlink = node.nvlink;
  const std::int64_t gbps = nvlink.usable_gbps(index, kUnknownNvlinkGbps);
  const int percent = nvlink.generation == 3   ? kNvlink3Percent
                      : nvlink.generation >= 5 ? kNvlink5Percent
                                               : kNvlink4Percent;
  return int(std::max<std::int64_t>(1, gbps * percent / 100));
}

// One way up of every leaf, as flows meet it, Mb/s. A GPU's flows are all put on the first leaf that it hangs on.
// Where it hangs on several, as with planes or two NICs, the others' ways up carry their part beside that one's, so it
// counts for as much more as the GPUs on it send beyond what its own ports take.
std::vector<std::int64_t> WaysUp(const Fabric& fabric) {
  constexpr double kMostMbps = 1e15;
  std::vector<std::int64_t> hung_gbps(fabric.leaves.size(), 0), mbps;
  for (const topology::FabricNode& where : fabric.nodes) {
    for (const topology::GpuUplink& uplink : where.uplinks) {
      if (uplink.leaf != kNone) hung_gbps[std::size_t(uplink.leaf)] += uplink.gbps;
    }
  }
  for (std::size_t l = 0; l < fabric.leaves.size(); ++l) {
    const topology::Leaf& leaf = fabric.leaves[l];
    const double times = leaf.down_gbps > 0 ? double(hung_gbps[l]) / leaf.down_gbps : 1;
    mbps.push_back(std::int64_t(std::min(kMostMbps, double(leaf.up_gbps) * 1000 * std::max(1.0, times))));
  }
  return mbps;
}

TorusWay WayOn(const std::array<int, 3>& size, const std::array<int, 3>& a, const std::array<int, 3>& b) {
  TorusWay way;
  for (std::size_t i = 0; i < 3; ++i) {
    const int apart = std::abs(a[i] - b[i]);
    // A node without a position is taken to be as far away as can be.
    const bool known = a[i] != kNone && b[i] != kNone;
    const int links = known ? std::min(apart, size[i] - apart) : size[i] / 2;
    way.links += links;
    way.longest = std::max(way.longest, links);
  }
  return way;
}

// The node that stands for its NVLink domain: the first whose unit is known, so that one whose unit nobody knows yet
// does not take the others out of theirs.
NodeId AnchorOf(const Fabric& fabric, NodeId node) {
  const topology::DomainId domain = fabric.nodes[std::size_t(node)].domain;
  if (domain == kNone) return node;
  const std::vector<NodeId>& nodes = fabric.domains[std::size_t(domain)].nodes;
  if (nodes.empty()) return node;
  const auto known = std::find_if(nodes.begin(), nodes.end(),
                                  [&](NodeId one) { return fabric.nodes[std::size_t(one)].unit != kNone; });
  return known != nodes.end() ? *known : nodes.front();
}

// A torus node forwards for others: it has two links in each dimension, each as fast as its NICs together.
// Routing goes one dimension after the other, so where every node sends as far the same way, as in a ring or
// between stages, a link carries as many flows as a flow takes links in that dimension. Neighbours have the
// full rate, a hop of d links in its longest dimension a d-th of it; every link adds its latency.
void CrossTorus(const TorusWay& way, Hop& hop) {
  hop.mbps = std::max<std::int64_t>(1, hop.mbps / std::max(1, way.longest));
  hop.tenths_us += kSwitchHopTenths * way.links;
}

template <class HopsOf, class WayOf>
Hop HopBetween(const GpuPort& a, const GpuPort& b, topology::Shape shape, const HopsOf& hops_of,
               const WayOf& way_of) {
  Hop hop;
  if (a.node == b.node || (a.domain != kNone && a.domain == b.domain)) {
    const std::int32_t nvlink = std::min(a.nvlink_gbps, b.nvlink_gbps);
    if (nvlink > 0) return {std::int64_t(nvlink) * 1000, kNvlinkStepTenths, false, false, false};
    // Over PCIe, where the NIC hangs too: never slower than leaving by it.
    return {std::int64_t(std::max({kPcieGbps, a.net_gbps, b.net_gbps})) * 1000, kPcieStepTenths, false, false,
            false};
  }
  hop.network = true;
  hop.mbps = std::int64_t(std::min(a.net_gbps, b.net_gbps)) * 10 * kNetPercent;
  hop.tenths_us = kNetStepTenths;
  hop.crosses_rail = a.rail != kNone && b.rail != kNone && a.rail != b.rail;
  if (shape == topology::Shape::kTorus3d) {  // there are no leaves to cross
    CrossTorus(way_of(a.node, b.node), hop);
    return hop;
  }
  hop.crosses_leaf = a.leaf == kNone || b.leaf == kNone || a.leaf != b.leaf;
  if (!hop.crosses_leaf) return hop;
  const int hops = a.leaf == kNone || b.leaf == kNone ? kNone : hops_of(a.leaf, b.leaf);
  if (hops == kNone && shape == topology::Shape::kRailOnly) {
    // No spine: NCCL forwards over NVLink to the peer's rail (PXN), whose NIC then carries two flows. Where
    // no rail is shared there is no way at all; the price says so, and Meets() does not need to.
    hop.mbps = hop.crosses_rail ? hop.mbps / 2 : kNoWayMbps;
    hop.tenths_us += kNvlinkStepTenths;
    return hop;
  }
  hop.tenths_us += kSwitchHopTenths * (hops == kNone ? 4 : hops);  // unknown: as over a core
  return hop;
}

}  // namespace

GpuPort PortOf(const Fabric& fabric, NodeId id, int gpu) {
  const topology::FabricNode& where = fabric.nodes[std::size_t(id)];
  GpuPort port;
  port.node = id;
  port.domain = where.domain;
  if (where.domain != kNone)
    port.nvlink_gbps = NvlinkGbps(where.node, where.node.gpus[std::size_t(gpu)].index);
  if (std::size_t(gpu) < where.uplinks.size()) {
    const topology::GpuUplink& uplink = where.uplinks[std::size_t(gpu)];
    port.leaf = uplink.leaf;
    port.rail = uplink.rail;
    port.net_gbps = uplink.gbps;
  }
  if (port.net_gbps > 0) return port;
  // It borrows the NIC of a neighbour, which then carries two flows; without any, the machine's own Ethernet.
  for (const topology::GpuUplink& uplink : where.uplinks)
    port.net_gbps = std::max(port.net_gbps, uplink.gbps / 2);
  port.net_gbps = std::max(port.net_gbps, kNoNicGbps);
  return port;
}

Hop HopOf(const Fabric& fabric, const GpuPort& a, const GpuPort& b) {
  return HopBetween(
      a, b, fabric.shape, [&fabric](LeafId x, LeafId y) { return fabric.Hops(x, y); },
      [&fabric](NodeId x, NodeId y) {
        return WayOn(fabric.declaration.torus_size, fabric.nodes[std::size_t(x)].torus,
                     fabric.nodes[std::size_t(y)].torus);
      });
}

DenseFabric::DenseFabric(const Fabric& fabric) : fabric_(fabric) {
  first_port_.push_back(0);
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
    const int gpus = int(std::min<std::size_t>(fabric.nodes[n].node.gpus.size(), 32));
    for (int g = 0; g < gpus; ++g) ports_.push_back(PortOf(fabric, NodeId(n), g));
    first_port_.push_back(std::int32_t(ports_.size()));
    const topology::FabricNode& where = fabric.nodes[n];
    const int generation = where.domain == kNone ? 0 : where.node.nvlink.generation;
    // Agents that cannot see the switches say nothing of them; more GPUs than bridges join are on one.
    const bool nvswitch = generation > 0 && (!where.node.nvswitches.empty() ||
                                             fabric.domains[std::size_t(where.domain)].gpus > kMostBridged);
    facts_.push_back({where.domain, 0, 0, 0, 0, 0, std::int16_t(generation), nvswitch});
    largest_node_ = std::max(largest_node_, gpus);
  }
  const std::vector<std::int64_t> up = WaysUp(fabric);
  for (int way = 0; way < 2; ++way) link_mbps_.insert(link_mbps_.end(), up.begin(), up.end());
  oversubscribed_ = std::any_of(fabric.leaves.begin(), fabric.leaves.end(), [](const topology::Leaf& leaf) {
    return leaf.up_gbps > 0 && leaf.up_gbps < leaf.down_gbps;
  });
  if (fabric.shape == topology::Shape::kTorus3d) {
    for (const auto& where : fabric.nodes) torus_.push_back(where.torus);
  }
  NumberCells();
  ClassifyLeaves();
  DescribeNodes();
  domains_span_nodes_ =
      std::any_of(fabric.domains.begin(), fabric.domains.end(),
                  [](const topology::NvlinkDomain& domain) { return domain.nodes.size() > 1; });
  FindOddGpus();
}

// Needs cells and kinds of leaves.
void DenseFabric::DescribeNodes() {
  const std::vector<std::int32_t> pattern = Patterns([](const GpuPort& port) {
    return std::array<std::int64_t, 4>{port.leaf, port.rail, port.net_gbps, port.nvlink_gbps};
  });
  const std::vector<std::int32_t> kind = Patterns([this](const GpuPort& port) {
    const std::int32_t leaf_kind = port.leaf == kNone ? kNone : leaf_kind_[std::size_t(port.leaf)];
    return std::array<std::int64_t, 4>{leaf_kind, port.rail, port.net_gbps, port.nvlink_gbps};
  });
  const std::vector<std::int32_t> cabling = Patterns([this](const GpuPort& port) {
    const LeafId first = this->port(port.node, 0).leaf;
    const std::int64_t leaf = port.leaf == kNone || first == kNone ? std::numeric_limits<std::int64_t>::min()
                                                                   : std::int64_t(port.leaf) - first;
    return std::array<std::int64_t, 4>{leaf, port.rail, port.net_gbps, port.nvlink_gbps};
  });
  const std::vector<std::int32_t> inside = Patterns([this](const GpuPort& port) {
    const NodeFacts& facts = facts_[std::size_t(port.node)];
    return std::array<std::int64_t, 4>{port.nvlink_gbps > 0 ? 0 : port.net_gbps, port.nvlink_gbps,
                                       facts.generation, facts.nvswitch ? 1 : 0};
  });
  for (std::size_t n = 0; n < facts_.size(); ++n) {
    facts_[n].pattern = pattern[n];
    facts_[n].kind = kind[n];
    facts_[n].cabling = cabling[n];
    facts_[n].unit = cell(Tier::kUnit, NodeId(n));
    facts_[n].inside = inside[n];
  }
  for (NodeId n = 0; n < NodeId(facts_.size()) && !gpus_differ_; ++n) {
    for (int g = 1; g < gpus(n); ++g) {
      const GpuPort &one = port(n, 0), &other = port(n, g);
      gpus_differ_ = gpus_differ_ || std::tie(one.leaf, one.rail, one.net_gbps, one.nvlink_gbps) !=
                                         std::tie(other.leaf, other.rail, other.net_gbps, other.nvlink_gbps);
    }
  }
  std::vector<std::int32_t> unit_of(fabric_.leaves.size(), kNone);
  for (const GpuPort& port : ports_) {
    if (port.leaf == kNone) continue;
    std::int32_t& unit = unit_of[std::size_t(port.leaf)];
    if (unit == kNone) unit = facts_[std::size_t(port.node)].unit;
    leaves_in_units_ = leaves_in_units_ && unit == facts_[std::size_t(port.node)].unit;
  }
}

// Numbers nodes so that equal numbers mean equal descriptions, GPU by GPU.
template <class Describe>
std::vector<std::int32_t> DenseFabric::Patterns(const Describe& describe) const {
  std::vector<std::int32_t> out;
  out.reserve(fabric_.nodes.size());
  std::unordered_multimap<std::uint64_t, NodeId> first_of;  // by hash: the first node of each pattern
  std::int32_t next = 0;
  for (NodeId n = 0; n < NodeId(fabric_.nodes.size()); ++n) {
    std::uint64_t hash = 1469598103934665603U;  // FNV-1a
    for (int g = 0; g < gpus(n); ++g) {
      for (const std::int64_t value : describe(port(n, g))) {
        hash = (hash ^ std::uint64_t(value)) * 1099511628211U;
      }
    }
    std::int32_t known = kNone;
    const auto [begin, end] = first_of.equal_range(hash);
    for (auto it = begin; it != end && known == kNone; ++it) {
      const NodeId other = it->second;
      bool same = gpus(other) == gpus(n);
      for (int g = 0; same && g < gpus(n); ++g) same = describe(port(other, g)) == describe(port(n, g));
      if (same) known = out[std::size_t(other)];
    }
    if (known == kNone) {
      known = next++;
      first_of.emplace(hash, n);
    }
    out.push_back(known);
  }
  return out;
}

void DenseFabric::NumberCells() {
  const std::int32_t nodes = std::int32_t(fabric_.nodes.size());
  const std::int32_t units = std::int32_t(fabric_.units.size());
  const auto spine_of = UnitsBySpine(fabric_);
  std::map<std::string, std::int32_t> sites;
  for (const auto& where : fabric_.nodes) sites.emplace(where.node.site, 0);
  std::int32_t next_site = 0;
  for (auto& [name, id] : sites) id = next_site++;

  // Keys by node, coarsest first: site, spine set, unit, NVLink domain, node. A domain takes the place of one
  // of its nodes, so that cells nest even where they disagree.
  using Key = std::array<std::int32_t, 5>;
  std::vector<Key> keys(static_cast<std::size_t>(nodes));
  for (NodeId n = 0; n < nodes; ++n) {
    const auto& where = fabric_.nodes[std::size_t(n)];
    const NodeId first = AnchorOf(fabric_, n);
    const auto& anchor = fabric_.nodes[std::size_t(first)];
    const bool elsewhere = anchor.node.site != where.node.site;
    if (anchor.unit != where.unit || elsewhere) nested_ = false;
    if ((anchor.unit != where.unit && where.unit != kNone) || elsewhere) cells_bound_ = false;
    const std::int32_t unit = anchor.unit != kNone ? anchor.unit : units + first;
    const std::int32_t spine = anchor.unit != kNone ? spine_of[std::size_t(anchor.unit)] : unit;
    keys[std::size_t(n)] = {sites.at(anchor.node.site), spine, unit, first, n};
  }
  node_at_.resize(std::size_t(nodes));
  std::iota(node_at_.begin(), node_at_.end(), 0);
  std::sort(node_at_.begin(), node_at_.end(),
            [&](NodeId a, NodeId b) { return keys[std::size_t(a)] < keys[std::size_t(b)]; });

  for (auto& cells : cell_) cells.assign(std::size_t(nodes), 0);
  std::array<std::int32_t, kTierCount> count{};
  for (std::int32_t i = 0; i < nodes; ++i) {
    const NodeId n = node_at_[std::size_t(i)];
    // The coarsest key that changed opens a new cell there and in every tier below.
    int changed = 5;  // tiers [0, changed] are new
    if (i > 0) {
      const Key& before = keys[std::size_t(node_at_[std::size_t(i) - 1])];
      int same = 0;
      while (same < 5 && before[std::size_t(same)] == keys[std::size_t(n)][std::size_t(same)]) ++same;
      changed = 4 - same;
    }
    for (int t = changed; t >= 0; --t) {
      if (t > 0) first_child_[std::size_t(t)].push_back(count[std::size_t(t) - 1]);
      ++count[std::size_t(t)];
      const auto& where = fabric_.nodes[std::size_t(AnchorOf(fabric_, n))];
      bool known = true;
      if (Tier(t) == Tier::kDomain) known = where.domain != kNone;
      if (Tier(t) == Tier::kUnit) known = where.unit != kNone;
      if (Tier(t) == Tier::kSpine) {
        known = where.unit != kNone &&
                std::any_of(fabric_.units[std::size_t(where.unit)].leaves.begin(),
                            fabric_.units[std::size_t(where.unit)].leaves.end(), [&](LeafId id) {
                              const topology::Leaf& leaf = fabric_.leaves[std::size_t(id)];
                              return !leaf.spines.empty() || GroupOf(fabric_, leaf) != kNone;
                            });
      }
      known_[std::size_t(t)].push_back(known);
    }
    for (int t = 0; t < kTierCount; ++t) cell_[std::size_t(t)][std::size_t(n)] = count[std::size_t(t)] - 1;
  }
  for (int t = 1; t < kTierCount; ++t) first_child_[std::size_t(t)].push_back(count[std::size_t(t) - 1]);
  for (std::size_t t = 0; t < kTierCount; ++t) {
    all_known_[t] = std::find(known_[t].begin(), known_[t].end(), false) == known_[t].end();
  }
  first_child_[0].assign(std::size_t(nodes) + 1, 0);
}

void DenseFabric::FindOddGpus() {
  odd_.assign(fabric_.nodes.size(), 0);
  for (std::int32_t unit = 0; unit < cells(Tier::kUnit); ++unit) {
    const auto [first_domain, last_domain] = children(Tier::kUnit, unit);
    const auto first = children(Tier::kDomain, first_domain).first;
    const auto last = children(Tier::kDomain, last_domain - 1).second;
    for (int g = 0; g < 32; ++g) {
      std::map<LeafId, int> seen;
      int net = 0, nvlink = 0;
      for (std::int32_t cell = first; cell < last; ++cell) {
        const NodeId n = node_at(cell);
        if (g >= gpus(n)) continue;
        ++seen[port(n, g).leaf];
        net = std::max(net, port(n, g).net_gbps);
        nvlink = std::max(nvlink, port(n, g).nvlink_gbps);
      }
      if (seen.empty()) break;
      const LeafId usual = std::max_element(seen.begin(), seen.end(), [](auto& a, auto& b) {
                             return a.second < b.second;
                           })->first;
      for (std::int32_t cell = first; cell < last; ++cell) {
        const NodeId n = node_at(cell);
        if (g >= gpus(n)) continue;
        const GpuPort& here = port(n, g);
        if (here.leaf != usual || here.net_gbps < net || here.nvlink_gbps < nvlink)
          odd_[std::size_t(n)] |= 1U << g;
      }
    }
  }
  any_odd_gpus_ = std::any_of(odd_.begin(), odd_.end(), [](std::uint32_t odd) { return odd != 0; });
}

void DenseFabric::ClassifyLeaves() {
  using Kind = std::pair<std::vector<std::int32_t>, std::int32_t>;  // spines, group
  std::map<Kind, std::int32_t> kinds;
  std::vector<LeafId> sample, second;
  for (std::size_t i = 0; i < fabric_.leaves.size(); ++i) {
    const topology::Leaf& leaf = fabric_.leaves[i];
    const auto [entry, fresh] =
        kinds.emplace(Kind{leaf.spines, GroupOf(fabric_, leaf)}, std::int32_t(kinds.size()));
    if (fresh) {
      sample.push_back(LeafId(i));
      second.push_back(LeafId(i));
    }
    leaf_kind_.push_back(entry->second);
    second[std::size_t(entry->second)] = LeafId(i);
  }
  kinds_ = int(kinds.size());
  if (kinds_ > kMaxLeafKinds) return;  // Hops() asks the fabric each time
  kind_hops_.assign(std::size_t(kinds_) * std::size_t(kinds_), kNone);
  for (int a = 0; a < kinds_; ++a) {
    for (int b = 0; b < kinds_; ++b) {
      kind_hops_[std::size_t(a) * std::size_t(kinds_) + std::size_t(b)] =
          std::int8_t(fabric_.Hops(sample[std::size_t(a)], second[std::size_t(b)]));
    }
  }
}

int DenseFabric::Hops(LeafId a, LeafId b) const {
  if (a == b) return 0;
  if (kinds_ > kMaxLeafKinds) return fabric_.Hops(a, b);
  const auto row = std::size_t(leaf_kind_[std::size_t(a)]), column = std::size_t(leaf_kind_[std::size_t(b)]);
  return kind_hops_[row * std::size_t(kinds_) + column];
}

bool DenseFabric::OneSpineOver(std::span<const LeafId> leaves) const {
  if (leaves.empty()) return true;
  if (std::all_of(leaves.begin(), leaves.end(), [&](LeafId leaf) { return leaf == leaves.front(); })) {
    return leaves.front() != kNone;
  }
  if (std::find(leaves.begin(), leaves.end(), kNone) != leaves.end()) return false;
  const std::int32_t group = GroupOf(fabric_, fabric_.leaves[std::size_t(leaves.front())]);
  if (group != kNone) {
    return std::all_of(leaves.begin(), leaves.end(), [&](LeafId leaf) {
      return GroupOf(fabric_, fabric_.leaves[std::size_t(leaf)]) == group;
    });
  }
  std::vector<std::int32_t> shared = fabric_.leaves[std::size_t(leaves.front())].spines;
  for (LeafId leaf : leaves.subspan(1)) {
    const auto& spines = fabric_.leaves[std::size_t(leaf)].spines;
    std::erase_if(shared,
                  [&](std::int32_t s) { return !std::binary_search(spines.begin(), spines.end(), s); });
  }
  return !shared.empty();
}

Hop DenseFabric::Between(const GpuPort& a, const GpuPort& b) const {
  return HopBetween(
      a, b, fabric_.shape, [this](LeafId x, LeafId y) { return Hops(x, y); },
      [this](NodeId x, NodeId y) { return WayBetween(x, y); });
}

TorusWay DenseFabric::WayBetween(NodeId a, NodeId b) const {
  if (torus_.empty()) return {};
  return WayOn(fabric_.declaration.torus_size, torus_[std::size_t(a)], torus_[std::size_t(b)]);
}

std::string DenseFabric::CellName(Tier tier, std::int32_t cell) const {
  std::int32_t node_cell = cell;
  for (int t = int(tier); t > 0; --t) node_cell = children(Tier(t), node_cell).first;
  const NodeId first = node_at(node_cell);
  if (tier == Tier::kNode) return fabric_.nodes[std::size_t(first)].node.name;
  const topology::FabricNode& where = fabric_.nodes[std::size_t(AnchorOf(fabric_, first))];
  switch (tier) {
    case Tier::kNode:
    case Tier::kDomain:
      return where.domain != kNone ? fabric_.domains[std::size_t(where.domain)].id : where.node.name;
    case Tier::kUnit:
      return where.unit != kNone ? fabric_.units[std::size_t(where.unit)].name : where.node.name;
    case Tier::kSpine: {
      if (where.unit != kNone) {
        for (LeafId leaf : fabric_.units[std::size_t(where.unit)].leaves) {
          const std::int32_t group = GroupOf(fabric_, fabric_.leaves[std::size_t(leaf)]);
          if (group != kNone) return fabric_.declaration.groups[std::size_t(group)].name;
          const auto& spines = fabric_.leaves[std::size_t(leaf)].spines;
          if (!spines.empty()) return fabric_.spines[std::size_t(spines.front())].name;
        }
        return fabric_.units[std::size_t(where.unit)].name;
      }
      return where.node.name;
    }
    case Tier::kSite:
      return where.node.site.empty() ? "the site" : where.node.site;
    case Tier::kRoot:
      return "the fabric";
  }
  return "";
}

}  // namespace heddle::placement
