// `kubectl heddle explain`: what is read of the cluster, or of files, once, before anything is decided.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/advice.h"
#include "cli/commands.h"
#include "cli/explain_target.h"
#include "cli/kept_spares.h"
#include "cli/late_agents.h"
#include "cli/live_cluster.h"
#include "crds/gpu_indexes.h"
#include "crds/parallelism.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;

bool AllSayTheirGpus(const std::vector<Json>& pods) {
  return std::all_of(pods.begin(), pods.end(),
                     [](const Json& pod) { return kube::Annotation(pod, keys::kGpus).has_value(); });
}

kube::Resource EarlierOf(const ExplainKind& kind) {
  kube::Resource resource = kind.resource;
  resource.version = kind.earlier;
  return resource;
}

// What exists, for somebody who wrote another name or kind; nothing where the kind is not served.
std::optional<std::string> WhatExists(kube::Client& client, const ExplainTarget& target,
                                      const std::string& ns, const std::stop_token& stop) {
  constexpr std::size_t kShown = 5;
  const std::string& plural = target.kind->resource.plural;
  auto list = client.ListAll(target.kind->resource, {.ns = ns}, stop);
  if (!list && list.error().code == Code::kNotFound && !target.kind->earlier.empty()) {
    list = client.ListAll(EarlierOf(*target.kind), {.ns = ns}, stop);
  }
  if (!list && list.error().code == Code::kNotFound) return std::nullopt;
  std::vector<std::string> names;
  if (list) {
    for (const Json& item : list->items) names.push_back(kube::Name(item));
  }
  if (names.empty()) return fmt::format("; see `kubectl get {} -n {}`", plural, ns);
  const std::size_t shown = std::min(names.size(), kShown);
  return fmt::format("; there {} {}{} (`kubectl get {} -n {}`)", names.size() == 1 ? "is" : "are",
                     fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "),
                     names.size() > shown ? ", …" : "", plural, ns);
}

base::Status ReadOwner(kube::Client& client, const ExplainTarget& target, const std::stop_token& stop,
                       ExplainReading& reading) {
  if (target.kind->kind == "Pods") return {};
  auto owner = client.Get(target.kind->resource, reading.key, stop);
  if (!owner && owner.error().code == Code::kNotFound && !target.kind->earlier.empty()) {
    owner = client.Get(EarlierOf(*target.kind), reading.key, stop);
  }
  if (!owner) {
    base::Error error = std::move(owner).error();
    if (error.code != Code::kNotFound) return base::Fail(std::move(error));
    const auto there = WhatExists(client, target, reading.key.ns, stop);
    error.message += there ? *there : "; this cluster has no " + target.kind->resource.plural;
    // Of a kind of ours that is Heddle's absence, which is told with what to do.
    if (!there && target.kind->resource.group == keys::kGroup) error.code = Code::kUnimplemented;
    return base::Fail(std::move(error));
  }
  reading.owner = *std::move(owner);
  reading.uids.push_back(kube::Uid(reading.owner));
  if (const auto controller = kube::ControllerOwner(reading.owner)) reading.uids.push_back(controller->uid);
  const ExplainKind* made = ExplainKindOf(target.kind->makes);
  if (made == nullptr) return {};
  ASSIGN_OR_RETURN(const kube::ObjectList list, client.ListAll(made->resource, {.ns = reading.key.ns}, stop));
  for (const Json& item : list.items) {
    const auto controller = kube::ControllerOwner(item);
    if (controller && controller->uid == reading.uids.front()) reading.uids.push_back(kube::Uid(item));
  }
  return {};
}

void ReadGangs(kube::Client& client, const std::stop_token& stop, ExplainReading& reading) {
  const kube::Resource resource = HeddleResource(keys::kGang, true);
  auto gangs = client.ListAll(resource, {}, stop);
  if (!gangs && gangs.error().code == Code::kForbidden) {
    gangs = client.ListAll(resource, {.ns = reading.key.ns}, stop);
    reading.notes.emplace_back(
        "Gangs of other namespaces may not be read: who is ahead or in the way is said of this one only");
  }
  if (gangs) {
    reading.gangs = std::move(gangs->items);
  } else if (gangs.error().code != Code::kNotFound) {
    reading.notes.push_back("Gangs could not be read: " + gangs.error().message);
  }
}

// Also by an earlier Gang of its owner's: who runs stays where that put it when the owner is scaled.
bool IsPlanned(const Json& pod, const crds::Gang& gang) {
  if (kube::Annotation(pod, keys::kGangUid) == gang.uid) return true;
  const auto controller = kube::ControllerOwner(pod);
  return gang.spec.group.empty() && controller && controller->uid == gang.spec.owner.uid &&
         kube::Annotation(pod, keys::kNode).has_value();
}

