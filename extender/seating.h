#pragma once

#include <vector>

#include "extender/gang_members.h"
#include "extender/owner_layout.h"

namespace heddle::extender {

// Inside of ReadMembers: gives the live pods of a gang their ranks. Requires: members.ranks has their number.
void Seat(GangMembers& members, const OwnerLayout& layout, std::vector<Member> live);

}  // namespace heddle::extender
