// Making room: the gang controller's writes when a gang is preempted, or restarted as a whole.
//
// The order is what a crash leaves behind: first the condition Preempted on the victim's Gang, which is the decision;
// then one patch of its owner that suspends it and says for whom; when its pods are gone, one patch that takes both
// back. Whoever leads next finds one of these and goes on.
#include <algorithm>
#include <cmath>
#include <map>

#include "extender/gang_controller.h"
#include "extender/gang_rules.h"
#include "extender/gang_status.h"
#include "extender/preempted.h"
#include "extender/resources.h"
#include "kube/packed.h"

namespace heddle::extender {
namespace {

using base::Code;

// Whoever has not left after so long counts as one who stays: his node may be dead.
constexpr std::chrono::minutes kMostLeaving{10};
// An admission webhook may be away for a moment; an owner that cannot be suspended for so long is not.
constexpr std::chrono::minutes kMostRefused{1};
constexpr std::chrono::minutes kBetweenRestarts{10};
constexpr std::chrono::seconds kBudgetPeriod{10};
// What an owner's labels say, and who has left, changes no capacity, so nothing else would tell.
constexpr std::chrono::seconds kLookAgain{30};
constexpr const char* kRefusedReason = "SuspensionRefused";

std::string NameOf(const crds::Gang& gang) {
  return gang.ns + "/" + gang.name;
}

std::string Titled(const crds::Gang& gang) {
  return "gang " + gang.ns + "/" + crds::GangTitle(gang.spec);
}

std::string Hours(double gpu_hours) {
  const auto tenths = std::llround(gpu_hours * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GPU-hours";
}

bool Leaves(const std::optional<base::WallTime>& since, base::WallTime now) {
  return since && now - *since < kMostLeaving;
}

const crds::Gang* Find(const std::vector<std::shared_ptr<const crds::Gang>>& gangs, const std::string& name) {
  const auto found =
      std::find_if(gangs.begin(), gangs.end(), [&name](const auto& gang) { return NameOf(*gang) == name; });
  return found == gangs.end() ? nullptr : found->get();
}

// The gang that room is made for may have found another place, or be gone.
bool Needed(const crds::Gang& victim, const std::vector<std::shared_ptr<const crds::Gang>>& gangs) {
  const std::string& by = victim.status.preempted_by;
  if (by == NameOf(victim)) return true;
  const crds::Gang* needs = Find(gangs, by);
  return needs != nullptr && !HoldsSlots(*needs) && !crds::IsTrue(needs->status.conditions, crds::kEnded);
}

}  // namespace

base::Result<GangController::Holding> GangController::HoldingOf(const Look& look,
                                                                const std::shared_ptr<const crds::Gang>& gang,
                                                                const std::stop_token& stop) {
  const GangKey key = KeyOfGang(*gang);
  const base::WallTime now = clock_.WallNow();
  Holding holding{
      {.name = Titled(*gang), .ns = key.ns, .owner_uid = key.owner_uid, .priority = gang->spec.priority},
      gang,
      nullptr};
  Holder& holder = holding.holder;
  const auto* told = crds::FindCondition(gang->status.conditions, crds::kPreempted);
  if (told != nullptr && told->status == crds::ConditionStatus::kTrue) {
    holder.why_not = "it is being restarted, and comes back to its own room";
    if (gang->status.preempted_by == NameOf(*gang)) return holding;
    holder.leaving = Leaves(told->last_transition, now);
    holder.leaving_for_us = holder.leaving && gang->status.preempted_by == NameOf(*look.gang);
    holder.why_not =
        "it was told to leave at " + base::FormatTime(told->last_transition) + " and has not left";
    return holding;
  }
  if (told != nullptr && told->reason == kRefusedReason) {
    holder.why_not = told->message;
    return holding;
  }
  if (holder.priority >= look.members.spec.priority) return holding;
  const auto pods = cache_.PodsOf(key);
  ASSIGN_OR_RETURN(const OwnerChain chain, cache_.ChainOf(key, gang->spec.owner, stop),
                   "read who owns a gang");
  holder.why_not = HowToYield(chain, pods.objects).why_not;
  for (const auto& pod : pods.facts) {
    if (!pod->live() || !pod->started) continue;
    holder.unsafe_since = std::min(holder.unsafe_since.value_or(*pod->started), *pod->started);
  }
  const auto checkpoint = CheckpointOf(chain, pods.objects, now);
  if (checkpoint && holder.unsafe_since) holder.unsafe_since = std::max(*holder.unsafe_since, *checkpoint);
  return holding;
}

GangController::Holding GangController::HoldingOf(
    const PodFacts& pod, const kube::ObjectPtr& object,
    const std::vector<std::shared_ptr<const crds::Gang>>& gangs) const {
  const base::WallTime now = clock_.WallNow();
  Holding holding{{.name = "pod " + pod.key.ToString(),
                   .ns = pod.gang.ns,
                   .owner_uid = pod.gang.owner_uid,
                   .pod_uid = pod.uid,
                   .priority = pod.priority,
                   .unsafe_since = pod.started},
                  nullptr,
                  object};
  Holder& holder = holding.holder;
  if (pod.terminating) {
    holder.leaving = Leaves(pod.gone_by, now);
    holder.why_not = "it has been terminating for long";
  } else if (pod.plan) {
    // Its gang has ended, and its controller has not taken it away yet.
    holder.why_not = "its gang has ended";
    for (const auto& gang : gangs) {
      const auto* ended = crds::FindCondition(gang->status.conditions, crds::kEnded);
      const bool restart = gang->status.preempted_by == NameOf(*gang);
      if (KeyOfGang(*gang) != pod.gang || restart || !crds::IsTrue(gang->status.conditions, crds::kEnded))
        continue;
      holder.leaving = Leaves(ended->last_transition, now);
    }
  } else {
    holder.why_not = HowToYield(*object).why_not;
    const auto checkpoint = CheckpointOf({}, {object}, now);
    if (checkpoint && holder.unsafe_since) holder.unsafe_since = std::max(*holder.unsafe_since, *checkpoint);
  }
  return holding;
}

base::Result<std::vector<GangController::Holding>> GangController::Holdings(const Look& look,
                                                                            const std::stop_token& stop) {
  const SnapshotInputs inputs = Inputs(std::nullopt);
  using Owner = std::pair<std::string, std::string>;  // namespace and owner_uid
  std::map<Owner, std::shared_ptr<const crds::Gang>> gangs;
  for (const auto& gang : inputs.gangs) {
    if (HoldsSlots(*gang)) gangs.emplace(Owner(gang->ns, KeyOfGang(*gang).owner_uid), gang);
  }
  std::set<Owner> gang_owners;
  std::set<std::string> lone_pods;
  for (const auto& [node, on_node] : look.snapshot->holds) {
    for (const Hold& hold : on_node) {
      if (hold.IsOf(look.members.key)) continue;
      if (Owner owner(hold.ns, hold.owner_uid); gangs.contains(owner)) {
        gang_owners.insert(std::move(owner));
      } else if (!hold.pod_uid.empty()) {
        lone_pods.insert(hold.pod_uid);
      }
    }
  }
  std::vector<Holding> holdings;
  for (const Owner& owner : gang_owners) {
    ASSIGN_OR_RETURN(Holding one, HoldingOf(look, gangs.at(owner), stop));
    holdings.push_back(std::move(one));
  }
  for (const auto& pod : inputs.pods) {
    if (!lone_pods.contains(pod->uid)) continue;
    const kube::ObjectPtr object = cache_.pods().Get(pod->key);
    if (object == nullptr) continue;
    holdings.push_back(
        HoldingOf(*pod, std::make_shared<const kube::Json>(kube::Unpacked(*object)), inputs.gangs.items()));
  }
  return holdings;
}

// For one gang at a time: the first in the queue that something helps.
base::Status GangController::MakeRoom(const Look& look, Spares spares, QueuePass& pass, std::string& sentence,
                                      const std::stop_token& stop) {
  RoomChoice choice;
  std::vector<Holding> holdings;
  if (options_.preemption && !pass.making_room && look.members.Preempts()) {
    ASSIGN_OR_RETURN(holdings, Holdings(look, stop));
    std::vector<Holder> holders;
    holders.reserve(holdings.size());
    for (const Holding& one : holdings) holders.push_back(one.holder);
    choice = ChooseRoom(*look.snapshot, look.members, pass.kept, spares, holders, clock_.WallNow());
    // What has come free since may be theirs who are ahead, so it saves nobody from being stopped; but it may be part
    // of what others were made to leave, and then nobody else is.
    const std::set<std::string> closed = pass.Closed();
    if (choice.kind == RoomChoice::Kind::kVictims && closed.size() > pass.kept.size()) {
      choice = ChooseRoom(*look.snapshot, look.members, closed, spares, holders, clock_.WallNow());
    }
    if (!choice.sentence.empty()) {
      sentence += "; " + choice.sentence;
      queue_.AddAfter(std::string(kPlanKey), kLookAgain);
    }
  }
  pass.making_room = pass.making_room || choice.kind != RoomChoice::Kind::kNone;
  for (const std::string& node : choice.nodes) pass.emptied[node] = look.members.spec.priority;
  pass.keeps.insert(choice.nodes.begin(), choice.nodes.end());
  // To find them costs several plannings, so not for nobody.
  if (choice.nodes.empty() && pass.others_behind)
    pass.keeps = NodesToKeep(*look.snapshot, look.members, spares);
  if (choice.kind != RoomChoice::Kind::kVictims) return {};
  // Before the first of them goes: what comes free is not for the pods that are made in their place.
  PublishKept(pass.emptied);
  return Preempt(look, holdings, choice, stop);
}

base::Status GangController::Preempt(const Look& look, const std::vector<Holding>& holdings,
                                     const RoomChoice& choice, const std::stop_token& stop) {
  // Somebody else may lead by now, and have chosen.
  TRY(ReadGangs(stop), "check before preempting");
  for (const std::size_t i : choice.victims) {
    const auto& gang = holdings[i].gang;
    if (gang == nullptr) continue;
    const auto now = cache_.GangOf(KeyOfGang(*gang));
    if (now != nullptr && now->resource_version == gang->resource_version) continue;
    queue_.AddAfter(std::string(kPlanKey), options_.settle);
    return {};
  }
  const std::string priority = " (priority " + std::to_string(look.members.spec.priority) + ")";
  const std::string whom = Titled(*look.gang) + priority;
  // Pods first: a disruption budget may forbid it, and then no gang has stopped for nothing.
  for (const std::size_t i : choice.victims) {
    if (!may_write() || stop.stop_requested()) return {};
    const Holding& one = holdings[i];
    if (one.pod == nullptr) continue;
    const base::Status evicted = EvictPod(*one.pod, stop);
    if (!evicted && evicted.error().code == Code::kThrottled) {
      queue_.AddAfter(std::string(kPlanKey), kBudgetPeriod);
      return {};
    }
    TRY(evicted);
    Tell({"v1", "Pod", kube::Name(*one.pod), kube::Uid(*one.pod)}, kube::Namespace(*one.pod),
         {false, "Preempted", "it makes room for " + whom});
  }
  for (const std::size_t i : choice.victims) {
    if (!may_write() || stop.stop_requested()) return {};
    const Holding& one = holdings[i];
    if (one.gang == nullptr) continue;
    const std::string text = "it makes room for " + whom + "; its own priority is " +
                             std::to_string(one.holder.priority) + ", and the work of " +
                             Hours(LostGpuHours(*look.snapshot, one.holder, clock_.WallNow())) + " is lost";
    TRY(WriteStatus(*one.gang,
                    Preempted(one.gang->status, NameOf(*look.gang), "Preempted", text, clock_.WallNow()),
                    Note{false, "Preempted", text}, stop));
  }
  Tell(look.gang->spec.owner, look.gang->ns, {false, "Preempting", choice.sentence});
  queue_.Add(std::string(kYieldKey));
  return {};
}

base::Status GangController::YieldAll(const std::stop_token& stop) {
  if (!options_.preemption) return {};
  base::Status all;
  for (const auto& gang : cache_.Gangs()) {
    if (!may_write() || stop.stop_requested()) return {};
    if (!IsPreempted(*gang) || crds::IsTrue(gang->status.conditions, crds::kEnded)) continue;
    if (base::Status one = YieldOne(*gang, stop); !one) all = std::move(one);
  }
  for (const kube::ObjectPtr& owner : cache_.SuspendedByUs()) {
    if (!may_write() || stop.stop_requested()) return {};
    const std::string gang = kube::Annotation(*owner, crds::keys::kPreemptedGang).value_or(kube::Uid(*owner));
    if (kube::DeletionTimestamp(*owner) || cache_.HasPods(kube::Namespace(*owner), gang)) continue;
    if (base::Status one = Resume(*owner, stop); !one) all = std::move(one);
  }
  return all;
}

base::Status GangController::YieldOne(const crds::Gang& gang, const std::stop_token& stop) {
  const GangKey key = KeyOfGang(gang);
  const auto pods = cache_.PodsOf(key);
  const bool past = std::any_of(pods.facts.begin(), pods.facts.end(),
                                [](const auto& pod) { return pod->live() && !pod->gated; });
  if (!past) {
    queue_.Add(key.ToString());  // nobody has to be stopped: it is planned anew
    return {};
  }
  ASSIGN_OR_RETURN(OwnerChain chain, cache_.ChainOf(key, gang.spec.owner, stop), "read who owns a gang");
  if (!chain.owners.empty()) {
    // What is written next stands on a read of now: the owner may be Kueue's since, or a person's.
    const kube::ObjectPtr& cached = chain.owners.back();
    if (const SuspendSwitch* known =
            SuspendSwitchOf(kube::StringAt(*cached, {"apiVersion"}), kube::StringAt(*cached, {"kind"}))) {
      auto fresh = client_.Get(known->resource, kube::KeyOf(*cached), stop);
      if (!fresh && fresh.error().code == Code::kNotFound) return {};  // its end is its Gang's
      if (!fresh) return base::Fail(std::move(fresh).error().In("suspend an owner"));
      if (kube::Uid(*fresh) != kube::Uid(*cached)) return {};
      chain.owners.back() = std::make_shared<const kube::Json>(*std::move(fresh));
      if (IsSuspended(*chain.owners.back())) return {};
    }
  }
  if (!Needed(gang, cache_.Gangs().items())) {
    return Spare(gang, "NotNeeded", "the room is not needed any more", stop);
  }
  if (gang.status.preempted_by == NameOf(gang)) {
    ASSIGN_OR_RETURN(const bool helps, RestartHelps(key, stop));
    if (!helps) return Spare(gang, "NotNeeded", "its lost ranks have a place again", stop);
  }
  const Yield yield = HowToYield(chain, pods.objects);
  if (yield.by == Yield::By::kSuspension) return Suspend(gang, *yield.owner, stop);
  if (yield.by == Yield::By::kEviction) return Evict(gang, stop);
  return Spare(gang, "CannotYield", yield.why_not, stop);
}

// A lost rank's node may be back since the restart was decided, or another be free. Where its next pod is still to come
// nobody can tell yet.
base::Result<bool> GangController::RestartHelps(const GangKey& key, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const Look look, LookAt(key, stop));
  const bool placed = look.gang != nullptr && look.gang->status.placement && !look.members.refusal &&
                      look.members.ranks.size() == look.gang->status.placement->nodes.size();
  if (!placed || !look.members.Missing().empty()) return true;
  const std::optional<Action> rule = RepairLostRanks(look.Input(clock_.WallNow()));
  if (!rule) return false;
  const auto* repair = std::get_if<RepairRanks>(&*rule);
  if (repair == nullptr) return true;
  return !std::holds_alternative<PlannedGang>(look.Repaired(*repair));
}

// It stays, and who waits for its room has to look for another.
base::Status GangController::Spare(const crds::Gang& gang, const std::string& reason, const std::string& why,
                                   const std::stop_token& stop) {
  TRY(WriteStatus(gang, Unpreempted(gang.status, reason, why, clock_.WallNow()), Note{false, reason, why},
                  stop));
  queue_.Add(KeyOfGang(gang).ToString());
  queue_.AddAfter(std::string(kPlanKey), options_.settle);
  return {};
}

base::Status GangController::Suspend(const crds::Gang& gang, const kube::Json& owner,
                                     const std::stop_token& stop) {
  const SuspendSwitch* known =
      SuspendSwitchOf(kube::StringAt(owner, {"apiVersion"}), kube::StringAt(owner, {"kind"}));
  const base::WallTime now = clock_.WallNow();
  const bool restart = gang.status.preempted_by == NameOf(gang);
  const kube::Json patch = SuspendPatch(owner, gang.status.preempted_by, KeyOfGang(gang).owner_uid,
                                        restart ? std::optional(now) : std::nullopt);
  const auto patched =
      client_.Patch(known->resource, kube::KeyOf(owner), kube::PatchType::kMerge, patch, {}, stop);
  if (patched) {
    Say("Suspended " + TitleOf(owner) + " for=" + gang.status.preempted_by);
    return {};
  }
  const auto* told = crds::FindCondition(gang.status.conditions, crds::kPreempted);
  const Code code = patched.error().code;
  const bool refused = code == Code::kInvalid || code == Code::kForbidden;
  if (!refused || now - told->last_transition < kMostRefused) {
    return base::Fail(base::Error(patched.error()).In("suspend " + TitleOf(owner)));
  }
  const std::string why = TitleOf(owner) + " cannot be suspended: " + patched.error().message;
  return Spare(gang, kRefusedReason, why, stop);
}

base::Status GangController::Evict(const crds::Gang& gang, const std::stop_token& stop) {
  const ReadPods pods = cache_.PodsOf(KeyOfGang(gang));
  for (std::size_t i = 0; i < pods.objects.size(); ++i) {
    if (!may_write() || stop.stop_requested()) return {};
    if (!pods.facts[i]->live() || pods.facts[i]->gated) continue;
    const base::Status evicted = EvictPod(*pods.objects[i], stop);
    if (!evicted && evicted.error().code == Code::kThrottled) {
      queue_.AddAfter(std::string(kYieldKey), kBudgetPeriod);
      return {};
    }
    TRY(evicted);
  }
  return {};
}

base::Status GangController::EvictPod(const kube::Json& pod, const std::stop_token& stop) {
  const kube::ObjectKey key = kube::KeyOf(pod);
  const kube::Json eviction{{"apiVersion", "policy/v1"},
                            {"kind", "Eviction"},
                            {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                            {"deleteOptions", {{"preconditions", {{"uid", kube::Uid(pod)}}}}}};
  const auto evicted = client_.CreateSubresource(kube::kPods, key, "eviction", eviction, stop);
  if (evicted) {
    Say("Evicted pod=" + key.ToString());
    return {};
  }
  const Code code = evicted.error().code;
  if (code == Code::kNotFound || code == Code::kConflict) return {};  // it is gone, or another has its name
  return base::Fail(base::Error(evicted.error()).In("evict pod " + key.ToString()));
}

base::Status GangController::Resume(const kube::Json& owner, const std::stop_token& stop) {
  const SuspendSwitch* known =
      SuspendSwitchOf(kube::StringAt(owner, {"apiVersion"}), kube::StringAt(owner, {"kind"}));
  const auto fresh = client_.Get(known->resource, kube::KeyOf(owner), stop);
  if (!fresh && fresh.error().code == Code::kNotFound) return {};
  if (!fresh) return base::Fail(base::Error(fresh.error()).In("resume " + TitleOf(owner)));
  if (kube::Uid(*fresh) != kube::Uid(owner) || !SuspendedByUs(*fresh)) return {};
  const auto patched = client_.Patch(known->resource, kube::KeyOf(owner), kube::PatchType::kMerge,
                                     ResumePatch(*fresh), {}, stop);
  if (!patched && patched.error().code != Code::kNotFound) {
    return base::Fail(base::Error(patched.error()).In("resume " + TitleOf(owner)));
  }
  Tell({kube::StringAt(owner, {"apiVersion"}), kube::StringAt(owner, {"kind"}), kube::Name(owner),
        kube::Uid(owner)},
       kube::Namespace(owner),
       {false, "Resumed", "its pods are gone; new ones wait for a plan by their priority"});
  Say("Resumed " + TitleOf(owner));
  return {};
}

base::Result<std::string> GangController::Restart(const Look& look, crds::GangStatus status,
                                                  const std::stop_token& stop) {
  const std::string asked = "heddle.dev/on-degraded: restart does not help: ";
  if (!options_.preemption) return asked + "this installation suspends nobody (--preemption=off)";
  const crds::Gang& gang = *look.gang;
  const GangKey key = KeyOfGang(gang);
  ASSIGN_OR_RETURN(const OwnerChain chain, cache_.ChainOf(key, gang.spec.owner, stop),
                   "read who owns a gang");
  const Yield yield = HowToYield(chain, cache_.PodsOf(key).objects);
  if (!yield.why_not.empty()) return asked + yield.why_not;
  if (yield.by != Yield::By::kSuspension)
    return asked + "its owner has no switch that stops all of it without a failure";
  const auto last = base::ParseTime(kube::Annotation(*yield.owner, crds::keys::kRestartedAt).value_or(""));
  const base::WallTime now = clock_.WallNow();
  // Further ahead than that it is of a clock that was set back since: waited for, it could be years.
  const auto lately = [now](base::WallTime time) {
    return now - time < kBetweenRestarts && time - now < kBetweenRestarts;
  };
  if (last && lately(*last))
    return asked + "it was restarted at " + base::FormatTime(*last) + ", and is at most once in ten minutes";
  const auto* told = crds::FindCondition(gang.status.conditions, crds::kPreempted);
  if (told != nullptr && told->reason == kRefusedReason && lately(told->last_transition))
    return asked + told->message;
  if (!FitsAnew(*look.snapshot, look.members))
    return asked + "not even all of it together would find a place";
  const std::string text = status.message;
  TRY(WriteStatus(gang, Preempted(std::move(status), NameOf(gang), "Restarting", text, now),
                  Note{true, "Restarting", text}, stop));
  queue_.Add(std::string(kYieldKey));
  return std::string();
}

}  // namespace heddle::extender
