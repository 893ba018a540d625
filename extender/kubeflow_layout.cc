// How Kubeflow's jobs number their pods (training-operator v1.9, mpi-operator v0.6).
#include <algorithm>

#include "extender/owner_layout.h"

namespace heddle::extender {
namespace {

constexpr std::string_view kReplicaIndex = "training.kubeflow.org/replica-index";
constexpr std::string_view kReplicaType = "training.kubeflow.org/replica-type";  // "master", "worker"
constexpr std::int64_t kMostWorkers =
    1 << 20;  // far more than any gang; what is beyond is refused all the same

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
  layout.elastic = kube::Find(owner, {"spec", "elasticPolicy"}) != nullptr;
  // Without a master the operator sets no RANK either.
  layout.own_ranks =
      layout.elastic || kube::Find(owner, {"spec", "pytorchReplicaSpecs", "Master"}) == nullptr;
  return layout;
}

namespace {

// The launcher has the annotation, or has it not, as it is or is not a worker; and where it is one, it does not wait
// for the others.
std::optional<InputRefusal> LauncherTrouble(const kube::Json& owner, bool works) {
  const std::string title = "MPIJob " + kube::Name(owner);
  const bool wants = WantsGang(owner, {"spec", "mpiReplicaSpecs", "Launcher", "template"});
  if (!works && wants) {
    return InputRefusal{
        "LauncherIsNoWorker",
        "the launcher of " + title +
            " asks for a place in the gang and is no worker; remove heddle.dev/parallelism from "
            "the Launcher's template, or set spec.runLauncherAsWorker: true"};
  }
  if (works && !wants && WantsGang(owner, {"spec", "mpiReplicaSpecs", "Worker", "template"})) {
    return InputRefusal{"LauncherIsWorker",
                        title +
                            " runs its launcher as a worker, so it is one of the gang; write "
                            "heddle.dev/parallelism and the workers' GPUs on the Launcher's template, too"};
  }
  if (works && kube::StringAt(owner, {"spec", "launcherCreationPolicy"}) == "WaitForWorkersReady") {
    return InputRefusal{"LauncherLast", title +
                                            " makes its launcher only when the workers are ready, and a gang "
                                            "starts all of them together; set spec.launcherCreationPolicy: "
                                            "AtStartup"};
  }
  return std::nullopt;
}

}  // namespace

// Processes are numbered in the order of the hostfile, which is that of the workers. A launcher that is a worker comes
// first. Labels do not say so alike: v0.6.0 counts its workers from 0 and its launcher not at all, what came after
// (kubeflow/mpi-operator#690) gives the launcher 0 and the workers 1 and on. Their names are worker-0 and on in both.
OwnerLayout LayoutOfMpiJob(const kube::Json& owner) {
  const bool launcher_works = kube::BoolAt(owner, {"spec", "runLauncherAsWorker"}).value_or(false);
  const kube::Json* workers = kube::Find(owner, {"spec", "mpiReplicaSpecs", "Worker"});
  OwnerLayout layout;
  layout.index_mark = kReplicaIndex;
  layout.own_ranks = true;
  if (launcher_works) {
    const std::int64_t others = workers == nullptr ? 0 : kube::IntAt(*workers, {"replicas"}).value_or(1);
    layout.Append("", 1, std::clamp<std::int64_t>(others, 0, kMostWorkers) + 1);
    layout.launcher_first = true;
  } else {
    layout.segment_mark = mpi::kRole;
    AddReplicas(layout, "worker", workers);
  }
  layout.refusal = LauncherTrouble(owner, launcher_works);
  return layout;
}

}  // namespace heddle::extender
