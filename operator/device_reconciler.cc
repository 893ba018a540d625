#include "operator/device_reconciler.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "crds/node_topology.h"
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

}  // namespace

base::Result<Outcome> DeviceReconciler::Reconcile(const std::stop_token& stop) {
  const auto policies = ReadPolicies(reads_.policies, "RdmaDevicePolicy", &crds::RdmaDevicePolicyFromJson);
  const auto nodes =
      nodes_.Read(reads_.nodes, reads_.topologies, [](DeviceNode& node, crds::NodeTopology&& topology) {
        node.observed = topology.status.observed_at.has_value();
        node.node.nics = std::move(topology.status.node.nics);
        node.wishes = std::move(topology.spec.devices);
        node.reports = std::move(topology.status.devices);
      });
  std::set<crds::DevicePlugin> others;
  for (const auto& [plugin, image] : objects_.plugins().images) others.insert(plugin);
  const DeviceRollout rollout = DecideDevices(policies, nodes, others, clock_.WallNow());
  Outcome total;
  std::optional<base::Error> failed;
  const auto take = [&](const base::Result<Outcome>& one) {
    if (one) {
      AddUp(total, *one);
    } else if (!failed) {
      failed = one.error();
    }
  };
  for (const DeviceNode& node : nodes) {
    if (stop.stop_requested()) return total;
    const auto& wishes = rollout.wishes.at(node.name);
    if (wishes == node.wishes) continue;
    kube::Json wanted = DevicesOf(wishes);
    if (wanted == DevicesOf(node.wishes)) continue;
    spdlog::info("Telling NodeTopology its devices node={} resources={}", node.name, wishes.size());
    take(writes_.Spec(node.name, nodes_.UidOf(node.name), "devices", std::move(wanted), stop));
  }
  for (const crds::RdmaDevicePolicy& policy : policies.read) {
    const auto status = rollout.statuses.find(policy.name);
    if (status == rollout.statuses.end() || StatusOf(status->second) == StatusOf(policy.status)) continue;
    crds::RdmaDevicePolicy wanted;
    wanted.name = policy.name;
    wanted.uid = policy.uid;
    wanted.status = status->second;
    take(writes_.Status(kRdmaDevicePolicies, policy.name, crds::StatusApplyJson(wanted), stop));
  }
  take(objects_.Reconcile(PluginClasses(nodes, rollout), reads_.nodes, stop));
  if (failed) return base::Fail(*failed);
  return total;
}

}  // namespace heddle::operators
