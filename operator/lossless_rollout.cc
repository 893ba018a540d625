#include "operator/lossless_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "crds/port_name.h"
#include "lossless/lint.h"
#include "lossless/render.h"
#include "operator/selection.h"

namespace heddle::operators {
namespace {

using crds::LosslessPolicy;
using crds::LosslessReport;
using crds::LosslessState;
using crds::LosslessWish;

constexpr std::size_t kMaxFindings = 64;
constexpr std::size_t kMaxPorts = 128;  // of one entry, as the schema has it

// By port of one node, the policies that select it, in the order of their names.
using Selections = std::map<std::string, std::vector<const LosslessPolicy*>>;

template <class Entry>
const Entry* EntryOf(const std::vector<Entry>& entries, const std::string& port) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return std::find(entry.ports.begin(), entry.ports.end(), port) != entry.ports.end();
  });
  return found == entries.end() ? nullptr : &*found;
}

// Ports that are told the same share an entry, in the order of their first ports.
void Add(std::vector<LosslessWish>& wishes, LosslessWish wish) {
  for (LosslessWish& known : wishes) {
    LosslessWish same = known;
    same.ports = wish.ports;
    if (same != wish || known.ports.size() >= kMaxPorts) continue;
    known.ports.insert(known.ports.end(), wish.ports.begin(), wish.ports.end());
    std::sort(known.ports.begin(), known.ports.end());
    return;
  }
  wishes.push_back(std::move(wish));
}

class Decision {
 public:
  Decision(const LosslessPolicies& policies, const std::vector<LosslessNode>& nodes,
           const std::vector<UnreadNode>& unread)
      : unreadable_(policies.unreadable), nodes_(nodes), unread_(unread) {
    for (const LosslessPolicy& policy : policies.read) {
      if (!policy.deleted_at) policies_.push_back(&policy);
    }
    std::sort(policies_.begin(), policies_.end(),
              [](const LosslessPolicy* a, const LosslessPolicy* b) { return a->name < b->name; });
    for (const LosslessPolicy* policy : policies_) soundness_.emplace(policy->name, CheckPolicy(*policy));
    for (const LosslessNode& node : nodes_) selections_.push_back(SelectionsOf(node));
  }

  LosslessRollout Decide(base::WallTime now) {
    LosslessRollout rollout;
    for (const LosslessPolicy* policy : policies_) admitted_[policy->name] = AdmittedNodes(*policy);
    for (std::size_t i = 0; i < nodes_.size(); ++i) rollout.wishes[nodes_[i].name] = WishesOf(i);
    for (const LosslessPolicy* policy : policies_)
      rollout.statuses[policy->name] = StatusOf(*policy, rollout, now);
    return rollout;
  }

 private:
  Selections SelectionsOf(const LosslessNode& node) const {
    Selections selections;
    for (const LosslessPolicy* policy : policies_) {
      if (!SelectsNode(policy->spec.node_selector, node.labels)) continue;
      for (std::string& port : SelectedPorts(policy->spec, node.node))
        selections[std::move(port)].push_back(policy);
    }
    return selections;
  }

  bool Selects(std::size_t node, const LosslessPolicy& policy) const {
    return std::any_of(selections_[node].begin(), selections_[node].end(), [&](const auto& selection) {
      return std::find(selection.second.begin(), selection.second.end(), &policy) != selection.second.end();
    });
  }

  // Is this port as the policy wants it? Nothing to set is as good, and so is a NIC that cannot have it.
  bool Settled(std::size_t node, const LosslessPolicy& policy, const std::string& port) const {
    const LosslessWish* told = EntryOf(nodes_[node].wishes, port);
    const LosslessReport* report = EntryOf(nodes_[node].reports, port);
    if (told == nullptr || report == nullptr || !soundness_.at(policy.name).resolved) return false;
    const LosslessWish wanted = WishOf(policy, port, FactsOf(node, port), told);
    if (wanted.generation != told->generation || !Answers(*report, policy, told->generation)) return false;
    if (wanted.refused) return true;
    return report->state == LosslessState::kCompliant || report->state == LosslessState::kNotApplicable;
  }

  static bool Answers(const LosslessReport& report, const LosslessPolicy& policy, std::int64_t generation) {
    return report.policy == policy.name && report.generation == generation;
  }

