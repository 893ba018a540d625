#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "placement/gang.h"
#include "topology/fabric.h"

namespace heddle::placement {

class DenseFabric;

// What is free on one node when planning starts.
struct NodeState {
  std::uint32_t free_gpus = 0;  // bit = position in Node::gpus; unhealthy and taken GPUs are not set
  std::int64_t free_milli_cpu = 0;
  std::int64_t free_memory_bytes = 0;
  std::int64_t free_pods = 0;
  std::vector<std::pair<std::string, std::int64_t>> free_extended;  // sorted by name
  // Why no gang may use this node at all, as a word for tallies: "Cordoned", "NotReady", "TopologyStale",
  // "GpuCountMismatch", "Excluded". Empty = usable.
  std::string unusable;
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// What another gang sends over a leaf's links to the switches above, each way.
struct LeafLoad {
  topology::LeafId leaf = topology::kNone;
  std::int64_t mbps = 0;
};

// The dense, mutable view over one immutable Fabric: free counters per node class, NVLink domain and unit,
// which Take and Free keep in O(1) each. Mark/Rollback is the undo log for trials; nothing is copied. Thread
// rule: one owner.
class ClusterState {
 public:
  // `dense`: that of this fabric, where it was made before; null = it is made here.
  ClusterState(std::shared_ptr<const topology::Fabric> fabric, std::vector<NodeState> nodes,
               const std::vector<LeafLoad>& loads = {}, std::shared_ptr<const DenseFabric> dense = nullptr);

  const topology::Fabric& fabric() const { return *fabric_; }
  const std::shared_ptr<const topology::Fabric>& shared_fabric() const { return fabric_; }
  const NodeState& node(topology::NodeId id) const { return nodes_[std::size_t(id)]; }
  const std::vector<NodeState>& nodes() const { return nodes_; }

  int free_gpus(topology::NodeId id) const;  // 0 when unusable
  int free_gpus_in_domain(topology::DomainId id) const;
  int free_gpus_in_unit(topology::UnitId id) const;
  // What is free on one node, in place of what was known before: as if this had been made of it. Requires: nothing to
  // undo.
  void Set(topology::NodeId id, NodeState node);
  // What other gangs send, in place of what was known before.
  void SetLoads(const std::vector<LeafLoad>& loads);
  // What other gangs send over the shared links, Mb/s, numbered as DenseFabric::link_mbps.
  const std::vector<std::int64_t>& link_load_mbps() const { return link_load_mbps_; }
  // Free GPUs as bits; none when unusable.
  std::uint32_t open_gpus(topology::NodeId id) const { return rooms_[std::size_t(id)].gpus; }
  bool usable(topology::NodeId id) const { return rooms_[std::size_t(id)].usable; }
  bool Fits(topology::NodeId id, const Resources& resources) const;
  // How often `resources` fit beside each other on one node, at most `limit`.
  int Copies(topology::NodeId id, const Resources& resources, int limit) const {
    const Room& room = rooms_[std::size_t(id)];
    // Most pods fit as often as is asked: a product is cheaper than a quotient.
    const bool fits = resources.extended.empty() && limit <= std::min(room.pods, kMostCopies) &&
                      resources.milli_cpu <= kExact && limit * resources.milli_cpu <= room.milli_cpu &&
                      resources.memory_bytes <= kExact && limit * resources.memory_bytes <= room.memory_bytes;
    return fits ? limit : CountCopies(id, resources, limit);
  }
  // NVLink domains whose every healthy GPU is free.
  int whole_domains() const { return whole_domains_; }
  bool domain_is_whole(topology::DomainId id) const;
  const DenseFabric& dense() const { return *dense_; }
  const std::shared_ptr<const DenseFabric>& shared_dense() const { return dense_; }

  // Requires: the GPUs are free (Take) or taken (Free).
  void Take(topology::NodeId id, std::uint32_t gpus, const Resources& resources);
  void Free(topology::NodeId id, std::uint32_t gpus, const Resources& resources);

  using Savepoint = std::size_t;
  Savepoint Mark() const { return log_.size(); }
  void Rollback(Savepoint mark);
  // Forgets how to undo what was done so far. Requires: no savepoint is waited for.
  void Commit() { log_.clear(); }

 private:
  // What searches ask of every node, apart from names and words: 32 bytes a node.
  struct Room {
    std::int64_t milli_cpu = 0, memory_bytes = 0, pods = 0;
    std::uint32_t gpus = 0;  // 0 when unusable
    bool usable = false;
  };
  struct Change {
    topology::NodeId node;
    std::uint32_t gpus;
    Resources resources;
    bool taken;
  };
  // Below these a product of both does not overflow.
  static constexpr std::int64_t kExact = std::int64_t(1) << 48, kMostCopies = std::int64_t(1) << 14;
  int CountCopies(topology::NodeId id, const Resources& resources, int limit) const;
  void Apply(topology::NodeId id, std::uint32_t gpus, const Resources& resources, bool take);
  void Count(topology::NodeId id, int more_free);
  void Trim(topology::NodeId id);
  Room RoomOf(topology::NodeId id) const;

  std::shared_ptr<const topology::Fabric> fabric_;
  std::shared_ptr<const DenseFabric> dense_;
  std::vector<NodeState> nodes_;
  std::vector<Room> rooms_;  // by node, as nodes_
  std::vector<std::int32_t> domain_free_;
  std::vector<std::int32_t> domain_healthy_;
  int whole_domains_ = 0;
  std::vector<std::int32_t> unit_free_;
  std::vector<std::int64_t> link_load_mbps_;  // empty = none
  std::vector<Change> log_;
};

}  // namespace heddle::placement
