#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crds/keys.h"
#include "extender/gang_key.h"
#include "extender/owner_kinds.h"
#include "extender/slimming.h"
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

// As the extender's cache has a pod.
inline std::shared_ptr<const kube::Json> Cached(kube::Json pod) {
  return Share(extender::SlimPods(extender::Mode::kPlace).transform(std::move(pod)));
}

// A JobSet of two Jobs of two pods each, of which only the last rank's pod is there: its Jobs say that the others are
// done.
struct JobSetNearItsEnd {
  JobSetNearItsEnd() {
    set["metadata"]["uid"] = "set-uid";
    kube::Json replicated{{"name", "workers"}, {"replicas", 2}};
    replicated["template"]["spec"] = IndexedJob(2)["spec"];
    const kube::Json last = GatedPod(1, "tp=8,dp=4");
    replicated["template"]["spec"]["template"]["metadata"]["annotations"] = last["metadata"]["annotations"];
    set["spec"]["replicatedJobs"] = kube::Json::array({replicated});
    pod = Cached(OfJob(last, "1"));
    jobs = {JobOf("0", "0-1"), JobOf("1", "0")};
  }

  kube::Json set = kube::NewObject(extender::OwnerKindOf("jobset.x-k8s.io/v1alpha2", "JobSet")->resource,
                                   {"train", "set"});
  std::shared_ptr<const kube::Json> pod;                // of rank 3
  std::vector<std::shared_ptr<const kube::Json>> jobs;  // in their order

 private:
  static kube::Json OfJob(kube::Json object, const char* number) {
    auto& labels = object["metadata"]["labels"];
    labels[std::string(extender::jobset::kUid)] = "set-uid";
    labels[std::string(extender::jobset::kName)] = "set";
    labels[std::string(extender::jobset::kReplicatedJob)] = "workers";
    labels[std::string(extender::jobset::kJobIndex)] = number;
    return object;
  }
  static std::shared_ptr<const kube::Json> JobOf(const char* number, const char* done) {
    kube::Json job = IndexedJob(2);
    job["status"]["completedIndexes"] = done;
    return Share(OfJob(std::move(job), number));
  }
};

}  // namespace heddle::test
