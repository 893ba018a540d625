#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "cli/quality_view.h"
#include "crds/keys.h"
#include "crds/parallelism.h"
#include "kube/object.h"
#include "placement/planner.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;

constexpr const char* kIndexLabel = "batch.kubernetes.io/job-completion-index";
constexpr std::size_t kNamed = 5;

std::string AnnotationOf(const Json& job, std::string_view key) {
  const Json* pod_template = kube::Find(job, {"spec", "template"});
  if (pod_template != nullptr) {
    if (const auto text = kube::Annotation(*pod_template, key)) return *text;
  }
  return kube::Annotation(job, key).value_or("");
}

std::optional<int> IndexOf(const Json& pod) {
  const std::string text =
      kube::Label(pod, kIndexLabel).value_or(kube::Annotation(pod, kIndexLabel).value_or(""));
  int index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

// A live pod rather than a finished one, then the youngest.
bool Outranks(const Json& a, const Json& b) {
  if (IsLive(a) != IsLive(b)) return IsLive(a);
  return kube::CreationTimestamp(a) > kube::CreationTimestamp(b);
}

std::map<int, const Json*> PodsByIndex(const std::vector<Json>& pods) {
  std::map<int, const Json*> by_index;
  for (const Json& pod : pods) {
    const auto index = IndexOf(pod);
    if (!index || kube::StringAt(pod, {"spec", "nodeName"}).empty()) continue;
    const Json*& chosen = by_index[*index];
    if (chosen == nullptr || Outranks(pod, *chosen)) chosen = &pod;
  }
  return by_index;
}

std::optional<crds::Gang> GangOf(const JobReading& reading, std::vector<std::string>& notes) {
  std::optional<crds::Gang> latest;
  for (const Json& object : reading.gangs) {
    const std::string owner = kube::StringAt(object, {"spec", "owner", "uid"});
    const auto controller = kube::ControllerOwner(reading.job);
    if (owner.empty() || (owner != kube::Uid(reading.job) && !(controller && owner == controller->uid)))
      continue;
    auto gang = crds::GangFromJson(object);
    if (!gang) {
      notes.push_back("The Gang of this Job could not be read: " + gang.error().message);
    } else if (!latest || gang->spec.attempt > latest->spec.attempt) {
      latest = *std::move(gang);
    }
  }
  return latest;
}

base::Result<placement::GangRequest> RequestOf(const JobReading& reading, const ParallelismFlags& flags) {
  placement::GangRequest request;
  const std::string text =
      flags.parallelism.empty() ? AnnotationOf(reading.job, keys::kParallelism) : flags.parallelism;
  if (text.empty()) {
    return base::Fail(Code::kInvalid,
                      fmt::format("Job {} has no annotation {} on its pod template: say how its ranks "
                                  "are cut with --parallelism \"tp=8,pp=2,dp=8\"",
                                  kube::KeyOf(reading.job).ToString(), keys::kParallelism));
  }
  ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(text), keys::kParallelism);
  const std::string model = flags.model.empty() ? AnnotationOf(reading.job, keys::kModel) : flags.model;
  if (!model.empty()) {
    ASSIGN_OR_RETURN(request.model, crds::ParseModel(model), keys::kModel);
  }
  return request;
}

