#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "crds/object_meta.h"

namespace heddle::crds {

// Kubeflow Trainer. A TrainJob has no pod template: it names a runtime, which has them, and says in what its own pods
// differ. The controller makes a JobSet of both. All of this is pure and total.

bool IsTrainJob(const Json& object);
bool IsTrainingRuntime(const Json& object);  // of a namespace, or of the cluster

// The runtime that a TrainJob names.
struct RuntimeRef {
  std::string kind, name;
  std::string ns;  // empty for one of the cluster
};
RuntimeRef RuntimeOf(const Json& train_job);
// Whether it is the one that the TrainJob names. Where one of both does not say its namespace they have the same.
bool Names(const Json& train_job, const Json& runtime);

// The JobSet of both, as Trainer v2.1 makes it (pkg/runtime/core, plugins jobset, torch, plainml and mpi), and with the
// runtimePatches that came with v2.2: how many pods it has, what they ask for, and what stands on their template.
// Images, commands and environment stay the runtime's. Of an empty TrainJob: the runtime as it stands.
Json JobSetOf(const Json& train_job, const Json& runtime);

// What a TrainJob says of the pod template of one replicated job, {metadata, spec}, in the order in which it is
// applied. They point into `train_job`.
std::vector<const Json*> PodPatchesOf(const Json& train_job, const std::string& job);

// The container whose resources spec.trainer.resourcesPerNode takes the place of.
inline constexpr std::string_view kTrainerContainer = "node";
// Whether it does so in this one of the runtime's replicated jobs.
bool TakesTrainerResources(const Json& train_job, const Json& runtime, const Json& job);

}  // namespace heddle::crds
