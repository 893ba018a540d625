#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/object.h"
#include "kube/store.h"
#include "kube/suspend_switch.h"

namespace heddle::extender {

// How a gang, or a pod of none, gives its GPUs up without being failed for it. All of it is pure.

using kube::IsSuspended;
using kube::SuspendSwitch;
using kube::SuspendSwitches;
using kube::SuspendSwitchOf;

struct Yield {
  enum class By : std::uint8_t { kSuspension, kEviction, kNothing };
  By by = By::kNothing;
  kube::ObjectPtr owner;  // kSuspension: whose switch
  std::string why_not;    // kNothing: "its Job train/a is queued by Kueue, and preemption there is Kueue's"
};
// Who made the pods of a gang: the gang's own owner first, then what owns that. `unknown` is an outermost owner of a
// kind that we do not read; empty = there is none.
struct OwnerChain {
  std::vector<kube::ObjectPtr> owners;
  kube::OwnerReference unknown;
};
// For a gang. `pods` are all of its pods.
Yield HowToYield(const OwnerChain& chain, const std::vector<kube::ObjectPtr>& pods);
// For a pod of no gang, which goes alone. Its controller must make another without counting, or it has none.
Yield HowToYield(const kube::Json& lone_pod);

// Owners that we suspended, and that wait for their pods to be gone. A person who takes the annotation away takes the
// suspension over; one who resumes the owner leaves the annotation, and it is left alone from then on.
bool SuspendedByUs(const kube::Json& owner);
bool ResumedByHand(const kube::Json& owner);

// Merge patches with uid and resourceVersion: who has read another object writes nothing.
kube::Json SuspendPatch(const kube::Json& owner, const std::string& preempted_by,
                        const std::string& gang_owner_uid, const std::optional<base::WallTime>& restarted_at);
kube::Json ResumePatch(const kube::Json& owner);

// When its work was last safe: the newest of the checkpoints that the owners and pods tell, at most `now`; nothing
// where none can be read.
std::optional<base::WallTime> CheckpointOf(const OwnerChain& chain, const std::vector<kube::ObjectPtr>& pods,
                                           base::WallTime now);

// "Job train/a"
std::string TitleOf(const kube::Json& object);

}  // namespace heddle::extender
