#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/fabrics.h"
#include "cli/gpu_use.h"
#include "cli/remedies.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "crds/gang.h"
#include "kube/object.h"

namespace heddle::cli {

// What was read of the cluster about what makes one gang.
struct ExplainReading {
  std::string kind;  // "Job", "JobSet", "Gang", "Pods"
  kube::ObjectKey key;
  Json owner;                     // the object; null for pods without one
  std::vector<std::string> uids;  // of the owner, and of what it makes that makes the gang
  std::vector<Json> own_pods;     // of a Job all, by its label; else those that the gang's plan has named
  std::vector<Json> pods;         // of all namespaces we may see, with its own; for who holds which GPUs
  bool all_pods = false;          // those are all that there are, and not only its own
  std::vector<Json> gangs;        // of all namespaces we may see
  std::vector<Json> nodes;        // where a gang lacks room; else empty
  FabricReading fabrics;
  // By node, as LateAgents; where a gang lacks room.
  std::set<std::string> late_agents;
  int spares = 0;  // that the extender's new gangs leave free; where a gang lacks room
  std::vector<std::string> notes;
};

// The Gang of what was asked for: of several attempts the last, of several groups the first that does not run, and then
// a note names the others. Nothing where there is none.
std::optional<crds::Gang> GangOf(const ExplainReading& reading, std::vector<std::string>& notes);

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
  std::vector<int> planned;  // those of its plan; empty = it has none
  friend bool operator==(const ExplainedPod&, const ExplainedPod&) = default;
};

struct Explanation {
  std::string kind;  // "Job"
  std::string name;  // "train/llama"
  std::optional<crds::Gang> gang;
  placement::Parallelism parallelism;
  std::string fabric;
  std::vector<ExplainedPod> pods;  // by index; the bound ones only, where some are not
  int pods_wanted = 0;
  std::optional<placement::Quality> quality;  // once every pod is bound
  std::string why_no_quality;                 // a sentence
  std::optional<Waiting> waiting;             // of a gang that does not run, or not as it should
  std::optional<Remedies> remedies;           // of a gang that lacks room
  std::vector<std::string> notes;

  bool assumed_gpus() const;
};

// Fails only where nothing at all can be said: no parallelism, a Job that is no gang, no Gang of anything else.
[[nodiscard]] base::Result<Explanation> Explain(const ExplainReading& reading, const ParallelismFlags& flags);

std::string ExplanationText(const Explanation& explanation, const Style& style);
Json ExplanationJson(const Explanation& explanation);

}  // namespace heddle::cli
