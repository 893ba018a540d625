#pragma once

#include <string_view>

#include "crds/node_topology.h"
#include "nodeagent/assemble.h"

namespace heddle::nodeagent {

inline constexpr std::string_view kAgentVersion = "0.1.0";

// `current` with the status that an observation comes to: the same facts keep the time at which they were
// seen first, the same condition the time of its last transition. Spec, metadata and grants stay as they are.
// Leaves that no switch and no lldpd told are those of the labels in its spec: here and not in a probe, because
// here the object and what was seen are one moment's.
crds::NodeTopology Report(const crds::NodeTopology& current, const Observation& observation,
                          base::WallTime now);

}  // namespace heddle::nodeagent
