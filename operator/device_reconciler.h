#pragma once

#include <stop_token>

#include "kube/client.h"
#include "operator/device_rollout.h"
#include "operator/outcome.h"
#include "operator/plugin_objects.h"
#include "operator/policy_reads.h"
#include "operator/policy_writes.h"
#include "operator/view.h"

namespace heddle::operators {

// Writes what RdmaDevicePolicies make of each node into NodeTopology.spec.devices, and what came of it into their
// statuses, each on change only; and keeps what runs other plugins where a policy names one. A policy that changes
// nothing causes no write, and an event says what a status turned to. Thread rule: Reconcile on one thread at a time.
class DeviceReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
    const View& policies;
  };
  // `labels_client` writes as field manager heddle-operator-labels: nodes get the class of another plugin's
  // configuration as a label.
  DeviceReconciler(kube::Client& client, kube::Client& labels_client, base::Clock& clock, Reads reads,
                   OtherPlugins others, kube::EventRecorder& events)
      : clock_(clock),
        writes_(client, clock, "devices"),
        objects_(client, labels_client, clock, std::move(others)),
        reads_(reads),
        events_(events) {}

  // All nodes and policies at once: one write that fails does not hold up the others, and the first error is
  // returned.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::stop_token& stop);
  // What it knows of other plugins' objects is of before another led. Not while Reconcile runs.
  void LeadingBegins() { objects_.Forget(); }

 private:
  base::Clock& clock_;
  PolicyWrites writes_;
  PluginObjects objects_;
  const Reads reads_;
  kube::EventRecorder& events_;
  PolicyNodes<DeviceNode> nodes_;
};

}  // namespace heddle::operators
