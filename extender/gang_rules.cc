#include "extender/gang_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "base/counted.h"
#include "crds/gpu_indexes.h"
#include "extender/compute_domain.h"
#include "extender/gang_status.h"
#include "extender/node_constraints.h"
#include "extender/planning.h"
#include "extender/refused_pods.h"
#include "extender/slot_faults.h"

namespace heddle::extender {
namespace {

// The scheduler retries a pod within 10 s of back-off; a pod that it has refused for longer has a reason.
constexpr std::chrono::seconds kPatience{30};

std::vector<crds::PlacedPod> Rows(const GangInput& input) {
  return crds::ToRows(*input.gang->status.placement);
}

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > 3 ? text + " and " + std::to_string(names.size() - 3) + " more" : text;
}

// Of two plans over the same GPUs the later one gives way; of two from the same second, the one with the
// later UID. Before age comes what a pod was told: a rank that comes again after it had succeeded, and after its slot
// was given away, must not take it from a pod that is on its way there. And then a gang of which others were let go:
// an older plan that lands late would leave both in halves, and one with all pods at the gate is made anew for nothing.
bool TheirsComesFirst(const GangInput& input, const Hold& hold, bool told) {
  const auto ours = input.gang->status.planned_at;
  if (hold.source != Hold::Source::kReserved) return true;
  if (hold.told != told) return hold.told;
  if (const bool begun = input.members.HasPastTheGate(); hold.begun != begun) return hold.begun;
  if (!ours || !hold.planned_at) return true;
  if (*hold.planned_at != *ours) return *hold.planned_at < *ours;
  return hold.owner_uid < input.members.key.owner_uid;
}

// A released pod that is on no node, was told another slot than the Gang now has, or was told by a Gang that
// is gone.
bool MustMove(const PodFacts& pod, const Slot& slot) {
  if (pod.gated || !pod.node.empty() || !pod.plan) return false;
  return pod.plan->node != slot.node || pod.plan->gpus != slot.gpus || pod.plan->gang_uid != slot.gang_uid;
}

// A bound pod that another Gang of its owner, of another size, told the rank that it had then. Seats are given by what
// pods were told: were it not told anew, the next pod that is made could get the seat of this one, and be sent to it.
bool HasAnotherRank(const PodFacts& pod, const Slot& slot) {
  if (pod.gated || pod.node != slot.node || !pod.plan || pod.plan->node != slot.node) return false;
  return pod.plan->rank != slot.rank && pod.plan->gang_uid != slot.gang_uid;
}

bool WasTold(const PodFacts& pod, const crds::PlacedPod& row) {
  return !pod.gated && pod.plan && pod.plan->node == row.node && pod.plan->gpus == row.gpus;
}

}  // namespace

bool Stuck(const GangInput& input, const PodFacts& pod) {
  return !pod.gated && pod.node.empty() && pod.unschedulable_since &&
         input.now - *pod.unschedulable_since >= kPatience;
}

std::optional<std::string> SlotTrouble(const GangInput& input, const crds::PlacedPod& row, bool told) {
  if (!row.has_slot()) return "a rank that was done when the plan was made has come again";
  if (const std::string why = input.snapshot.Unusable(row.node); !why.empty()) return row.node + " is " + why;
  if (const std::uint32_t bad = input.snapshot.Unhealthy(row.node, row.gpus); bad != 0) {
    return "GPU " + crds::FormatGpuIndexes(bad) + " of " + row.node + " is not healthy";
  }
  std::vector<std::string> names;
  for (const Hold& hold : input.snapshot.Conflicts(row.node, row.gpus, input.members.key)) {
    if (TheirsComesFirst(input, hold, told)) names.push_back(hold.name);
  }
  if (names.empty()) return std::nullopt;
  return "GPUs of " + row.node + " were taken by " + Names(names);
}

