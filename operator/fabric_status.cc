#include "operator/fabric_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "crds/fabric_assembly.h"
#include "operator/peers.h"

namespace heddle::operators {
namespace {

using crds::Condition;
using crds::ConditionStatus;

constexpr std::size_t kNamed = 5;
constexpr std::size_t kMaxMessage = 1024;  // this and the next two are the schema's limits
constexpr std::size_t kMaxAssumptions = 16;
constexpr std::size_t kMaxAssumption = 512;

// Cuts at a character border of UTF-8.
std::string Cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

std::string Plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("f") ? "" : "s");
}

Condition Ready(const FabricView& view, const topology::Fabric* fabric) {
  const auto error = view.assembly.spec_errors.find(view.name);
  if (error != view.assembly.spec_errors.end()) {
    return {.type = std::string(crds::kReady),
            .status = ConditionStatus::kFalse,
            .reason = "SpecUnreadable",
            .message = "spec is not in force, and only what was measured counts: " + error->second};
  }
  if (fabric == nullptr) {
    return {
        .type = std::string(crds::kReady),
        .status = ConditionStatus::kFalse,
        .reason = std::string(kReasonNoNodes),
        .message =
            "No node that has reported belongs to this transport and site; delete this Fabric if none will"};
  }
  return {
      .type = std::string(crds::kReady),
      .status = ConditionStatus::kTrue,
      .reason = "Assembled",
      .message = fmt::format("{}, {}, {}, {} leaves", Plural(fabric->nodes.size(), "node"),
                             Plural(static_cast<std::size_t>(fabric->gpu_count()), "GPU"),
                             Plural(static_cast<std::size_t>(fabric->rails), "rail"), fabric->leaves.size())};
}

Condition Cabled(const topology::Fabric* fabric) {
  Condition condition{.type = std::string(crds::kCabled)};
  if (fabric == nullptr || fabric->leaves.empty()) {
    condition.reason = "LeavesUnknown";
    condition.message =
        "No node knows the switch port at the other end of a cable: on Ethernet, run lldpd on nodes and "
        "switches; on InfiniBand, give the agent /dev/infiniband/umad*";
    return condition;
  }
  if (fabric->faults.empty()) {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "AsExpected";
    condition.message = "Every cable ends where its rail and unit expect it";
    return condition;
  }
  const auto certain =
      std::count_if(fabric->faults.begin(), fabric->faults.end(), [](const auto& f) { return !f.ambiguous; });
  condition.status = certain > 0 ? ConditionStatus::kFalse : ConditionStatus::kUnknown;
  condition.reason = certain > 0 ? "CablingFaults" : "Ambiguous";
  std::vector<std::string> sentences;
  for (const topology::CablingFault& fault : fabric->faults) {
    if (certain == 0 || !fault.ambiguous) sentences.push_back(fault.sentence);
  }
  condition.message = SomeOf(sentences, kNamed, "; ");
  return condition;
}

Condition Stale(const FabricView& view, const topology::Fabric* fabric) {
  std::vector<std::string> silent;
  if (fabric != nullptr) {
    for (const topology::FabricNode& member : fabric->nodes) {
      if (view.stale_nodes.contains(member.node.name)) silent.push_back(member.node.name);
    }
  }
  if (silent.empty()) {
    return {.type = std::string(kConditionStale),
            .status = ConditionStatus::kFalse,
            .reason = "AgentsReport",
            .message = "Every agent renews its Lease"};
  }
  return {.type = std::string(kConditionStale),
          .status = ConditionStatus::kTrue,
          .reason = "AgentsSilent",
          .message = fmt::format(
              "{} of {} agents do not renew their Lease, and what they said may be old: {}; look at "
              "their heddle-nodeagent pods",
              silent.size(), fabric->nodes.size(), SomeOf(silent, kNamed))};
}

