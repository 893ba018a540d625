#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "crds/condition.h"
#include "crds/lossless_policy.h"
#include "crds/node_lossless.h"
#include "lossless/port_settings.h"
#include "operator/lossless_rollout.h"

namespace heddle::operators {

// What the ports of a policy are, and of each kind of trouble the first, in words that begin with "; ".
struct LosslessTally {
  crds::LosslessCounts counts;
  std::map<crds::LosslessState, std::string> first;
  int admitted = 0;        // of the nodes: those that may have this generation
  int of_policies = 0;     // of the conflicting: those that other policies select, too
  std::string rivalry;     // the first of these
  int kept = 0;            // of the conflicting: those that keep what a policy told them which cannot be read
  std::string keeper;      // the first of these, and that policy
  int refused = 0;         // of the failed: those whose NIC cannot have it
  std::string refusal;     // the first of these
  std::string unreported;  // the first port that was told and has not said how it is: "gpu-001 mlx5_0:1"
  std::vector<std::string>
      silent;  // of the nodes that were told and are not well: "gpu-001 (its agent is silent)"
  // Of compliant ports, by setting: what nobody could read of them (lossless::Unproved).
  struct Open {
    int ports = 0;
    std::string first;  // "gpu-001 mlx5_0:1: debugfs is not mounted"
  };
  std::map<lossless::Setting, Open> unproved;
  int unread = 0;         // of the nodes: those of which nobody knows what ports they have
  std::string illegible;  // the first of these, and why
};

// One port more that is in this state.
void CountPort(crds::LosslessState state, crds::LosslessCounts& counts);

// The condition Ready of a policy: the worst that there is to say, with an example of it. `now` is its time where its
// status changes. Pure.
crds::Condition LosslessReady(const crds::LosslessPolicy& policy, const LosslessSoundness& soundness,
                              const LosslessTally& tally, base::WallTime now);

}  // namespace heddle::operators
