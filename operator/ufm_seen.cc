#include "operator/ufm_seen.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "switches/neighbours.h"

namespace heddle::operators {
namespace {

using switches::UfmPort;
using Ports = std::vector<UfmPort>;

// "1" of "0c42a103001b8256_1"; 0 = it has none.
int NumberOf(std::string_view port) {
  const std::size_t line = port.rfind('_');
  if (line == std::string_view::npos) return 0;
  int number = 0;
  std::from_chars(port.data() + line + 1, port.data() + port.size(), number);
  return number;
}

std::string ByGuid(const std::string& guid) {
  return "0x" + guid;
}

// Names of switches, by GUID.
class Names {
 public:
  Names(const Ports& ports, const topology::Fabric& fabric) {
    switches::ByName hosts;
    for (std::size_t i = 0; i < fabric.nodes.size(); ++i) hosts.Add(fabric.nodes[i].node.name, int(i));
    std::map<std::string, std::set<std::string>> said;   // of agents, by GUID
    std::map<std::string, std::set<std::string>> guids;  // by UFM's name
    for (const UfmPort& port : ports) {
      guids[port.system].insert(port.guid);
      if (const std::string* leaf = SaidByAgent(port, fabric, hosts)) said[port.guid].insert(*leaf);
    }
    std::map<std::string, int> claims;
    for (const auto& [guid, leaves] : said) {
      if (leaves.size() == 1) ++claims[*leaves.begin()];
    }
    for (const auto& [system, of] : guids) {
      for (const std::string& guid : of) {
        const auto leaves = said.find(guid);
        const bool joined =
            leaves != said.end() && leaves->second.size() == 1 && claims[*leaves->second.begin()] == 1;
        const bool free = of.size() == 1 && !claims.contains(system);
        names_[guid] = joined ? *leaves->second.begin() : free ? system : ByGuid(guid);
      }
    }
  }

  const std::string& Of(const std::string& guid) const { return names_.at(guid); }

 private:
  // What the agent at the other end calls the switch; null where there is none, or it sees another port of it.
  static const std::string* SaidByAgent(const UfmPort& port, const topology::Fabric& fabric,
                                        const switches::ByName& hosts) {
    const std::string_view description = port.peer_description;
    const std::size_t space = description.rfind(' ');
    if (space == std::string_view::npos) return nullptr;
    const int host = hosts.Find(std::string(description.substr(0, space)));
    if (host < 0) return nullptr;
    const std::string_view device = description.substr(space + 1);
    for (const topology::Nic& nic : fabric.nodes[std::size_t(host)].node.nics) {
      if (nic.name != device) continue;
      for (const topology::NicPort& end : nic.ports) {
        const bool there = end.number == NumberOf(port.peer) && end.leaf_port &&
                           end.leaf_port->port == std::to_string(port.number);
        if (there) return &end.leaf_port->leaf;
      }
    }
    return nullptr;
  }

  std::map<std::string, std::string> names_;
};

std::vector<switches::SwitchLink> LinksBetween(const Ports& ports, const Names& names,
                                               const topology::Fabric& fabric) {
  std::unordered_map<std::string_view, const UfmPort*> by_name;
  for (const UfmPort& port : ports) by_name.emplace(port.name, &port);
  std::set<std::string_view> leaves;  // by agents
  for (const topology::Leaf& leaf : fabric.leaves) leaves.insert(leaf.name);
  std::set<std::string_view> has_hosts;  // by GUID; by UFM or by agents
  for (const UfmPort& port : ports) {
    const bool host = !port.peer.empty() && !by_name.contains(port.peer);
    if (host || leaves.contains(names.Of(port.guid))) has_hosts.insert(port.guid);
  }
  std::vector<switches::SwitchLink> links;
  for (const UfmPort& port : ports) {
    const auto found = by_name.find(port.peer);
    if (found == by_name.end()) continue;
    const UfmPort& peer = *found->second;
    if (!peer.peer.empty() && peer.peer != port.name) continue;
    // Each once, where both say so.
    if (!peer.peer.empty() && peer.name < port.name) continue;
    const bool upside_down = has_hosts.contains(peer.guid) && !has_hosts.contains(port.guid);
    const bool equal = has_hosts.contains(peer.guid) == has_hosts.contains(port.guid);
    const bool swap = upside_down || (equal && names.Of(peer.guid) < names.Of(port.guid));
    const UfmPort& lower = swap ? peer : port;
    const UfmPort& upper = swap ? port : peer;
    switches::SwitchLink link;
    link.lower = names.Of(lower.guid);
    link.upper = names.Of(upper.guid);
    link.lower_port = std::to_string(lower.number);
    link.upper_port = std::to_string(upper.number);
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace

UfmSeen SeenByUfm(const UfmAnswer& answer, const topology::Fabric& fabric) {
  UfmSeen seen;
  if (answer.ports == nullptr) return seen;
  const Names names(*answer.ports, fabric);
  seen.between = LinksBetween(*answer.ports, names, fabric);
  std::set<std::string> known;
  for (const UfmPort& port : *answer.ports) known.insert(port.guid);
  for (const auto& [guid, ports] : answer.sightings) {
    if (!known.contains(guid)) continue;
    auto& of = seen.sightings[names.Of(guid)];
    for (const switches::PortSightings& port : ports) {
      if (!port.sightings.empty()) of[port.port] = {"", port.sightings};
    }
  }
  return seen;
}

}  // namespace heddle::operators
