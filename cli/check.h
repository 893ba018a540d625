#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/cluster_files.h"
#include "cli/landing.h"
#include "cli/output.h"
#include "crds/pod_group.h"
#include "crds/workload_check.h"
#include "kube/client.h"

namespace heddle::cli {

struct CheckOptions {
  std::vector<std::string> targets;  // FILE, "-" (standard input), or KIND/NAME in the cluster
  std::string ns;                    // of KIND/NAME
  // What is known of the nodes, in place of what a cluster says, or nobody does (8 GPUs, RoCE).
  std::optional<int> gpus_per_node;
  bool infiniband = false;
  std::vector<std::string> rdma_resources;
  std::vector<std::string> topology;  // files that say it of the nodes, and are the cluster to land in
  bool where = false;                 // also: where it would land in the cluster now
  bool rules = false;                 // instead: what is looked for
};

// An object in the cluster, as "job/llama".
struct LiveWorkload {
  kube::Resource resource;
  std::string name;
  // What it makes under its own name, and whose pod templates are looked at; nothing = it has its own.
  std::optional<kube::Resource> makes;
};
// Nothing where it is a file: KIND is none that is known, or NAME is no name or ends as files do ("./job/x" is a file).
std::optional<LiveWorkload> LiveWorkloadOf(const std::string& target);
// Of a target that is no file: how to write the workload in the cluster that may be meant, to follow the error; empty
// where it can only be a file.
std::string MeantInCluster(const std::string& target);
bool AsksCluster(const CheckOptions& options);
// Whether there is something to look at: what can be told before a cluster or a file is read.
[[nodiscard]] base::Status CheckWords(const CheckOptions& options);

using ReadWorkload = std::function<base::Result<Json>(const LiveWorkload& workload)>;
using ReadPodGroup = std::function<base::Result<Json>(const crds::PodGroupRef& group)>;

// Where what is looked at comes from.
struct CheckSources {
  ReadFile read;
  ReadWorkload live;                      // called only where AsksCluster
  const LandingGround* ground = nullptr;  // null = where it would land is not asked
  ReadPodGroup group = {};                // of a pod that `live` brought
};

// Says what of these workloads would go wrong. Exit codes: 0 nothing was found, 3 something was, a TrainJob without its
// runtime among it, 2 something could not be read, 1 the cluster could not be asked; the rest was looked at all the
// same. To have no place just now is nothing wrong.
Output Check(const CheckOptions& options, const crds::WorkloadGround& ground, const CheckSources& sources,
             const OutputOptions& look);

// The same with what the cluster says of its nodes and of its objects; of nodes options.topology, where it is given.
// `clock` is the API server's.
Output RunCheck(kube::Client& client, base::Clock& clock, const CheckOptions& options, const ReadFile& read,
                const OutputOptions& look, const std::stop_token& stop);
// The same of files alone: where not AsksCluster.
Output CheckFiles(const CheckOptions& options, const ReadFile& read, const OutputOptions& look);

// What is known where neither a cluster nor its files are asked.
crds::WorkloadGround GroundOf(const CheckOptions& options);

}  // namespace heddle::cli
