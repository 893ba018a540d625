#pragma once

#include <string>

#include "crds/gang.h"

namespace heddle::extender {

// The condition Preempted of a Gang, which is the decision itself: it is written before anything is suspended or
// evicted, so that whoever leads next goes on with it.

bool IsPreempted(const crds::Gang& gang);
// `by` is the Gang that needs the room, "ns/name"; the gang itself for a restart.
crds::GangStatus Preempted(crds::GangStatus status, const std::string& by, std::string reason,
                           std::string sentence, base::WallTime now);
// It stays, or goes on: `reason` is one CamelCase word.
crds::GangStatus Unpreempted(crds::GangStatus status, std::string reason, std::string sentence,
                             base::WallTime now);

}  // namespace heddle::extender
