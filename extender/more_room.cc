#include "extender/more_room.h"

#include <algorithm>

namespace heddle::extender {
namespace {

bool HasMore(const placement::NodeState& was, const placement::NodeState& is) {
  if (!was.unusable.empty() || (is.free_gpus & ~was.free_gpus) != 0) return true;
  if (is.free_gpus == 0)
    return false;  // a gang's pod needs one, and pods without GPUs come and go everywhere
  if (is.free_milli_cpu > was.free_milli_cpu || is.free_memory_bytes > was.free_memory_bytes ||
      is.free_pods > was.free_pods) {
    return true;
  }
  if (is.free_extended == was.free_extended) return false;  // nearly always
  return std::any_of(is.free_extended.begin(), is.free_extended.end(), [&was](const auto& now) {
    const auto before = std::find_if(was.free_extended.begin(), was.free_extended.end(),
                                     [&now](const auto& one) { return one.first == now.first; });
    return now.second > (before == was.free_extended.end() ? 0 : before->second);
  });
}

}  // namespace

std::set<std::string> NodesWithMoreRoom(const Snapshot& was, const Snapshot& is) {
  std::set<std::string> nodes;
  for (const FabricView& view : is.fabrics) {
    // Where the fabric is the same one, so are its numbers.
    const auto same = std::find_if(was.fabrics.begin(), was.fabrics.end(),
                                   [&view](const FabricView& one) { return one.fabric == view.fabric; });
    for (std::size_t i = 0; i < view.state.nodes().size(); ++i) {
      const placement::NodeState& now = view.state.nodes()[i];
      if (!now.unusable.empty()) continue;
      const std::string& name = view.fabric->nodes[i].node.name;
      topology::NodeId id = topology::NodeId(i);
      const FabricView* before = same == was.fabrics.end() ? was.FindNode(name, id) : &*same;
      if (before == nullptr || HasMore(before->state.node(id), now)) nodes.insert(name);
    }
  }
  auto before = was.nodes.begin();
  for (const auto& [name, facts] : is.nodes) {
    while (before != was.nodes.end() && before->first < name) ++before;
    if (before == was.nodes.end() || before->first != name) continue;  // it stands above
    const Shared<NodeFacts>& then = before->second;
    if (then == facts || then == nullptr || facts == nullptr) continue;
    if (then->labels != facts->labels || then->taints != facts->taints) nodes.insert(name);
  }
  return nodes;
}

}  // namespace heddle::extender