std::string NamesOf(const std::vector<int>& indexes) {
  std::string text;
  for (std::size_t i = 0; i < indexes.size() && i < kNamed; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(indexes[i]);
  return indexes.size() > kNamed ? text + ", ..." : text;
}

// The bound pods with their GPUs, or why they cannot be priced.
struct Placed {
  std::vector<ExplainedPod> pods;
  std::vector<placement::PodPlacement> placements;
  std::string problem;
};

Placed Place(const std::map<int, const Json*>& pods, const topology::Fabric& fabric,
             const std::map<std::string, PodGpus>& use) {
  Placed placed;
  const auto complain = [&](std::string sentence) {
    if (placed.problem.empty()) placed.problem = std::move(sentence);
  };
  for (const auto& [index, pod] : pods) {
    ExplainedPod explained{
        kube::Name(*pod), index, kube::StringAt(*pod, {"spec", "nodeName"}), {}, GpuSource::kAssumed};
    const topology::NodeId node = fabric.FindNode(explained.node);
    const auto gpus = use.find(kube::Uid(*pod));
    if (node == topology::kNone) {
      complain(fmt::format(
          "pod {} is on node {}, which has no topology in fabric {}: does heddle-nodeagent run there?",
          explained.name, explained.node, Title(fabric)));
    } else if (gpus == use.end()) {
      complain(fmt::format("pod {} asks for {} GPUs, and fewer are free and healthy on node {}",
                           explained.name, GpusWanted(*pod), explained.node));
    } else {
      const topology::Node& machine = fabric.nodes[static_cast<std::size_t>(node)].node;
      explained.gpus = IndexesAt(machine, gpus->second.positions);
      explained.source = gpus->second.source;
      placed.placements.push_back({.node = node, .gpus = gpus->second.positions});
    }
    placed.pods.push_back(std::move(explained));
  }
  return placed;
}

// Every GPU that is healthy and held by nobody outside this Job.
std::vector<placement::NodeState> StatesWithout(const topology::Fabric& fabric, const JobReading& reading,
                                                const std::map<std::string, PodGpus>& use) {
  std::vector<placement::NodeState> states(fabric.nodes.size());
  for (std::size_t n = 0; n < states.size(); ++n) {
    const auto& gpus = fabric.nodes[n].node.gpus;
    for (std::size_t p = 0; p < gpus.size() && p < 32; ++p) {
      if (gpus[p].healthy) states[n].free_gpus |= 1U << p;
    }
  }
  std::map<std::string, bool> own;
  for (const Json& pod : reading.job_pods) own[kube::Uid(pod)] = true;
  for (const Json& pod : reading.pods) {
    const auto gpus = use.find(kube::Uid(pod));
    const topology::NodeId node = fabric.FindNode(kube::StringAt(pod, {"spec", "nodeName"}));
    if (gpus == use.end() || node == topology::kNone || own.contains(kube::Uid(pod))) continue;
    states[static_cast<std::size_t>(node)].free_gpus &= ~gpus->second.positions;
  }
  return states;
}

// All live pods and this Job's: a finished Job is priced where it ran.
std::map<std::string, PodGpus> UseOf(const JobReading& reading, const std::map<int, const Json*>& chosen) {
  std::vector<Json> pods;
  std::map<std::string, bool> seen;
  for (const auto& [index, pod] : chosen) {
    Json copy = *pod;
    if (copy.contains("status")) copy["status"].erase("phase");
    seen[kube::Uid(copy)] = true;
    pods.push_back(std::move(copy));
  }
  for (const Json& pod : reading.pods) {
    if (!seen.contains(kube::Uid(pod))) pods.push_back(pod);
  }
  return FindGpuUse(pods, reading.fabrics.topologies);
}

std::string Missing(const std::map<int, const Json*>& chosen, int wanted) {
  std::vector<int> missing;
  for (int i = 0; i < wanted; ++i) {
    if (!chosen.contains(i)) missing.push_back(i);
  }
  if (missing.empty()) return "";
  return fmt::format("{} of {} pods are not bound to a node yet (index {}), so there is nothing to price",
                     missing.size(), wanted, NamesOf(missing));
}

void Price(const JobReading& reading, placement::GangRequest request, Explanation& explanation) {
  const std::map<int, const Json*> chosen = PodsByIndex(reading.job_pods);
  explanation.why_no_quality = Missing(chosen, explanation.pods_wanted);
  std::vector<std::string> nodes;
  nodes.reserve(chosen.size());
  for (const auto& [index, pod] : chosen) nodes.push_back(kube::StringAt(*pod, {"spec", "nodeName"}));
  const FabricPtr fabric = FabricOfMost(reading.fabrics.fabrics, nodes);
  if (fabric == nullptr) {
    if (explanation.why_no_quality.empty()) {
      explanation.why_no_quality =
          "No node of this Job has a NodeTopology that was reported: does heddle-nodeagent run "
          "there? `kubectl get nt` shows what is known";
    }
    return;
  }
  explanation.fabric = Title(*fabric);
  const std::map<std::string, PodGpus> use = UseOf(reading, chosen);
  Placed placed = Place(chosen, *fabric, use);
  explanation.pods = std::move(placed.pods);
  if (explanation.why_no_quality.empty()) explanation.why_no_quality = placed.problem;
  if (!explanation.why_no_quality.empty()) return;
  std::int64_t gpus = 0;
  request.pods.reserve(placed.placements.size());
  for (const placement::PodPlacement& pod : placed.placements) {
    request.pods.push_back({.gpus = std::popcount(pod.gpus)});
    gpus += std::popcount(pod.gpus);
  }
  if (gpus != request.parallelism.world()) {
    explanation.why_no_quality =
        fmt::format("{} makes {} ranks, but the pods have {} GPUs: correct the parallelism",
                    ParallelismText(request.parallelism), request.parallelism.world(), gpus);
    return;
  }
  const placement::ClusterState state(fabric, StatesWithout(*fabric, reading, use));
  explanation.quality = placement::Evaluate(state, request, placed.placements);
}

}  // namespace

bool Explanation::assumed_gpus() const {
  return std::any_of(pods.begin(), pods.end(),
                     [](const ExplainedPod& pod) { return pod.source == GpuSource::kAssumed; });
}

base::Result<Explanation> Explain(const JobReading& reading, const ParallelismFlags& flags) {
  Explanation explanation;
  explanation.job = kube::KeyOf(reading.job).ToString();
  explanation.notes = reading.notes;
  explanation.notes.insert(explanation.notes.end(), reading.fabrics.notes.begin(),
                           reading.fabrics.notes.end());
  explanation.gang = GangOf(reading, explanation.notes);
  const auto completions = kube::IntAt(reading.job, {"spec", "completions"}).value_or(1);
  explanation.pods_wanted = static_cast<int>(std::clamp<std::int64_t>(completions, 0, crds::kMaxPods));
  if (kube::StringAt(reading.job, {"spec", "completionMode"}) != "Indexed") {
    return base::Fail(Code::kInvalid, fmt::format("Job {} is not indexed, so its pods have no ranks: set "
                                                  "spec.completionMode to Indexed",
                                                  explanation.job));
  }
  auto request = RequestOf(reading, flags);
  if (!request) {
    // A gang that was refused for its annotation is still worth showing, with the refusal.
    if (!explanation.gang || !flags.parallelism.empty()) return base::Fail(request.error());
    explanation.why_no_quality = request.error().message;
    return explanation;
  }
  explanation.parallelism = request->parallelism;
  Price(reading, *std::move(request), explanation);
  return explanation;
}

}  // namespace heddle::cli
