#pragma once

#include <cstddef>
#include <string>

#include "operator/page/fabric_view.h"

namespace heddle::operators::page {

// One node's piece, and the numbers by which it refers to its fabric's: see docs/page.md.
struct FabricIndex {
  int number = -1;  // position among the fabrics, by name
  const topology::Fabric* fabric = nullptr;
  std::vector<int> domains;  // by DomainId: position among those over several nodes, or -1
  std::map<std::string_view, std::vector<const topology::CablingFault*>> faults;  // by node
};

// [name, fabric, state, unit, domain, GPUs, of these unhealthy, [rail, leaf, rate, usable, …], [sentence, …]]; -1 where
// there is none, or nobody knows.
std::string NodePiece(const std::string& name, const Seen& seen, const FabricIndex& at);

}  // namespace heddle::operators::page
