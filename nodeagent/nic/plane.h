#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nodeagent/nic/rdma_probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// The plane that a leaf switch's name tells: a part "p1", "pl1" or "plane1", or "plane" and the number as the
// next part, between marks that are no letters or digits ("su0-r3-p1", "leaf.plane-2.07"). Nothing: it tells
// none, or two different ones.
std::optional<int> PlaneOfLeaf(std::string_view leaf);

// Tells the ports of multi-plane NICs their planes. A host cannot see planes: a card with two ports on two
// leaves looks the same whether these are two ToRs of one network or two networks. So a plane is what somebody
// said: a supplied NCCL file (those ports are left alone, `said`), or else the names of the leaves, and these
// only where they are a system: all compute NICs with several ports have a known leaf at each port that is up,
// every name tells a plane, and no NIC has two ports in one. Bonds, which are one RDMA port, and NICs with one
// port are in plane 0.
void NamePlanes(const RdmaReadings& rdma, std::vector<topology::Nic>& nics);

}  // namespace heddle::nodeagent
