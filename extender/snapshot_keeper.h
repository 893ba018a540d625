#pragma once

#include <memory>
#include <vector>

#include "extender/reservations.h"
#include "extender/snapshot.h"

namespace heddle::extender {

// Whether TakeSnapshot would make the same of both. Most of what happens in a cluster changes no claim on any GPU: pods
// start and report, gangs count their pods, Nodes send heartbeats. False where it cannot be told quickly.
// Requires: pods, nodes, topologies and gangs in the order of their keys, as the caches list them.
bool SameSnapshot(const SnapshotInputs& a, const SnapshotInputs& b);

// The last snapshot, for as long as the next would be the same; then one that differs from it in those nodes alone on
// which something has changed: at 10,000 nodes to take one costs far more than either. Thread rule: one owner; the
// snapshots are any thread's.
class SnapshotKeeper {
 public:
  // What TakeSnapshot makes of them. Requires: as SameSnapshot.
  Shared<Snapshot> Of(SnapshotInputs inputs);

 private:
  SnapshotInputs inputs_;
  std::vector<Reservation> reservations_;  // of these
  Shared<Snapshot> snapshot_;
  KnownLoads loads_;
};

}  // namespace heddle::extender
