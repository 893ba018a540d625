#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topology/switches.h"
#include "topology/wiring.h"

namespace heddle::topology {
namespace {

// Sorted by name, without the excluded; of two descriptions of one name the one with the smaller hash stays.
std::vector<FabricNode> Admit(std::vector<Node> nodes, const Declaration& declaration, Fabric& fabric) {
  const std::set<std::string_view> excluded(declaration.excluded_nodes.begin(),
                                            declaration.excluded_nodes.end());
  std::vector<Node*> order;  // to move a node is dear
  order.reserve(nodes.size());
  for (Node& node : nodes) {
    if (excluded.empty() || !excluded.contains(node.name)) order.push_back(&node);
  }
  std::sort(order.begin(), order.end(), [](const Node* a, const Node* b) {
    return a->name != b->name ? a->name < b->name : ContentHash(*a) < ContentHash(*b);
  });
  std::vector<FabricNode> admitted;
  admitted.reserve(order.size());
  for (Node* const next : order) {
    Node& node = *next;
    if (!admitted.empty() && admitted.back().node.name == node.name) {
      if (admitted.back().node != node) {
        fabric.faults.push_back(CablingFault{
            node.name, "", 1, {}, "", fmt::format("two different nodes are called {}", node.name)});
      }
      continue;
    }
    admitted.push_back(FabricNode{});
    admitted.back().node = std::move(node);
  }
  return admitted;
}

Transport MostlyOf(const std::vector<FabricNode>& nodes) {
  std::map<Transport, std::size_t> count;
  for (const FabricNode& node : nodes) {
    for (const Nic& nic : node.node.nics) count[nic.transport] += nic.role == NicRole::kCompute ? 1 : 0;
  }
  Transport most = Transport::kEthernet;
  std::size_t best = 0;
  for (const auto& [transport, nics] : count) {
    if (nics > best) std::tie(most, best) = std::pair(transport, nics);
  }
  return most;
}

void AddUnits(const Wiring& wiring, const Units& units, Fabric& fabric) {
  fabric.units.resize(std::size_t(units.count));
  for (std::size_t u = 0; u < fabric.units.size(); ++u) fabric.units[u].name = fmt::format("su-{}", u);
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
    const UnitId unit = units.of_node[n];
    fabric.nodes[n].unit = unit;
    if (unit != kNone) fabric.units[std::size_t(unit)].nodes.push_back(NodeId(n));
  }
  std::vector<bool> expected(wiring.leaves.size(), false);
  for (const Expectation& expectation : units.expectations) {
    expected[std::size_t(expectation.leaf)] = true;
    fabric.units[std::size_t(expectation.unit)].leaves.push_back(expectation.leaf);
  }
  // A cable of unknown rail has no expectation; its leaf is its unit's unless it is somebody's.
  for (const Cable& cable : wiring.cables) {
    if (cable.slot.rail != kNone || expected[std::size_t(cable.leaf)]) continue;
    fabric.units[std::size_t(units.of_node[std::size_t(cable.node)])].leaves.push_back(cable.leaf);
  }
  for (Unit& unit : fabric.units) {
    std::sort(unit.leaves.begin(), unit.leaves.end());
    unit.leaves.erase(std::unique(unit.leaves.begin(), unit.leaves.end()), unit.leaves.end());
  }
}

// The rail of a leaf: of the slots that belong on it, or, where none does, of the cables that end on it.
void AddRailsOfLeaves(const Wiring& wiring, const Units& units, Fabric& fabric) {
  std::vector<std::set<int>> rails(fabric.leaves.size()), strays(fabric.leaves.size());
  std::vector<std::set<int>> of_unit(fabric.units.size());
  std::vector<int> plane(fabric.leaves.size(), kNone);
  const auto note = [&](LeafId leaf, const Slot& slot, std::vector<std::set<int>>& where) {
    if (slot.rail != kNone) where[std::size_t(leaf)].insert(slot.rail);
    int& known = plane[std::size_t(leaf)];
    known = known == kNone ? slot.plane : std::min<int>(known, slot.plane);
  };
  for (const Expectation& expectation : units.expectations) {
    of_unit[std::size_t(expectation.unit)].insert(expectation.slot.rail);
    note(expectation.leaf, expectation.slot, rails);
  }
  for (const Cable& cable : wiring.cables) {
    if (rails[std::size_t(cable.leaf)].empty()) note(cable.leaf, cable.slot, strays);
  }
  for (std::size_t l = 0; l < fabric.leaves.size(); ++l) {
    Leaf& leaf = fabric.leaves[l];
    leaf.plane = std::max(0, plane[l]);
    const std::set<int>& own = rails[l].empty() ? strays[l] : rails[l];
    if (own.size() == 1) {
      leaf.rail = *own.begin();
    } else if (own.size() > 1) {
      const bool all = leaf.unit != kNone && own == of_unit[std::size_t(leaf.unit)];
      leaf.rail = all ? Missing::kNotApplicable : Missing::kAmbiguous;
    }
  }
}

void AddLeaves(const Wiring& wiring, const Units& units, Fabric& fabric) {
  for (const std::string& name : wiring.leaves) {
    fabric.leaves.push_back(Leaf{name, {}, 0, kNone, {}, 0, 0, kNone});
  }
  // A leaf that several units share counts for the one with the most hosts.
  for (std::size_t u = 0; u < fabric.units.size(); ++u) {
    for (const LeafId id : fabric.units[u].leaves) {
      UnitId& owner = fabric.leaves[std::size_t(id)].unit;
      if (owner == kNone || fabric.units[u].nodes.size() > fabric.units[std::size_t(owner)].nodes.size()) {
        owner = UnitId(u);
      }
    }
  }
  for (const Cable& cable : wiring.cables) {
    const Nic& nic = fabric.nodes[std::size_t(cable.node)].node.nics[std::size_t(cable.nic)];
    int& down = fabric.leaves[std::size_t(cable.leaf)].down_gbps;
    const NicPort& port = nic.ports[std::size_t(cable.port)];
    const int rate = port.rate_gbps > 0 ? port.rate_gbps : port.usable_gbps;
    down = std::min(kMaxGbps, down + std::clamp(rate, 0, kMaxGbps));
  }
  AddRailsOfLeaves(wiring, units, fabric);
}

void AddDomains(Fabric& fabric) {
  std::map<std::string, std::vector<NodeId>> nodes_of;
  std::set<std::string> spanning;
  for (const FabricNode& node : fabric.nodes) {
    const auto& membership = node.node.nvlink_domain;
    if (membership && membership->spans_nodes) spanning.insert(membership->id);
  }
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
    const Node& node = fabric.nodes[n].node;
    if (!node.nvlink_domain || node.nvlink_domain->id.empty()) continue;
    // An id that does not span nodes is one node's own: two nodes that claim it have a domain each.
    const std::string& id = node.nvlink_domain->id;
    // Nodes are sorted by name, and so mostly are their domains.
    if (nodes_of.empty() || nodes_of.rbegin()->first < id) {
      nodes_of.emplace_hint(nodes_of.end(), id, std::vector<NodeId>{NodeId(n)});
      continue;
    }
    nodes_of[spanning.contains(id) || !nodes_of.contains(id) ? id : fmt::format("{}@{}", id, node.name)]
        .push_back(NodeId(n));
  }
  for (auto& [id, nodes] : nodes_of) {
    NvlinkDomain domain{id, std::move(nodes), 0, spanning.contains(id)};
    for (const NodeId node : domain.nodes) {
      fabric.nodes[std::size_t(node)].domain = DomainId(fabric.domains.size());
      domain.gpus += int(fabric.nodes[std::size_t(node)].node.gpus.size());
    }
    fabric.domains.push_back(std::move(domain));
  }
}

