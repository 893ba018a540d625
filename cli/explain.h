#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/fabrics.h"
#include "cli/gpu_use.h"
#include "cli/table.h"
#include "crds/gang.h"

namespace heddle::cli {

// What was read of the cluster about one Job.
struct JobReading {
  Json job;
  std::vector<Json> job_pods;
  std::vector<Json> pods;  // of all namespaces we may see, with the Job's; for who holds which GPUs
  std::vector<Json> gangs;
  FabricReading fabrics;
  std::vector<std::string> notes;
};

// What the annotations say, unless a flag says it instead.
struct ParallelismFlags {
  std::string parallelism;
  std::string model;
};

struct ExplainedPod {
  std::string name;
  int index = 0;
  std::string node;
  std::vector<int> gpus;  // as NVML counts them
  GpuSource source = GpuSource::kAssumed;
  friend bool operator==(const ExplainedPod&, const ExplainedPod&) = default;
};

struct Explanation {
  std::string job;  // "train/llama"
  std::optional<crds::Gang> gang;
  placement::Parallelism parallelism;
  std::string fabric;
  std::vector<ExplainedPod> pods;  // by index; the bound ones only, where some are not
  int pods_wanted = 0;
  std::optional<placement::Quality> quality;  // once every pod is bound
  std::string why_no_quality;                 // a sentence
  std::vector<std::string> notes;

  bool assumed_gpus() const;
};

// Fails only where nothing at all can be said: no parallelism, a Job that is no gang.
[[nodiscard]] base::Result<Explanation> Explain(const JobReading& reading, const ParallelismFlags& flags);

std::string ExplanationText(const Explanation& explanation, const Style& style);
Json ExplanationJson(const Explanation& explanation);

}  // namespace heddle::cli
