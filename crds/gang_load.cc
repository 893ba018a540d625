#include "crds/gang_load.h"

#include <bit>

#include "crds/gpu_indexes.h"
#include "placement/dense.h"
#include "placement/gang_classes.h"
#include "placement/load.h"
#include "placement/planner.h"
#include "placement/remainder.h"

namespace heddle::crds {

std::optional<PlacedGang> PlacedOn(const topology::Fabric& fabric, const Gang& gang) {
  if (!gang.spec.parallelism || !gang.status.placement) return std::nullopt;
  PlacedGang placed;
  const std::vector<PlacedPod> rows = ToRows(*gang.status.placement);
  std::vector<bool> gone;
  gone.reserve(rows.size());
  for (const PlacedPod& row : rows) gone.push_back(!row.has_slot());
  const placement::Remainder left = placement::RemainderOf(*gang.spec.parallelism, gang.spec.require,
                                                           gang.spec.prefer, gang.spec.gpus_per_pod, gone);
  placed.request.parallelism = left.parallelism;
  placed.request.model = gang.spec.model;
  for (const std::int32_t pod : left.pods) {
    const PlacedPod& row = rows[std::size_t(pod)];
    // Also of a rank without a slot among others of its group that have one.
    const topology::NodeId node = fabric.FindNode(row.node);
    if (node == topology::kNone) return std::nullopt;
    const topology::Node& at = fabric.nodes[std::size_t(node)].node;
    const std::uint32_t gpus = PositionsOf(at, row.gpus == 0 ? ~0U : row.gpus);
    placed.request.pods.push_back({.gpus = std::popcount(gpus)});
    placed.pods.push_back({node, gpus});
  }
  if (!placement::WhyBadRequest(fabric, placed.request).empty()) return std::nullopt;
  return placed;
}

std::vector<placement::LeafLoad> LoadOf(const placement::ClusterState& state, const Gang& gang) {
  if (!state.dense().oversubscribed()) return {};  // nothing is shared
  const auto placed = PlacedOn(state.fabric(), gang);
  if (!placed) return {};
  const placement::Quality quality = placement::Evaluate(state, placed->request, placed->pods);
  return placement::LoadOf(state, placed->request, placed->pods, quality);
}

}  // namespace heddle::crds