namespace {

// While a pod is gated its nodeSelector and node affinity may be narrowed, and the plan is older than that. Past the
// gate nobody can.
std::optional<std::string> PodTrouble(const GangInput& input, const Member& member,
                                      const crds::PlacedPod& row) {
  const auto node = input.snapshot.nodes.find(row.node);
  if (!member.facts->gated || node == input.snapshot.nodes.end()) return std::nullopt;
  const topology::Node* topology = input.snapshot.Topology(row.node);
  if (topology != nullptr && !HasImexChannel(*topology) && !member.facts->terms->compute_domain.empty()) {
    return row.node + " has no part in an NVLink domain over nodes any more, and pod " +
           member.facts->key.name + " asks for a ComputeDomain";
  }
  if (member.Constraints()->Admit(*node->second)) return std::nullopt;
  return "pod " + member.facts->key.name + " may not run on " + row.node + " any more";
}

}  // namespace

std::optional<Action> ReplanBeforeRelease(const GangInput& input) {
  // A plan is made of pods: it is made anew when all of them are there again, and Kueue has let them go.
  if (input.members.let_go() > 0 || !input.members.Missing().empty() || input.members.WaitsForQuota())
    return std::nullopt;
  const auto rows = Rows(input);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& rank = input.members.ranks[i];
    if (!rank) continue;  // done: its slot is anybody's
    if (const auto trouble = SlotTrouble(input, rows[i])) return NeedsPlan{*trouble};
    if (const auto trouble = PodTrouble(input, *rank, rows[i])) return NeedsPlan{*trouble};
  }
  return std::nullopt;
}

// A bound node outranks everything: the slot is where the pod is, so that its successor is sent there too.
std::optional<Action> FollowBinding(const GangInput& input) {
  auto rows = Rows(input);
  bool moved = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& rank = input.members.ranks[i];
    if (!rank || rank->facts->node.empty() || rank->facts->node == rows[i].node) continue;
    rows[i].node = rank->facts->node;
    const bool told = rank->facts->plan && rank->facts->plan->node == rank->facts->node;
    if (told) rows[i].gpus = rank->facts->plan->gpus;
    for (const auto& [node, holds] : input.snapshot.holds) {
      if (told || node != rank->facts->node) continue;
      for (const Hold& hold : holds) {
        if (hold.pod_uid == rank->facts->uid) rows[i].gpus = hold.gpus;
      }
    }
    rows[i].substitutes.clear();
    moved = true;
  }
  if (!moved) return std::nullopt;
  crds::GangStatus status = StatusOf(input);
  status.placement = crds::ToColumns(rows, status.placement->epoch + 1);
  status.progress = ProgressOf(input.members);
  return UpdateStatus{std::move(status), std::nullopt, true};
}

// A slot without a pod for five minutes was anybody's: who has a plan for it since keeps it, however young.
std::optional<std::string> LapsedTrouble(const GangInput& input, const crds::PlacedPod& row) {
  std::vector<std::string> names;
  for (const Hold& hold : input.snapshot.Conflicts(row.node, row.gpus, input.members.key))
    names.push_back(hold.name);
  if (names.empty()) return std::nullopt;
  return "its slot on " + row.node + " was given to " + Names(names) + " after five minutes without a pod";
}

std::optional<Action> RepairLostRanks(const GangInput& input) {
  const auto rows = Rows(input);
  const RefusedPods refused(input);
  const std::set<int> lapsed = LapsedRanks(*input.gang, input.now);
  RepairRanks repair;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& rank = input.members.ranks[i];
    if (!rank || !(rank->facts->gated || Stuck(input, *rank->facts))) continue;
    // Its slot may have lapsed, and another would be taken from those who have quota.
    if (rank->facts->waits_for_quota()) continue;
    auto trouble = SlotTrouble(input, rows[i], WasTold(*rank->facts, rows[i]));
    if (!trouble) trouble = PodTrouble(input, *rank, rows[i]);
    if (!trouble && rank->facts->gated && lapsed.contains(int(i))) trouble = LapsedTrouble(input, rows[i]);
    // Its next pod waits at the gate: let go, it would be refused there, too, until the owner gives up.
    if (!trouble && rank->facts->gated) trouble = refused.Trouble(int(i), rows[i].node);
    if (!trouble) continue;
    if (repair.lost.empty()) repair.why = "rank " + std::to_string(i) + ": " + *trouble;
    repair.lost.push_back(int(i));
  }
  if (repair.lost.empty()) return std::nullopt;
  repair.barred = refused.Barred(repair.lost);
  return repair;
}

