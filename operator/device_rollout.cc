#include "operator/device_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crds/device_decision.h"
#include "operator/selection.h"

namespace heddle::operators {
namespace {

using crds::DeviceDecision;
using crds::DeviceState;
using crds::DeviceWish;
using crds::RdmaDevicePolicy;

using OtherPlugins = std::set<crds::DevicePlugin>;

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
  if (report == reports.end() || report->edition != crds::EditionOf(wish))
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
      : others_(others), nodes_(nodes) {
    for (const auto& [name, why] : policies.unreadable) unreadable_.insert(name);
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
    const DeviceDecision decision(node.node, node.wishes, selecting, unreadable_, others_);
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

  void Count(const RdmaDevicePolicy& policy, const DeviceNode& node, const DeviceDecision& decision,
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
  const std::vector<DeviceNode>& nodes_;
  std::set<std::string> unreadable_;               // policies, by name
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
