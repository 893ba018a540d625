#pragma once

#include <map>
#include <string>
#include <string_view>

#include "crds/object_meta.h"

namespace heddle::switches {

// Whom a switch sees at the other end of its cables, by its own LLDP: the second witness of a cable that a host claims,
// and the only one of a cable between two switches.

struct Neighbour {
  std::string system;      // its name; empty = it says none
  std::string chassis_id;  // "04:3f:72:aa:bb:cc"
  std::string port_id;     // its end of the cable: a host's interface or MAC, a SONiC switch's alias
  std::string port_description;
  friend bool operator==(const Neighbour&, const Neighbour&) = default;
};
using Neighbours = std::map<std::string, Neighbour>;  // by the switch's own port

inline constexpr const char* kApplicationDatabase = "APPL_DB";
inline constexpr const char* kNeighbourTable = "LLDP_ENTRY_TABLE";

// Of APPL_DB's LLDP_ENTRY_TABLE (sonic-net/sonic-dbsyncd, lldp_syncd/daemon.py). A row that changes is deleted and
// written again, so one that is missing says nothing. Total: what cannot be read is left out.
Neighbours ReadNeighbours(const crds::Json& table);

// Whether LLDP's system name and a name of ours are one: of a host whatever its domain and the case, since it may have
// several domains and say none. Of an address all of it counts.
bool IsCalled(std::string_view system, std::string_view name);

// Finds by such a name one of many, or by its chassis id, whose dots begin no domain: "043f.72aa.bbcc".
class ByName {
 public:
  static constexpr int kNobody = -1;
  static constexpr int kSeveral = -2;
  void Add(const std::string& name, int number);
  void AddChassis(const std::string& chassis_id, int number);
  int Find(const std::string& system) const;  // its number, kNobody or kSeveral

 private:
  void Put(std::string key, int number);
  std::map<std::string, int> numbers_;  // by the name in small letters, with its domain and without
};

}  // namespace heddle::switches
