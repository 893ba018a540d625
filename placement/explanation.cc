#include "placement/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/counted.h"
#include "placement/axis_report.h"
#include "placement/torus_search.h"

namespace heddle::placement {
namespace {

using topology::kNone;

std::string Milliseconds(std::int64_t micros) {
  return fmt::format("{}.{:03} ms", micros / 1000, micros % 1000);
}

std::string Where(const ClusterState& state, const std::vector<PodPlacement>& pods) {
  const DenseFabric& dense = state.dense();
  std::vector<char> has_unit(std::size_t(dense.cells(Tier::kUnit)), 0),
      has_node(state.fabric().nodes.size(), 0);
  std::int64_t nodes = 0;
  for (const PodPlacement& pod : pods) {
    if (pod.gpus == 0) continue;
    nodes += has_node[std::size_t(pod.node)] == 0 ? 1 : 0;
    has_node[std::size_t(pod.node)] = 1;
    has_unit[std::size_t(dense.cell(Tier::kUnit, pod.node))] = 1;
  }
  constexpr std::size_t kNamed = 4;
  std::string names;
  std::size_t units = 0;
  for (std::size_t unit = 0; unit < has_unit.size(); ++unit) {
    if (has_unit[unit] == 0) continue;
    if (units < kNamed) names += (units > 0 ? ", " : "") + dense.CellName(Tier::kUnit, std::int32_t(unit));
    ++units;
  }
  if (units > kNamed) names += fmt::format(" and {} more", units - kNamed);
  return fmt::format("{} in {}", base::Counted(nodes, "node"), names);
}

std::string AxisSentence(const Quality& quality, Axis axis) {
  const auto a = std::size_t(axis);
  const std::string cost = Milliseconds(quality.axis_micros[a]);
  if (quality.edges[a] == 0)
    return fmt::format("{} leaves no node or NVLink domain: {} a step", AxisName(axis), cost);
  if (quality.leaf_crossings[a] == 0) {
    return fmt::format("{} uses {} network edges and crosses no leaf: {} a step", AxisName(axis),
                       quality.edges[a], cost);
  }
  return fmt::format("{} crosses leaves on {} of {} network edges: {} a step", AxisName(axis),
                     quality.leaf_crossings[a], quality.edges[a], cost);
}

std::string SlowRails(const ClusterState& state, const std::vector<PodPlacement>& pods) {
  const DenseFabric& dense = state.dense();
  for (const PodPlacement& pod : pods) {
    if (pod.node == kNone) continue;
    const std::uint32_t odd = pod.gpus & dense.odd_gpus(pod.node);
    if (odd == 0) continue;
    return fmt::format("{} is used although GPU {} there is slower or cabled to another leaf than its peers",
                       state.fabric().nodes[std::size_t(pod.node)].node.name, std::countr_zero(odd));
  }
  return "";
}

}  // namespace

std::vector<std::string> Explain(const ClusterState& state, const GangRequest& request, const Found& found,
                                 const std::vector<Requirement>& missed_preferences) {
  const Quality& quality = found.quality;
  std::vector<std::string> out;
  out.push_back(fmt::format("{} GPUs on {}: predicted communication {} a step", request.parallelism.world(),
                            Where(state, found.pods), Milliseconds(quality.step_micros)));
  if (request.parallelism.tp > 1) {
    out.push_back(fmt::format("{} of {} TP groups lie whole in an NVLink domain", quality.tp_groups_in_domain,
                              quality.tp_groups));
  }
  if (const auto slice = SliceOf(state.fabric(), found.pods)) {
    const auto& [corner, sides] = slice->box;
    out.push_back(fmt::format("{} nodes {} {}x{}x{} of the torus, from {},{},{}", slice->nodes,
                              slice->whole() ? "as a slice of" : "in a region of", sides[0], sides[1],
                              sides[2], corner[0], corner[1], corner[2]));
  }
  for (const Requirement& missed : missed_preferences) {
    out.push_back(
        fmt::format("the preference {}={} could not be met", AxisName(missed.axis), LevelName(missed.level)));
  }
  for (const Axis axis : kReportedAxes) {
    if (TrafficStrideOf(request.parallelism, axis).size > 1) out.push_back(AxisSentence(quality, axis));
  }
  if (quality.rail_misaligned > 0) {
    out.push_back(fmt::format("{} run between two different rails",
                              base::Counted(quality.rail_misaligned, "network edge")));
  }
  if (std::string slow = SlowRails(state, found.pods); !slow.empty()) out.push_back(std::move(slow));
  const ModelHints& model = request.model;
  if (!(model == ModelHints{}) &&
      !(model.params > 0 && model.layers > 0 && model.hidden > 0 && model.seq > 0)) {
    out.push_back("the model names no params, layers, hidden and seq together: axes weigh by default");
  }
  out.push_back(fmt::format("{} {} whole", base::Counted(quality.whole_domains_left, "NVLink domain"),
                            quality.whole_domains_left == 1 ? "stays" : "stay"));
  return out;
}

}  // namespace heddle::placement
