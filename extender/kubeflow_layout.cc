// How Kubeflow's jobs number their pods (training-operator v1.9, mpi-operator v0.6).
#include "extender/owner_layout.h"

namespace heddle::extender {
namespace {

constexpr std::string_view kReplicaIndex = "training.kubeflow.org/replica-index";
constexpr std::string_view kReplicaType = "training.kubeflow.org/replica-type";  // "master", "worker"
constexpr std::string_view kJobRole = "training.kubeflow.org/job-role";          // "launcher", "worker"

void AddReplicas(OwnerLayout& layout, std::string_view name, const kube::Json* replicas) {
  if (replicas == nullptr) return;
  layout.Append(std::string(name), 1, kube::IntAt(*replicas, {"replicas"}).value_or(1));
}

}  // namespace

// The master has rank 0 and the workers follow.
OwnerLayout LayoutOfPyTorchJob(const kube::Json& owner) {
  OwnerLayout layout;
  layout.index_mark = kReplicaIndex;
  layout.segment_mark = kReplicaType;
  AddReplicas(layout, "master", kube::Find(owner, {"spec", "pytorchReplicaSpecs", "Master"}));
  AddReplicas(layout, "worker", kube::Find(owner, {"spec", "pytorchReplicaSpecs", "Worker"}));
  if (kube::Find(owner, {"spec", "elasticPolicy"}) != nullptr) {
    layout.elastic = layout.own_ranks = true;
  }
  return layout;
}

// Processes are numbered in the order of the hostfile, which is that of the workers.
OwnerLayout LayoutOfMpiJob(const kube::Json& owner) {
  OwnerLayout layout;
  layout.index_mark = kReplicaIndex;
  layout.segment_mark = kJobRole;
  layout.own_ranks = true;
  AddReplicas(layout, "worker", kube::Find(owner, {"spec", "mpiReplicaSpecs", "Worker"}));
  if (kube::BoolAt(owner, {"spec", "runLauncherAsWorker"}).value_or(false)) {
    layout.refusal = InputRefusal{
        "LauncherIsWorker",
        "MPIJob " + kube::Name(owner) +
            " runs its launcher as a worker, whose pod belongs to a Job of its own and comes after "
            "the workers; set spec.runLauncherAsWorker: false"};
  }
  return layout;
}

}  // namespace heddle::extender
