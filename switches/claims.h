#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lossless/cable_compare.h"
#include "switches/cables.h"

namespace heddle::switches {

// Cables of which nobody can say where they end, since what LLDP told does not fit together: two hosts claim one port
// of a switch, or the switch sees another than who claims it. LLDP is believed where nobody contradicts it, and proves
// nothing where somebody does: a box that forwards it, a cable that was moved, or a liar.

struct CableDoubt {
  std::size_t cable = 0;  // position among the names
  lossless::CableFinding finding;
};

// `netdevs`: of each cable its host's interface; empty = not known. Without what switches see only the claims are held
// against each other. Two NICs of one host may claim one port: a card with two PCIe functions has one. A name that none
// of our hosts has is no contradiction as long as no switch calls that host by its own: a host may be called otherwise
// than its node. Pure; by cable.
std::vector<CableDoubt> FindDoubts(std::span<const NamedCable> names, std::span<const std::string> netdevs,
                                   std::span<const KnownSwitch> switches);

}  // namespace heddle::switches
