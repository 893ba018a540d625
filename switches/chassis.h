#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "crds/object_meta.h"

namespace heddle::switches {

// The chassis id that LLDP has for a switch: the second name of one whose system name another may have, too.

// Where SONiC has its own, as its lldpd sends it: a row without a key in APPL_DB (sonic-net/sonic-dbsyncd,
// lldp_syncd/daemon.py). DEVICE_METADATA's mac is not it: lldpd sends that of eth0 (sonic-net/sonic-buildimage,
// dockers/docker-lldp/supervisord.conf.j2), and of some chips the mac is the EEPROM's (sonic_py_common/device_info.py,
// get_system_mac).
inline constexpr const char* kOwnLldpTable = "LLDP_LOC_CHASSIS";
inline constexpr const char* kOwnChassisField = "lldp_loc_chassis_id";

// IEEE 802.1AB: of a chassis id.
inline constexpr std::size_t kMaxChassisId = 255;

// The answer for that field; empty where it says none. Total.
std::string ChassisIdIn(const crds::Json& answer);

// Whether two such ids are one. Of MACs the notation does not count ("04:3f:72:aa:bb:cc", "04-3F-72-AA-BB-CC",
// "043f.72aa.bbcc", "043f72aabbcc"), of other ids (an interface's name, a local one) the case. Pure.
bool IsSameChassis(std::string_view a, std::string_view b);

}  // namespace heddle::switches
