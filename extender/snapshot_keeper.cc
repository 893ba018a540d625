#include "extender/snapshot_keeper.h"

#include <algorithm>
#include <tuple>

namespace heddle::extender {
namespace {

// Walks two lists in the order of their keys; false as soon as `matters` is told of a difference (a missing one is
// null) and says that it matters.
template <class T, class Key, class Matters>
bool Alike(const std::vector<Shared<T>>& a, const std::vector<Shared<T>>& b, Key key, Matters matters) {
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    const bool only_left = right == b.end() || (left != a.end() && key(**left) < key(**right));
    const bool only_right = !only_left && (left == a.end() || key(**right) < key(**left));
    const T* was = only_right ? nullptr : (left++)->get();
    const T* is = only_left ? nullptr : (right++)->get();
    if (was != is && matters(was, is)) return false;
  }
  return true;
}

auto ObjectName(const crds::Gang& gang) {
  return std::tie(gang.ns, gang.name);
}

bool SameClaims(const crds::Gang& a, const crds::Gang& b) {
  return a.uid == b.uid && a.spec == b.spec && a.status.planned_at == b.status.planned_at &&
         a.status.placement == b.status.placement;
}

bool SameClaims(const PodFacts& a, const PodFacts& b) {
  return a.uid == b.uid && a.gang == b.gang && a.node == b.node && a.terminating == b.terminating &&
         a.finished == b.finished && a.gated == b.gated && a.succeeded == b.succeeded && a.plan == b.plan &&
         a.demand == b.demand;
}

bool SameGangs(const std::vector<Shared<crds::Gang>>& a, const std::vector<Shared<crds::Gang>>& b) {
  return Alike(a, b, ObjectName, [](const crds::Gang* was, const crds::Gang* is) {
    const bool held = was != nullptr && HoldsSlots(*was), holds = is != nullptr && HoldsSlots(*is);
    return held != holds || (held && !SameClaims(*was, *is));
  });
}

// A pod that is on no node and was promised none counts only for what pods of a gang with slots ask for.
bool SamePods(const SnapshotInputs& a, const SnapshotInputs& b) {
  std::set<GangKey> holders;
  for (const auto& gang : a.gangs) {
    if (HoldsSlots(*gang)) holders.insert(KeyOfGang(*gang));
  }
  const auto claims = [&holders](const PodFacts* pod) {
    return pod != nullptr && (pod->occupies() || pod->plan || holders.contains(pod->gang));
  };
  return Alike(
      a.pods, b.pods, [](const PodFacts& pod) -> const kube::ObjectKey& { return pod.key; },
      [&claims](const PodFacts* was, const PodFacts* is) {
        if (was != nullptr && is != nullptr && SameClaims(*was, *is)) return false;
        return claims(was) || claims(is);
      });
}

}  // namespace

bool SameSnapshot(const SnapshotInputs& a, const SnapshotInputs& b) {
  if (a.fabrics != b.fabrics || a.stale_nodes != b.stale_nodes || a.lapsed != b.lapsed || a.done != b.done ||
      a.spares != b.spares) {
    return false;
  }
  const bool same_nodes = Alike(
      a.nodes, b.nodes, [](const NodeFacts& node) -> const std::string& { return node.name; },
      [](const NodeFacts* was, const NodeFacts* is) {
        return was == nullptr || is == nullptr || *was != *is;
      });
  if (!same_nodes) return false;
  // What their fabrics are made of is compared above; of the rest, who was given what counts.
  const bool same_grants = Alike(
      a.topologies, b.topologies,
      [](const TopologyFacts& topology) -> const std::string& { return topology.name; },
      [](const TopologyFacts* was, const TopologyFacts* is) {
        return was == nullptr || is == nullptr || was->grants != is->grants;
      });
  return same_grants && SameGangs(a.gangs, b.gangs) && SamePods(a, b);
}

Shared<Snapshot> SnapshotKeeper::Of(SnapshotInputs inputs) {
  if (snapshot_ == nullptr || !SameSnapshot(inputs_, inputs)) {
    snapshot_ = std::make_shared<const Snapshot>(TakeSnapshot(inputs, &loads_));
  }
  // Also where nothing changed: the lists then share their objects, and the next comparison is one of addresses.
  inputs_ = std::move(inputs);
  return snapshot_;
}

}  // namespace heddle::extender
