#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/output.h"

namespace heddle::cli {

// For clusters that do not serve MutatingAdmissionPolicy: does to a manifest what the policy heddle-gang does to pods.
struct PrepareOptions {
  std::vector<std::string> files;  // "-" is standard input
  std::vector<std::string> gpu_resources{"nvidia.com/gpu"};
  bool without_fabric =
      false;  // no agent offers heddle.dev/fabric, and pods that ask for it would wait for ever
};

// Every pod template of an object that asks for a GPU, names no other scheduler and is not bound goes to Heddle's
// scheduler; one with heddle.dev/parallelism gets the gate, and heddle.dev/fabric on its first container with a GPU,
// unless it is told not to.
// Returns how many templates were changed: one that was prepared already is not. Pure.
std::size_t PrepareObject(crds::Json& object, const std::vector<std::string>& gpu_resources,
                          bool without_fabric = false);

// The same of what a controller makes of a TrainJob and of its runtime: Heddle's scheduler is named in the runtime, the
// only place for it; the gate goes where the annotation stands and heddle.dev/fabric where the GPUs do, so that other
// TrainJobs of the runtime get neither by this one. Pure.
std::size_t PrepareTrainJob(crds::Json& train_job, crds::Json& runtime,
                            const std::vector<std::string>& gpu_resources, bool without_fabric = false);

// Whether Heddle takes all of gpu_resources for GPUs: a pod that it does not would be gated and wait for ever.
[[nodiscard]] base::Status CheckWords(const PrepareOptions& options);

// Prints every object of the files, changed or not, for `kubectl create -f -`: YAML documents, with -o json one List. A
// TrainJob whose runtime is in none of them stays as it is, with a note; another note is for each annotation of a pod
// template that Heddle will refuse (crds/pod_annotations.h).
Output Prepare(const PrepareOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
