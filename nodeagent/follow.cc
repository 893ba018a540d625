#include "nodeagent/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nodeagent/health/conditions.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/ticket.h"

namespace heddle::nodeagent {
namespace {

// Sentences that stand in `now` and not in `before`.
std::vector<std::string> Added(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  std::vector<std::string> added;
  for (const std::string& sentence : now) {
    if (std::find(before.begin(), before.end(), sentence) == before.end()) added.push_back(sentence);
  }
  return added;
}

std::string Say(const crds::Condition& condition) {
  const std::string_view status = condition.status == crds::ConditionStatus::kTrue    ? "True"
                                  : condition.status == crds::ConditionStatus::kFalse ? "False"
                                                                                      : "Unknown";
  return fmt::format("{} {} ({}): {}", condition.type, status, condition.reason, condition.message);
}

}  // namespace

std::string Follow::Line(base::WallTime now, std::string_view kind, std::string_view text) const {
  const std::string time = base::FormatMicroTime(now);
  if (format_ == FollowFormat::kText) return fmt::format("{} {:<9} {}\n", time, kind, text);
  const crds::Json line{{"time", time}, {"kind", kind}, {"text", text}};
  return line.dump(-1, ' ', false, crds::Json::error_handler_t::replace) + "\n";
}

std::string Follow::First(const Sight& sight, base::WallTime now) const {
  crds::NodeTopology object;
  object.name = node_;
  object = Report(object, sight.seen, now);
  if (format_ == FollowFormat::kText) {
    PrintedFacts facts;
    facts.excluded = sight.seen.excluded;
    facts.xgmi = sight.seen.xgmi;
    facts.file_alone = sight.seen.file_alone;
    return Ticket(object, facts) + "\n";
  }
  const crds::Json line{
      {"time", base::FormatMicroTime(now)}, {"kind", "observation"}, {"object", crds::ToJson(object)}};
  return line.dump(-1, ' ', false, crds::Json::error_handler_t::replace) + "\n";
}

// Of ports where it began or ended; its words alone change as one counter after the other joins in.
std::string Follow::SayCongestion(const Observation& seen, base::WallTime now) const {
  std::string text;
  const auto say = [&](const auto& port, std::string_view what) {
    text += Line(now, "health", fmt::format("{} port {}: {}", port.first, port.second, what));
  };
  for (const auto& [port, one] : seen.congestion) {
    if (!before_.congestion.contains(port)) say(port, "congested: " + one.evidence);
  }
  for (const auto& [port, one] : before_.congestion) {
    if (!seen.congestion.contains(port)) say(port, "no longer congested");
  }
  return text;
}

// Most XIDs are a program's own fault and no condition: what is watched for is often just that.
std::string Follow::SayXids(const std::vector<GpuReading>& gpus, base::WallTime now) {
  std::string text;
  for (const GpuReading& gpu : gpus) {
    if (gpu.last_xid == 0 || std::exchange(xids_[gpu.index], gpu.last_xid) == gpu.last_xid) continue;
    text += Line(now, "health", fmt::format("GPU {} ({}): {}", gpu.index, gpu.pci, SayXid(gpu.last_xid)));
  }
  return text;
}

std::string Follow::Look(const Sight& sight, base::WallTime now) {
  std::string text;
  if (first_) {
    first_ = false;
    text = First(sight, now);
  } else {
    for (const std::string& change : topology::Diff(before_.node, sight.seen.node))
      text += Line(now, "topology", change);
    for (const HealthChange& change : sight.changes) text += Line(now, "health", change.sentence);
    for (const NvlinkChange& change : sight.nvlink_changes) text += Line(now, "health", SayChange(change));
    text += SayCongestion(sight.seen, now);
    text += SayXids(sight.gpus, now);
    const std::vector<crds::Condition> before = ConditionsOf(before_);
    for (const crds::Condition& condition : ConditionsOf(sight.seen)) {
      const crds::Condition* old = crds::FindCondition(before, condition.type);
      if (old == nullptr || old->status != condition.status || old->reason != condition.reason)
        text += Line(now, "condition", Say(condition));
    }
    for (const std::string& problem : Added(before_.problems, sight.seen.problems))
      text += Line(now, "problem", problem);
    for (const std::string& problem : Added(sight.seen.problems, before_.problems))
      text += Line(now, "problem", "over: " + problem);
  }
  before_ = sight.seen;
  return text;
}

std::string Follow::Hear(const std::vector<KernelEvent>& events, base::WallTime now) const {
  std::string text;
  for (const KernelEvent& event : events) {
    text += Line(now, "kernel",
                 event.subject.empty() ? event.what : fmt::format("{}: {}", event.subject, event.what));
  }
  return text;
}

}  // namespace heddle::nodeagent
