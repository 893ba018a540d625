#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/condition.h"
#include "crds/node_lossless.h"

namespace heddle::nodeagent {

// What the node says of its lossless settings.
struct LosslessReadings {
  // Nothing: the spec is not known yet, and what was published stays.
  std::optional<std::vector<crds::LosslessReport>> reports;
  std::map<std::string, std::string> withdrawn;  // ports that placement is to go past, and why
  std::vector<std::string> problems;             // of the journal, as sentences
  friend bool operator==(const LosslessReadings&, const LosslessReadings&) = default;
};

// Ports of which the same is true share an entry, in the order of their first ports. More entries than an object
// holds lose what was read first, then the last entries share one that names their ports.
std::vector<crds::LosslessReport> GroupReports(std::vector<crds::LosslessReport> ports);
// The entry of a port; null = none.
const crds::LosslessReport* ReportOf(const std::vector<crds::LosslessReport>& reports,
                                     const std::string& port);

// True while every port with settings is as its policy says; NoWatchdog where that leaves a pause without an end, else
// Unproved where nobody could read, or set, ECN, CNPs or the ToS of connections (lossless::Unproved). Its reason is the
// worst state of any, its message says of each port that is not compliant what is wrong, the worst first. Nothing: no
// policy speaks of this node.
inline constexpr std::string_view kLossless = "Lossless";
std::optional<crds::Condition> LosslessCondition(const LosslessReadings& readings);

// What people are told of a port.
struct QosEvent {
  bool warning = false;
  std::string_view reason;  // one of those below
  std::string port, note;
  friend bool operator==(const QosEvent&, const QosEvent&) = default;
};
inline constexpr std::string_view kLosslessApplied = "LosslessApplied";
inline constexpr std::string_view kLosslessDrift = "LosslessDrift";
inline constexpr std::string_view kLosslessConflict = "LosslessConflict";
inline constexpr std::string_view kLosslessFailed = "LosslessFailed";
inline constexpr std::string_view kLosslessRolledBack = "LosslessRolledBack";
inline constexpr std::string_view kLosslessPortInUse = "LosslessPortInUse";
// What a new report tells that the one before did not; null = there was none.
std::vector<QosEvent> EventsOf(const crds::LosslessReport* before, const crds::LosslessReport& now);
// "mlx5_0:1, mlx5_1:1: note": ports with the same to say are one event.
std::vector<QosEvent> JoinEvents(const std::vector<QosEvent>& events);

}  // namespace heddle::nodeagent
