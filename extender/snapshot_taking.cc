#include "extender/snapshot_taking.h"

#include <set>
#include <utility>

#include "placement/dense.h"

namespace heddle::extender {
namespace {

void AddLoads(const std::vector<Shared<crds::Gang>>& holders, KnownLoads& known, FabricView& view) {
  view.loads.clear();
  view.state.SetLoads({});
  if (!view.state.dense().oversubscribed()) return;  // nothing is shared
  std::vector<placement::LeafLoad> all;
  for (const auto& gang : holders) {
    const auto& load = known.Of(view.state, gang);
    if (load.empty()) continue;
    all.insert(all.end(), load.begin(), load.end());
    view.loads.emplace_back(KeyOfGang(*gang).owner_uid, load);
  }
  view.state.SetLoads(all);
}

void AddGangs(const SnapshotInputs& inputs, KnownLoads& known, Snapshot& snapshot) {
  std::vector<Shared<crds::Gang>> holders;
  for (const auto& gang : inputs.gangs) {
    if (HoldsSlots(*gang)) holders.push_back(gang);
  }
  known.BeginRound();
  for (FabricView& view : snapshot.fabrics) AddLoads(holders, known, view);
  known.ForgetOthers();
  snapshot.gangs.clear();
  for (const auto& gang : holders) {
    snapshot.gangs[{gang->ns, KeyOfGang(*gang).owner_uid}] = gang->ns + "/" + crds::GangTitle(gang->spec);
  }
}

// Counts a node among those left out, or no more.
void CountLeftOut(const NodeFacts& node, const FabricSet& fabrics, int more, Snapshot& snapshot) {
  topology::NodeId id = topology::kNone;
  if (node.gpus == 0 || snapshot.FindNode(node.name, id) != nullptr) return;
  const auto why = fabrics.unusable.find(node.name);
  const std::string word = why == fabrics.unusable.end() ? "NoTopology" : why->second;
  if ((snapshot.left_out[word] += more) == 0) snapshot.left_out.erase(word);
}

void SetFacts(const Seat& seat, const SnapshotInputs& inputs, Snapshot& snapshot) {
  const auto before = snapshot.nodes.find(seat.name);
  if (before != snapshot.nodes.end()) CountLeftOut(*before->second, *inputs.fabrics, -1, snapshot);
  const std::string name(seat.name);
  snapshot.silent.erase(name);
  if (seat.facts == nullptr) return snapshot.nodes.Erase(name);
  if (before == snapshot.nodes.end() || before->second != seat.facts) snapshot.nodes.Set(name, seat.facts);
  CountLeftOut(*seat.facts, *inputs.fabrics, 1, snapshot);
  if (!seat.facts->ready) snapshot.silent.insert(name);
}

template <class T>
void SetSome(std::string_view name, std::vector<T> some, ByNode<std::vector<T>>& all) {
  if (some.empty()) {
    all.Erase(name);
  } else {
    all.Set(name, std::move(some));
  }
}

// Sums up anew what those gangs were given that had something on the node, or have.
class GivenAnew {
 public:
  void Set(std::string_view name, std::vector<GivenPod> given, Snapshot& snapshot) {
    const auto before = snapshot.given_on.find(name);
    if (before == snapshot.given_on.end() ? given.empty() : before->second == given) return;
    if (before != snapshot.given_on.end()) Note(before->second);
    Note(given);
    SetSome(name, std::move(given), snapshot.given_on);
  }
  void Sum(Snapshot& snapshot) const {
    if (gangs_.empty()) return;
    for (const std::string& gang : gangs_) snapshot.given.erase(gang);
    for (const auto& [node, given] : snapshot.given_on) {
      for (const GivenPod& pod : given) {
        if (gangs_.contains(pod.owner_uid)) AddGiven(pod, snapshot.given);
      }
    }
  }

