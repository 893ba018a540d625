#include "cli/lint_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/lint_device_reports.h"
#include "cli/lint_nics.h"
#include "crds/ambiguous_resource.h"

namespace heddle::cli {
namespace {

using crds::DeviceDecision;
using crds::DeviceWish;
using crds::RdmaDevicePolicy;
using Group = std::vector<const RdmaDevicePolicy*>;

lossless::Finding Found(std::string_view rule, std::string_view policy, std::string with, std::string fact,
                        std::string contrary) {
  const lossless::RuleAbout* about = lossless::FindRule(rule);
  lossless::Finding finding;
  finding.rule = about->id;
  finding.severity = about->severity;
  finding.where = fmt::format("RdmaDevicePolicy {}", policy);
  finding.with = std::move(with);
  finding.fact = std::move(fact);
  finding.contrary = std::move(contrary);
  finding.remedy = about->remedy;
  return finding;
}

// A node with a NIC of every role on every rail that these name: what they make of it they make of any that has such
// NICs.
topology::Node AnyNode(const Group& policies) {
  std::set<int> rails;
  for (const RdmaDevicePolicy* policy : policies) {
    for (const crds::RdmaResource& resource : policy->spec.resources)
      rails.insert(resource.rails.begin(), resource.rails.end());
  }
  const bool named = !rails.empty();
  if (!named) rails.insert(0);
  topology::Node node;
  using enum topology::NicRole;
  for (const topology::NicRole role : {kCompute, kStorage, kManagement}) {
    for (const int rail : rails) {
      topology::Nic nic;
      nic.name = named ? fmt::format("the {} NIC of rail {}", topology::NicRoleName(role), rail)
                       : fmt::format("a {} NIC", topology::NicRoleName(role));
      nic.netdev = nic.name;
      nic.transport = topology::Transport::kRoce;
      nic.role = role;
      nic.rail = rail;
      nic.ports.emplace_back();
      node.nics.push_back(std::move(nic));
    }
  }
  return node;
}

bool Has(const DeviceWish& wish, const std::string& policy) {
  return std::find(wish.policies.begin(), wish.policies.end(), policy) != wish.policies.end();
}

// The first resource of a policy that conflicts there; null = none does.
const DeviceWish* FirstConflict(const DeviceDecision& decision, const std::vector<DeviceWish>& wishes,
                                const std::string& policy) {
  const auto found = std::find_if(wishes.begin(), wishes.end(), [&](const DeviceWish& wish) {
    return decision.Conflicts(wish.resource) && Has(wish, policy);
  });
  return found == wishes.end() ? nullptr : &*found;
}

class DeviceLint {
 public:
  DeviceLint(const DevicePolicyVersions& versions, const std::vector<LintDeviceNode>& nodes)
      : versions_(versions), by_name_(versions.lasts), nodes_(nodes) {}

  std::vector<lossless::Finding> Look() && {
    for (const auto& [name, policy] : by_name_) LookAtOne(*policy);
    for (auto one = by_name_.begin(); one != by_name_.end(); ++one) {
      for (auto other = std::next(one); other != by_name_.end(); ++other)
        LookAtTwo(*one->second, *other->second);
    }
    for (const LintDeviceNode& node : nodes_) LookAtNode(node);
    for (auto& [what, alike] : refused_) {
      if (alike.others > 0) alike.finding.with += fmt::format(" and {} more like it", alike.others);
      findings_.push_back(std::move(alike.finding));
    }
    return std::move(findings_);
  }

 private:
  struct Alike {
    lossless::Finding finding;
    int others = -1;
  };

  void Conflict(const std::string& policy, std::string with, const DeviceWish& wish) {
    findings_.push_back(Found("devices-conflict", policy, std::move(with),
                              fmt::format("{} is not offered", wish.resource), wish.reason));
  }

  void LookAtOne(const RdmaDevicePolicy& policy) {
    // First, and of every rail that there can be: the node below has few of them.
    if (const auto ambiguous = crds::FirstAmbiguous(policy.spec); !ambiguous.name.empty()) {
      at_odds_.insert({policy.name, policy.name});
      findings_.push_back(Found("devices-conflict", policy.name, "",
                                fmt::format("{} is not offered where both have NICs", ambiguous.name),
                                crds::WhyAmbiguous(ambiguous.entries)));
      return;
    }
    const Group group{&policy};
    const topology::Node node = AnyNode(group);
    const DeviceDecision decision = DecideDevices(node, group);
    const std::vector<DeviceWish> wishes = decision.wishes();
    const DeviceWish* conflict = FirstConflict(decision, wishes, policy.name);
    if (conflict == nullptr) return;
    at_odds_.insert({policy.name, policy.name});
    Conflict(policy.name, "", *conflict);
  }

  void LookAtTwo(const RdmaDevicePolicy& one, const RdmaDevicePolicy& other) {
    if (!Nested(one.spec.node_selector, other.spec.node_selector)) return;
    // What each says against itself has been said.
    if (IsAtOdds(one.name, one.name) || IsAtOdds(other.name, other.name)) return;
    const Group group{&one, &other};
    const topology::Node node = AnyNode(group);
    const DeviceDecision decision = DecideDevices(node, group);
    const std::vector<DeviceWish> wishes = decision.wishes();
    const DeviceWish* conflict = FirstConflict(decision, wishes, one.name);
    if (conflict == nullptr) conflict = FirstConflict(decision, wishes, other.name);
    if (conflict == nullptr) return;
    at_odds_.insert({one.name, other.name});
    Conflict(one.name, "RdmaDevicePolicy " + other.name, *conflict);
  }

