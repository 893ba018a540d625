#pragma once

#include <variant>
#include <vector>

#include "sizing/design.h"

namespace heddle::sizing {

// Inside of the sizing: where racks stand, and how long cables are between them.
//
// Racks stand in one line that runs to and fro in rows: those of a unit with its leaves in their middle, a pod's spines
// in the middle of its units, cores in the middle of all. A unit of one rack has its leaves in that rack, unless the
// rack is the machine. A cable goes up from its port to the tray, along racks and rows, and down again.
inline constexpr int kRackDecimetres = 6;    // a rack is 600 mm wide (EIA-310 cabinets)
inline constexpr int kDropMetres = 2;        // from a port to the tray above, at each end; our own assumption
inline constexpr int kInRackMetres = 2;      // inside one rack; our own assumption
inline constexpr int kSwitchesPerRack = 32;  // leaves room for their cables; our own assumption

struct Laid {
  Floor floor;
  std::vector<CableRun> cables;
};
// Requires: tree, machine, nodes, rails and link_gbps of the design. A refusal where no cable reaches.
std::variant<Laid, Refusal> LayOut(const Design& design);

}  // namespace heddle::sizing