  static lossless::PortFacts FactsOf(const topology::Nic& nic) {
    return {nic.transport, nic.pci_id, nic.driver};
  }

  lossless::PortFacts FactsOf(std::size_t node, const std::string& port) const {
    for (const topology::Nic& nic : nodes_[node].node.nics) {
      for (const topology::NicPort& nic_port : nic.ports) {
        if (crds::PortName(nic, nic_port) == port) return FactsOf(nic);
      }
    }
    return {};
  }

  // Whether a node was told already all that this generation has to tell it: that a canary drifts or reboots long after
  // is no reason to take it back, nor to call its ports unknown.
  bool HasIt(std::size_t node, const LosslessPolicy& policy) const {
    if (!soundness_.at(policy.name).resolved) return false;
    return std::all_of(selections_[node].begin(), selections_[node].end(), [&](const auto& selection) {
      const auto& [port, by] = selection;
      if (by.size() != 1 || by.front() != &policy) return true;
      const LosslessWish* told = EntryOf(nodes_[node].wishes, port);
      if (told == nullptr) return false;
      LosslessWish same = *told;
      same.ports = {port};
      return WishOf(policy, port, FactsOf(node, port), told) == same;
    });
  }

  using NicKind = std::pair<std::string, std::string>;  // PCI id and driver

  // The kinds of NICs of a node that this policy sets. One that is only told why not shows nothing of what it does.
  std::set<NicKind> KindsOf(std::size_t node, const LosslessPolicy& policy) const {
    std::set<NicKind> kinds;
    const auto& resolved = soundness_.at(policy.name).resolved;
    if (!resolved) return kinds;
    for (const topology::Nic& nic : nodes_[node].node.nics) {
      const bool told =
          std::any_of(nic.ports.begin(), nic.ports.end(), [&](const topology::NicPort& nic_port) {
            const auto selection = selections_[node].find(crds::PortName(nic, nic_port));
            return selection != selections_[node].end() && selection->second == std::vector{&policy};
          });
      if (told && !kinds.contains({nic.pci_id, nic.driver}) &&
          lossless::Render(*resolved, FactsOf(nic)).settings)
        kinds.emplace(nic.pci_id, nic.driver);
    }
    return kinds;
  }

  // The first node by name of each kind of NIC, and then as many by name as the policy asks for: what one driver took
  // says nothing of another. `selected`: by name.
  std::set<std::size_t> Canaries(const LosslessPolicy& policy,
                                 const std::vector<std::pair<std::string, std::size_t>>& selected) const {
    std::set<std::size_t> canaries;
    std::vector<std::size_t> others;
    std::set<NicKind> seen;
    for (const auto& [name, node] : selected) {
      const std::set<NicKind> kinds = KindsOf(node, policy);
      if (kinds.empty()) continue;
      const std::size_t before = seen.size();
      seen.insert(kinds.begin(), kinds.end());
      if (seen.size() > before) {
        canaries.insert(node);
      } else {
        others.push_back(node);
      }
    }
    for (const std::size_t node : others) {
      if (canaries.size() >= std::size_t(policy.spec.canary)) break;
      canaries.insert(node);
    }
    return canaries;
  }

