#include "cli/plan_view.h"

#include <fmt/format.h>

#include <bit>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/gpu_use.h"
#include "cli/quality_view.h"

namespace heddle::cli {
namespace {

using crds::Json;
using placement::AxisReport;
using topology::kNone;

double Milliseconds(std::int64_t micros) {
  return double(micros) / 1000;
}

Json RankJson(const topology::Fabric& fabric, const topology::FabricNode& at, std::size_t position) {
  const topology::Gpu& gpu = at.node.gpus[position];
  const topology::GpuUplink& uplink = at.uplinks[position];
  const topology::Nic* nic = at.node.NicOfGpu(gpu.index);
  return {{"node", at.node.name},
          {"gpu", gpu.index},
          {"nic", nic == nullptr ? Json() : Json(nic->name)},
          {"rail", uplink.rail == kNone ? Json() : Json(uplink.rail)},
          {"leaf", uplink.leaf == kNone ? Json() : Json(fabric.leaves[std::size_t(uplink.leaf)].name)},
          {"nvlinkDomain", at.domain == kNone ? Json() : Json(fabric.domains[std::size_t(at.domain)].id)}};
}

Json RanksJson(const topology::Fabric& fabric, const placement::Plan& plan) {
  Json ranks = Json::array();
  for (std::size_t pod = 0; pod < plan.pods.size(); ++pod) {
    const topology::FabricNode& at = fabric.nodes[std::size_t(plan.pods[pod].node)];
    for (std::uint32_t left = plan.pods[pod].gpus; left != 0; left &= left - 1) {
      Json rank = RankJson(fabric, at, std::size_t(std::countr_zero(left)));
      rank["rank"] = ranks.size();
      rank["pod"] = pod;
      ranks.push_back(std::move(rank));
    }
  }
  return ranks;
}

}  // namespace

Json PlanJson(const placement::ClusterState& state, const placement::GangRequest& request,
              const placement::Plan& plan) {
  Json axes = Json::array();
  std::int64_t crossings = 0;
  for (const AxisReport& report : placement::ReportAxes(state, request, plan.pods, plan.quality)) {
    axes.push_back({{"axis", placement::AxisName(report.axis)},
                    {"size", report.size},
                    {"groups", report.groups},
                    {"worstTier", placement::LevelName(report.worst)},
                    {"edges", report.edges},
                    {"leafCrossings", report.leaf_crossings},
                    {"bytes", report.bytes},
                    {"algorithm", placement::AlgorithmName(report.bottleneck.algorithm)},
                    {"boundBy", placement::BoundName(report.bottleneck.bound)},
                    {"gbps", report.bottleneck.gbps},
                    {"milliseconds", Milliseconds(report.micros)}});
    crossings += report.leaf_crossings;
  }
  return {{"feasible", true},
          {"ranks", RanksJson(state.fabric(), plan)},
          {"axes", std::move(axes)},
          {"leafCrossings", crossings},
          {"railMisaligned", plan.quality.rail_misaligned},
          {"milliseconds", Milliseconds(plan.quality.step_micros)},
          {"tpGroups", plan.quality.tp_groups},
          {"tpGroupsInDomain", plan.quality.tp_groups_in_domain},
          {"wholeDomainsLeft", plan.quality.whole_domains_left},
          {"explanation", plan.explanation},
          {"refusal", nullptr}};
}

Json RefusalJson(const placement::Refusal& refusal) {
  Json left_out = Json::object();
  for (const auto& [word, count] : refusal.left_out) left_out[word] = count;
  Json closest;
  if (refusal.closest) {
    closest = {{"place", refusal.closest->place},
               {"name", refusal.closest->name},
               {"neededGpus", refusal.closest->needed_gpus},
               {"hasGpus", refusal.closest->has_gpus}};
  }
  return {{"feasible", false},
          {"ranks", Json::array()},
          {"axes", Json::array()},
          {"leafCrossings", 0},
          {"milliseconds", 0},
          {"refusal",
           {{"reason", placement::RefusalReasonName(refusal.reason)},
            {"message", refusal.sentence},
            {"closest", std::move(closest)},
            {"leftOut", std::move(left_out)}}}};
}

std::string PlanText(const placement::ClusterState& state, const placement::GangRequest& request,
                     const placement::Plan& plan, const Style& style) {
  const topology::Fabric& fabric = state.fabric();
  const placement::Quality& quality = plan.quality;
  std::string out =
      fmt::format("{} of {}, {}, on {} with {}\n\n", base::Counted(request.pods.size(), "pod"),
                  base::Counted(request.pods.front().gpus, "GPU"), ParallelismText(request.parallelism),
                  base::Counted(fabric.nodes.size(), "node"), base::Counted(fabric.gpu_count(), "GPU"));
  const std::vector<std::string> header{"AXIS",       "SIZE",     "GROUPS", "FARTHEST",   "LEAF CROSSINGS",
                                        "GB PER GPU", "BOUND BY", "AS",     "MS PER STEP"};
  const std::vector<std::size_t> below{6, 7};  // BOUND BY, AS
  std::vector<std::vector<Cell>> axes;
  for (const AxisReport& report : placement::ReportAxes(state, request, plan.pods, quality)) {
    axes.push_back({std::string(placement::AxisName(report.axis)),
                    std::to_string(report.size),
                    std::to_string(report.groups),
                    std::string(placement::LevelName(report.worst)),
                    {fmt::format("{}/{}", report.leaf_crossings, report.edges),
                     report.leaf_crossings == 0 ? Colour::kGood : Colour::kBad},
                    fmt::format("{:.2f}", report.bytes / 1e9),
                    fmt::format("{} {}", placement::BoundName(report.bottleneck.bound),
                                report.bottleneck.gbps > 0 ? fmt::format("{} Gb/s", report.bottleneck.gbps)
                                                           : "under 1 Gb/s"),
                    std::string(placement::AlgorithmName(report.bottleneck.algorithm)),
                    fmt::format("{:.3f}", Milliseconds(report.micros))});
  }
  if (!axes.empty()) out += ColumnsText(header, axes, below, style) + "\n";
  out += fmt::format("TP groups inside one NVLink domain  {}/{}\n", quality.tp_groups_in_domain,
                     quality.tp_groups);
  out += fmt::format("Rail-misaligned pairs               {}\n", quality.rail_misaligned);
  out += fmt::format("Predicted communication             {:.3f} ms per step\n",
                     Milliseconds(quality.step_micros));
  out += fmt::format("NVLink domains left whole           {}\n\n", quality.whole_domains_left);
  for (const std::string& sentence : plan.explanation) out += sentence + "\n";
  if (request.model == placement::ModelHints{}) {
    out += "without --model the bytes are a guess: the plan stands, the milliseconds are of no real step\n";
  }
  Table pods({"POD", "NODE", "GPUS"});
  for (std::size_t i = 0; i < plan.pods.size(); ++i) {
    const topology::Node& node = fabric.nodes[std::size_t(plan.pods[i].node)].node;
    pods.Add({std::to_string(i), node.name,
              fmt::format("{}", fmt::join(IndexesAt(node, plan.pods[i].gpus), ","))});
  }
  return ProseText(out, style) + "\n" + pods.Format(style);
}

std::string RefusalText(const placement::Refusal& refusal, const Style& style) {
  std::string out = fmt::format("{} {}\n", style.Paint("Refused", Colour::kBad),
                                placement::RefusalReasonName(refusal.reason));
  out += refusal.sentence + "\n";
  for (const auto& [word, count] : refusal.left_out) out += fmt::format("  {} nodes: {}\n", count, word);
  return ProseText(out, style);
}

}  // namespace heddle::cli
