#pragma once

#include <string>
#include <vector>

#include "topology/fabric.h"

namespace heddle::operators {

// Nodes with fewer GPUs, compute NICs or NVSwitches than others of their kind, as a sentence each, sorted by node. A
// host cannot tell that a part is missing when all behind one PCIe switch is gone: only its peers have it.
//
// A kind is a product with a GPU model. It is judged by when it has kFewestPeers nodes or more and more than half of
// them have the same counts; counts of nodes above those are no fault. Nodes whose product nobody knows are left out.
// Pure.
inline constexpr int kFewestPeers = 3;
std::vector<std::string> FewerThanPeers(const topology::Fabric& fabric);

}  // namespace heddle::operators
