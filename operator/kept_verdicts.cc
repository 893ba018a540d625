#include "operator/kept_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

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
    if (const std::string* said = HostnameOf(object, answers); said && one.answer) {
      one.stale = !one.answer->read_at || now > StaleAt(object, *one.answer->read_at);
      one.lie = LieOf(object, *said, by_hostname);
    }
    all.push_back(std::move(one));
  }
  return all;
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

// Its LLDP may be what alone cannot be read.
bool SawTooLongAgo(const JudgedSwitch& one, base::WallTime now) {
  return !one.answer->saw_at || now > StaleAt(*one.object, *one.answer->saw_at);
}

std::vector<switches::KnownSwitch> KnownOf(const std::vector<JudgedSwitch>& judged, base::WallTime now) {
  std::vector<switches::KnownSwitch> all;
  all.reserve(judged.size());
  for (const JudgedSwitch& one : judged) {
    switches::KnownSwitch known{one.object->spec.name, one.object->spec.chassis_id, nullptr,
                                Missing::kUnknown};
    known.tier = int(one.object->spec.role);
    if (one.answer != nullptr) known.own_chassis = one.answer->chassis_id;  // it stands while nobody can ask
    if (one.usable()) {
      known.config = &one.answer->config->config;
      known.neighbours = one.answer->neighbours.get();
      known.neighbours_stale = SawTooLongAgo(one, now);
    } else if (one.stale) {
      known.missing = Missing::kStale;
    }
    all.push_back(std::move(known));
  }
  return all;
}

std::vector<const crds::NodeTopology*> TopologiesOf(const std::vector<CabledNode>& nodes) {
  std::vector<const crds::NodeTopology*> all;
  all.reserve(nodes.size());
  for (const CabledNode& node : nodes) all.push_back(node.topology.get());
  return all;
}

// Whether no condition has turned, whose time would be that of the look.
bool IsSettled(const crds::FabricSwitchStatus& status, const crds::FabricSwitchStatus& before) {
  return std::all_of(status.conditions.begin(), status.conditions.end(), [&](const crds::Condition& one) {
    const crds::Condition* const known = crds::FindCondition(before.conditions, one.type);
    return known != nullptr && known->status == one.status;
  });
}

// Thresholds of the policy are for the ports of its hosts; what lies above may mark otherwise.
void TakeMarking(const formats::SonicPort* port, const crds::LosslessPolicy* policy, JudgedSwitch& there) {
  if (port == nullptr || !port->bare.empty()) return;
  there.marking.Take(port->name, port->settings,
                     policy == nullptr ? std::nullopt : policy->spec.policy.marking);
}

}  // namespace

SwitchVerdicts KeptVerdicts::Look(const std::vector<crds::FabricSwitch>& fabric_switches,
                                  const SwitchAnswers& answers, const std::vector<CabledNode>& nodes,
                                  const Policies<crds::LosslessPolicy>& policies, const Silent& silent,
                                  base::WallTime now) {
  std::vector<JudgedSwitch> judged = ReadSwitches(fabric_switches, answers, silent, now);
  std::vector<switches::KnownSwitch> known = KnownOf(judged, now);
  PoliciesByName by_name;
  for (const crds::LosslessPolicy& policy : policies.read) by_name.emplace(policy.name, &policy);
  std::optional<Changes> changes;
  if (began_ && IsSameFrame(fabric_switches, nodes, policies, silent))
    changes = Follow(judged, known, nodes, silent);
  if (!changes) changes = Begin(judged, std::move(known), nodes, policies, silent);
  std::vector<char> restated = changes->switches;
  TakeSwitches(std::move(judged), restated);
  FollowLinks(*changes, restated);
  JudgeNodes(changes->nodes, by_name, silent.unread);
  Gather(changes->switches, by_name);
  for (std::size_t at = 0; at < switches_.size(); ++at) {
    if (restated[at] == 0) continue;
    KeptSwitch& one = switches_[at];
    one.status = StatusOf(one.judged, now);
    one.settled = IsSettled(one.status, one.object.status);
  }
  return Say(now);
}

