#include "operator/device_reconciler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "crds/node_topology.h"
#include "operator/cut_text.h"
#include "operator/resources.h"

namespace heddle::operators {
namespace {

// As it is written: what the schema cuts short is no difference that another write would mend. null = none.
kube::Json DevicesOf(const std::vector<crds::DeviceWish>& wishes) {
  crds::NodeTopology object;
  object.spec.devices = wishes;
  return crds::SpecApplyJson(object).value("spec", kube::Json::object()).value("devices", kube::Json());
}

kube::Json StatusOf(const crds::RdmaDevicePolicyStatus& status) {
  crds::RdmaDevicePolicy object;
  object.status = status;
  return crds::StatusApplyJson(object).value("status", kube::Json::object());
}

constexpr std::string_view kNotRun = "PluginNotRun";
constexpr std::size_t kLongestWhy = 800;  // of a message of 1024, whose end says what to do

// Of a policy whose plugin's objects cannot be made, whatever its nodes say: without them nothing will come of it.
void SayNotRun(const crds::RdmaDevicePolicy& policy, const base::Error& why, base::WallTime now,
               crds::RdmaDevicePolicyStatus& status) {
  crds::Condition ready;
  ready.type = std::string(crds::kReady);
  ready.status = crds::ConditionStatus::kFalse;
  ready.reason = std::string(kNotRun);
  ready.message = fmt::format(
      "the operator cannot run plugin {} on its nodes: {}. It tries again by itself; `kubectl heddle doctor` "
      "names rights that it lacks",
      crds::DevicePluginName(policy.spec.plugin), CutText(why.message, kLongestWhy));
  ready.observed_generation = policy.generation;
  ready.last_transition = std::chrono::floor<std::chrono::seconds>(now);
  status.conditions = policy.status.conditions;
  crds::SetCondition(status.conditions, std::move(ready));
}

// Of a policy that waits for another plugin: where the pods are that do not offer anything.
void SayWhereToLook(const std::vector<std::string>& awaiting, const std::vector<PluginClass>& classes,
                    std::string_view ns, crds::RdmaDevicePolicyStatus& status) {
  const auto of = std::find_if(classes.begin(), classes.end(), [&](const PluginClass& one) {
    return std::binary_search(one.nodes.begin(), one.nodes.end(), awaiting.front());
  });
  if (of == classes.end()) return;
  for (crds::Condition& condition : status.conditions) {
    if (condition.type != crds::kReady || condition.reason != "Waiting") continue;
    condition.message += fmt::format("; of {} look at: kubectl -n {} get pods -o wide -l {}={}",
                                     awaiting.front(), ns, kPluginPodLabel, ObjectName(*of));
  }
}

// Nodes of which nobody knows which interfaces they have: their status cannot be read, or was lost, as from a backup,
// while what they were told still stands.
std::vector<UnreadNode> UnknownOf(const std::vector<DeviceNode>& nodes, std::vector<UnreadNode> unread) {
  for (const DeviceNode& node : nodes) {
    if (!node.observed && !node.wishes.empty())
      unread.push_back({node.name, node.labels, "its agent has not published yet"});
  }
  return unread;
}

// Of which only that it can be read counts.
kube::Json AnySpec() {
  kube::Json resource, spec;
  resource["name"] = "heddle.dev/rdma";
  spec["resources"].push_back(std::move(resource));
  return spec;
}

constexpr std::array kTold{PolicyEvent{kNotRun, "DevicesPluginNotRun", kube::Severity::kWarning},
                           PolicyEvent{kNotTold, "DevicesNotTold", kube::Severity::kWarning},
                           PolicyEvent{kNotUnderstood, "DevicesNotUnderstood", kube::Severity::kWarning},
                           PolicyEvent{"Refused", "DevicesRefused", kube::Severity::kWarning},
                           PolicyEvent{"Conflict", "DevicesConflict", kube::Severity::kWarning},
                           PolicyEvent{"Offered", "DevicesOffered", kube::Severity::kNormal}};

}  // namespace

base::Result<Outcome> DeviceReconciler::Reconcile(const std::stop_token& stop) {
  const auto policies = ReadPolicies(reads_.policies, "RdmaDevicePolicy", &crds::RdmaDevicePolicyFromJson);
  const auto nodes = nodes_.Read(reads_.nodes, reads_.topologies, writes_.ahead(), clock_.Now(),
                                 [](DeviceNode& node, crds::NodeTopology&& topology) {
                                   node.observed = topology.status.observed_at.has_value();
                                   node.node.nics = std::move(topology.status.node.nics);
                                   node.wishes = std::move(topology.spec.devices);
                                   node.reports = std::move(topology.status.devices);
                                 });
  std::set<crds::DevicePlugin> others;
  for (const auto& [plugin, image] : objects_.plugins().images) others.insert(plugin);
  DeviceRollout rollout = DecideDevices(policies, nodes, others, clock_.WallNow(), nodes_.unread());
  // Before the statuses, which say what became of it.
  const std::vector<PluginClass> classes = PluginClasses(nodes, rollout);
  for (const auto& [policy, awaiting] : rollout.await_plugin)
    SayWhereToLook(awaiting, classes, objects_.plugins().ns, rollout.statuses.at(policy));
  const auto run = objects_.Reconcile(classes, reads_.nodes, UnknownOf(nodes, nodes_.unread()), stop);
  PolicyPass pass(writes_, events_, kTold, stop);
  for (const DeviceNode& node : nodes) {
    const auto& wanted = rollout.wishes.at(node.name);
    if (wanted == node.wishes) continue;
    // Taken out by writing what this version knows: an agent that does not know it either offers nothing of the entry.
    const bool foreign = std::any_of(node.wishes.begin(), node.wishes.end(),
                                     [](const auto& wish) { return !wish.not_understood.empty(); });
    pass.Spec(node.name, nodes_.UidOf(node.name),
              foreign ? kube::Json("another version's") : DevicesOf(node.wishes), DevicesOf(wanted));
  }
  const auto not_told = NotToldOf(pass.Refused(), rollout.wishes);
  std::set<std::string> said;  // nodes of which a policy says that they are not told
  for (const crds::RdmaDevicePolicy& policy : policies.read) {
    const auto status = rollout.statuses.find(policy.name);
    if (status == rollout.statuses.end()) continue;
    const bool other =
        policy.spec.plugin != crds::DevicePlugin::kHeddle && others.contains(policy.spec.plugin);
    if (!run && other && !stop.stop_requested())
      SayNotRun(policy, run.error(), clock_.WallNow(), status->second);
    crds::RdmaDevicePolicy wanted;
    wanted.name = policy.name;
    wanted.uid = policy.uid;
    wanted.status = status->second;
    const auto untold = not_told.find(policy.name);
    if (untold != not_told.end() && SayNotTold(untold->second, crds::kReady, policy.status.conditions,
                                               clock_.WallNow(), wanted.status.conditions))
      said.insert(untold->second.nodes.begin(), untold->second.nodes.end());
    pass.Status(kRdmaDevicePolicies, policy, StatusOf(policy.status), crds::StatusApplyJson(wanted),
                {policy.status.conditions, wanted.status.conditions});
  }
  for (const auto& [name, unreadable] : policies.unreadable) {
    TellNotUnderstood(unreadable, &crds::RdmaDevicePolicyFromJson, AnySpec(), kRdmaDevicePolicies, StatusOf,
                      clock_.WallNow(), pass);
  }
  pass.TellRefused(said);
  pass.Take(run);
  return pass.Sum();
}

}  // namespace heddle::operators
