#pragma once

#include <optional>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "placement/torus.h"

namespace heddle::placement {

struct TorusPlace {
  std::vector<PodPlacement> pods;  // by pod; those without GPUs have no node yet
  Quality quality;
  // Every step between nodes is one link at the best rate there is: no place is cheaper.
  bool ideal = false;
};

// A place for a uniform gang of whole nodes on a 3D torus: a free box of exactly its nodes where there is
// one, with the axes along its sides; else equal boxes for its heaviest groups; else the smallest region with
// enough free nodes, walked so that neighbours in the gang lie near each other. The cheapest by `pricing` that meets
// the requirements. Nothing off a torus, on one of more than kMostTorusPlaces places, for a gang that shares
// nodes with others or does not fit, or where a requirement is broken; the counting search answers those.
std::optional<TorusPlace> PlaceOnTorus(const ClusterState& state, const GangRequest& request,
                                       const GangClasses& classes, Pricing& pricing);

// The part of a torus that a gang's nodes lie in: the least box around them all.
struct TorusSlice {
  TorusBox box;
  int nodes = 0;  // of the gang; a whole slice where they are as many as the box has places
  bool whole() const { return nodes == Volume(box.sides); }
  friend bool operator==(const TorusSlice&, const TorusSlice&) = default;
};
// Nothing off a torus, or where a node's position is not known.
std::optional<TorusSlice> SliceOf(const topology::Fabric& fabric, const std::vector<PodPlacement>& pods);

}  // namespace heddle::placement