// Who there is, by which names, and what everybody is judged by.
bool KeptVerdicts::IsSameFrame(const std::vector<crds::FabricSwitch>& fabric_switches,
                               const std::vector<CabledNode>& nodes,
                               const Policies<crds::LosslessPolicy>& policies, const Silent& silent) const {
  const bool switches =
      std::equal(fabric_switches.begin(), fabric_switches.end(), switches_.begin(), switches_.end(),
                 [](const crds::FabricSwitch& now, const KeptSwitch& before) {
                   const crds::FabricSwitchSpec &a = now.spec, &b = before.object.spec;
                   return now.name == before.object.name && a.name == b.name &&
                          a.chassis_id == b.chassis_id && a.role == b.role && a.mode == b.mode;
                 });
  return switches && silent.unread == unread_ &&
         std::equal(policies.unreadable.begin(), policies.unreadable.end(), unread_policies_.begin(),
                    unread_policies_.end(),
                    [](const auto& now, const std::string& before) { return now.first == before; }) &&
         std::equal(nodes.begin(), nodes.end(), nodes_.begin(), nodes_.end(),
                    [](const CabledNode& now, const KeptNode& before) { return now.name == before.name; }) &&
         std::equal(policies.read.begin(), policies.read.end(), policies_.begin(), policies_.end(),
                    [](const crds::LosslessPolicy& now, const auto& before) {
                      return now.name == before.first && now.spec == before.second;
                    });
}

KeptVerdicts::Changes KeptVerdicts::Begin(const std::vector<JudgedSwitch>& judged,
                                          std::vector<switches::KnownSwitch> known,
                                          const std::vector<CabledNode>& nodes,
                                          const Policies<crds::LosslessPolicy>& policies,
                                          const Silent& silent) {
  *this = KeptVerdicts();
  began_ = true;
  unread_ = silent.unread;
  for (const auto& [name, unreadable] : policies.unreadable) unread_policies_.insert(name);
  for (const crds::LosslessPolicy& policy : policies.read) policies_.emplace_back(policy.name, policy.spec);
  nodes_.reserve(nodes.size());
  for (const CabledNode& node : nodes)
    nodes_.push_back({node.name, node.topology, silent.nodes.contains(node.name), nullptr});
  switches_.resize(judged.size());
  for (std::size_t at = 0; at < judged.size(); ++at) {
    if (!judged[at].usable()) continue;
    switches_[at].config = judged[at].answer->config;
    switches_[at].neighbours = judged[at].answer->neighbours;
  }
  known_ = std::move(known);
  join_.Begin(TopologiesOf(nodes), known_, silent.nodes);
  Changes changes;
  changes.nodes.resize(nodes.size());
  std::iota(changes.nodes.begin(), changes.nodes.end(), std::size_t(0));
  changes.switches.assign(judged.size(), 1);
  changes.whole = true;
  return changes;
}

