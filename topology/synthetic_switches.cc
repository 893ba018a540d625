#include "topology/synthetic_switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "topology/synthetic_names.h"

namespace heddle::topology {
namespace {

// Bandwidth up of a switch with that much down, as BuildFabric does it for a leaf.
std::int64_t Up(std::int64_t down_gbps, int percent) {
  return std::clamp<std::int64_t>(down_gbps * 100 / (percent > 0 ? percent : 100), 1, INT32_MAX);
}

class Switches {
 public:
  Switches(const SyntheticLine& line, const SyntheticTree& tree) : line_(line), tree_(tree) {
    const HostGroup& last = tree.groups.back();
    spines_.resize(At(last[LevelKind::kPod] + 1, 0));
    superspines_.resize(At(last[LevelKind::kZone] + 1, 0));
  }

  // Leaves by name, then spines and superspines with something above them, by number.
  std::vector<SwitchDeclaration> Declare() && {
    if (line_.spines == 0) return {};
    DeclareLeaves();
    std::sort(declared_.begin(), declared_.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const Bundle& spines : spines_) {
      DeclareBundle(spines, line_.spine_percent);
      if (line_.superspines == 0 || spines.names.empty()) continue;
      superspines_[spines.zone].down_gbps +=
          Up(spines.down_gbps, line_.spine_percent) / line_.superspines * line_.spines;
    }
    for (const Bundle& superspines : superspines_) DeclareBundle(superspines, line_.superspine_percent);
    return std::move(declared_);
  }

 private:
  // The spines of one pod, or the superspines of one zone, on one plane.
  struct Bundle {
    std::vector<std::string> names;
    std::vector<std::string> uplinks;
    std::int64_t down_gbps = 0;  // of each
    std::size_t zone = 0;        // of spines: position in superspines_
  };

  std::size_t At(int container, int plane) const {
    return std::size_t(container) * std::size_t(line_.planes) + std::size_t(plane);
  }

  // "spine-4", "spine-4-p1"; numbers go on over containers.
  std::vector<std::string> NamesOf(std::string_view tier, int container, int count, int plane) const {
    std::vector<std::string> names;
    names.reserve(std::size_t(count));
    for (int i = 0; i < count; ++i) {
      names.push_back(fmt::format("{}-{}{}", tier, container * count + i,
                                  line_.planes > 1 ? fmt::format("-p{}", plane) : ""));
    }
    return names;
  }

  Bundle& SpinesOf(const HostGroup& group, int plane) {
    Bundle& spines = spines_[At(group[LevelKind::kPod], plane)];
    if (!spines.names.empty()) return spines;
    spines.names = NamesOf("spine", group[LevelKind::kPod], line_.spines, plane);
    spines.zone = At(group[LevelKind::kZone], plane);
    const std::vector<std::string> cores = NamesOf("core", group[LevelKind::kSite], line_.cores, plane);
    if (line_.superspines == 0) {
      spines.uplinks = cores;
      return spines;
    }
    Bundle& superspines = superspines_[spines.zone];
    superspines.names = NamesOf("superspine", group[LevelKind::kZone], line_.superspines, plane);
    superspines.uplinks = cores;
    spines.uplinks = superspines.names;
    return spines;
  }

  void DeclareLeaves() {
    std::vector<SyntheticLeaf> leaves;
    for (std::size_t g = 0; g < tree_.groups.size(); ++g) {
      const HostGroup& group = tree_.groups[g];
      const int unit = group[LevelKind::kUnit];
      std::vector<SyntheticLeaf> more = LeavesOfUnit(line_, group);
      if (g == 0 || tree_.groups[g - 1][LevelKind::kUnit] != unit) {
        leaves = std::move(more);
      } else {  // racks of one unit share its leaves
        for (std::size_t l = 0; l < leaves.size(); ++l) leaves[l].down_gbps += more[l].down_gbps;
      }
      if (g + 1 < tree_.groups.size() && tree_.groups[g + 1][LevelKind::kUnit] == unit) continue;
      for (SyntheticLeaf& leaf : leaves) {
        Bundle& spines = SpinesOf(group, leaf.plane);
        spines.down_gbps += Up(leaf.down_gbps, line_.leaf_percent) / line_.spines;
        declared_.push_back({std::move(leaf.name), spines.names, 0});
      }
    }
  }

