#pragma once

#include "topology/wiring.h"

namespace heddle::topology {

// Inside of BuildFabric: what stands above the leaves, and what shape that makes.

// The most that one leaf is said to carry: more than any has, and sums of nonsense stay far from overflow.
inline constexpr int kMaxGbps = 1'000'000'000;

// As declared; else from the leaves. Needs fabric.nodes, leaves and units.
Shape FindShape(const Fabric& fabric, const Units& units);

// Spines, uplinks, dragonfly groups and bandwidth upwards, from the declaration. Needs fabric.shape; adds
// faults and assumptions.
void AddSwitches(const Wiring& wiring, Fabric& fabric);

}  // namespace heddle::topology
