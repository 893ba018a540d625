#include "topology/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace heddle::topology {
namespace {

using Declared = std::map<std::string_view, const SwitchDeclaration*>;

Declared ByName(const Declaration& declaration) {
  Declared by_name;
  // Mostly they come sorted.
  for (const SwitchDeclaration& declared : declaration.switches) {
    by_name.emplace_hint(by_name.end(), declared.name, &declared);
  }
  return by_name;
}

void ReportDoubled(const Declared& by_name, Fabric& fabric) {
  if (by_name.size() == fabric.declaration.switches.size()) return;
  std::map<std::string_view, int> times;
  for (const SwitchDeclaration& declared : fabric.declaration.switches) ++times[declared.name];
  for (const auto& [name, count] : times) {
    if (count < 2) continue;
    fabric.assumptions.push_back(
        fmt::format("switch {} is declared {} times: the first declaration is used", name, count));
  }
}

const std::vector<std::string>& UplinksIn(const Declared& declared, std::string_view name) {
  static const std::vector<std::string> kNothing;
  const auto found = declared.find(name);
  return found == declared.end() ? kNothing : found->second->uplinks;
}

// Whether a declared switch leads up to one that hosts were seen on.
bool LeadsToHosts(const Declared& declared, const Fabric& fabric) {
  const std::vector<std::string>* before = nullptr;
  for (const auto& [name, one] : declared) {
    // Neighbours mostly lead up to the same switches.
    if (before != nullptr && one->uplinks == *before) continue;
    before = &one->uplinks;
    for (const std::string& up : *before) {
      if (fabric.FindLeaf(up) != kNone) return true;
    }
  }
  return false;
}

using SwitchNames = std::set<std::string_view>;

// One that leads up to what plain leaves lead up to is a leaf beside them, and it is the line that puts it above one
// of them that is wrong.
void DropLeavesBeside(const Declared& declared, const Fabric& fabric, SwitchNames& spines) {
  SwitchNames over_leaves;
  for (const Leaf& leaf : fabric.leaves) {
    if (spines.contains(leaf.name)) continue;
    for (const std::string_view up : UplinksIn(declared, leaf.name)) over_leaves.insert(up);
  }
  std::erase_if(spines, [&](std::string_view name) {
    const auto& uplinks = UplinksIn(declared, name);
    return std::any_of(uplinks.begin(), uplinks.end(),
                       [&](const std::string& up) { return over_leaves.contains(up); });
  });
}

// Switches that hosts were seen on and that leaves of other hosts lead up to. Taken for leaves nothing would lead over
// them, so that one cable in the wrong switch would part all leaves below. In a circle, and above one, nobody knows who
// is above whom: there hosts make a leaf.
SwitchNames FindSpinesWithHosts(const Declared& declared, const Fabric& fabric) {
  SwitchNames found;
  if (!LeadsToHosts(declared, fabric)) return found;
  std::map<std::string_view, int> below;  // uplinks that lead here, of switches that are not looked at yet
  std::vector<std::string_view> reached;
  for (const Leaf& leaf : fabric.leaves) {
    below.emplace(leaf.name, 0);
    reached.push_back(leaf.name);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const std::string_view up : UplinksIn(declared, reached[i])) {
      const auto [entry, fresh] = below.try_emplace(up, 0);
      ++entry->second;
      if (fresh) reached.push_back(up);
    }
  }
  std::vector<std::string_view> ready;
  for (const auto& [name, count] : below) {
    if (count == 0) ready.push_back(name);
  }
  while (!ready.empty()) {
    const std::string_view name = ready.back();
    ready.pop_back();
    for (const std::string_view up : UplinksIn(declared, name)) {
      if (--below.at(up) > 0) continue;
      ready.push_back(up);
      if (fabric.FindLeaf(up) != kNone) found.insert(up);
    }
  }
  DropLeavesBeside(declared, fabric, found);
  return found;
}

// Whether the rails of most hosts have different leaves. On a plain ToR, single or dual, all rails have the
// same.
bool RailsHaveLeaves(const Fabric& fabric, const Units& units) {
  std::vector<std::map<int, std::set<LeafId>>> rails(fabric.units.size());
  for (const Expectation& e : units.expectations) rails[std::size_t(e.unit)][e.slot.rail].insert(e.leaf);
  std::size_t apart = 0, together = 0;
  for (std::size_t u = 0; u < rails.size(); ++u) {
    bool same = true;
    for (const auto& [rail, leaves] : rails[u]) same = same && leaves == rails[u].begin()->second;
    (same ? together : apart) += fabric.units[u].nodes.size();
  }
  return apart > together;
}

