#pragma once

#include <span>
#include <string_view>

#include "kube/object.h"

namespace heddle::kube {

// A kind whose spec has a switch that takes its pods away and brings them back, and whose controller counts no failure
// for that: batch/v1 Job (KEP-2232), JobSet, TrainJob, RayJob, RayCluster by spec.suspend; PyTorchJob and MPIJob by
// spec.runPolicy.suspend.
struct SuspendSwitch {
  Resource resource;
  bool in_run_policy = false;
  bool makes_owners = false;  // it makes no pods but what makes them
};
std::span<const SuspendSwitch> SuspendSwitches();
// Null: it has none.
const SuspendSwitch* SuspendSwitchOf(std::string_view api_version, std::string_view kind);
bool IsSuspended(const Json& owner);
// A merge patch of this one object: who has read another of its name changes nothing.
Json SwitchPatch(const Json& owner, bool suspended);

}  // namespace heddle::kube
