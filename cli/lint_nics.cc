#include "cli/lint_nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "crds/port_name.h"
#include "lossless/profiles.h"

namespace heddle::cli {
namespace {

// Of those with one name the last, of those without any all.
template <class T, class NameOf>
void KeepLast(std::vector<T>& all, const NameOf& name_of) {
  std::set<std::string> names;
  const auto earlier = std::remove_if(all.rbegin(), all.rend(), [&](const T& one) {
    const std::string name = name_of(one);
    return !name.empty() && !names.insert(name).second;
  });
  all.erase(all.begin(), earlier.base());
}

template <class Entries>
void AddPolicies(const Entries& entries, const std::string& port, std::vector<std::string>& to) {
  for (const auto& entry : entries) {
    if (std::find(entry.ports.begin(), entry.ports.end(), port) == entry.ports.end()) continue;
    if constexpr (requires { entry.policies; }) {
      to.insert(to.end(), entry.policies.begin(), entry.policies.end());
    } else if (!entry.edition.policy.empty()) {
      to.push_back(entry.edition.policy);
    }
  }
}

// The two facts that do not go together, and what to do about it. `reason`: as lossless::Render says it.
lossless::Finding FindingOf(const LintPolicy& policy, const LintPort& port, const std::string& reason) {
  const lossless::RuleAbout* about = lossless::FindRule("nic-unfit");
  lossless::Finding finding;
  finding.rule = about->id;
  finding.severity = about->severity;
  finding.where = "LosslessPolicy " + policy.name;
  finding.remedy = about->remedy;
  const lossless::Profile* profile = lossless::FindProfile(policy.resolved.profile);
  const auto& device = port.facts.device;
  const bool foreign =
      profile != nullptr && !profile->devices.empty() && !device.empty() &&
      std::find(profile->devices.begin(), profile->devices.end(), device) == profile->devices.end();
  if (!foreign) {
    finding.fact = fmt::format("the NIC's driver is {}", port.facts.driver);
    finding.contrary = reason;
    return finding;
  }
  const lossless::Profile* own = lossless::ProfileOfDevice(device);
  finding.fact =
      fmt::format("profile {} is for NICs of PCI id {}", profile->name, fmt::join(profile->devices, ", "));
  finding.contrary =
      fmt::format("this NIC is {}{}", device,
                  own == nullptr ? std::string() : fmt::format(", for which there is {}", own->name));
  return finding;
}

lossless::Finding Found(std::string_view rule, const std::string& where, std::string with, std::string fact,
                        std::string contrary) {
  const lossless::RuleAbout* about = lossless::FindRule(rule);
  lossless::Finding finding;
  finding.rule = about->id;
  finding.severity = about->severity;
  finding.where = "LosslessPolicy " + where;
  finding.with = std::move(with);
  finding.fact = std::move(fact);
  finding.contrary = std::move(contrary);
  finding.remedy = about->remedy;
  return finding;
}

// Do both say something, and not the same? What one leaves out is NCCL's own choice, and no contradiction.
bool Contradict(const lossless::InfiniBand& a, const lossless::InfiniBand& b) {
  const auto differ = [](const auto& one, const auto& other) { return one && other && *one != *other; };
  return differ(a.service_level, b.service_level) || differ(a.adaptive_routing, b.adaptive_routing);
}

void LintInfiniBand(const std::vector<LintPolicy>& policies, const std::vector<LintPort>& ports,
                    std::vector<lossless::Finding>& findings) {
  // By node, the first InfiniBand port of each policy.
  std::map<std::string_view, std::vector<std::pair<const LintPolicy*, const LintPort*>>> nodes;
  for (const LintPolicy& policy : policies) {
    const lossless::InfiniBand& says = policy.spec.policy.infiniband;
    if (says.empty()) continue;
    std::string_view last;
    int others = 0, mine = 0;
    for (const LintPort& port : ports) {
      if (!Selects(policy, port)) continue;
      if (port.facts.transport != topology::Transport::kInfiniBand) {
        ++others;
        continue;
      }
      if (mine++ == 0 || port.node != last) nodes[port.node].emplace_back(&policy, &port);
      last = port.node;
    }
    if (mine == 0 && others > 0)
      findings.push_back(Found("infiniband-nowhere", policy.name, "",
                               "infiniBand says " + lossless::Text(says),
                               fmt::format("none of the {} ports it selects here is InfiniBand", others)));
  }
  std::set<std::pair<const LintPolicy*, const LintPolicy*>> told;
  for (const auto& [node, firsts] : nodes) {
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      for (std::size_t j = i + 1; j < firsts.size(); ++j) {
        const auto& [one, here] = firsts[i];
        const auto& [other, there] = firsts[j];
        if (!Contradict(one->spec.policy.infiniband, other->spec.policy.infiniband)) continue;
        if (!told.emplace(one, other).second) continue;
        findings.push_back(
            Found("infiniband-differs", one->name, "LosslessPolicy " + other->name,
                  fmt::format("{} gets {}", here->name, lossless::Text(one->spec.policy.infiniband)),
                  fmt::format("{} gets {}", there->name, lossless::Text(other->spec.policy.infiniband))));
      }
    }
  }
}

// What two lists have in common, where an empty one stands for `absent`; of two empty ones, that.
template <class T>
std::vector<T> Common(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& absent) {
  const std::vector<T>& one = a.empty() ? absent : a;
  const std::vector<T>& other = b.empty() ? absent : b;
  std::vector<T> common;
  for (const T& value : one) {
    if (std::find(other.begin(), other.end(), value) != other.end()) common.push_back(value);
  }
  return common;
}

// The NICs that both select on any node, in words; empty = there are none, or it depends on the labels of nodes.
std::string BothSelect(const crds::LosslessPolicySpec& a, const crds::LosslessPolicySpec& b) {
  if (!Nested(a.node_selector, b.node_selector)) return {};
  const bool a_is_narrower = a.node_selector.size() >= b.node_selector.size();
  const auto& narrow = a_is_narrower ? a.node_selector : b.node_selector;
  const auto roles = Common(a.roles, b.roles, {topology::NicRole::kCompute});
  if (roles.empty()) return {};
  const bool every_rail = a.rails.empty() && b.rails.empty();
  const std::vector<int> rails = Common(a.rails, b.rails, a.rails.empty() ? b.rails : a.rails);
  if (!every_rail && rails.empty()) return {};
  std::string text = fmt::format("every {} NIC", topology::NicRoleName(roles.front()));
  if (!every_rail) text += fmt::format(" of rail {}", fmt::join(rails, ","));
  text += narrow.empty() ? " of every node" : " of nodes with";
  std::string_view comma;
  for (const auto& [key, value] : narrow) {
    text += fmt::format("{} {}={}", comma, key, value);
    comma = ",";
  }
  return text;
}

// Policies that select one port, where neither is in force then: a finding for each two.
void LintPairs(const std::vector<LintPolicy>& policies, const std::vector<LintPort>& ports,
               std::vector<lossless::Finding>& findings) {
  for (std::size_t i = 0; i < policies.size(); ++i) {
    for (std::size_t j = i + 1; j < policies.size(); ++j) {
      const LintPolicy& one = policies[i];
      const LintPolicy& other = policies[j];
      const LintPort* first = nullptr;
      int others = -1;
      for (const LintPort& port : ports) {
        if (Selects(one, port) && Selects(other, port) && ++others == 0) first = &port;
      }
      std::string both = first == nullptr ? BothSelect(one.spec, other.spec) : first->name;
      if (others > 0) both += fmt::format(" and {} more ports", others);
      if (both.empty()) continue;
      findings.push_back(Found("two-policies", one.name, "LosslessPolicy " + other.name,
                               "both select " + both, "a port has one policy"));
    }
  }
}

}  // namespace