base::Status ReadPods(kube::Client& client, const std::optional<crds::Gang>& gang,
                      const std::stop_token& stop, ExplainReading& reading) {
  const bool job = reading.kind == "Job";
  kube::ListOptions own{.ns = reading.key.ns};
  if (job) own.label_selector = "batch.kubernetes.io/job-name=" + reading.key.name;
  ASSIGN_OR_RETURN(auto pods, client.ListAll(kube::kPods, own, stop));
  for (Json& pod : pods.items) {
    const bool planned = gang && IsPlanned(pod, *gang);
    if (job || planned) reading.own_pods.push_back(std::move(pod));
  }
  reading.pods = reading.own_pods;
  const bool lacks = gang && LacksRoom(*gang);
  // Where pods say nothing, what others hold decides which indexes were free.
  if (!lacks && AllSayTheirGpus(reading.own_pods)) return {};
  auto all = client.ListAll(kube::kPods, {}, stop);
  if (all) {
    reading.pods = std::move(all->items);
    reading.all_pods = true;
  } else {
    reading.notes.push_back("Pods of other namespaces could not be read, so their GPUs count as free: " +
                            all.error().message);
  }
  if (!lacks) return {};
  auto nodes = client.ListAll(kube::kNodes, {}, stop);
  if (nodes) {
    reading.nodes = std::move(nodes->items);
  } else {
    reading.notes.push_back("Nodes could not be read, so each counts as Ready: " + nodes.error().message);
  }
  return {};
}

base::Result<ExplainReading> ReadFor(kube::Client& client, base::Clock& clock, const ExplainTarget& target,
                                     const std::string& ns, const std::stop_token& stop) {
  ExplainReading reading;
  reading.kind = target.kind->kind;
  reading.key = {ns, target.name};
  TRY(ReadOwner(client, target, stop, reading));
  ReadGangs(client, stop, reading);
  std::vector<std::string> said_later;
  TRY(ReadPods(client, GangOf(reading, said_later), stop, reading));
  ASSIGN_OR_RETURN(reading.fabrics, ReadCluster(client, stop));
  const auto gang = GangOf(reading, said_later);
  if (gang && LacksRoom(*gang)) {
    reading.spares = ReadKeptSpares(client, reading.fabrics.fabrics, reading.notes, stop);
    reading.late_agents = ReadLateAgents(client, clock, reading.notes, stop);
  }
  return reading;
}

Output ExplainAnswer(const Explanation& explanation, const OutputOptions& look) {
  Output output;
  output.out = look.format != Format::kText ? Printed(ExplanationJson(explanation), look.format)
                                            : ExplanationText(explanation, look.style);
  if (!explanation.quality) {
    const bool refused = explanation.gang && !explanation.gang->status.reason.empty();
    output.exit_code = refused ? Output::kRefused : Output::kFailed;
    if (look.format != Format::kText) output.err = explanation.why_no_quality + "\n";
  }
  return output;
}

// Of what is named in files, in the one namespace that has it.
base::Result<crds::Gang> FindGang(const ExplainTarget& target, const ExplainOptions& options,
                                  const std::vector<crds::Gang>& gangs, ExplainReading& reading) {
  std::set<std::string> namespaces, others;
  for (const crds::Gang& gang : gangs) {
    if (!options.ns.empty() && gang.ns != options.ns) continue;
    if (IsGangOf(gang, target)) {
      namespaces.insert(gang.ns);
      reading.uids.push_back(gang.spec.owner.uid);
    } else {
      others.insert("gang/" + gang.name);
    }
  }
  if (namespaces.size() > 1) {
    return base::Fail(Code::kInvalid,
                      fmt::format("{} is there in {} and in {}: say which by -n", options.target,
                                  *namespaces.begin(), *std::next(namespaces.begin())));
  }
  if (!namespaces.empty()) {
    reading.kind = target.kind->kind;
    reading.key = {*namespaces.begin(), target.name};
    if (auto gang = GangOf(reading, reading.notes)) return *std::move(gang);
  }
  return base::Fail(
      Code::kNotFound,
      fmt::format("the files hold no gang of {}{}: they hold {}; leave out --topology to ask the cluster, or "
                  "ask `kubectl heddle plan` with the same --topology where such a gang would lie",
                  options.target, options.ns.empty() ? "" : " in namespace " + options.ns,
                  others.empty() && !gangs.empty() ? "none there, and some in other namespaces"
                  : others.empty()
                      ? "none at all (`kubectl get nt,fabrics,gangs -A -o json` prints those of a cluster)"
                      : FirstNames(std::vector<std::string>(others.begin(), others.end()))));
}

// What explain reads of pods, by the plan: each bound where it has its place. A rank that was done when the gang was
// planned has none.
std::vector<Json> PodsOfPlan(const crds::Gang& gang, const std::vector<crds::NodeTopology>& topologies) {
  std::map<std::string_view, const topology::Node*> nodes;
  for (const crds::NodeTopology& one : topologies) nodes[one.name] = &one.status.node;
  const std::string resource =
      crds::IsGpuResource(gang.spec.gpu_resource) ? gang.spec.gpu_resource : "nvidia.com/gpu";
  std::vector<Json> pods;
  int rank = -1;
  for (const crds::PlacedPod& row : crds::ToRows(*gang.status.placement)) {
    ++rank;
    if (!row.has_slot()) continue;
    const std::string name = fmt::format("rank-{}", rank);
    Json pod{{"metadata", {{"namespace", gang.ns}, {"name", name}, {"uid", gang.ns + "/" + name}}},
             {"spec", {{"nodeName", row.node}}}};
    pod["metadata"]["annotations"][std::string(keys::kRank)] = std::to_string(rank);
    const auto node = nodes.find(row.node);
    const std::uint32_t all = node == nodes.end() ? 0 : crds::AllIndexes(*node->second);
    pod["metadata"]["annotations"][std::string(keys::kGpus)] =
        crds::FormatGpuIndexes(row.gpus == 0 ? all : row.gpus);
    Json container;
    container["resources"]["limits"][resource] = std::to_string(gang.spec.gpus_per_pod);
    pod["spec"]["containers"] = Json::array({std::move(container)});
    pods.push_back(std::move(pod));
  }
  return pods;
}

