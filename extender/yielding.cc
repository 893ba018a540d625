#include "extender/yielding.h"

#include <algorithm>
#include <array>

#include "crds/keys.h"
#include "extender/gang_key.h"
#include "kube/packed.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;

constexpr std::string_view kQueueName = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kQueueManaged = "kueue.x-k8s.io/managed";

Yield CannotYield(std::string why) {
  return {Yield::By::kNothing, nullptr, std::move(why)};
}

bool IsQueued(const kube::Json& object) {
  if (kube::Label(object, kQueueName) || kube::Label(object, kQueueManaged) ||
      kube::Label(object, kueue::kGroupName))
    return true;
  const auto is_kueue = [](const std::string& manager) { return manager.starts_with("kueue.x-k8s.io/"); };
  return is_kueue(kube::StringAt(object, {"spec", "managedBy"})) ||
         is_kueue(kube::StringAt(object, {"spec", "runPolicy", "managedBy"}));
}

std::string QueuedWords(const kube::Json& object) {
  return TitleOf(object) + " is queued by Kueue, and preemption there is Kueue's";
}

// Their controllers make another pod in the place of one that is gone, and count nothing.
bool RemakesPods(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kKinds{"StatefulSet", "ReplicaSet", "Deployment", lws::kKind};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

std::string KindOf(const kube::Json& object) {
  return kube::StringAt(object, {"kind"});
}

// A Job that a CronJob made is the Job's business alone; other owners may have their own mind about suspend.
bool LetsSuspend(const kube::OwnerReference& outer) {
  return outer.kind.empty() || outer.kind == "CronJob";
}

Yield BySuspension(const kube::ObjectPtr& owner) {
  if (kube::DeletionTimestamp(*owner)) return CannotYield(TitleOf(*owner) + " is being deleted already");
  if (ResumedByHand(*owner)) {
    return CannotYield("somebody resumed " + TitleOf(*owner) +
                       " by hand; it takes part again without its annotation " +
                       std::string(keys::kPreemptedBy));
  }
  if (IsSuspended(*owner)) return CannotYield(TitleOf(*owner) + " is suspended already");
  return {Yield::By::kSuspension, owner, ""};
}

}  // namespace

std::string TitleOf(const kube::Json& object) {
  return KindOf(object) + " " + kube::KeyOf(object).ToString();
}

bool SuspendedByUs(const kube::Json& owner) {
  return kube::Annotation(owner, keys::kPreemptedBy).has_value() && IsSuspended(owner);
}

bool ResumedByHand(const kube::Json& owner) {
  return kube::Annotation(owner, keys::kPreemptedBy).has_value() && !IsSuspended(owner);
}

Yield HowToYield(const OwnerChain& chain, const std::vector<kube::ObjectPtr>& pods) {
  for (const auto* objects : {&chain.owners, &pods}) {
    const auto queued = std::find_if(objects->begin(), objects->end(),
                                     [](const kube::ObjectPtr& one) { return IsQueued(*one); });
    if (queued != objects->end()) return CannotYield(QueuedWords(kube::Unpacked(**queued)));
  }
  if (chain.owners.empty()) return CannotYield("nobody would make its pods again");
  const kube::ObjectPtr& outermost = chain.owners.back();
  if (!LetsSuspend(chain.unknown)) {
    return CannotYield(TitleOf(*outermost) + " belongs to the " + chain.unknown.kind + " " +
                       chain.unknown.name + ", which might start it again or fail");
  }
  const std::string api_version = kube::StringAt(*outermost, {"apiVersion"}), kind = KindOf(*outermost);
  if (SuspendSwitchOf(api_version, kind) != nullptr) return BySuspension(outermost);
  if (RemakesPods(kind)) return {Yield::By::kEviction, nullptr, ""};
  return CannotYield("a " + kind +
                     " can neither be suspended nor makes lost pods again without counting them");
}

Yield HowToYield(const kube::Json& lone_pod) {
  if (IsQueued(lone_pod)) return CannotYield(QueuedWords(lone_pod));
  const auto owner = kube::ControllerOwner(lone_pod);
  if (!owner || RemakesPods(owner->kind)) return {Yield::By::kEviction, nullptr, ""};
  return CannotYield("its " + owner->kind + " " + owner->name +
                     " is no gang, and would count it as failed or start it again at once");
}

kube::Json SuspendPatch(const kube::Json& owner, const std::string& preempted_by,
                        const std::string& gang_owner_uid,
                        const std::optional<base::WallTime>& restarted_at) {
  kube::Json annotations{{keys::kPreemptedBy, preempted_by}, {keys::kPreemptedGang, gang_owner_uid}};
  if (restarted_at) annotations[std::string(keys::kRestartedAt)] = base::FormatTime(*restarted_at);
  kube::Json patch = kube::SwitchPatch(owner, true);
  patch["metadata"]["resourceVersion"] = kube::ResourceVersion(owner);
  patch["metadata"]["annotations"] = std::move(annotations);
  return patch;
}

kube::Json ResumePatch(const kube::Json& owner) {
  kube::Json patch = kube::SwitchPatch(owner, false);
  patch["metadata"]["resourceVersion"] = kube::ResourceVersion(owner);
  patch["metadata"]["annotations"] = {{keys::kPreemptedBy, nullptr}, {keys::kPreemptedGang, nullptr}};
  return patch;
}

std::optional<base::WallTime> CheckpointOf(const OwnerChain& chain, const std::vector<kube::ObjectPtr>& pods,
                                           base::WallTime now) {
  std::optional<base::WallTime> newest;
  for (const auto* objects : {&chain.owners, &pods}) {
    for (const kube::ObjectPtr& object : *objects) {
      const auto said = base::ParseTime(kube::Annotation(*object, keys::kCheckpoint).value_or(""));
      if (said) newest = std::max(newest.value_or(*said), *said);
    }
  }
  return newest ? std::optional(std::min(*newest, now)) : std::nullopt;
}

}  // namespace heddle::extender
