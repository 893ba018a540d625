#include <fmt/format.h>

#include <cmath>

#include "crds/codec.h"
#include "crds/gang.h"
#include "crds/parallelism.h"

namespace heddle::crds {
namespace {

using codec::Clean;
using codec::PutList;
using codec::PutPositive;
using codec::PutText;
using codec::WriteList;

Json WriteParallelism(const placement::Parallelism& parallelism) {
  Json json{{"tp", parallelism.tp}, {"cp", parallelism.cp}, {"dp", parallelism.dp},
            {"pp", parallelism.pp}, {"ep", parallelism.ep}, {"order", FormatOrder(parallelism.order)}};
  PutPositive(json, "etp", parallelism.etp);
  PutPositive(json, "fsdp", parallelism.fsdp);
  return json;
}

Json WriteRequirements(const std::vector<placement::Requirement>& requirements) {
  return WriteList(requirements, placement::kAxisCount, [](const placement::Requirement& requirement) {
    return Json{{"axis", placement::AxisName(requirement.axis)},
                {"level", placement::LevelName(requirement.level)}};
  });
}

Json WriteModel(const placement::ModelHints& model) {
  Json json = Json::object();
  PutPositive(json, "params", std::llround(model.params));
  PutPositive(json, "layers", model.layers);
  PutPositive(json, "hidden", model.hidden);
  PutPositive(json, "seq", model.seq);
  PutPositive(json, "microbatch", model.microbatch);
  PutPositive(json, "microbatches", model.microbatches);
  PutPositive(json, "tflops", model.tflops);
  PutPositive(json, "active", std::llround(model.active));
  PutPositive(json, "experts", model.experts);
  PutPositive(json, "topk", model.topk);
  PutPositive(json, "heads", model.heads);
  PutPositive(json, "kvheads", model.kvheads);
  return json;
}

Json WriteSpec(const GangSpec& spec) {
  Json json{{"owner", Json{{"apiVersion", Clean(spec.owner.api_version, 128)},
                           {"kind", Clean(spec.owner.kind, 63)},
                           {"name", Clean(spec.owner.name, 253)},
                           {"uid", Clean(spec.owner.uid, 64)}}},
            {"attempt", spec.attempt},
            {"pods", spec.pods},
            {"gpusPerPod", spec.gpus_per_pod},
            {"gpus", spec.gpus()}};
  PutText(json, "group", spec.group, 320);
  PutText(json, "leader", spec.leader, 64);
  PutText(json, "gpuResource", spec.gpu_resource, 253);
  PutPositive(json, "priority", spec.priority);
  if (spec.wait) json["waitSeconds"] = spec.wait->count();
  if (spec.parallelism) json["parallelism"] = WriteParallelism(*spec.parallelism);
  PutList(json, "require", WriteRequirements(spec.require));
  PutList(json, "prefer", WriteRequirements(spec.prefer));
  if (spec.model != placement::ModelHints{}) json["model"] = WriteModel(spec.model);
  return json;
}

Json WritePlacement(const Placement& placement) {
  Json json{{"epoch", placement.epoch}, {"nodes", placement.nodes}};
  json["nodeNames"] = codec::TextList(placement.node_names, placement.node_names.size(), 253);
  PutList(json, "gpus", placement.gpus);
  PutList(json, "substituteSets", placement.substitute_sets);
  PutList(json, "substitutes", placement.substitutes);
  return json;
}

Json WritePredicted(const placement::Quality& quality) {
  Json axes = Json::array();
  for (std::size_t i = 0; i < placement::kAxisCount; ++i) {
    if (quality.axis_micros[i] == 0 && quality.leaf_crossings[i] == 0 && quality.edges[i] == 0) continue;
    axes.push_back(Json{{"axis", placement::AxisName(placement::Axis(i))},
                        {"micros", quality.axis_micros[i]},
                        {"leafCrossings", quality.leaf_crossings[i]},
                        {"edges", quality.edges[i]}});
  }
  Json json{{"stepMicros", quality.step_micros},
            {"stepMs", fmt::format("{}.{}", quality.step_micros / 1000, quality.step_micros / 100 % 10)},
            {"tpGroups", quality.tp_groups},
            {"tpGroupsInDomain", quality.tp_groups_in_domain},
            {"railMisaligned", quality.rail_misaligned},
            {"wholeDomainsLeft", quality.whole_domains_left}};
  PutList(json, "axes", std::move(axes));
  return json;
}

Json WriteObserved(const Observed& observed) {
  Json json = Json::object();
  codec::PutTime(json, "at", observed.at);
  if (observed.assumed_parallelism) json["assumedParallelism"] = true;
  if (observed.assumed_gpus) json["assumedGpus"] = true;
  if (observed.heddle) json["heddle"] = WritePredicted(*observed.heddle);
  PutText(json, "refusal", observed.refusal, 1024);
  return json;
}

Json WriteMissing(const std::vector<MissingRank>& missing) {
  return WriteList(missing, kMaxMissing, [](const MissingRank& one) {
    return Json{{"rank", one.rank}, {"since", base::FormatTime(one.since)}};
  });
}

Json WriteStatus(const GangSpec& spec, const GangStatus& status) {
  Json json{{"progress", Json{{"seen", status.progress.seen},
                              {"released", status.progress.released},
                              {"bound", status.progress.bound}}}};
  PutText(json, "summary", Summarise(spec, status), 128);
  PutPositive(json, "observedGeneration", status.observed_generation);
  PutText(json, "reason", status.reason, 64);
  PutText(json, "message", status.message, 1024);
  PutText(json, "preemptedBy", status.preempted_by, 320);
  PutList(json, "missing", WriteMissing(status.missing));
  codec::PutTime(json, "plannedAt", status.planned_at);
  if (status.placement) json["placement"] = WritePlacement(*status.placement);
  if (status.predicted) json["predicted"] = WritePredicted(*status.predicted);
  if (status.observed) json["observed"] = WriteObserved(*status.observed);
  PutList(json, "explanation", codec::TextList(status.explanation, 16, 512));
  PutList(json, "conditions", codec::WriteConditions(status.conditions));
  return json;
}

}  // namespace

Json ToJson(const Gang& object) {
  Json json = codec::WriteHead(keys::kGang.kind, object);
  json["spec"] = WriteSpec(object.spec);
  json["status"] = WriteStatus(object.spec, object.status);
  return json;
}

Json SpecApplyJson(const Gang& object) {
  Json json = codec::ApplyHead(keys::kGang.kind, object, true);
  json["spec"] = WriteSpec(object.spec);
  return json;
}

Json StatusApplyJson(const Gang& object) {
  Json json = codec::ApplyHead(keys::kGang.kind, object, false);
  json["status"] = WriteStatus(object.spec, object.status);
  return json;
}

}  // namespace heddle::crds
