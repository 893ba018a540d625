#include "cli/node_selection.h"

#include <algorithm>

#include "crds/node_use.h"
#include "kube/object.h"

namespace heddle::cli {

using topology::NodeId;

std::string WhyUnusable(const Json* node, const topology::Node* found, bool late) {
  crds::NodeUse use;
  if (node != nullptr) use = crds::NodeUseOf(*node);
  use.silent = late;
  if (node != nullptr && found != nullptr) {
    if (!topology::Check(*found).empty()) use.published = "TopologyContradictory";
    if (const auto offered = crds::OfferedGpusOf(*node)) use.gpus = crds::CompareGpus(offered->count, *found);
  }
  return crds::WhyOutOfUse(use);
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
