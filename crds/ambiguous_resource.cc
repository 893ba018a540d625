#include "crds/ambiguous_resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "topology/node.h"

namespace heddle::crds {
namespace {

// Of a name with {rail} what stands before it.
std::string_view StemOf(const RdmaResource& entry) {
  return std::string_view(entry.name).substr(0, entry.name.size() - kRailMark.size());
}

// A rail as names have it: no sign, no 0 in front; -1 = it is none.
int RailOf(std::string_view digits) {
  if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return -1;
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  int rail = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rail);
  return error == std::errc() && rail <= topology::kMaxRail ? rail : -1;
}

bool ComesTo(const RdmaResource& entry, std::string_view name) {
  if (!entry.name.ends_with(kRailMark)) return entry.name == name;
  const std::string_view stem = StemOf(entry);
  if (!name.starts_with(stem)) return false;
  const int rail = RailOf(name.substr(stem.size()));
  return rail >= 0 && (entry.rails.empty() ||
                       std::find(entry.rails.begin(), entry.rails.end(), rail) != entry.rails.end());
}

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
      "{} and {}{} of one policy come to this name: rename one, or give one with {{rail}} a list of rails "
      "that leaves "
      "this name out",
      entries[0], entries[1], more);
}

AmbiguousResource FirstAmbiguous(const RdmaDevicePolicySpec& spec) {
  for (const RdmaResource& entry : spec.resources) {
    const bool by_rail = entry.name.ends_with(kRailMark);
    for (int rail = 0; rail <= (by_rail ? topology::kMaxRail : 0); ++rail) {
      std::string name = by_rail ? std::string(StemOf(entry)) + std::to_string(rail) : entry.name;
      if (!ComesTo(entry, name)) continue;
      std::vector<std::string> entries = EntriesOf(spec, name);
      if (entries.size() > 1) return {std::move(name), std::move(entries)};
    }
  }
  return {};
}

}  // namespace heddle::crds
