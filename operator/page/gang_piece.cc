#include "operator/page/gang_piece.h"

#include <fmt/format.h>

#include "crds/observation.h"
#include "crds/parallelism.h"
#include "operator/page/text.h"

namespace heddle::operators::page {
namespace {

using kube::Json;
using placement::Axis;

std::string Written(const placement::Parallelism& parallelism) {
  std::string text;
  for (int i = 0; i < placement::kAxisCount; ++i) {
    const Axis axis = Axis(i);
    if (axis == Axis::kGang || parallelism.size(axis) <= 1) continue;
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : ",", placement::AxisName(axis), parallelism.size(axis));
  }
  return text.empty() ? "dp=1" : text;
}

// [name, size, leaf crossings, edges outside NVLink, microseconds a step]
Json Axes(const placement::Quality& quality, const std::optional<placement::Parallelism>& parallelism) {
  Json axes = Json::array();
  for (std::size_t i = 0; i < std::size_t(placement::kAxisCount); ++i) {
    const Axis axis = Axis(i);
    const int size = parallelism && axis != Axis::kGang ? parallelism->size(axis) : 1;
    if (size <= 1 && quality.edges[i] == 0 && quality.axis_micros[i] == 0) continue;
    axes.push_back({placement::AxisName(axis), size, quality.leaf_crossings[i], quality.edges[i],
                    quality.axis_micros[i]});
  }
  return axes;
}

// [node, GPUs as bits, …]; 0 = all of the node's.
Json Places(const crds::Placement& placement, const std::map<std::string, int, std::less<>>& nodes) {
  std::map<int, std::uint32_t> by_node;
  for (std::size_t pod = 0; pod < placement.nodes.size(); ++pod) {
    const std::size_t name = std::size_t(placement.nodes[pod]);
    if (name >= placement.node_names.size()) continue;
    const auto node = nodes.find(placement.node_names[name]);  // none is called crds::kNoNode
    if (node != nodes.end()) by_node[node->second] |= pod < placement.gpus.size() ? placement.gpus[pod] : 0;
  }
  Json places = Json::array();
  for (const auto& [node, gpus] : by_node) {
    places.push_back(node);
    places.push_back(gpus);
  }
  return places;
}

void PutObserved(const crds::Observed& observed, Json& piece) {
  Json& json = piece["observed"];
  json = Json::object();
  if (observed.heddle) json["step"] = observed.heddle->step_micros;
  if (!observed.refusal.empty()) json["refusal"] = Cut(observed.refusal, 400);
}

}  // namespace

std::string_view GangStateOf(const crds::GangStatus& status) {
  const auto is = [&](std::string_view type) { return crds::IsTrue(status.conditions, type); };
  if (is(crds::kEnded)) return "ended";
  if (is(crds::kDegraded) || is(crds::kRepairing) || is(crds::kPreempted)) return "degraded";
  if (is(crds::kRunning)) return "running";
  return is(crds::kReleased) || is(crds::kPlanned) ? "starting" : "waiting";
}

Json GangPiece(const crds::Gang& gang, const std::map<std::string, int, std::less<>>& nodes) {
  const crds::GangSpec& spec = gang.spec;
  const crds::GangStatus& status = gang.status;
  Json piece = {{"key", gang.ns + "/" + gang.name},
                {"title", crds::GangTitle(spec)},
                {"ns", gang.ns},
                {"owner", spec.owner.kind + "/" + spec.owner.name},
                {"state", GangStateOf(status)},
                {"summary", crds::Summarise(spec, status)},
                {"pods", spec.pods},
                {"gpus", spec.gpus()}};
  if (spec.priority != 0) piece["priority"] = spec.priority;
  if (spec.parallelism) piece["parallelism"] = Written(*spec.parallelism);
  if (!status.reason.empty()) piece["reason"] = Cut(status.reason, 64);
  if (!status.message.empty()) piece["message"] = Cut(status.message, 600);
  if (status.planned_at) piece["planned"] = base::FormatTime(*status.planned_at);
  if (status.predicted) {
    piece["axes"] = Axes(*status.predicted, spec.parallelism);
    piece["step"] = status.predicted->step_micros;
    piece["tp"] = {status.predicted->tp_groups_in_domain, status.predicted->tp_groups};
    piece["misaligned"] = status.predicted->rail_misaligned;
  }
  if (crds::WasPriced(status)) PutObserved(*status.observed, piece);
  // What has ended holds nothing, whatever its plan still says.
  if (status.placement && GangStateOf(status) != "ended") piece["places"] = Places(*status.placement, nodes);
  return piece;
}

Json UnreadGangPiece(const kube::ObjectKey& key, const std::string& error) {
  return {{"key", key.ToString()},
          {"title", key.name},
          {"ns", key.ns},
          {"owner", ""},
          {"state", "degraded"},
          {"summary", "Cannot be read"},
          {"pods", 0},
          {"gpus", 0},
          {"message", "it cannot be read: " + Cut(error, 600)}};
}

}  // namespace heddle::operators::page
