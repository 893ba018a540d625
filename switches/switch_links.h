#pragma once

#include <span>
#include <string>
#include <vector>

#include "lossless/cable_compare.h"
#include "switches/cables.h"

namespace heddle::switches {

// A cable between two switches that are both asked, by whom either sees at its other end, with both ends compared. What
// is lossless from a NIC to its leaf is lost above it where leaf and spine have decided otherwise.
struct SwitchLink {
  std::string lower, upper;            // system names; of two of one tier the lower by name
  std::string lower_port, upper_port;  // as each of them names its own
  int lower_at = -1, upper_at = -1;    // which of the switches
  lossless::CableOutcome outcome;      // `host` of its findings is the lower end, `leaf` the upper
  friend bool operator==(const SwitchLink&, const SwitchLink&) = default;
};

// The name that a switch goes by: its system name, else its chassis id.
const std::string& NameOf(const KnownSwitch& known);

// By their ends, in the order of the switches and of their ports' names. One of the ends has to say so; where the other
// end, or a third, says otherwise, or only one that says it no longer (neighbours_stale), nothing is proved. Both are
// set alike where PFC, the priority and the group of every DSCP that is lossless at either, MTU and speed are the same,
// both have a watchdog and the maps by which pause reaches a queue, with entries for what is lossless, neither is lossy
// by itself, and no two codings are named. Of an end of OpenConfig speed, coding and MTU are all that is known
// (openconfig_ports.h); its MTU differs where no reading of it makes both ends one. That they see each other says that
// the link is up. Pure and total.
std::vector<SwitchLink> FindSwitchLinks(std::span<const KnownSwitch> switches);

}  // namespace heddle::switches
