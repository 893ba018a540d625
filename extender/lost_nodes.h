#pragma once

#include <optional>
#include <set>
#include <string>

#include "extender/gang_decision.h"

namespace heddle::extender {

// A gang whose pods are all bound runs, as far as Kubernetes says, for minutes after one of their nodes has fallen
// silent: the pod there is evicted when its toleration ends. Until then nothing of the gang's can be moved, but a
// person can be told; and that an evicted pod does not end, where its owner waits for that. Nothing where no rank's pod
// stands on a node that is NotReady.
std::optional<InputRefusal> NodesLost(const GangInput& input);

// The planner's words for a gang that found its place before: the nodes beside its ranks that are out of use, or barred
// to the lost ones, are named, and what is called too large for the fabric now is so because of them; or without a node
// that the pods allow, because of the barred. Requires: the gang has a placement.
placement::Refusal ForARepair(placement::Refusal refusal, const GangInput& input, const BarredNodes& barred);

// Whether one of the plan's nodes is among them.
bool StandsOn(const crds::Gang& gang, const std::set<std::string>& nodes);

inline constexpr std::string_view kNodeLost = "NodeLost";

}  // namespace heddle::extender
