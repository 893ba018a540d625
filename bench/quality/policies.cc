#include "bench/quality/policies.h"

#include <algorithm>
#include <variant>

#include "base/check.h"

namespace heddle::quality {

using placement::Axis;
using placement::ClusterState;
using placement::GangRequest;
using placement::PodPlacement;
using topology::kNone;

namespace {

std::vector<char> UnitsTouched(const ClusterState& state, const std::vector<PodPlacement>& pods) {
  std::vector<char> touched(state.fabric().units.size(), 0);
  for (const PodPlacement& pod : pods) {
    const auto unit = state.fabric().nodes[std::size_t(pod.node)].unit;
    if (unit != kNone) touched[std::size_t(unit)] = 1;
  }
  return touched;
}

// The most units that one group of the axis touches. Requires: every node has a unit.
int SpreadOf(const ClusterState& state, const GangRequest& request, Axis axis,
             const std::vector<PodPlacement>& pods) {
  const auto [stride, size] = placement::StrideOf(request.parallelism, axis);
  const int gpus = request.pods.front().gpus;
  const std::int64_t world = request.parallelism.world();
  std::vector<std::int64_t> seen(state.fabric().units.size(), -1);
  int most = 0;
  for (std::int64_t outer = 0; outer < world; outer += stride * size) {
    for (std::int64_t first = outer; first < outer + stride; ++first) {
      int units = 0;
      for (std::int64_t rank = first; rank < first + stride * size; rank += stride) {
        const auto unit = state.fabric().nodes[std::size_t(pods[std::size_t(rank / gpus)].node)].unit;
        CHECK(unit != kNone);
        if (std::exchange(seen[std::size_t(unit)], first) != first) ++units;
      }
      most = std::max(most, units);
    }
  }
  return most;
}

int HealthyGpus(const topology::Fabric& fabric, const topology::Unit& unit) {
  int healthy = 0;
  for (const auto node : unit.nodes) {
    const auto& gpus = fabric.nodes[std::size_t(node)].node.gpus;
    healthy += int(std::count_if(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.healthy; }));
  }
  return healthy;
}

}  // namespace

std::string_view PolicyName(Policy policy) {
  switch (policy) {
    case Policy::kHeddle:
      return "Heddle";
    case Policy::kRacks:
      return "rack packing";
    case Policy::kBestFit:
      return "best fit";
    case Policy::kRandom:
      return "random";
  }
  return "";
}

peers::Assignment Place(Policy policy, ClusterState& state, const GangRequest& request,
                        base::Random& random) {
  switch (policy) {
    case Policy::kHeddle: {
      auto decision = placement::PlanGang(state, request);
      auto* plan = std::get_if<placement::Plan>(&decision);
      if (plan == nullptr) return std::nullopt;
      return std::move(plan->pods);
    }
    case Policy::kRacks:
      // A careful user tells it that the pods of a tp group belong on one node.
      return peers::PackRacks(state, request,
                              std::max(1, request.parallelism.tp / request.pods.front().gpus));
    case Policy::kBestFit:
      return peers::PackBestFit(state, request);
    case Policy::kRandom:
      return peers::PickAtRandom(state, request, random);
  }
  return std::nullopt;
}

int WholeUnitsLeft(const ClusterState& state, const std::vector<PodPlacement>& pods) {
  const std::vector<char> touched = UnitsTouched(state, pods);
  int whole = 0;
  for (std::size_t u = 0; u < touched.size(); ++u) {
    if (touched[u]) continue;
    const int free = state.free_gpus_in_unit(topology::UnitId(u));
    whole += free > 0 && free == HealthyGpus(state.fabric(), state.fabric().units[u]) ? 1 : 0;
  }
  return whole;
}

Measures Measure(const ClusterState& state, const GangRequest& request,
                 const std::vector<PodPlacement>& pods) {
  const placement::Quality q = placement::Evaluate(state, request, pods);
  Measures out;
  out.dp_spread = SpreadOf(state, request, Axis::kDp, pods);
  out.pp_spread = SpreadOf(state, request, Axis::kPp, pods);
  out.dp_crossings = double(q.leaf_crossings[std::size_t(Axis::kDp)]);
  out.pp_crossings = double(q.leaf_crossings[std::size_t(Axis::kPp)]);
  out.misaligned = double(q.rail_misaligned);
  out.broken_tp = double(q.tp_groups - q.tp_groups_in_domain);
  out.step_ms = double(q.step_micros) / 1000;
  out.network_ms = double(q.step_micros - q.axis_micros[std::size_t(Axis::kTp)]) / 1000;
  out.whole_domains = q.whole_domains_left;
  out.whole_units = WholeUnitsLeft(state, pods);
  return out;
}

}  // namespace heddle::quality
