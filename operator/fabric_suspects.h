#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "crds/gang.h"
#include "operator/cable_memory.h"
#include "operator/port_sightings.h"
#include "switches/switch_links.h"
#include "topology/fabric.h"
#include "topology/suspects.h"

namespace heddle::operators {

// What is known of a fabric's cables beside what its agents say now.
struct SeenOfCables {
  SwitchSightings sightings;                      // what switches that are asked count against their ports
  std::span<const switches::SwitchLink> between;  // cables between such switches
  const CableMemory* memory = nullptr;            // where cables ended; null: nobody remembers
  const CongestedPorts* congested = nullptr;      // null: no agent says so of any
};

// Which of a fabric's cables, hosts, leaves and spines explain best what its agents saw at the hosts' ends and what its
// switches counted at theirs. A port that nobody knows the other end of is a cable with one end, on a leaf of this
// fabric or a switch that is cabled to one. What agents say of congestion stands in the evidence of a cable or a host
// that is suspected for something else; who is suspected and who ranks before whom does not change with it. `gangs`,
// called where anything was seen: those that hold slots; one counts where its traffic leaves an NVLink domain. Texts
// are as the Fabric keeps them (crds/kept_text.h). Pure.
std::vector<topology::Suspect> SuspectsOf(const topology::Fabric& fabric, const SeenOfCables& seen,
                                          const std::function<std::vector<crds::Gang>()>& gangs);

}  // namespace heddle::operators
