#include "cli/node_selection.h"

#include <algorithm>

#include "kube/object.h"

namespace heddle::cli {

using topology::NodeId;

std::string WhyUnusable(crds::NodeUse use, const Json* node, const topology::Node& found) {
  if (node != nullptr) {
    const crds::NodeUse said = crds::NodeUseOf(*node);
    use.ready = said.ready;
    use.cordoned = said.cordoned;
    if (const auto offered = crds::OfferedGpusOf(*node)) use.gpus = crds::CompareGpus(offered->count, found);
  }
  if (!topology::Check(found).empty()) use.published = "TopologyContradictory";
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
