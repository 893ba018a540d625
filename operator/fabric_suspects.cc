#include "operator/fabric_suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "crds/kept_text.h"
#include "crds/port_name.h"
#include "operator/fabric_switches.h"
#include "switches/chassis.h"

namespace heddle::operators {
namespace {

using topology::Sighting;

class Links {
 public:
  Links(const topology::Fabric& fabric, const SeenOfCables& seen) : seen_(seen) {
    for (const auto& [leaf, ports] : seen.sightings) {
      for (const auto& [name, port] : ports) {
        if (!port.alias.empty()) names_[{leaf, port.alias}] = name;
      }
    }
    switches_ = SwitchesOf(fabric, seen.between);
    of_nic_.resize(fabric.nodes.size());
    for (std::size_t i = 0; i < fabric.nodes.size(); ++i) Add(fabric.nodes[i].node, of_nic_[i]);
    AddBetween();
    AddUnjoined();
  }

  const std::vector<topology::WatchedLink>& all() const { return links_; }
  // Of a node's NIC, by positions.
  const std::vector<std::size_t>& OfNic(topology::NodeId node, int nic) const {
    return of_nic_[std::size_t(node)][std::size_t(nic)];
  }

 private:
  void Add(const topology::Node& node, std::vector<std::vector<std::size_t>>& of_nic) {
    for (const topology::Nic& nic : node.nics) {
      std::vector<std::size_t>& links = of_nic.emplace_back();
      if (nic.role != topology::NicRole::kCompute) continue;
      for (const topology::NicPort& port : nic.ports) {
        topology::WatchedLink link{.node = node.name, .port = crds::PortName(nic, port)};
        link.sightings = SightingsOf(port);
        if (const topology::LeafPort* leaf = LeafOf(port, link)) {
          link.leaf = leaf->leaf;
          link.leaf_port = leaf->port;
          switches_.insert(leaf->leaf);
          for (const Sighting& one : Counted(leaf->leaf, leaf->port, leaf->chassis_id))
            link.sightings.push_back(one);
        }
        links.push_back(links_.size());
        links_.push_back(std::move(link));
      }
    }
  }

  // A link that is down says no longer where it ends.
  const topology::LeafPort* LeafOf(const topology::NicPort& port, const topology::WatchedLink& link) const {
    if (port.leaf_port) return &*port.leaf_port;
    return seen_.memory == nullptr ? nullptr : seen_.memory->Of(link.node, link.port);
  }

  // What that switch says of a port, which is joined to a cable by that. It says it as the far end of the link.
  // `heard`: the chassis id that the other end hears, of a switch that may only have the same name.
  const std::vector<Sighting>& Counted(const std::string& leaf, const std::string& port,
                                       const std::string& heard = "") {
    static const std::vector<Sighting> kNothing;
    const auto there = seen_.sightings.find(leaf);
    if (there == seen_.sightings.end()) return kNothing;
    const auto alias = names_.find({leaf, port});
    const auto found = there->second.find(alias == names_.end() ? port : alias->second);
    if (found == there->second.end()) return kNothing;
    const std::string& own = found->second.chassis_id;
    if (!heard.empty() && !own.empty() && !switches::IsSameChassis(heard, own)) return kNothing;
    joined_.emplace(leaf, found->first);
    return found->second.sightings;
  }

  void AddBetween() {
    for (const switches::SwitchLink& link : seen_.between) {
      if (!switches_.contains(link.lower)) continue;
      topology::WatchedLink watched{link.lower, link.lower_port, link.upper, link.upper_port, true, {}};
      for (Sighting one : Counted(link.lower, link.lower_port)) {
        one.by_far_end = !one.by_far_end;  // here that switch is the near end
        watched.sightings.push_back(std::move(one));
      }
      for (const Sighting& one : Counted(link.upper, link.upper_port)) watched.sightings.push_back(one);
      links_.push_back(std::move(watched));
    }
  }

  void AddUnjoined() {
    for (const auto& [name, ports] : seen_.sightings) {
      if (!switches_.contains(name)) continue;
      for (const auto& [port, said] : ports) {
        if (said.sightings.empty() || joined_.contains({name, port})) continue;
        links_.push_back({.leaf = name, .leaf_port = port, .sightings = said.sightings});
      }
    }
  }