 private:
  void Note(const std::vector<GivenPod>& given) {
    for (const GivenPod& pod : given) gangs_.insert(pod.owner_uid);
  }
  std::set<std::string> gangs_;
};

}  // namespace

Snapshot TakeSnapshot(const SnapshotInputs& inputs, KnownLoads* loads) {
  KnownLoads nothing;
  return TakeSnapshot(inputs, ReservationsOf(inputs), loads == nullptr ? nothing : *loads);
}

Snapshot TakeSnapshot(const SnapshotInputs& inputs, const std::vector<Reservation>& reservations,
                      KnownLoads& loads) {
  const FabricSet& fabrics = *inputs.fabrics;
  Snapshot snapshot;
  snapshot.spares = inputs.spares;
  snapshot.faulty = fabrics.faulty;
  snapshot.excluded = fabrics.excluded;
  std::vector<std::vector<placement::NodeState>> states(fabrics.fabrics.size());
  std::vector<std::vector<char>> may_reserve(fabrics.fabrics.size());
  std::vector<std::pair<std::string, std::vector<Hold>>> holds;
  std::vector<std::pair<std::string, std::vector<GivenPod>>> given;
  const Seats seats(inputs, reservations);
  for (const Seat& seat : seats.list()) {
    Occupied on = Occupy(inputs, seat);
    if (seat.topology != nullptr) {
      states[seat.fabric].push_back(std::move(on.state));
      may_reserve[seat.fabric].push_back(MayReserve(on.holds) ? 1 : 0);
    }
    if (!on.holds.empty()) holds.emplace_back(seat.name, std::move(on.holds));
    if (!on.given.empty()) given.emplace_back(seat.name, std::move(on.given));
  }
  for (std::size_t i = 0; i < fabrics.fabrics.size(); ++i) {
    snapshot.fabrics.push_back(
        {fabrics.fabrics[i],
         placement::ClusterState(fabrics.fabrics[i], std::move(states[i]), {}, fabrics.dense[i]),
         {},
         fabrics.indexes[i]});
    snapshot.fabrics.back().may_reserve = std::move(may_reserve[i]);
  }
  std::vector<std::pair<std::string, Shared<NodeFacts>>> nodes;
  nodes.reserve(inputs.nodes.size());
  for (const auto& node : inputs.nodes) {
    nodes.emplace_back(node->name, node);
    CountLeftOut(*node, fabrics, 1, snapshot);
    if (!node->ready) snapshot.silent.insert(node->name);
  }
  snapshot.nodes = ByNode(std::move(nodes));
  snapshot.holds = ByNode(std::move(holds));
  snapshot.given_on = ByNode(std::move(given));
  for (const auto& [node, on_node] : snapshot.given_on) {
    for (const GivenPod& pod : on_node) AddGiven(pod, snapshot.given);
  }
  AddGangs(inputs, loads, snapshot);
  return snapshot;
}

Snapshot PatchSnapshot(const Snapshot& was, const Differences& differences, const SnapshotInputs& inputs,
                       const std::vector<Reservation>& reservations, KnownLoads& loads) {
  Snapshot snapshot = was;
  for (FabricView& view : snapshot.fabrics) view.scores = std::make_shared<LonePodScores>();
  GivenAnew given_anew;
  const Seats seats(inputs, reservations, &differences.nodes);
  for (const Seat& seat : seats.list()) {
    SetFacts(seat, inputs, snapshot);
    Occupied on = Occupy(inputs, seat);
    if (seat.topology != nullptr) {
      FabricView& view = snapshot.fabrics[seat.fabric];
      view.state.Set(seat.id, std::move(on.state));
      view.may_reserve[std::size_t(seat.id)] = MayReserve(on.holds) ? 1 : 0;
    }
    SetSome(seat.name, std::move(on.holds), snapshot.holds);
    given_anew.Set(seat.name, std::move(on.given), snapshot);
  }
  given_anew.Sum(snapshot);
  if (differences.gangs) AddGangs(inputs, loads, snapshot);
  return snapshot;
}

}  // namespace heddle::extender
