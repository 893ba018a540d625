#include "operator/switch_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "operator/cut_text.h"
#include "operator/policy_writes.h"

namespace heddle::operators {
namespace {

using crds::Condition;
using crds::ConditionStatus;

constexpr std::size_t kMaxConditionMessage = 1024;  // the schema's
constexpr std::chrono::minutes kReadAtEvery(10);

// Each answer would be a write; so it is as old as that, while nothing else changes.
std::optional<base::WallTime> ReadAt(const crds::FabricSwitch& object, const SwitchAnswer& answer) {
  if (!answer.read_at) return object.status.read_at;
  const base::WallTime read = std::chrono::floor<std::chrono::seconds>(*answer.read_at);
  const auto& written = object.status.read_at;
  return written && *written <= read && read - *written < kReadAtEvery ? written : std::optional(read);
}

bool IsConnecting(const JudgedSwitch& one) {
  return one.answer == nullptr || (one.answer->connecting && !one.answer->trouble);
}

Condition Reachable(const JudgedSwitch& one) {
  Condition condition{.type = std::string(crds::kReachable)};
  if (IsConnecting(one)) {
    condition.reason = "Connecting";
    condition.message = "it has not been asked yet";
  } else if (one.answer->trouble) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = one.answer->trouble->reason;
    condition.message = one.answer->trouble->message;
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "Answers";
    condition.message = "it proved who it is, and answered";
  }
  return condition;
}

Condition Compared(const JudgedSwitch& one) {
  Condition condition{.type = std::string(crds::kCompared), .status = ConditionStatus::kFalse};
  const auto no = [&](std::string reason, std::string message) {
    condition.reason = std::move(reason);
    condition.message = std::move(message);
    return condition;
  };
  if (auto why = WhyNotBelieved(one)) return no(std::move(why->reason), std::move(why->message));
  const std::string& name = NameOf(*one.object);
  const bool read = one.answer != nullptr && one.answer->config != nullptr;
  if (one.object->spec.dialect == crds::SwitchDialect::kOpenConfig)
    return no("DialectLacksPfc",
              fmt::format("OpenConfig has no path for PFC and its watchdog, so no cable is proved; {}",
                          read ? "speed, FEC, MTU and neighbours were held against the other ends"
                               : "nor has it said speed, FEC or MTU of any port"));
  if (one.counts.cables == 0)
    return no("NoCables", fmt::format("no host says by LLDP that a cable of its ends on {}", name));
  condition.status = ConditionStatus::kTrue;
  condition.reason = "Compared";
  condition.message = fmt::format("both ends of {} cables were held against each other", one.counts.cables);
  return condition;
}

Condition Lossless(const JudgedSwitch& one, const crds::FabricSwitchStatus& status) {
  Condition condition{.type = std::string(crds::kCablesLossless)};
  const auto worst_of = [&](int count) {
    const crds::SwitchCable& worst = status.worst_cables.front();
    return fmt::format("{} of {} cables; {} <-> {} {}: {}", count, one.counts.cables, worst.switch_port,
                       worst.node, worst.port, worst.message);
  };
  if (one.counts.cables == 0) {
    condition.reason = "NoCables";
    condition.message = "no cable to a host is known";
  } else if (one.counts.contradicting > 0) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = "Contradiction";
    condition.message = worst_of(one.counts.contradicting);
  } else if (one.counts.unproved > 0) {
    condition.reason = "Unproved";
    condition.message = worst_of(one.counts.unproved);
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "Lossless";
    condition.message = fmt::format("both ends of all {} cables go together", one.counts.cables);
  }
  return condition;
}

Condition MarksEcn(const JudgedSwitch& one) {
  Condition condition{.type = std::string(kMarksEcn)};
  const PortsMarking& marking = one.marking;
  if (marking.ports == 0) {
    condition.reason = "NotKnown";
    condition.message = "no cable is known whose port says how it marks what PFC protects";
  } else if (marking.faults > 0) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = switches::MarkingReasonName(*marking.gravest);
    condition.message =
        fmt::format("{} of {} ports with a cable; {}", marking.faults, marking.ports, marking.first);
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "Marks";
    condition.message =
        fmt::format("{} ports with a cable mark what PFC protects in good time", marking.ports);
  }
  return condition;
}

// What is missed of a switch that is counted all the same.
constexpr std::string_view kFlapsByState =
    "it does not count flaps (SONiC does from 202405 on), so that changes of a port's state from one "
    "sample to the next are counted: a link that goes down and up again in between is not seen";

// Of a switch that does not answer at all Reachable says why.
Condition Counted(const JudgedSwitch& one) {
  Condition condition{.type = std::string(kCounted)};
  if (IsConnecting(one)) {
    condition.reason = "Connecting";
    condition.message = "it has not been asked yet";
    return condition;
  }
  const SwitchCounting& counting = one.answer->counting;
  const bool by_state = counting.flaps == switches::FlapsBy::kState;
  if (counting.trouble) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = counting.trouble->reason;
    condition.message = fmt::format(
        "{}; {}", counting.trouble->message,
        counting.counted_at ? "something of it was last counted at " + base::FormatTime(*counting.counted_at)
                            : "nothing of it was ever counted");
  } else if (!counting.counted_at) {
    condition.reason = "NotYet";
    condition.message = "its counters have not been read yet";
  } else if (counting.noted > 0) {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "CountersReset";
    condition.message = fmt::format(
        "of {} ports a counter went back within the last 10 min, as after a "
        "boot or a reset: {}{}",
        counting.noted, fmt::join(counting.notes, "; "),
        counting.noted > int(counting.notes.size()) ? "; ..." : "");
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = by_state ? "FlapsByState" : "Counts";
    condition.message = fmt::format("the counters of {} ports are read", counting.ports);
  }
  if (by_state && condition.status == ConditionStatus::kTrue)
    condition.message += fmt::format("; {}", kFlapsByState);
  return condition;
}

