#include "extender/gang_status.h"

#include <algorithm>
#include <optional>

#include "base/counted.h"
#include "base/cut_utf8.h"
#include "crds/condition.h"

namespace heddle::extender {
namespace {

// The schema's limit; a refusal that names many pods may be longer.
constexpr std::size_t kMessageLimit = 1000;

base::WallTime WholeSeconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// The condition Collected where it alone says since when ranks are missing: an earlier version wrote it, or the schema
// on the server is of one and drops the list. To add the list then would be to write it for ever. Null: it does not.
const crds::Condition* SayingAlone(const crds::GangStatus& status) {
  if (!status.missing.empty()) return nullptr;
  const crds::Condition* collected = crds::FindCondition(status.conditions, crds::kCollected);
  const bool says = collected != nullptr && collected->status == crds::ConditionStatus::kFalse &&
                    collected->reason == "RankMissing";
  return says ? collected : nullptr;
}

base::WallTime SinceOfUnlisted(const GangInput& input, const crds::Condition* alone) {
  if (alone != nullptr) return alone->last_transition;
  const crds::GangStatus& status = input.gang->status;
  if (status.missing.size() < crds::kMaxMissing) return WholeSeconds(input.now);
  // There was no room for it, so nobody knows; but these were gone by then, too.
  return std::max_element(status.missing.begin(), status.missing.end(),
                          [](const auto& a, const auto& b) { return a.since < b.since; })
      ->since;
}

bool WasTold(const PodFacts& pod) {
  return !pod.gated && pod.plan;
}

// The owner cannot be read and a pod has no rank yet: any slot may be the one that it is for.
bool CannotTellRanks(const GangMembers& members) {
  return members.ranks.empty() && std::any_of(members.unranked.begin(), members.unranked.end(),
                                              [](const Member& member) { return !WasTold(*member.facts); });
}

// Ranks of the Gang's slots that no pod could use now. An owner of another size numbers its ranks anew, and then a slot
// is that of the pod which was told it.
std::vector<int> IdleRanks(const GangInput& input) {
  const GangMembers& members = input.members;
  std::vector<bool> used(std::size_t(input.gang->spec.pods));
  const auto use = [&used](std::int64_t rank) {
    if (rank >= 0 && std::size_t(rank) < used.size()) used[std::size_t(rank)] = true;
  };
  const bool same_size = members.ranks.size() == used.size();
  for (std::size_t i = 0; i < members.ranks.size(); ++i) {
    const auto& rank = members.ranks[i];
    if (members.done[i]) use(std::int64_t(i));
    if (!rank || rank->facts->waits_for_quota()) continue;
    use(same_size || !WasTold(*rank->facts) ? std::int64_t(i) : rank->facts->plan->rank);
  }
  const auto use_of = [&use](const std::vector<Member>& others) {
    for (const Member& member : others) {
      if (member.facts->live() && WasTold(*member.facts)) use(member.facts->plan->rank);
    }
  };
  use_of(members.unranked);  // one of two pods with one rank runs there, whoever of them has the seat
  if (!same_size) use_of(members.leaving);
  std::vector<int> idle;
  for (std::size_t rank = 0; rank < used.size(); ++rank) {
    if (!used[rank]) idle.push_back(int(rank));
  }
  return idle;
}

// `alone`: SayingAlone of the Gang.
std::vector<crds::MissingRank> MissingOf(const GangInput& input, const crds::Condition* alone) {
  const std::vector<crds::MissingRank>& known = input.gang->status.missing;
  if (CannotTellRanks(input.members)) return known;
  const base::WallTime unlisted = SinceOfUnlisted(input, alone);
  std::vector<crds::MissingRank> missing;
  for (const int rank : IdleRanks(input)) {
    const auto found = std::lower_bound(known.begin(), known.end(), rank,
                                        [](const auto& one, int wanted) { return one.rank < wanted; });
    const bool listed = found != known.end() && found->rank == rank;
    missing.push_back({rank, listed ? found->since : unlisted});
  }
  return missing;
}

std::string WhoIsMissing(const GangInput& input, const std::vector<crds::MissingRank>& missing) {
  const auto queued = [&ranks = input.members.ranks](const crds::MissingRank& one) {
    const auto rank = std::size_t(one.rank);
    return rank < ranks.size() && ranks[rank] && ranks[rank]->facts->waits_for_quota();
  };
  const std::string first = "rank " + std::to_string(missing.front().rank);
  const std::string kept = "; a slot is kept for five minutes";
  if (std::none_of(missing.begin(), missing.end(), queued))
    return first + (missing.size() > 1 ? " and others have" : " has") + " no pod" + kept;
  const std::string others = missing.size() > 1 ? ", and others have no pod or wait for quota" : "";
  if (!queued(missing.front())) return first + " has no pod" + others + kept;
  return first + " waits for quota behind the gate " +
         input.members.ranks[std::size_t(missing.front().rank)]->facts->queue_gate + others + kept;
}

}  // namespace

std::string Cut(std::string text) {
  if (text.size() <= kMessageLimit) return text;
  return base::CutUtf8(text, kMessageLimit) + "…";
}

void Say(const GangInput& input, crds::GangStatus& status, std::string_view type, bool on, std::string reason,
         std::string message) {
  crds::SetCondition(status.conditions,
                     {.type = std::string(type),
                      .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse,
                      .reason = std::move(reason),
                      .message = Cut(std::move(message)),
                      .observed_generation = input.gang == nullptr ? 0 : input.gang->generation,
                      .last_transition = WholeSeconds(input.now)});
}

void Blame(crds::GangStatus& status, std::string reason, std::string message) {
  status.reason = std::move(reason);
  status.message = Cut(std::move(message));
}

crds::GangProgress ProgressOf(const GangMembers& members) {
  return {members.seen(), members.released(), members.bound()};
}

std::vector<crds::MissingRank> MissingOf(const GangInput& input) {
  return MissingOf(input, SayingAlone(input.gang->status));
}

std::set<int> LapsedRanks(const crds::Gang& gang, base::WallTime now) {
  std::set<int> lapsed;
  for (const auto& [rank, since] : gang.status.missing) {
    if (now - since >= kSlotKept) lapsed.insert(rank);
  }
  return lapsed;
}

// Also while two pods fight over a rank, or the owner has another size: what nobody uses would be kept for ever.
void SayPods(const GangInput& input, crds::GangStatus& status) {
  status.progress = ProgressOf(input.members);
  if (input.gang == nullptr || !status.placement || CannotTellRanks(input.members)) return;
  const crds::Condition* const alone = SayingAlone(input.gang->status);
  std::vector<crds::MissingRank> missing = MissingOf(input, alone);
  Say(input, status, crds::kCollected, missing.empty(), missing.empty() ? "AllPodsSeen" : "RankMissing",
      missing.empty() ? base::Counted(input.gang->spec.pods, "pod") + " seen" : WhoIsMissing(input, missing));
  if (!missing.empty() && alone != nullptr) return;
  if (missing.size() > crds::kMaxMissing) missing.resize(crds::kMaxMissing);
  status.missing = std::move(missing);
}

crds::GangStatus StatusOf(const GangInput& input) {
  crds::GangStatus status = input.gang == nullptr ? crds::GangStatus{} : input.gang->status;
  if (input.gang != nullptr) status.observed_generation = input.gang->generation;
  return status;
}

bool OnlyProgressDiffers(crds::GangStatus a, const crds::GangStatus& b) {
  a.progress = b.progress;
  a.missing = b.missing;
  return a == b;
}

crds::GangStatus PlannedStatus(const GangInput& input, const std::vector<crds::PlacedPod>& rows,
                               const placement::Quality& quality, std::vector<std::string> explanation) {
  crds::GangStatus status = StatusOf(input);
  const std::int64_t epoch = status.placement ? status.placement->epoch + 1 : 1;
  status.placement = crds::ToColumns(rows, epoch);
  status.planned_at = WholeSeconds(input.now);
  status.predicted = quality;
  status.explanation = std::move(explanation);
  SayPods(input, status);
  Blame(status, "", "");
  const bool all = std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.has_slot(); });
  Say(input, status, crds::kPlanned, true, "Planned",
      all ? "a slot for every rank is reserved" : "a slot for every rank that is not done is reserved");
  if (crds::FindCondition(status.conditions, crds::kRepairing) != nullptr) {
    Say(input, status, crds::kRepairing, false, "Repaired", "every rank has a slot");
  }
  if (crds::FindCondition(status.conditions, crds::kDegraded) != nullptr) {
    Say(input, status, crds::kDegraded, false, "Repaired", "every rank has a slot");
  }
  return status;
}

crds::GangStatus RefusedStatus(const GangInput& input, std::string reason, std::string sentence) {
  crds::GangStatus status = StatusOf(input);
  status.progress = ProgressOf(input.members);
  status.placement.reset();
  status.missing.clear();
  status.planned_at.reset();
  status.predicted.reset();
  status.explanation.clear();
  Blame(status, reason, sentence);
  if (input.members.seen() == input.members.spec.pods && input.members.spec.pods > 0) {
    Say(input, status, crds::kCollected, true, "AllPodsSeen",
        base::Counted(input.members.spec.pods, "pod") + " seen");
  }
  Say(input, status, crds::kPlanned, false, std::move(reason), std::move(sentence));
  return status;
}

crds::GangStatus DegradedStatus(const GangInput& input, std::string reason, std::string sentence) {
  crds::GangStatus status = StatusOf(input);
  SayPods(input, status);
  Blame(status, reason, sentence);
  Say(input, status, crds::kRepairing, false, reason, sentence);
  Say(input, status, crds::kDegraded, true, std::move(reason), std::move(sentence));
  return status;
}

}  // namespace heddle::extender
