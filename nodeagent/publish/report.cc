#include "nodeagent/publish/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cut_utf8.h"
#include "base/version.h"
#include "crds/port_name.h"
#include "nodeagent/health/conditions.h"

namespace heddle::nodeagent {
namespace {

// What there is to say of the grants; `status` gets them where they were read, or nobody wants them.
std::optional<crds::Condition> ReportGrants(const GrantReadings* readings, const DeviceNews* devices,
                                            const topology::Node& node, crds::NodeTopologyStatus& status) {
  if (readings == nullptr) {
    const crds::Condition* old = crds::FindCondition(status.conditions, kGrantsKnown);
    return old == nullptr ? std::nullopt : std::optional(*old);
  }
  // An agent that starts hears who holds what before it knows what it offers, and so what our ids stand for.
  GrantReadings named = *readings;
  if (devices != nullptr) {
    for (const auto& [id, names] : devices->own) named.own.insert_or_assign(id, names);
  }
  JoinedGrants joined = JoinGrants(named, node);
  std::optional<crds::Condition> condition = GrantsCondition(named, joined, node);
  const bool final = readings->state == GrantsState::kRead || readings->state == GrantsState::kNotAsked;
  if (final) status.grants = std::move(joined.grants);
  return condition;
}

void WithdrawPorts(const LosslessReadings& lossless, Observation& observation) {
  for (topology::Nic& nic : observation.node.nics) {
    for (topology::NicPort& port : nic.ports) {
      const auto why = lossless.withdrawn.find(crds::PortName(nic, port));
      if (why == lossless.withdrawn.end()) continue;
      port.usable_gbps = 0;
      observation.withdrawn_ports[{nic.name, port.number}] = why->second;
    }
  }
}

// As ReportGrants.
std::optional<crds::Condition> ReportLossless(const LosslessReadings* lossless,
                                              crds::NodeTopologyStatus& status) {
  if (lossless == nullptr || !lossless->reports) {
    const crds::Condition* old = crds::FindCondition(status.conditions, kLossless);
    return old == nullptr ? std::nullopt : std::optional(*old);
  }
  status.lossless = *lossless->reports;
  return LosslessCondition(*lossless);
}

// Nothing: all of it is.
std::optional<crds::Condition> SpecCondition(std::span<const std::string> not_understood) {
  constexpr std::size_t kMaxMessage = 1000;  // the schema takes 1024
  if (not_understood.empty()) return std::nullopt;
  crds::Condition condition;
  condition.type = std::string(kSpecUnderstood);
  condition.status = crds::ConditionStatus::kFalse;
  condition.reason = "OlderThanSpec";
  condition.message = fmt::format(
      "agent {} is older than its spec, and sets nothing of what it does not know: update it; not known: {}",
      base::kVersion, fmt::join(not_understood, "; "));
  condition.message = base::CutUtf8(condition.message, kMaxMessage);
  return condition;
}

// Nothing: no switch is asked that a cable of this node ends on.
std::optional<crds::Condition> CablesCondition(const std::vector<crds::CableReport>& cables) {
  constexpr std::size_t kMaxMessage = 1000;  // the schema takes 1024
  if (cables.empty()) return std::nullopt;
  const auto worst = std::min_element(cables.begin(), cables.end(),
                                      [](const auto& a, const auto& b) { return a.verdict < b.verdict; });
  std::size_t all = 0, same = 0;
  for (const crds::CableReport& report : cables) {
    all += report.ports.size();
    if (report.verdict == worst->verdict) same += report.ports.size();
  }
  using lossless::LosslessVerdict;
  crds::Condition condition;
  condition.type = std::string(kCablesLossless);
  condition.status = worst->verdict == LosslessVerdict::kLossless        ? crds::ConditionStatus::kTrue
                     : worst->verdict == LosslessVerdict::kContradiction ? crds::ConditionStatus::kFalse
                                                                         : crds::ConditionStatus::kUnknown;
  condition.reason = std::string(lossless::LosslessVerdictName(worst->verdict));
  condition.message =
      fmt::format("{} of {} ports: {}", same, all,
                  worst->message.empty() ? "both ends of their cables go together"
                                         : fmt::format("{}: {}", worst->ports.front(), worst->message));
  condition.message = base::CutUtf8(condition.message, kMaxMessage);
  return condition;
}

}  // namespace

crds::NodeTopology Report(const crds::NodeTopology& current, const Observation& seen, base::WallTime now,
                          const GrantReadings* grants, const DeviceNews* devices,
                          const LosslessReadings* lossless, std::span<const std::string> not_understood) {
  Observation observation = seen;
  if (lossless != nullptr) WithdrawPorts(*lossless, observation);
  crds::FillLeaves(observation.node, current.spec.labels);
  now = std::chrono::floor<std::chrono::seconds>(now);
  crds::NodeTopology next = current;
  crds::NodeTopologyStatus& status = next.status;
  const std::string hash = topology::ContentHash(observation.node);
  if (status.hash != hash || !status.observed_at) status.observed_at = now;
  status.hash = hash;
  status.node = observation.node;
  status.observed_generation = current.generation;
  status.agent_version = std::string(base::kVersion);
  status.boot_id = observation.boot_id;
  std::vector<crds::Condition> conditions, found = ConditionsOf(observation);
  if (auto condition = ReportGrants(grants, devices, observation.node, status))
    found.push_back(*std::move(condition));
  if (auto condition = ReportLossless(lossless, status)) found.push_back(*std::move(condition));
  if (auto condition = SpecCondition(not_understood)) found.push_back(*std::move(condition));
  if (auto condition = CablesCondition(current.spec.cables)) found.push_back(*std::move(condition));
  status.congestion.clear();
  for (const auto& [port, one] : observation.congestion)
    status.congestion.push_back({port.first, port.second, one.since, one.evidence});
  status.devices.clear();
  if (devices != nullptr) {
    found.insert(found.end(), devices->conditions.begin(), devices->conditions.end());
    status.devices = devices->reports;
    std::sort(status.devices.begin(), status.devices.end(),
              [](const auto& a, const auto& b) { return a.resource < b.resource; });
  }
  std::sort(found.begin(), found.end(),
            [](const crds::Condition& a, const crds::Condition& b) { return a.type < b.type; });
  for (crds::Condition& condition : found) {
    if (const auto* old = crds::FindCondition(current.status.conditions, condition.type))
      conditions.push_back(*old);
    condition.observed_generation = current.generation;
    condition.last_transition = now;
    crds::SetCondition(conditions, condition);
  }
  status.conditions = std::move(conditions);
  return next;
}

void ReportStuck(const crds::NodeTopology& current, const std::vector<StuckPass>& passes, base::WallTime now,
                 crds::NodeTopology& next) {
  crds::Condition condition;
  condition.type = std::string(kDiscoveryComplete);
  condition.status = crds::ConditionStatus::kFalse;
  condition.reason = "Stuck";
  condition.message = StuckText(passes);
  condition.observed_generation = current.generation;
  condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
  std::vector<crds::Condition>& conditions = next.status.conditions;
  // Its time is that of what the object says, not of what the facts alone would say now.
  if (const auto* old = crds::FindCondition(current.status.conditions, kDiscoveryComplete)) {
    std::erase_if(conditions, [](const crds::Condition& one) { return one.type == kDiscoveryComplete; });
    crds::SetCondition(conditions, *old);
  }
  crds::SetCondition(conditions, std::move(condition));
}

}  // namespace heddle::nodeagent