  bool IsAtOdds(const std::string& one, const std::string& other) const {
    return at_odds_.contains({one, other}) || at_odds_.contains({other, one});
  }

  // Whether a conflict of these has been said of any node.
  bool IsSaid(const Group& group) const {
    return std::any_of(group.begin(), group.end(), [&](const RdmaDevicePolicy* one) {
      return std::any_of(group.begin(), group.end(),
                         [&](const RdmaDevicePolicy* other) { return IsAtOdds(one->name, other->name); });
    });
  }

  void LookAtNode(const LintDeviceNode& node) {
    Group group;
    for (const auto& [name, policy] : by_name_) {
      const bool told = !versions_.moved.contains(name) &&
                        std::any_of(node.told.begin(), node.told.end(),
                                    [one = policy](const auto& wish) { return Has(wish, one->name); });
      if (told || policy->spec.node_selector.empty()) group.push_back(policy);
    }
    const DeviceDecision decision = DecideDevices(node.node, group);
    const bool said = IsSaid(group);
    for (const DeviceWish& wish : decision.wishes()) {
      if (wish.reason.empty()) continue;
      const bool conflict = decision.Conflicts(wish.resource);
      if (conflict && said) continue;
      Refused(conflict ? "devices-conflict" : "devices-refused", wish.policies.front(), node.name,
              fmt::format("{} is not offered", wish.resource), wish.reason);
    }
    for (const auto& [policy, problems] : decision.problems())
      Refused("devices-refused", policy, node.name, "not all NICs that it selects are offered",
              problems.front());
    for (const DeviceWish& wish : node.told) {
      if (wish.reason.empty() || wish.policies.empty() || by_name_.contains(wish.policies.front())) continue;
      Refused("devices-refused", wish.policies.front(), node.name,
              fmt::format("{} is not offered, by the operator", wish.resource), wish.reason);
    }
    ReportsOfNode reports(versions_, node);
    for (const crds::DeviceReport& report : node.reports) {
      if (reports.OfWhat(report) == Speaks::kOfThis) LookAtReport(node, report);
    }
  }

  // What the agent refuses beyond what the operator did.
  void LookAtReport(const LintDeviceNode& node, const crds::DeviceReport& report) {
    // An agent from before that was looked at says so of each resource that another plugin is to offer: the operator
    // waits for a newer one then, and there is nothing to correct.
    const bool others = std::any_of(node.told.begin(), node.told.end(), [&report](const DeviceWish& wish) {
      return wish.resource == report.resource && wish.plugin != crds::DevicePlugin::kHeddle;
    });
    const bool elsewhere = !others && report.state == crds::DeviceState::kElsewhere && report.healthy == 0;
    if (!elsewhere && report.state != crds::DeviceState::kRefused) return;
    const bool told = std::any_of(node.told.begin(), node.told.end(), [&report](const DeviceWish& wish) {
      return wish.resource == report.resource && !wish.reason.empty();
    });
    if (told) return;
    Refused("devices-refused", report.edition.policy, node.name,
            fmt::format("{} is not offered, by its agent", report.resource), report.reason);
  }

  void Refused(std::string_view rule, const std::string& policy, const std::string& node, std::string fact,
               std::string reason) {
    Alike& alike = refused_[{policy, fact, reason}];
    if (++alike.others > 0) return;
    alike.finding = Found(rule, policy, node, std::move(fact), std::move(reason));
  }

  const DevicePolicyVersions& versions_;
  const std::map<std::string, const RdmaDevicePolicy*>& by_name_;  // the last of each
  const std::vector<LintDeviceNode>& nodes_;
  std::set<std::pair<std::string, std::string>> at_odds_;  // on any node; one with itself, too
  std::map<std::tuple<std::string, std::string, std::string>, Alike> refused_;  // by policy, fact and reason
  std::vector<lossless::Finding> findings_;
};

}  // namespace

DevicePolicyVersions::DevicePolicyVersions(const std::vector<RdmaDevicePolicy>& policies) {
  for (const RdmaDevicePolicy& policy : policies) {
    firsts.try_emplace(policy.name, &policy);
    lasts[policy.name] = &policy;
  }
  for (const auto& [name, policy] : lasts) {
    const crds::RdmaDevicePolicySpec& before = firsts.at(name)->spec;
    if (before == policy->spec) continue;
    changed.insert(name);
    if (!IsWithin(before.node_selector, policy->spec.node_selector)) moved.insert(name);
  }
}

std::int64_t DevicePolicyVersions::Generation(const std::string& policy) const {
  const auto first = firsts.find(policy);
  return first == firsts.end() || changed.contains(policy) ? 0 : first->second->generation;
}

DeviceDecision DecideDevices(const topology::Node& node, const Group& policies) {
  static const std::vector<DeviceWish> kToldNothing;
  static const std::set<std::string> kNone;
  static const std::set<crds::DevicePlugin> kAllPlugins{crds::DevicePlugin::kRdmaShared,
                                                        crds::DevicePlugin::kSriov};
  return {node, kToldNothing, policies, kNone, kAllPlugins};
}

std::vector<lossless::Finding> LintDevices(const DevicePolicyVersions& versions,
                                           const std::vector<LintDeviceNode>& nodes) {
  return DeviceLint(versions, nodes).Look();
}

}  // namespace heddle::cli
