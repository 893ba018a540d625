#include "extender/preempted.h"

#include <chrono>

#include "extender/gang_status.h"

namespace heddle::extender {
namespace {

crds::GangStatus Set(crds::GangStatus status, bool on, std::string reason, std::string sentence,
                     base::WallTime now) {
  crds::SetCondition(status.conditions,
                     {.type = std::string(crds::kPreempted),
                      .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse,
                      .reason = std::move(reason),
                      .message = Cut(std::move(sentence)),
                      .observed_generation = status.observed_generation,
                      .last_transition = std::chrono::floor<std::chrono::seconds>(now)});
  return status;
}

}  // namespace

bool IsPreempted(const crds::Gang& gang) {
  return crds::IsTrue(gang.status.conditions, crds::kPreempted);
}

crds::GangStatus Preempted(crds::GangStatus status, const std::string& by, std::string reason,
                           std::string sentence, base::WallTime now) {
  status.preempted_by = by;
  Blame(status, reason, sentence);
  return Set(std::move(status), true, std::move(reason), std::move(sentence), now);
}

crds::GangStatus Unpreempted(crds::GangStatus status, std::string reason, std::string sentence,
                             base::WallTime now) {
  status.preempted_by.clear();
  Blame(status, "", "");
  return Set(std::move(status), false, std::move(reason), std::move(sentence), now);
}

}  // namespace heddle::extender
