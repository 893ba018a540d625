#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/ground.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

struct BenchOptions {
  std::string target;              // KIND/NAME, as explain takes it
  std::string ns;                  // of it; empty offline = any
  std::vector<std::string> nodes;  // instead: whole nodes
  GroundOptions ground;            // files or a line in place of a cluster
  std::string collective;          // "all_reduce"; empty = what the results say, else that
  std::string image;               // for a manifest
  std::vector<std::string> rdma_resources;
  std::string network;       // Multus' name of the NICs' interfaces
  std::string gpu_resource;  // of nodes
  std::string results;       // FILE or "-": instead of a manifest, measured beside predicted
};
// Whether a cluster is asked: neither --topology nor --synthetic stands for one.
bool AsksCluster(const BenchOptions& options);

// Whether the options go together: what can be said of them before a cluster or a file is read.
[[nodiscard]] base::Status CheckWords(const BenchOptions& options);

// nccl-tests over the ranks of a gang, or over whole nodes: a manifest that runs it, with what is predicted of it; or
// what it measured beside that. Exit codes: 0 done, 3 something is much slower than predicted, came out wrong, or did
// not come to its end, 2 called wrongly, or files that cannot be read. JSON and YAML have the stable form
//   subject, fabric, ranks, pods, gpusPerPod, nodes: by rank, each where it begins, manifest: object or null,
//   runs: [{collective, algorithm, boundBy, gbps, finished, wrongElements,
//           sizes: [{bytes, predicted: TIME, measured: TIME or null, inPlace: TIME or null, ratio or null}]}],
//   findings: [{severity: "Error" or "Warning", what, sentence}]
// where TIME is {busGbs, microseconds, wrongElements: number or null}, ratio is of bandwidths, and gbps, algorithm and
// boundBy are of the largest size.
Output Bench(const BenchOptions& options, const ReadFile& read, const OutputOptions& look);
// The same with the cluster's own nodes and gangs; 1 where it cannot be asked, or has no such gang, no such node, or no
// places for the gang yet. What --results names is read before it is asked.
Output RunBench(kube::Client& client, const BenchOptions& options, const ReadFile& read,
                const OutputOptions& look, const std::stop_token& stop);

}  // namespace heddle::cli