void Set(std::initializer_list<Condition> conditions, const crds::FabricSwitch& object, base::WallTime now,
         crds::FabricSwitchStatus& status) {
  for (Condition condition : conditions) {
    condition.message = CutText(condition.message, kMaxConditionMessage);
    condition.observed_generation = object.generation;
    condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
    crds::SetCondition(status.conditions, std::move(condition));
  }
}

// What stands, but that it cannot be reached, if that is so.
crds::FabricSwitchStatus Kept(const JudgedSwitch& one, base::WallTime now) {
  crds::FabricSwitchStatus status = one.object->status;
  status.observed_generation = one.object->generation;
  if (!IsConnecting(one)) Set({Reachable(one), Counted(one)}, *one.object, now, status);
  return status;
}

}  // namespace

void PortsMarking::Take(const std::string& port, const lossless::PortSettings& settings,
                        const std::optional<lossless::EcnMarking>& wanted) {
  if (!settings.pfc || settings.pfc->empty() || !settings.ecn) return;
  ++ports;
  const auto fault = switches::FindMarkingFault(settings, wanted);
  if (!fault) return;
  ++faults;
  if (gravest && *gravest <= fault->reason) return;
  gravest = fault->reason;
  first = port + ": " + fault->sentence;
}

std::optional<SwitchTrouble> WhyNotBelieved(const JudgedSwitch& judged) {
  const bool open_config = judged.object->spec.dialect == crds::SwitchDialect::kOpenConfig;
  const bool read = judged.answer != nullptr && judged.answer->config != nullptr;
  if (!read && !open_config) return SwitchTrouble{"NotRead", "nobody knows how it is set: see Reachable"};
  if (!judged.lie.empty()) return SwitchTrouble{"NameInDoubt", judged.lie};
  if (judged.stale) {
    return SwitchTrouble{"Stale", fmt::format("it has not answered for {} polls, and what it said then "
                                              "proves nothing now",
                                              kPollsUntilStale)};
  }
  if (judged.doubled) {
    return SwitchTrouble{
        "NameInDoubt",
        fmt::format("another FabricSwitch has the name {} too, and hosts know switches by their system "
                    "names: give each switch a hostname of its own, or delete one of both",
                    NameOf(*judged.object))};
  }
  return std::nullopt;
}

const std::string& NameOf(const crds::FabricSwitch& object) {
  return object.spec.name.empty() ? object.spec.chassis_id : object.spec.name;
}

crds::FabricSwitchStatus StatusOfNotUnderstood(const crds::FabricSwitch& known, const std::string& why,
                                               base::WallTime now) {
  SwitchAnswer answer;
  answer.trouble = SwitchTrouble{std::string(kNotUnderstood), why};
  answer.counting.trouble = SwitchTrouble{"NotAsked", "it is not asked: see Reachable"};
  answer.connecting = false;
  answer.version = known.status.version;
  crds::FabricSwitchStatus status = StatusOf({.object = &known, .answer = &answer}, now);
  status.observed_generation = known.status.observed_generation;  // the other was never in force
  status.model = known.status.model;
  return status;
}

crds::FabricSwitchStatus StatusOf(const JudgedSwitch& judged, base::WallTime now) {
  const crds::FabricSwitch& object = *judged.object;
  // Of one that was not understood before nothing stands that a new operator would have to keep.
  const crds::Condition* const reached = crds::FindCondition(object.status.conditions, crds::kReachable);
  const bool stands = crds::FindCondition(object.status.conditions, crds::kCablesLossless) != nullptr &&
                      (reached == nullptr || reached->reason != kNotUnderstood);
  if (judged.silent && stands) return Kept(judged, now);
  crds::FabricSwitchStatus status;
  status.observed_generation = object.generation;
  status.render_config_map = object.status.render_config_map;
  status.counts.cables = judged.counts;
  status.worst_cables = judged.worst;
  std::stable_sort(status.worst_cables.begin(), status.worst_cables.end(),
                   [](const auto& a, const auto& b) { return a.verdict < b.verdict; });
  if (status.worst_cables.size() > crds::kMaxWorstCables) status.worst_cables.resize(crds::kMaxWorstCables);
  if (judged.answer != nullptr) {
    status.version = judged.answer->version;
    if (judged.answer->config != nullptr) {
      status.model = judged.answer->config->model;
      status.counts.ports =
          int(judged.answer->config->config.ports.size() + judged.answer->config->config.bare.size());
    }
    status.read_at = ReadAt(object, *judged.answer);
  } else {
    status.read_at = object.status.read_at;
  }
  status.conditions = object.status.conditions;
  Set({Reachable(judged), Compared(judged), Lossless(judged, status), MarksEcn(judged), Counted(judged)},
      object, now, status);
  return status;
}

}  // namespace heddle::operators
