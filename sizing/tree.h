#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sizing/request.h"

namespace heddle::sizing {

// Inside of the sizing: how many switches of so many ports a tree takes, on one plane. No catalogue, no names.

struct TreeWish {
  Wiring wiring = Wiring::kRailOptimised;
  int ports = 0;           // of each switch, those that are to stay free taken off
  std::int64_t nodes = 0;  // 1 or more
  int nics = 0;            // of one node
  int leaves = 0;          // of one unit: rails, or 1
  int domain_nodes = 1;    // no unit cuts an NVLink domain
  Ratio leaf, core;
  int unit_nodes = 0;  // 0 = units of equal size
  int nics_per_leaf() const { return nics / leaves; }
};

struct Tree {
  int tiers = 1;
  std::vector<int> unit_nodes;  // of each unit, the largest first
  std::vector<int> pod_units;   // of each pod, the largest first; one pod with two tiers
  int leaves_per_unit = 1;
  int leaf_down = 0, leaf_up = 0;  // ports of a full unit's leaf
  int spines_per_pod = 0;
  int spine_down = 0, spine_up = 0;  // ports of a full pod's spine
  int cores_per_spine = 0;           // those of one spine's number, which all pods share
  int core_down = 0;
  std::int64_t leaves() const { return std::int64_t(unit_nodes.size()) * leaves_per_unit; }
  std::int64_t spines() const { return std::int64_t(pod_units.size()) * spines_per_pod; }
  std::int64_t cores() const { return std::int64_t(spines_per_pod) * cores_per_spine; }
  std::int64_t leaf_spine_cables() const { return leaves() * leaf_up; }
  std::int64_t spine_core_cables() const { return spines() * spine_up; }
  friend bool operator==(const Tree&, const Tree&) = default;
};

// Nodes of the largest unit that the wish allows: ports for them and for their way up. 0 = none fits. With one tier
// there is no way up.
int LargestUnit(const TreeWish& wish, int tiers);
// The most nodes that so many tiers (1, 2 or 3) hold.
std::int64_t Capacity(const TreeWish& wish, int tiers);
// Nothing where it does not fit. Spines are as few as have ports for all leaves, each leaf's way up in equal shares
// on all of them: this is how the published designs count (tests/unit/sizing/references_test.cc). A leaf gets a few
// uplinks more where that saves spines.
std::optional<Tree> FitTree(const TreeWish& wish, int tiers);

}  // namespace heddle::sizing
