#include "cli/gpu_use.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <tuple>

#include "crds/at_once.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;

constexpr const char* kIndexLabel = "batch.kubernetes.io/job-completion-index";

int ToInt(std::string_view text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int GpusOf(const Json& container) {
  for (const std::string_view resource : crds::kGpuResources) {
    for (const char* list : {"limits", "requests"}) {
      const Json* amount = kube::Find(container, {"resources", list, resource});
      if (amount == nullptr) continue;
      const std::string text = amount->is_string() ? amount->get<std::string>() : amount->dump();
      return std::clamp(ToInt(text, 0), 0, 1024);
    }
  }
  return 0;
}

std::uint32_t Bit(std::size_t position) {
  return position < 32 ? 1U << position : 0;
}

std::uint32_t Granted(const crds::NodeTopology& topology, const Json& pod) {
  const kube::ObjectKey key = kube::KeyOf(pod);
  std::uint32_t indexes = 0;
  for (const crds::Grant& grant : topology.status.grants) {
    // The kubelet gives names only. On its own node a name is one pod's at a time.
    const bool same = grant.pod_uid.empty() ? kube::ObjectKey{grant.pod_namespace, grant.pod_name} == key
                                            : grant.pod_uid == kube::Uid(pod);
    if (!same) continue;
    for (const auto& gpu : grant.gpus) {
      if (gpu.index >= 0) indexes |= Bit(static_cast<std::size_t>(gpu.index));
    }
  }
  return crds::PositionsOf(topology.status.node, indexes);
}

std::uint32_t Annotated(const topology::Node& node, const Json& pod) {
  const auto text = kube::Annotation(pod, keys::kGpus);
  if (!text) return 0;
  return crds::PositionsOf(node, crds::ParseGpuIndexes(*text).value_or(0));
}

// Requires: at least `count` free healthy GPUs, else 0.
std::uint32_t LowestFree(const topology::Node& node, std::uint32_t taken, int count) {
  std::uint32_t chosen = 0;
  for (std::size_t p = 0; p < node.gpus.size() && std::popcount(chosen) < count; ++p) {
    if (node.gpus[p].healthy && (taken & Bit(p)) == 0) chosen |= Bit(p);
  }
  return std::popcount(chosen) == count ? chosen : 0;
}

auto AgeOrder(const Json& pod) {
  return std::tuple(kube::CreationTimestamp(pod).value_or(base::WallTime{}),
                    ToInt(kube::Label(pod, kIndexLabel).value_or(""), 0), kube::KeyOf(pod));
}

}  // namespace

int GpusWanted(const Json& pod) {
  crds::AtOnce<crds::CountAtOnce> gpus;
  for (const Json& container : kube::ArrayAt(pod, {"spec", "initContainers"}))
    gpus.AddInit({GpusOf(container)}, kube::StringAt(container, {"restartPolicy"}) == "Always");
  for (const Json& container : kube::ArrayAt(pod, {"spec", "containers"})) gpus.AddMain({GpusOf(container)});
  return int(std::min<std::int64_t>(gpus.Most().count, 1 << 20));
}

bool IsLive(const Json& pod) {
  const std::string phase = kube::StringAt(pod, {"status", "phase"});
  return phase != "Succeeded" && phase != "Failed";
}

std::vector<int> IndexesAt(const topology::Node& node, std::uint32_t positions) {
  std::vector<int> indexes;
  for (std::size_t p = 0; p < node.gpus.size() && p < 32; ++p) {
    if ((positions >> p & 1U) != 0) indexes.push_back(node.gpus[p].index);
  }
  return indexes;
}

std::string PodId(const Json& pod) {
  std::string uid = kube::Uid(pod);
  return uid.empty() ? kube::KeyOf(pod).ToString() : uid;
}

std::map<std::string, PodGpus> FindGpuUse(const std::vector<Json>& pods,
                                          const std::vector<crds::NodeTopology>& topologies) {
  std::map<std::string, const crds::NodeTopology*> by_name;
  for (const crds::NodeTopology& topology : topologies) by_name[topology.name] = &topology;
  std::map<std::string, std::uint32_t> taken;
  std::map<std::string, PodGpus> use;
  std::vector<const Json*> silent;
  for (const Json& pod : pods) {
    const auto node = by_name.find(kube::StringAt(pod, {"spec", "nodeName"}));
    if (node == by_name.end() || !IsLive(pod) || GpusWanted(pod) == 0) continue;
    const std::uint32_t planned = Annotated(node->second->status.node, pod);
    PodGpus gpus{Granted(*node->second, pod), GpuSource::kGranted, planned};
    if (gpus.positions == 0) gpus = {planned, GpuSource::kAnnotated, planned};
    if (gpus.positions == 0) {
      silent.push_back(&pod);
      continue;
    }
    taken[node->first] |= gpus.positions;
    use[PodId(pod)] = gpus;
  }
  std::sort(silent.begin(), silent.end(),
            [](const Json* a, const Json* b) { return AgeOrder(*a) < AgeOrder(*b); });
  for (const Json* pod : silent) {
    const std::string node = kube::StringAt(*pod, {"spec", "nodeName"});
    const std::uint32_t positions = LowestFree(by_name[node]->status.node, taken[node], GpusWanted(*pod));
    if (positions == 0) continue;
    taken[node] |= positions;
    use[PodId(*pod)] = {positions, GpuSource::kAssumed, 0};
  }
  return use;
}

}  // namespace heddle::cli
