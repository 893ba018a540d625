#include "switches/cables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "formats/printable.h"
#include "switches/cable_join.h"

namespace heddle::switches {

ComparedCables CompareBothEnds(std::span<const crds::NodeTopology* const> nodes,
                               std::span<const KnownSwitch> switches, const std::set<std::string>& silent) {
  CableJoin join;
  join.Begin(nodes, switches, silent);
  std::map<std::string, int> without;
  std::set<std::string> bare;
  const std::vector<NamedCable>& names = join.compared().names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NamedCable& name = names[i];
    if (name.at < 0 && name.twin < 0 && !name.leaf.empty() && !join.compared().doubled.contains(name.leaf))
      ++without[name.leaf];
    const formats::SonicPort* const there = join.PortAt(i);
    if (there != nullptr && !there->bare.empty())
      bare.insert(fmt::format("{} {} {}, and nothing is known of its settings", formats::Printable(name.leaf),
                              there->name, there->bare));
  }
  ComparedCables compared = std::move(join).Take();
  compared.without = std::move(without);
  compared.bare = std::move(bare);
  return compared;
}

const lossless::CableFinding* WorstOf(const lossless::CableOutcome& outcome) {
  const bool any =
      !outcome.findings.empty() && outcome.findings.front().weight != lossless::LosslessVerdict::kLossless;
  return any ? &outcome.findings.front() : nullptr;
}

const formats::SonicPort* PortOf(const formats::SonicConfig& config, std::string_view name) {
  const auto by = [&](auto matches) -> const formats::SonicPort* {
    for (const auto* ports : {&config.ports, &config.bare}) {
      const auto found = std::find_if(ports->begin(), ports->end(), matches);
      if (found != ports->end()) return &*found;
    }
    return nullptr;
  };
  if (const auto* port = by([&](const formats::SonicPort& one) { return one.name == name; })) return port;
  return by([&](const formats::SonicPort& one) { return !one.alias.empty() && one.alias == name; });
}

}  // namespace heddle::switches
