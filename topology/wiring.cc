#include "topology/wiring.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

namespace heddle::topology {
namespace {

std::int16_t RailOf(const Nic& nic) {
  return nic.rail && *nic.rail >= 0 && *nic.rail <= kMaxRail ? std::int16_t(*nic.rail) : std::int16_t(kNone);
}

// How many of the first `end` things have the same key as the one at `end`.
template <class Key>
std::int16_t Ordinal(std::size_t end, Key key) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < end; ++i) same += key(i) == key(end) ? 1 : 0;
  return std::int16_t(std::min<std::size_t>(same, INT16_MAX));
}

// Leaf names get ids in order of appearance; the names are sorted at the end. Views stay valid: nodes do not
// move.
class LeafNames {
 public:
  // `place` is the cable's place on its host: equal places of neighbouring hosts mostly have one leaf, which
  // is then found without a look into the table.
  LeafId Intern(std::string_view name, std::size_t place) {
    if (place >= last_.size()) last_.resize(place + 1, kNone);
    LeafId& last = last_[place];
    if (last == kNone || names_[std::size_t(last)] != name) last = Intern(name);
    return last;
  }
  // Fills `wiring.leaves` and puts sorted ids into its cables.
  void Sort(Wiring& wiring) const {
    std::vector<LeafId> order(names_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](LeafId a, LeafId b) { return names_[std::size_t(a)] < names_[std::size_t(b)]; });
    std::vector<LeafId> rank(names_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      rank[std::size_t(order[i])] = LeafId(i);
      wiring.leaves.emplace_back(names_[std::size_t(order[i])]);
    }
    for (Cable& cable : wiring.cables) cable.leaf = rank[std::size_t(cable.leaf)];
  }

 private:
  LeafId Intern(std::string_view name) {
    const auto [found, fresh] = ids_.try_emplace(name, LeafId(names_.size()));
    if (fresh) names_.push_back(name);
    return found->second;
  }

  std::unordered_map<std::string_view, LeafId> ids_;  // only looked up
  std::vector<std::string_view> names_;
  std::vector<LeafId> last_;  // by place
};

// What is left of a rail of which a NIC is gone counts from one too low, and would be looked for where the one that is
// gone was cabled: each NIC keeps the place that its leaf has for the NICs of hosts that have them all.
class PlacesBesideLost {
 public:
  PlacesBesideLost(const std::vector<FabricNode>& nodes, Wiring& wiring) : wiring_(wiring) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (const Gpu& gpu : nodes[n].node.gpus) {
        if (gpu.nic_gone) lost_[NodeId(n)].insert(gpu.nic_gone->rail);
      }
    }
  }

  void Keep() {
    if (lost_.empty()) return;
    FindPlaces();
    for (const auto& [node, rails] : lost_) {
      for (const int rail : rails) KeepOf(node, rail);
    }
  }

 private:
  using Key = std::array<std::int32_t, 4>;  // leaf, rail, plane, port
  static Key KeyOf(const Cable& cable) {
    return {cable.leaf, cable.slot.rail, cable.slot.plane, cable.slot.port};
  }
  std::size_t First(NodeId node) const { return wiring_.first_cable[std::size_t(node)]; }

  // On the leaves of the nodes that lost something.
  void FindPlaces() {
    std::vector<bool> asked(wiring_.leaves.size(), false);
    for (const auto& [node, rails] : lost_) {
      for (std::size_t c = First(node); c < First(node + 1); ++c)
        asked[std::size_t(wiring_.cables[c].leaf)] = true;
    }
    for (const Cable& cable : wiring_.cables) {
      if (!asked[std::size_t(cable.leaf)] || cable.slot.rail == kNone) continue;
      const auto loser = lost_.find(cable.node);
      if (loser == lost_.end() || !loser->second.contains(cable.slot.rail))
        places_[KeyOf(cable)].insert(cable.slot.nic);
    }
  }

  // Nothing where the leaves are not in the order in which others have them: then some cable is wrong.
  void KeepOf(NodeId node, int rail) {
    std::vector<std::pair<Cable*, std::int16_t>> kept;
    int nic = kNone, place = kNone;
    for (std::size_t c = First(node); c < First(node + 1); ++c) {
      Cable& cable = wiring_.cables[c];
      if (cable.slot.rail != rail) continue;
      if (cable.nic != nic) {
        nic = cable.nic;
        place = std::max<int>(cable.slot.nic, place + 1);
        const auto known = places_.find(KeyOf(cable));
        if (known != places_.end()) {
          const auto next = known->second.lower_bound(place);
          if (next == known->second.end()) return;
          place = *next;
        }
      }
      kept.emplace_back(&cable, std::int16_t(place));
    }
    for (const auto& [cable, at] : kept) cable->slot.nic = at;
  }

  Wiring& wiring_;
  std::map<NodeId, std::set<int>> lost_;  // rails
  std::map<Key, std::set<int>> places_;
};

}  // namespace

Wiring ReadWiring(const std::vector<FabricNode>& nodes, const Declaration& declaration) {
  Wiring wiring;
  LeafNames names;
  std::vector<const Nic*> compute;
  std::vector<int> positions;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    wiring.first_cable.push_back(wiring.cables.size());
    compute.clear();
    positions.clear();
    for (std::size_t i = 0; i < nodes[n].node.nics.size(); ++i) {
      if (nodes[n].node.nics[i].role != NicRole::kCompute) continue;
      compute.push_back(&nodes[n].node.nics[i]);
      positions.push_back(int(i));
    }
    for (std::size_t i = 0; i < compute.size(); ++i) {
      const auto& ports = compute[i]->ports;
      const std::int16_t nic = Ordinal(i, [&](std::size_t at) { return RailOf(*compute[at]); });
      for (std::size_t p = 0; p < ports.size(); ++p) {
        if (!ports[p].leaf_port || ports[p].leaf_port->leaf.empty()) continue;
        const auto plane = std::int16_t(std::clamp(ports[p].plane, 0, kMaxPlane));
        const std::int16_t port = Ordinal(p, [&](std::size_t at) { return ports[at].plane; });
        wiring.cables.push_back(
            Cable{NodeId(n), positions[i], int(p), Slot{RailOf(*compute[i]), nic, plane, port},
                  names.Intern(ports[p].leaf_port->leaf, wiring.cables.size() - wiring.first_cable.back())});
      }
    }
  }
  wiring.first_cable.push_back(wiring.cables.size());
  names.Sort(wiring);
  PlacesBesideLost(nodes, wiring).Keep();
  const bool declared = std::any_of(declaration.switches.begin(), declaration.switches.end(),
                                    [](const SwitchDeclaration& one) { return one.rail != kNone; });
  if (declared || !declaration.leaf_names.empty()) wiring.roles = DeclaredRoles(declaration, wiring.leaves);
  return wiring;
}

}  // namespace heddle::topology