// A node with a degraded rail can be used, only more slowly, and a pod that runs there is worth more than one that is
// killed. But one that is made again may as well start where the gang is faster. What is planned for the first time is
// planned with what the rails carry.
std::optional<Action> LeaveDegradedRails(const GangInput& input) {
  if (crds::FindCondition(input.gang->status.conditions, crds::kRunning) == nullptr) return std::nullopt;
  std::vector<int> slow;
  std::string why;
  for (const SlowRank& one : RanksOnDegradedRails(*input.gang, input.snapshot)) {
    const auto& rank = input.members.ranks[std::size_t(one.rank)];
    if (!rank || !rank->facts->gated || rank->facts->waits_for_quota()) continue;
    slow.push_back(one.rank);
    if (why.empty()) why = one.sentence;
  }
  if (slow.empty()) return std::nullopt;
  auto faster =
      FindFasterSlots(input.snapshot, input.members, Rows(input), slow, RefusedPods(input).Barred(slow));
  if (!faster) return std::nullopt;
  const std::size_t moved = faster->moved.size();
  const std::string sentence = fmt::format(
      "{} made again {} ({}); a step is predicted to take {:.3f} ms less", base::Counted(moved, "rank"),
      moved == 1 ? "gets another slot" : "get other slots", why, double(faster->saved_micros) / 1000);
  crds::GangStatus status =
      PlannedStatus(input, faster->plan.rows, faster->plan.quality, std::move(faster->plan.explanation));
  Say(input, status, crds::kRepairing, true, "RailDegraded", sentence);
  return UpdateStatus{std::move(status), Note{false, "Repairing", sentence}, true};
}

namespace {

// A pod of this gang that is on its way out and still has GPUs of the slot. On a node of its own the scheduler's count
// keeps the next pod waiting; on a shared one that pod would be let in, and get GPUs that others were promised.
bool StillOccupied(const GangInput& input, const crds::PlacedPod& row) {
  const topology::Node* node = input.snapshot.Topology(row.node);
  if (node == nullptr || row.gpus == 0 || row.gpus == crds::AllIndexes(*node)) return false;
  return std::any_of(
      input.members.leaving.begin(), input.members.leaving.end(), [&row](const Member& member) {
        const PodFacts& pod = *member.facts;
        return pod.occupies() && pod.node == row.node && pod.plan && (pod.plan->gpus & row.gpus) != 0;
      });
}

}  // namespace

std::optional<Action> ReleaseRanks(const GangInput& input) {
  const auto rows = Rows(input);
  ReleasePods release;
  std::vector<PodPatch> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& rank = input.members.ranks[i];
    if (!rank || !rows[i].has_slot()) continue;
    const Slot slot = SlotOf(*input.gang, rows[i], int(i), input.snapshot);
    if (rank->facts->gated) {
      if (rank->facts->waits_for_quota()) continue;  // its slot waits for it, until it lapses
      if (StillOccupied(input, rows[i])) continue;   // its slot will wait for it, too
      auto patch = ReleasePatch(rank->Pod(), slot);
      if (patch) others.push_back({rank->facts->key, int(i), *std::move(patch)});
    } else if (input.snapshot.Topology(slot.node) != nullptr) {
      // Of a machine that nobody knows just now (its NodeTopology is away, or its Fabric excludes it) there are no
      // NICs to tell, nor indexes of a whole node: what the pod was told before is better than nothing.
      const bool moves = MustMove(*rank->facts, slot);
      if (!moves && !HasAnotherRank(*rank->facts, slot)) continue;
      (moves ? others : release.patches).push_back({rank->facts->key, int(i), MovePatch(rank->Pod(), slot)});
    }
  }
  release.in_order = release.patches.size();
  release.patches.insert(release.patches.end(), std::make_move_iterator(others.begin()),
                         std::make_move_iterator(others.end()));
  if (release.patches.empty()) return std::nullopt;
  return release;
}

