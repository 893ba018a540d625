#pragma once

#include <set>
#include <string>

#include "extender/snapshot.h"

namespace heddle::extender {

// Usable nodes that offer more in `is` than in `was`: GPUs, anything else that is counted, or other labels and taints,
// by which pods may be admitted that were not. One that was not usable, or not there, is among them; what only moved
// between two fabrics is not. Linear in the nodes of both. Pure.
std::set<std::string> NodesWithMoreRoom(const Snapshot& was, const Snapshot& is);

}  // namespace heddle::extender
