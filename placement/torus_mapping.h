#pragma once

#include <array>
#include <vector>

#include "placement/torus.h"

namespace heddle::placement {

// How the axes of a gang lie in a box of a torus, so that groups are rings of neighbours.

// An axis of a gang in steps of whole nodes, or a part of one.
struct TorusAxis {
  int size = 2;        // at least 2
  bool closed = true;  // a ring; a chain of stages is not
  // What each further link costs that its longest step takes along one dimension, in any unit.
  double weight = 0;
  friend bool operator==(const TorusAxis&, const TorusAxis&) = default;
};

// Member (i, j, …) of the axes lies at the sum of their offsets, away from the box's corner.
struct TorusMapping {
  std::vector<std::vector<std::array<int, 3>>> offsets;  // by axis, by index along it
  double estimate = 0;  // the weights times the longest steps; every axis's weight at the least
};

// The `most` cheapest mappings of the axes onto the box, cheapest first. An axis may take part of a side, a
// side, or several, and lies straight, folded or on a round through its box. At most kMappingsTried are
// weighed. Requires: the sizes multiply to the box's volume, and no side is longer than the torus.
std::vector<TorusMapping> MappingsOnto(const Sides& torus, const Sides& sides,
                                       const std::vector<TorusAxis>& axes, int most);
inline constexpr int kMappingsTried = 2048;

}  // namespace heddle::placement
