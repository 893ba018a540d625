#include "operator/device_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crds/port_name.h"
#include "operator/other_plugins.h"
#include "operator/selection.h"

namespace heddle::operators {
namespace {

using crds::DeviceState;
using crds::DeviceWish;
using crds::RdmaDevicePolicy;
using crds::RdmaResource;

constexpr std::size_t kMaxPorts = 128;  // of one resource, as the schema has it

bool Contains(const auto& values, const auto& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// A NIC without RDMA is no device, whatever its role.
bool Selects(const RdmaResource& resource, const topology::Nic& nic) {
  const bool role =
      resource.roles.empty() ? nic.role == topology::NicRole::kCompute : Contains(resource.roles, nic.role);
  const bool rail = resource.rails.empty() || (nic.rail && Contains(resource.rails, *nic.rail));
  return role && rail && nic.transport != topology::Transport::kEthernet;
}

DeviceWish WishOf(const RdmaDevicePolicy& policy, std::string resource, int slots) {
  DeviceWish wish;
  wish.resource = std::move(resource);
  wish.policies = {policy.name};
  wish.generation = policy.generation;
  wish.mode = policy.spec.mode;
  wish.plugin = policy.spec.plugin;
  wish.slots = slots;
  return wish;
}

// What one policy makes of one node, before others have their say.
struct Offers {
  std::map<std::string, DeviceWish> wishes;  // by resource
  std::vector<std::string> problems;         // NICs that are in none though they are selected
};

using OtherPlugins = std::set<crds::DevicePlugin>;

std::string WhyNotServed(crds::DevicePlugin plugin, const OtherPlugins& others) {
  if (plugin == crds::DevicePlugin::kHeddle || others.contains(plugin)) return "";
  const bool sriov = plugin == crds::DevicePlugin::kSriov;
  return fmt::format(
      "the operator was given no image of this plugin: set {} in the chart, or plugin to Heddle",
      sriov ? "otherPlugins.sriov.image" : "otherPlugins.rdmaShared.image");
}

Offers OffersOf(const RdmaDevicePolicy& policy, const topology::Node& node, const OtherPlugins& others) {
  Offers offers;
  const std::string not_served = WhyNotServed(policy.spec.plugin, others);
  for (const RdmaResource& resource : policy.spec.resources) {
    const bool by_rail = resource.name.ends_with(crds::kRailMark);
    const std::string stem =
        resource.name.substr(0, resource.name.size() - (by_rail ? crds::kRailMark.size() : 0));
    bool any = false;
    for (const topology::Nic& nic : node.nics) {
      if (!Selects(resource, nic)) continue;
      any = true;
      if (by_rail && !nic.rail) {
        offers.problems.push_back(fmt::format("{} is in no {}: its rail is {}", nic.name, resource.name,
                                              topology::MissingName(nic.rail.missing())));
        continue;
      }
      const std::string name = by_rail ? stem + std::to_string(*nic.rail) : stem;
      if (const std::string why = Unnameable(nic, policy.spec.plugin); !why.empty()) {
        offers.problems.push_back(why);
        continue;
      }
      DeviceWish& wish = offers.wishes.try_emplace(name, WishOf(policy, name, resource.slots)).first->second;
      for (const topology::NicPort& port : nic.ports) {
        if (wish.ports.size() < kMaxPorts) wish.ports.push_back(crds::PortName(nic, port));
      }
    }
    if (any || by_rail) continue;
    DeviceWish none = WishOf(policy, resource.name, resource.slots);
    none.reason = "no RDMA device of this node has the roles and rails that it asks for";
    offers.wishes.try_emplace(resource.name, std::move(none));
  }
  for (auto& [name, wish] : offers.wishes) {
    std::sort(wish.ports.begin(), wish.ports.end());
    if (wish.reason.empty()) wish.reason = not_served;
  }
  return offers;
}

// The NIC of a port: "mlx5_0" of "mlx5_0:1".
std::string_view NicOf(std::string_view port) {
  return port.substr(0, port.rfind(':'));
}

void Refuse(DeviceWish& wish, std::string reason) {
  wish.ports.clear();
  if (wish.reason.empty()) wish.reason = std::move(reason);
}

// One node under all policies that select it.
class NodeDecision {
 public:
  NodeDecision(const DeviceNode& node, const std::vector<const RdmaDevicePolicy*>& policies,
               const std::map<std::string, Unreadable>& unreadable, const OtherPlugins& others)
      : node_(node) {
    KeepUnreadable(unreadable);
    for (const RdmaDevicePolicy* policy : policies) {
      Offers offers = OffersOf(*policy, node.node, others);
      for (const std::string& problem : offers.problems) problems_[policy->name].push_back(problem);
      for (auto& [name, wish] : offers.wishes) Take(std::move(wish));
    }
    RefuseSharedNics();
    RefuseSameNames();
    RefuseSecondPlugin();
    KeepNumbers();
  }

  std::vector<DeviceWish> wishes() const {
    std::vector<DeviceWish> all;
    std::size_t room = crds::kMaxDeviceEntries - std::min(kept_.size(), crds::kMaxDeviceEntries);
    for (const auto& [name, wish] : wishes_) {
      if (!Keeps(name) && room == 0) continue;
      if (!Keeps(name)) --room;
      all.push_back(wish);
    }
    return all;
  }
  const std::map<std::string, std::vector<std::string>>& problems() const { return problems_; }  // by policy
  // By policy, why it does not get a resource that is kept for one that cannot be read.
  const std::map<std::string, std::string>& kept_from() const { return kept_from_; }
  bool Conflicts(const std::string& resource) const { return conflicts_.contains(resource); }
  bool Keeps(const std::string& resource) const { return kept_.contains(resource); }

 private:
  // A policy that a newer version wrote is not one that was taken back: what it told stays, and first of all, so that
  // nothing of it is told once more in another policy's name.
  void KeepUnreadable(const std::map<std::string, Unreadable>& unreadable) {
    for (const DeviceWish& told : node_.wishes) {
      const auto policy = std::find_if(told.policies.begin(), told.policies.end(),
                                       [&](const std::string& name) { return unreadable.contains(name); });
      if (policy == told.policies.end()) continue;
      kept_.emplace(told.resource, *policy);
      wishes_.emplace(told.resource, told);
    }
  }

  void Take(DeviceWish wish) {
    if (const auto kept = kept_.find(wish.resource); kept != kept_.end()) {
      kept_from_.try_emplace(
          wish.policies.front(),
          fmt::format(
              "{}: it stays as RdmaDevicePolicy {} had it, which cannot be read: correct that one, or "
              "narrow nodeSelector of one of both",
              wish.resource, kept->second));
      return;
    }
    const auto [known, fresh] = wishes_.try_emplace(wish.resource, wish);
    if (fresh) return;
    DeviceWish& both = known->second;
    constexpr std::size_t kMaxPolicies = 8;
    if (both.policies.size() < kMaxPolicies) both.policies.push_back(wish.policies.front());
    both.generation = 0;
    both.slots = 1;
    both.reason.clear();
    conflicts_.insert(both.resource);
    Refuse(both,
           fmt::format("RdmaDevicePolicies {} both name this resource: narrow nodeSelector of all but one",
                       fmt::join(both.policies, ", ")));
  }

  void Conflict(const std::string& resource, std::string reason) {
    if (Keeps(resource)) return;
    conflicts_.insert(resource);
    Refuse(wishes_.at(resource), std::move(reason));
  }

  void RefuseSharedNics() {
    std::map<std::string, std::vector<std::string>, std::less<>> by_nic;
    for (const auto& [name, wish] : wishes_) {
      std::set<std::string> nics;
      for (const std::string& port : wish.ports) nics.emplace(NicOf(port));
      for (const std::string& nic : nics) by_nic[nic].push_back(name);
    }
    for (const auto& [nic, resources] : by_nic) {
      if (resources.size() < 2) continue;
      for (const std::string& resource : resources) {
        Conflict(resource, fmt::format("{} is in {}: a NIC can be in one resource; narrow roles or rails",
                                       nic, fmt::join(resources, " and in ")));
      }
    }
  }

  // k8s-rdma-shared-dev-plugin ends where two of its resources differ by domain only (pkg/resources/
  // resources_manager.go, ValidateConfigs, v1.5), and takes all the others along.
  void RefuseSameNames() {
    std::map<std::string, std::vector<std::string>> by_name;
    for (const auto& [resource, wish] : wishes_) {
      if (wish.plugin == crds::DevicePlugin::kRdmaShared && wish.reason.empty())
        by_name[resource.substr(resource.find('/') + 1)].push_back(resource);
    }
    for (const auto& [name, resources] : by_name) {
      if (resources.size() < 2) continue;
      for (const std::string& resource : resources) {
        Conflict(resource, fmt::format("{} differ by their domains only, which k8s-rdma-shared-dev-plugin "
                                       "does not take: give one another name after the slash",
                                       fmt::join(resources, " and ")));
      }
    }
  }

  // Both configure themselves by one label of the node.
  void RefuseSecondPlugin() {
    using enum crds::DevicePlugin;
    std::map<crds::DevicePlugin, std::vector<std::string>> resources;
    std::set<crds::DevicePlugin> kept;
    for (const auto& [name, wish] : wishes_) {
      if (!wish.reason.empty()) continue;
      resources[wish.plugin].push_back(name);
      if (Keeps(name)) kept.insert(wish.plugin);
    }
    if (!resources.contains(kRdmaShared) || !resources.contains(kSriov)) return;
    const bool sriov = kept.contains(kSriov) && !kept.contains(kRdmaShared);
    for (const std::string& name : resources.at(sriov ? kRdmaShared : kSriov)) {
      Conflict(name, fmt::format("another policy runs {} on this node: one plugin for each node",
                                 sriov ? "sriov-network-device-plugin" : "k8s-rdma-shared-dev-plugin"));
    }
  }

  // What changes nothing here is the old generation's: no write, and what the agent reported still holds.
  void KeepNumbers() {
    for (const DeviceWish& told : node_.wishes) {
      const auto wish = wishes_.find(told.resource);
      if (wish == wishes_.end()) continue;
      DeviceWish same = told;
      same.generation = wish->second.generation;
      if (same == wish->second) wish->second.generation = told.generation;
    }
  }

  const DeviceNode& node_;
  std::map<std::string, DeviceWish> wishes_;  // by resource
  std::set<std::string> conflicts_;           // of these
  std::map<std::string, std::string> kept_;   // of these, and the policy that cannot be read
  std::map<std::string, std::string> kept_from_;
  std::map<std::string, std::vector<std::string>> problems_;
};

// How the node stands to what one policy tells it, the worst of its resources.
enum class Standing : std::uint8_t { kReady, kWaiting, kRefused, kConflicting };

struct Looked {
  Standing standing = Standing::kReady;
  std::string problem;  // of the worst; empty where ready
  int devices = 0;
  int unhealthy = 0;
  bool awaits_plugin = false;
};

// Of a resource that another plugin is to offer. An agent from before that was looked at says Elsewhere of none.
Looked LookAtOther(const crds::DeviceReport& report) {
  Looked looked;
  looked.devices = report.healthy;
  looked.unhealthy = report.total - report.healthy;
  if (report.state == DeviceState::kElsewhere && report.healthy > 0) return looked;
  looked.standing = report.state == DeviceState::kRefused ? Standing::kRefused : Standing::kWaiting;
  looked.awaits_plugin = report.state == DeviceState::kPending;
  looked.problem =
      report.state == DeviceState::kElsewhere
          ? "its agent does not say whether the plugin runs: bring agents and operator to one version"
          : report.reason;
  return looked;
}

Looked LookAt(const DeviceWish& wish, bool conflicts, const std::vector<crds::DeviceReport>& reports) {
  if (!wish.reason.empty())
    return {conflicts ? Standing::kConflicting : Standing::kRefused, wish.reason, 0, 0};
  const auto report = std::find_if(reports.begin(), reports.end(),
                                   [&](const auto& one) { return one.resource == wish.resource; });
  if (report == reports.end() || report->policy != wish.policies.front() ||
      report->generation != wish.generation)
    return {Standing::kWaiting, "its agent has not reported it yet", 0, 0};
  if (wish.plugin != crds::DevicePlugin::kHeddle) return LookAtOther(*report);
  Looked looked;
  looked.devices = report->healthy;
  looked.unhealthy = report->total - report->healthy;
  // Which of two plugins serves a pod is up to who registered last.
  if (report->state == DeviceState::kElsewhere) return {Standing::kConflicting, report->reason, 0, 0};
  if (report->state == DeviceState::kPending) looked.standing = Standing::kWaiting;
  if (report->state == DeviceState::kRefused) looked.standing = Standing::kRefused;
  if (looked.standing != Standing::kReady) looked.problem = report->reason;
  return looked;
}

class Decision {
 public:
  Decision(const DevicePolicies& policies, const std::vector<DeviceNode>& nodes, const OtherPlugins& others)
      : others_(others), unreadable_(policies.unreadable), nodes_(nodes) {
    for (const RdmaDevicePolicy& policy : policies.read) {
      if (!policy.deleted_at) policies_.push_back(&policy);
    }
    std::sort(policies_.begin(), policies_.end(),
              [](const RdmaDevicePolicy* a, const RdmaDevicePolicy* b) { return a->name < b->name; });
    for (const RdmaDevicePolicy* policy : policies_) tallies_.emplace(policy->name, Tally());
  }

  DeviceRollout Decide(const std::vector<UnreadNode>& unread, base::WallTime now) {
    DeviceRollout rollout;
    // Before the others, so that they are named first of those that are waited for: nothing ends it by itself.
    for (const UnreadNode& node : unread) CountUnread(node);
    for (const DeviceNode& node : nodes_) rollout.wishes[node.name] = Node(node);
    for (const RdmaDevicePolicy* policy : policies_) rollout.statuses[policy->name] = StatusOf(*policy, now);
    for (auto& [policy, tally] : tallies_) {
      if (!tally.await_plugin.empty()) rollout.await_plugin[policy] = std::move(tally.await_plugin);
    }
    return rollout;
  }

 private:
  struct Tally {
    crds::DeviceCounts counts;
    // By how bad they are: conflicts, refusals, waits.
    std::map<Standing, std::vector<std::string>, std::greater<>> problems;
    std::vector<std::string> await_plugin;  // of those that wait
  };

  std::vector<DeviceWish> Node(const DeviceNode& node) {
    std::vector<const RdmaDevicePolicy*> selecting;
    for (const RdmaDevicePolicy* policy : policies_) {
      if (SelectsNode(policy->spec.node_selector, node.labels)) selecting.push_back(policy);
    }
    if (!node.observed) {
      for (const RdmaDevicePolicy* policy : selecting) {
        Tally& tally = tallies_.at(policy->name);
        ++tally.counts.nodes;
        Note(tally, node.name, {Standing::kWaiting, "its agent has not published yet", 0, 0});
      }
      return node.wishes;
    }
    const NodeDecision decision(node, selecting, unreadable_, others_);
    std::vector<DeviceWish> wishes = decision.wishes();
    for (const RdmaDevicePolicy* policy : selecting) Count(*policy, node, decision, wishes);
    return wishes;
  }

  void CountUnread(const UnreadNode& node) {
    for (const RdmaDevicePolicy* policy : policies_) {
      if (!SelectsNode(policy->spec.node_selector, node.labels)) continue;
      Tally& tally = tallies_.at(policy->name);
      ++tally.counts.nodes;
      Note(tally, node.name,
           {Standing::kWaiting,
            fmt::format(
                "cannot be read, so nobody knows what it offers; bring its agent and the operator to one "
                "version: {}",
                node.why),
            0, 0});
    }
  }

  static void Note(Tally& tally, const std::string& node, const Looked& looked) {
    if (looked.standing == Standing::kReady) ++tally.counts.ready;
    if (looked.standing == Standing::kWaiting) ++tally.counts.waiting;
    if (looked.standing == Standing::kRefused) ++tally.counts.refused;
    if (looked.standing == Standing::kConflicting) ++tally.counts.conflicting;
    if (looked.standing == Standing::kWaiting && looked.awaits_plugin) tally.await_plugin.push_back(node);
    if (!looked.problem.empty())
      tally.problems[looked.standing].push_back(fmt::format("{}: {}", node, looked.problem));
  }

  void Count(const RdmaDevicePolicy& policy, const DeviceNode& node, const NodeDecision& decision,
             const std::vector<DeviceWish>& wishes) {
    Tally& tally = tallies_.at(policy.name);
    ++tally.counts.nodes;
    Looked worst;
    for (const DeviceWish& wish : wishes) {
      if (decision.Keeps(wish.resource)) continue;
      if (std::find(wish.policies.begin(), wish.policies.end(), policy.name) == wish.policies.end()) continue;
      const Looked looked = LookAt(wish, decision.Conflicts(wish.resource), node.reports);
      tally.counts.devices += looked.devices;
      tally.counts.unhealthy += looked.unhealthy;
      if (looked.standing <= worst.standing) continue;
      worst.standing = looked.standing;
      worst.awaits_plugin = looked.awaits_plugin;
      worst.problem = fmt::format("{}: {}", wish.resource, looked.problem);
    }
    if (const auto kept = decision.kept_from().find(policy.name); kept != decision.kept_from().end()) {
      worst.standing = Standing::kConflicting;
      worst.problem = kept->second;
    }
    const auto problems = decision.problems().find(policy.name);
    if (problems != decision.problems().end() && worst.standing < Standing::kRefused) {
      worst.standing = Standing::kRefused;
      worst.problem = problems->second.front();
    }
    Note(tally, node.name, worst);
  }

  crds::RdmaDevicePolicyStatus StatusOf(const RdmaDevicePolicy& policy, base::WallTime now) const {
    const Tally& tally = tallies_.at(policy.name);
    crds::RdmaDevicePolicyStatus status;
    status.observed_generation = policy.generation;
    status.counts = tally.counts;
    for (const auto& [standing, problems] : tally.problems) {
      for (const std::string& problem : problems) {
        if (status.problems.size() < crds::kMaxDeviceProblems) status.problems.push_back(problem);
      }
    }
    status.conditions = policy.status.conditions;
    crds::SetCondition(status.conditions, ReadyOf(policy, status, int(tally.await_plugin.size()), now));
    return status;
  }

  static crds::Condition ReadyOf(const RdmaDevicePolicy& policy, const crds::RdmaDevicePolicyStatus& status,
                                 int await_plugin, base::WallTime now) {
    const crds::DeviceCounts& counts = status.counts;
    crds::Condition ready;
    ready.type = std::string(crds::kReady);
    ready.status = crds::ConditionStatus::kFalse;
    ready.observed_generation = policy.generation;
    ready.last_transition = now;
    const auto say = [&](std::string reason, int nodes, std::string_view what) {
      ready.reason = std::move(reason);
      ready.message = fmt::format("{} of {} nodes {}; {}", nodes, counts.nodes, what,
                                  status.problems.empty() ? "" : status.problems.front());
    };
    if (counts.nodes == 0) {
      ready.reason = "NothingSelected";
      ready.message = "no Node has the labels of nodeSelector";
    } else if (counts.conflicting > 0) {
      say("Conflict", counts.conflicting, "have NICs or resources in two places");
    } else if (counts.refused > 0) {
      say("Refused", counts.refused, "cannot offer all of it");
    } else if (counts.waiting > 0) {
      say("Waiting", counts.waiting,
          await_plugin == counts.waiting ? "wait for the plugin" : "have not answered yet");
    } else {
      ready.status = crds::ConditionStatus::kTrue;
      ready.reason = "Offered";
      ready.message = fmt::format("{} nodes offer {} devices", counts.ready, counts.devices);
    }
    return ready;
  }

  const OtherPlugins& others_;
  const std::map<std::string, Unreadable>& unreadable_;
  const std::vector<DeviceNode>& nodes_;
  std::vector<const RdmaDevicePolicy*> policies_;  // by name
  std::map<std::string, Tally> tallies_;           // by policy
};

}  // namespace

DeviceRollout DecideDevices(const DevicePolicies& policies, const std::vector<DeviceNode>& nodes,
                            const std::set<crds::DevicePlugin>& others, base::WallTime now,
                            const std::vector<UnreadNode>& unread) {
  return Decision(policies, nodes, others).Decide(unread, now);
}

}  // namespace heddle::operators
