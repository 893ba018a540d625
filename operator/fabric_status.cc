#include "operator/fabric_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "crds/fabric_assembly.h"
#include "operator/cut_text.h"
#include "operator/fabric_switches.h"
#include "operator/peers.h"

namespace heddle::operators {
namespace {

using crds::Condition;
using crds::ConditionStatus;

constexpr std::size_t kNamed = 5;
constexpr std::size_t kMaxMessage = 1024;  // this and the next two are the schema's limits
constexpr std::size_t kMaxAssumptions = 16;
constexpr std::size_t kMaxAssumption = 512;

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
      .message = fmt::format("{}, {}, {}, {} {}", base::Counted(fabric->nodes.size(), "node"),
                             base::Counted(fabric->gpu_count(), "GPU"), base::Counted(fabric->rails, "rail"),
                             fabric->leaves.size(), fabric->leaves.size() == 1 ? "leaf" : "leaves")};
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
    sentences.push_back(fmt::format("NodeTopology {} is left out: {}", node, CutText(error, 200)));
  }
  for (const auto& [node, contradictions] : view.assembly.contradictions) {
    if (fabric == nullptr || fabric->FindNode(node) == topology::kNone) continue;
    sentences.push_back(fmt::format("{} contradicts itself: {}", node, CutText(contradictions.front(), 200)));
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

// Of the fabric's nodes together.
crds::CableCounts CountCables(const FabricView& view, const topology::Fabric& fabric) {
  crds::CableCounts all;
  if (fabric.transport != topology::Transport::kRoce) return all;
  for (const topology::FabricNode& member : fabric.nodes) {
    const auto found = view.verdicts->nodes.find(member.node.name);
    if (found == view.verdicts->nodes.end()) continue;
    const crds::CableCounts& counts = found->second->counts;
    all.cables += counts.cables;
    all.lossless += counts.lossless;
    all.contradicting += counts.contradicting;
    all.unproved += counts.unproved;
  }
  return all;
}

using Rails = std::map<int, lossless::LosslessVerdict>;

// A rail is as good as the worst of its cables.
Rails RailsOf(const SwitchVerdicts& verdicts, const topology::Fabric& fabric) {
  Rails rails;
  for (const topology::FabricNode& member : fabric.nodes) {
    const auto found = verdicts.nodes.find(member.node.name);
    if (found == verdicts.nodes.end()) continue;
    for (const auto& [rail, verdict] : found->second->rails) {
      const auto [known, fresh] = rails.emplace(rail, verdict);
      if (!fresh) known->second = Worst(known->second, verdict);
    }
  }
  return rails;
}

// "rail 3 Contradiction, rails 0-2 and 4-7 Lossless"
std::string TextOf(const Rails& rails) {
  std::map<lossless::LosslessVerdict, std::vector<std::pair<int, int>>> ranges;
  for (const auto& [rail, verdict] : rails) {
    auto& of = ranges[verdict];
    if (!of.empty() && of.back().second + 1 == rail)
      of.back().second = rail;
    else
      of.emplace_back(rail, rail);
  }
  std::string text;
  for (const auto& [verdict, of] : ranges) {
    std::vector<std::string> words;
    for (const auto& [first, last] : of)
      words.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
    const bool one = of.size() == 1 && of.front().first == of.front().second;
    text += fmt::format("{}rail{} {} {}", text.empty() ? "" : ", ", one ? "" : "s", fmt::join(words, " and "),
                        LosslessVerdictName(verdict));
  }
  return text;
}

// Of the cables between this fabric's switches those whose ends contradict each other, as sentences.
std::vector<std::string> ContradictingBetween(const SwitchVerdicts& verdicts,
                                              const topology::Fabric& fabric) {
  std::vector<std::string> sentences;
  // A leaf of InfiniBand may have the name of a switch that is asked.
  if (fabric.transport != topology::Transport::kRoce) return sentences;
  const std::set<std::string> ours = SwitchesOf(fabric, verdicts.between);
  for (const switches::SwitchLink& link : verdicts.between) {
    const bool contradicts = link.outcome.verdict == lossless::LosslessVerdict::kContradiction;
    if (contradicts && ours.contains(link.lower))
      sentences.push_back(fmt::format("{} {} <-> {} {}: {}", link.lower, link.lower_port, link.upper,
                                      link.upper_port, link.outcome.findings.front().sentence));
  }
  return sentences;
}

// Nothing where nothing is judged: no cable of a host counts, and none between switches contradicts.
std::optional<Condition> Lossless(const FabricView& view, const topology::Fabric& fabric,
                                  const crds::CableCounts& cables) {
  const std::vector<std::string> between = ContradictingBetween(*view.verdicts, fabric);
  if (cables.cables == 0 && between.empty()) return std::nullopt;
  Condition condition{.type = std::string(kConditionLossless)};
  const std::string by_rail = TextOf(RailsOf(*view.verdicts, fabric));
  const std::string rails = by_rail.empty() ? "" : fmt::format(" ({})", by_rail);
  if (cables.contradicting > 0) {
    std::vector<std::string> worst;
    for (const topology::FabricNode& member : fabric.nodes) {
      const auto found = view.verdicts->nodes.find(member.node.name);
      if (found != view.verdicts->nodes.end() && !found->second->worst.empty())
        worst.push_back(found->second->worst);
    }
    condition.status = ConditionStatus::kFalse;
    condition.reason = "Contradiction";
    condition.message = fmt::format("{} of {} cables{}: {}", cables.contradicting, cables.cables, rails,
                                    SomeOf(worst, 3, "; "));
  } else if (!between.empty()) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = "Contradiction";
  } else if (cables.unproved > 0) {
    condition.reason = "Unproved";
    condition.message = fmt::format("of {} of {} cables nobody can say{}: kubectl get fabricswitches -o wide",
                                    cables.unproved, cables.cables, rails);
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "Lossless";
    condition.message = fmt::format("both ends of all {} cables go together{}", cables.cables, rails);
  }
  if (!between.empty())
    condition.message += fmt::format("{}{} between switches: {}", condition.message.empty() ? "" : "; ",
                                     base::Counted(between.size(), "cable"), SomeOf(between, 3, "; "));
  return condition;
}

