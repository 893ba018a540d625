#include "kube/suspend_switch.h"

#include <algorithm>
#include <array>
#include <string>

namespace heddle::kube {

std::span<const SuspendSwitch> SuspendSwitches() {
  const auto custom = [](const char* group, const char* version, const char* plural, const char* kind) {
    return CustomResource(group, version, plural, kind, true);
  };
  static const std::array<SuspendSwitch, 7> switches{
      SuspendSwitch{kJobs, false, false},
      SuspendSwitch{custom("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"), false, false},
      SuspendSwitch{custom("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"), true, false},
      SuspendSwitch{custom("kubeflow.org", "v2beta1", "mpijobs", "MPIJob"), true, false},
      SuspendSwitch{custom("ray.io", "v1", "rayclusters", "RayCluster"), false, false},
      SuspendSwitch{custom("ray.io", "v1", "rayjobs", "RayJob"), false, true},
      SuspendSwitch{custom("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"), false, true}};
  return switches;
}

const SuspendSwitch* SuspendSwitchOf(std::string_view api_version, std::string_view kind) {
  const auto switches = SuspendSwitches();
  const auto found = std::find_if(switches.begin(), switches.end(), [&](const SuspendSwitch& one) {
    return one.resource.kind == kind && one.resource.ApiVersion() == api_version;
  });
  return found == switches.end() ? nullptr : &*found;
}

bool IsSuspended(const Json& owner) {
  return BoolAt(owner, {"spec", "suspend"}).value_or(false) ||
         BoolAt(owner, {"spec", "runPolicy", "suspend"}).value_or(false);
}

Json SwitchPatch(const Json& owner, bool suspended) {
  const SuspendSwitch* one = SuspendSwitchOf(StringAt(owner, {"apiVersion"}), StringAt(owner, {"kind"}));
  Json patch = {{"metadata", {{"uid", Uid(owner)}}}};
  if (one != nullptr && one->in_run_policy) {
    patch["spec"]["runPolicy"]["suspend"] = suspended;
  } else {
    patch["spec"]["suspend"] = suspended;
  }
  return patch;
}

}  // namespace heddle::kube
