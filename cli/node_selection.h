#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/ground.h"

namespace heddle::cli {

// "NotReady", "Cordoned", by the Node alone; empty = neither.
std::string WhyUnusable(const Json& node);

// The fabric's nodes whose Node object has all these labels, ascending. One without an object has none.
std::vector<topology::NodeId> NodesWithLabels(const Ground& ground, const std::map<std::string, Json>& nodes,
                                              const std::map<std::string, std::string>& labels);

}  // namespace heddle::cli