Condition LinksHealthy(const std::vector<topology::Suspect>& suspects) {
  if (suspects.empty()) {
    return {.type = std::string(kConditionLinksHealthy),
            .status = ConditionStatus::kTrue,
            .reason = "NothingSuspected",
            .message = "Nothing stands against any link that is watched"};
  }
  std::vector<std::string> sentences;
  sentences.reserve(suspects.size());
  for (const topology::Suspect& suspect : suspects) sentences.push_back(topology::SentenceOf(suspect));
  return {.type = std::string(kConditionLinksHealthy),
          .status = ConditionStatus::kFalse,
          .reason = std::string(topology::SymptomName(suspects.front().symptom)),
          .message = SomeOf(sentences, kNamed, "; ")};
}

Condition UfmReachable(const UfmAnswer& ufm) {
  Condition condition{.type = std::string(kConditionUfmReachable)};
  if (ufm.trouble) {
    condition.status = ConditionStatus::kFalse;
    condition.reason = ufm.trouble->reason;
    condition.message = ufm.trouble->message;
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "Answers";
    condition.message = "it proved who it is, and answered";
  }
  return condition;
}

// Of one that does not answer at all UfmReachable says why.
Condition UfmCounted(const UfmAnswer& ufm) {
  Condition condition{.type = std::string(kConditionUfmCounted), .status = ConditionStatus::kFalse};
  const SwitchCounting& counting = ufm.counting;
  const std::string last = counting.counted_at
                               ? "something was last counted at " + base::FormatTime(*counting.counted_at)
                               : "nothing was ever counted";
  if (ufm.trouble) {
    condition.reason = "NotAsked";
    condition.message = fmt::format("UFM does not answer (UfmReachable says why); {}", last);
  } else if (counting.trouble) {
    condition.reason = counting.trouble->reason;
    condition.message = fmt::format("{}; {}", counting.trouble->message, last);
  } else if (counting.noted > 0) {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "CountersReset";
    condition.message = fmt::format(
        "of {} ports a counter went back within the last 10 min, as after a boot or a reset: {}{}",
        counting.noted, fmt::join(counting.notes, "; "),
        counting.noted > int(counting.notes.size()) ? "; ..." : "");
  } else {
    condition.status = ConditionStatus::kTrue;
    condition.reason = "Counted";
    condition.message = fmt::format("{} ports of switches are counted", counting.ports);
  }
  return condition;
}

// Evidence counts on while a fault lasts; who is suspected, and of what, does not change with it.
bool SameSuspects(const std::vector<topology::Suspect>& a, const std::vector<topology::Suspect>& b) {
  const auto same = [](const topology::Suspect& one, const topology::Suspect& other) {
    return one.kind == other.kind && one.name == other.name && one.symptom == other.symptom &&
           one.links == other.links && one.gangs == other.gangs;
  };
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin(), same);
}

std::vector<std::string> Assumptions(const topology::Fabric& fabric) {
  std::vector<std::string> assumptions;
  for (const std::string& sentence : fabric.assumptions) {
    if (assumptions.size() < kMaxAssumptions) assumptions.push_back(CutText(sentence, kMaxAssumption));
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
  std::vector<Condition> conditions{Ready(view, fabric), Cabled(fabric), Stale(view, fabric),
                                    Complete(view, fabric), Uniform(fabric)};
  if (fabric != nullptr) {
    status.cables = view.verdicts == nullptr ? current.cables : CountCables(view, *fabric);
    status.suspects = SameSuspects(view.suspects, current.suspects) ? current.suspects : view.suspects;
  }
  if (view.verdicts != nullptr) {
    std::optional<Condition> of_cables;
    if (fabric != nullptr) of_cables = Lossless(view, *fabric, status.cables);
    if (of_cables)
      conditions.push_back(*std::move(of_cables));
    else
      std::erase_if(status.conditions, [](const Condition& one) { return one.type == kConditionLossless; });
  }
  conditions.push_back(LinksHealthy(status.suspects));
  if (!view.asks_ufm) {
    std::erase_if(status.conditions, [](const Condition& one) {
      return one.type == kConditionUfmReachable || one.type == kConditionUfmCounted;
    });
  } else if (view.ufm != nullptr) {
    conditions.push_back(UfmReachable(*view.ufm));
    conditions.push_back(UfmCounted(*view.ufm));
  }
  for (Condition& condition : conditions) {
    condition.message = CutText(condition.message, kMaxMessage);
    condition.observed_generation = generation;
    condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
    crds::SetCondition(status.conditions, std::move(condition));
  }
  return status;
}

SuspectChanges CompareSuspects(const crds::FabricStatus& before, const crds::FabricStatus& after) {
  const auto without = [](const crds::FabricStatus& from, const crds::FabricStatus& those) {
    std::vector<topology::Suspect> left;
    for (const topology::Suspect& suspect : from.suspects) {
      const auto same = [&](const topology::Suspect& other) {
        return other.kind == suspect.kind && other.name == suspect.name && other.symptom == suspect.symptom;
      };
      if (std::none_of(those.suspects.begin(), those.suspects.end(), same)) left.push_back(suspect);
    }
    return left;
  };
  return {without(after, before), without(before, after)};
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
