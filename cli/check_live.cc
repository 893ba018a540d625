#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/lower_case.h"
#include "base/nearest_word.h"
#include "cli/check_ground.h"
#include "cli/explain_target.h"
#include "cli/kept_spares.h"
#include "cli/late_agents.h"
#include "cli/live_cluster.h"
#include "cli/node_selection.h"
#include "crds/gang.h"
#include "crds/keys.h"
#include "crds/node_topology.h"
#include "crds/rdma_device_policy.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;

struct KnownKind {
  std::vector<std::string_view> words;  // as kubectl takes them
  kube::Resource resource;
  std::optional<kube::Resource> makes = {};
};

// Kinds of training workloads; any other is looked at in a file.
const std::vector<KnownKind>& KnownKinds() {
  static const kube::Resource job_sets{"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true};
  static const std::vector<KnownKind> kinds{
      {{"pod", "pods", "po"}, kube::kPods},
      {{"job", "jobs", "job.batch", "jobs.batch"}, kube::kJobs},
      {{"statefulset", "statefulsets", "sts"}, {"apps", "v1", "statefulsets", "StatefulSet", true}},
      {{"deployment", "deployments", "deploy"}, {"apps", "v1", "deployments", "Deployment", true}},
      {{"jobset", "jobsets"}, job_sets},
      // A TrainJob's template stands in its runtime, and what comes of both in its JobSet.
      {{"trainjob", "trainjobs"},
       {"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", true},
       job_sets},
      {{"raycluster", "rayclusters"}, {"ray.io", "v1", "rayclusters", "RayCluster", true}},
      {{"rayjob", "rayjobs"}, {"ray.io", "v1", "rayjobs", "RayJob", true}},
      {{"rayservice", "rayservices"}, {"ray.io", "v1", "rayservices", "RayService", true}},
      {{"pytorchjob", "pytorchjobs"}, {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true}},
      {{"mpijob", "mpijobs"}, {"kubeflow.org", "v2beta1", "mpijobs", "MPIJob", true}},
      {{"leaderworkerset", "leaderworkersets", "lws"},
       {"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true}}};
  return kinds;
}

bool IsName(std::string_view name) {
  const bool written = name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
  const auto ends_well = [](char end) { return end != '-' && end != '.'; };
  return !name.empty() && name.size() <= 253 && !written && ends_well(name.front()) &&
         ends_well(name.back()) &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string_view::npos;
}

void AskNodes(kube::Client& client, const CheckOptions& options, CheckGround& ground,
              const std::stop_token& stop) {
  const auto list = ListHeddle(client, keys::kNodeTopology, stop);
  if (!list) {
    ground.notes +=
        WithoutControls(
            "Note: what nodes there are could not be read, so they are taken for nodes of " +
            fmt::format("{} GPUs with RoCE: {}", ground.known.gpus_per_node, list.error().message)) +
        "\n";
    return;
  }
  std::vector<crds::NodeTopology> nodes;
  for (const Json& object : *list) {
    auto read = crds::NodeTopologyFromJson(object);
    if (read) nodes.push_back(*std::move(read));
  }
  AddNodes(nodes, options, ground);
}

// Names of heddle.dev/ are known by themselves; a policy may give others.
void ReadResources(kube::Client& client, CheckGround& in, const std::stop_token& stop) {
  const auto list = ListHeddle(client, keys::kRdmaDevicePolicy, stop);
  if (!list) {
    // Who is cut off hears of it by what was asked for; without Heddle there are no policies.
    if (list.error().code != base::Code::kForbidden) return;
    in.notes += WithoutControls(
                    "Note: RdmaDevicePolicies could not be read, so a resource that only one of them "
                    "names is not taken for an RDMA device (--rdma-resource says it): " +
                    list.error().message) +
                "\n";
    return;
  }
  crds::WorkloadGround& ground = in.known;
  for (const Json& object : *list) {
    if (const auto policy = crds::RdmaDevicePolicyFromJson(object)) {
      const auto& resources = policy->spec.resources;
      ground.rdma_resources.insert(ground.rdma_resources.end(), resources.begin(), resources.end());
      continue;
    }
    // Of a newer version, as it may be: what it names is known, and which rails it is for is not.
    for (const Json& resource : kube::ArrayAt(object, {"spec", "resources"}))
      ground.rdma_resources.push_back({.name = kube::StringAt(resource, {"name"})});
  }
}

// The cluster as the planner would find it. Nodes and pods that may not be read are said in a note.
base::Result<LandingGround> AskLandingGround(kube::Client& client, base::Clock& clock, std::string& notes,
                                             const std::stop_token& stop) {
  ASSIGN_OR_RETURN(FabricReading reading, ReadCluster(client, stop));
  LandingGround ground;
  ground.spares = ReadKeptSpares(client, reading.fabrics, reading.notes, stop);
  const std::set<std::string> late = ReadLateAgents(client, clock, reading.notes, stop);
  ASSIGN_OR_RETURN(ClusterFiles files, TakeFiles(reading));
  ASSIGN_OR_RETURN(const auto gangs, ListOrWhyNot(client, HeddleResource(keys::kGang, true), {}, stop));
  AddGangs(gangs, files);
  if (auto pods = client.ListAll(kube::kPods, {}, stop)) {
    files.pods = std::move(pods->items);
  } else {
    notes += WithoutControls("Note: pods could not be read, so GPUs of pods of no gang count as free: " +
                             pods.error().message) +
             "\n";
  }
  notes += NoteLines(reading.notes);
  ASSIGN_OR_RETURN(ground.grounds, GroundsOf(std::move(files)));
  if (auto nodes = client.ListAll(kube::kNodes, {}, stop)) {
    for (Json& node : nodes->items) {
      const std::string name = kube::Name(node);  // Json is assigned by value, so before it is moved from
      ground.nodes[name] = std::move(node);
    }
  } else {
    notes +=
        WithoutControls("Note: Nodes could not be read, so each counts as Ready: " + nodes.error().message) +
        "\n";
  }
  for (Ground& one : ground.grounds.fabrics) {
    for (std::size_t n = 0; n < one.nodes.size(); ++n) {
      const topology::Node& found = one.fabric->nodes[n].node;
      one.nodes[n].unusable = WhyUnusable(found, ground.nodes, true, late);
    }
  }
  return ground;
}

// In whichever version the cluster serves it.
base::Result<Json> GetPodGroup(kube::Client& client, const crds::PodGroupRef& ref,
                               const std::stop_token& stop) {
  const ExplainKind* kind = ExplainKindOf("PodGroup");
  CHECK(kind != nullptr);
  kube::Resource resource = kind->resource;
  auto object = client.Get(resource, {ref.ns, ref.name}, stop);
  if (object || object.error().code != base::Code::kNotFound) return object;
  resource.version = kind->earlier;
  return client.Get(resource, {ref.ns, ref.name}, stop);
}

base::Result<CheckGround> AskGround(kube::Client& client, base::Clock& clock, const CheckOptions& options,
                                    const std::stop_token& stop) {
  CheckGround ground;
  ground.known = GroundOf(options);
  AskNodes(client, options, ground, stop);
  if (options.where) {
    ASSIGN_OR_RETURN(ground.landing, AskLandingGround(client, clock, ground.notes, stop), "--where");
  }
  return ground;
}

}  // namespace

std::optional<LiveWorkload> LiveWorkloadOf(const std::string& target) {
  const std::size_t slash = target.find('/');
  if (slash == std::string::npos || !IsName(std::string_view(target).substr(slash + 1))) return std::nullopt;
  const std::string word = base::LowerCase(target.substr(0, slash));
  for (const KnownKind& kind : KnownKinds()) {
    if (std::find(kind.words.begin(), kind.words.end(), word) != kind.words.end())
      return LiveWorkload{kind.resource, target.substr(slash + 1), kind.makes};
  }
  return std::nullopt;
}

std::string MeantInCluster(const std::string& target) {
  const std::size_t slash = target.find('/');
  if (slash == std::string::npos) {
    return IsName(target) ? fmt::format("; of a workload in the cluster say the kind, too, as job/{}", target)
                          : std::string();
  }
  const std::string word = base::LowerCase(target.substr(0, slash)), name = target.substr(slash + 1);
  if (word.empty() || word.front() == '.' || !IsName(base::LowerCase(name))) return "";
  std::vector<std::string> first, all;
  for (const KnownKind& kind : KnownKinds()) {
    first.emplace_back(kind.words.front());
    for (const std::string_view one : kind.words) all.emplace_back(one);
  }
  if (std::find(all.begin(), all.end(), word) != all.end())
    return "; names of workloads in the cluster have no capital letters";
  if (const std::string near = base::NearestWord(word, all); !near.empty())
    return fmt::format("; if it is a workload in the cluster, is {}/{} meant?", near, name);
  return fmt::format(
      "; in the cluster it knows {}; give it others by `kubectl get {} -o yaml | kubectl heddle check -`",
      base::OneOf(first), target);
}

bool AsksCluster(const CheckOptions& options) {
  const bool where = options.where && options.topology.empty();
  return !options.rules &&
         (where || std::any_of(options.targets.begin(), options.targets.end(),
                               [](const std::string& target) { return LiveWorkloadOf(target).has_value(); }));
}

Output RunCheck(kube::Client& client, base::Clock& clock, const CheckOptions& options, const ReadFile& read,
                const OutputOptions& look, const std::stop_token& stop) {
  const bool of_files = !options.topology.empty();
  auto ground = of_files ? CheckGroundOfFiles(options, read) : AskGround(client, clock, options, stop);
  if (!ground) return of_files ? FailureOfInput(ground.error()) : Failure(ground.error());
  ReadResources(client, *ground, stop);
  const ReadWorkload live = [&](const LiveWorkload& workload) -> base::Result<Json> {
    auto object = client.Get(workload.resource, {options.ns, workload.name}, stop);
    if (object && workload.makes) {
      object = client.Get(*workload.makes, {options.ns, workload.name}, stop);
      if (object || object.error().code != base::Code::kNotFound) return object;
      return base::Fail(object.error().code,
                        fmt::format("{} {} has made no {} yet; see `kubectl describe {} {} -n {}`",
                                    workload.resource.kind, workload.name, workload.makes->kind,
                                    workload.resource.plural, workload.name, options.ns));
    }
    if (object || object.error().code != base::Code::kNotFound) return object;
    return base::Fail(object.error().code,
                      fmt::format("{}; see `kubectl get {} -n {}`", object.error().message,
                                  workload.resource.plural, options.ns));
  };
  const ReadPodGroup group = [&](const crds::PodGroupRef& ref) { return GetPodGroup(client, ref, stop); };
  Output output =
      Check(options, ground->known, {read, live, ground->landing ? &*ground->landing : nullptr, group}, look);
  output.err = ground->notes + output.err;
  return output;
}

}  // namespace heddle::cli
