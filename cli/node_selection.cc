#include "cli/node_selection.h"

#include <algorithm>

#include "crds/node_use.h"
#include "kube/object.h"

namespace heddle::cli {

using topology::NodeId;

std::string WhyUnusable(const topology::Node& found, const std::map<std::string, Json>& nodes, bool all,
                        const std::set<std::string>& late_agents) {
  crds::NodeUse use;
  if (const auto node = nodes.find(found.name); node != nodes.end()) {
    use = crds::NodeUseOf(node->second);
    if (const auto offered = crds::OfferedGpusOf(node->second))
      use.gpus = crds::CompareGpus(offered->count, found);
  } else {
    use.gone = all && !nodes.empty();
  }
  use.silent = late_agents.contains(found.name);
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
