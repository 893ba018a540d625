#include "cli/commands.h"

#include <algorithm>

#include "cli/topology_view.h"
#include "crds/fabric.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;

kube::Resource ResourceOf(keys::Kind kind, bool namespaced) {
  return kube::CustomResource(std::string(keys::kGroup), std::string(keys::kVersion),
                              std::string(kind.plural), std::string(kind.kind), namespaced);
}

base::Result<std::vector<Json>> ListOf(kube::Client& client, keys::Kind kind, const std::stop_token& stop) {
  auto list = client.ListAll(ResourceOf(kind, false), {.resource_version = ""}, stop);
  if (list) return std::move(list->items);
  if (list.error().code != Code::kNotFound) return base::Fail(std::move(list).error());
  // 404 on a collection: the kind is not served.
  return base::Fail(Code::kUnimplemented, "this cluster has no " + std::string(kind.plural) + "." +
                                              std::string(keys::kGroup) + " resource");
}

base::Result<FabricReading> ReadCluster(kube::Client& client, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto topologies, ListOf(client, keys::kNodeTopology, stop));
  const auto fabrics = ListOf(client, keys::kFabric, stop);
  FabricReading reading = ReadFabrics(topologies, fabrics ? *fabrics : std::vector<Json>{});
  if (!fabrics)
    reading.notes.push_back("Fabrics, and what is declared in them, are left out: " +
                            fabrics.error().message);
  return reading;
}

bool AllSayTheirGpus(const std::vector<Json>& pods) {
  return std::all_of(pods.begin(), pods.end(),
                     [](const Json& pod) { return kube::Annotation(pod, keys::kGpus).has_value(); });
}

base::Result<JobReading> ReadJob(kube::Client& client, const kube::ObjectKey& key,
                                 const std::stop_token& stop) {
  JobReading reading;
  ASSIGN_OR_RETURN(reading.job, client.Get(kube::kJobs, key, stop));
  kube::ListOptions own{.ns = key.ns, .label_selector = "batch.kubernetes.io/job-name=" + key.name};
  ASSIGN_OR_RETURN(auto pods, client.ListAll(kube::kPods, own, stop));
  reading.job_pods = std::move(pods.items);
  reading.pods = reading.job_pods;
  // Where pods say nothing, what others hold decides which indexes were free.
  if (!AllSayTheirGpus(reading.job_pods)) {
    auto all = client.ListAll(kube::kPods, {}, stop);
    if (all) {
      reading.pods = std::move(all->items);
    } else {
      reading.notes.push_back("Pods of other namespaces could not be read, so their GPUs count as free: " +
                              all.error().message);
    }
  }
  auto gangs = client.ListAll(ResourceOf(keys::kGang, true), {.ns = key.ns}, stop);
  if (gangs) {
    reading.gangs = std::move(gangs->items);
  } else if (gangs.error().code != Code::kNotFound) {
    reading.notes.push_back("Gangs could not be read: " + gangs.error().message);
  }
  ASSIGN_OR_RETURN(reading.fabrics, ReadCluster(client, stop));
  return reading;
}

base::Result<std::string> JobName(const std::string& target) {
  const std::size_t slash = target.find('/');
  const std::string kind = slash == std::string::npos ? "job" : target.substr(0, slash);
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  if ((kind == "job" || kind == "jobs" || kind == "jobs.batch" || kind == "job.batch") && !name.empty())
    return name;
  return base::Fail(Code::kInvalid, "\"" + target + "\" is no Job: write job/NAME");
}

std::string NoTopology() {
  return "No node has reported its topology. Are the heddle-nodeagent pods running? `kubectl get nt` and "
         "`kubectl -n heddle-system get pods` say more.\n";
}

}  // namespace

Output RunExplain(kube::Client& client, const ExplainOptions& options, const OutputOptions& look,
                  const std::stop_token& stop) {
  const auto name = JobName(options.target);
  if (!name) return Failure(name.error());
  const auto reading = ReadJob(client, {options.ns, *name}, stop);
  if (!reading) {
    base::Error error = reading.error();
    if (error.code == Code::kNotFound) error.message += "; see `kubectl get jobs -n " + options.ns + "`";
    return Failure(error);
  }
  const auto explanation = Explain(*reading, options.flags);
  if (!explanation) return Failure(explanation.error());
  Output output;
  output.out = look.format != Format::kText ? Printed(ExplanationJson(*explanation), look.format)
                                            : ExplanationText(*explanation, look.style);
  if (!explanation->quality) {
    const bool refused = explanation->gang && !explanation->gang->status.reason.empty();
    output.exit_code = refused ? Output::kRefused : Output::kFailed;
    if (look.format != Format::kText) output.err = explanation->why_no_quality + "\n";
  }
  return output;
}

Output RunTopology(kube::Client& client, const std::string& node, const OutputOptions& look,
                   const std::stop_token& stop) {
  auto objects = ListOf(client, keys::kNodeTopology, stop);
  if (!objects) return Failure(objects.error());
  FabricReading reading = ReadFabrics(*objects, {});
  if (!node.empty()) {
    std::erase_if(reading.topologies, [&](const auto& topology) { return topology.name != node; });
    if (reading.topologies.empty()) {
      return Failure({Code::kNotFound, "node " + node +
                                           " has not reported a topology; `kubectl heddle topology` lists "
                                           "those that have"});
    }
  }
  Output output;
  for (const std::string& note : reading.notes) output.err += "Note: " + Printable(note) + "\n";
  if (look.format != Format::kText) {
    Json items = Json::array();
    for (const crds::NodeTopology& topology : reading.topologies) items.push_back(crds::ToJson(topology));
    output.out = Printed(node.empty() ? Json{{"items", std::move(items)}} : items.front(), look.format);
  } else if (reading.topologies.empty()) {
    output.exit_code = Output::kFailed;
    output.err += NoTopology();
  } else {
    output.out = node.empty() ? NodeTable(reading.topologies, look.style)
                              : NodeTree(reading.topologies.front(), look.style);
  }
  return output;
}

Output RunFabric(kube::Client& client, const OutputOptions& look, const std::stop_token& stop) {
  const auto reading = ReadCluster(client, stop);
  if (!reading) return Failure(reading.error());
  Output output;
  for (const std::string& note : reading->notes) output.err += "Note: " + Printable(note) + "\n";
  if (look.format != Format::kText) {
    Json items = Json::array();
    for (const FabricPtr& fabric : reading->fabrics) {
      crds::Fabric object;
      object.spec = fabric->declaration;
      object.status = crds::Summarise(*fabric);
      object.status.assumptions = fabric->assumptions;
      items.push_back(crds::ToJson(object));
    }
    output.out = Printed({{"items", std::move(items)}}, look.format);
    return output;
  }
  if (reading->fabrics.empty()) {
    output.exit_code = Output::kFailed;
    output.err += NoTopology();
  }
  for (const FabricPtr& fabric : reading->fabrics) {
    if (!output.out.empty()) output.out += "\n";
    output.out += FabricText(*fabric, look.style);
  }
  return output;
}

}  // namespace heddle::cli
