// `kubectl heddle explain`: what is read of the cluster, once, before anything is decided.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/explain_target.h"
#include "cli/live_cluster.h"
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

base::Result<ExplainReading> ReadFor(kube::Client& client, const ExplainTarget& target, const std::string& ns,
                                     const std::stop_token& stop) {
  ExplainReading reading;
  reading.kind = target.kind->kind;
  reading.key = {ns, target.name};
  TRY(ReadOwner(client, target, stop, reading));
  ReadGangs(client, stop, reading);
  std::vector<std::string> said_later;
  TRY(ReadPods(client, GangOf(reading, said_later), stop, reading));
  ASSIGN_OR_RETURN(reading.fabrics, ReadCluster(client, stop));
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

Output RunExplain(kube::Client& client, const ExplainOptions& options, const OutputOptions& look,
                  const std::stop_token& stop) {
  const auto target = ParseExplainTarget(options.target);
  if (!target) return Failure(target.error());
  const auto reading = ReadFor(client, *target, options.ns, stop);
  if (!reading) return Failure(reading.error());
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

}  // namespace heddle::cli
