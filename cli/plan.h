#pragma once

#include <string>

#include "cli/output.h"

namespace heddle::cli {

// A what-if on a cluster that is written in one line: no API server is asked.
struct PlanOptions {
  std::string fabric;       // topology/synthetic.h's notation
  std::string parallelism;  // "tp=8,pp=2,dp=8"
  int gpus_per_pod = 8;
  std::string model, require, prefer;
  std::string taken;  // "node-00=4,node-03=8": GPUs that others hold, the lowest indexes
};
Output Plan(const PlanOptions& options, const OutputOptions& look);

}  // namespace heddle::cli