Condition Complete(const FabricView& view, const topology::Fabric* fabric) {
  std::vector<std::string> sentences;
  for (const auto& [node, error] : view.assembly.left_out) {
    sentences.push_back(fmt::format("NodeTopology {} is left out: {}", node, Cut(error, 200)));
  }
  for (const auto& [node, contradictions] : view.assembly.contradictions) {
    if (fabric == nullptr || fabric->FindNode(node) == topology::kNone) continue;
    sentences.push_back(fmt::format("{} contradicts itself: {}", node, Cut(contradictions.front(), 200)));
  }
  if (sentences.empty()) {
    return {.type = std::string(kConditionComplete),
            .status = ConditionStatus::kTrue,
            .reason = "AllReadable",
            .message = "Every report could be used"};
  }
  return {.type = std::string(kConditionComplete),
          .status = ConditionStatus::kFalse,
          .reason = "ReportsUnusable",
          .message = SomeOf(sentences, 3)};
}

Condition Uniform(const topology::Fabric* fabric) {
  const auto fewer = fabric == nullptr ? std::vector<std::string>{} : FewerThanPeers(*fabric);
  if (fewer.empty()) {
    return {.type = std::string(kConditionUniform),
            .status = ConditionStatus::kTrue,
            .reason = "AsPeers",
            .message = "No node has fewer GPUs, NICs or NVSwitches than others of its kind"};
  }
  return {.type = std::string(kConditionUniform),
          .status = ConditionStatus::kFalse,
          .reason = "FewerThanPeers",
          .message = SomeOf(fewer, kNamed, "; ") +
                     ". Look there for lost PCIe devices (dmesg: Xid 79, pciehp), and power-cycle the node"};
}

std::vector<std::string> Assumptions(const topology::Fabric& fabric) {
  std::vector<std::string> assumptions;
  for (const std::string& sentence : fabric.assumptions) {
    if (assumptions.size() < kMaxAssumptions) assumptions.push_back(Cut(sentence, kMaxAssumption));
  }
  return assumptions;
}

using FaultKey = std::tuple<std::string, std::string, int, std::string>;
FaultKey KeyOf(const topology::CablingFault& fault) {
  return {fault.node, fault.nic, fault.port, fault.sentence};
}
std::set<FaultKey> KeysOf(const crds::FabricStatus& status) {
  std::set<FaultKey> keys;
  for (const auto& fault : status.faults) keys.insert(KeyOf(fault));
  return keys;
}

}  // namespace

std::string SomeOf(const std::vector<std::string>& names, std::size_t limit, std::string_view between) {
  const std::size_t shown = std::min(names.size(), limit);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), between));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

crds::FabricStatus DesiredStatus(const FabricView& view, const crds::FabricStatus& current,
                                 std::int64_t generation, base::WallTime now) {
  const auto found = view.assembly.fabrics.find(view.name);
  const topology::Fabric* fabric = found == view.assembly.fabrics.end() ? nullptr : &found->second;
  crds::FabricStatus status;
  if (fabric != nullptr) {
    status = crds::Summarise(*fabric);
    status.assumptions = Assumptions(*fabric);
  } else {
    status.transport = crds::TransportOfName(view.name).value_or(current.transport);
    status.site = current.site;
    status.shape = current.shape;
  }
  status.observed_generation = generation;
  status.conditions = current.conditions;
  for (Condition condition :
       {Ready(view, fabric), Cabled(fabric), Stale(view, fabric), Complete(view, fabric), Uniform(fabric)}) {
    condition.message = Cut(std::move(condition.message), kMaxMessage);
    condition.observed_generation = generation;
    condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
    crds::SetCondition(status.conditions, std::move(condition));
  }
  return status;
}

FaultChanges CompareFaults(const crds::FabricStatus& before, const crds::FabricStatus& after) {
  FaultChanges changes;
  const std::set<FaultKey> old = KeysOf(before);
  const std::set<FaultKey> now = KeysOf(after);
  for (const auto& fault : after.faults) {
    if (!old.contains(KeyOf(fault))) changes.found.push_back(fault);
  }
  for (const auto& fault : before.faults) {
    if (!now.contains(KeyOf(fault))) changes.gone.push_back(fault);
  }
  return changes;
}

}  // namespace heddle::operators
