#include "nodeagent/qos/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/cut_utf8.h"
#include "lossless/unproved.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessReport;
using crds::LosslessState;

constexpr std::string_view kNoWatchdog = "NoWatchdog";
constexpr std::string_view kUnproved = "Unproved";
constexpr std::size_t kMaxMessage = 1000;  // the schema takes 1024
constexpr std::size_t kMaxPorts = 128;     // of one entry, as the schema has it
constexpr std::size_t kWholeEntries = 8;   // what was read is a kilobyte of each; more of them leave it out

// Worst first. Pending is better than Unknown: it is known what is done about it.
constexpr std::array kWorst{LosslessState::kConflict,     LosslessState::kFailed,  LosslessState::kDrifted,
                            LosslessState::kUnknown,      LosslessState::kPending, LosslessState::kCompliant,
                            LosslessState::kNotApplicable};

std::size_t Weigh(LosslessState state) {
  return std::size_t(std::find(kWorst.begin(), kWorst.end(), state) - kWorst.begin());
}

bool SameButPorts(const LosslessReport& a, const LosslessReport& b) {
  LosslessReport same = a;
  same.ports = b.ports;
  return same == b;
}

void Merge(LosslessReport report, std::vector<LosslessReport>& groups) {
  for (LosslessReport& group : groups) {
    if (!SameButPorts(group, report) || group.ports.size() >= kMaxPorts) continue;
    group.ports.insert(group.ports.end(), report.ports.begin(), report.ports.end());
    std::sort(group.ports.begin(), group.ports.end());
    return;
  }
  groups.push_back(std::move(report));
}

std::vector<LosslessReport> Merged(std::vector<LosslessReport> reports) {
  std::vector<LosslessReport> groups;
  for (LosslessReport& report : reports) Merge(std::move(report), groups);
  return groups;
}

std::string PortsText(const std::vector<std::string>& ports) {
  constexpr std::size_t kShown = 4;
  const auto end = ports.begin() + std::ptrdiff_t(std::min(ports.size(), kShown));
  std::string text = fmt::format("{}", fmt::join(ports.begin(), end, ", "));
  if (ports.size() > kShown) text += fmt::format(" and {} more", ports.size() - kShown);
  return text;
}

std::string DriftText(const LosslessReport& report) {
  std::string text;
  for (const crds::PortDrift& drift : report.drift) {
    text += fmt::format("{}{}: want {}, have {}", text.empty() ? "" : "; ",
                        lossless::SettingName(drift.drift.setting), drift.drift.want, drift.drift.have);
    if (!drift.writer.empty()) text += fmt::format(" ({})", drift.writer);
  }
  return text;
}

}  // namespace

std::vector<LosslessReport> GroupReports(std::vector<LosslessReport> ports) {
  std::vector<LosslessReport> groups = Merged(ports);
  if (groups.size() <= kWholeEntries) return groups;
  for (LosslessReport& report : ports) report.have.reset();
  groups = Merged(std::move(ports));
  if (groups.size() <= crds::kMaxLosslessEntries) return groups;
  std::stable_sort(groups.begin(), groups.end(), [](const LosslessReport& a, const LosslessReport& b) {
    return Weigh(a.state) < Weigh(b.state);
  });
  LosslessReport rest;
  rest.reason = "there are more different ports than an object holds: ask the agent's metrics and its log";
  for (std::size_t i = crds::kMaxLosslessEntries - 1; i < groups.size(); ++i) {
    rest.ports.insert(rest.ports.end(), groups[i].ports.begin(), groups[i].ports.end());
    rest.edition.policy = groups[i].edition.policy;
  }
  std::sort(rest.ports.begin(), rest.ports.end());
  if (rest.ports.size() > kMaxPorts) rest.ports.resize(kMaxPorts);
  groups.resize(crds::kMaxLosslessEntries - 1);
  groups.push_back(std::move(rest));
  return groups;
}

const LosslessReport* ReportOf(const std::vector<LosslessReport>& reports, const std::string& port) {
  for (const LosslessReport& report : reports) {
    if (std::find(report.ports.begin(), report.ports.end(), port) != report.ports.end()) return &report;
  }
  return nullptr;
}