bool Selects(const LintPolicy& policy, const LintPort& port) {
  const auto& [roles, rails] = std::tie(policy.spec.roles, policy.spec.rails);
  const bool role = roles.empty() ? port.role == topology::NicRole::kCompute
                                  : std::find(roles.begin(), roles.end(), port.role) != roles.end();
  const bool rail =
      rails.empty() || (port.rail && std::find(rails.begin(), rails.end(), *port.rail) != rails.end());
  const bool told = std::find(port.policies.begin(), port.policies.end(), policy.name) != port.policies.end();
  return role && rail && (told || policy.spec.node_selector.empty());
}

bool Nested(const std::map<std::string, std::string>& one, const std::map<std::string, std::string>& other) {
  return IsWithin(one, other) || IsWithin(other, one);
}

bool IsWithin(const std::map<std::string, std::string>& narrow,
              const std::map<std::string, std::string>& wide) {
  return std::includes(narrow.begin(), narrow.end(), wide.begin(), wide.end());
}

void KeepLastVersions(std::vector<LintPolicy>& policies, std::vector<lossless::Subject>& subjects,
                      std::vector<LintPort>& ports) {
  std::map<std::string, LintPolicy> firsts;
  std::set<std::string> moved;
  for (LintPolicy& policy : policies) {
    const LintPolicy& first = firsts.try_emplace(policy.name, policy).first->second;
    policy.generation = policy.spec == first.spec ? first.generation : 0;
    moved.erase(policy.name);  // of a version between
    if (!IsWithin(first.spec.node_selector, policy.spec.node_selector)) moved.insert(policy.name);
  }
  if (firsts.size() == policies.size()) return;
  KeepLast(policies, [](const LintPolicy& policy) { return policy.name; });
  KeepLast(subjects, [](const lossless::Subject& subject) {
    return subject.end == lossless::End::kPolicy ? subject.name : std::string();
  });
  for (LintPort& port : ports)
    std::erase_if(port.policies, [&moved](const std::string& name) { return moved.contains(name); });
}

