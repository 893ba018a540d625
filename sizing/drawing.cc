#include "sizing/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "topology/synthetic_line.h"

namespace heddle::sizing {
namespace {

// "16", or "16,16,15" where they differ.
std::string Counts(const std::vector<int>& counts) {
  const bool alike =
      std::all_of(counts.begin(), counts.end(), [&](int one) { return one == counts.front(); });
  return alike ? std::to_string(counts.front()) : fmt::format("{}", fmt::join(counts, ","));
}

// Downlink : uplink bandwidth as it was built, which may be better than what was asked for.
void AddRatios(const Design& design, std::string& line) {
  const Tree& tree = design.tree;
  if (tree.tiers < 2) return;
  const int leaf = std::max(100, tree.leaf_down * 100 / tree.leaf_up);
  const int core = tree.tiers == 3 ? std::max(100, tree.spine_down * 100 / tree.spine_up) : 100;
  if (design.tree.tiers == 3 && core > 100) {
    line +=
        fmt::format(" oversub:su={}.{:02},spine={}.{:02}", leaf / 100, leaf % 100, core / 100, core % 100);
  } else if (leaf > 100) {
    line += fmt::format(" oversub:{}", leaf);
  }
}

// "spine-17-p1": 17, and what stands behind the number.
bool SplitName(std::string_view name, std::string_view tier, int& number, std::string_view& rest) {
  if (!name.starts_with(tier) || name.size() <= tier.size() || name[tier.size()] != '-') return false;
  name.remove_prefix(tier.size() + 1);
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  rest = name.substr(std::size_t(end - name.data()));
  return error == std::errc{};
}

bool Differ(const std::vector<int>& counts) {
  return std::any_of(counts.begin(), counts.end(), [&](int one) { return one != counts.front(); });
}

// The line has one ratio for all switches of a tier. Where units or pods differ in size those of the smaller ones have
// as many uplinks as the others, for fewer ports below.
void DeclareUplinks(const Design& design, topology::Declaration& declaration) {
  const Tree& tree = design.tree;
  if (tree.tiers < 2 || !(Differ(tree.unit_nodes) || Differ(tree.pod_units))) return;
  for (topology::SwitchDeclaration& declared : declaration.switches) {
    int number = 0;
    std::string_view plane;
    const bool spine = SplitName(declared.name, "spine", number, plane);
    if (!declared.uplinks.empty())
      declared.uplink_gbps = (spine ? tree.spine_up : tree.leaf_up) * design.link_gbps;
  }
}

}  // namespace

base::Result<std::string> LineOf(const Design& design) {
  const Tree& tree = design.tree;
  const MachineType& machine = *design.machine;
  const bool tor =
      design.rails == 1 && design.request.planes == 1 && design.request.wiring != Wiring::kRailOnly;
  const bool one_switch = tree.tiers == 1 && design.request.wiring != Wiring::kRailOnly;
  std::string line;
  if (tree.pod_units.size() > 1) line += fmt::format("pod:{} ", tree.pod_units.size());
  line += fmt::format("{}:{} node:{} gpu:{} nic:{}",
                      tor || (one_switch && design.request.planes == 1) ? "tor" : "su",
                      Counts(tree.pod_units), Counts(tree.unit_nodes), machine.gpus, machine.nics);
  if (!tor && !(one_switch && design.request.planes == 1))
    line += fmt::format(" rail:{}", one_switch ? 1 : design.rails);
  if (design.request.planes > 1) line += fmt::format(" plane:{}", design.request.planes);
  if (design.request.wiring == Wiring::kRailOnly) {
    line += " railonly";
  } else {
    line += fmt::format(" spine:{}", tree.tiers > 1 ? tree.spines_per_pod : 0);
    if (tree.tiers == 3) line += fmt::format(" core:{}", tree.cores());
  }
  line += fmt::format(" rate:{}", machine.nic_gbps);
  AddRatios(design, line);
  line += fmt::format(" transport:{} machine:{}", topology::TransportWord(design.request.transport),
                      machine.word);
  if (machine.domain_nodes > 1) line += fmt::format(" nvlink:{}", machine.domain_nodes);
  return topology::CanonicalSynthetic(line);
}

base::Result<topology::Synthetic> Draw(const Design& design) {
  ASSIGN_OR_RETURN(const std::string line, LineOf(design));
  ASSIGN_OR_RETURN(topology::Synthetic made, topology::ParseSynthetic(line));
  DeclareUplinks(design, made.declaration);
  if (design.tree.tiers < 3) return made;
  const int spines = design.tree.spines_per_pod, each = design.tree.cores_per_spine;
  for (topology::SwitchDeclaration& declared : made.declaration.switches) {
    int number = 0;
    std::string_view plane;
    if (!SplitName(declared.name, "spine", number, plane)) continue;
    declared.uplinks.clear();
    for (int core = 0; core < each; ++core)
      declared.uplinks.push_back(fmt::format("core-{}{}", number % spines * each + core, plane));
  }
  return made;
}

}  // namespace heddle::sizing
