#include "extender/owner_kinds.h"

#include <algorithm>
#include <array>

namespace heddle::extender {

std::span<const OwnerKind> OwnerKinds() {
  static const std::array<OwnerKind, 9> kinds{
      OwnerKind{kube::kJobs, true, LayoutOfJob},
      OwnerKind{{"apps", "v1", "statefulsets", "StatefulSet", true}, true, LayoutOfStatefulSet},
      OwnerKind{kube::CustomResource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true), false,
                LayoutOfJobSet},
      OwnerKind{kube::CustomResource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true), false,
                LayoutOfPyTorchJob},
      OwnerKind{kube::CustomResource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob", true), false,
                LayoutOfMpiJob},
      OwnerKind{
          kube::CustomResource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true),
          false, LayoutOfLeaderWorkerSet},
      OwnerKind{kube::CustomResource("ray.io", "v1", "rayclusters", "RayCluster", true), false,
                LayoutOfRayCluster},
      OwnerKind{kube::CustomResource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", true), false,
                LayoutOfPodGroup},
      // Kubernetes 1.36.
      OwnerKind{kube::CustomResource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", true), false,
                LayoutOfPodGroup}};
  return kinds;
}

const OwnerKind* OwnerKindOf(std::string_view api_version, std::string_view kind) {
  const auto kinds = OwnerKinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const OwnerKind& one) {
    return one.resource.kind == kind && one.resource.ApiVersion() == api_version;
  });
  return found == kinds.end() ? nullptr : &*found;
}

std::string OwnerKindWords() {
  return "Indexed Jobs, JobSets (and what makes them, as TrainJobs), PyTorchJobs, MPIJobs, LeaderWorkerSets, "
         "RayClusters (and RayJobs), StatefulSets, and pods of a PodGroup or with the labels "
         "heddle.dev/gang-name, gang-size and gang-rank";
}

}  // namespace heddle::extender
