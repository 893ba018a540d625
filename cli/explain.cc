#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cli/node_selection.h"
#include "cli/quality_view.h"
#include "crds/gang_gate.h"
#include "crds/keys.h"
#include "crds/observation.h"
#include "crds/parallelism.h"
#include "kube/completed_indexes.h"
#include "kube/object.h"
#include "placement/planner.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;

constexpr const char* kIndexLabel = "batch.kubernetes.io/job-completion-index";
constexpr std::string_view kJobSetUid = "jobset.sigs.k8s.io/jobset-uid";
constexpr std::size_t kNamed = 5;

std::string AnnotationOf(const Json& job, std::string_view key) {
  const Json* pod_template = kube::Find(job, {"spec", "template"});
  if (pod_template != nullptr) {
    if (const auto text = kube::Annotation(*pod_template, key)) return *text;
  }
  return kube::Annotation(job, key).value_or("");
}

// A Job's pods have an index whether or not they were planned; other pods have the rank of their plan.
std::optional<int> IndexOf(const Json& pod, bool by_rank) {
  const std::string text =
      by_rank ? kube::Annotation(pod, keys::kRank).value_or("")
              : kube::Label(pod, kIndexLabel).value_or(kube::Annotation(pod, kIndexLabel).value_or(""));
  int index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc{} || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

// A live pod rather than a finished one, one that stays rather than one that goes, then the youngest.
bool Outranks(const Json& a, const Json& b) {
  if (IsLive(a) != IsLive(b)) return IsLive(a);
  const bool leaving = kube::DeletionTimestamp(a).has_value();
  if (leaving != kube::DeletionTimestamp(b).has_value()) return !leaving;
  return kube::CreationTimestamp(a) > kube::CreationTimestamp(b);
}

// The bound pod of each index; what is on its way out is nobody's place once its successor is there.
std::map<int, const Json*> PodsByIndex(const ExplainReading& reading) {
  std::map<int, const Json*> by_index;
  for (const Json& pod : reading.own_pods) {
    const auto index = IndexOf(pod, reading.kind != "Job");
    const bool bound = !kube::StringAt(pod, {"spec", "nodeName"}).empty();
    if (!index || (!bound && kube::DeletionTimestamp(pod))) continue;
    const Json*& chosen = by_index[*index];
    if (chosen == nullptr || Outranks(pod, *chosen)) chosen = &pod;
  }
  std::erase_if(by_index, [](const auto& one) {
    return kube::StringAt(*one.second, {"spec", "nodeName"}).empty();
  });
  return by_index;
}

bool IsOf(const ExplainReading& reading, const crds::Gang& gang) {
  const std::string group = reading.kind + "/" + reading.key.name;
  if (gang.ns != reading.key.ns) return false;
  if (reading.kind == "Gang") return gang.name == reading.key.name;
  if (reading.kind == "Pods" || reading.kind == "PodGroup") return gang.spec.group == group;
  if (reading.kind == "LeaderWorkerSet") return gang.spec.group.starts_with(group + "/");
  const std::string& owner = gang.spec.owner.uid;
  return !owner.empty() && std::find(reading.uids.begin(), reading.uids.end(), owner) != reading.uids.end();
}

bool RunsWell(const crds::Gang& gang) {
  return crds::IsTrue(gang.status.conditions, crds::kRunning) && gang.status.reason.empty();
}

base::Result<placement::GangRequest> RequestOfGang(const ExplainReading& reading, const crds::Gang& gang,
                                                   const ParallelismFlags& flags) {
  placement::GangRequest request;
  request.model = gang.spec.model;
  if (!flags.model.empty()) {
    ASSIGN_OR_RETURN(request.model, crds::ParseModel(flags.model), keys::kModel);
  }
  if (!flags.parallelism.empty()) {
    ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(flags.parallelism), keys::kParallelism);
  } else if (gang.spec.parallelism) {
    request.parallelism = *gang.spec.parallelism;
  } else {
    return base::Fail(Code::kInvalid, fmt::format("{} {} does not say how its ranks are cut", reading.kind,
                                                  reading.key.ToString()));
  }
  return request;
}

