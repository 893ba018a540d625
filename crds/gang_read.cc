#include <fmt/format.h>

#include "crds/codec.h"
#include "crds/gang.h"
#include "crds/parallelism.h"

namespace heddle::crds {
namespace {

using codec::Field;
using codec::kMaxInt;
using codec::kMaxInt64;

constexpr std::string_view kAxes = "tp, cp, ep, dp, pp, fsdp, gang";
constexpr std::string_view kLevels = "nvlink, node, leaf, su, spine, site";
constexpr std::size_t kMaxNodeNames = 2 * std::size_t(kMaxPods);

GangOwner ReadOwner(const Field& field) {
  field.Required();
  return {field("apiVersion").Name(128), field("kind").Name(63), field("name").Name(253),
          field("uid").Name(64)};
}

placement::Axis ReadAxis(const Field& field) {
  return field.Required().Word(placement::ParseAxis, kAxes, placement::Axis::kTp);
}

placement::Parallelism ReadParallelism(const Field& field) {
  const auto size = [&](std::string_view key) { return field(key).Required().Int(1, kMaxWorld, 1); };
  placement::Parallelism parallelism;
  parallelism.tp = size("tp");
  parallelism.cp = size("cp");
  parallelism.dp = size("dp");
  parallelism.pp = size("pp");
  parallelism.ep = size("ep");
  parallelism.etp = field("etp").Int(1, kMaxWorld);
  parallelism.fsdp = field("fsdp").Int(1, kMaxWorld);
  const Field order = field("order");
  if (const auto parsed = ParseOrder(order.Required().Text(11))) {
    parallelism.order = *parsed;
  } else {
    order.Refuse(parsed.error().message);
  }
  return parallelism;
}

std::vector<placement::Requirement> ReadRequirements(const Field& field) {
  auto requirements = field.List(placement::kAxisCount, [](const Field& item) {
    return placement::Requirement{
        ReadAxis(item("axis")),
        item("level").Required().Word(placement::ParseLevel, kLevels, placement::Level::kNvlink)};
  });
  const auto before = [](const auto& a, const auto& b) { return a.axis < b.axis; };
  std::sort(requirements.begin(), requirements.end(), before);
  const auto twice = std::adjacent_find(requirements.begin(), requirements.end(),
                                        [](const auto& a, const auto& b) { return a.axis == b.axis; });
  if (twice != requirements.end())
    field.Refuse(fmt::format("{} stands twice", placement::AxisName(twice->axis)));
  return requirements;
}

placement::ModelHints ReadModel(const Field& field) {
  placement::ModelHints model;
  model.params = double(field("params").Int64(1, 1'000'000'000'000'000));
  model.layers = field("layers").Int(1, 1'000'000);
  model.hidden = field("hidden").Int(1, 10'000'000);
  model.seq = field("seq").Int(1, 1'000'000'000);
  model.microbatch = field("microbatch").Int(1, 1'000'000);
  model.microbatches = field("microbatches").Int(1, 1'000'000);
  model.tflops = field("tflops").Int(1, 1'000'000);
  model.active = double(field("active").Int64(1, 1'000'000'000'000'000));
  model.experts = field("experts").Int(1, 1'000'000);
  model.topk = field("topk").Int(1, 1'000'000);
  model.heads = field("heads").Int(1, 1'000'000);
  model.kvheads = field("kvheads").Int(1, 1'000'000);
  return model;
}

GangSpec ReadSpec(const Field& field) {
  field.Required();
  GangSpec spec;
  spec.owner = ReadOwner(field("owner"));
  spec.attempt = field("attempt").Required().Int64(0, kMaxInt64);
  spec.group = field("group").Text(320);
  spec.leader = field("leader").Text(64);
  spec.pods = field("pods").Required().Int(1, kMaxPods);
  spec.gpus_per_pod = field("gpusPerPod").Required().Int(0, kMaxGpusPerPod);
  const Field gpus = field("gpus");
  if (gpus.Required().Int(0, kMaxWorld) != spec.gpus()) gpus.Refuse("must be pods * gpusPerPod");
  spec.gpu_resource = field("gpuResource").Text(253);
  spec.priority = field("priority").Int(std::numeric_limits<std::int32_t>::min(), kMaxInt);
  if (const Field wait = field("waitSeconds"); wait.present()) {
    spec.wait = std::chrono::seconds(wait.Int64(0, 31'536'000));
  }
  if (const Field parallelism = field("parallelism"); parallelism.present()) {
    spec.parallelism = ReadParallelism(parallelism);
  }
  spec.require = ReadRequirements(field("require"));
  spec.prefer = ReadRequirements(field("prefer"));
  spec.model = ReadModel(field("model"));
  return spec;
}

void CheckIndexes(const Field& field, const std::vector<std::int32_t>& indexes, std::size_t table) {
  for (std::size_t i = 0; i < indexes.size(); ++i) {
    if (indexes[i] < 0 || std::size_t(indexes[i]) < table) continue;
    field.Refuse(fmt::format("entry {} is {}, and its table has {}", i, indexes[i], table));
    return;
  }
}

void CheckColumn(const Field& field, std::size_t entries, int pods) {
  if (field.present() && entries != std::size_t(pods)) {
    field.Refuse(fmt::format("has {} entries for {} pods", entries, pods));
  }
}

Placement ReadPlacement(const Field& field, int pods) {
  Placement placement;
  placement.epoch = field("epoch").Required().Int64(0, kMaxInt64);
  placement.node_names = field("nodeNames").Required().Names(kMaxNodeNames, 253);
  const Field nodes = field("nodes");
  placement.nodes = nodes.Required().Ints<std::int32_t>(kMaxPods, 0, std::int64_t(kMaxNodeNames) - 1);
  CheckColumn(nodes, placement.nodes.size(), pods);
  CheckIndexes(nodes, placement.nodes, placement.node_names.size());
  const Field gpus = field("gpus");
  placement.gpus = gpus.Ints<std::uint32_t>(kMaxPods, 0, std::numeric_limits<std::uint32_t>::max());
  CheckColumn(gpus, placement.gpus.size(), pods);
  const Field sets = field("substituteSets");
  placement.substitute_sets = sets.List(4096, [&](const Field& item) {
    auto set = item.Ints<std::int32_t>(7, 0, std::int64_t(kMaxNodeNames) - 1);
    CheckIndexes(item, set, placement.node_names.size());
    return set;
  });
  const Field substitutes = field("substitutes");
  placement.substitutes = substitutes.Ints<std::int32_t>(kMaxPods, -1, 4095);
  CheckColumn(substitutes, placement.substitutes.size(), pods);
  CheckIndexes(substitutes, placement.substitutes, placement.substitute_sets.size());
  return placement;
}

placement::Quality ReadPredicted(const Field& field) {
  placement::Quality quality;
  quality.step_micros = field("stepMicros").Int64(0, kMaxInt64);
  quality.tp_groups = field("tpGroups").Int(0, kMaxInt);
  quality.tp_groups_in_domain = field("tpGroupsInDomain").Int(0, kMaxInt);
  quality.rail_misaligned = field("railMisaligned").Int64(0, kMaxInt64);
  quality.whole_domains_left = field("wholeDomainsLeft").Int(0, kMaxInt);
  field("axes").Each(placement::kAxisCount, [&](const Field& item) {
    const auto axis = std::size_t(ReadAxis(item("axis")));
    quality.axis_micros[axis] = item("micros").Required().Int64(0, kMaxInt64);
    quality.leaf_crossings[axis] = item("leafCrossings").Required().Int64(0, kMaxInt64);
    quality.edges[axis] = item("edges").Required().Int64(0, kMaxInt64);
  });
  return quality;
}

Observed ReadObserved(const Field& field) {
  Observed observed;
  observed.at = field("at").Required().Time().value_or(base::WallTime{});
  if (const Field flag = field("assumedParallelism"); flag.present())
    observed.assumed_parallelism = flag.Bool();
  if (const Field flag = field("assumedGpus"); flag.present()) observed.assumed_gpus = flag.Bool();
  if (const Field from = field("heddle"); from.present()) observed.heddle = ReadPredicted(from);
  observed.refusal = field("refusal").Text(1024);
  return observed;
}

std::vector<MissingRank> ReadMissing(const Field& field, int pods) {
  auto missing = field.List(kMaxMissing, [pods](const Field& item) {
    return MissingRank{item("rank").Required().Int(0, std::int64_t(pods) - 1),
                       item("since").Required().Time().value_or(base::WallTime{})};
  });
  std::sort(missing.begin(), missing.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const auto twice = std::adjacent_find(missing.begin(), missing.end(),
                                        [](const auto& a, const auto& b) { return a.rank == b.rank; });
  if (twice != missing.end()) field.Refuse(fmt::format("rank {} stands twice", twice->rank));
  return missing;
}

GangStatus ReadStatus(const Field& field, int pods) {
  GangStatus status;
  status.observed_generation = field("observedGeneration").Int64(0, kMaxInt64);
  const Field progress = field("progress");
  status.progress = {progress("seen").Int(0, 1'000'000), progress("released").Int(0, 1'000'000),
                     progress("bound").Int(0, 1'000'000)};
  status.reason = field("reason").CamelCase(64);
  status.message = field("message").Text(1024);
  status.preempted_by = field("preemptedBy").Text(320);
  status.missing = ReadMissing(field("missing"), pods);
  status.planned_at = field("plannedAt").Time();
  if (const Field from = field("placement"); from.present()) status.placement = ReadPlacement(from, pods);
  if (const Field from = field("predicted"); from.present()) status.predicted = ReadPredicted(from);
  if (const Field from = field("observed"); from.present()) status.observed = ReadObserved(from);
  status.explanation = field("explanation").List(16, [](const Field& item) { return item.Text(512); });
  status.conditions = codec::ReadConditions(field("conditions"));
  return status;
}

}  // namespace

base::Result<Gang> GangFromJson(const Json& json) {
  codec::Problem problem;
  const Field root(json, problem);
  Gang object;
  codec::ReadHead(root, keys::kGang.kind, object);
  object.spec = ReadSpec(root("spec"));
  object.status = ReadStatus(root("status"), object.spec.pods);
  if (problem.found()) return base::Fail(problem.error().In("Gang " + object.name));
  return object;
}

}  // namespace heddle::crds
