#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crds/gang.h"
#include "extender/gang_key.h"
#include "extender/pod_facts.h"

namespace heddle::extender {

// Why a gang cannot be planned as it was written: a CamelCase word for programs and a sentence for people.
struct InputRefusal {
  std::string reason;
  std::string sentence;
  friend bool operator==(const InputRefusal&, const InputRefusal&) = default;
};

enum class OwnerState : std::uint8_t {
  kActive,
  kGone,
  kDeleting,
  kSuspended,
  kFinished,
  kNextAttempt,
  kScaledDown
};

struct Member {
  std::shared_ptr<const PodFacts> facts = std::make_shared<const PodFacts>();  // never null
  // As the cache keeps it, which may be packed: labels and annotations are read of it as it is, all else of Pod().
  std::shared_ptr<const kube::Json> kept;

  kube::Json Pod() const;                                     // unpacked: some ten microseconds
  std::shared_ptr<const PodConstraints> Constraints() const;  // where it may run
  PodFacts& OwnFacts();  // a copy in place of what others share, to be changed
};

// Everything that the owner and the pods say about a gang, read once.
struct GangMembers {
  GangKey key;
  OwnerState owner_state = OwnerState::kActive;
  crds::GangSpec spec;                       // pods = 0 while the size is not known
  std::vector<std::optional<Member>> ranks;  // the live pod of each rank; spec.pods long
  std::vector<bool> done;                    // ranks that have succeeded, by pod or owner; spec.pods long
  std::vector<Member> leaving;               // terminating or finished pods
  std::vector<Member> unranked;              // live pods that fit no rank
  std::vector<std::string> notes;            // for the explanation
  bool assumed_parallelism = false;          // mode observe: the pods do not say how they are cut
  // The owner may change its size while it runs: it says so, or it can be scaled and has started.
  bool elastic = false;
  bool followed = false;             // scaled without a word, so that dp is another than was written
  bool restart_on_degraded = false;  // heddle.dev/on-degraded: restart
  // The ConfigMap that says which pod has which rank; empty where the pods' own numbers say it.
  std::string rank_file;
  // The ComputeDomain whose channels its pods claim; empty where they claim none.
  std::string compute_domain;
  std::string trouble;  // what the controller says that cannot make the pods
  // Ranks without a pod whose Job has given them up (backoffLimitPerIndex), and makes no other for them.
  std::vector<int> given_up;
  // Set when the gang must not be planned. What is wrong with the template holds for good; a doubled rank may
  // go away.
  std::optional<InputRefusal> refusal;

  // Ranks that have come at least this far: a live pod, one past our gate, one on a node. Done ones have come
  // furthest.
  int seen() const;
  int released() const;
  int bound() const;
  int let_go() const;                // live pods past our gate: done ranks stand in no plan's way
  std::vector<int> Missing() const;  // ranks that neither have a live pod nor are done
  bool HasPastTheGate() const;       // a live pod that was let go
  bool WaitsForQuota() const;        // a rank's pod that Kueue has not let go
  bool Preempts() const;             // no pod of it says preemptionPolicy: Never
};

// Nodes that a rank is not to be given, by rank.
using BarredNodes = std::map<int, std::set<std::string>>;

// `owner` is what made the pods, null when it does not exist. Only pods of this gang may be in `pods`. Pods
// whose numbers are missing, doubled or out of range are seated in the order of their names, as are those that
// nothing numbers, and a note says so; a pod that was let go keeps the rank it was told.
// `before` is what its present Gang says, null where there is none: a number that does not multiply is a mistake in
// what never started, and the size that an owner was scaled to in what did. Ranks that its plan left without a slot
// stay done, whichever Gang let their pods go.
// `jobs` are the Jobs that a JobSet made in this attempt, as far as they say of a pod that it has succeeded.
// Requires: at least one pod, or an owner.
GangMembers ReadMembers(const GangKey& key, const kube::Json* owner, const ReadPods& pods,
                        Mode mode = Mode::kPlace, const crds::Gang* before = nullptr,
                        const std::vector<std::shared_ptr<const kube::Json>>& jobs = {});

}  // namespace heddle::extender
