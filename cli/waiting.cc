#include "cli/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

namespace heddle::cli {
namespace {

constexpr std::size_t kMostNamed = 8;

// Planned anew with every change of the cluster, until there is room. What is wrong with a gang's own words is not.
bool IsQueued(const crds::Gang& gang) {
  const auto& conditions = gang.status.conditions;
  if (crds::IsTrue(conditions, crds::kEnded) || gang.status.placement || gang.status.observed) return false;
  using placement::RefusalReason;
  constexpr std::array kTriedAgain{RefusalReason::kTooLargeForDomain, RefusalReason::kTooLargeForFabric,
                                   RefusalReason::kNotEnoughFree,     RefusalReason::kRequirement,
                                   RefusalReason::kNoAllowedNode,     RefusalReason::kNotFoundInBudget};
  return std::any_of(kTriedAgain.begin(), kTriedAgain.end(), [&gang](RefusalReason reason) {
    return gang.status.reason == placement::RefusalReasonName(reason);
  });
}

// As the extender plans: those that have begun, then priority, then arrival, then name, which is its GangKey's.
auto QueueOrder(const crds::Gang& gang, const std::set<kube::ObjectKey>& begun) {
  const crds::GangSpec& spec = gang.spec;
  return std::tuple(!begun.contains({gang.ns, gang.name}), -std::int64_t(spec.priority),
                    gang.created_at.value_or(base::WallTime::max()), gang.ns,
                    spec.group.empty() ? spec.owner.uid : spec.group + "@" + gang.ns, spec.attempt);
}

std::string TitleOf(const crds::Gang& gang) {
  return gang.ns + "/" + crds::GangTitle(gang.spec);
}

std::optional<base::WallTime> SinceWhen(const crds::Gang& gang) {
  const auto& conditions = gang.status.conditions;
  if (gang.status.reason == "NodeLost") return std::nullopt;  // its conditions are those of a gang that runs
  for (const std::string_view type : {crds::kEnded, crds::kDegraded, crds::kRepairing}) {
    if (crds::IsTrue(conditions, type)) return crds::FindCondition(conditions, type)->last_transition;
  }
  for (const std::string_view type : {crds::kCollected, crds::kPlanned, crds::kReleased, crds::kRunning}) {
    const auto* condition = crds::FindCondition(conditions, type);
    if (condition != nullptr && condition->status == crds::ConditionStatus::kFalse)
      return condition->last_transition;
  }
  return gang.created_at;
}

void FindPlaceInQueue(const crds::Gang& gang, const std::vector<crds::Gang>& gangs,
                      const std::set<kube::ObjectKey>& begun, Waiting& waiting) {
  if (!IsQueued(gang)) return;
  std::vector<const crds::Gang*> queue;
  for (const crds::Gang& one : gangs) {
    if (IsQueued(one)) queue.push_back(&one);
  }
  std::sort(queue.begin(), queue.end(),
            [&begun](const auto* a, const auto* b) { return QueueOrder(*a, begun) < QueueOrder(*b, begun); });
  waiting.queued = int(queue.size());
  for (const crds::Gang* one : queue) {
    ++waiting.position;
    if (one->uid == gang.uid && one->name == gang.name && one->ns == gang.ns) return;
    waiting.ahead.push_back(TitleOf(*one) + (one->spec.priority != gang.spec.priority
                                                 ? fmt::format(" (priority {})", one->spec.priority)
                                                 : std::string()));
  }
  waiting.position = 0;  // it was read at another moment than the list
  waiting.ahead.clear();
}

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    text += (i == 0 ? "" : ", ") + WithoutControls(names[i]);
  return names.size() > kMostNamed ? fmt::format("{} and {} more", text, names.size() - kMostNamed) : text;
}

crds::Json TimeJson(const std::optional<base::WallTime>& time) {
  return time ? crds::Json(base::FormatTime(*time)) : crds::Json();
}

}  // namespace

bool LacksRoom(const crds::Gang& gang) {
  if (crds::IsTrue(gang.status.conditions, crds::kEnded) || gang.status.observed) return false;
  if (crds::IsTrue(gang.status.conditions, crds::kDegraded)) {
    return gang.status.reason != "SizeChanged" && gang.status.reason != "NoRankFile" &&
           gang.status.reason != "NoComputeDomain";
  }
  return IsQueued(gang);
}

