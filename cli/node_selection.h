#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/ground.h"
#include "crds/node_use.h"

namespace heddle::cli {

// Why the planner leaves a node out, in a word of crds::WhyOutOfUse; empty = it does not. `use` says whether its Node
// is gone and its agent silent; the rest is filled in. `node` null = there is no Node, or it is not known: then it
// counts as Ready. `found`: what its agent has published; one whose GPUs are unread has none to give, which is no word
// here.
std::string WhyUnusable(crds::NodeUse use, const Json* node, const topology::Node& found);

// The fabric's nodes whose Node object has all these labels, ascending. One without an object has none.
std::vector<topology::NodeId> NodesWithLabels(const Ground& ground, const std::map<std::string, Json>& nodes,
                                              const std::map<std::string, std::string>& labels);

}  // namespace heddle::cli
