#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/ground.h"

namespace heddle::cli {

// Why the planner leaves a node out: "NotReady", "Cordoned", "TopologyStale", "GpuCountMismatch"; empty = it does not.
// `node` null = there is no Node, or it could not be read: then `late` alone is looked at. `found`: what its agent has
// published; null = nothing is known of that. `late`: it has stopped to report, as LateAgents.
std::string WhyUnusable(const Json* node, const topology::Node* found, bool late);

// The fabric's nodes whose Node object has all these labels, ascending. One without an object has none.
std::vector<topology::NodeId> NodesWithLabels(const Ground& ground, const std::map<std::string, Json>& nodes,
                                              const std::map<std::string, std::string>& labels);

}  // namespace heddle::cli
