#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::extender {

// Inside of TakeSnapshot: who holds which GPUs of which node, strongest proof first, and what is left of the node.
// Nodes are counted through, those of the fabrics first, because to look 20,000 pods up by name is what a snapshot
// takes its time for.
class Occupancy {
 public:
  // Requires: the inputs live as long as this.
  explicit Occupancy(const SnapshotInputs& inputs);

  // What is free on the nodes of a fabric, in its order; may be asked once.
  std::vector<placement::NodeState> TakeStates(std::size_t fabric);
  std::map<std::string, std::vector<Hold>> TakeHolds();
  GivenByGang TakeGiven() { return std::move(given_); }

 private:
  struct Place {
    std::string_view name;
    const topology::Node* topology = nullptr;  // null for a node outside of every fabric
    const NodeFacts* facts = nullptr;          // null for one that has no Node
    placement::NodeState state;
    std::vector<Hold> holds;
  };
  struct Bound {
    const PodFacts* pod;
    std::size_t place;
  };
  struct KeyHash {
    std::size_t operator()(const GangKey& key) const { return std::hash<std::string>()(key.owner_uid); }
  };
  struct Holder {
    const crds::Gang* gang = nullptr;
    const placement::Resources* demand = nullptr;     // of any of its pods; null = it has none
    std::vector<std::vector<const PodFacts*>> ranks;  // the pods that were told each rank
  };

  std::size_t PlaceOf(std::string_view node);
  void AddPlaces();
  void ReadPods();
  void HoldGrants();
  void HoldAnnotated(const Bound& bound);
  void HoldReserved(const Holder& holder, const std::set<int>& lapsed, const std::set<int>& done);
  void HoldTold(const PodFacts& pod);
  void HoldAssumed(const Bound& bound);
  void Reserve(const std::string& node, std::uint32_t gpus, const Holder& holder, bool told);
  static void Use(Place& place, const placement::Resources& resources);

  const SnapshotInputs& inputs_;
  std::vector<Place> places_;
  std::vector<std::size_t> begins_;  // of each fabric's nodes in places_, and their end
  std::unordered_map<std::string_view, std::size_t> outside_;
  std::vector<Bound> bound_;  // pods on nodes
  std::unordered_map<GangKey, Holder, KeyHash> holders_;
  std::unordered_map<std::string_view, std::uint32_t> granted_;  // by pod UID: already told by the kubelet
  GivenByGang given_;
};

}  // namespace heddle::extender
