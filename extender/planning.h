#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "extender/gang_members.h"
#include "extender/snapshot.h"
#include "placement/planner.h"

namespace heddle::extender {

struct PlannedGang {
  std::vector<crds::PlacedPod> rows;  // one a rank; without a slot where nothing was asked for it
  placement::Quality quality;
  std::vector<std::string> explanation;
};
using PlanAnswer = std::variant<PlannedGang, placement::Refusal>;

// Of NVLink domains over several nodes: a gang that had its place before and lost all of it may use them, a new one
// leaves them. Nodes are kept for a gang, and others made to leave for it, by the same as it is planned.
enum class Spares : std::uint8_t { kLeave, kUse };

// Plans a whole gang on each fabric and takes the best answer: a gang never spans two fabrics. Pods that are
// already released or bound stay where they are. `kept` are nodes that wait for somebody ahead in the queue.
// Nothing is asked for ranks that are done and have no live pod, as far as placement::RemainderOf can leave them out;
// where that leaves nobody, the plan is one without a slot. Requires: every rank has a live pod or is done, and no own
// reservation is in the snapshot.
PlanAnswer PlanMembers(const Snapshot& snapshot, const GangMembers& members,
                       const std::set<std::string>& kept, Spares spares = Spares::kLeave);

// What one fabric is asked for, which has no pod for the ranks that PlanMembers leaves out; `kept`, `spares` as above.
placement::GangRequest RequestOf(const Snapshot& snapshot, const FabricView& view, const GangMembers& members,
                                 const std::set<std::string>& kept, Spares spares);

// The names of what a plan needs free: see placement::NodesNeeded.
std::set<std::string> NodesNeeded(const FabricView& view, const placement::ClusterState& state,
                                  const placement::GangRequest& request, const placement::Plan& plan);

// What somebody else's placement is worth: a row for each rank, with its GPU indexes. The sentence says why it
// cannot be priced. The gang's own pods must not be in the snapshot.
std::variant<placement::Quality, std::string> EvaluateMembers(const Snapshot& snapshot,
                                                              const GangMembers& members,
                                                              const std::vector<crds::PlacedPod>& rows);

// New slots for `lost` ranks only, none of them on a node that is barred to the rank; the others keep theirs.
PlanAnswer RepairMembers(const Snapshot& snapshot, const GangMembers& members,
                         const std::vector<crds::PlacedPod>& current, const std::vector<int>& lost,
                         const BarredNodes& barred = {});

// The same for `slow` ranks, whose slots can be used: only where that shortens the predicted step by more than one part
// in a hundred, and for no more of them than that takes. Nothing where they do as well in the slots that they have.
struct FasterGang {
  PlannedGang plan;
  std::vector<int> moved;
  std::int64_t saved_micros = 0;  // of a step
};
std::optional<FasterGang> FindFasterSlots(const Snapshot& snapshot, const GangMembers& members,
                                          const std::vector<crds::PlacedPod>& current,
                                          const std::vector<int>& slow, const BarredNodes& barred = {});

// The nodes that a gang at the head of the queue waits for: those that the plan needs which it would get if the unit
// with the most free GPUs where that works, else the whole fabric, were free of others. Empty when not even that
// would do.
std::set<std::string> NodesToKeep(const Snapshot& snapshot, const GangMembers& members, Spares spares);

}  // namespace heddle::extender
