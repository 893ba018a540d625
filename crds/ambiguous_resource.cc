#include "crds/ambiguous_resource.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/node.h"

namespace heddle::crds {
namespace {

std::vector<std::string> EntriesOf(const RdmaDevicePolicySpec& spec, std::string_view name) {
  std::vector<std::string> entries;
  for (const RdmaResource& entry : spec.resources) {
    if (ComesTo(entry, name)) entries.push_back(entry.name);
  }
  return entries;
}

}  // namespace

std::string WhyAmbiguous(const std::vector<std::string>& entries) {
  if (entries.size() < 2) return "";
  const std::string more = entries.size() > 2 ? fmt::format(" and {} more", entries.size() - 2) : "";
  return fmt::format(
      "several entries of one policy come to this name; rename one, or give one with {{rail}} a list of "
      "rails that leaves this name out: {} and {}{}",
      entries[0], entries[1], more);
}

AmbiguousResource FirstAmbiguous(const RdmaDevicePolicySpec& spec) {
  for (const RdmaResource& entry : spec.resources) {
    const std::optional<std::string_view> stem = RailStemOf(entry.name);
    for (int rail = 0; rail <= (stem ? topology::kMaxRail : 0); ++rail) {
      std::string name = stem ? std::string(*stem) + std::to_string(rail) : entry.name;
      if (!ComesTo(entry, name)) continue;
      std::vector<std::string> entries = EntriesOf(spec, name);
      if (entries.size() > 1) return {std::move(name), std::move(entries)};
    }
  }
  return {};
}

}  // namespace heddle::crds
