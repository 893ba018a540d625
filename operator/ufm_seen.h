#pragma once

#include <vector>

#include "operator/port_sightings.h"
#include "operator/ufm_watch.h"
#include "switches/switch_links.h"
#include "topology/fabric.h"

namespace heddle::operators {

// What a UFM sees, in the names that agents give to switches.
struct UfmSeen {
  SwitchSightings sightings;
  std::vector<switches::SwitchLink> between;  // cables between its switches; whose ends nobody has compared
};

// An agent knows a switch by its node description, "MF0;su1-r3:MQM9700/U1", and UFM by the name in it: a cable that
// both see tells that they are one. Where the cables of a switch do not agree, or none is seen by both, it goes by
// UFM's name if no other has that, else by its GUID, as agents write it. A cable that its two ends speak of differently
// is none. Pure.
UfmSeen SeenByUfm(const UfmAnswer& answer, const topology::Fabric& fabric);

}  // namespace heddle::operators
