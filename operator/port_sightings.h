#pragma once

#include <map>
#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "topology/node.h"
#include "topology/suspects.h"

namespace heddle::operators {

// What a switch that is asked says against one of its ports.
struct SwitchPortSeen {
  std::string alias;  // empty where it has none
  std::vector<topology::Sighting> sightings;
  std::string chassis_id;  // of the switch, by which it is told from another of its name; empty = not known
  friend bool operator==(const SwitchPortSeen&, const SwitchPortSeen&) = default;
};
// By the switch's system name, and the port's own name.
using SwitchSightings = std::map<std::string, std::map<std::string, SwitchPortSeen>>;

// By node: what its agent counts at its ends of cables, as a switch counts marks at its own. Congestion is normal where
// many send to one, so it is no sighting: it stands beside what is suspected, and suspects nobody.
using CongestedPorts = std::map<std::string, std::vector<crds::CongestedPort>>;

// What an agent says against a port, by the end of the cable that saw it: on InfiniBand it asks the leaf, too. Pure.
std::vector<topology::Sighting> SightingsOf(const topology::NicPort& port);

}  // namespace heddle::operators
