#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/pci/probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// PCIe links on the way of the node's GPUs and compute NICs that have fewer lanes or a lower speed than both of
// their ends can: a sentence for each, with what hangs on it. Nothing: no link could be judged, as in a VM.
//
// Only positive evidence counts. A link is judged where both ends say what they can and agree on what they do,
// so the made-up ports of switches and hypervisors (2.5 GT/s whatever the real link does) say nothing. Lanes
// count at all times. Speed counts for NICs and for switches, which do not save power by it, and there not at
// 2.5 GT/s for a switch; an idle GPU trains down to generation 1 and is judged by its lanes alone.
std::optional<std::vector<std::string>> PcieFaults(const PciTree& tree, const topology::Node& node);

// What such links let through of the compute NICs below them, by name: Gb/s in one direction, line coding taken off and
// packet headers not. NICs below full links, and below those that cannot be judged, are not in it. Two NICs that share
// a link have all of it each.
std::map<std::string, int> PcieLimits(const PciTree& tree, const topology::Node& node);

}  // namespace heddle::nodeagent