  // The nodes that may have this generation.
  std::set<std::string> AdmittedNodes(const LosslessPolicy& policy) const {
    std::vector<std::pair<std::string, std::size_t>> selected;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (Selects(i, policy)) selected.emplace_back(nodes_[i].name, i);
    }
    std::sort(selected.begin(), selected.end());
    const bool careful = policy.spec.canary > 0 && policy.spec.mode == crds::LosslessMode::kApply;
    const std::set<std::size_t> canaries = careful ? Canaries(policy, selected) : std::set<std::size_t>();
    bool settled = true;
    for (const std::size_t node : canaries) {
      for (const auto& [port, by] : selections_[node]) {
        // A conflict is settled by people, and would hold the others up for ever.
        if (by.size() == 1 && by.front() == &policy) settled = settled && Settled(node, policy, port);
      }
    }
    std::set<std::string> admitted;
    for (const auto& [name, node] : selected) {
      if (settled || canaries.contains(node) || HasIt(node, policy)) admitted.insert(name);
    }
    return admitted;
  }

  // A new generation that tells a port nothing new keeps the number of the old one: nothing is written, and
  // what its agent reported still holds.
  LosslessWish WishOf(const LosslessPolicy& policy, const std::string& port, const lossless::PortFacts& facts,
                      const LosslessWish* told) const {
    LosslessWish wish;
    wish.ports = {port};
    wish.policies = {policy.name};
    wish.generation = policy.generation;
    wish.mode = policy.spec.mode;
    wish.on_drift = policy.spec.on_drift;
    lossless::Rendering rendering = lossless::Render(*soundness_.at(policy.name).resolved, facts);
    wish.settings = std::move(rendering.settings);
    wish.reason = std::move(rendering.reason);
    wish.refused = rendering.refused;
    wish.infiniband = rendering.infiniband;
    if (told == nullptr) return wish;
    LosslessWish same = *told;
    same.ports = wish.ports;
    same.generation = wish.generation;
    if (same == wish) wish.generation = told->generation;
    return wish;
  }

  static LosslessWish Conflict(const std::vector<const LosslessPolicy*>& policies, const std::string& port) {
    LosslessWish wish;
    wish.ports = {port};
    for (const LosslessPolicy* policy : policies) wish.policies.push_back(policy->name);
    if (wish.policies.size() > 8) wish.policies.resize(8);
    wish.reason = fmt::format(
        "LosslessPolicies {} select this port: narrow nodeSelector, roles or rails of all but one",
        fmt::join(wish.policies, ", "));
    return wish;
  }

  // A policy that a newer version wrote is not one that was taken back.
  void KeepUnreadable(const LosslessNode& node, const std::string& port,
                      std::vector<LosslessWish>& wishes) const {
    const LosslessWish* old = EntryOf(node.wishes, port);
    if (old == nullptr ||
        std::none_of(old->policies.begin(), old->policies.end(),
                     [&](const std::string& policy) { return unreadable_.contains(policy); })) {
      return;
    }
    LosslessWish kept = *old;
    kept.ports = {port};
    Add(wishes, std::move(kept));
  }

  std::vector<LosslessWish> WishesOf(std::size_t index) const {
    const LosslessNode& node = nodes_[index];
    std::vector<LosslessWish> wishes;
    for (const topology::Nic& nic : node.node.nics) {
      for (const topology::NicPort& nic_port : nic.ports) {
        const std::string port = crds::PortName(nic, nic_port);
        const auto selection = selections_[index].find(port);
        if (selection == selections_[index].end()) {
          KeepUnreadable(node, port, wishes);
          continue;
        }
        const auto& policies = selection->second;
        if (policies.size() > 1) {
          Add(wishes, Conflict(policies, port));
          continue;
        }
        const LosslessPolicy& policy = *policies.front();
        if (soundness_.at(policy.name).resolved && admitted_.at(policy.name).contains(node.name)) {
          Add(wishes, WishOf(policy, port, FactsOf(nic), EntryOf(node.wishes, port)));
          continue;
        }
        // Held up: what this policy said before stays in force.
        const LosslessWish* old = EntryOf(node.wishes, port);
        if (old == nullptr || old->policies != std::vector{policy.name}) continue;
        LosslessWish kept = *old;
        kept.ports = {port};
        Add(wishes, std::move(kept));
      }
    }
    return wishes;
  }

  // What the ports of a policy are, and of each kind of trouble the first, in words.
  struct Tally {
    crds::LosslessCounts counts;
    std::map<LosslessState, std::string> first;
    int of_policies = 0;     // of the conflicting: those that other policies select, too
    std::string rivalry;     // the first of these
    int refused = 0;         // of the failed: those whose NIC cannot have it
    std::string refusal;     // the first of these
    std::string unreported;  // the first port of which no agent has said how it is: "gpu-001 mlx5_0:1"
    int unread = 0;          // of the nodes: those of which nobody knows what ports they have
    std::string illegible;   // the first of these, and why
  };

  // Ports of one kind of NIC, and what that does without.
  struct Kind {
    std::vector<lossless::Gap> gaps;
    int ports = 0;
    std::string first;
  };

  // A sentence for each setting that NICs do without.
  std::vector<std::string> GapsOf(const LosslessPolicy& policy) const {
    const LosslessSoundness& soundness = soundness_.at(policy.name);
    if (!soundness.resolved) return {};
    std::map<std::tuple<topology::Transport, std::string, std::string>, Kind> kinds;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!Selects(i, policy) || !admitted_.at(policy.name).contains(nodes_[i].name)) continue;
      for (const topology::Nic& nic : nodes_[i].node.nics) {
        const auto [kind, fresh] = kinds.try_emplace({nic.transport, nic.pci_id, nic.driver});
        if (fresh) kind->second.gaps = lossless::Render(*soundness.resolved, FactsOf(nic)).gaps;
        if (!kind->second.gaps.empty()) CountPorts(policy, i, nic, kind->second);
      }
    }
    std::vector<std::string> sentences;
    for (const auto& [facts, kind] : kinds) {
      for (const lossless::Gap& gap : kind.gaps) {
        if (kind.ports == 0) continue;
        sentences.push_back(fmt::format("{} of {} ports (first {}) is left out: {}",
                                        lossless::SettingName(gap.setting), kind.ports, kind.first,
                                        gap.reason));
      }
    }
    return sentences;
  }

  // What is said for InfiniBand in a policy that selects other ports only; empty = there is nothing to say of it.
  std::string NoInfiniBand(const LosslessPolicy& policy) const {
    if (policy.spec.policy.infiniband.empty()) return {};
    int others = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const auto& [port, policies] : selections_[i]) {
        if (std::find(policies.begin(), policies.end(), &policy) == policies.end()) continue;
        if (FactsOf(i, port).transport == topology::Transport::kInfiniBand) return {};
        ++others;
      }
    }
    if (others == 0) return {};
    return fmt::format("infiniband-nowhere: infiniBand says {}; none of the {} ports it selects is InfiniBand",
                       lossless::Text(policy.spec.policy.infiniband), others);
  }

  void CountPorts(const LosslessPolicy& policy, std::size_t node, const topology::Nic& nic,
                  Kind& kind) const {
    for (const topology::NicPort& nic_port : nic.ports) {
      const std::string port = crds::PortName(nic, nic_port);
      const auto selection = selections_[node].find(port);
      if (selection == selections_[node].end() || selection->second != std::vector{&policy}) continue;
      if (kind.ports++ == 0) kind.first = fmt::format("{} {}", nodes_[node].name, port);
    }
  }

  Tally TallyOf(const LosslessPolicy& policy, const LosslessRollout& rollout) const {
    Tally tally;
    crds::LosslessCounts& counts = tally.counts;
    for (const UnreadNode& node : unread_) {
      if (!SelectsNode(policy.spec.node_selector, node.labels)) continue;
      ++counts.nodes;
      if (tally.unread++ == 0) tally.illegible = fmt::format("{}: {}", node.name, node.why);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (Selects(i, policy)) ++counts.nodes;
      for (const auto& [port, policies] : selections_[i]) {
        if (std::find(policies.begin(), policies.end(), &policy) == policies.end()) continue;
        ++counts.ports;
        if (policies.size() > 1) {
          ++counts.conflicting;
          ++tally.of_policies;
          if (tally.rivalry.empty())
            tally.rivalry = fmt::format("; {} {}: {}", nodes_[i].name, port, Conflict(policies, port).reason);
          continue;
        }
        const LosslessReport* report = EntryOf(nodes_[i].reports, port);
        const LosslessWish* told = EntryOf(rollout.wishes.at(nodes_[i].name), port);
        const bool in_force =
            soundness_.at(policy.name).resolved && admitted_.at(policy.name).contains(nodes_[i].name);
        if (told != nullptr && in_force && told->refused) {
          ++tally.refused;
          Count(LosslessState::kFailed, counts);
          if (tally.refusal.empty())
            tally.refusal = fmt::format("; {} {}: {}", nodes_[i].name, port, told->reason);
          continue;
        }
        const bool current =
            report != nullptr && told != nullptr && in_force && Answers(*report, policy, told->generation);
        Count(current ? report->state : LosslessState::kUnknown, counts);
        if (!current && tally.unreported.empty())
          tally.unreported = fmt::format("{} {}", nodes_[i].name, port);
        if (current && !report->reason.empty())
          tally.first.try_emplace(report->state,
                                  fmt::format("; {} {}: {}", nodes_[i].name, port, report->reason));
      }
    }
    return tally;
  }

  static void Count(LosslessState state, crds::LosslessCounts& counts) {
    switch (state) {
      case LosslessState::kCompliant:
        ++counts.compliant;
        break;
      case LosslessState::kDrifted:
        ++counts.drifted;
        break;
      case LosslessState::kFailed:
        ++counts.failed;
        break;
      case LosslessState::kNotApplicable:
        ++counts.not_applicable;
        break;
      case LosslessState::kConflict:
        ++counts.conflicting;
        break;
      case LosslessState::kPending:
        ++counts.pending;
        break;
      case LosslessState::kUnknown:
        ++counts.unknown;
        break;
    }
  }

  crds::LosslessPolicyStatus StatusOf(const LosslessPolicy& policy, const LosslessRollout& rollout,
                                      base::WallTime now) const {
    const LosslessSoundness& soundness = soundness_.at(policy.name);
    crds::LosslessPolicyStatus status;
    status.observed_generation = policy.generation;
    status.profile = soundness.resolved ? soundness.resolved->profile : "";
    const Tally tally = TallyOf(policy, rollout);
    status.counts = tally.counts;
    status.findings = soundness.findings;
    for (std::string& gap : GapsOf(policy)) {
      if (status.findings.size() < kMaxFindings) status.findings.push_back(std::move(gap));
    }
    std::string nowhere = NoInfiniBand(policy);
    if (!nowhere.empty() && status.findings.size() < kMaxFindings)
      status.findings.push_back(std::move(nowhere));
    status.conditions = policy.status.conditions;
    crds::SetCondition(status.conditions, ReadyOf(policy, soundness, tally, now));
    return status;
  }

  crds::Condition ReadyOf(const LosslessPolicy& policy, const LosslessSoundness& soundness,
                          const Tally& tally, base::WallTime now) const {
    crds::Condition ready;
    ready.type = std::string(crds::kReady);
    ready.status = crds::ConditionStatus::kFalse;
    ready.observed_generation = policy.generation;
    ready.last_transition = now;
    std::tie(ready.reason, ready.message) = Worst(policy, soundness, tally);
    if (tally.unread > 0) AddUnread(tally, ready);
    if (ready.reason == "Compliant") ready.status = crds::ConditionStatus::kTrue;
    return ready;
  }

  // Nobody knows how those stand, so it is not well with all of them.
  static void AddUnread(const Tally& tally, crds::Condition& ready) {
    if (ready.reason == "Compliant" || ready.reason == "NothingSelected") ready.reason = "Waiting";
    ready.message += fmt::format(
        "; nobody knows what {} more nodes have, because they cannot be read (bring their agents and "
        "the operator to one version), first {}",
        tally.unread, tally.illegible);
  }

  // Reason and message of the worst that there is to say. A canary that failed is said before what it failed of:
  // nothing goes on until somebody looks at it.
  std::pair<std::string, std::string> Worst(const LosslessPolicy& policy, const LosslessSoundness& soundness,
                                            const Tally& tally) const {
    const crds::LosslessCounts& counts = tally.counts;
    const auto of = [&tally](LosslessState state) {
      const auto first = tally.first.find(state);
      return first == tally.first.end() ? std::string() : first->second;
    };
    if (!soundness.resolved) return {"Refused", soundness.refusal};
    if (counts.ports == 0)
      return {"NothingSelected", "no port of any node is selected: see nodeSelector, roles and rails"};
    if (tally.of_policies > 0) {
      return {"Conflict", fmt::format("{} ports are selected by other LosslessPolicies too, and none of them "
                                      "applies there{}",
                                      tally.of_policies, tally.rivalry)};
    }
    const std::string trouble = of(LosslessState::kConflict) + of(LosslessState::kFailed);
    const int known = counts.nodes - tally.unread;
    if (const std::size_t admitted = admitted_.at(policy.name).size(); int(admitted) < known) {
      const std::string drifted = of(LosslessState::kDrifted);
      if (trouble.empty() && drifted.empty()) {
        return {"Canary", fmt::format("{} of {} nodes have it; the others wait until every port of these is "
                                      "compliant{}",
                                      admitted, known, of(LosslessState::kPending))};
      }
      return {"CanaryStopped",
              fmt::format("{} of {} nodes have it and went no further: it is not well with one of "
                          "these; mend it or change the policy{}{}",
                          admitted, known, trouble, drifted)};
    }
    if (counts.conflicting > 0)
      return {"Conflict",
              fmt::format("{} ports are written by somebody else, too{}", counts.conflicting, trouble)};
    if (tally.refused > 0) {
      return {"Refused", fmt::format("{} ports are told nothing, because their NICs cannot have it{}",
                                     tally.refused, tally.refusal)};
    }
    if (counts.failed > 0)
      return {"Failed", fmt::format("{} ports could not be set{}", counts.failed, trouble)};
    if (counts.drifted > 0) {
      return {"Drifted", fmt::format("{} ports are not as they should be{}", counts.drifted,
                                     of(LosslessState::kDrifted))};
    }
    if (counts.pending > 0) {
      return {"Applying", fmt::format("{} ports are to be set, one of a node at a time{}", counts.pending,
                                      of(LosslessState::kPending))};
    }
    if (counts.unknown > 0) {
      const std::string unknown = of(LosslessState::kUnknown);
      if (!unknown.empty())
        return {"Waiting", fmt::format("{} ports are not known to be well{}", counts.unknown, unknown)};
      return {"Waiting",
              fmt::format("{} ports have not been reported yet, first {}: `kubectl heddle doctor` says "
                          "whether its agent runs and may write its NodeTopology",
                          counts.unknown, tally.unreported)};
    }
    if (counts.compliant == 0 && counts.not_applicable > 0) {
      return {"Compliant",
              fmt::format("nothing is to be set on the hosts of its {} ports: they are InfiniBand, EFA or "
                          "without RDMA{}",
                          counts.not_applicable,
                          policy.spec.policy.infiniband.empty()
                              ? ""
                              : "; what infiniBand says goes into NCCL's configuration of their nodes")};
    }
    return {"Compliant",
            fmt::format("{} ports are as they should be{}", counts.compliant, of(LosslessState::kCompliant))};
  }

  const std::set<std::string>& unreadable_;
  const std::vector<LosslessNode>& nodes_;
  const std::vector<UnreadNode>& unread_;
  std::vector<const LosslessPolicy*> policies_;  // by name
  std::map<std::string, LosslessSoundness> soundness_;
  std::vector<Selections> selections_;                     // of each node
  std::map<std::string, std::set<std::string>> admitted_;  // by policy, the nodes that may have it
};

}  // namespace

