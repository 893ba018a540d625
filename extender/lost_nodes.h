#pragma once

#include <optional>

#include "extender/gang_decision.h"

namespace heddle::extender {

// A gang whose pods are all bound runs, as far as Kubernetes says, for minutes after one of their nodes has fallen
// silent: the pod there is evicted when its toleration ends. Until then nothing of the gang's can be moved, but a
// person can be told; and that an evicted pod does not end, where its owner waits for that. Nothing where no rank's pod
// stands on a node that is NotReady.
std::optional<InputRefusal> NodesLost(const GangInput& input);

// Whether one of the plan's nodes is NotReady or gone now.
bool StandsOnLostNode(const crds::Gang& gang, const Snapshot& snapshot);

inline constexpr std::string_view kNodeLost = "NodeLost";

}  // namespace heddle::extender