base::Result<placement::GangRequest> RequestOf(const ExplainReading& reading, const ParallelismFlags& flags) {
  placement::GangRequest request;
  const std::string text =
      flags.parallelism.empty() ? AnnotationOf(reading.owner, keys::kParallelism) : flags.parallelism;
  if (text.empty()) {
    return base::Fail(Code::kInvalid,
                      fmt::format("Job {} has no annotation {} on its pod template: say how its ranks "
                                  "are cut with --parallelism \"tp=8,pp=2,dp=8\"",
                                  kube::KeyOf(reading.owner).ToString(), keys::kParallelism));
  }
  ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(text), keys::kParallelism);
  const std::string model = flags.model.empty() ? AnnotationOf(reading.owner, keys::kModel) : flags.model;
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
    ExplainedPod explained{kube::Name(*pod),    index, kube::StringAt(*pod, {"spec", "nodeName"}), {},
                           GpuSource::kAssumed, {}};
    const topology::NodeId node = fabric.FindNode(explained.node);
    const auto gpus = use.find(PodId(*pod));
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
      explained.planned = IndexesAt(machine, gpus->second.planned);
      placed.placements.push_back({.node = node, .gpus = gpus->second.positions});
    }
    placed.pods.push_back(std::move(explained));
  }
  return placed;
}

// Every GPU that is healthy and held by nobody outside this Job.
std::vector<placement::NodeState> StatesWithout(const topology::Fabric& fabric, const ExplainReading& reading,
                                                const std::map<std::string, PodGpus>& use) {
  std::vector<placement::NodeState> states(fabric.nodes.size());
  for (std::size_t n = 0; n < states.size(); ++n) {
    const auto& gpus = fabric.nodes[n].node.gpus;
    for (std::size_t p = 0; p < gpus.size() && p < 32; ++p) {
      if (gpus[p].healthy) states[n].free_gpus |= 1U << p;
    }
  }
  std::map<std::string, bool> own;
  for (const Json& pod : reading.own_pods) own[PodId(pod)] = true;
  for (const Json& pod : reading.pods) {
    const auto gpus = use.find(PodId(pod));
    const topology::NodeId node = fabric.FindNode(kube::StringAt(pod, {"spec", "nodeName"}));
    if (gpus == use.end() || node == topology::kNone || own.contains(PodId(pod))) continue;
    states[static_cast<std::size_t>(node)].free_gpus &= ~gpus->second.positions;
  }
  return states;
}

// All live pods and this Job's: a finished Job is priced where it ran.
std::map<std::string, PodGpus> UseOf(const ExplainReading& reading,
                                     const std::map<int, const Json*>& chosen) {
  std::vector<Json> pods;
  std::map<std::string, bool> seen;
  for (const auto& [index, pod] : chosen) {
    Json copy = *pod;
    if (copy.contains("status")) copy["status"].erase("phase");
    seen[PodId(copy)] = true;
    pods.push_back(std::move(copy));
  }
  for (const Json& pod : reading.pods) {
    if (!seen.contains(PodId(pod))) pods.push_back(pod);
  }
  return FindGpuUse(pods, reading.fabrics.topologies);
}

std::string Missing(const std::map<int, const Json*>& chosen, int wanted) {
  std::vector<int> missing;
  for (int i = 0; i < wanted; ++i) {
    if (!chosen.contains(i)) missing.push_back(i);
  }
  if (missing.empty()) return "";
  return fmt::format("{} of {} pods {} not bound to a node yet (index {}), so there is nothing to price",
                     missing.size(), wanted, missing.size() == 1 ? "is" : "are", NamesOf(missing));
}