  const SeenOfCables& seen_;
  std::map<std::pair<std::string, std::string>, std::string> names_;  // of ports, by switch and alias
  std::set<std::pair<std::string, std::string>> joined_;              // switches' ports that have a cable
  std::set<std::string> switches_;                                    // of this fabric
  std::vector<topology::WatchedLink> links_;
  std::vector<std::vector<std::vector<std::size_t>>> of_nic_;  // by node and NIC
};

// Links by which a gang's traffic leaves its hosts; none where all of it stays in one NVLink domain.
std::vector<std::size_t> LinksOf(const crds::Gang& gang, const topology::Fabric& fabric, const Links& links) {
  std::set<std::size_t> used;
  std::set<topology::DomainId> domains;
  for (const crds::PlacedPod& pod : crds::ToRows(*gang.status.placement)) {
    const topology::NodeId id = fabric.FindNode(pod.node);
    if (id == topology::kNone) continue;  // of another fabric, or a rank without a slot
    const topology::FabricNode& node = fabric.nodes[std::size_t(id)];
    domains.insert(node.domain);
    const std::vector<std::vector<int>> dealt = topology::DealNics(node.node);
    for (std::size_t position = 0; position < node.node.gpus.size(); ++position) {
      const int index = node.node.gpus[position].index;
      const bool has = pod.gpus == 0 || (index >= 0 && index < 32 && (pod.gpus >> unsigned(index) & 1u) != 0);
      if (!has) continue;
      for (const int nic : dealt[position])
        used.insert(links.OfNic(id, nic).begin(), links.OfNic(id, nic).end());
    }
  }
  const bool leaves = domains.size() > 1 || domains.contains(topology::kNone);
  return leaves ? std::vector<std::size_t>(used.begin(), used.end()) : std::vector<std::size_t>{};
}

// What senders were told by CNPs, beside what switches say of the same cable by pause and marks. Of a host one port
// stands for all.
void NameCongestion(const CongestedPorts& congested, topology::Suspect& suspect) {
  const bool cable = suspect.kind == topology::SuspectKind::kCable;
  if (!cable && suspect.kind != topology::SuspectKind::kHost) return;
  const auto of_node = congested.find(suspect.node);
  if (of_node == congested.end()) return;
  const std::vector<crds::CongestedPort>& ports = of_node->second;
  const auto named = std::find_if(ports.begin(), ports.end(), [&](const crds::CongestedPort& one) {
    return !cable || crds::PortName(one.nic, one.port) == suspect.port;
  });
  if (named == ports.end()) return;
  suspect.evidence += fmt::format("{}{} {} is congested: {}", suspect.evidence.empty() ? "" : "; ",
                                  of_node->first, crds::PortName(named->nic, named->port), named->evidence);
  if (!cable && ports.size() > 1)
    suspect.evidence += fmt::format("; so are {} more of its ports", ports.size() - 1);
}

// As the Fabric's status has it: by its name a suspect is known again at the next look, or it would be news each time.
void Keep(topology::Suspect& suspect) {
  suspect.name = crds::KeptText(suspect.name, crds::kMaxKeptSuspectName);
  suspect.evidence = crds::KeptText(suspect.evidence, crds::kMaxKeptEvidence);
  suspect.next = crds::KeptText(suspect.next, crds::kMaxKeptNext);
}

}  // namespace

std::vector<topology::Suspect> SuspectsOf(const topology::Fabric& fabric, const SeenOfCables& seen,
                                          const std::function<std::vector<crds::Gang>()>& gangs) {
  const Links links(fabric, seen);
  const auto& all = links.all();
  // Nothing was seen: whom it would slow needs no answer, and that is most of the work.
  if (std::all_of(all.begin(), all.end(), [](const auto& link) { return link.sightings.empty(); })) return {};
  std::vector<topology::GangOnLinks> on_links;
  for (const crds::Gang& gang : gangs()) {
    if (!gang.status.placement || crds::IsTrue(gang.status.conditions, crds::kEnded)) continue;
    topology::GangOnLinks one{gang.ns + "/" + crds::GangTitle(gang.spec), LinksOf(gang, fabric, links)};
    if (!one.links.empty()) on_links.push_back(std::move(one));
  }
  std::vector<topology::Suspect> suspects = topology::RankSuspects(all, on_links);
  for (topology::Suspect& suspect : suspects) {
    if (seen.congested != nullptr) NameCongestion(*seen.congested, suspect);
    Keep(suspect);
  }
  return suspects;
}

}  // namespace heddle::operators
