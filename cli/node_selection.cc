#include "cli/node_selection.h"

#include <algorithm>

#include "kube/object.h"

namespace heddle::cli {

using topology::NodeId;

std::string WhyUnusable(const Json& node) {
  const Json* ready = kube::Condition(node, "Ready");
  if (ready == nullptr || kube::StringAt(*ready, {"status"}) != "True") return "NotReady";
  return kube::BoolAt(node, {"spec", "unschedulable"}).value_or(false) ? "Cordoned" : "";
}

std::vector<NodeId> NodesWithLabels(const Ground& ground, const std::map<std::string, Json>& nodes,
                                    const std::map<std::string, std::string>& labels) {
  std::vector<NodeId> found;
  for (std::size_t n = 0; n < ground.nodes.size(); ++n) {
    const auto node = nodes.find(ground.fabric->nodes[n].node.name);
    if (node == nodes.end()) continue;
    const auto has = kube::Labels(node->second);
    const bool all = std::all_of(labels.begin(), labels.end(), [&has](const auto& pair) {
      const auto label = has.find(pair.first);
      return label != has.end() && label->second == pair.second;
    });
    if (all) found.push_back(NodeId(n));
  }
  return found;
}

}  // namespace heddle::cli
