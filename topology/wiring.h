#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/declared_leaves.h"
#include "topology/fabric.h"

namespace heddle::topology {

// Inside of BuildFabric: who is cabled to what, which hosts form a unit, and where each cable should end.

// Which cable of a host: equal slots of a unit's hosts end on one leaf. `nic` counts a host's NICs of the
// same rail, those that are gone among them, and `port` the ports of the same plane of a NIC (a dual-ToR NIC has two),
// in their order.
struct Slot {
  std::int16_t rail = kNone;  // kNone = not known: then nothing is expected of it
  std::int16_t nic = 0;
  std::int16_t plane = 0;
  std::int16_t port = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const Slot&, const Slot&) = default;
};

// A port of a compute NIC whose other end is known.
struct Cable {
  NodeId node = kNone;
  int nic = 0;   // position in the node's NICs
  int port = 0;  // position in the NIC's ports
  Slot slot;
  LeafId leaf = kNone;
};

// Storage and management NICs are not in it: the storage leaf that all units share would make one unit of
// them.
struct Wiring {
  std::vector<std::string> leaves;  // sorted
  std::vector<LeafRole> roles;      // of the leaves, as declared; empty = nothing is
  std::vector<Cable> cables;        // by node, then NIC, then port
  // cables[first_cable[n]] is the first of node n; one more at the end.
  std::vector<std::size_t> first_cable;

  // The rail that is declared to end on the leaf; kNone = none is.
  int DeclaredRail(LeafId leaf) const { return roles.empty() ? kNone : roles[std::size_t(leaf)].rail; }
  bool Contradicts(LeafId leaf, const Slot& slot) const {
    return DeclaredRail(leaf) != kNone && slot.rail != kNone && DeclaredRail(leaf) != slot.rail;
  }
};
Wiring ReadWiring(const std::vector<FabricNode>& nodes, const Declaration& declaration);

// Where the cables of one slot of a unit's hosts should end: where most of those do that contradict no declaration.
struct Expectation {
  UnitId unit = kNone;
  Slot slot;
  LeafId leaf = kNone;
  int votes = 0;        // hosts that say so
  int voters = 0;       // hosts that say anything
  bool second = false;  // not the most, but a leaf of this slot too: uneven leaves are normal
};

struct Units {
  int count = 0;
  std::vector<UnitId> of_node;            // kNone = no cable is known
  std::vector<Expectation> expectations;  // by unit, slot, second, leaf
  // expectations[first_expectation[u]] is the first of unit u; one more at the end.
  std::vector<std::size_t> first_expectation;
  // The first expectation of the slot, or null.
  const Expectation* Find(UnitId unit, const Slot& slot) const;
  bool Fits(UnitId unit, const Cable& cable) const;
};

// Hosts that share one set of leaves, numbered by their smallest node. A host that misses rails or has a few
// wrong cables belongs to the unit that most of its leaves belong to, so one wrong cable never joins two
// units.
Units FindUnits(const Wiring& wiring, std::size_t node_count);

// Cables that end elsewhere than their unit's, and leaf ports that two hosts claim. Worst first.
std::vector<CablingFault> FindCablingFaults(const std::vector<FabricNode>& nodes, const Wiring& wiring,
                                            const Units& units);

}  // namespace heddle::topology
