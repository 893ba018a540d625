#pragma once

#include <vector>

#include "extender/occupancy.h"
#include "extender/reservations.h"
#include "extender/snapshot.h"

namespace heddle::extender {

// `reservations`: those of the inputs.
Snapshot TakeSnapshot(const SnapshotInputs& inputs, const std::vector<Reservation>& reservations,
                      KnownLoads& loads);

// What TakeSnapshot would make of these inputs, from what it made of others that differ in these nodes, and in claims
// on them, alone. Requires: the same fabrics and spares; nodes and topologies in the order of their names.
struct Differences {
  Seats::Names nodes;
  bool gangs = false;  // those that hold slots, or where
};
Snapshot PatchSnapshot(const Snapshot& was, const Differences& differences, const SnapshotInputs& inputs,
                       const std::vector<Reservation>& reservations, KnownLoads& loads);

}  // namespace heddle::extender
