#include "operator/node_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "operator/cut_text.h"
#include "switches/cables.h"

namespace heddle::operators {
namespace {

using lossless::LosslessVerdict;

// Of the one policy that selects a port; null where none does or several.
const std::string* NameOfPolicy(const crds::NodeTopology& node, const std::string& port) {
  for (const crds::LosslessWish& wish : node.spec.lossless) {
    if (wish.policies.size() == 1 &&
        std::find(wish.ports.begin(), wish.ports.end(), port) != wish.ports.end())
      return &wish.policies.front();
  }
  return nullptr;
}

// Ports of which the same is true share an entry; where there are too many, the last ones of a verdict do.
class NodeReports {
 public:
  void Add(const std::string& port, LosslessVerdict verdict, int percent, const std::string& message) {
    by_what_[{verdict, percent, message}].push_back(port);
  }

  std::vector<crds::CableReport> Take() {
    std::vector<crds::CableReport> reports;
    for (auto& [what, ports] : by_what_) {
      const auto& [verdict, percent, message] = what;
      const auto same =
          std::find_if(reports.begin(), reports.end(), [&, v = verdict, p = percent](const auto& one) {
            return one.verdict == v && one.counted_percent == p;
          });
      const bool full = reports.size() + kVerdictsAndPercents >= crds::kMaxCableEntries;
      if (full && same != reports.end() && same->ports.size() + ports.size() <= kMaxPorts) {
        same->ports.insert(same->ports.end(), ports.begin(), ports.end());
        continue;
      }
      if (reports.size() == crds::kMaxCableEntries) break;
      reports.push_back({ports, verdict, percent, message});
    }
    for (crds::CableReport& report : reports) std::sort(report.ports.begin(), report.ports.end());
    return reports;
  }

 private:
  static constexpr std::size_t kVerdictsAndPercents = 6;
  static constexpr std::size_t kMaxPorts = 128;
  std::map<std::tuple<LosslessVerdict, int, std::string>, std::vector<std::string>> by_what_;
};

// The cables of one node, one after the other.
class Judging {
 public:
  Judging(const crds::NodeTopology& node, const CableFacts& facts) : node_(node), facts_(facts) {}

  void Take(const switches::NamedCable& name, int rail, const lossless::CableOutcome& outcome) {
    const crds::LosslessPolicy* const policy = PolicyOf(node_, name.port, facts_.policies);
    if (policy == nullptr) {
      if (IsOfUnread(name.port)) Keep(name);
      return;
    }
    const bool only_proved = policy->spec.counted == crds::CountedCables::kLosslessOnly;
    if (name.at < 0 && name.twin < 0 && !only_proved) return;
    const lossless::CableFinding* const worst = switches::WorstOf(outcome);
    verdict_.counts.Add(outcome.verdict);
    if (rail != lossless::kNotSaid) {
      LosslessVerdict& of_rail = verdict_.rails.emplace(rail, LosslessVerdict::kLossless).first->second;
      of_rail = Worst(of_rail, outcome.verdict);
    }
    const std::string message =
        name.at < 0 && name.twin < 0 && !name.leaf.empty() ? MessageOfUnasked(name.leaf) : MessageOf(worst);
    reports_.Add(name.port, outcome.verdict, crds::CountedPercent(policy->spec.counted, outcome.verdict),
                 message);
    if (outcome.verdict == LosslessVerdict::kContradiction) Blame(name, worst->sentence);
  }

  // What was written of the cable stays, as far as it is still asked for. How much it counts says the policy; where
  // nobody can read that, it counts as it did.
  void Keep(const switches::NamedCable& name) {
    const crds::LosslessPolicy* const policy = PolicyOf(node_, name.port, facts_.policies);
    const auto stands =
        std::find_if(node_.spec.cables.begin(), node_.spec.cables.end(), [&](const crds::CableReport& one) {
          return std::find(one.ports.begin(), one.ports.end(), name.port) != one.ports.end();
        });
    if (stands == node_.spec.cables.end() || (policy == nullptr && !IsOfUnread(name.port))) return;
    verdict_.counts.Add(stands->verdict);
    const int percent = policy == nullptr ? stands->counted_percent
                                          : crds::CountedPercent(policy->spec.counted, stands->verdict);
    reports_.Add(name.port, stands->verdict, percent, stands->message);
    if (stands->verdict == LosslessVerdict::kContradiction) Blame(name, stands->message);
  }

  NodeVerdict Take() && {
    verdict_.reports = reports_.Take();
    return std::move(verdict_);
  }

 private:
  // Whether the one policy that selects the port cannot be read: it was not taken back.
  bool IsOfUnread(const std::string& port) const {
    const std::string* const policy = NameOfPolicy(node_, port);
    return policy != nullptr && facts_.unread_policies.contains(*policy);
  }

  std::string MessageOfUnasked(const std::string& leaf) const {
    if (!facts_.unread.contains(leaf))
      return fmt::format("no FabricSwitch is called {}, so nobody knows how it is set; make one", leaf);
    return fmt::format(
        "the operator cannot read the FabricSwitch of {}, so nobody knows how it is set; its condition "
        "Reachable says which field to correct",
        leaf);
  }

  // The first of them.
  void Blame(const switches::NamedCable& name, const std::string& sentence) {
    if (verdict_.worst.empty())
      verdict_.worst =
          fmt::format("{} {} on {} {}: {}", name.node, name.port, name.leaf, name.leaf_port, sentence);
  }

  const crds::NodeTopology& node_;
  const CableFacts& facts_;
  NodeReports reports_;
  NodeVerdict verdict_;
};

}  // namespace

const crds::LosslessPolicy* PolicyOf(const crds::NodeTopology& node, const std::string& port,
                                     const PoliciesByName& policies) {
  const std::string* const name = NameOfPolicy(node, port);
  const auto found = name == nullptr ? policies.end() : policies.find(*name);
  return found == policies.end() ? nullptr : found->second;
}

std::string MessageOf(const lossless::CableFinding* worst) {
  constexpr std::size_t kLongest = 500;  // bytes, of the 512 that a NodeTopology has for it
  if (worst == nullptr) return "";
  const std::string next = CutText(worst->next, kLongest / 2);
  // What to do is never what is cut off.
  return fmt::format("{}; {}", CutText(worst->sentence, kLongest - 2 - next.size()), next);
}

NodeVerdict JudgeNode(const crds::NodeTopology& node, std::size_t at, bool silent, const CableFacts& facts) {
  Judging judging(node, facts);
  const switches::ComparedCables& compared = facts.cables.compared();
  const auto [first, last] = facts.cables.CablesOf(at);
  for (std::size_t i = first; i < last; ++i) {
    const switches::NamedCable& name = compared.names[i];
    if (name.at >= 0 && facts.unheard[std::size_t(name.at)] != 0 && !silent) {
      judging.Keep(name);
    } else {
      judging.Take(name, compared.cables[i].rail, compared.comparison.Of(i));
    }
  }
  return std::move(judging).Take();
}

}  // namespace heddle::operators
