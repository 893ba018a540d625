#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "topology/wiring.h"

namespace heddle::topology {
namespace {

// A cable that does not end where its unit's cables of that slot do.
struct Deviation {
  const Cable* cable;
  UnitId unit;
  const Expectation* expected;
  const Cable* swapped_with = nullptr;
};

class CablingFaults {
 public:
  CablingFaults(const std::vector<FabricNode>& nodes, const Wiring& wiring, const Units& units)
      : nodes_(nodes), wiring_(wiring), units_(units) {}

  std::vector<CablingFault> Run() && {
    FindDeviations();
    PairSwaps();
    for (const Deviation& deviation : deviations_) Report(deviation);
    ReportContradictions();
    ReportSharedLeaves();
    ReportDoubledPorts();
    // What is wrong goes before what may be.
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const CablingFault& a, const CablingFault& b) { return a.ambiguous < b.ambiguous; });
    return std::move(faults_);
  }

 private:
  const Nic& NicOf(const Cable& cable) const {
    return nodes_[std::size_t(cable.node)].node.nics[std::size_t(cable.nic)];
  }
  const NicPort& PortOf(const Cable& cable) const { return NicOf(cable).ports[std::size_t(cable.port)]; }
  const std::string& LeafName(LeafId leaf) const { return wiring_.leaves[std::size_t(leaf)]; }

  // "gpu-017 mlx5_3", with the port where the NIC has several.
  std::string End(const Cable& cable) const {
    const Nic& nic = NicOf(cable);
    std::string end = fmt::format("{} {}", nodes_[std::size_t(cable.node)].node.name, nic.name);
    if (nic.ports.size() > 1) end += fmt::format(" port {}", PortOf(cable).number);
    return end;
  }

  std::string SlotName(const Slot& slot) const {
    return slot.plane > 0 ? fmt::format("rail {} plane {}", slot.rail, slot.plane)
                          : fmt::format("rail {}", slot.rail);
  }

  CablingFault At(const Cable& cable, std::string expected_leaf, std::string sentence) const {
    const NicPort& port = PortOf(cable);
    return CablingFault{nodes_[std::size_t(cable.node)].node.name,
                        NicOf(cable).name,
                        port.number,
                        *port.leaf_port,
                        std::move(expected_leaf),
                        std::move(sentence),
                        false};
  }

  std::string PortWords(const Cable& cable) const {
    const LeafPort& seen = *PortOf(cable).leaf_port;
    return seen.port.empty() ? seen.leaf : fmt::format("{} port {}", seen.leaf, seen.port);
  }

  void FindDeviations() {
    for (const Cable& cable : wiring_.cables) {
      const UnitId unit = units_.of_node[std::size_t(cable.node)];
      if (cable.slot.rail == kNone || units_.Fits(unit, cable)) continue;
      deviations_.push_back(Deviation{&cable, unit, units_.Find(unit, cable.slot)});
    }
  }

  // Two cables are swapped when each ends where the other should. Partners on the same node go first.
  void PairSwaps() {
    for (std::size_t begin = 0; begin < deviations_.size();) {
      std::size_t end = begin;
      while (end < deviations_.size() && deviations_[end].cable->node == deviations_[begin].cable->node) {
        ++end;
      }
      PairSwapsIn(begin, end);
      begin = end;
    }
    PairSwapsIn(0, deviations_.size());
  }

  void PairSwapsIn(std::size_t begin, std::size_t end) {
    std::map<std::pair<LeafId, LeafId>, std::vector<std::size_t>> waiting;  // by (seen, expected), last first
    for (std::size_t i = end; i-- > begin;) {
      if (deviations_[i].swapped_with == nullptr) waiting[SeenAndExpected(i)].push_back(i);
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (deviations_[i].swapped_with != nullptr) continue;
      const auto [seen, expected] = SeenAndExpected(i);
      const auto partners = waiting.find({expected, seen});
      if (partners == waiting.end()) continue;
      auto& last_first = partners->second;
      while (!last_first.empty() && deviations_[last_first.back()].swapped_with != nullptr) {
        last_first.pop_back();
      }
      if (last_first.empty()) continue;
      deviations_[i].swapped_with = deviations_[last_first.back()].cable;
      deviations_[last_first.back()].swapped_with = deviations_[i].cable;
      last_first.pop_back();
    }
  }

