#include "operator/lossless_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "crds/kept_text.h"
#include "crds/port_name.h"
#include "lossless/lint.h"
#include "lossless/render.h"
#include "lossless/unproved.h"
#include "operator/lossless_ready.h"
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

  // The policy that told this port what it has, where that cannot be read: it may select the port still, so the port
  // keeps it, and no other policy applies there meanwhile. null = there is none.
  const std::string* KeptFor(const LosslessNode& node, const std::string& port) const {
    if (unreadable_.empty()) return nullptr;
    const LosslessWish* told = EntryOf(node.wishes, port);
    if (told == nullptr) return nullptr;
    const auto policy = std::find_if(told->policies.begin(), told->policies.end(),
                                     [&](const std::string& name) { return unreadable_.contains(name); });
    return policy == told->policies.end() ? nullptr : &*policy;
  }

  // Whether this policy alone says what the port has.
  bool Ours(std::size_t node, const Selections::value_type& selection, const LosslessPolicy& policy) const {
    return selection.second.size() == 1 && selection.second.front() == &policy &&
           KeptFor(nodes_[node], selection.first) == nullptr;
  }

  // Is this port as the policy wants it? Nothing to set is as good, and so is a NIC that cannot have it.
  bool Settled(std::size_t node, const LosslessPolicy& policy, const std::string& port) const {
    const LosslessWish* told = EntryOf(nodes_[node].wishes, port);
    const LosslessReport* report = EntryOf(nodes_[node].reports, port);
    if (told == nullptr || report == nullptr || !soundness_.at(policy.name).resolved) return false;
    const LosslessWish wanted = WishOf(policy, port, FactsOf(node, port), told);
    if (crds::EditionOf(wanted) != crds::EditionOf(*told) || !Answers(*report, policy, *told)) return false;
    if (wanted.refused) return true;
    return report->state == LosslessState::kCompliant || report->state == LosslessState::kNotApplicable;
  }

  // A conflict is settled by people, and would hold the others up for ever.
  bool AllSettled(std::size_t node, const LosslessPolicy& policy) const {
    return std::all_of(selections_[node].begin(), selections_[node].end(), [&](const auto& selection) {
      return !Ours(node, selection, policy) || Settled(node, policy, selection.first);
    });
  }

  static bool Answers(const LosslessReport& report, const LosslessPolicy& policy, const LosslessWish& told) {
    return report.edition == crds::EditionOf(told) && report.edition.policy == policy.name;
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
      if (!Ours(node, selection, policy)) return true;
      const std::string& port = selection.first;
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
            return selection != selections_[node].end() && Ours(node, *selection, policy);
          });
      if (told && !kinds.contains({nic.pci_id, nic.driver}) &&
          lossless::Render(*resolved, FactsOf(nic)).settings)
        kinds.emplace(nic.pci_id, nic.driver);
    }
    return kinds;
  }

  // Lower comes first. One that was told and fell silent may have done so because of what it was told: no other takes
  // its place then, or each would follow it. One that is silent before that would only be waited for in vain.
  int TurnOf(std::size_t node, const LosslessPolicy& policy) const {
    if (AllSettled(node, policy)) return 0;
    if (HasIt(node, policy)) return 1;
    return nodes_[node].silence.empty() ? 2 : 3;
  }

  // The first node of each kind of NIC, and then as many as the policy asks for: what one driver took says nothing of
  // another. `selected`: by name.
  std::set<std::size_t> Canaries(const LosslessPolicy& policy,
                                 const std::vector<std::pair<std::string, std::size_t>>& selected) const {
    struct Candidate {
      int turn = 0;
      std::size_t node = 0;
      std::set<NicKind> kinds;
    };
    std::vector<Candidate> candidates;
    for (const auto& [name, node] : selected) {
      std::set<NicKind> kinds = KindsOf(node, policy);
      if (!kinds.empty()) candidates.push_back({TurnOf(node, policy), node, std::move(kinds)});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.turn < b.turn; });
    std::set<std::size_t> canaries;
    std::vector<std::size_t> others;
    std::set<NicKind> seen;
    for (const Candidate& candidate : candidates) {
      const std::size_t before = seen.size();
      seen.insert(candidate.kinds.begin(), candidate.kinds.end());
      if (seen.size() > before) {
        canaries.insert(candidate.node);
      } else {
        others.push_back(candidate.node);
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
    const bool settled = std::all_of(canaries.begin(), canaries.end(),
                                     [&](std::size_t node) { return AllSettled(node, policy); });
    std::set<std::string> admitted;
    for (const auto& [name, node] : selected) {
      if (settled || canaries.contains(node) || HasIt(node, policy)) admitted.insert(name);
    }
    return admitted;
  }

  // A new generation that tells a port nothing new keeps the number of the old one, and its UID: nothing is written,
  // and what its agent reported still holds. A policy that was deleted and made anew counts from 1 again, and by its
  // UID what is reported of the old one is no answer. Nor is it where an operator told that one that said no UID:
  // other settings never have the number of those that stand there.
  LosslessWish WishOf(const LosslessPolicy& policy, const std::string& port, const lossless::PortFacts& facts,
                      const LosslessWish* told) const {
    LosslessWish wish;
    wish.ports = {port};
    wish.policies = {policy.name};
    wish.generation = policy.generation;
    wish.policy_uid = policy.uid;
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
    same.policy_uid = wish.policy_uid;
    if (same == wish) {
      wish.generation = told->generation;
      wish.policy_uid = told->policy_uid;
    } else if (told->policies == wish.policies && told->settings && wish.settings &&
               *told->settings != *wish.settings) {
      wish.generation = std::max(wish.generation, told->generation + 1);
    }
    return wish;
  }

  static LosslessWish Conflict(const std::vector<const LosslessPolicy*>& policies, const std::string& port) {
    LosslessWish wish;
    wish.ports = {port};
    for (const LosslessPolicy* policy : policies) wish.policies.push_back(policy->name);
    if (wish.policies.size() > 8) wish.policies.resize(8);
    // The names stand last: many of them are cut off, and what to do is not.
    wish.reason = crds::KeptText(
        fmt::format(
            "several policies select this port: narrow nodeSelector, roles or rails of all but one of "
            "LosslessPolicies {}",
            fmt::join(wish.policies, ", ")),
        crds::kMaxKeptReason);
    return wish;
  }

  // A policy that a newer version wrote is not one that was taken back.
  void KeepUnreadable(const LosslessNode& node, const std::string& port,
                      std::vector<LosslessWish>& wishes) const {
    if (KeptFor(node, port) == nullptr) return;
    LosslessWish kept = *EntryOf(node.wishes, port);
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
        if (selection == selections_[index].end() || KeptFor(node, port) != nullptr) {
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
    return fmt::format(
        "infiniband-nowhere: infiniBand says {}; none of the {} ports it selects is InfiniBand",
        lossless::Text(policy.spec.policy.infiniband), others);
  }

  void CountPorts(const LosslessPolicy& policy, std::size_t node, const topology::Nic& nic,
                  Kind& kind) const {
    for (const topology::NicPort& nic_port : nic.ports) {
      const std::string port = crds::PortName(nic, nic_port);
      const auto selection = selections_[node].find(port);
      if (selection == selections_[node].end() || !Ours(node, *selection, policy)) continue;
      if (kind.ports++ == 0) kind.first = fmt::format("{} {}", nodes_[node].name, port);
    }
  }

  static void AddUnproved(const LosslessReport& report, const std::string& node, const std::string& port,
                          LosslessTally& tally) {
    for (const lossless::Gap& gap : lossless::Unproved(report.gaps)) {
      LosslessTally::Open& open = tally.unproved[gap.setting];
      if (open.ports++ == 0) open.first = fmt::format("{} {}: {}", node, port, gap.reason);
    }
  }

  LosslessTally TallyOf(const LosslessPolicy& policy, const LosslessRollout& rollout) const {
    LosslessTally tally;
    tally.admitted = int(admitted_.at(policy.name).size());
    crds::LosslessCounts& counts = tally.counts;
    for (const UnreadNode& node : unread_) {
      if (!SelectsNode(policy.spec.node_selector, node.labels)) continue;
      ++counts.nodes;
      if (tally.unread++ == 0) tally.illegible = fmt::format("{}: {}", node.name, node.why);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (Selects(i, policy)) ++counts.nodes;
      bool well = true;
      for (const auto& [port, policies] : selections_[i]) {
        if (std::find(policies.begin(), policies.end(), &policy) == policies.end()) continue;
        ++counts.ports;
        if (const std::string* kept_for = KeptFor(nodes_[i], port); kept_for != nullptr) {
          ++counts.conflicting;
          if (tally.kept++ == 0)
            tally.keeper = fmt::format("; {} {}: LosslessPolicy {}", nodes_[i].name, port, *kept_for);
          continue;
        }
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
          CountPort(LosslessState::kFailed, counts);
          if (tally.refusal.empty())
            tally.refusal = fmt::format("; {} {}: {}", nodes_[i].name, port, told->reason);
          continue;
        }
        const bool current =
            report != nullptr && told != nullptr && in_force && Answers(*report, policy, *told);
        const LosslessState state = current ? report->state : LosslessState::kUnknown;
        if (in_force && state != LosslessState::kCompliant && state != LosslessState::kNotApplicable)
          well = false;
        if (!current && in_force && tally.unreported.empty())
          tally.unreported = fmt::format("{} {}", nodes_[i].name, port);
        if (current && state == LosslessState::kCompliant) AddUnproved(*report, nodes_[i].name, port, tally);
        if (current && !report->reason.empty())
          tally.first.try_emplace(report->state,
                                  fmt::format("; {} {}: {}", nodes_[i].name, port, report->reason));
        CountPort(state, counts);
      }
      if (!well && !nodes_[i].silence.empty())
        tally.silent.push_back(fmt::format("{} ({})", nodes_[i].name, nodes_[i].silence));
    }
    return tally;
  }

  crds::LosslessPolicyStatus StatusOf(const LosslessPolicy& policy, const LosslessRollout& rollout,
                                      base::WallTime now) const {
    const LosslessSoundness& soundness = soundness_.at(policy.name);
    crds::LosslessPolicyStatus status;
    status.observed_generation = policy.generation;
    status.profile = soundness.resolved ? soundness.resolved->profile : "";
    const LosslessTally tally = TallyOf(policy, rollout);
    status.counts = tally.counts;
    status.findings = soundness.findings;
    for (std::string& gap : GapsOf(policy)) {
      if (status.findings.size() < kMaxFindings) status.findings.push_back(std::move(gap));
    }
    for (const auto& [setting, open] : tally.unproved) {
      if (status.findings.size() >= kMaxFindings) break;
      status.findings.push_back(fmt::format("{} of {} compliant ports is not proved, first {}",
                                            lossless::SettingName(setting), open.ports, open.first));
    }
    std::string nowhere = NoInfiniBand(policy);
    if (!nowhere.empty() && status.findings.size() < kMaxFindings)
      status.findings.push_back(std::move(nowhere));
    status.conditions = policy.status.conditions;
    crds::SetCondition(status.conditions, LosslessReady(policy, soundness, tally, now));
    return status;
  }

  const std::map<std::string, Unreadable>& unreadable_;
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
