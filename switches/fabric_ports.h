#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "switches/switch_links.h"

namespace heddle::switches {

// Of one switch the ports to other switches, as it names them.
struct FabricPorts {
  std::map<std::string, std::set<std::string>> ports;  // by the policy that they are to have
  std::map<std::string, std::string> left_out;         // by port: why it has none, a sentence
  bool empty() const { return ports.empty() && left_out.empty(); }
  friend bool operator==(const FabricPorts&, const FabricPorts&) = default;
};

// Which policy the ports between switches are to have, by the number of the switch. No policy selects them, and both
// ends of a cable have to be set alike: so they have that of the hosts below, where all hosts on switches that hang
// together have one. Only a cable of which each end says that it sees the other is one between switches (both_say_so);
// any other port is left out, and joins nothing together. `policies_at`: of each switch those that alone select hosts'
// ends of cables that end there. Requires: an entry for each number in `links`. Pure.
std::vector<FabricPorts> FindFabricPorts(std::span<const SwitchLink> links,
                                         std::span<const std::set<std::string>> policies_at);

}  // namespace heddle::switches