std::optional<KeptVerdicts::Changes> KeptVerdicts::Follow(const std::vector<JudgedSwitch>& judged,
                                                          std::vector<switches::KnownSwitch> known,
                                                          const std::vector<CabledNode>& nodes,
                                                          const Silent& silent) {
  Changes changes;
  changes.switches.assign(judged.size(), 0);
  switches::CableJoin::Changed changed;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool quiet = silent.nodes.contains(nodes[i].name);
    if (nodes[i].topology == nodes_[i].topology && quiet == nodes_[i].silent) continue;
    changed.nodes.push_back(i);
    MarkSwitchesOf(i, changes.switches);  // where its cables ended before
  }
  for (std::size_t at = 0; at < judged.size(); ++at) {
    switches::KnownSwitch &now = known[at], &before = known_[at];
    const bool sees_same =
        now.neighbours != nullptr && before.neighbours != nullptr && *now.neighbours == *before.neighbours;
    if (sees_same) now.neighbours = before.neighbours;
    const bool other = now.config != before.config || now.neighbours != before.neighbours;
    const bool same_chassis = now.own_chassis == before.own_chassis;
    if (other || !same_chassis || now.neighbours_stale != before.neighbours_stale)
      changes.links.push_back(at);
    if (!other && same_chassis && now.missing == before.missing &&
        judged[at].silent == switches_[at].judged.silent)
      continue;
    changed.switches.push_back(at);
    changes.switches[at] = 1;
  }
  auto touched = join_.Again(TopologiesOf(nodes), known, silent.nodes, changed);
  if (!touched) return std::nullopt;
  for (const std::size_t i : changed.nodes) {
    nodes_[i].topology = nodes[i].topology;
    nodes_[i].silent = silent.nodes.contains(nodes[i].name);
  }
  // Only now: until here the join has pointed to what was before.
  for (const std::size_t at : changed.switches) {
    KeptSwitch& one = switches_[at];
    const bool usable = judged[at].usable();
    changes.before.push_back(std::move(one.config));
    one.config = usable ? judged[at].answer->config : nullptr;
    if (!usable) {
      one.neighbours = nullptr;
    } else if (known[at].neighbours != known_[at].neighbours) {
      one.neighbours = judged[at].answer->neighbours;
    }
  }
  known_ = std::move(known);
  for (const std::size_t i : *touched) MarkSwitchesOf(i, changes.switches);
  changes.nodes = *std::move(touched);
  return changes;
}

void KeptVerdicts::FollowLinks(Changes& changes, std::vector<char>& restated) {
  if (changes.whole) return links_.Begin(known_);
  if (changes.links.empty()) return;
  const auto mark = [&](const switches::SwitchLink& link) {
    for (const int at : {link.lower_at, link.upper_at})
      changes.switches[std::size_t(at)] = restated[std::size_t(at)] = 1;
  };
  if (const auto again = links_.Again(known_, changes.links)) {
    for (const std::size_t i : *again) mark(links_.links()[i]);
    return;
  }
  // Who stood at the other end of a switch may have been another.
  for (const switches::SwitchLink& link : links_.links()) mark(link);
  links_.Begin(known_);
  for (const switches::SwitchLink& link : links_.links()) mark(link);
}

void KeptVerdicts::MarkSwitchesOf(std::size_t node, std::vector<char>& marked) const {
  const auto [first, last] = join_.CablesOf(node);
  for (std::size_t i = first; i < last; ++i) {
    const int at = join_.compared().names[i].at;
    if (at >= 0) marked[std::size_t(at)] = 1;
  }
}

void KeptVerdicts::TakeSwitches(std::vector<JudgedSwitch> judged, std::vector<char>& restated) {
  for (std::size_t at = 0; at < judged.size(); ++at) {
    JudgedSwitch& now = judged[at];
    KeptSwitch& one = switches_[at];
    JudgedSwitch& before = one.judged;
    now.doubled = join_.compared().doubled.contains(NameOf(*now.object));
    const bool same_object = *now.object == one.object;
    const bool same_answer = now.answer == nullptr ? !one.answer.has_value()
                                                   : one.answer.has_value() && *one.answer == *now.answer;
    const bool same = same_object && same_answer && now.lie == before.lie && now.stale == before.stale &&
                      now.silent == before.silent && now.doubled == before.doubled;
    if (!same || !one.settled) restated[at] = 1;
    if (!same_object) one.object = *now.object;
    if (now.answer == nullptr) {
      one.answer.reset();
    } else if (!same_answer) {
      one.answer = *now.answer;
    }
    now.counts = before.counts;
    now.worst = std::move(before.worst);
    now.marking = std::move(before.marking);
    before = std::move(now);
  }
}

