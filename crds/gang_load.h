#pragma once

#include <optional>
#include <span>
#include <vector>

#include "crds/gang.h"
#include "placement/cluster_state.h"

namespace heddle::crds {

// What gangs that hold their places send over the shared links of one fabric; see placement::LoadOf. Gangs
// without a placement, or with pods on nodes that the fabric does not know, are left out.
std::vector<placement::LeafLoad> LoadsOf(const placement::ClusterState& state,
                                         std::span<const Gang* const> gangs);

// What was asked and where it was put, in the fabric's numbers; nothing where it cannot be said.
struct PlacedGang {
  placement::GangRequest request;
  std::vector<placement::PodPlacement> pods;
};
std::optional<PlacedGang> PlacedOn(const topology::Fabric& fabric, const Gang& gang);

}  // namespace heddle::crds
