#pragma once

#include <memory>
#include <string>

#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::test {

// Objects of an Indexed Job as the API server stores them, for tests of pure functions.
inline kube::Json IndexedJob(int pods, const std::string& uid = "job-uid") {
  kube::Json job = kube::NewObject(kube::kJobs, {"train", "job"});
  job["metadata"]["uid"] = uid;
  job["spec"] = {{"completionMode", "Indexed"}, {"completions", pods}, {"parallelism", pods}};
  return job;
}

inline kube::Json GatedPod(int index, const std::string& parallelism = "tp=8,dp=2", int gpus = 8) {
  kube::Json pod = kube::NewObject(kube::kPods, {"train", "job-" + std::to_string(index)});
  auto& metadata = pod["metadata"];
  metadata["uid"] = "pod-" + std::to_string(index);
  metadata["resourceVersion"] = "7";
  metadata["labels"] = {{"batch.kubernetes.io/job-completion-index", std::to_string(index)}};
  metadata["annotations"] = {{std::string(crds::keys::kParallelism), parallelism}};
  metadata["ownerReferences"] = kube::Json::array({{{"apiVersion", "batch/v1"},
                                                    {"kind", "Job"},
                                                    {"name", "job"},
                                                    {"uid", "job-uid"},
                                                    {"controller", true}}});
  pod["spec"] = {{"schedulerName", "heddle"},
                 {"schedulingGates", kube::Json::array({{{"name", crds::keys::kGangGate}}})},
                 {"containers", kube::Json::array({{{"name", "main"},
                                                    {"resources",
                                                     {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}},
                                                      {"requests", {{"cpu", "4"}, {"memory", "1Gi"}}}}}}})}};
  pod["status"] = {{"phase", "Pending"}};
  return pod;
}

inline std::shared_ptr<const kube::Json> Share(kube::Json object) {
  return std::make_shared<const kube::Json>(std::move(object));
}

}  // namespace heddle::test
