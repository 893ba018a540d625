#pragma once

#include <string>

#include "cli/ground.h"
#include "cli/output.h"

namespace heddle::cli {

// A what-if on a cluster in files or in one line: no API server is asked.
struct PlanOptions {
  GroundOptions ground;
  std::string parallelism;  // "tp=8,pp=2,dp=8"
  int gpus_per_pod = 8;
  std::string model, require, prefer;
  bool what_if = false;  // also: how many more of these fit, or who would have to end
};

// Exit codes: 0 planned, 3 refused, 2 bad input. JSON and YAML have the stable form
//   feasible, ranks: [{rank, pod, node, gpu, nic, rail, leaf, nvlinkDomain}],
//   axes: [{axis, size, groups, worstTier, edges, leafCrossings, bytes, milliseconds}], leafCrossings,
//   milliseconds, refusal: {reason, message, closest: {place, name, neededGpus, hasGpus}}; rail, leaf, nic
//   and closest may be null.
Output Plan(const PlanOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
