#include "switches/fabric_ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <numeric>

namespace heddle::switches {
namespace {

// Switches that hang together by cables of which both ends say so.
class Groups {
 public:
  Groups(std::span<const SwitchLink> links, std::size_t switches) : above_(switches) {
    std::iota(above_.begin(), above_.end(), 0);
    for (const SwitchLink& link : links) {
      if (link.both_say_so) above_[std::size_t(Of(link.upper_at))] = Of(link.lower_at);
    }
  }
  int Of(int at) {
    while (above_[std::size_t(at)] != at) {
      int& above = above_[std::size_t(at)];
      above = above_[std::size_t(above)];
      at = above;
    }
    return at;
  }

 private:
  std::vector<int> above_;  // of its group, by number; itself = it stands for the group
};

std::string WhyDoubted(const SwitchLink& link) {
  return fmt::format(
      "{} {} and {} {} are one cable only where each sees the other by LLDP, and one of them does not, or "
      "somebody says otherwise: `show lldp table` on both",
      link.lower, link.lower_port, link.upper, link.upper_port);
}

std::string WhyNoPolicy(const std::set<std::string>& policies) {
  if (policies.empty())
    return "no LosslessPolicy alone selects the port of any host below it, and it is to have that of its "
           "hosts";
  return fmt::format(
      "hosts below it have several LosslessPolicies ({}), and nobody says which it is to have: `kubectl "
      "heddle "
      "switch render --fabric-port` renders it by one",
      fmt::join(policies, ", "));
}

}  // namespace

std::vector<FabricPorts> FindFabricPorts(std::span<const SwitchLink> links,
                                         std::span<const std::set<std::string>> policies_at) {
  Groups groups(links, policies_at.size());
  std::vector<std::set<std::string>> policies(policies_at.size());  // of a group
  for (std::size_t at = 0; at < policies_at.size(); ++at)
    policies[std::size_t(groups.Of(int(at)))].insert(policies_at[at].begin(), policies_at[at].end());
  std::vector<FabricPorts> found(policies_at.size());
  for (const SwitchLink& link : links) {
    FabricPorts &lower = found[std::size_t(link.lower_at)], &upper = found[std::size_t(link.upper_at)];
    const std::set<std::string>& wanted = policies[std::size_t(groups.Of(link.lower_at))];
    if (link.both_say_so && wanted.size() == 1) {
      lower.ports[*wanted.begin()].insert(link.lower_port);
      upper.ports[*wanted.begin()].insert(link.upper_port);
      continue;
    }
    const std::string why = link.both_say_so ? WhyNoPolicy(wanted) : WhyDoubted(link);
    lower.left_out.emplace(link.lower_port, why);
    upper.left_out.emplace(link.upper_port, why);
  }
  return found;
}

}  // namespace heddle::switches
