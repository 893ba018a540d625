#include "extender/milestones.h"

#include <algorithm>

namespace heddle::extender {
namespace {

using std::chrono::seconds;

seconds Between(base::WallTime since, base::WallTime now) {
  // Another process's clock may have written the start.
  return std::max(seconds(0), std::chrono::floor<seconds>(now - since));
}

// When all pods had been seen, before a plan was made.
base::WallTime SeenAt(const crds::Gang& before, base::WallTime now) {
  const auto* collected = crds::FindCondition(before.status.conditions, crds::kCollected);
  if (collected == nullptr) return before.created_at.value_or(now);
  return collected->status == crds::ConditionStatus::kTrue ? collected->last_transition : now;
}

}  // namespace

Milestones MilestonesOf(const crds::Gang& before, const crds::GangStatus& after, base::WallTime now) {
  Milestones reached;
  if (!after.placement) return reached;
  const bool first = !before.status.placement;
  const auto* repairing = crds::FindCondition(after.conditions, crds::kRepairing);
  reached.repair = !first && after.placement->epoch > before.status.placement->epoch &&
                   repairing != nullptr && repairing->status == crds::ConditionStatus::kTrue &&
                   repairing->reason == "SlotLost";
  if (first || reached.repair) reached.planned = after.predicted;
  if (first) {
    reached.until_planned = Between(SeenAt(before, now), now);
    reached.at_once = crds::FindCondition(before.status.conditions, crds::kPlanned) == nullptr;
  }
  const auto* collected = crds::FindCondition(after.conditions, crds::kCollected);
  if (crds::IsTrue(after.conditions, crds::kRunning) &&
      !crds::IsTrue(before.status.conditions, crds::kRunning) && collected != nullptr &&
      collected->status == crds::ConditionStatus::kTrue) {
    reached.until_running = Between(collected->last_transition, now);
    constexpr seconds kAtOnce{2};
    reached.at_once = !after.planned_at || *after.planned_at - collected->last_transition <= kAtOnce;
  }
  return reached;
}

}  // namespace heddle::extender
