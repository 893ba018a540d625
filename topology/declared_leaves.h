#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/fabric.h"

namespace heddle::topology {

// What people say a leaf is for: by its name, or one by one. Measured rails are compared with it.
struct LeafRole {
  int rail = kNone;   // kNone = nobody says, here and below
  int plane = kNone;  // as the name says it; not compared, because nobody counts planes on a host alike
  std::string unit;   // what stood for {unit}; leaves of one unit have it in common
  friend bool operator==(const LeafRole&, const LeafRole&) = default;
};

// A pattern of leaf names, such as "su{unit}-r{rail}": {rail} and {plane} stand for a whole number, {unit} for any
// text, each at most once; all else for itself. Empty = it is one, else what is wrong with it, as a sentence.
std::string WhyNotLeafPattern(std::string_view pattern);

// Of the first that says something: the switch's own declaration, then the patterns in their order. A rail out of
// 0 to kMaxRail is nobody's word.
LeafRole DeclaredRole(const Declaration& declaration, std::string_view leaf);

// DeclaredRole of each, in their order.
std::vector<LeafRole> DeclaredRoles(const Declaration& declaration, const std::vector<std::string>& leaves);

}  // namespace heddle::topology
