#include "topology/declared_leaves.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>

namespace heddle::topology {
namespace {

constexpr std::string_view kRail = "{rail}";
constexpr std::string_view kPlane = "{plane}";
constexpr std::string_view kUnit = "{unit}";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Takes the whole number at the front of `text`, all of its digits.
std::optional<int> TakeNumber(std::string_view& text) {
  std::size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (digits == 0 || error != std::errc()) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

// Whether all of `name` is what `pattern` says; `role` is then what stood for the words. {unit} is there once, so
// this looks at no character more often than the name is long.
bool Matches(std::string_view pattern, std::string_view name, LeafRole& role) {
  while (!pattern.empty()) {
    if (pattern.starts_with(kRail) || pattern.starts_with(kPlane)) {
      const bool is_rail = pattern.starts_with(kRail);
      const std::optional<int> number = TakeNumber(name);
      if (!number) return false;
      (is_rail ? role.rail : role.plane) = *number;
      pattern.remove_prefix(is_rail ? kRail.size() : kPlane.size());
    } else if (pattern.starts_with(kUnit)) {
      pattern.remove_prefix(kUnit.size());
      for (std::size_t length = 1; length <= name.size(); ++length) {
        LeafRole rest = role;
        if (!Matches(pattern, name.substr(length), rest)) continue;
        role = rest;
        role.unit = name.substr(0, length);
        return true;
      }
      return false;
    } else {
      if (name.empty() || name.front() != pattern.front()) return false;
      pattern.remove_prefix(1);
      name.remove_prefix(1);
    }
  }
  return name.empty();
}

bool IsRail(int rail) {
  return rail >= 0 && rail <= kMaxRail;
}

using ByName = std::map<std::string_view, const SwitchDeclaration*>;

LeafRole RoleOf(const Declaration& declaration, const ByName& switches, std::string_view leaf) {
  LeafRole role;
  for (const std::string& pattern : declaration.leaf_names) {
    LeafRole found;
    if (!WhyNotLeafPattern(pattern).empty() || !Matches(pattern, leaf, found)) continue;
    found.rail -= declaration.first_rail;
    if (!IsRail(found.rail)) continue;
    role = found;
    break;
  }
  const auto own = switches.find(leaf);
  if (own != switches.end() && IsRail(own->second->rail)) role.rail = own->second->rail;
  return role;
}

}  // namespace

std::string WhyNotLeafPattern(std::string_view pattern) {
  int rails = 0, planes = 0, units = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest.front() != '{') continue;
    if (rest.starts_with(kRail)) {
      ++rails;
    } else if (rest.starts_with(kPlane)) {
      ++planes;
    } else if (rest.starts_with(kUnit)) {
      ++units;
    } else {
      return "{rail}, {plane} and {unit} are all the words in braces that a pattern may have";
    }
  }
  if (rails != 1) return "a pattern has {rail} once, where the number of the rail stands in the name";
  if (planes > 1 || units > 1) return "a pattern has {plane} and {unit} once at most";
  return {};
}

LeafRole DeclaredRole(const Declaration& declaration, std::string_view leaf) {
  ByName switches;
  for (const SwitchDeclaration& one : declaration.switches) switches.emplace(one.name, &one);
  return RoleOf(declaration, switches, leaf);
}

std::vector<LeafRole> DeclaredRoles(const Declaration& declaration, const std::vector<std::string>& leaves) {
  ByName switches;
  for (const SwitchDeclaration& one : declaration.switches) switches.emplace(one.name, &one);
  std::vector<LeafRole> roles;
  roles.reserve(leaves.size());
  for (const std::string& leaf : leaves) roles.push_back(RoleOf(declaration, switches, leaf));
  return roles;
}

}  // namespace heddle::topology
