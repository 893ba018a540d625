#pragma once

#include <chrono>
#include <optional>

#include "crds/gang.h"

namespace heddle::extender {

// What one write of a Gang's status has brought it, for counting. Times are read off the conditions, so a new leader
// counts on where the last one stopped, and nothing twice.
struct Milestones {
  std::optional<placement::Quality>
      planned;  // slots were committed: for all ranks, or for those that lost theirs
  bool repair = false;
  // From the moment that all pods were seen; each time that this happened. Whole seconds, as conditions have them.
  std::optional<std::chrono::seconds> until_planned;
  std::optional<std::chrono::seconds> until_running;
  bool at_once = true;  // planned without having been refused before
};

// `after` took the place of `before.status` at `now`.
Milestones MilestonesOf(const crds::Gang& before, const crds::GangStatus& after, base::WallTime now);

}  // namespace heddle::extender
