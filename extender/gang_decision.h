#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "extender/gang_members.h"
#include "extender/release_patch.h"
#include "extender/snapshot.h"

namespace heddle::extender {

// What people are told, as an event on the owner, once the write has worked.
struct Note {
  bool warning = false;
  std::string reason;
  std::string text;
  friend bool operator==(const Note&, const Note&) = default;
};

// Everything that a decision reads, gathered once. `gang` is null where there is none yet.
struct GangInput {
  const crds::Gang* gang = nullptr;
  const GangMembers& members;
  const Snapshot& snapshot;
  base::WallTime now;
  bool preemption = true;  // whether gangs may be preempted at all
};

// What to do next: at most one kind of write, then everything is read again.
struct Nothing {
  std::optional<std::chrono::seconds> look_again;
};
struct CreateGang {
  crds::Gang gang;
};
struct DeleteGang {
  std::string why;  // the same owner needs another Gang: it was resumed, or its size changed
};
struct UpdateStatus {
  crds::GangStatus status;
  std::optional<Note> note;
  bool urgent = true;  // false: only counts moved, and they may wait for the next ones
};
struct NeedsPlan {
  std::string why;  // empty for the first plan
};
struct RepairRanks {
  std::vector<int> lost;
  std::string why;
  BarredNodes barred;  // of the lost ranks
};
struct PodPatch {
  kube::ObjectKey pod;
  int rank = 0;
  kube::Json patch;
};
struct ReleasePods {
  std::vector<PodPatch> patches;
  // So many of them come first, one by one: they tell bound pods another rank, and a pod that is let go before could
  // have the rank that one of these was told last.
  std::size_t in_order = 0;
};
using Action =
    std::variant<Nothing, CreateGang, DeleteGang, UpdateStatus, NeedsPlan, RepairRanks, ReleasePods>;

// The state table of the design as a chain of rules; the first that has something to do decides. Pure: equal
// inputs give equal answers, and after a crash the same inputs are read from the API server.
Action Decide(const GangInput& input);

// The statuses that planning writes. They keep what the conditions said before.
crds::GangStatus PlannedStatus(const GangInput& input, const std::vector<crds::PlacedPod>& rows,
                               const placement::Quality& quality, std::vector<std::string> explanation);
crds::GangStatus RefusedStatus(const GangInput& input, std::string reason, std::string sentence);
// No place for lost ranks: everything else stays, and the owner has the choice.
crds::GangStatus DegradedStatus(const GangInput& input, std::string reason, std::string sentence);

// What was read of the pods as a Gang can hold it.
crds::GangSpec StorableSpec(const GangMembers& members);

// The slot of a rank as its pod is told it.
Slot SlotOf(const crds::Gang& gang, const crds::PlacedPod& row, int rank, const Snapshot& snapshot);

}  // namespace heddle::extender
