#include "extender/snapshot_keeper.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "extender/snapshot_taking.h"

namespace heddle::extender {
namespace {

// Walks two lists in the order of their keys and tells `differ` of what is not the very same object in both; a missing
// one is null.
template <class T, class Key, class Differ>
void Compare(const base::SharedList<Shared<T>>& a, const base::SharedList<Shared<T>>& b, Key key,
             Differ differ) {
  if (a.SharesWith(b)) return;
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (left != a.end() && right != b.end() &&
        *left == *right) {  // nearly always: their keys need not be read
      ++left;
      ++right;
      continue;
    }
    const bool only_left = right == b.end() || (left != a.end() && key(**left) < key(**right));
    const bool only_right = !only_left && (left == a.end() || key(**right) < key(**left));
    const T* was = only_right ? nullptr : (left++)->get();
    const T* is = only_left ? nullptr : (right++)->get();
    differ(was, is);
  }
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

// What a snapshot of other inputs would have to be told anew.
struct Changes {
  bool all = false;           // nothing of the snapshot stays
  bool reservations = false;  // they are to be made anew, and compared
  Differences differences;    // apart from reservations

  bool any() const { return all || reservations || differences.gangs || !differences.nodes.empty(); }
};

void CompareNodes(const SnapshotInputs& a, const SnapshotInputs& b, Seats::Names& nodes) {
  const auto name = [](const auto& one) -> const std::string& { return one.name; };
  Compare(a.nodes, b.nodes, name, [&nodes](const NodeFacts* was, const NodeFacts* is) {
    if (was != nullptr && is != nullptr && *was == *is) return;
    if (const NodeFacts* there = was == nullptr ? is : was) nodes.insert(there->name);
  });
  // What their fabrics are made of is compared elsewhere; of the rest, who was given what counts.
  Compare(a.topologies, b.topologies, name, [&nodes](const TopologyFacts* was, const TopologyFacts* is) {
    if (was != nullptr && is != nullptr && was->grants == is->grants) return;
    if (const TopologyFacts* there = was == nullptr ? is : was) nodes.insert(there->name);
  });
  std::set_symmetric_difference(a.stale_nodes.begin(), a.stale_nodes.end(), b.stale_nodes.begin(),
                                b.stale_nodes.end(), std::inserter(nodes, nodes.end()));
}

void CompareGangs(const SnapshotInputs& a, const SnapshotInputs& b, Changes& changes) {
  Compare(a.gangs, b.gangs, ObjectName, [&changes](const crds::Gang* was, const crds::Gang* is) {
    const bool held = was != nullptr && HoldsSlots(*was), holds = is != nullptr && HoldsSlots(*is);
    if (held != holds || (held && !SameClaims(*was, *is))) changes.differences.gangs = true;
  });
  if (changes.differences.gangs || a.lapsed != b.lapsed || a.done != b.done) changes.reservations = true;
}

// A pod that is on no node and was promised none counts only for what pods of a gang with slots ask for.
void ComparePods(const SnapshotInputs& a, const SnapshotInputs& b, Changes& changes) {
  std::optional<std::set<GangKey>> holders;  // where anybody asks
  const auto of_holder = [&holders, &a](const PodFacts& pod) {
    if (!holders) {
      holders.emplace();
      for (const auto& gang : a.gangs) {
        if (HoldsSlots(*gang)) holders->insert(KeyOfGang(*gang));
      }
    }
    return holders->contains(pod.gang);
  };
  const auto key = [](const PodFacts& pod) -> const kube::ObjectKey& { return pod.key; };
  Compare(a.pods, b.pods, key, [&](const PodFacts* was, const PodFacts* is) {
    if (was != nullptr && is != nullptr && SameClaims(*was, *is)) return;
    for (const PodFacts* pod : {was, is}) {
      if (pod == nullptr) continue;
      if (pod->occupies()) changes.differences.nodes.insert(pod->node);
      changes.reservations = changes.reservations || pod->plan || of_holder(*pod);
    }
  });
}

Changes ChangesOf(const SnapshotInputs& a, const SnapshotInputs& b) {
  Changes changes;
  changes.all = a.fabrics != b.fabrics || a.spares != b.spares;
  if (changes.all) return changes;
  CompareNodes(a, b, changes.differences.nodes);
  CompareGangs(a, b, changes);
  ComparePods(a, b, changes);
  return changes;
}

// Two lists that begin and end alike have the same on every node that is not named between.
void CompareReservations(const std::vector<Reservation>& a, const std::vector<Reservation>& b,
                         Seats::Names& nodes) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto [left_end, right_end] = std::mismatch(a.rbegin(), std::make_reverse_iterator(left), b.rbegin(),
                                                   std::make_reverse_iterator(right));
  for (auto one = left; one != left_end.base(); ++one) nodes.insert(one->node);
  for (auto one = right; one != right_end.base(); ++one) nodes.insert(one->node);
}

}  // namespace

bool SameSnapshot(const SnapshotInputs& a, const SnapshotInputs& b) {
  return !ChangesOf(a, b).any();
}

Shared<Snapshot> SnapshotKeeper::Of(SnapshotInputs inputs) {
  Changes changes;
  changes.all = snapshot_ == nullptr;
  if (!changes.all) changes = ChangesOf(inputs_, inputs);
  if (changes.all) {
    reservations_ = ReservationsOf(inputs);
    snapshot_ = std::make_shared<const Snapshot>(TakeSnapshot(inputs, reservations_, loads_));
  } else if (changes.any()) {
    // The names of what changed may stand in what was.
    std::vector<Reservation> were;
    if (changes.reservations) {
      were = std::exchange(reservations_, ReservationsOf(inputs));
      CompareReservations(were, reservations_, changes.differences.nodes);
    }
    snapshot_ = std::make_shared<const Snapshot>(
        PatchSnapshot(*snapshot_, changes.differences, inputs, reservations_, loads_));
  }
  // Also where nothing changed: the lists then share their objects, and the next comparison is one of addresses.
  inputs_ = std::move(inputs);
  return snapshot_;
}

}  // namespace heddle::extender
