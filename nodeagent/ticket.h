#pragma once

#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "nodeagent/nic/exclusion.h"

namespace heddle::nodeagent {

// One machine as text to paste into a ticket (`--print`): what it is, what stands against it, then tables of its GPUs
// with their NICs, of the ports of its NICs, of what was left out and of who holds what. No colours; control
// characters, which names from outside may hold, become '?'. Pure.
std::string Ticket(const crds::NodeTopology& object, const std::vector<Exclusion>& excluded);

}  // namespace heddle::nodeagent
