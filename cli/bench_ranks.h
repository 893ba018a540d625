#pragma once

#include <string>
#include <vector>

#include "cli/bench.h"
#include "crds/gang.h"
#include "placement/communicator.h"

namespace heddle::cli {

// The GPUs that nccl-tests is to run on, and what it should find there.
struct BenchRanks {
  std::string subject;  // "gang team/llama", "2 nodes"
  std::string fabric;   // as Title()
  bool roce = false;
  std::string name, ns;  // of what would run it
  int pods = 0, gpus_per_pod = 0;
  std::string gpu_resource;
  std::vector<std::string> nodes;  // by pod
  std::vector<std::string>
      pinned;  // the nodes that were named; empty = Heddle places it as it placed the gang
  placement::Parallelism parallelism;
  placement::ModelHints model;
  std::vector<placement::Requirement> require, prefer;
  bool held = false;  // the gang that is there still has the GPUs
  placement::Communicator over;
};

// Pure. Errors: kInvalid, kNotFound with what there is instead.
[[nodiscard]] base::Result<BenchRanks> RanksOf(const BenchOptions& options, const Grounds& grounds);

}  // namespace heddle::cli
