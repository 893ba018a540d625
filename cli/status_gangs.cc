#include <fmt/format.h>

#include "cli/status_parts.h"
#include "cli/waiting.h"
#include "crds/device_conditions.h"
#include "crds/keys.h"
#include "crds/observation.h"

namespace heddle::cli {
namespace {

using crds::Gang;

// A gang waits so long for somebody's mistake to be mended before that is called one: reasons also come and go while
// pods are being made.
constexpr std::chrono::minutes kSettled{1};

std::string NameOf(const Gang& gang) {
  return gang.ns + "/" + crds::GangTitle(gang.spec);
}

std::optional<base::WallTime> SinceOf(const Gang& gang, std::string_view type) {
  const crds::Condition* condition = crds::FindCondition(gang.status.conditions, type);
  if (condition == nullptr || condition->last_transition == base::WallTime{}) return std::nullopt;
  return condition->last_transition;
}

bool Older(std::optional<base::WallTime> since, base::WallTime now, std::chrono::minutes age) {
  return since && now - *since >= age;
}

// Of a gang that has no plan, or not all of its pods.
std::optional<Trouble> OfWaiting(const Gang& gang, Trouble trouble, base::WallTime now) {
  trouble.order = kOfWaiting;  // whoever stands still holds GPUs meanwhile
  trouble.since = gang.created_at;
  if (const auto planned = SinceOf(gang, crds::kPlanned)) trouble.since = planned;
  if (LacksRoom(gang)) {
    if (!Older(trouble.since, now, kPatience)) return std::nullopt;
    trouble.gravity = Gravity::kWarning;
    trouble.what = "needs room: " + gang.status.reason;
    return trouble;
  }
  if (!gang.status.reason.empty()) {
    if (!Older(trouble.since, now, kSettled)) return std::nullopt;
    trouble.what = "refused: " + gang.status.reason;
    return trouble;
  }
  if (!Older(trouble.since, now, kPatience)) return std::nullopt;
  trouble.gravity = Gravity::kWarning;
  trouble.reason = "Collecting";
  trouble.what = fmt::format("has {} of {} pods", gang.status.progress.seen, gang.spec.pods);
  return trouble;
}

// Of a gang that has been planned and of which nothing worse is known.
std::optional<Trouble> OfPlanned(const Gang& gang, Trouble trouble, base::WallTime now) {
  if (crds::IsTrue(gang.status.conditions, crds::kRepairing)) {
    trouble.gravity = Gravity::kWarning;
    trouble.since = SinceOf(gang, crds::kRepairing);
    trouble.reason = "Repairing";
    trouble.what = fmt::format("is repaired: {}/{} bound", gang.status.progress.bound, gang.spec.pods);
    return trouble;
  }
  if (crds::IsTrue(gang.status.conditions, crds::kRunning)) {
    if (gang.status.reason.empty()) return std::nullopt;
    trouble.gravity = Gravity::kWarning;
    trouble.what = "runs with " + gang.status.reason;
    return trouble;
  }
  trouble.since = gang.status.planned_at;
  if (!Older(trouble.since, now, kPatience)) return std::nullopt;
  trouble.gravity = Gravity::kWarning;
  if (trouble.reason.empty()) trouble.reason = "Starting";
  trouble.what = fmt::format("starts for long: {}/{} bound", gang.status.progress.bound, gang.spec.pods);
  return trouble;
}

Trouble ByReason(const Gang& gang) {
  Trouble trouble{.order = kOfGangs, .kind = "Gang", .reason = gang.status.reason};
  trouble.names = {NameOf(gang)};
  trouble.message = gang.status.message;
  trouble.remedy = fmt::format("kubectl heddle explain gang/{} -n {}", gang.name, gang.ns);
  return trouble;
}

// Mode observe holds nothing up: what it cannot price runs, or waits for its own scheduler.
std::optional<Trouble> OfObserved(const Gang& gang) {
  if (crds::WasPriced(gang.status) || gang.status.reason.empty()) return std::nullopt;
  Trouble trouble = ByReason(gang);
  trouble.gravity = Gravity::kNote;
  trouble.order = kOfWaiting;
  trouble.what = "not priced: " + gang.status.reason;
  trouble.since = gang.status.observed->at;
  return trouble;
}

std::optional<Trouble> OfGang(const Gang& gang, base::WallTime now) {
  if (gang.status.observed) return OfObserved(gang);
  const auto& conditions = gang.status.conditions;
  Trouble trouble = ByReason(gang);
  if (crds::IsTrue(conditions, crds::kPreempted)) {
    trouble.gravity = Gravity::kNote;
    trouble.since = SinceOf(gang, crds::kPreempted);
    trouble.reason = "Preempted";
    trouble.what = "made room for " + gang.status.preempted_by;
    return trouble;
  }
  if (gang.status.reason == "NodeLost") {
    trouble.what = "stands still: NodeLost";
    return trouble;
  }
  if (crds::IsTrue(conditions, crds::kDegraded)) {
    trouble.since = SinceOf(gang, crds::kDegraded);
    trouble.what = "degraded: " + gang.status.reason;
    return trouble;
  }
  return gang.status.placement ? OfPlanned(gang, std::move(trouble), now)
                               : OfWaiting(gang, std::move(trouble), now);
}

// Of what its pods were given, which no repair of anything else puts right. The condition stays as it was once nothing
// is compared any more, so a gang without a plan, or one that gives its GPUs back, is not held to it.
std::optional<Trouble> OfDevices(const Gang& gang) {
  const auto& conditions = gang.status.conditions;
  const crds::Condition* devices = crds::FindCondition(conditions, crds::kDevicesAsPlanned);
  if (devices == nullptr || devices->status != crds::ConditionStatus::kFalse) return std::nullopt;
  if (!gang.status.placement || crds::IsTrue(conditions, crds::kPreempted)) return std::nullopt;
  Trouble trouble{.gravity = Gravity::kWarning, .order = kOfPolicies, .kind = "Gang"};
  trouble.reason = fmt::format("{}/{}", crds::kDevicesAsPlanned, devices->reason);
  trouble.what = "has other devices than planned";
  trouble.names = {NameOf(gang)};
  trouble.since = SinceOf(gang, crds::kDevicesAsPlanned);
  trouble.message = devices->message;
  // One for all of them, since the cause is one: the device plugin.
  trouble.remedy = "offer GPUs in mode Pairs with agent.devices.followPlans; docs/devices.md";
  return trouble;
}

}  // namespace

std::vector<Trouble> GangTroubles(const std::vector<Gang>& gangs, base::WallTime now) {
  std::vector<Trouble> troubles;
  for (const Gang& gang : gangs) {
    if (crds::IsTrue(gang.status.conditions, crds::kEnded)) continue;
    if (auto trouble = OfGang(gang, now)) troubles.push_back(*std::move(trouble));
    if (auto devices = OfDevices(gang)) troubles.push_back(*std::move(devices));
  }
  return troubles;
}

}  // namespace heddle::cli
