#pragma once

#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/client.h"
#include "operator/lossless_rollout.h"
#include "operator/outcome.h"
#include "operator/view.h"

namespace heddle::operators {

// Writes what LosslessPolicies make of each node's ports into NodeTopology.spec.lossless, and what came of it
// into their statuses, each on change only; a status at most once in 10 s. A policy that changes nothing
// causes no write. Thread rule: Reconcile on one thread at a time.
class LosslessReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
    const View& policies;
  };
  LosslessReconciler(kube::Client& client, base::Clock& clock, Reads reads)
      : client_(client), clock_(clock), reads_(reads) {}

  // All nodes and policies at once: one write that fails does not hold up the others, and the first error is
  // returned.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::stop_token& stop);

 private:
  struct Known {
    kube::ObjectPtr object;
    LosslessNode node;
    bool readable = false;
  };
  LosslessPolicies ReadPolicies() const;
  // Only what changed since the last look is taken apart.
  std::vector<LosslessNode> ReadNodes();
  base::Result<Outcome> WriteWishes(const LosslessNode& node, const std::vector<crds::LosslessWish>& wishes,
                                    const std::stop_token& stop);
  base::Result<Outcome> WriteStatus(const crds::LosslessPolicy& policy,
                                    const crds::LosslessPolicyStatus& status, const std::stop_token& stop);

  kube::Client& client_;
  base::Clock& clock_;
  const Reads reads_;
  std::map<std::string, Known> known_;                     // by node
  std::map<std::string, base::MonotonicTime> last_write_;  // of a status, tried or done
};

}  // namespace heddle::operators
