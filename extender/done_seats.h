#pragma once

#include <vector>

#include "extender/gang_members.h"
#include "extender/snapshot.h"
#include "placement/plan.h"

namespace heddle::extender {

// A rank that is done and has no pod: it keeps its number, and asks for nothing.
bool NeedsNoRoom(const GangMembers& members, std::size_t rank);

// Gives ranks that need no room places on GPUs that nobody gets now anyway: other pods', and those of nodes that cannot
// be used. They are as near as can be to where their own pods were, or else to the ranks next to them. So they cost
// nobody a GPU, and were one of them to come again after all, its slot would be seen to be another's. `places` is by
// rank: where those that stay have theirs, GPUs as positions; kNone for others. False where no rank is done, or one
// finds no such place.
bool SeatDone(const FabricView& view, const GangMembers& members,
              std::vector<placement::PodPlacement>& places);

}  // namespace heddle::extender