GpuUplink UplinkOf(const Node& node, const std::vector<int>& nics, const std::vector<int>& users, int gpu,
                   const std::vector<LeafId>& leaf_of_nic) {
  GpuUplink uplink;
  for (const int position : nics) {
    const Nic& nic = node.nics[std::size_t(position)];
    if (&nic == &node.nics[std::size_t(nics.front())]) {
      uplink.rail =
          nic.rail && *nic.rail >= 0 && *nic.rail <= kMaxRail ? std::int16_t(*nic.rail) : std::int16_t(kNone);
      uplink.distance = Distance(node, gpu, position);
    }
    if (!nic.up()) continue;
    uplink.gbps += nic.usable_gbps() / std::max(1, users[std::size_t(position)]);
    if (uplink.leaf == kNone) uplink.leaf = leaf_of_nic[std::size_t(position)];
  }
  // As one whose NIC is down: what a GPU has that borrows from a neighbour is for whoever plans to say.
  const Gpu& user = node.gpus[std::size_t(gpu)];
  if (BorrowsNics(node, user, nics)) {
    const int rail = user.nic_gone->rail;
    uplink.rail = rail >= 0 && rail <= kMaxRail ? std::int16_t(rail) : std::int16_t(kNone);
    uplink.gbps = 0;
  }
  if (uplink.gbps == 0) uplink.leaf = kNone;
  return uplink;
}

