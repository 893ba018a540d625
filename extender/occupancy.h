#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "extender/reservations.h"
#include "extender/snapshot.h"

namespace heddle::extender {

// All that decides what is free on one node.
struct Seat {
  std::string_view name;
  std::size_t fabric = 0;
  topology::NodeId id = topology::kNone;     // in that fabric; none for a node outside of every fabric
  const topology::Node* topology = nullptr;  // null for such a one
  Shared<NodeFacts> facts;                   // null for one that has no Node
  const std::vector<crds::Grant>* grants = nullptr;  // null where no agent has published
  std::vector<const PodFacts*> bound;                // in the order of the inputs
  std::vector<const Hold*> reserved;                 // the same
};

// Who holds which GPUs of a node, strongest proof first, and what is left of it.
struct Occupied {
  placement::NodeState state;
  std::vector<Hold> holds;
  std::vector<GivenPod> given;
};
Occupied Occupy(const SnapshotInputs& inputs, const Seat& seat);

// The seats of all nodes, those of the fabrics first and in their order, or of some nodes alone. What stands in a seat
// does not depend on which others are asked for: a snapshot is patched with what the whole would have.
class Seats {
 public:
  using Names = std::set<std::string_view>;
  // `some`: null = all. Requires: the inputs and the reservations live as long as this; for some, nodes and topologies
  // in the order of their names.
  Seats(const SnapshotInputs& inputs, const std::vector<Reservation>& reservations,
        const Names* some = nullptr);

  const std::vector<Seat>& list() const { return seats_; }

 private:
  void AddAll(const SnapshotInputs& inputs);
  void AddSome(const SnapshotInputs& inputs, const Names& names);
  Seat* Find(std::string_view node);  // null where it is not asked for

  const FabricSet& fabrics_;
  const bool all_;
  std::vector<Seat> seats_;
  std::vector<std::size_t> begins_;  // of each fabric's nodes in seats_, where all are asked for
  std::unordered_map<std::string_view, std::size_t>
      others_;  // those that are not found by their fabric's index
};

}  // namespace heddle::extender
