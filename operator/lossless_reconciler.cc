#include "operator/lossless_reconciler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "crds/keys.h"
#include "crds/node_topology.h"
#include "operator/resources.h"

namespace heddle::operators {
namespace {

// As it is written: what the schema cuts short is no difference that another write would mend. null = none.
kube::Json WishesOf(const std::vector<crds::LosslessWish>& wishes) {
  crds::NodeTopology object;
  object.spec.lossless = wishes;
  return crds::SpecApplyJson(object).value("spec", kube::Json::object()).value("lossless", kube::Json());
}

kube::Json StatusOf(const crds::LosslessPolicyStatus& status) {
  crds::LosslessPolicy object;
  object.status = status;
  return crds::StatusApplyJson(object).value("status", kube::Json::object());
}

// What people are told of; the others are on the way to one of these.
struct Told {
  std::string_view reason, event;
  kube::Severity severity;
};
constexpr std::array kTold{Told{"Refused", "LosslessRefused", kube::Severity::kWarning},
                           Told{"Conflict", "LosslessConflict", kube::Severity::kWarning},
                           Told{"CanaryStopped", "LosslessCanaryStopped", kube::Severity::kWarning},
                           Told{"Failed", "LosslessFailed", kube::Severity::kWarning},
                           Told{"Drifted", "LosslessDrifted", kube::Severity::kWarning},
                           Told{"Compliant", "LosslessCompliant", kube::Severity::kNormal}};

}  // namespace

void LosslessReconciler::Tell(const crds::LosslessPolicy& policy, const crds::LosslessPolicyStatus& now) {
  const crds::Condition* before = crds::FindCondition(policy.status.conditions, crds::kReady);
  const crds::Condition* after = crds::FindCondition(now.conditions, crds::kReady);
  if (after == nullptr || (before != nullptr && before->reason == after->reason)) return;
  const auto told = std::find_if(kTold.begin(), kTold.end(),
                                 [after](const Told& one) { return one.reason == after->reason; });
  if (told == kTold.end()) return;
  events_.Record({kLosslessPolicies.ApiVersion(), kLosslessPolicies.kind, "", policy.name, policy.uid},
                 told->severity, told->event, after->message);
}

base::Result<Outcome> LosslessReconciler::Reconcile(const std::stop_token& stop) {
  const auto policies = ReadPolicies(reads_.policies, "LosslessPolicy", &crds::LosslessPolicyFromJson);
  const auto nodes =
      nodes_.Read(reads_.nodes, reads_.topologies, [](LosslessNode& node, crds::NodeTopology&& topology) {
        node.node.nics = std::move(topology.status.node.nics);
        node.wishes = std::move(topology.spec.lossless);
        node.reports = std::move(topology.status.lossless);
      });
  const LosslessRollout rollout = DecideRollout(policies, nodes, clock_.WallNow());
  Outcome total;
  std::optional<base::Error> failed;
  const auto take = [&](const base::Result<Outcome>& one) {
    if (one) {
      AddUp(total, *one);
    } else if (!failed) {
      failed = one.error();
    }
  };
  std::vector<PolicyWrites::SpecChange> changes;
  for (const LosslessNode& node : nodes) {
    const auto& wishes = rollout.wishes.at(node.name);
    if (wishes == node.wishes) continue;
    kube::Json wanted = WishesOf(wishes);
    if (wanted == WishesOf(node.wishes)) continue;
    spdlog::info("Telling NodeTopology its lossless settings node={} entries={}", node.name, wishes.size());
    changes.push_back({node.name, nodes_.UidOf(node.name), std::move(wanted)});
  }
  const auto written = writes_.Specs("lossless", std::move(changes), stop);
  AddUp(total, written.outcome);
  failed = written.failed;
  if (stop.stop_requested()) return total;
  for (const crds::LosslessPolicy& policy : policies.read) {
    const auto status = rollout.statuses.find(policy.name);
    if (status == rollout.statuses.end() || StatusOf(status->second) == StatusOf(policy.status)) continue;
    crds::LosslessPolicy wanted;
    wanted.name = policy.name;
    wanted.uid = policy.uid;
    wanted.status = status->second;
    const auto done = writes_.Status(kLosslessPolicies, policy.name, crds::StatusApplyJson(wanted), stop);
    if (done && done->writes > 0 && !done->again) Tell(policy, status->second);
    take(done);
  }
  if (failed) return base::Fail(*failed);
  return total;
}

}  // namespace heddle::operators
