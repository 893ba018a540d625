#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crds/object_meta.h"
#include "formats/sonic_config.h"
#include "switches/neighbours.h"
#include "switches/port_counters.h"

namespace heddle::switches {

// What OpenConfig's models say of a switch's lines: speed, FEC and MTU (openconfig-interfaces, -if-ethernet) and who is
// at their other ends (openconfig-lldp; openconfig/public, release/models). None of them has PFC, its watchdog or the
// maps of DSCPs, so no cable is ever proved by them; but many a cable is proved wrong.

// Why a port that is read so has no settings.
inline constexpr std::string_view kNoPfcPath = "speaks OpenConfig, which has no path for PFC";

// Ports that say any of speed, FEC and MTU, by name, each bare for kNoPfcPath: of settings they have the MTU alone. It
// is that of the physical interface, of which some switches count Ethernet's header in and others do not; of a member
// of an aggregate it is the aggregate's (openconfig-if-aggregate), or nothing. The speed is the negotiated one where
// there is one. Answers are of /interfaces, as ReadOpenConfigCounters takes them. Total: what cannot be read is left
// out, as are ports past kMaxCountedPorts.
std::vector<formats::SonicPort> ReadOpenConfigPorts(const std::map<Steps, crds::Json>& answers);

struct OpenConfigLldp {
  // Its own; empty = it says none. Its chassis id is not taken: a Nexus sends another one from each port, so it is not
  // what hosts hear.
  std::string system_name;
  Neighbours neighbours;
  friend bool operator==(const OpenConfigLldp&, const OpenConfigLldp&) = default;
};

// Of /lldp, whatever part of the tree each answer holds, as long as the interface's name is in it. A port that hears
// several neighbours, as through a box that forwards LLDP, has none. Total: what cannot be read is left out.
OpenConfigLldp ReadOpenConfigLldp(const std::vector<std::pair<Steps, crds::Json>>& answers);

// "counters" of "openconfig-interfaces:counters".
std::string_view WithoutModel(std::string_view key);
// Mb/s of "openconfig-if-ethernet:SPEED_400GB", "SPEED_2500MB"; nothing where it says none.
std::optional<int> OpenConfigSpeed(std::string_view text);

}  // namespace heddle::switches