std::vector<LintPort> PortsOf(const crds::NodeTopology& node) {
  std::vector<LintPort> ports;
  for (const topology::Nic& nic : node.status.node.nics) {
    for (const topology::NicPort& nic_port : nic.ports) {
      const std::string name = crds::PortName(nic, nic_port);
      LintPort port{
          node.name, node.name + " " + name, nic.role, nic.rail, {nic.transport, nic.pci_id, nic.driver}, {}};
      AddPolicies(node.spec.lossless, name, port.policies);
      // What its agent reports may be of a policy that selected it before, and for ever so of a dead node.
      if (port.policies.empty()) AddPolicies(node.status.lossless, name, port.policies);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::vector<lossless::Finding> LintRefusals(const std::vector<LintPolicy>& policies,
                                            const std::vector<LintRefusal>& refusals) {
  struct Refused {
    const LintRefusal* first = nullptr;
    int others = -1;
  };
  std::map<std::pair<std::string_view, std::string_view>, Refused> refused;  // by policy and reason
  for (const LintRefusal& refusal : refusals) {
    const bool here = std::any_of(policies.begin(), policies.end(), [&refusal](const LintPolicy& policy) {
      return policy.name == refusal.policy;
    });
    if (here) continue;
    Refused& alike = refused[{refusal.policy, refusal.reason}];
    if (++alike.others == 0) alike.first = &refusal;
  }
  std::vector<lossless::Finding> findings;
  for (const auto& [what, alike] : refused) {
    std::string with = alike.first->port;
    if (alike.others > 0) with += fmt::format(" and {} more like it", alike.others);
    findings.push_back(Found("nic-unfit", alike.first->policy, std::move(with),
                             "the operator tells this port nothing of the policy", alike.first->reason));
  }
  return findings;
}

std::vector<lossless::Finding> LintNics(const std::vector<LintPolicy>& policies,
                                        const std::vector<LintPort>& ports) {
  std::vector<lossless::Finding> findings;
  for (const LintPolicy& policy : policies) {
    struct Kind {
      const LintPort* first = nullptr;
      int others = -1;
      std::string reason;
    };
    std::map<std::tuple<topology::Transport, std::string, std::string>, Kind> kinds;
    for (const LintPort& port : ports) {
      if (!Selects(policy, port)) continue;
      Kind& kind = kinds[{port.facts.transport, port.facts.device, port.facts.driver}];
      if (++kind.others > 0) continue;
      kind.first = &port;
      const lossless::Rendering rendering = lossless::Render(policy.resolved, port.facts);
      if (rendering.refused) kind.reason = rendering.reason;
    }
    for (const auto& [facts, kind] : kinds) {
      if (kind.reason.empty()) continue;
      lossless::Finding finding = FindingOf(policy, *kind.first, kind.reason);
      finding.with = kind.first->name;
      if (kind.others > 0) finding.with += fmt::format(" and {} more like it", kind.others);
      findings.push_back(std::move(finding));
    }
  }
  LintInfiniBand(policies, ports, findings);
  LintPairs(policies, ports, findings);
  return findings;
}

std::vector<lossless::Finding> LintWatchdogs(const std::vector<LintPolicy>& policies,
                                             const std::vector<lossless::Subject>& subjects) {
  const bool watched = std::any_of(subjects.begin(), subjects.end(), [](const lossless::Subject& subject) {
    return subject.end == lossless::End::kSwitch && subject.settings.watched;
  });
  std::vector<lossless::Finding> findings;
  if (watched) return findings;
  for (const LintPolicy& policy : policies) {
    const auto& pfc = policy.resolved.policy.pfc;
    const bool applies = policy.spec.mode == crds::LosslessMode::kApply && pfc && !pfc->empty();
    // One that is turned off has a rule of its own, which is an error.
    const bool off = policy.resolved.policy.watchdog_ms == lossless::kWatchdogOff;
    if (!applies || off || policy.resolved.no_watchdog.empty()) continue;
    findings.push_back(Found("watchdog-nowhere", policy.name, "",
                             fmt::format("PFC is on for priority {}", lossless::Text(*pfc)),
                             fmt::format("{}: {}", policy.resolved.profile, policy.resolved.no_watchdog)));
  }
  return findings;
}

}  // namespace heddle::cli
