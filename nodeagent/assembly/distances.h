#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// How far two PCI functions are from each other; nothing where one of them is not in the PCI tree, or where neither a
// bridge nor NUMA nodes tell.
std::optional<topology::PciDistance> DistanceOf(const Readings& readings, const std::string& a,
                                                const std::string& b);

// A GPU and a NIC, near or far. What is published keeps the nearest NICs of each GPU only.
struct PairDistance {
  int gpu = 0;
  std::string nic;
  topology::PciDistance distance = topology::PciDistance::kSys;
  std::string
      bridge;  // of PIX: the PCI address of the switch, or of the port, that both are behind; else empty
  friend bool operator==(const PairDistance&, const PairDistance&) = default;
};

// Every GPU with every NIC of `node` whose distance is known, by NIC and then GPU, in the order of `node`. Pure.
std::vector<PairDistance> DistancesOf(const Readings& readings, const topology::Node& node);

}  // namespace heddle::nodeagent
