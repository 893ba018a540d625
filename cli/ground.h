#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "placement/cluster_state.h"

namespace heddle::cli {

// Where `plan` looks for a cluster and for what stands on it.
struct GroundOptions {
  std::vector<std::string> topology;  // files, as ReadClusterFile takes them
  std::string synthetic;              // else topology/synthetic.h's notation
  // GPUs that others hold: a file of Pods or Gangs, or "node-00=4,node-03=8" (the lowest indexes). Who names none of
  // its nodes to a cluster in one line is refused.
  std::string taken;
};

// One fabric to plan on.
struct Ground {
  FabricPtr fabric;
  std::vector<placement::NodeState> nodes;  // CPU, memory and pod slots without end: what-ifs are about GPUs
  std::vector<placement::LeafLoad> loads;   // what gangs in the files send over shared links

  placement::ClusterState State() const;
};

// Who stands on GPUs: a Gang, a pod of none, or what --taken said.
struct Holder {
  std::string name;                           // "gang train/llama", "pod dev/notebook"
  std::map<std::string, std::uint32_t> gpus;  // positions by node; no two holders share one
  int gang = -1;                              // index into Grounds::gangs; -1 = no Gang
};

struct Grounds {
  std::vector<Ground> fabrics;
  std::vector<Holder> holders;
  std::vector<crds::Gang> gangs;  // as the files have them, ended ones too
};

// All fabrics of the cluster. GPUs that are broken, granted by a kubelet, or in the plan of a Gang that has
// not ended are taken. Errors are of the input (kInvalid) or of reading (as `read` says).
// The same of objects that were read from a live cluster. Topologies without a node's fabric make no ground.
[[nodiscard]] base::Result<Grounds> GroundsOf(ClusterFiles files);
[[nodiscard]] base::Result<Grounds> ReadGround(const GroundOptions& options, const ReadFile& read);

}  // namespace heddle::cli
