#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/ground.h"

namespace heddle::cli {

// Why the planner leaves a node out, in a word of crds::WhyOutOfUse; empty = it does not. `found`: what its agent has
// published; one whose GPUs are unread has none to give, which is no word here. `nodes`: the Nodes by name; one that is
// not among them is gone where `all` of the cluster's are there, and else, or where none could be read, counts as
// Ready. `late_agents`: as LateAgents.
std::string WhyUnusable(const topology::Node& found, const std::map<std::string, Json>& nodes, bool all,
                        const std::set<std::string>& late_agents);

// The fabric's nodes whose Node object has all these labels, ascending. One without an object has none.
std::vector<topology::NodeId> NodesWithLabels(const Ground& ground, const std::map<std::string, Json>& nodes,
                                              const std::map<std::string, std::string>& labels);

}  // namespace heddle::cli