std::optional<Waiting> WhyWaiting(const crds::Gang& gang, const std::vector<crds::Gang>& gangs,
                                  const std::vector<Holder>& holders,
                                  const std::set<kube::ObjectKey>& begun) {
  const bool runs = crds::IsTrue(gang.status.conditions, crds::kRunning);
  if ((runs && gang.status.reason.empty()) || gang.status.observed) return std::nullopt;
  Waiting waiting{.state = crds::Summarise(gang.spec, gang.status), .since = SinceWhen(gang)};
  waiting.reason = gang.status.reason;
  waiting.sentence = gang.status.message;
  if (waiting.sentence.empty()) {
    // The condition that is not met yet says what for.
    for (const std::string_view type : {crds::kCollected, crds::kPlanned, crds::kReleased, crds::kRunning}) {
      const auto* condition = crds::FindCondition(gang.status.conditions, type);
      if (condition == nullptr || condition->status != crds::ConditionStatus::kFalse) continue;
      waiting.sentence = condition->message;
      break;
    }
  }
  waiting.missing = gang.status.missing;
  FindPlaceInQueue(gang, gangs, begun, waiting);
  if (!LacksRoom(gang)) return waiting;
  for (const Holder& holder : holders) {
    Waiting::Holder line{holder.name, 0, std::nullopt};
    for (const auto& [node, gpus] : holder.gpus) line.gpus += std::popcount(gpus);
    if (holder.gang >= 0) line.since = gangs[std::size_t(holder.gang)].status.planned_at;
    waiting.holders.push_back(std::move(line));
  }
  std::stable_sort(waiting.holders.begin(), waiting.holders.end(),
                   [](const auto& a, const auto& b) { return a.gpus > b.gpus; });
  return waiting;
}

crds::Json WaitingJson(const Waiting& waiting) {
  crds::Json holders = crds::Json::array();
  for (const Waiting::Holder& holder : waiting.holders) {
    holders.push_back({{"name", holder.name}, {"gpus", holder.gpus}, {"since", TimeJson(holder.since)}});
  }
  crds::Json missing = crds::Json::array();
  for (const crds::MissingRank& one : waiting.missing) {
    missing.push_back({{"rank", one.rank}, {"since", base::FormatTime(one.since)}});
  }
  return {{"state", waiting.state},
          {"since", TimeJson(waiting.since)},
          {"reason", waiting.reason},
          {"message", waiting.sentence},
          {"position", waiting.position},
          {"queued", waiting.queued},
          {"ahead", crds::Json(waiting.ahead)},
          {"missing", std::move(missing)},
          {"holders", std::move(holders)}};
}

namespace {

std::string MissingText(const std::vector<crds::MissingRank>& missing, const Style& style) {
  Table table({"RANK WITHOUT A POD THAT MAY START", "SINCE"});
  for (std::size_t i = 0; i < missing.size() && i < kMostNamed; ++i) {
    table.Add({std::to_string(missing[i].rank), base::FormatTime(missing[i].since)});
  }
  const std::string more = missing.size() > kMostNamed
                               ? fmt::format("… and {} more\n", missing.size() - kMostNamed)
                               : std::string();
  return "\n" + table.Format(style) + more;
}

}  // namespace

std::string WaitingText(const Waiting& waiting, const Style& style) {
  std::string text = "Why waiting\n";
  text += "  " + style.Paint(WithoutControls(waiting.state), Colour::kBad) +
          (waiting.since ? " since " + base::FormatTime(*waiting.since) : "") + "\n";
  if (!waiting.sentence.empty()) text += "  " + WithoutControls(waiting.sentence) + "\n";
  if (waiting.position > 0) {
    text += fmt::format("  Place {} of {} in the queue", waiting.position, waiting.queued);
    text += waiting.ahead.empty() ? ": nobody is ahead\n" : ", behind " + Names(waiting.ahead) + "\n";
  }
  if (!waiting.missing.empty()) text += MissingText(waiting.missing, style);
  if (waiting.holders.empty()) return text;
  Table table({"WHO HOLDS GPUS", "GPUS", "SINCE"});
  for (std::size_t i = 0; i < waiting.holders.size() && i < kMostNamed; ++i) {
    const Waiting::Holder& holder = waiting.holders[i];
    table.Add(
        {holder.name, std::to_string(holder.gpus), holder.since ? base::FormatTime(*holder.since) : ""});
  }
  text += "\n" + table.Format(style);
  if (waiting.holders.size() > kMostNamed)
    text += fmt::format("… and {} more\n", waiting.holders.size() - kMostNamed);
  return text;
}

}  // namespace heddle::cli
