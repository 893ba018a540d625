#include "operator/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace heddle::operators {
namespace {

struct Parts {
  std::size_t gpus = 0, nics = 0, nvswitches = 0;
  friend bool operator<(const Parts& a, const Parts& b) {
    return std::tie(a.gpus, a.nics, a.nvswitches) < std::tie(b.gpus, b.nics, b.nvswitches);
  }
};

Parts PartsOf(const topology::Node& node) {
  const auto compute = std::count_if(node.nics.begin(), node.nics.end(), [](const topology::Nic& nic) {
    return nic.role == topology::NicRole::kCompute;
  });
  return {node.gpus.size(), std::size_t(compute), node.nvswitches.size()};
}

// What has fewer, as "7 of 8 GPUs and 7 of 8 NICs"; empty = nothing.
std::string Lacks(const Parts& has, const Parts& usual) {
  std::vector<std::string> words;
  const auto compare = [&words](std::size_t some, std::size_t all, std::string_view what) {
    if (some < all) words.push_back(fmt::format("{} of {} {}", some, all, what));
  };
  compare(has.gpus, usual.gpus, "GPUs");
  compare(has.nics, usual.nics, "NICs for training");
  compare(has.nvswitches, usual.nvswitches, "NVSwitches");
  return fmt::format("{}", fmt::join(words, " and "));
}

}  // namespace

std::vector<std::string> FewerThanPeers(const topology::Fabric& fabric) {
  using Kind = std::pair<std::string, std::string>;
  std::map<Kind, std::vector<const topology::Node*>> kinds;
  for (const topology::FabricNode& one : fabric.nodes) {
    const topology::Node& node = one.node;
    // Without a GPU left its model is not known either, and that a node has none is seen by everybody.
    if (node.machine.empty() || node.gpus.empty()) continue;
    kinds[{node.machine, node.gpus.front().model}].push_back(&node);
  }
  std::map<std::string, std::string> by_node;
  for (const auto& [kind, nodes] : kinds) {
    if (nodes.size() < std::size_t(kFewestPeers)) continue;
    std::map<Parts, std::size_t> counts;
    for (const topology::Node* node : nodes) ++counts[PartsOf(*node)];
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most->second * 2 <= nodes.size()) continue;
    for (const topology::Node* node : nodes) {
      const std::string lacks = Lacks(PartsOf(*node), most->first);
      if (lacks.empty()) continue;
      by_node[node->name] = fmt::format("{} has {}, as {} other nodes of its kind ({}) show", node->name,
                                        lacks, most->second, kind.first);
    }
  }
  std::vector<std::string> sentences;
  sentences.reserve(by_node.size());
  for (auto& [node, sentence] : by_node) sentences.push_back(std::move(sentence));
  return sentences;
}

}  // namespace heddle::operators