// What cannot be known of a gang in files.
std::string NoteOfFiles(const ExplainReading& reading, const crds::Gang& gang, bool of_plan) {
  std::string note = "This is of files and no cluster was asked";
  if (of_plan) {
    note += ": they hold no pods that are known to be of this gang, and its places are those of its plan";
    if (const int bound = gang.status.progress.bound; bound < gang.spec.pods)
      note += fmt::format(" ({} of {} pods are bound)", bound, gang.spec.pods);
  }
  if (LacksRoom(gang) && reading.nodes.empty()) note += "; each node counts as Ready";
  if (LacksRoom(gang) && MayHaveSpares(reading.fabrics.fabrics))
    note += "; how many nodes the extender keeps as spares is not in them, and these count as free";
  return note;
}

// `gang`: whose.
base::Result<ExplainReading> ReadFilesFor(const ExplainTarget& target, const ExplainOptions& options,
                                          const ReadFile& read, crds::Gang& gang) {
  ExplainReading reading;
  const auto see = [&reading](const Json& object) {
    const std::string kind = kube::StringAt(object, {"kind"});
    if (kind == keys::kGang.kind) reading.gangs.push_back(object);
    if (kind == "Node") reading.nodes.push_back(object);
  };
  ASSIGN_OR_RETURN(ClusterFiles files, ReadClusterFiles(options.topology, read, see));
  ASSIGN_OR_RETURN(gang, FindGang(target, options, files.gangs, reading));
  reading.kind = keys::kGang.kind;
  reading.key = {gang.ns, gang.name};
  reading.fabrics = AssembleReading(std::move(files.topologies), std::move(files.declared));
  reading.fabrics.in_files = true;
  for (const Json& pod : files.pods) {
    if (kube::Namespace(pod) == gang.ns && IsPlanned(pod, gang)) reading.own_pods.push_back(pod);
  }
  reading.all_pods = !files.pods.empty();
  reading.pods = std::move(files.pods);
  // A gang that lost a rank's place does not have all that its plan says.
  const bool of_plan = reading.own_pods.empty() && gang.status.placement && !LacksRoom(gang);
  if (of_plan) {
    reading.own_pods = PodsOfPlan(gang, reading.fabrics.topologies);
    reading.pods.insert(reading.pods.end(), reading.own_pods.begin(), reading.own_pods.end());
  }
  reading.notes.push_back(NoteOfFiles(reading, gang, of_plan));
  return reading;
}

}  // namespace

base::Status CheckWords(const ExplainOptions& options) {
  TRY(ParseExplainTarget(options.target));
  if (!options.flags.parallelism.empty()) {
    TRY(crds::ParseParallelism(options.flags.parallelism), "--parallelism");
  }
  if (!options.flags.model.empty()) {
    TRY(crds::ParseModel(options.flags.model), "--model");
  }
  return {};
}

Output RunExplain(kube::Client& client, base::Clock& clock, const ExplainOptions& options,
                  const OutputOptions& look, const std::stop_token& stop) {
  const auto target = ParseExplainTarget(options.target);
  if (!target) return Failure(target.error());
  const auto reading = ReadFor(client, clock, *target, options.ns, stop);
  if (!reading) return Failure(reading.error());
  const auto explanation = Explain(*reading, options.flags);
  if (!explanation) return Failure(explanation.error());
  return ExplainAnswer(*explanation, look);
}

Output ShowExplain(const ExplainOptions& options, const ReadFile& read, const OutputOptions& look) {
  auto explanation = [&]() -> base::Result<Explanation> {
    ASSIGN_OR_RETURN(const ExplainTarget target, ParseExplainTarget(options.target));
    crds::Gang gang;
    ASSIGN_OR_RETURN(const ExplainReading reading, ReadFilesFor(target, options, read, gang));
    ASSIGN_OR_RETURN(Explanation made, Explain(reading, options.flags));
    if (reading.own_pods.empty()) {
      made.why_no_quality = gang.status.placement ? "It lost places of its plan, and the files hold no pods "
                                                    "that say which, so there is nothing to "
                                                    "price, and nothing that would help can be tried"
                                                  : "It has no places yet, so there is nothing to price";
    }
    return made;
  }();
  return explanation ? ExplainAnswer(*explanation, look) : FailureOfInput(explanation.error());
}

}  // namespace heddle::cli