std::optional<crds::Condition> LosslessCondition(const LosslessReadings& readings) {
  if (!readings.reports || (readings.reports->empty() && readings.problems.empty())) return std::nullopt;
  std::vector<LosslessReport> sorted = *readings.reports;
  std::stable_sort(sorted.begin(), sorted.end(), [](const LosslessReport& a, const LosslessReport& b) {
    return Weigh(a.state) < Weigh(b.state);
  });
  crds::Condition condition;
  condition.type = std::string(kLossless);
  condition.status = crds::ConditionStatus::kTrue;
  condition.reason = "Compliant";
  condition.message = "every port is as its LosslessPolicy says";
  std::vector<std::string> sentences;
  for (const LosslessReport& report : sorted) {
    if (report.state == LosslessState::kCompliant && !report.reason.empty()) {
      condition.reason = kNoWatchdog;
      condition.message += fmt::format("; {}: {}", PortsText(report.ports), report.reason);
    }
    const auto unproved = lossless::Unproved(report.gaps);
    if (report.state == LosslessState::kCompliant && !unproved.empty()) {
      // A pause without an end is the worse of both.
      if (condition.reason != kNoWatchdog) condition.reason = kUnproved;
      condition.message +=
          fmt::format("; {}: not proved: {}", PortsText(report.ports), lossless::UnprovedText(unproved));
    }
    if (Weigh(report.state) >= Weigh(LosslessState::kCompliant)) continue;
    sentences.push_back(fmt::format("{} {}: {}", PortsText(report.ports),
                                    crds::LosslessStateName(report.state), report.reason));
  }
  sentences.insert(sentences.end(), readings.problems.begin(), readings.problems.end());
  const bool none = std::all_of(sorted.begin(), sorted.end(), [](const LosslessReport& report) {
    return report.state == LosslessState::kNotApplicable;
  });
  if (!sentences.empty()) {
    const bool of_ports = !sorted.empty() && Weigh(sorted.front().state) < Weigh(LosslessState::kCompliant);
    const LosslessState worst = of_ports ? sorted.front().state : LosslessState::kUnknown;
    condition.reason = of_ports ? std::string(crds::LosslessStateName(worst)) : "JournalUnreadable";
    const bool unknown = worst == LosslessState::kUnknown || worst == LosslessState::kPending;
    condition.status = unknown ? crds::ConditionStatus::kUnknown : crds::ConditionStatus::kFalse;
    condition.message = fmt::format("{}", fmt::join(sentences, "; "));
  } else if (none) {
    condition.reason = "NotApplicable";
    condition.message = fmt::format("{}: {}", PortsText(sorted.front().ports), sorted.front().reason);
  }
  condition.message = base::CutUtf8(condition.message, kMaxMessage);
  return condition;
}

std::vector<QosEvent> EventsOf(const LosslessReport* before, const LosslessReport& now) {
  const LosslessState was = before == nullptr ? LosslessState::kUnknown : before->state;
  const std::string& port = now.ports.front();
  std::vector<QosEvent> events;
  // Conflicts of policies are the operator's to tell: they are no event of a node.
  const bool of_writers = !now.drift.empty();
  if (now.state == LosslessState::kConflict && was != now.state && of_writers)
    events.push_back({true, kLosslessConflict, port, now.reason});
  if (now.state == LosslessState::kFailed && was != now.state)
    events.push_back({true, kLosslessFailed, port, now.reason});
  const bool same = before != nullptr && before->edition == now.edition;
  if (same && was == LosslessState::kCompliant && !now.drift.empty())
    events.push_back({true, kLosslessDrift, port, DriftText(now)});
  return events;
}

std::vector<QosEvent> JoinEvents(const std::vector<QosEvent>& events) {
  std::vector<std::pair<QosEvent, std::vector<std::string>>> groups;
  for (const QosEvent& event : events) {
    QosEvent what = event;
    what.port.clear();
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&what](const auto& group) { return group.first == what; });
    if (known == groups.end()) {
      groups.emplace_back(std::move(what), std::vector<std::string>{event.port});
    } else {
      known->second.push_back(event.port);
    }
  }
  std::vector<QosEvent> joined;
  for (auto& [event, ports] : groups) {
    event.note = fmt::format("{}: {}", PortsText(ports), event.note);
    joined.push_back(std::move(event));
  }
  return joined;
}

}  // namespace heddle::nodeagent
