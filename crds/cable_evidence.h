#pragma once

#include <string>
#include <string_view>

namespace heddle::crds {

// A port's reason (topology::NicPort) where both ends of its cable are watched: what the port itself has counted, and
// what the switch's port at the other end has. The agent writes it, people read it, and the operator takes it apart: of
// errors it matters who received them.

// "at su1-r3 port 18: 41 link downs in 10 min"; `leaf`: "su1-r3 port 18", empty = nobody knows its name.
std::string SaidByLeaf(std::string_view leaf, std::string_view evidence);
// One sentence of both ends, of which one is SaidByLeaf's; the worse first.
std::string BothEnds(std::string_view worse, std::string_view other);

struct CableEvidence {
  std::string port;         // what the port itself has counted; empty = nothing stands against it there
  std::string leaf;         // likewise of the other end, without its name
  bool leaf_worse = false;  // the port's fault is what the other end saw
  friend bool operator==(const CableEvidence&, const CableEvidence&) = default;
};
// Takes such a sentence apart. Total: what is none is the port's own.
CableEvidence ReadCableEvidence(std::string_view reason);

}  // namespace heddle::crds
