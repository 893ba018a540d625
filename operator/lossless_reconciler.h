#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "kube/client.h"
#include "kube/events.h"
#include "operator/lossless_rollout.h"
#include "operator/outcome.h"
#include "operator/policy_reads.h"
#include "operator/policy_writes.h"
#include "operator/view.h"

namespace heddle::operators {

// Writes what LosslessPolicies make of each node's ports into NodeTopology.spec.lossless, and what came of it
// into their statuses, each on change only; a status at most once in 10 s. A policy that changes nothing
// causes no write, and an event says what a status changed to. Thread rule: Reconcile on one thread at a time.
class LosslessReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
    const View& policies;
    std::function<std::set<std::string>()> late;  // nodes whose agents have fallen silent; absent = none has
  };
  LosslessReconciler(kube::Client& client, base::Clock& clock, Reads reads, kube::EventRecorder& events)
      : clock_(clock), writes_(client, clock, "lossless"), reads_(std::move(reads)), events_(events) {}

  // All nodes and policies at once: one write that fails does not hold up the others, and the first error is
  // returned.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::stop_token& stop);

 private:
  base::Clock& clock_;
  PolicyWrites writes_;
  const Reads reads_;
  kube::EventRecorder& events_;
  PolicyNodes<LosslessNode> nodes_;
};

}  // namespace heddle::operators
