#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "extender/gang_members.h"
#include "extender/planning.h"
#include "extender/snapshot.h"

namespace heddle::extender {

// Whose end would make room for the head of the queue. Pure; whoever asks has seen that it finds no place.

// Somebody who holds GPUs: a gang, with all claims of its ns and owner_uid, or one pod of no gang.
struct Holder {
  std::string name;       // "gang train/a", "pod other/b"; ties go to names
  std::string ns;         // as in Hold
  std::string owner_uid;  // the same
  std::string pod_uid;    // empty = it is a gang
  int priority = 0;
  // It is on its way out, so its room is as good as free; and who it makes room for is the gang that asks.
  bool leaving = false;
  bool leaving_for_us = false;
  // Since when its work would be lost: its last checkpoint, else its start. Nothing = it has not started.
  std::optional<base::WallTime> unsafe_since;
  std::string why_not;  // why it cannot yield without being failed; empty = it can
};

struct RoomChoice {
  enum class Kind : std::uint8_t {
    kNone,     // nothing helps
    kAwaited,  // enough is leaving already, or what was chosen before has not left yet
    kVictims,
  };
  Kind kind = Kind::kNone;
  std::vector<std::size_t> victims;  // of the holders, by name
  std::set<std::string> nodes;       // that the plan needs which room is made for: nobody else may have them
  std::string sentence;              // for the gang that asks; empty = nothing to say
};
// Victims are of strictly lower priority than the gang, and can yield. Of all choices that make room: at a low cost in
// GPU-minutes of lost work, then in GPUs (placement::ChooseVictims says how low). Nodes in `kept` wait for somebody
// else. `spares` is what the gang is planned with, before and after.
RoomChoice ChooseRoom(const Snapshot& snapshot, const GangMembers& members, const std::set<std::string>& kept,
                      Spares spares, const std::vector<Holder>& holders, base::WallTime now);

// Whether the whole gang would find a place if all of it moved, with its ranks that are done, as some owners run them
// again: its own claims are as good as free, and no pod is bound. What comes back is a new gang, which leaves spares.
bool FitsAnew(const Snapshot& snapshot, const GangMembers& members);

// GPUs of all its claims, in every fabric.
int GpusOf(const Snapshot& snapshot, const Holder& holder);
// Lost work if it ends now, in GPU-hours.
double LostGpuHours(const Snapshot& snapshot, const Holder& holder, base::WallTime now);

}  // namespace heddle::extender
