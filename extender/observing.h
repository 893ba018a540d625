#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "extender/gang_decision.h"
#include "extender/planning.h"

namespace heddle::extender {

// Mode observe: no pod is touched. What another scheduler did with a gang is priced once, when all of its pods
// are bound and the nodes have reported (kReportsAwaited), beside what Heddle would have done with the GPUs that were
// free then. The Gang holds it; it has no owner, so that it outlives a Job that is cleaned up, and the oldest are
// deleted: see kKeptObservations.

struct Comparison {
  placement::Quality actual;
  bool assumed_gpus = false;
  std::variant<placement::Quality, placement::Refusal> heddle;
};
// The sentence says why there is nothing to price. Requires: every rank has a bound pod, and a parallelism that
// multiplies.
std::variant<Comparison, std::string> Compare(const SnapshotInputs& inputs, const GangMembers& members);

// For so long after a gang was first looked at its price waits while Ready nodes with GPUs have not reported: agents
// that are installed together with the extender are slower than it, and against half a fabric Heddle looks worse than
// it is.
inline constexpr std::chrono::minutes kReportsAwaited{5};

// As Decide, for gangs that are only looked at; plans nothing and releases nobody.
Action DecideObserved(const GangInput& input, const SnapshotInputs& inputs);

// A month of twenty jobs a day.
inline constexpr std::size_t kKeptObservations = 600;
// Those of ended owners beyond so many, oldest first.
std::vector<crds::Gang> SurplusObservations(const std::vector<Shared<crds::Gang>>& gangs,
                                            std::size_t kept = kKeptObservations);

}  // namespace heddle::extender
