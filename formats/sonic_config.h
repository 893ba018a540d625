#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lossless/port_settings.h"

namespace heddle::formats {

// How what `bare` says of a port begins where a field of its own is wrong; which one stands behind it.
inline constexpr std::string_view kCannotBeRead = "cannot be read";

struct SonicPort {
  std::string name;  // "Ethernet0"
  lossless::PortSettings settings;
  std::string alias;  // "etp1", as LLDP may call it; empty where there is none
  std::optional<int> speed_mbps;
  std::string fec;  // "rs", "fc", "none", "auto"; empty where nobody says
  // Why there are no settings: "is shut down", "has no PORT_QOS_MAP", kCannotBeRead; empty where there are.
  std::string bare;
  bool negotiates = false;  // it runs at what both ends agree on, and speed_mbps is what it is set to
  friend bool operator==(const SonicPort&, const SonicPort&) = default;
};

struct SonicConfig {
  std::string hostname;            // empty where it says none
  std::vector<SonicPort> ports;    // in the order of their numbers
  std::vector<SonicPort> bare;     // those of which nothing is said; none of them is in `ports`
  std::vector<std::string> notes;  // what was left out, as sentences
  friend bool operator==(const SonicConfig&, const SonicConfig&) = default;
};

// SONiC's /etc/sonic/config_db.json, or a part of it as `sonic-cfggen` writes qos.json: DSCP_TO_TC_MAP,
// TC_TO_PRIORITY_GROUP_MAP, TC_TO_QUEUE_MAP, MAP_PFC_PRIORITY_TO_QUEUE, PFC_PRIORITY_TO_PRIORITY_GROUP_MAP,
// PORT_QOS_MAP, QUEUE, WRED_PROFILE, SCHEDULER, BUFFER_PG, BUFFER_QUEUE, BUFFER_PROFILE, CABLE_LENGTH, PFC_WD, and MTU,
// speed and FEC of PORT (sonic-net/sonic-buildimage, src/sonic-yang-models). Of a port in PORTCHANNEL_MEMBER the MTU is
// that of its PORTCHANNEL, as on the switch. Tables are named by plain names or, as before 2022, by "[TABLE|NAME]".
// class_algorithm and class_percent are by queue, of those that a traffic class uses; weights of DWRR are made shares
// of 100, where each of these queues has a scheduler. A priority group is known by the priority of the pause that it
// asks for, which is its number where no map says another; buffer_bytes is by it what the group holds after the pause
// (xoff): 0 where its profile has none, unless the switch sizes headroom itself (buffer_model dynamic), which it does
// for groups that name the profile NULL, of ports with a CABLE_LENGTH other than 0m (sized_by_switch). In a whole
// configuration (with PORT) what is missing is off, and a port with PFC and without a map has all DSCPs in class 0; in
// a part of one nothing is said of it. Of a port with PFC and without pfcwd_sw_enable nobody knows what is watched:
// what SONiC makes of that has changed. Ports that are shut down, and ports without PORT_QOS_MAP where others have it,
// are `bare`, and so is a port of which a map, a queue, a buffer, the watchdog or the MTU cannot be read, with a note.
// Of 16 traffic classes (sonic-types.yang, tc_type) those from 8 on are no priority of any other end's: DSCPs of theirs
// have none, and neither has a queue from 8 on.
// Errors: kInvalid with the line, or with the field where not one port can be read; kTooLarge past 32 MiB, 500,000
// values or 4,096 ports.
[[nodiscard]] base::Result<SonicConfig> ParseSonicConfig(std::string_view json);

// The same in its two steps, for who wants more of the tables than that: the text as a tree, and what is read of one.
// Errors: the first's of the text itself and kTooLarge, the second's of fields.
[[nodiscard]] base::Result<nlohmann::json> ParseSonicTables(std::string_view json);
[[nodiscard]] base::Result<SonicConfig> ReadSonicTables(const nlohmann::json& tables);

}  // namespace heddle::formats
