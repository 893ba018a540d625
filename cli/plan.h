#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/ground.h"
#include "cli/output.h"

namespace heddle::cli {

inline constexpr int kUsualGpusPerPod = 8;

// A what-if on a cluster in files or in one line: no API server is asked.
struct PlanOptions {
  GroundOptions ground;
  std::string parallelism;          // "tp=8,pp=2,dp=8"
  std::optional<int> gpus_per_pod;  // nothing = kUsualGpusPerPod
  std::string model, require, prefer;
  int spares = 0;        // free nodes to keep in every NVLink domain over nodes that is used
  bool what_if = false;  // also: how many more of these fit, or who would have to end
  // Instead of a plan: the fastest layouts for this model and number of GPUs. `parallelism` may then be empty.
  bool suggest = false;
  std::optional<std::int64_t> gpus;          // with suggest, instead of parallelism
  std::optional<std::int64_t> global_batch;  // with suggest: sequences per step
  // Instead of a plan: which gangs to move so that so many NVLink domains (or scalable units) are whole.
  std::optional<int> defragment;
  // With defragment only; nothing = nvlink, 1 and 10.
  std::string defragment_level;        // "nvlink" or "su"
  std::optional<int> defragment_gpus;  // the least that a place must have to count
  std::optional<int> slower_percent;   // a moved gang may be slower than now by so much; -1 = by any much
};

// Exit codes: 0 planned, 3 refused, 2 bad input. JSON and YAML have the stable form
//   feasible, ranks: [{rank, pod, node, gpu, nic, rail, leaf, nvlinkDomain}],
//   axes: [{axis, size, groups, worstTier, edges, leafCrossings, bytes, algorithm, boundBy, gbps,
//   milliseconds}], leafCrossings,
//   milliseconds, refusal: {reason, message, closest: {place, name, neededGpus, hasGpus}}; rail, leaf, nic
//   and closest may be null. With suggest the form is SuggestJson's (suggest.h), with defragment DefragmentJson's
//   (defragment.h).
Output Plan(const PlanOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