  std::pair<LeafId, LeafId> SeenAndExpected(std::size_t i) const {
    return {deviations_[i].cable->leaf, deviations_[i].expected->leaf};
  }

  void Report(const Deviation& deviation) {
    const Cable& cable = *deviation.cable;
    const std::string& expected = LeafName(deviation.expected->leaf);
    const bool declared = IsDeclared(*deviation.expected);
    const bool tie = deviation.expected->votes * 2 <= deviation.expected->voters;
    std::string sentence =
        fmt::format("{} is cabled to {}; its unit's {} is {}{}", End(cable), PortWords(cable),
                    SlotName(cable.slot), expected, declared ? ", as declared" : "");
    if (deviation.swapped_with != nullptr) {
      sentence += fmt::format(": swapped with {} on {}", End(*deviation.swapped_with),
                              PortWords(*deviation.swapped_with));
    }
    if (tie && !declared) {
      sentence += fmt::format(
          ", by {} of {} hosts only: no majority tells which is right; declare it in spec.leafNames or "
          "spec.switches",
          deviation.expected->votes, deviation.expected->voters);
    }
    faults_.push_back(At(cable, expected, std::move(sentence)));
    faults_.back().ambiguous = tie && !declared;
  }

  // Whether people say that this rail ends there, and so the hosts need no majority.
  bool IsDeclared(const Expectation& expectation) const {
    return wiring_.DeclaredRail(expectation.leaf) == expectation.slot.rail;
  }

  // Where no host of a unit has a rail where it is declared: one fault for the leaf, or a fault for the one host.
  void ReportContradictions() {
    std::map<std::pair<UnitId, Slot>, const Cable*> first;  // that contradicts, of each slot
    if (wiring_.roles.empty()) return;
    for (const Cable& cable : wiring_.cables) {
      const UnitId unit = units_.of_node[std::size_t(cable.node)];
      if (wiring_.Contradicts(cable.leaf, cable.slot)) first.try_emplace({unit, cable.slot}, &cable);
    }
    for (const Expectation& expectation : units_.expectations) {
      if (!wiring_.Contradicts(expectation.leaf, expectation.slot)) continue;
      const auto found = first.find({expectation.unit, expectation.slot});
      if (found != first.end()) ReportContradiction(expectation, *found->second);
    }
  }

  void ReportContradiction(const Expectation& expectation, const Cable& cable) {
    const LeafId right = DeclaredLeaf(expectation);
    const Cable* other = right == kNone ? nullptr : CableOf(cable.node, right);
    const bool swapped = other != nullptr && wiring_.DeclaredRail(cable.leaf) == other->slot.rail;
    std::string sentence = fmt::format("{} is cabled to {}, which is declared for rail {}", End(cable),
                                       PortWords(cable), wiring_.DeclaredRail(cable.leaf));
    if (expectation.votes > 1) {
      sentence = fmt::format(
          "{} of {} hosts of a unit have {} on {}, which is declared for rail {}{} (the first is {} on {}): "
          "correct "
          "the declaration, the switch's name, or the cables",
          expectation.votes, expectation.voters, SlotName(expectation.slot), LeafName(expectation.leaf),
          wiring_.DeclaredRail(expectation.leaf),
          swapped ? fmt::format(", and rail {} on {}", other->slot.rail, LeafName(right)) : "", End(cable),
          PortWords(cable));
    } else if (swapped) {
      sentence += fmt::format(": swapped with {} on {}", End(*other), PortWords(*other));
    } else if (right != kNone) {
      sentence += fmt::format("; rail {} is declared for {}", expectation.slot.rail, LeafName(right));
    }
    faults_.push_back(At(cable, right == kNone ? "" : LeafName(right), std::move(sentence)));
  }

  // The leaf beside `expectation`'s that is declared for its rail; kNone where none is, or several.
  LeafId DeclaredLeaf(const Expectation& expectation) const {
    const LeafRole& seen = wiring_.roles[std::size_t(expectation.leaf)];
    LeafId found = kNone;
    for (std::size_t leaf = 0; leaf < wiring_.roles.size(); ++leaf) {
      const LeafRole& role = wiring_.roles[leaf];
      if (role.rail != expectation.slot.rail || role.unit != seen.unit || role.plane != seen.plane) continue;
      if (found != kNone) return kNone;
      found = LeafId(leaf);
    }
    return found;
  }

