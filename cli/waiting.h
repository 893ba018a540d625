#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/ground.h"
#include "cli/table.h"
#include "crds/gang.h"
#include "kube/object.h"

namespace heddle::cli {

// Why a gang does not run, or not as it should, and who is in its way.
struct Waiting {
  struct Holder {
    std::string name;  // "gang train/llama", "pod dev/notebook"
    int gpus = 0;
    std::optional<base::WallTime> since;  // of a gang: when it was planned
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  std::string state;  // as `kubectl get gangs` has it
  std::optional<base::WallTime> since;
  std::string reason, sentence;    // of the Gang's status; empty while nothing is wrong
  int position = 0;                // in the queue of gangs without a plan, from 1; 0 = it is not in it
  int queued = 0;                  // gangs in that queue
  std::vector<std::string> ahead;  // who is before it: "train/big (priority 100)"
  std::vector<crds::MissingRank> missing;  // ranks whose pods went away, whose slots are kept for a while
  std::vector<Holder> holders;             // who holds the room that it lacks, the largest first
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

// A gang whose pods are all bound and of which nothing is said waits for nothing: no answer. `gangs` are all of the
// cluster that may be seen, `holders` who stands on GPUs, without this gang, `begun` those Gangs of which pods are past
// the gate.
std::optional<Waiting> WhyWaiting(const crds::Gang& gang, const std::vector<crds::Gang>& gangs,
                                  const std::vector<Holder>& holders, const std::set<kube::ObjectKey>& begun);

// Whether the gang is refused for room that others have, or for a rank that lost its own.
bool LacksRoom(const crds::Gang& gang);

crds::Json WaitingJson(const Waiting& waiting);
std::string WaitingText(const Waiting& waiting, const Style& style);

}  // namespace heddle::cli