void KeptVerdicts::JudgeNodes(const std::vector<std::size_t>& changed, const PoliciesByName& policies,
                              const std::set<std::string>& unread) {
  std::vector<char> unheard;
  unheard.reserve(switches_.size());
  for (const KeptSwitch& one : switches_) unheard.push_back(one.judged.silent ? 1 : 0);
  const CableFacts facts{join_, policies, unheard, unread, unread_policies_};
  for (const std::size_t i : changed) {
    KeptNode& node = nodes_[i];
    NodeVerdict verdict = JudgeNode(*node.topology, i, node.silent, facts);
    if (node.verdict == nullptr || *node.verdict != verdict)
      node.verdict = std::make_shared<const NodeVerdict>(std::move(verdict));
  }
}

void KeptVerdicts::Gather(const std::vector<char>& changed, const PoliciesByName& policies) {
  if (std::none_of(changed.begin(), changed.end(), [](char one) { return one != 0; })) return;
  for (std::size_t at = 0; at < switches_.size(); ++at) {
    if (changed[at] == 0) continue;
    KeptSwitch& one = switches_[at];
    one.judged.counts = {};
    one.judged.worst.clear();
    one.judged.marking = {};
    one.host_cables.reset();
    one.policies.clear();
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const auto [first, last] = join_.CablesOf(node);
    for (std::size_t i = first; i < last; ++i) {
      const int at = join_.compared().names[i].at;
      if (at >= 0 && changed[std::size_t(at)] != 0) GatherCable(nodes_[node], i, policies);
    }
  }
  GatherBetween(changed);
}

void KeptVerdicts::GatherCable(const KeptNode& node, std::size_t cable, const PoliciesByName& policies) {
  const switches::NamedCable& name = join_.compared().names[cable];
  const lossless::CableOutcome& outcome = join_.compared().comparison.Of(cable);
  const crds::LosslessPolicy* const policy = PolicyOf(*node.topology, name.port, policies);
  KeptSwitch& one = switches_[std::size_t(name.at)];
  JudgedSwitch& there = one.judged;
  // Of one that nobody has heard yet what was written stays.
  if (!there.silent || node.silent) {
    there.counts.Add(outcome.verdict);
    TakeMarking(join_.PortAt(cable), policy, there);
    if (outcome.verdict != LosslessVerdict::kLossless) there.worst.push_back(CableOf(name, outcome));
  }
  // Of a switch that is known only a cable in doubt is ambiguous.
  const lossless::CableEnd& leaf = join_.compared().cables[cable].leaf;
  const bool doubted = !leaf.settings && leaf.settings.missing() == Missing::kAmbiguous;
  if (policy != nullptr && !doubted) one.policies.insert(policy->name);
  if (one.object.spec.mode != crds::SwitchMode::kRender) return;
  if (!one.host_cables) one.host_cables.emplace();
  ++one.host_cables->cables;
  if (doubted) {
    one.host_cables->doubted.emplace(name.leaf_port, outcome.findings.front().sentence);
  } else if (policy != nullptr) {
    one.host_cables->ports[policy->name].insert(name.leaf_port);
  }
}

// Such a cable stands at both of its switches, each with the other as its host.
void KeptVerdicts::GatherBetween(const std::vector<char>& changed) {
  std::vector<std::optional<switches::PortIndex>> ports(switches_.size());
  const auto mark = [&](int which, const std::string& port) {
    const std::size_t at = std::size_t(which);
    if (known_[at].config == nullptr) return;
    if (!ports[at]) ports[at].emplace(*known_[at].config);
    TakeMarking(ports[at]->Find(port), nullptr, switches_[at].judged);
  };
  for (const switches::SwitchLink& link : links_.links()) {
    const bool lower = changed[std::size_t(link.lower_at)] != 0;
    const bool upper = changed[std::size_t(link.upper_at)] != 0;
    if (!lower && !upper) continue;
    JudgedSwitch& below = switches_[std::size_t(link.lower_at)].judged;
    JudgedSwitch& above = switches_[std::size_t(link.upper_at)].judged;
    const LosslessVerdict verdict = link.outcome.verdict;
    if (lower) below.counts.Add(verdict);
    if (upper) above.counts.Add(verdict);
    if (lower) mark(link.lower_at, link.lower_port);
    if (upper) mark(link.upper_at, link.upper_port);
    if (verdict == LosslessVerdict::kLossless) continue;
    crds::SwitchCable cable =
        CableOf({link.lower, link.lower_port, link.upper, link.upper_port}, link.outcome);
    if (upper) above.worst.push_back(cable);
    if (!lower) continue;
    std::swap(cable.host, cable.leaf);
    cable.node = link.upper;
    std::swap(cable.port, cable.switch_port);
    below.worst.push_back(std::move(cable));
  }
}

