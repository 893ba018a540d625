#include "extender/gang_status.h"

#include "base/counted.h"
#include "crds/condition.h"

namespace heddle::extender {
namespace {

// The schema's limit; a refusal that names many pods may be longer.
constexpr std::size_t kMessageLimit = 1000;

base::WallTime WholeSeconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

}  // namespace

std::string Cut(std::string text) {
  if (text.size() <= kMessageLimit) return text;
  std::size_t end = kMessageLimit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end) + "…";
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

crds::GangStatus StatusOf(const GangInput& input) {
  crds::GangStatus status = input.gang == nullptr ? crds::GangStatus{} : input.gang->status;
  if (input.gang != nullptr) status.observed_generation = input.gang->generation;
  return status;
}

bool OnlyProgressDiffers(crds::GangStatus a, const crds::GangStatus& b) {
  a.progress = b.progress;
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
  status.progress = ProgressOf(input.members);
  Blame(status, "", "");
  Say(input, status, crds::kCollected, true, "AllPodsSeen", base::Counted(rows.size(), "pod") + " seen");
  Say(input, status, crds::kPlanned, true, "Planned", "a slot for every rank is reserved");
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
  status.progress = ProgressOf(input.members);
  Blame(status, reason, sentence);
  Say(input, status, crds::kRepairing, false, reason, sentence);
  Say(input, status, crds::kDegraded, true, std::move(reason), std::move(sentence));
  return status;
}

}  // namespace heddle::extender
