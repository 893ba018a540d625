#pragma once

#include <optional>
#include <vector>

#include "crds/gang.h"
#include "placement/cluster_state.h"

namespace heddle::crds {

// What a gang that holds its places sends over the shared links of one fabric; see placement::LoadOf. Empty
// where PlacedOn says nothing.
std::vector<placement::LeafLoad> LoadOf(const placement::ClusterState& state, const Gang& gang);

// What was asked and where it was put, in the fabric's numbers, of those ranks that have a slot: the layout is the one
// that placement::RemainderOf makes of them. Nothing without a layout and a placement, or where the fabric does not
// know all of its nodes or their GPUs do not make the layout.
struct PlacedGang {
  placement::GangRequest request;
  std::vector<placement::PodPlacement> pods;  // spec.pods of them where every rank has a slot
};
std::optional<PlacedGang> PlacedOn(const topology::Fabric& fabric, const Gang& gang);

}  // namespace heddle::crds
