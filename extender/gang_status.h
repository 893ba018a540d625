#pragma once

#include "extender/gang_decision.h"

namespace heddle::extender {

// Inside of the decision: conditions and counts of a Gang.
void Say(const GangInput& input, crds::GangStatus& status, std::string_view type, bool on, std::string reason,
         std::string message);
// What is wrong, for status.reason and status.message; empty texts when nothing is.
void Blame(crds::GangStatus& status, std::string reason, std::string message);
crds::GangProgress ProgressOf(const GangMembers& members);
// The present status, or a new one for a Gang that has none yet.
crds::GangStatus StatusOf(const GangInput& input);
// Equal but for the counts.
bool OnlyProgressDiffers(crds::GangStatus a, const crds::GangStatus& b);
// To what a condition or status.message may hold.
std::string Cut(std::string text);

}  // namespace heddle::extender
