#include "operator/switch_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "operator/switch_status.h"
#include "switches/cables.h"
#include "switches/port_index.h"

namespace heddle::operators {
namespace {

using lossless::LosslessVerdict;
using topology::Missing;

const std::string* HostnameOf(const crds::FabricSwitch& object, const SwitchAnswers& answers) {
  const auto found = answers.find(object.name);
  const bool said = found != answers.end() && found->second.config != nullptr;
  return said ? &found->second.config->config.hostname : nullptr;
}

// Why what a switch says is not believed; empty where it is.
std::string LieOf(const crds::FabricSwitch& object, const std::string& said,
                  const std::multimap<std::string, std::string>& objects_by_hostname) {
  // Hosts know it by its chassis id, and by no name that another could have. OpenConfig need not say any.
  if (object.spec.name.empty() || said.empty()) return "";
  if (said != object.spec.name) {
    return fmt::format("it calls itself {}, and spec.name is {}: correct the address or the name", said,
                       object.spec.name);
  }
  const auto [begin, end] = objects_by_hostname.equal_range(said);
  for (auto other = begin; other != end; ++other) {
    if (other->second != object.name)
      return fmt::format(
          "FabricSwitch {} calls itself {} too: give each switch a hostname of its own, or correct an "
          "address",
          other->second, said);
  }
  return "";
}

std::vector<JudgedSwitch> ReadSwitches(const std::vector<crds::FabricSwitch>& objects,
                                       const SwitchAnswers& answers, const Silent& silent,
                                       base::WallTime now) {
  std::multimap<std::string, std::string> by_hostname;
  for (const crds::FabricSwitch& object : objects) {
    if (const std::string* said = HostnameOf(object, answers)) by_hostname.emplace(*said, object.name);
  }
  std::vector<JudgedSwitch> all;
  for (const crds::FabricSwitch& object : objects) {
    JudgedSwitch one{.object = &object, .silent = silent.switches.contains(object.name)};
    if (const auto found = answers.find(object.name); found != answers.end()) one.answer = &found->second;
    if (const std::string* said = HostnameOf(object, answers)) {
      one.stale = !one.answer->read_at || now > StaleAt(object, *one.answer->read_at);
      one.lie = LieOf(object, *said, by_hostname);
    }
    all.push_back(std::move(one));
  }
  return all;
}

// The one policy that selects a port; null where none does or several, which then apply nowhere.
const crds::LosslessPolicy* PolicyOf(const crds::NodeTopology& node, const std::string& port,
                                     const std::map<std::string, const crds::LosslessPolicy*>& policies) {
  for (const crds::LosslessWish& wish : node.spec.lossless) {
    if (wish.policies.size() != 1 ||
        std::find(wish.ports.begin(), wish.ports.end(), port) == wish.ports.end())
      continue;
    const auto found = policies.find(wish.policies.front());
    return found == policies.end() ? nullptr : found->second;
  }
  return nullptr;
}

std::string Cut(std::string text, std::size_t limit) {
  if (text.size() > limit) {
    text.resize(limit - 3);
    text += "...";
  }
  return text;
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

std::string MessageOf(const lossless::CableFinding* worst) {
  return worst == nullptr ? "" : Cut(fmt::format("{}; {}", worst->sentence, worst->next), 500);
}

crds::SwitchCable CableOf(const switches::NamedCable& name, const lossless::CableOutcome& outcome) {
  crds::SwitchCable cable{.node = name.node,
                          .port = name.port,
                          .switch_port = name.leaf_port.empty() ? "?" : name.leaf_port,
                          .verdict = outcome.verdict};
  if (const lossless::CableFinding* worst = switches::WorstOf(outcome)) {
    cable.setting = worst->setting;
    cable.host = worst->host;
    cable.leaf = worst->leaf;
    cable.message = MessageOf(worst);
  }
  return cable;
}

class Deciding {
 public:
  Deciding(std::vector<JudgedSwitch> known, const std::vector<CabledNode>& nodes,
           const Policies<crds::LosslessPolicy>& policies, const Silent& silent, base::WallTime now)
      : known_(std::move(known)), nodes_(nodes), silent_(silent), now_(now), ports_(known_.size()) {
    for (const crds::LosslessPolicy& policy : policies.read) policies_.emplace(policy.name, &policy);
  }

  SwitchVerdicts Decide() && {
    Compare();
    for (const CabledNode& node : nodes_) verdicts_.reports[node.name] = reports_[node.name].Take();
    for (JudgedSwitch& one : known_) {
      one.doubled = doubled_.contains(NameOf(*one.object));
      verdicts_.statuses[one.object->name] = StatusOf(one, now_);
      if (auto why = WhyNotBelieved(one); why && !one.silent)
        verdicts_.doubts.emplace(one.object->name, *std::move(why));
      if (!one.usable()) continue;
      Turn(StaleAt(*one.object, *one.answer->read_at));
      if (one.answer->neighbours != nullptr && !SawTooLongAgo(one))
        Turn(StaleAt(*one.object, *one.answer->saw_at));
    }
    return std::move(verdicts_);
  }

 private:
  void Turn(base::WallTime at) { verdicts_.turns = verdicts_.turns ? std::min(*verdicts_.turns, at) : at; }

  // Its LLDP may be what alone cannot be read.
  bool SawTooLongAgo(const JudgedSwitch& one) const {
    return !one.answer->saw_at || now_ > StaleAt(*one.object, *one.answer->saw_at);
  }

  void Compare() {
    std::vector<switches::KnownSwitch> asked;
    for (const JudgedSwitch& one : known_) {
      switches::KnownSwitch known{one.object->spec.name, one.object->spec.chassis_id, nullptr,
                                  Missing::kUnknown};
      known.tier = int(one.object->spec.role);
      if (one.usable()) {
        known.config = &one.answer->config->config;
        known.neighbours = one.answer->neighbours.get();
        known.neighbours_stale = SawTooLongAgo(one);
      } else if (one.stale) {
        known.missing = Missing::kStale;
      }
      asked.push_back(std::move(known));
    }
    std::vector<const crds::NodeTopology*> topologies;
    std::map<std::string_view, const crds::NodeTopology*> by_name;
    for (const CabledNode& node : nodes_) {
      topologies.push_back(node.topology.get());
      by_name.emplace(node.name, node.topology.get());
    }
    const switches::ComparedCables compared = switches::CompareBothEnds(topologies, asked, silent_.nodes);
    doubled_ = compared.doubled;
    for (std::size_t i = 0; i < compared.names.size(); ++i) {
      const switches::NamedCable& name = compared.names[i];
      Take(*by_name.at(name.node), name, compared.cables[i].rail, compared.comparison.Of(i));
      if (name.at >= 0)
        TakeToRender(*by_name.at(name.node), name, compared.cables[i].leaf, compared.comparison.Of(i));
    }
    verdicts_.between = switches::FindSwitchLinks(asked);
    for (const switches::SwitchLink& link : verdicts_.between) TakeBetween(link);
  }

  // It stands at both of its switches, each with the other as its host.
  void TakeBetween(const switches::SwitchLink& link) {
    const LosslessVerdict verdict = link.outcome.verdict;
    known_[std::size_t(link.lower_at)].counts.Add(verdict);
    known_[std::size_t(link.upper_at)].counts.Add(verdict);
    TakeMarking(link.lower_at, link.lower_port, nullptr);
    TakeMarking(link.upper_at, link.upper_port, nullptr);
    if (verdict == LosslessVerdict::kLossless) return;
    crds::SwitchCable cable =
        CableOf({link.lower, link.lower_port, link.upper, link.upper_port}, link.outcome);
    known_[std::size_t(link.upper_at)].worst.push_back(cable);
    std::swap(cable.host, cable.leaf);
    cable.node = link.upper;
    std::swap(cable.port, cable.switch_port);
    known_[std::size_t(link.lower_at)].worst.push_back(std::move(cable));
  }

  void Take(const crds::NodeTopology& node, const switches::NamedCable& name, int rail,
            const lossless::CableOutcome& outcome) {
    const crds::LosslessPolicy* const policy = PolicyOf(node, name.port, policies_);
    if (name.at >= 0) {
      JudgedSwitch& there = known_[std::size_t(name.at)];
      if (there.silent && !silent_.nodes.contains(node.name)) return Keep(node, name, policy);
      there.counts.Add(outcome.verdict);
      TakeMarking(name.at, name.leaf_port, policy);
      if (outcome.verdict != LosslessVerdict::kLossless) there.worst.push_back(CableOf(name, outcome));
    }
    if (policy == nullptr) return;
    const bool only_proved = policy->spec.counted == crds::CountedCables::kLosslessOnly;
    if (name.at < 0 && !only_proved) return;
    const lossless::CableFinding* const worst = switches::WorstOf(outcome);
    verdicts_.counts[node.name].Add(outcome.verdict);
    if (rail != lossless::kNotSaid) {
      LosslessVerdict& of_rail =
          verdicts_.rails[node.name].emplace(rail, LosslessVerdict::kLossless).first->second;
      of_rail = Worst(of_rail, outcome.verdict);
    }
    const std::string message =
        name.at < 0 && !name.leaf.empty() ? MessageOfUnasked(name.leaf) : MessageOf(worst);
    reports_[node.name].Add(name.port, outcome.verdict,
                            crds::CountedPercent(policy->spec.counted, outcome.verdict), message);
    if (outcome.verdict == LosslessVerdict::kContradiction) Blame(name, worst->sentence);
  }

  void TakeToRender(const crds::NodeTopology& node, const switches::NamedCable& name,
                    const lossless::CableEnd& leaf, const lossless::CableOutcome& outcome) {
    const crds::FabricSwitch& there = *known_[std::size_t(name.at)].object;
    if (there.spec.mode != crds::SwitchMode::kRender) return;
    HostCables& cables = verdicts_.host_cables[there.name];
    ++cables.cables;
    // Of a switch that is known only a cable in doubt is ambiguous.
    const bool doubted = !leaf.settings && leaf.settings.missing() == Missing::kAmbiguous;
    const crds::LosslessPolicy* const policy = PolicyOf(node, name.port, policies_);
    if (doubted) {
      cables.doubted.emplace(name.leaf_port, outcome.findings.front().sentence);
    } else if (policy != nullptr) {
      cables.ports[policy->name].insert(name.leaf_port);
    }
  }

  std::string MessageOfUnasked(const std::string& leaf) const {
    if (!silent_.unread.contains(leaf))
      return fmt::format("no FabricSwitch is called {}, so nobody knows how it is set; make one", leaf);
    return fmt::format(
        "the operator cannot read the FabricSwitch of {}, so nobody knows how it is set; its condition "
        "Reachable says which field to correct",
        leaf);
  }

  // Thresholds of the policy are for the ports of its hosts; what lies above may mark otherwise.
  void TakeMarking(int at, const std::string& port, const crds::LosslessPolicy* policy) {
    JudgedSwitch& there = known_[std::size_t(at)];
    if (!there.usable()) return;
    std::optional<switches::PortIndex>& ports = ports_[std::size_t(at)];
    if (!ports) ports.emplace(there.answer->config->config);
    const formats::SonicPort* found = ports->Find(port);
    if (found == nullptr || !found->bare.empty()) return;
    there.marking.Take(found->name, found->settings,
                       policy == nullptr ? std::nullopt : policy->spec.policy.marking);
  }

  // What was written of the cable stays, as far as it is still asked for.
  void Keep(const crds::NodeTopology& node, const switches::NamedCable& name,
            const crds::LosslessPolicy* policy) {
    const auto stands =
        std::find_if(node.spec.cables.begin(), node.spec.cables.end(), [&](const crds::CableReport& one) {
          return std::find(one.ports.begin(), one.ports.end(), name.port) != one.ports.end();
        });
    if (policy == nullptr || stands == node.spec.cables.end()) return;
    verdicts_.counts[node.name].Add(stands->verdict);
    reports_[node.name].Add(name.port, stands->verdict,
                            crds::CountedPercent(policy->spec.counted, stands->verdict), stands->message);
    if (stands->verdict == LosslessVerdict::kContradiction) Blame(name, stands->message);
  }

  void Blame(const switches::NamedCable& name, const std::string& sentence) {
    verdicts_.worst.try_emplace(name.node, fmt::format("{} {} on {} {}: {}", name.node, name.port, name.leaf,
                                                       name.leaf_port, sentence));
  }

  std::vector<JudgedSwitch> known_;
  const std::vector<CabledNode>& nodes_;
  const Silent& silent_;
  const base::WallTime now_;
  std::vector<std::optional<switches::PortIndex>> ports_;  // of the switches, once one is looked for
  std::map<std::string, const crds::LosslessPolicy*> policies_;
  std::map<std::string, NodeReports> reports_;
  std::set<std::string> doubled_;
  SwitchVerdicts verdicts_;
};

}  // namespace

base::WallTime StaleAt(const crds::FabricSwitch& object, base::WallTime said) {
  return said + std::chrono::seconds(object.spec.poll_seconds) * kPollsUntilStale;
}

SwitchVerdicts DecideVerdicts(const std::vector<crds::FabricSwitch>& fabric_switches,
                              const SwitchAnswers& answers, const std::vector<CabledNode>& nodes,
                              const Policies<crds::LosslessPolicy>& policies, const Silent& silent,
                              base::WallTime now) {
  return Deciding(ReadSwitches(fabric_switches, answers, silent, now), nodes, policies, silent, now).Decide();
}

}  // namespace heddle::operators
