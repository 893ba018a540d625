#include "operator/lossless_reconciler.h"

#include <algorithm>
#include <array>
#include <utility>

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

// Where no kubelet says so, as of a Node that was only just made, nothing is held against it.
bool IsReady(const kube::ObjectPtr& node) {
  const kube::Json* ready = node == nullptr ? nullptr : kube::Condition(*node, "Ready");
  return ready == nullptr || kube::StringAt(*ready, {"status"}) == "True";
}

constexpr std::array kTold{PolicyEvent{kNotTold, "LosslessNotTold", kube::Severity::kWarning},
                           PolicyEvent{kNotUnderstood, "LosslessNotUnderstood", kube::Severity::kWarning},
                           PolicyEvent{"Refused", "LosslessRefused", kube::Severity::kWarning},
                           PolicyEvent{"Conflict", "LosslessConflict", kube::Severity::kWarning},
                           PolicyEvent{"CanaryStopped", "LosslessCanaryStopped", kube::Severity::kWarning},
                           PolicyEvent{"Failed", "LosslessFailed", kube::Severity::kWarning},
                           PolicyEvent{"Drifted", "LosslessDrifted", kube::Severity::kWarning},
                           PolicyEvent{"Compliant", "LosslessCompliant", kube::Severity::kNormal}};

}  // namespace

base::Result<Outcome> LosslessReconciler::Reconcile(const std::stop_token& stop) {
  const auto policies = ReadPolicies(reads_.policies, "LosslessPolicy", &crds::LosslessPolicyFromJson);
  auto nodes = nodes_.Read(reads_.nodes, reads_.topologies, writes_.ahead(), clock_.Now(),
                           [](LosslessNode& node, crds::NodeTopology&& topology) {
                             node.node.nics = std::move(topology.status.node.nics);
                             node.wishes = std::move(topology.spec.lossless);
                             node.reports = std::move(topology.status.lossless);
                           });
  const auto late = reads_.late ? reads_.late() : std::set<std::string>();
  for (LosslessNode& node : nodes) {
    if (late.contains(node.name)) {
      node.silence = "its agent is silent";
    } else if (!IsReady(reads_.nodes.Get({"", node.name}))) {
      node.silence = "the Node is not Ready";
    }
  }
  const LosslessRollout rollout = DecideRollout(policies, nodes, clock_.WallNow(), nodes_.unread());
  PolicyPass pass(writes_, events_, kTold, stop);
  for (const LosslessNode& node : nodes) {
    const auto& wanted = rollout.wishes.at(node.name);
    if (wanted == node.wishes) continue;
    // What a newer operator wrote and this one does not know is taken out by writing what this one does.
    const bool foreign = std::any_of(node.wishes.begin(), node.wishes.end(),
                                     [](const auto& wish) { return !wish.not_understood.empty(); });
    pass.Spec(node.name, nodes_.UidOf(node.name),
              foreign ? kube::Json("another version's") : WishesOf(node.wishes), WishesOf(wanted));
  }
  const auto not_told = NotToldOf(pass.Refused(), rollout.wishes);
  std::set<std::string> said;  // nodes of which a policy says that they are not told
  for (const crds::LosslessPolicy& policy : policies.read) {
    const auto status = rollout.statuses.find(policy.name);
    if (status == rollout.statuses.end()) continue;
    crds::LosslessPolicy wanted;
    wanted.name = policy.name;
    wanted.uid = policy.uid;
    wanted.status = status->second;
    const auto untold = not_told.find(policy.name);
    if (untold != not_told.end() && SayNotTold(untold->second, crds::kReady, policy.status.conditions,
                                               clock_.WallNow(), wanted.status.conditions))
      said.insert(untold->second.nodes.begin(), untold->second.nodes.end());
    pass.Status(kLosslessPolicies, policy, StatusOf(policy.status), crds::StatusApplyJson(wanted),
                {policy.status.conditions, wanted.status.conditions});
  }
  for (const auto& [name, unreadable] : policies.unreadable) {
    TellNotUnderstood(unreadable, &crds::LosslessPolicyFromJson, kube::Json::object(), kLosslessPolicies,
                      StatusOf, clock_.WallNow(), pass);
  }
  pass.TellRefused(said);
  return pass.Sum();
}

}  // namespace heddle::operators
