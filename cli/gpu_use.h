#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/node_topology.h"

namespace heddle::cli {

using crds::Json;

// Where knowledge of a pod's GPUs comes from, the best first.
enum class GpuSource : std::uint8_t {
  kGranted,    // the kubelet said so to the node's agent
  kAnnotated,  // Heddle's plan on the pod
  kAssumed,    // nobody said: the lowest free indexes, as device plugins usually give them
};

struct PodGpus {
  std::uint32_t positions = 0;  // bit = position in Node::gpus
  GpuSource source = GpuSource::kAssumed;
  std::uint32_t planned = 0;  // as positions; 0 = it has no plan
  bool operator==(const PodGpus&) const = default;
};

// The GPUs a pod asks for: of its containers, or of its largest init container if that is more.
int GpusWanted(const Json& pod);
bool IsLive(const Json& pod);  // neither finished nor failed
// The indexes, as people count, of the GPUs at these positions.
std::vector<int> IndexesAt(const topology::Node& node, std::uint32_t positions);

// What tells a pod from all others: its UID, or "namespace/name" where a person wrote it, without one.
std::string PodId(const Json& pod);

// Who holds which GPUs, by PodId, of all bound live pods. Pods that say nothing get the lowest free indexes
// in the order of their creation, then of their completion index, then of their names. A pod that finds too
// few free GPUs is missing in the answer.
std::map<std::string, PodGpus> FindGpuUse(const std::vector<Json>& pods,
                                          const std::vector<crds::NodeTopology>& topologies);

}  // namespace heddle::cli