// Whether all that DealNics and BorrowsNics look at is equal: most nodes are built like the one before.
bool DealtAlike(const Node& a, const Node& b) {
  const auto gpu = [](const Gpu& x, const Gpu& y) { return x.index == y.index && x.nic_gone == y.nic_gone; };
  const auto nic = [](const Nic& x, const Nic& y) {
    return x.role == y.role && x.rail == y.rail && x.name == y.name;
  };
  return std::equal(a.gpus.begin(), a.gpus.end(), b.gpus.begin(), b.gpus.end(), gpu) &&
         std::equal(a.nics.begin(), a.nics.end(), b.nics.begin(), b.nics.end(), nic) && a.paths == b.paths;
}

// Planes mirror each other: a NIC with ports on several counts as on its unit's leaf of the lowest, also where that
// port is down and the others carry on. On the leaf of another plane it would be on none that its peers are on.
LeafId LeafOfLowestPlane(const Nic& nic, const Cable& cable, UnitId unit, const Units& units) {
  if (cable.slot.rail == kNone) return cable.leaf;
  Slot slot = cable.slot;
  for (slot.plane = 0; slot.plane < cable.slot.plane; ++slot.plane) {
    const bool has_port = std::any_of(nic.ports.begin(), nic.ports.end(),
                                      [&](const NicPort& port) { return port.plane == slot.plane; });
    const Expectation* const there = has_port ? units.Find(unit, slot) : nullptr;
    if (there != nullptr) return there->leaf;
  }
  return cable.leaf;
}

void AddUplinks(const Wiring& wiring, const Units& units, Fabric& fabric) {
  std::vector<int> users;
  std::vector<LeafId> leaf_of_nic;
  const Node* dealt_for = nullptr;
  std::vector<std::vector<int>> dealt;
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
    const Node& node = fabric.nodes[n].node;
    if (dealt_for == nullptr || !DealtAlike(*dealt_for, node)) {
      dealt_for = &node;
      dealt = DealNics(node);
      users.assign(node.nics.size(), 0);
      for (std::size_t gpu = 0; gpu < dealt.size(); ++gpu) {
        if (BorrowsNics(node, node.gpus[gpu], dealt[gpu])) continue;
        for (const int nic : dealt[gpu]) ++users[std::size_t(nic)];
      }
    }
    leaf_of_nic.assign(node.nics.size(), kNone);
    for (std::size_t c = wiring.first_cable[n]; c < wiring.first_cable[n + 1]; ++c) {
      const Cable& cable = wiring.cables[c];
      const Nic& nic = node.nics[std::size_t(cable.nic)];
      const NicPort& port = nic.ports[std::size_t(cable.port)];
      LeafId& leaf = leaf_of_nic[std::size_t(cable.nic)];
      if (leaf == kNone && port.state != LinkState::kDown && port.usable_gbps > 0)
        leaf = LeafOfLowestPlane(nic, cable, fabric.nodes[n].unit, units);
    }
    fabric.nodes[n].uplinks.reserve(dealt.size());
    for (std::size_t gpu = 0; gpu < dealt.size(); ++gpu) {
      fabric.nodes[n].uplinks.push_back(UplinkOf(node, dealt[gpu], users, int(gpu), leaf_of_nic));
    }
  }
}

// Declared, or one more than the highest rail of a compute NIC, also of one that is gone.
void AddRailCount(Fabric& fabric) {
  int highest = -1;
  for (const FabricNode& node : fabric.nodes) {
    for (const Gpu& gpu : node.node.gpus) {
      if (gpu.nic_gone && gpu.nic_gone->rail <= kMaxRail) highest = std::max(highest, gpu.nic_gone->rail);
    }
    for (const Nic& nic : node.node.nics) {
      if (nic.role != NicRole::kCompute || !nic.rail || *nic.rail < 0 || *nic.rail > kMaxRail) continue;
      highest = std::max(highest, *nic.rail);
      if (fabric.declaration.rails > 0 && *nic.rail >= fabric.declaration.rails) {
        fabric.faults.push_back(
            CablingFault{node.node.name,
                         nic.name,
                         1,
                         {},
                         "",
                         fmt::format("{} {} is on rail {}, and {} rails are declared, counted from 0",
                                     node.node.name, nic.name, *nic.rail, fabric.declaration.rails)});
      }
    }
  }
  fabric.rails = std::max(highest + 1, std::clamp(fabric.declaration.rails, 0, kMaxRail + 1));
}

