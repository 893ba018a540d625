#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/node.h"

namespace heddle::formats {

struct LldpNeighbour {
  std::string chassis_type;  // "mac", "ifname", "local", …
  std::string chassis_id;
  std::string system_name;  // empty where the neighbour sends none
  std::string port_type;
  std::string port_id;
  std::string port_description;
  std::chrono::seconds ttl{120};  // how long this counts as proof; 120 s is what most switches send
  friend bool operator==(const LldpNeighbour&, const LldpNeighbour&) = default;
};

// By interface name. Several neighbours on one interface (a hub, a bridge, a VM) are all kept.
using LldpNeighbours = std::map<std::string, std::vector<LldpNeighbour>>;

// lldpd's `lldpcli -f json0 show neighbors`. json0 and not json, whose shape changes with the number of entries and
// which makes keys of names; what json writes is understood too. Neighbours that said goodbye (ttl 0) are left
// out. An entry without an interface name, chassis or port is skipped: it proves nothing.
[[nodiscard]] base::Result<LldpNeighbours> ParseLldp(std::string_view json0);

// The recording: ParseLldp(FormatLldp(x)) is x, where each neighbour has a name or chassis, a port and a TTL.
std::string FormatLldp(const LldpNeighbours& neighbours);

// Where the cable of an interface ends. The same neighbour heard by two protocols counts once; different ones
// are kAmbiguous, none is kUnknown; so are two chassis of one name and port. The leaf is the system name, else the
// chassis id, and its chassis id is a MAC where any protocol says one: CDP has a name in its place.
topology::Fact<topology::LeafPort> LeafOf(const std::vector<LldpNeighbour>& neighbours);

// One port of one system name that two interfaces hear from different chassis: two switches with one name, as where
// nobody changed the default.
struct SharedName {
  std::string port_id;
  std::string interface, chassis_id;
  std::string other_interface, other_chassis_id;
  friend bool operator==(const SharedName&, const SharedName&) = default;
};

// By system name, the first such port of each. No switch has a port id twice; that chassis ids of different ports
// differ proves nothing, since some switches send the MAC of the port, nor of different types, since CDP has a name
// where LLDP has a MAC.
std::map<std::string, SharedName> SharedNames(const LldpNeighbours& neighbours);

}  // namespace heddle::formats