  void DeclareBundle(const Bundle& bundle, int percent) {
    if (bundle.uplinks.empty()) return;
    for (const std::string& name : bundle.names) {
      declared_.push_back({name, bundle.uplinks, int(Up(bundle.down_gbps, percent))});
    }
  }

  const SyntheticLine& line_;
  const SyntheticTree& tree_;
  std::vector<Bundle> spines_;       // by pod and plane
  std::vector<Bundle> superspines_;  // by zone and plane
  std::vector<SwitchDeclaration> declared_;
};

void DeclareGroups(const SyntheticLine& line, const SyntheticTree& tree, Declaration& declaration) {
  declaration.shape = Shape::kDragonfly;
  declaration.groups.resize(std::size_t(tree.groups.back()[LevelKind::kGroup]) + 1);
  for (std::size_t g = 0; g < declaration.groups.size(); ++g) {
    declaration.groups[g].name = fmt::format("group-{}", g);
  }
  for (const HostGroup& hosts : tree.groups) {
    auto& leaves = declaration.groups[std::size_t(hosts[LevelKind::kGroup])].leaves;
    for (SyntheticLeaf& leaf : LeavesOfUnit(line, hosts)) leaves.push_back(std::move(leaf.name));
  }
  for (DragonflyGroup& group : declaration.groups) std::sort(group.leaves.begin(), group.leaves.end());
}

void DeclareTorus(const SyntheticLine& line, const SyntheticTree& tree, Declaration& declaration) {
  declaration.shape = Shape::kTorus3d;
  declaration.torus_size = line.torus;
  const auto [x, y, z] = line.torus;
  const SyntheticNames names(line, tree);
  for (int n = 0; n < tree.nodes; ++n) {
    const int at = n % (x * y * z);
    declaration.torus.push_back({names.Of(n), at / (y * z) % x, at / z % y, at % z});
  }
}

}  // namespace

std::vector<SyntheticLeaf> LeavesOfUnit(const SyntheticLine& line, const HostGroup& group) {
  std::vector<SyntheticLeaf> leaves;
  const HostKind kind = line.KindOf(group[LevelKind::kUnit]);
  if (line.layout == Layout::kTorus || line.transport == Transport::kEfa || kind.nics == 0) return leaves;
  const int ports = line.ports_per_nic(), rate = kind.rate_gbps / ports;
  if (group[LevelKind::kTor] != kNone) {
    for (int p = 0; p < ports; ++p) {
      leaves.push_back({fmt::format("tor-{}{}", group[LevelKind::kTor],
                                    !line.dual_tor ? ""
                                    : p == 0       ? "a"
                                                   : "b"),
                        0, 1LL * group.hosts * kind.nics * rate});
    }
    return leaves;
  }
  for (int rail = 0; rail < kind.rails; ++rail) {
    int nics = 0;
    for (int nic = 0; nic < kind.nics; ++nic) nics += nic * kind.rails / kind.nics == rail ? 1 : 0;
    for (int plane = 0; plane < line.planes; ++plane) {
      leaves.push_back({fmt::format("su{}-r{}{}", group[LevelKind::kUnit], rail,
                                    line.planes > 1 ? fmt::format("-p{}", plane) : ""),
                        plane, 1LL * group.hosts * nics * rate});
    }
  }
  return leaves;
}

Declaration DeclareSwitches(const SyntheticLine& line, const SyntheticTree& tree) {
  Declaration declaration;
  declaration.oversubscription_percent = line.leaf_percent;
  if (line.rail_only) declaration.shape = Shape::kRailOnly;
  // With a core above its spines it is a fat tree, which the fabric finds by itself.
  if (line.layout == Layout::kTor && line.superspines == 0 && line.cores == 0)
    declaration.shape = Shape::kToR;
  declaration.switches = Switches(line, tree).Declare();
  if (line.layout == Layout::kDragonfly) DeclareGroups(line, tree, declaration);
  if (line.layout == Layout::kTorus) DeclareTorus(line, tree, declaration);
  return declaration;
}

}  // namespace heddle::topology