  // The first cable of the node on that leaf, or null.
  const Cable* CableOf(NodeId node, LeafId leaf) const {
    for (std::size_t c = wiring_.first_cable[std::size_t(node)];
         c < wiring_.first_cable[std::size_t(node) + 1]; ++c) {
      if (wiring_.cables[c].leaf == leaf) return &wiring_.cables[c];
    }
    return nullptr;
  }

  // Where the other units give each rail a leaf of its own, one leaf for two rails is a cable in the wrong
  // switch that no majority can show, as in a unit of one host.
  void ReportSharedLeaves() {
    std::map<std::pair<UnitId, LeafId>, std::pair<std::int16_t, std::int16_t>> rails;  // lowest, highest
    for (const Expectation& e : units_.expectations) {
      auto& [low, high] = rails.try_emplace({e.unit, e.leaf}, e.slot.rail, e.slot.rail).first->second;
      low = std::min(low, e.slot.rail);
      high = std::max(high, e.slot.rail);
    }
    std::vector<bool> shares(std::size_t(units_.count), false);
    for (const auto& [key, ends] : rails) {
      if (ends.first != ends.second) shares[std::size_t(key.first)] = true;
    }
    std::vector<int> hosts(std::size_t(units_.count), 0);
    for (const UnitId unit : units_.of_node) {
      if (unit != kNone) ++hosts[std::size_t(unit)];
    }
    int sharing = 0, proper = 0;
    for (std::size_t unit = 0; unit < shares.size(); ++unit) (shares[unit] ? sharing : proper) += hosts[unit];
    if (sharing == 0 || sharing >= proper) return;
    std::map<std::pair<UnitId, LeafId>, const Cable*> first;  // of the highest rail
    for (const Cable& cable : wiring_.cables) {
      const UnitId unit = units_.of_node[std::size_t(cable.node)];
      if (unit == kNone || !shares[std::size_t(unit)]) continue;
      const auto ends = rails.find({unit, cable.leaf});
      if (ends == rails.end() || cable.slot.rail != ends->second.second) continue;
      if (ends->second.first != ends->second.second) first.try_emplace(ends->first, &cable);
    }
    for (const auto& [key, cable] : first) ReportSharedLeaf(*cable, rails.at(key).first);
  }

  // `low` is the other rail there.
  void ReportSharedLeaf(const Cable& cable, int low) {
    faults_.push_back(
        At(cable, "",
           fmt::format("{} is cabled to {}, where rail {} of its unit ends too; in other units rails {} "
                       "and {} have leaves of their own",
                       End(cable), PortWords(cable), low, low, cable.slot.rail)));
  }

  void ReportDoubledPorts() {
    struct Claim {
      std::string_view port;
      const Cable* cable;
    };
    std::vector<std::vector<Claim>> of_leaf(wiring_.leaves.size());
    for (const Cable& cable : wiring_.cables) {
      const std::string& port = PortOf(cable).leaf_port->port;
      if (!port.empty()) of_leaf[std::size_t(cable.leaf)].push_back({port, &cable});
    }
    for (std::vector<Claim>& claims : of_leaf) {
      std::stable_sort(claims.begin(), claims.end(),
                       [](const Claim& a, const Claim& b) { return a.port < b.port; });
      for (std::size_t i = 1; i < claims.size(); ++i) {
        if (claims[i - 1].port == claims[i].port) ReportDoubledPort(*claims[i - 1].cable, *claims[i].cable);
      }
    }
  }

  void ReportDoubledPort(const Cable& first, const Cable& second) {
    faults_.push_back(
        At(second, "",
           fmt::format("{} and {} both say that they are cabled to {}: one of them is out of date",
                       End(first), End(second), PortWords(second))));
  }

  const std::vector<FabricNode>& nodes_;
  const Wiring& wiring_;
  const Units& units_;
  std::vector<Deviation> deviations_;
  std::vector<CablingFault> faults_;
};

}  // namespace

std::vector<CablingFault> FindCablingFaults(const std::vector<FabricNode>& nodes, const Wiring& wiring,
                                            const Units& units) {
  return CablingFaults(nodes, wiring, units).Run();
}

}  // namespace heddle::topology
