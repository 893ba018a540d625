#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/plan.h"

namespace heddle::placement {

// Which gangs to move at their next checkpoint so that whole NVLink domains, or whole scalable units, stand free
// for a job that needs them.

struct RunningGang {
  GangRequest request;             // no pod is fixed; what it requires holds for its next place too
  std::vector<PodPlacement> pods;  // by pod, all placed
  bool movable = true;
  // What moving it costs, in any unit that adds up: GPU-hours since its checkpoint where known, else its GPUs.
  double cost = 0;
};

struct DefragmentGoal {
  int places = 1;                // that are whole in the end, those that are whole already counted among them
  Level level = Level::kNvlink;  // kNvlink or kUnit
  int min_gpus = 1;              // healthy GPUs of a place that counts
  // No gang goes where its step communicates longer than now by more than this; negative = wherever there is room.
  int slower_percent = 10;
};

// One gang stops, and starts again elsewhere before the next one stops. Its old GPUs may be among the new.
struct GangMove {
  int gang = 0;  // index
  Plan plan;
  Quality before, after;
  friend bool operator==(const GangMove&, const GangMove&) = default;
};

enum class DefragmentRefusal : std::uint8_t {
  kTooFewPlaces,  // not so many places of that size exist
  kPinned,        // they do, but in too many stand GPUs that no movable gang holds, or that are out of use
  // Fewer GPUs are free in all than the smallest places have together, and moving frees none.
  kTooFewFree,
  kNoRoom,  // the gangs have no other place, or none that is quick enough; or none was found in the budget
};

struct Defragmentation {
  std::optional<DefragmentRefusal> refusal;  // nothing = possible; then `moves` may be empty
  std::vector<GangMove> moves;               // to be made in this order: no GPU is used twice at any time
  std::vector<std::int32_t> opened;          // DomainIds or UnitIds that the moves make whole, sorted
  int whole_before = 0, whole_after = 0;     // places of that size, after the moves
  double cost = 0;                           // of all moves together
  // Of a refusal: what could be had, as a sentence; the most places that could be opened are in `most`. kNoRoom
  // names the gang that has no other place, and why.
  std::string sentence;
  int most = 0;
  std::optional<int> stuck;
  std::optional<Refusal> stuck_refusal;  // nothing where it has a place that is too slow
  int trials = 0;                        // how many times a place was looked for
  friend bool operator==(const Defragmentation&, const Defragmentation&) = default;
};

// Every set of places is tried in the order of its cost where there are few sets, so the cheapest that works is
// found; else the cheapest place after another is opened, and then exchanged for a cheaper one. Bounded by
// kMostDefragmentTrials; that moves were not found does not prove that there are none. Pure: `state` is used for
// trials and comes back as it was. Requires: every gang's healthy GPUs are taken in `state`, no two overlap, every gang
// has as many pods as its request.
Defragmentation PlanDefragmentation(ClusterState& state, const std::vector<RunningGang>& gangs,
                                    const DefragmentGoal& goal);
inline constexpr int kMostDefragmentTrials = 4096;

}  // namespace heddle::placement
