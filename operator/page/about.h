#pragma once

#include <string>

#include "crds/gang.h"
#include "crds/node_topology.h"

namespace heddle::operators::page {

// What the page asks for when somebody opens one node or one gang: too much to send of all of them. JSON objects.

// Each GPU with its NICs, rail, leaf port and bandwidth; the conditions; who was granted what.
std::string AboutNode(const crds::NodeTopology& object);

// Why it lies where it lies, and its conditions.
std::string AboutGang(const crds::Gang& gang);

}  // namespace heddle::operators::page
