#include "cli/lint_nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "crds/port_name.h"
#include "lossless/profiles.h"

namespace heddle::cli {
namespace {

template <class Entries>
void AddPolicies(const Entries& entries, const std::string& port, std::vector<std::string>& to) {
  for (const auto& entry : entries) {
    if (std::find(entry.ports.begin(), entry.ports.end(), port) == entry.ports.end()) continue;
    if constexpr (requires { entry.policies; }) {
      to.insert(to.end(), entry.policies.begin(), entry.policies.end());
    } else if (!entry.policy.empty()) {
      to.push_back(entry.policy);
    }
  }
}

bool Selects(const LintPolicy& policy, const LintPort& port) {
  const auto& [roles, rails] = std::tie(policy.spec.roles, policy.spec.rails);
  const bool role = roles.empty() ? port.role == topology::NicRole::kCompute
                                  : std::find(roles.begin(), roles.end(), port.role) != roles.end();
  const bool rail =
      rails.empty() || (port.rail && std::find(rails.begin(), rails.end(), *port.rail) != rails.end());
  const bool told = std::find(port.policies.begin(), port.policies.end(), policy.name) != port.policies.end();
  return role && rail && (told || policy.spec.node_selector.empty());
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

}  // namespace

std::vector<LintPort> PortsOf(const crds::NodeTopology& node) {
  std::vector<LintPort> ports;
  for (const topology::Nic& nic : node.status.node.nics) {
    for (const topology::NicPort& nic_port : nic.ports) {
      const std::string name = crds::PortName(nic, nic_port);
      LintPort port{node.name + " " + name, nic.role, nic.rail, {nic.transport, nic.pci_id, nic.driver}, {}};
      AddPolicies(node.spec.lossless, name, port.policies);
      AddPolicies(node.status.lossless, name, port.policies);
      ports.push_back(std::move(port));
    }
  }
  return ports;
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
  return findings;
}

}  // namespace heddle::cli
