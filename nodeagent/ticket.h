#pragma once

#include <string>

#include "crds/node_topology.h"
#include "nodeagent/discovery/printed_facts.h"

namespace heddle::nodeagent {

// One machine as text to paste into a ticket (`--print`): what it is, what stands against it, then tables of its GPUs
// with their NICs, of the ports of its NICs, of how far each NIC is from each GPU, of their firmware, of what the
// leaves have counted at the other ends of their cables, of what was left out and of who holds what. No colours;
// control characters, which names from outside may hold, become '?'. Pure.
std::string Ticket(const crds::NodeTopology& object, const PrintedFacts& facts);

}  // namespace heddle::nodeagent
