#pragma once

#include <set>
#include <span>
#include <string>

#include "switches/switch_links.h"
#include "topology/fabric.h"

namespace heddle::operators {

// The names of a fabric's switches: its leaves, and those that stand above them as far as switches that are asked see
// each other.
std::set<std::string> SwitchesOf(const topology::Fabric& fabric,
                                 std::span<const switches::SwitchLink> between);

}  // namespace heddle::operators
