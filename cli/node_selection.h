#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/ground.h"

namespace heddle::cli {

// Why the planner leaves a node out: "NotReady", "Cordoned", "GpuCountMismatch"; empty = it does not. `found`: what its
// agent has published; null = nothing is known of that. Whether the agent still reports is not asked.
std::string WhyUnusable(const Json& node, const topology::Node* found);

// The fabric's nodes whose Node object has all these labels, ascending. One without an object has none.
std::vector<topology::NodeId> NodesWithLabels(const Ground& ground, const std::map<std::string, Json>& nodes,
                                              const std::map<std::string, std::string>& labels);

}  // namespace heddle::cli
