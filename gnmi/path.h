#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::gnmi {

// One step of a path: interface[name=Ethernet0] has a key, SONiC's PORT and Ethernet0 have none.
struct Elem {
  std::string name;
  std::map<std::string, std::string> keys;
  friend auto operator<=>(const Elem&, const Elem&) = default;
};

// A place in a switch's data. SONiC's databases are targets, with table, key and field as elements; OpenConfig's models
// are an origin.
struct Path {
  std::string target;
  std::string origin;
  std::vector<Elem> elems;
  friend auto operator<=>(const Path&, const Path&) = default;
};

// SONiC's longest are a table, a key of some hundred bytes and a field; OpenConfig's have some 20 elements.
inline constexpr std::size_t kMaxElems = 64;
inline constexpr std::size_t kMaxKeys = 16;         // of one element
inline constexpr std::size_t kMaxPathBytes = 4096;  // of all names, keys and values together, and of a text

// Whether a path can be sent and written: it keeps to the bounds, no name of an element or of a key is empty, and all
// of it is UTF-8. kInvalid, or kTooLarge where a bound is passed.
[[nodiscard]] base::Status CheckPath(const Path& path);

// The path as people write it, which ParsePath reads back whatever is in it:
//
//   CONFIG_DB:/PORT/Ethernet0/mtu                                 a target
//   openconfig:/interfaces/interface[name=Ethernet0]/state        an origin: it has a lower-case letter, no target has
//   leaf-3:openconfig:/interfaces                                 both; leaf-3::/ and :CLI:/ where that rule would err
//
// A backslash stands before / [ \ of a name, before = ] \ of a key, ] \ of its value, and : / \ of target and origin.
std::string FormatPath(const Path& path);
[[nodiscard]] base::Result<Path> ParsePath(std::string_view text);

}  // namespace heddle::gnmi