// Tiers are counted from the leaves that hosts were seen on, so a declared switch that nothing hangs on is
// left out.
class Tiers {
 public:
  Tiers(const Declared& declared, const SwitchNames& spines_with_hosts, const Fabric& fabric)
      : declared_(declared) {
    std::set<std::string_view> level;
    for (const Leaf& leaf : fabric.leaves) {
      if (!spines_with_hosts.contains(leaf.name)) level.insert(leaf.name);
    }
    for (int tier = 1; !level.empty(); ++tier) {
      for (const std::string_view name : level) tier_.emplace(name, tier);
      std::set<std::string_view> next;
      const std::vector<std::string>* before = nullptr;
      for (const std::string_view name : level) {
        // Neighbours mostly lead up to the same switches.
        const std::vector<std::string>& uplinks = UplinksIn(declared_, name);
        if (before != nullptr && uplinks == *before) continue;
        before = &uplinks;
        for (const std::string_view up : uplinks) {
          if (!tier_.contains(up)) next.insert(up);
        }
      }
      level = std::move(next);
    }
  }

  // Sorted by tier, then name.
  std::vector<Spine> Spines() {
    std::set<std::pair<int, std::string_view>> order;
    for (const auto& [name, tier] : tier_) {
      if (tier > 1) order.emplace(tier, name);
    }
    std::vector<Spine> spines;
    for (const auto& [tier, name] : order) {
      index_.emplace(name, std::int32_t(spines.size()));
      spines.push_back(Spine{std::string(name), tier, {}});
    }
    for (Spine& spine : spines) spine.uplinks = UplinkIndexes(spine.name, spine.tier);
    return spines;
  }

  // Requires: Spines() was called.
  std::vector<std::int32_t> UplinkIndexes(std::string_view name, int tier) {
    const std::vector<std::string>& uplinks = UplinksIn(declared_, name);
    if (last_.uplinks != nullptr && last_.tier == tier && uplinks == *last_.uplinks) return last_.found;
    const std::size_t odd_before = odd_.size();
    std::vector<std::int32_t> found;
    for (const std::string_view up : uplinks) {
      if (tier_.at(up) == tier + 1) {
        found.push_back(index_.at(up));
      } else {
        odd_.push_back(fmt::format(
            "{} is declared to lead up to {}, which is not one tier above it: not used", name, up));
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    if (odd_.size() == odd_before) last_ = {&uplinks, tier, found};
    return found;
  }
  // Requires: Spines() was called. Hosts on a spine are as if on a leaf of their own below it, and of those on a higher
  // switch the way down is not followed.
  std::vector<std::int32_t> SpinesOfLeaf(std::string_view name) {
    const int tier = tier_.at(name);
    if (tier == 1) return UplinkIndexes(name, tier);
    return tier == 2 ? std::vector<std::int32_t>{index_.at(name)} : std::vector<std::int32_t>{};
  }
  const std::vector<std::string>& odd() const { return odd_; }

 private:
  // What was answered last: neighbours mostly lead up to the same switches.
  struct Answer {
    const std::vector<std::string>* uplinks = nullptr;
    int tier = 0;
    std::vector<std::int32_t> found;
  };

  const Declared& declared_;
  Answer last_;
  std::map<std::string_view, int> tier_;
  std::map<std::string_view, std::int32_t> index_;
  std::vector<std::string> odd_;
};

void AddGroups(Fabric& fabric) {
  const std::vector<DragonflyGroup>& groups = fabric.declaration.groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& name : groups[g].leaves) {
      const LeafId leaf = fabric.FindLeaf(name);
      if (leaf == kNone) continue;
      int& group = fabric.leaves[std::size_t(leaf)].group;
      if (group == kNone) {
        group = int(g);
      } else {
        fabric.assumptions.push_back(
            fmt::format("leaf {} is declared in dragonfly group {} and again in {}: the first is used", name,
                        groups[std::size_t(group)].name, groups[g].name));
      }
    }
  }
  if (fabric.shape != Shape::kDragonfly) return;
  for (const Leaf& leaf : fabric.leaves) {
    if (leaf.group != kNone) continue;
    fabric.assumptions.push_back(
        fmt::format("leaf {} is in no declared dragonfly group: it is taken for one of its own", leaf.name));
  }
}

// At least 1: 0 would say that there is no way up.
int UpGbps(const Declared& declared, std::string_view name, int down_gbps, const Declaration& declaration) {
  const auto said = declared.find(name);
  if (said != declared.end() && said->second->uplink_gbps > 0) return said->second->uplink_gbps;
  const int percent = declaration.oversubscription_percent > 0 ? declaration.oversubscription_percent : 100;
  return int(std::clamp<std::int64_t>(std::int64_t{down_gbps} * 100 / percent, 1, INT32_MAX));
}

void AddBandwidthUp(const Declared& declared, const SwitchNames& spines_with_hosts, Fabric& fabric) {
  for (Leaf& leaf : fabric.leaves) {
    if (spines_with_hosts.contains(leaf.name)) {
      leaf.up_gbps = std::max(1, leaf.down_gbps);  // its hosts are at the spine already
      continue;
    }
    const bool is_declared = declared.contains(leaf.name);
    const bool reaches = fabric.shape == Shape::kDragonfly || !leaf.spines.empty() ||
                         (!is_declared && fabric.shape != Shape::kRailOnly && fabric.leaves.size() > 1);
    if (reaches) leaf.up_gbps = UpGbps(declared, leaf.name, leaf.down_gbps, fabric.declaration);
  }
}

