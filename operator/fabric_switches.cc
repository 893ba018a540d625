#include "operator/fabric_switches.h"

namespace heddle::operators {

std::set<std::string> SwitchesOf(const topology::Fabric& fabric,
                                 std::span<const switches::SwitchLink> between) {
  std::set<std::string> names;
  for (const topology::Leaf& leaf : fabric.leaves) names.insert(leaf.name);
  // A tier a round.
  for (bool more = true; more;) {
    more = false;
    for (const switches::SwitchLink& link : between) {
      if (names.contains(link.lower)) more = names.insert(link.upper).second || more;
    }
  }
  return names;
}

}  // namespace heddle::operators