void Price(const ExplainReading& reading, placement::GangRequest request, Explanation& explanation) {
  const std::map<int, const Json*> chosen = PodsByIndex(reading);
  explanation.why_no_quality = Missing(chosen, explanation.pods_wanted);
  std::vector<std::string> nodes;
  nodes.reserve(chosen.size());
  for (const auto& [index, pod] : chosen) nodes.push_back(kube::StringAt(*pod, {"spec", "nodeName"}));
  const FabricPtr fabric = FabricOfMost(reading.fabrics.fabrics, nodes);
  if (fabric == nullptr) {
    if (explanation.why_no_quality.empty()) {
      explanation.why_no_quality =
          "No node of these pods has a NodeTopology that was reported: does heddle-nodeagent run "
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

std::optional<crds::Gang> GangOf(const ExplainReading& reading, std::vector<std::string>& notes) {
  std::vector<crds::Gang> gangs;
  for (const Json& object : reading.gangs) {
    auto gang = crds::GangFromJson(object);
    if (gang) {
      if (IsOf(reading, *gang)) gangs.push_back(*std::move(gang));
    } else if (kube::Namespace(object) == reading.key.ns) {
      notes.push_back("A Gang could not be read: " + gang.error().message);
    }
  }
  if (gangs.empty()) return std::nullopt;
  // Attempts of one gang differ in their number, groups of one owner in their name.
  std::stable_sort(gangs.begin(), gangs.end(), [](const crds::Gang& a, const crds::Gang& b) {
    return std::tuple(RunsWell(a), -a.spec.attempt, a.spec.group) <
           std::tuple(RunsWell(b), -b.spec.attempt, b.spec.group);
  });
  // A RayService has two RayClusters while it is upgraded.
  const bool groups = std::any_of(gangs.begin(), gangs.end(), [&](const auto& one) {
    return one.spec.group != gangs.front().spec.group ||
           (reading.kind == "RayService" && one.spec.owner.uid != gangs.front().spec.owner.uid);
  });
  if (!groups) {
    return *std::max_element(gangs.begin(), gangs.end(),
                             [](const auto& a, const auto& b) { return a.spec.attempt < b.spec.attempt; });
  }
  std::vector<std::string> others;
  for (std::size_t i = 1; i < gangs.size() && i <= kNamed; ++i) others.push_back(gangs[i].name);
  notes.push_back(fmt::format("{} {} makes {} gangs, each placed by itself. The others: gang/{}{}",
                              reading.kind, reading.key.ToString(), gangs.size(),
                              fmt::join(others, ", gang/"), gangs.size() > kNamed + 1 ? ", …" : ""));
  return gangs.front();
}

namespace {

// Who stands on the cluster without this gang's own claims; its bound pods keep theirs, and are nobody that could end.
base::Result<Grounds> GroundsWithout(const ExplainReading& reading, const crds::Gang& self) {
  ClusterFiles files;
  files.topologies = reading.fabrics.topologies;
  files.declared = reading.fabrics.declared;
  for (const Json& object : reading.gangs) {
    auto gang = crds::GangFromJson(object);
    if (!gang) continue;
    if (gang->ns == self.ns && gang->name == self.name) gang->status.placement.reset();
    files.gangs.push_back(*std::move(gang));
  }
  std::set<std::string> own, leaving;
  for (const Json& pod : reading.own_pods) {
    own.insert("pod " + kube::KeyOf(pod).ToString());
    if (kube::DeletionTimestamp(pod)) leaving.insert(PodId(pod));
  }
  // What goes is no hindrance for its own successor, and a dead node's pods go for ever.
  for (const Json& pod : reading.pods) {
    if (!leaving.contains(PodId(pod))) files.pods.push_back(pod);
  }
  for (crds::NodeTopology& topology : files.topologies) {
    std::erase_if(topology.status.grants,
                  [&leaving](const crds::Grant& grant) { return leaving.contains(grant.pod_uid); });
  }
  ASSIGN_OR_RETURN(Grounds grounds, GroundsOf(std::move(files)));
  std::erase_if(grounds.holders, [&own](const Holder& holder) { return own.contains(holder.name); });
  return grounds;
}

// Which of a Job's pods its controller has not made.
std::string NotMade(const ExplainReading& reading, int wanted) {
  std::set<int> there;
  for (const Json& pod : reading.own_pods) {
    const auto index = IndexOf(pod, false);
    if (index && !kube::DeletionTimestamp(pod)) there.insert(*index);
  }
  std::vector<int> missing;
  for (int i = 0; i < wanted; ++i) {
    if (!there.contains(i)) missing.push_back(i);
  }
  return missing.empty() ? "" : fmt::format("no pod yet of index {}", NamesOf(missing));
}

// Gangs of which live pods are past the gate. A Gang counts ranks that are done as released, too, and those of a Job or
// JobSet are done also where all pods are made anew. So its count decides only where pods could not be read, and of
// groups, which are not told by their owner's UID.
std::set<kube::ObjectKey> FindBegun(const ExplainReading& reading, const std::vector<crds::Gang>& gangs) {
  std::set<std::string> owners;
  for (const Json& pod : reading.pods) {
    const bool let_go = kube::Annotation(pod, keys::kGangUid).has_value() && !crds::HasGangGate(pod);
    if (!let_go || !IsLive(pod) || kube::DeletionTimestamp(pod)) continue;
    if (const auto controller = kube::ControllerOwner(pod)) owners.insert(controller->uid);
    if (const auto set = kube::Label(pod, kJobSetUid)) owners.insert(*set);
  }
  std::set<kube::ObjectKey> begun;
  for (const crds::Gang& gang : gangs) {
    const std::string& owner = gang.spec.owner.uid;
    // A Job's own pods are read whoever may not read all.
    const bool read = reading.all_pods || (reading.kind == "Job" && owner == kube::Uid(reading.owner));
    const bool known = read && gang.spec.group.empty();
    if (known ? owners.contains(owner) : gang.status.progress.released > 0)
      begun.insert({gang.ns, gang.name});
  }
  return begun;
}

void TakeNodes(const ExplainReading& reading, Stuck& stuck) {
  for (const Json& node : reading.nodes) stuck.nodes[kube::Name(node)] = node;
  const bool all = !reading.fabrics.in_files;  // files may hold some of them
  for (const crds::NodeTopology& one : reading.fabrics.topologies) {
    std::string why = WhyUnusable(one.status.node, stuck.nodes, all, reading.late_agents);
    if (!why.empty()) stuck.unusable[one.name] = std::move(why);
  }
}

void ExplainWaiting(const ExplainReading& reading, Explanation& explanation) {
  const crds::Gang& gang = *explanation.gang;
  if (gang.status.observed && !crds::WasPriced(gang.status) && !gang.status.message.empty())
    explanation.notes.push_back("Mode observe has no price for it, which holds nothing up: " +
                                gang.status.message);
  const auto grounds = GroundsWithout(reading, gang);
  std::vector<crds::Gang> gangs;
  for (const Json& object : reading.gangs) {
    if (auto one = crds::GangFromJson(object)) gangs.push_back(*std::move(one));
  }
  explanation.waiting =
      WhyWaiting(gang, grounds ? grounds->gangs : gangs, grounds ? grounds->holders : std::vector<Holder>{},
                 FindBegun(reading, gangs));
  if (!explanation.waiting) return;
  const auto* collected = crds::FindCondition(gang.status.conditions, crds::kCollected);
  if (reading.kind == "Job" && collected != nullptr && collected->status == crds::ConditionStatus::kFalse) {
    const std::string missing = NotMade(reading, explanation.pods_wanted);
    if (!missing.empty()) explanation.waiting->sentence += "; " + missing;
  }
  if (gang.status.reason == "WaitingForQuota") {
    explanation.waiting->sentence +=
        "; quota is Kueue's and comes first: kubectl get workloads -n " + gang.ns;
  }
  if (!LacksRoom(gang) || !grounds) return;
  // Which of its ranks still stand where it was placed nobody says.
  if (reading.fabrics.in_files && gang.status.placement && reading.own_pods.empty()) return;
  Stuck stuck{.gang = &gang,
              .pods = reading.own_pods,
              .unusable = {},
              .nodes = {},
              .spares = reading.spares,
              .done = std::nullopt};
  // Not of a Job of a JobSet's, which counts its own pods only.
  if (reading.kind == "Job" && kube::Uid(reading.owner) == gang.spec.owner.uid) {
    stuck.done =
        kube::ReadIndexes(kube::StringAt(reading.owner, {"status", "completedIndexes"}), gang.spec.pods);
  }
  TakeNodes(reading, stuck);
  explanation.remedies = FindRemedies(*grounds, stuck);
}

base::Result<Explanation> ExplainGang(const ExplainReading& reading, const ParallelismFlags& flags,
                                      Explanation explanation) {
  if (!explanation.gang) {
    return base::Fail(
        Code::kNotFound,
        fmt::format("{} {} has no Gang: do its pods carry {}, and is its namespace labelled {}=enabled? "
                    "`kubectl get gangs -n {}` lists those that are there",
                    reading.kind, reading.key.ToString(), keys::kParallelism, keys::kLabelScope,
                    reading.key.ns));
  }
  explanation.pods_wanted = explanation.gang->spec.pods;
  auto request = RequestOfGang(reading, *explanation.gang, flags);
  if (request) {
    explanation.parallelism = request->parallelism;
    Price(reading, *std::move(request), explanation);
  } else {
    explanation.why_no_quality = request.error().message;
  }
  ExplainWaiting(reading, explanation);
  return explanation;
}

}  // namespace

base::Result<Explanation> Explain(const ExplainReading& reading, const ParallelismFlags& flags) {
  Explanation explanation;
  explanation.kind = reading.kind;
  explanation.name = reading.key.ToString();
  explanation.notes = reading.notes;
  explanation.notes.insert(explanation.notes.end(), reading.fabrics.notes.begin(),
                           reading.fabrics.notes.end());
  explanation.gang = GangOf(reading, explanation.notes);
  if (reading.kind != "Job") return ExplainGang(reading, flags, std::move(explanation));
  const auto completions = kube::IntAt(reading.owner, {"spec", "completions"}).value_or(1);
  explanation.pods_wanted = static_cast<int>(std::clamp<std::int64_t>(completions, 0, crds::kMaxPods));
  if (kube::StringAt(reading.owner, {"spec", "completionMode"}) != "Indexed") {
    return base::Fail(Code::kInvalid, fmt::format("Job {} is not indexed, so its pods have no ranks: set "
                                                  "spec.completionMode to Indexed",
                                                  explanation.name));
  }
  auto request = RequestOf(reading, flags);
  if (request) {
    explanation.parallelism = request->parallelism;
    Price(reading, *std::move(request), explanation);
  } else if (!explanation.gang || !flags.parallelism.empty()) {
    return base::Fail(request.error());
  } else {
    // A gang that was refused for its annotation is still worth showing, with the refusal.
    explanation.why_no_quality = request.error().message;
  }
  if (explanation.gang) ExplainWaiting(reading, explanation);
  return explanation;
}

}  // namespace heddle::cli