namespace {

// A slot that nobody else has, nor another rank of the gang.
bool IsFree(const GangInput& input, const std::vector<crds::PlacedPod>& rows, const crds::PlacedPod& wanted) {
  const bool ours = std::any_of(rows.begin(), rows.end(), [&wanted](const crds::PlacedPod& row) {
    return row.node == wanted.node && (row.gpus == 0 || wanted.gpus == 0 || (row.gpus & wanted.gpus) != 0);
  });
  return !ours && !SlotTrouble(input, wanted) &&
         input.snapshot.Conflicts(wanted.node, wanted.gpus, input.members.key).empty();
}

// Terms of its own were narrowed to the one node of its slot when it was let go (release_patch.h), so there no
// substitute is any; and a node may have been tainted or labelled anew since the plan.
bool MayStartOn(const GangInput& input, const Member& member, const std::string& name) {
  const auto node = input.snapshot.nodes.find(name);
  return node == input.snapshot.nodes.end() || member.Constraints()->Admit(*node->second);
}

std::string WhyNotStarted(const Member& member, int rank, const std::string& node) {
  const std::string& why = member.facts->unschedulable_why;
  return "rank " + std::to_string(rank) + " (pod " + member.facts->key.name + ") cannot start on " + node +
         (why.empty() ? "" : ": " + why);
}

}  // namespace

// Nothing that we know is wrong with the slot, and yet the scheduler finds no place there. Each substitute is
// tried once: what was left is not on the list any more, so the tries end. The planned time is moved with
// each, so that the scheduler gets its time for each.
std::optional<Action> TrySubstitutes(const GangInput& input) {
  const auto planned = input.gang->status.planned_at;
  if (planned && input.now - *planned < kPatience) return std::nullopt;
  auto rows = Rows(input);
  const RefusedPods refused(input);
  std::string without;  // of the first that has none; one after it may have
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& rank = input.members.ranks[i];
    if (!rank || !Stuck(input, *rank->facts)) continue;
    const std::string trouble = WhyNotStarted(*rank, int(i), rows[i].node);
    crds::PlacedPod& row = rows[i];
    while (!row.substitutes.empty()) {
      crds::PlacedPod next{
          row.substitutes.front(), row.gpus, {row.substitutes.begin() + 1, row.substitutes.end()}};
      if (!IsFree(input, rows, next) || refused.Trouble(int(i), next.node) ||
          !MayStartOn(input, *rank, next.node)) {
        row.substitutes.erase(row.substitutes.begin());
        continue;
      }
      const std::string sentence = trouble + "; it moves to its substitute " + next.node;
      row = std::move(next);
      crds::GangStatus status = StatusOf(input);
      status.placement = crds::ToColumns(rows, status.placement->epoch + 1);
      status.planned_at = std::chrono::floor<std::chrono::seconds>(input.now);
      status.explanation.push_back("rank " + std::to_string(i) + " was moved to its substitute " + row.node +
                                   "; the predicted times are those of the plan");
      Say(input, status, crds::kRepairing, true, "Unschedulable", sentence);
      return UpdateStatus{std::move(status), Note{false, "Repairing", sentence}, true};
    }
    if (without.empty())
      without = trouble + "; no substitute is left: see `kubectl describe pod`, or delete the owner";
  }
  if (without.empty()) return std::nullopt;
  crds::GangStatus status = DegradedStatus(input, "Unschedulable", without);
  if (status == input.gang->status) return Nothing{std::chrono::seconds(30)};
  const bool told = input.gang->status.reason == "Unschedulable";
  return UpdateStatus{std::move(status),
                      told ? std::nullopt : std::optional(Note{true, "Unschedulable", without}), true};
}

}  // namespace heddle::extender