void AddTorus(Fabric& fabric) {
  std::set<std::array<int, 3>> taken;
  for (const TorusPosition& position : fabric.declaration.torus) {
    const NodeId id = fabric.FindNode(position.node);
    if (id == kNone) continue;
    const std::array<int, 3> xyz{position.x, position.y, position.z};
    std::array<int, 3>& known = fabric.nodes[std::size_t(id)].torus;
    bool inside = true;
    for (std::size_t i = 0; i < 3; ++i) {
      inside = inside && xyz[i] >= 0 && xyz[i] < fabric.declaration.torus_size[i];
    }
    const bool again = known != std::array<int, 3>{kNone, kNone, kNone};
    if (inside && !again && taken.insert(xyz).second) {
      known = xyz;
      continue;
    }
    if (again && known == xyz) continue;
    fabric.faults.push_back(CablingFault{position.node,
                                         "",
                                         1,
                                         {},
                                         "",
                                         fmt::format("{} is declared at {},{},{}, which is {}", position.node,
                                                     position.x, position.y, position.z,
                                                     again    ? "not where it was declared before"
                                                     : inside ? "taken by another node"
                                                              : "outside of the torus")});
  }
}

// Nodes that are in this fabric because nothing says in which of several of their site they are.
void SayGuessed(std::vector<std::string> nodes, std::size_t fabrics, Fabric& fabric) {
  std::erase_if(nodes, [&](const std::string& name) { return fabric.FindNode(name) == kNone; });
  if (nodes.empty()) return;
  std::sort(nodes.begin(), nodes.end());
  fabric.assumptions.push_back(fmt::format(
      "{}{} has GPUs and no compute NIC: nothing tells in which of its site's {} fabrics it is, and it "
      "counts to the largest",
      nodes.front(), nodes.size() > 1 ? fmt::format(" (and {} more)", nodes.size() - 1) : "", fabrics));
}

}  // namespace

Fabric BuildFabric(std::vector<Node> nodes, const Declaration& declaration) {
  Fabric fabric;
  fabric.declaration = declaration;
  fabric.nodes = Admit(std::move(nodes), declaration, fabric);
  fabric.transport = MostlyOf(fabric.nodes);
  if (!fabric.nodes.empty()) fabric.site = fabric.nodes.front().node.site;

  const Wiring wiring = ReadWiring(fabric.nodes, declaration);
  const Units units = FindUnits(wiring, fabric.nodes.size());
  std::vector<CablingFault> cabling = FindCablingFaults(fabric.nodes, wiring, units);
  fabric.faults.insert(fabric.faults.begin(), cabling.begin(), cabling.end());
  AddUnits(wiring, units, fabric);
  AddLeaves(wiring, units, fabric);
  AddDomains(fabric);
  AddUplinks(wiring, units, fabric);
  AddRailCount(fabric);
  AddTorus(fabric);
  fabric.shape = FindShape(fabric, units);
  AddSwitches(wiring, fabric);
  return fabric;
}

std::vector<Fabric> BuildDeclaredFabrics(std::vector<Node> nodes, const DeclarationOf& declaration_of) {
  std::map<std::string, std::map<Transport, std::vector<Node>>> sites;
  std::map<std::string, std::vector<Node>> without_nics;
  for (Node& node : nodes) {
    const bool has_compute = std::any_of(node.nics.begin(), node.nics.end(),
                                         [](const Nic& nic) { return nic.role == NicRole::kCompute; });
    std::vector<FabricNode> one(1);
    const std::string site = node.site;
    one.front().node = std::move(node);
    auto& home = has_compute ? sites[site][MostlyOf(one)] : without_nics[site];
    home.push_back(std::move(one.front().node));
  }
  std::map<std::pair<std::string, Transport>, std::vector<std::string>> guessed;
  for (auto& [site, homeless] : without_nics) {
    auto& fabrics = sites[site];
    const bool one_of_several = fabrics.size() > 1;
    auto largest = std::max_element(fabrics.begin(), fabrics.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    auto& home = largest == fabrics.end() ? fabrics[Transport::kEthernet] : largest->second;
    for (const Node& node : homeless) {
      if (one_of_several && !node.gpus.empty()) guessed[{site, largest->first}].push_back(node.name);
    }
    std::move(homeless.begin(), homeless.end(), std::back_inserter(home));
  }
  std::vector<Fabric> built;
  for (auto& [site, fabrics] : sites) {
    for (auto& [transport, members] : fabrics) {
      const Declaration* const declared = declaration_of(transport, site);
      built.push_back(BuildFabric(std::move(members), declared == nullptr ? Declaration{} : *declared));
      built.back().transport = transport;
      built.back().site = site;
      const auto guesses = guessed.find({site, transport});
      if (guesses != guessed.end()) SayGuessed(std::move(guesses->second), fabrics.size(), built.back());
    }
  }
  return built;
}

std::vector<Fabric> BuildFabrics(std::vector<Node> nodes, const std::map<std::string, Declaration>& by_site) {
  return BuildDeclaredFabrics(std::move(nodes), [&](Transport, const std::string& site) {
    const auto declared = by_site.find(site);
    return declared == by_site.end() ? nullptr : &declared->second;
  });
}

}  // namespace heddle::topology
