#pragma once

#include <optional>

#include "extender/gang_decision.h"

namespace heddle::extender {

// Inside of Decide: the rules about slots that are committed. Each returns nothing where it has no say.
std::optional<Action> ReplanBeforeRelease(const GangInput& input);
std::optional<Action> FollowBinding(const GangInput& input);
std::optional<Action> RepairLostRanks(const GangInput& input);
std::optional<Action> LeaveDegradedRails(const GangInput& input);
std::optional<Action> ReleaseRanks(const GangInput& input);
std::optional<Action> TrySubstitutes(const GangInput& input);

// Why a slot cannot be used by its gang, as a sentence; nothing when it can. `told`: a pod of the gang that is past
// the gate has it in its plan.
std::optional<std::string> SlotTrouble(const GangInput& input, const crds::PlacedPod& row, bool told = false);

// A pod past the gate that the scheduler has refused for so long that its slot has to be looked at.
bool Stuck(const GangInput& input, const PodFacts& pod);

}  // namespace heddle::extender