// An even share of `up_gbps` to each of the switches above.
void ShareOut(int up_gbps, const std::vector<std::int32_t>& above, Fabric& fabric) {
  for (const std::int32_t spine : above) {
    int& down = fabric.spines[std::size_t(spine)].down_gbps;
    down = std::min(kMaxGbps, down + std::min(kMaxGbps, up_gbps / int(above.size())));
  }
}

// Spines are sorted by tier, so all that is below one is known before it.
void AddBandwidthOfSpines(const Declared& declared, Fabric& fabric) {
  for (const Leaf& leaf : fabric.leaves) ShareOut(leaf.up_gbps, leaf.spines, fabric);
  for (Spine& spine : fabric.spines) {
    if (spine.uplinks.empty()) continue;
    spine.up_gbps = UpGbps(declared, spine.name, spine.down_gbps, fabric.declaration);
    ShareOut(spine.up_gbps, spine.uplinks, fabric);
  }
}

// Leaves that nobody declared reach the others by assumption; where people did declare leaves, they are also
// faults.
void ReportUndeclared(const Declared& declared, const SwitchNames& spines_with_hosts, const Wiring& wiring,
                      Fabric& fabric) {
  std::vector<const Leaf*> undeclared;
  for (const Leaf& leaf : fabric.leaves) {
    if (!declared.contains(leaf.name) && !spines_with_hosts.contains(leaf.name)) undeclared.push_back(&leaf);
  }
  const bool people_declare_leaves = undeclared.size() < fabric.leaves.size();
  const bool assumes = fabric.leaves.size() > 1 && !undeclared.empty() && fabric.shape != Shape::kRailOnly &&
                       fabric.shape != Shape::kDragonfly;
  if (assumes && !people_declare_leaves) {
    fabric.assumptions.push_back(fmt::format(
        "no switch above the {} leaves is declared: they are taken to reach each other over one tier of "
        "spines",
        fabric.leaves.size()));
  } else if (assumes) {
    fabric.assumptions.push_back(
        fmt::format("leaf {}{} has no declared uplinks: taken to reach the others over the highest tier",
                    undeclared.front()->name,
                    undeclared.size() > 1 ? fmt::format(" (and {} more)", undeclared.size() - 1) : ""));
  }
  if (!people_declare_leaves || undeclared.empty()) return;
  std::set<LeafId> to_report;
  for (const Leaf* leaf : undeclared) to_report.insert(LeafId(leaf - fabric.leaves.data()));
  for (const Cable& cable : wiring.cables) {
    if (to_report.erase(cable.leaf) == 0) continue;
    const Leaf& leaf = fabric.leaves[std::size_t(cable.leaf)];
    const Node& node = fabric.nodes[std::size_t(cable.node)].node;
    const Nic& nic = node.nics[std::size_t(cable.nic)];
    const NicPort& port = nic.ports[std::size_t(cable.port)];
    fabric.faults.push_back(
        CablingFault{node.name, nic.name, port.number, *port.leaf_port, "",
                     fmt::format("{} {} is cabled to {}, which is not among the declared switches", node.name,
                                 nic.name, leaf.name)});
  }
}

}  // namespace

Shape FindShape(const Fabric& fabric, const Units& units) {
  const Declaration& declaration = fabric.declaration;
  if (declaration.shape) return *declaration.shape;
  if (!declaration.torus.empty()) return Shape::kTorus3d;
  if (!declaration.groups.empty()) return Shape::kDragonfly;
  const Declared declared = ByName(declaration);
  bool all_declared = !fabric.leaves.empty(), way_up = false;
  for (const Leaf& leaf : fabric.leaves) {
    const auto found = declared.find(leaf.name);
    all_declared = all_declared && found != declared.end();
    way_up = way_up || (found != declared.end() && !found->second->uplinks.empty());
  }
  if (!RailsHaveLeaves(fabric, units)) return way_up ? Shape::kFatTree : Shape::kToR;
  return all_declared && !way_up ? Shape::kRailOnly : Shape::kRailOptimised;
}

void AddSwitches(const Wiring& wiring, Fabric& fabric) {
  const Declared declared = ByName(fabric.declaration);
  const SwitchNames spines_with_hosts = FindSpinesWithHosts(declared, fabric);
  Tiers tiers(declared, spines_with_hosts, fabric);
  fabric.spines = tiers.Spines();
  for (Leaf& leaf : fabric.leaves) leaf.spines = tiers.SpinesOfLeaf(leaf.name);
  ReportDoubled(declared, fabric);
  for (const std::string_view name : spines_with_hosts) {
    fabric.assumptions.push_back(
        fmt::format("hosts are cabled to {}, which is declared to be above leaves: it stays there", name));
  }
  for (const std::string& sentence : tiers.odd()) fabric.assumptions.push_back(sentence);
  AddGroups(fabric);
  AddBandwidthUp(declared, spines_with_hosts, fabric);
  AddBandwidthOfSpines(declared, fabric);
  ReportUndeclared(declared, spines_with_hosts, wiring, fabric);
}

}  // namespace heddle::topology