SwitchVerdicts KeptVerdicts::Say(base::WallTime now) const {
  SwitchVerdicts verdicts;
  for (const KeptNode& node : nodes_)
    verdicts.nodes.emplace_hint(verdicts.nodes.end(), node.name, node.verdict);
  const auto turn = [&verdicts](base::WallTime at) {
    verdicts.turns = verdicts.turns ? std::min(*verdicts.turns, at) : at;
  };
  for (const KeptSwitch& kept : switches_) {
    const JudgedSwitch& one = kept.judged;
    const std::string& name = kept.object.name;
    verdicts.statuses.emplace_hint(verdicts.statuses.end(), name, kept.status);
    if (auto why = WhyNotBelieved(one); why && !one.silent) verdicts.doubts.emplace(name, *std::move(why));
    if (kept.host_cables) verdicts.host_cables.emplace(name, *kept.host_cables);
    if (!one.usable()) continue;
    turn(StaleAt(*one.object, *one.answer->read_at));
    if (one.answer->neighbours != nullptr && !SawTooLongAgo(one, now))
      turn(StaleAt(*one.object, *one.answer->saw_at));
  }
  verdicts.between = links_.links();
  SayFabricPorts(verdicts);
  return verdicts;
}

// A port on which a host says that its cable ends is that host's, or in doubt.
void KeptVerdicts::SayFabricPorts(SwitchVerdicts& verdicts) const {
  const auto renders = [](const KeptSwitch& one) {
    return one.object.spec.mode == crds::SwitchMode::kRender;
  };
  if (std::none_of(switches_.begin(), switches_.end(), renders)) return;
  std::vector<std::set<std::string>> policies_at;
  policies_at.reserve(switches_.size());
  for (const KeptSwitch& one : switches_) policies_at.push_back(one.policies);
  // With whom a switch hangs together nobody knows while it does not say: it may be with any that has hosts.
  for (std::size_t at = 0; at < switches_.size(); ++at) {
    if (known_[at].config != nullptr && known_[at].neighbours != nullptr) continue;
    for (std::set<std::string>& there : policies_at) {
      if (!there.empty()) there.insert(switches_[at].policies.begin(), switches_[at].policies.end());
    }
  }
  std::vector<switches::FabricPorts> found = switches::FindFabricPorts(verdicts.between, policies_at);
  for (std::size_t at = 0; at < switches_.size(); ++at) {
    if (!renders(switches_[at]) || found[at].empty()) continue;
    HostCables& cables = verdicts.host_cables[switches_[at].object.name];
    std::set<std::string> taken;
    for (const auto& [port, why] : cables.doubted) taken.insert(port);
    for (const auto& [policy, ports] : cables.ports) taken.insert(ports.begin(), ports.end());
    const auto is_taken = [&taken](const std::string& port) { return taken.contains(port); };
    for (auto& [policy, ports] : found[at].ports) std::erase_if(ports, is_taken);
    std::erase_if(found[at].ports, [](const auto& one) { return one.second.empty(); });
    std::erase_if(found[at].left_out, [&](const auto& one) { return is_taken(one.first); });
    cables.fabric = std::move(found[at]);
  }
}

}  // namespace heddle::operators