LosslessSoundness CheckPolicy(const crds::LosslessPolicy& policy) {
  LosslessSoundness soundness;
  auto resolved = lossless::Resolve(policy.spec.policy);
  if (!resolved) {
    soundness.refusal = resolved.error().message;
    return soundness;
  }
  const auto findings = lossless::Lint({lossless::SubjectOf(policy.name, *resolved)});
  for (const lossless::Finding& finding : findings) {
    std::string sentence = fmt::format("{}: {}; {}", finding.rule, finding.fact, finding.contrary);
    if (finding.severity == lossless::Severity::kError && soundness.refusal.empty())
      soundness.refusal = fmt::format("{} ({})", sentence, finding.remedy);
    if (soundness.findings.size() < kMaxFindings) soundness.findings.push_back(std::move(sentence));
  }
  if (soundness.refusal.empty()) soundness.resolved = *std::move(resolved);
  return soundness;
}

std::vector<std::string> SelectedPorts(const crds::LosslessPolicySpec& spec, const topology::Node& node) {
  std::vector<std::string> ports;
  for (const topology::Nic& nic : node.nics) {
    const bool role = spec.roles.empty()
                          ? nic.role == topology::NicRole::kCompute
                          : std::find(spec.roles.begin(), spec.roles.end(), nic.role) != spec.roles.end();
    const bool rail = spec.rails.empty() || (nic.rail && std::find(spec.rails.begin(), spec.rails.end(),
                                                                   *nic.rail) != spec.rails.end());
    if (!role || !rail) continue;
    for (const topology::NicPort& port : nic.ports) ports.push_back(crds::PortName(nic, port));
  }
  return ports;
}

LosslessRollout DecideRollout(const LosslessPolicies& policies, const std::vector<LosslessNode>& nodes,
                              base::WallTime now, const std::vector<UnreadNode>& unread) {
  return Decision(policies, nodes, unread).Decide(now);
}

}  // namespace heddle::operators
