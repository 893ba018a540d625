#include "topology/synthetic_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::topology {
namespace {

std::optional<int> Number(std::string_view text) {
  if (text.empty() || text.size() > 7 || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  int value = 0;
  for (const char digit : text) value = value * 10 + (digit - '0');
  return value;
}

}  // namespace

SyntheticNames::SyntheticNames(const SyntheticLine& line, const SyntheticTree& tree)
    : groups_(tree.groups), racks_(line.layout == Layout::kRacks), nodes_(tree.nodes) {
  for (const HostGroup& group : groups_) most_hosts_ = std::max(most_hosts_, group.hosts);
}

std::string SyntheticNames::Padded(int number, int count) {
  return fmt::format("{:0{}}", number, std::max<int>(2, int(fmt::format_int(count - 1).size())));
}

std::string SyntheticNames::Of(const HostGroup& group, int host) const {
  if (!racks_) return "node-" + Padded(group.first + host, nodes_);
  return fmt::format("rack-{}-tray-{}", group[LevelKind::kRack], Padded(host, most_hosts_));
}

std::string SyntheticNames::Of(int node) const {
  const HostGroup& group = GroupOf(node);
  return Of(group, node - group.first);
}

const HostGroup& SyntheticNames::GroupOf(int node) const {
  const auto after =
      std::upper_bound(groups_.begin(), groups_.end(), node,
                       [](int number, const HostGroup& group) { return number < group.first; });
  return *(after - 1);
}

std::optional<int> SyntheticNames::Find(std::string_view name) const {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<int> number = Number(name.substr(dash + 1));
  if (!number) return std::nullopt;
  std::string_view head = name.substr(0, dash);
  const HostGroup* group = nullptr;
  int host = *number;
  if (!racks_ && head == "node" && *number < nodes_) {
    group = &GroupOf(*number);
    host -= group->first;
  } else if (racks_ && head.starts_with("rack-") && head.ends_with("-tray") && head.size() > 10) {
    const std::string_view digits = head.substr(5, head.size() - 10);
    const std::optional<int> rack = Number(digits);
    const bool plain = digits.size() == 1 || !digits.starts_with('0');
    if (rack && plain && std::size_t(*rack) < groups_.size()) group = &groups_[std::size_t(*rack)];
  }
  if (group == nullptr || host >= group->hosts) return std::nullopt;
  // Fewer digits than it has are fine, more are another name.
  if (name.size() > Of(*group, host).size()) return std::nullopt;
  return group->first + host;
}

}  // namespace heddle::topology
