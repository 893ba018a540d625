#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "extender/gang_decision.h"

namespace heddle::extender {

// Inside of the decision: conditions and counts of a Gang.
void Say(const GangInput& input, crds::GangStatus& status, std::string_view type, bool on, std::string reason,
         std::string message);
// What is wrong, for status.reason and status.message; empty texts when nothing is.
void Blame(crds::GangStatus& status, std::string reason, std::string message);
crds::GangProgress ProgressOf(const GangMembers& members);
// For so long a slot is kept for a rank without a pod that could use it. It is told in the text of Collected, too.
inline constexpr std::chrono::minutes kSlotKept{5};
// Ranks of the Gang's slots without a pod, or whose pod Kueue has not let go, and since when, sorted by rank: as the
// Gang says, and of those that it does not name as of now. Also of ranks that an owner of another size does not want
// any more. One from before it had such a list says of all by its condition Collected. Requires: the Gang is there.
std::vector<crds::MissingRank> MissingOf(const GangInput& input);
// Of those that a Gang names, the ranks whose slots are kept no longer; by the Gang alone.
std::set<int> LapsedRanks(const crds::Gang& gang, base::WallTime now);
// Counts, which ranks of a gang that holds slots have no pod that could use them, and the condition Collected.
void SayPods(const GangInput& input, crds::GangStatus& status);
// The present status, or a new one for a Gang that has none yet.
crds::GangStatus StatusOf(const GangInput& input);
// Equal but for the counts and for who is missing, which move with every pod.
bool OnlyProgressDiffers(crds::GangStatus a, const crds::GangStatus& b);
// To what a condition or status.message may hold.
std::string Cut(std::string text);

}  // namespace heddle::extender
