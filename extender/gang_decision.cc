#include "extender/gang_decision.h"

#include <algorithm>

#include "base/counted.h"
#include "crds/gpu_indexes.h"
#include "extender/gang_rules.h"
#include "extender/gang_status.h"
#include "extender/lost_nodes.h"
#include "extender/preempted.h"
#include "extender/slot_faults.h"

namespace heddle::extender {
namespace {

using Decision = std::optional<Action>;
using Rule = Decision (*)(const GangInput& input);

bool Ended(const GangInput& input) {
  return input.gang != nullptr && crds::IsTrue(input.gang->status.conditions, crds::kEnded);
}

bool HasLivePods(const GangMembers& members) {
  return !members.unranked.empty() || std::any_of(members.ranks.begin(), members.ranks.end(),
                                                  [](const auto& rank) { return rank.has_value(); });
}

// Writes only what differs from what stands there.
Decision Write(const GangInput& input, crds::GangStatus status, std::optional<Note> note) {
  if (status == input.gang->status) return std::nullopt;
  const bool urgent = !OnlyProgressDiffers(status, input.gang->status);
  return UpdateStatus{std::move(status), std::move(note), urgent};
}

struct EndReason {
  const char* reason;
  const char* sentence;
};
EndReason WhyEnded(OwnerState state) {
  switch (state) {
    case OwnerState::kGone:
      return {"OwnerGone", "the owner does not exist any more"};
    case OwnerState::kDeleting:
      return {"OwnerDeleted", "the owner is being deleted"};
    case OwnerState::kSuspended:
      return {"OwnerSuspended", "the owner is suspended; its pods are planned anew when it resumes"};
    case OwnerState::kFinished:
      return {"OwnerFinished", "the owner has finished"};
    case OwnerState::kNextAttempt:
      return {"Restarted", "the owner has started a later attempt"};
    case OwnerState::kScaledDown:
      return {"ScaledDown", "the owner has fewer groups now"};
    case OwnerState::kActive:
      break;
  }
  return {"", ""};
}

EndReason WhyEnded(const GangInput& input) {
  const OwnerState state = input.members.owner_state;
  if (IsPreempted(*input.gang) && state == OwnerState::kSuspended) {
    const bool restart = input.gang->status.preempted_by == input.gang->ns + "/" + input.gang->name;
    return {restart ? "Restarting" : "Preempted",
            "the owner is suspended until its pods are gone; then they are made anew and wait for a "
            "plan"};
  }
  return WhyEnded(state);
}

// An owner that is gone, suspended or done needs no slots. Pods that are still bound count for themselves.
Decision EndWithOwner(const GangInput& input) {
  if (input.members.owner_state == OwnerState::kActive) return std::nullopt;
  if (input.gang == nullptr) return Nothing{};
  // No owner takes it along.
  const bool nobodys = input.gang->owners.empty() && input.members.owner_state == OwnerState::kGone;
  if (nobodys) return DeleteGang{"its pods are gone"};
  if (Ended(input)) return Nothing{};
  const EndReason why = WhyEnded(input);
  crds::GangStatus status = StatusOf(input);
  status.progress = ProgressOf(input.members);
  status.missing.clear();
  Blame(status, why.reason, why.sentence);
  Say(input, status, crds::kEnded, true, why.reason, why.sentence);
  if (crds::FindCondition(status.conditions, crds::kRunning) != nullptr) {
    Say(input, status, crds::kRunning, false, why.reason, why.sentence);
  }
  return UpdateStatus{std::move(status), std::nullopt, true};
}

// One that was only observed, before Heddle was told to place, reserves nothing and is no start for a plan.
Decision LeaveObserved(const GangInput& input) {
  if (input.gang == nullptr || !input.gang->status.observed) return std::nullopt;
  if (HasLivePods(input.members)) return DeleteGang{"its pods wait for a plan now"};
  return Nothing{};
}

// Another Gang, as its spec never changes. But where dp was made to follow a size that its owner was scaled to, nothing
// but the Gang knows that this is no mistake: that one starts from the beginning itself.
Action Anew(const GangInput& input, std::string why) {
  const bool same = !input.members.refusal && StorableSpec(input.members) == input.gang->spec;
  if (!input.members.followed || !same) return DeleteGang{std::move(why)};
  crds::GangStatus status;
  status.observed_generation = input.gang->generation;
  return UpdateStatus{std::move(status), std::nullopt, true};
}

// It makes room for others (yielding.h): nothing of it is planned, moved or let go any more. What was not let go yet,
// or was made again behind the gate, needs no more than another plan.
Decision GiveWay(const GangInput& input) {
  if (input.gang == nullptr || Ended(input) || !IsPreempted(*input.gang)) return std::nullopt;
  if (!input.preemption) {
    crds::GangStatus status = StatusOf(input);
    return UpdateStatus{Unpreempted(std::move(status), "Off", "preemption was turned off", input.now),
                        std::nullopt, true};
  }
  if (input.members.HasPastTheGate()) return Nothing{std::chrono::seconds(15)};
  return Anew(input, "it made room for " + input.gang->status.preempted_by);
}

Decision WaitWithoutPods(const GangInput& input) {
  if (HasLivePods(input.members) || (input.gang != nullptr && !Ended(input))) return std::nullopt;
  return Nothing{};
}

// Of gangs that are told apart by name: the name was used again, or the leader was made anew and its workers with
// it.
bool AnotherAttempt(const crds::GangSpec& was, const crds::GangSpec& is) {
  if (was.group.empty() || is.owner.uid.empty()) return false;
  const bool by_pods = was.owner.kind == "Pod" && is.owner.kind == "Pod";
  if (!by_pods && was.owner.uid != is.owner.uid) return true;
  return !was.leader.empty() && !is.leader.empty() && was.leader != is.leader;
}

// Bound pods stay where they are in the next plan, and who is on the way arrives first. Whom the scheduler finds no
// place for may never arrive: the rules that move it are those of a plan with a slot for each rank.
Action Resize(const GangInput& input) {
  const auto& ranks = input.members.ranks;
  const auto on_the_way = int(std::count_if(ranks.begin(), ranks.end(), [&input](const auto& rank) {
    return rank && !rank->facts->gated && rank->facts->node.empty() && !Stuck(input, *rank->facts);
  }));
  if (on_the_way <= 0) return DeleteGang{"its owner has another size now"};
  crds::GangStatus status = StatusOf(input);
  SayPods(input, status);
  Blame(status, "SizeChanged",
        "the gang was started with " + base::Counted(input.gang->spec.pods, "pod") +
            " and its owner now wants " + std::to_string(input.members.spec.pods) +
            "; it is planned anew when " + base::Counted(on_the_way, "pod") +
            " that the scheduler has not bound yet " + (on_the_way == 1 ? "is" : "are") + " on a node");
  if (auto write = Write(input, std::move(status), std::nullopt)) return *std::move(write);
  return Nothing{std::chrono::seconds(15)};
}

// A Gang's spec never changes, so an owner that came back, or came back another size, gets another Gang. Pods
// that were let go keep theirs: their slots are in use.
Decision StartAgain(const GangInput& input) {
  if (input.gang == nullptr) return std::nullopt;
  if (Ended(input)) return Anew(input, "its owner is active again");
  if (input.members.refusal) return std::nullopt;
  const crds::GangSpec &was = input.gang->spec, &is = input.members.spec;
  if (AnotherAttempt(was, is)) return DeleteGang{"another attempt has started"};
  // Made while the gang was refused, as after somebody deleted the one before it: it holds no slot, and its pods, which
  // may run, are of no other size than before.
  if (input.members.seen() > 0 && !was.parallelism && is.parallelism && !input.gang->status.placement)
    return DeleteGang{"it was made while what its pods say could not be planned"};
  const bool same_template =
      input.members.seen() == 0 || (was.gpus_per_pod == is.gpus_per_pod && was.parallelism == is.parallelism);
  if (was.pods == is.pods && same_template) return std::nullopt;
  if (input.members.let_go() == 0) return DeleteGang{"its pods ask for something else now"};
  if (input.members.elastic) return Resize(input);
  const std::string sentence = "the gang was started with " + std::to_string(was.pods) +
                               " pods and its owner now wants " + std::to_string(is.pods) +
                               "; delete the Gang's pods, or the owner, to plan it anew";
  crds::GangStatus status = DegradedStatus(input, "SizeChanged", sentence);
  const bool told =
      input.gang->status.reason == "SizeChanged" && input.gang->status.message == status.message;
  const Decision write = Write(input, std::move(status),
                               told ? std::nullopt : std::optional(Note{true, "SizeChanged", sentence}));
  return write ? write : Nothing{};
}

}  // namespace

crds::GangSpec StorableSpec(const GangMembers& members) {
  crds::GangSpec spec = members.spec;
  // A gang whose size nobody can tell is shown with the pods that are there.
  if (spec.pods <= 0)
    spec.pods = std::max<int>(1, int(std::min<std::size_t>(members.unranked.size(), 16384)));
  spec.gpus_per_pod = std::clamp(spec.gpus_per_pod, 0, 32);
  if (members.refusal) spec.parallelism.reset();
  return spec;
}

namespace {

Decision CreateFirst(const GangInput& input) {
  if (input.gang != nullptr) return std::nullopt;
  crds::Gang gang;
  gang.spec = StorableSpec(input.members);
  gang.ns = input.members.key.ns;
  gang.name = crds::GangName(gang.spec);
  // One of many pods may go before the others; then nobody owns the Gang, and the last pod takes it along.
  if (!gang.spec.group.empty() && gang.spec.owner.kind == "Pod") return CreateGang{std::move(gang)};
  gang.owners.push_back(
      {gang.spec.owner.api_version, gang.spec.owner.kind, gang.spec.owner.name, gang.spec.owner.uid, false});
  return CreateGang{std::move(gang)};
}

Decision Refuse(const GangInput& input) {
  if (!input.members.refusal) return std::nullopt;
  const auto& [reason, sentence] = *input.members.refusal;
  // A gang that runs keeps its slots while two pods fight over a rank.
  const bool started = HoldsSlots(*input.gang) && input.members.let_go() > 0;
  crds::GangStatus status =
      started ? DegradedStatus(input, reason, sentence) : RefusedStatus(input, reason, sentence);
  const bool told = input.gang->status.reason == reason && input.gang->status.message == status.message;
  const Decision write =
      Write(input, std::move(status), told ? std::nullopt : std::optional(Note{true, reason, sentence}));
  return write ? write : Nothing{};
}

Decision Collect(const GangInput& input) {
  const GangMembers& members = input.members;
  if (HoldsSlots(*input.gang) || members.seen() == members.spec.pods) return std::nullopt;
  crds::GangStatus status = StatusOf(input);
  status.progress = ProgressOf(members);
  Blame(status, "", "");
  Say(input, status, crds::kCollected, false, "WaitingForPods",
      "waiting until all " + base::Counted(members.spec.pods, "pod") + " exist");
  if (!members.trouble.empty()) {
    Blame(status, "FailedCreate", "the pods cannot be made: " + members.trouble);
    Say(input, status, crds::kCollected, false, "FailedCreate",
        "the pods cannot be made: " + members.trouble);
  }
  if (!members.given_up.empty()) {
    const std::string sentence =
        "rank " + std::to_string(members.given_up.front()) +
        (members.given_up.size() > 1
             ? " and " + base::Counted(members.given_up.size() - 1, "other rank") + " have"
             : std::string(" has")) +
        " failed for good: the Job names them in status.failedIndexes and makes no other pod for them, "
        "so the gang cannot start whole again; delete the Job and submit it anew";
    Blame(status, "IndexFailed", sentence);
    Say(input, status, crds::kCollected, false, "IndexFailed", sentence);
  }
  const Decision write = Write(input, std::move(status), std::nullopt);
  return write ? write : Nothing{std::chrono::seconds(30)};
}

// Quota comes first: Kueue may yet choose other nodes (it writes a nodeSelector as it lets a pod go), and
// slots that are held for a gang without quota are taken from those who have it.
Decision AwaitQuota(const GangInput& input) {
  if (HoldsSlots(*input.gang)) return std::nullopt;
  int waiting = 0;
  std::string gate;
  for (const auto& rank : input.members.ranks) {
    if (!rank || rank->facts->queue_gate.empty()) continue;
    if (waiting++ == 0) gate = rank->facts->queue_gate;
  }
  if (waiting == 0) return std::nullopt;
  crds::GangStatus status = StatusOf(input);
  status.progress = ProgressOf(input.members);
  const std::string sentence =
      "all pods exist; " + std::to_string(waiting) + " wait for quota behind the gate " + gate;
  Blame(status, "WaitingForQuota", sentence);
  Say(input, status, crds::kCollected, false, "WaitingForQuota", sentence);
  const Decision write = Write(input, std::move(status), std::nullopt);
  return write ? write : Nothing{};
}

Decision TakePlace(const GangInput& input) {
  if (HoldsSlots(*input.gang)) return std::nullopt;
  return NeedsPlan{};
}

// The status is there for programs to write, and people can: a plan that has not one slot for each rank is none. Pods
// that stand somewhere stay there in the next.
Decision ReplaceBrokenPlan(const GangInput& input) {
  const std::size_t rows = input.gang->status.placement->nodes.size(), ranks = input.members.ranks.size();
  if (rows == ranks) return std::nullopt;
  if (!input.members.Missing().empty() || input.members.WaitsForQuota())
    return Nothing{std::chrono::seconds(30)};
  return NeedsPlan{"its plan has " + base::Counted(rows, "slot") + " for " + base::Counted(ranks, "rank")};
}

void SayStarted(const GangInput& input, crds::GangStatus& status) {
  const GangMembers& members = input.members;
  const int pods = members.spec.pods;
  const bool all_released = members.released() == pods, all_bound = members.bound() == pods;
  SayPods(input, status);
  Say(input, status, crds::kReleased, all_released, all_released ? "AllReleased" : "WaitingForPods",
      all_released ? "every pod is pinned and past the gate"
                   : "pods are being pinned and let go, or made again");
  // It is there from when the first pod was let go: by that a gang that lost its place is told from one that never ran.
  const bool begun =
      members.let_go() > 0 || all_bound || crds::FindCondition(status.conditions, crds::kRunning) != nullptr;
  if (begun)
    Say(input, status, crds::kRunning, all_bound, all_bound ? "AllBound" : "WaitingForBinding",
        all_bound ? "every pod is on its node" : "the scheduler has not bound every pod yet");
  for (const std::string_view type : {crds::kRepairing, crds::kDegraded}) {
    if (all_bound && crds::IsTrue(status.conditions, type)) {
      Say(input, status, type, false, "Repaired", "every pod is on its node");
    }
  }
}

// What has become of the slots of a gang that runs. Nothing of it is moved for that; who owns it can decide.
std::optional<Note> BlameSlots(const GangInput& input, crds::GangStatus& status) {
  const auto fault = SlotFaultOf(*input.gang, input.snapshot);
  const std::string was = status.reason;
  Blame(status, fault ? fault->reason : "", fault ? fault->sentence : "");
  if (!fault || was == fault->reason) return std::nullopt;
  return Note{true, fault->reason, status.message};
}

// Bound pods on a silent node look as if they ran. Nothing can be done for them yet, but it can be said; and before
// what else is wrong.
std::optional<Note> BlameHardware(const GangInput& input, crds::GangStatus& status) {
  const bool known = status.reason == kNodeLost;
  if (const auto lost = NodesLost(input)) {
    Blame(status, lost->reason, lost->sentence);
    return known ? std::nullopt : std::optional(Note{true, lost->reason, lost->sentence});
  }
  if (auto note = BlameSlots(input, status)) return note;
  if (!known || !crds::IsTrue(status.conditions, crds::kRunning)) return std::nullopt;
  return Note{false, "NodeBack", "the nodes of all its pods are Ready again"};
}

// Which GPUs and NICs its pods really got.
std::optional<Note> SayDevices(const GangInput& input, crds::GangStatus& status) {
  const auto given = input.snapshot.given.find(input.members.key.owner_uid);
  if (given == input.snapshot.given.end()) return std::nullopt;
  std::string sentence = SayGiven(given->second, input.now, input.gang->generation, status.conditions);
  if (sentence.empty()) return std::nullopt;
  return Note{false, std::string(kDevicesDiffer), std::move(sentence)};
}

Decision Report(const GangInput& input) {
  crds::GangStatus status = StatusOf(input);
  const bool was_running = crds::IsTrue(status.conditions, crds::kRunning);
  SayStarted(input, status);
  std::optional<Note> note;
  if (!crds::IsTrue(status.conditions, crds::kDegraded)) note = BlameHardware(input, status);
  if (!was_running && crds::IsTrue(status.conditions, crds::kRunning)) {
    note = Note{false, "Running",
                "all " + base::Counted(input.members.spec.pods, "pod") + " of the gang are on their nodes"};
  }
  auto devices = SayDevices(input, status);
  if (!note) note = std::move(devices);
  return Write(input, std::move(status), std::move(note));
}

Decision LookAgain(const GangInput& input) {
  const bool waiting = input.members.bound() < input.members.spec.pods;
  return waiting ? Nothing{std::chrono::seconds(15)} : Nothing{};
}

// In order; each row of the design's state table is one of these. A rule that returns nothing leaves the gang
// to the next.
constexpr Rule kRules[] = {
    EndWithOwner,         // any state, owner ended or suspended → Ended
    LeaveObserved,        // mode observe made it
    GiveWay,              // preempted: its pods leave → a new Gang
    WaitWithoutPods,      // no pods and no Gang yet
    StartAgain,           // Ended or another size, and pods are there → a new Gang
    CreateFirst,          // pods without a Gang → Collecting
    Refuse,               // what was written cannot be planned
    Collect,              // Collecting: not all ranks seen
    AwaitQuota,           // Collecting: all ranks seen, Kueue has not let them all go
    TakePlace,            // Collecting: all ranks seen → Planned
    ReplaceBrokenPlan,    // Planned or later: somebody edited the plan → Planned anew
    ReplanBeforeRelease,  // Planned: the snapshot changed under it → Planned anew
    FollowBinding,        // a pod was bound elsewhere: the slot follows
    RepairLostRanks,      // a rank's slot is gone, or its node refuses the rank's pods → Repairing
    LeaveDegradedRails,   // a remade pod whose gang is faster with another slot → Repairing
    ReleaseRanks,         // Planned → Released; Running: a remade pod → its rank's slot at once
    TrySubstitutes,  // Released: a pod cannot start although its slot is sound → a substitute, or Degraded
    Report,          // Released → Running, and the counts
    LookAgain,
};

}  // namespace

Action Decide(const GangInput& input) {
  for (const Rule rule : kRules) {
    if (Decision decision = rule(input)) return *std::move(decision);
  }
  return Nothing{};
}

Slot SlotOf(const crds::Gang& gang, const crds::PlacedPod& row, int rank, const Snapshot& snapshot) {
  Slot slot{.rank = rank,
            .node = row.node,
            .gpus = row.gpus,
            .substitutes = row.substitutes,
            .gang_uid = gang.uid,
            .epoch = gang.status.placement->epoch};
  const topology::Node* node = snapshot.Topology(row.node);
  if (node == nullptr) return slot;
  if (slot.gpus == 0) slot.gpus = crds::AllIndexes(*node);
  for (const topology::Nic* nic : PlannedNics(*node, slot.gpus)) slot.nics.push_back(nic->name);
  return slot;
}

}  // namespace heddle::extender
