#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "crds/object_meta.h"

namespace heddle::crds {

// A pod, or what an object makes pods of.
struct PodTemplate {
  std::string path;  // "spec.template", "spec.replicatedJobs[0].template.spec.template"; empty = it is a Pod
  const Json* pod = nullptr;  // {metadata, spec}, in the object
  std::int64_t pods = 1;      // so many at a time, by replicas, parallelism and completions above it
};

inline constexpr std::size_t kMaxPodTemplates = 64;
inline constexpr std::int64_t kMaxPodsOfTemplate = 1'000'000;

// Every pod template of an object of any kind, in the order of its fields: whatever has spec.containers, in Jobs,
// JobSets, PyTorchJobs, LeaderWorkerSets, Ray clusters and kinds that are not known here. At most kMaxPodTemplates.
// They point into `object`. Pure and total.
std::vector<PodTemplate> PodTemplatesOf(const Json& object);

// A number of devices: "8", 8; 0 where it is no whole number from 0 to a million.
std::int64_t CountOf(const Json& quantity);
// Bytes of a quantity as "2Gi"; -1 where it is none. At most 2^60.
std::int64_t BytesOf(const Json& quantity);

}  // namespace heddle::crds
