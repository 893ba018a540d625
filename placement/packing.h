#pragma once

#include <cstdint>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang_classes.h"

namespace heddle::placement {

struct Packing {
  enum class Outcome : std::uint8_t { kFound, kImpossible, kGaveUp };
  Outcome outcome = Outcome::kGaveUp;
  std::vector<PodPlacement> pods;  // by pod, where found
};

// Packs unlike pods, and classes of unlike sizes, by counting kinds: pods that ask for the same are one kind, classes
// of the same pods too, and cells that hold the same are one shape. What a shape holds is the largest counts by kind
// that its parts hold together. That decides nested requirements, per-pod lists of nodes and resources beside GPUs in
// either direction: kFound and kImpossible are exact. Its work grows with how many counts of kinds no other is above:
// with few kinds it is small at any size of fabric. kGaveUp: `budget` counts were looked at, a leaf or spine that is
// judged per GPU broke the place, or there are hundreds of kinds.
// Requires: CellsDecide, and no pod is bound.
Packing Pack(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
             std::int64_t budget);

}  // namespace heddle::placement
