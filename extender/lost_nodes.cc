#include "extender/lost_nodes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/counted.h"

namespace heddle::extender {
namespace {

constexpr const char* kUnreachable = "node.kubernetes.io/unreachable";

// "300 s after that", as the pod tolerates it; admission gives every pod 300 s where its owner says nothing else.
std::string EvictedWhen(const kube::Json& pod) {
  for (const kube::Json& toleration : kube::ArrayAt(pod, {"spec", "tolerations"})) {
    const std::string key = kube::StringAt(toleration, {"key"});
    const std::string effect = kube::StringAt(toleration, {"effect"});
    if ((!key.empty() && key != kUnreachable) || (!effect.empty() && effect != "NoExecute")) continue;
    const auto seconds = kube::IntAt(toleration, {"tolerationSeconds"});
    if (!seconds) return "never, as it tolerates " + std::string(kUnreachable) + " for ever";
    return std::to_string(*seconds) + " s after that";
  }
  return "at once";
}

bool IsSilent(const GangInput& input, const std::string& name) {
  const auto node = input.snapshot.nodes.find(name);
  return node != input.snapshot.nodes.end() && !node->second->ready;
}

struct LostNode {
  int rank = 0;  // the first there
  int ranks = 0;
  const Member* member = nullptr;
};

std::map<std::string, LostNode> LostNodesOf(const GangInput& input) {
  std::map<std::string, LostNode> lost;
  for (std::size_t i = 0; i < input.members.ranks.size(); ++i) {
    const auto& rank = input.members.ranks[i];
    if (!rank || rank->facts->node.empty() || rank->facts->terminating) continue;
    if (!IsSilent(input, rank->facts->node)) continue;
    LostNode& one = lost[rank->facts->node];
    if (one.ranks++ == 0) one = {int(i), 1, &*rank};
  }
  return lost;
}

std::string OffCommand(const std::string& node) {
  return "if you know that " + node + " is off: kubectl taint nodes " + node +
         " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
}

// Evicted, but no kubelet is there to say that it has ended; and its owner waits for that before it makes another.
std::optional<InputRefusal> NeverEnding(const GangInput& input) {
  const std::vector<int> missing = input.members.Missing();
  for (const Member& member : input.members.leaving) {
    const PodFacts& pod = *member.facts;
    const bool waited_for = pod.terminating && pod.occupies() && pod.plan && IsSilent(input, pod.node) &&
                            std::find(missing.begin(), missing.end(), pod.plan->rank) != missing.end();
    if (!waited_for) continue;
    return InputRefusal{
        std::string(kNodeLost),
        "rank " + std::to_string(pod.plan->rank) + " has no pod: " + pod.key.name + " is evicted from " +
            pod.node +
            ", which is NotReady and cannot say that the pod has ended, and its owner makes no other "
            "before. To go on, bring the node back or delete its Node, or, " +
            OffCommand(pod.node)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<InputRefusal> NodesLost(const GangInput& input) {
  const auto lost = LostNodesOf(input);
  if (lost.empty()) return NeverEnding(input);
  const auto& [name, first] = *lost.begin();
  std::string nodes = name;
  int ranks = 0;
  for (const auto& [node, one] : lost) ranks += one.ranks;
  if (lost.size() > 1) nodes += " and " + base::Counted(lost.size() - 1, "other node");
  const std::string who = "rank " + std::to_string(first.rank) + " (pod " + first.member->facts->key.name +
                          ")" + (ranks > 1 ? " and " + base::Counted(ranks - 1, "other rank") : "");
  return InputRefusal{
      std::string(kNodeLost),
      nodes + (lost.size() > 1 ? " are" : " is") + " NotReady, and " + who + (ranks > 1 ? " are" : " is") +
          " there: the gang stands still. Kubernetes evicts the pod " + EvictedWhen(first.member->Pod()) +
          ", then its rank gets another node. Sooner, " + OffCommand(name)};
}

placement::Refusal ForARepair(placement::Refusal refusal, const GangInput& input, const BarredNodes& barred) {
  using placement::RefusalReason;
  // Where its other ranks are: there the lost ones have to go.
  std::set<std::pair<const FabricView*, topology::UnitId>> units;
  for (const crds::PlacedPod& row : crds::ToRows(*input.gang->status.placement)) {
    topology::NodeId id = topology::kNone;
    const FabricView* view = input.snapshot.FindNode(row.node, id);
    if (view != nullptr) units.emplace(view, view->fabric->nodes[std::size_t(id)].unit);
  }
  std::set<std::string> refusing;
  for (const auto& [rank, nodes] : barred) refusing.insert(nodes.begin(), nodes.end());
  constexpr std::size_t kShown = 4;
  std::string out;
  std::size_t count = 0;
  for (const FabricView& view : input.snapshot.fabrics) {
    for (std::size_t i = 0; i < view.state.nodes().size(); ++i) {
      const topology::FabricNode& node = view.fabric->nodes[i];
      std::string why = view.state.nodes()[i].unusable;
      if (why.empty() && refusing.contains(node.node.name)) why = "RefusesPods";
      if (why.empty() || !units.contains({&view, node.unit}) || count++ >= kShown) continue;
      out += (out.empty() ? "" : ", ") + node.node.name + " " + why;
    }
  }
  if (count == 0) return refusal;
  const std::string beside = "; out of use beside its other ranks: ";
  if (count > kShown) out += " and " + base::Counted(count - kShown, "other");
  const bool all_closed = refusal.reason == RefusalReason::kNoAllowedNode && !refusing.empty();
  if (refusal.reason != RefusalReason::kTooLargeForFabric &&
      refusal.reason != RefusalReason::kTooLargeForDomain && !all_closed) {
    refusal.sentence += beside + out;
    return refusal;
  }
  std::string levels;
  for (const placement::Requirement& one : input.gang->spec.require) {
    levels += (levels.empty() ? "" : " and ") + std::string(placement::AxisName(one.axis)) + "=" +
              std::string(placement::LevelName(one.level));
  }
  refusal.reason = levels.empty() ? RefusalReason::kNotEnoughFree : RefusalReason::kRequirement;
  refusal.sentence =
      "no usable node is left" + (levels.empty() ? "" : " where " + levels + " lets it go") + beside + out;
  return refusal;
}

bool StandsOn(const crds::Gang& gang, const std::set<std::string>& nodes) {
  if (nodes.empty() || !gang.status.placement) return false;
  // Substitutes are in the table, too: one that is lost costs a look and changes nothing.
  const auto& names = gang.status.placement->node_names;
  return std::any_of(names.begin(), names.end(),
                     [&nodes](const std::string& name) { return nodes.contains(name); });
}

}  // namespace heddle::extender
