#include "placement/cluster_state.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "placement/dense.h"

namespace heddle::placement {
namespace {

using topology::DomainId;
using topology::LeafId;
using topology::NodeId;
using topology::UnitId;

std::int64_t AmountOf(const std::vector<std::pair<std::string, std::int64_t>>& sorted,
                      const std::string& name) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), name,
                       [](const auto& entry, const std::string& key) { return entry.first < key; });
  return found != sorted.end() && found->first == name ? found->second : 0;
}

void Add(std::vector<std::pair<std::string, std::int64_t>>& sorted, const Resources& resources, int sign) {
  for (const auto& [name, amount] : resources.extended) {
    for (auto& entry : sorted) {
      if (entry.first == name) entry.second += sign * amount;
    }
  }
}

int ClassOf(std::uint32_t free) {
  return std::popcount(free);
}

}  // namespace

ClusterState::ClusterState(std::shared_ptr<const topology::Fabric> fabric, std::vector<NodeState> nodes,
                           const std::vector<LeafLoad>& loads, std::shared_ptr<const DenseFabric> dense)
    : fabric_(std::move(fabric)), dense_(std::move(dense)), nodes_(std::move(nodes)) {
  CHECK(fabric_ != nullptr && nodes_.size() == fabric_->nodes.size());
  if (dense_ == nullptr) dense_ = std::make_shared<const DenseFabric>(*fabric_);
  domain_free_.assign(fabric_->domains.size(), 0);
  domain_healthy_.assign(fabric_->domains.size(), 0);
  rooms_.reserve(nodes_.size());
  unit_free_.assign(fabric_->units.size(), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto& where = fabric_->nodes[i];
    Trim(NodeId(i));
    rooms_.push_back(RoomOf(NodeId(i)));
    const int healthy = int(std::count_if(where.node.gpus.begin(), where.node.gpus.end(),
                                          [](const topology::Gpu& gpu) { return gpu.healthy; }));
    const int free = free_gpus(NodeId(i));
    if (where.domain != topology::kNone) {
      domain_healthy_[std::size_t(where.domain)] += healthy;
      domain_free_[std::size_t(where.domain)] += free;
    }
    if (where.unit != topology::kNone) {
      unit_free_[std::size_t(where.unit)] += free;
    }
  }
  for (std::size_t d = 0; d < domain_free_.size(); ++d)
    whole_domains_ += domain_is_whole(DomainId(d)) ? 1 : 0;
  SetLoads(loads);
}

// Bits beyond the node's own GPUs mean nothing: what was granted may be newer than the fabric.
void ClusterState::Trim(NodeId id) {
  const std::size_t gpus = fabric_->nodes[std::size_t(id)].node.gpus.size();
  if (gpus < 32) nodes_[std::size_t(id)].free_gpus &= (1U << gpus) - 1;
}

ClusterState::Room ClusterState::RoomOf(NodeId id) const {
  const NodeState& node = nodes_[std::size_t(id)];
  const bool usable = node.unusable.empty();
  return {node.free_milli_cpu, node.free_memory_bytes, node.free_pods, usable ? node.free_gpus : 0, usable};
}

void ClusterState::Set(NodeId id, NodeState node) {
  CHECK(log_.empty());
  const int before = free_gpus(id);
  nodes_[std::size_t(id)] = std::move(node);
  Trim(id);
  rooms_[std::size_t(id)] = RoomOf(id);
  Count(id, free_gpus(id) - before);
}

void ClusterState::SetLoads(const std::vector<LeafLoad>& loads) {
  link_load_mbps_.clear();
  if (!loads.empty()) link_load_mbps_.assign(dense_->link_mbps().size(), 0);
  const std::size_t leaves = fabric_->leaves.size();
  for (const LeafLoad& load : loads) {
    if (load.leaf < 0 || std::size_t(load.leaf) >= leaves) continue;
    link_load_mbps_[std::size_t(load.leaf)] += load.mbps;
    link_load_mbps_[std::size_t(load.leaf) + leaves] += load.mbps;
  }
}

int ClusterState::free_gpus(NodeId id) const {
  return ClassOf(open_gpus(id));
}
int ClusterState::free_gpus_in_domain(DomainId id) const {
  return domain_free_[std::size_t(id)];
}
int ClusterState::free_gpus_in_unit(UnitId id) const {
  return unit_free_[std::size_t(id)];
}
bool ClusterState::domain_is_whole(DomainId id) const {
  return domain_healthy_[std::size_t(id)] > 0 &&
         domain_free_[std::size_t(id)] == domain_healthy_[std::size_t(id)];
}

bool ClusterState::Fits(NodeId id, const Resources& resources) const {
  return Copies(id, resources, 1) == 1;
}

int ClusterState::CountCopies(NodeId id, const Resources& resources, int limit) const {
  const Room& room = rooms_[std::size_t(id)];
  std::int64_t copies = std::min<std::int64_t>(limit, room.pods);
  const auto bound = [&copies](std::int64_t free, std::int64_t wanted) {
    if (wanted > 0) copies = std::min(copies, free / wanted);
  };
  bound(room.milli_cpu, resources.milli_cpu);
  bound(room.memory_bytes, resources.memory_bytes);
  for (const auto& [name, amount] : resources.extended) {
    bound(AmountOf(nodes_[std::size_t(id)].free_extended, name), amount);
  }
  return int(std::max<std::int64_t>(copies, 0));
}

void ClusterState::Take(NodeId id, std::uint32_t gpus, const Resources& resources) {
  CHECK((nodes_[std::size_t(id)].free_gpus & gpus) == gpus);
  Apply(id, gpus, resources, true);
  log_.push_back({id, gpus, resources, true});
}

void ClusterState::Free(NodeId id, std::uint32_t gpus, const Resources& resources) {
  CHECK((nodes_[std::size_t(id)].free_gpus & gpus) == 0);
  Apply(id, gpus, resources, false);
  log_.push_back({id, gpus, resources, false});
}

void ClusterState::Rollback(Savepoint mark) {
  CHECK(mark <= log_.size());
  while (log_.size() > mark) {
    const Change& change = log_.back();
    Apply(change.node, change.gpus, change.resources, !change.taken);
    log_.pop_back();
  }
}

void ClusterState::Apply(NodeId id, std::uint32_t gpus, const Resources& resources, bool take) {
  NodeState& state = nodes_[std::size_t(id)];
  Room& room = rooms_[std::size_t(id)];
  const int before = free_gpus(id);
  state.free_gpus = take ? state.free_gpus & ~gpus : state.free_gpus | gpus;
  const int sign = take ? -1 : 1;
  state.free_milli_cpu += sign * resources.milli_cpu;
  state.free_memory_bytes += sign * resources.memory_bytes;
  state.free_pods += sign;
  Add(state.free_extended, resources, sign);
  room = {state.free_milli_cpu, state.free_memory_bytes, state.free_pods, room.usable ? state.free_gpus : 0,
          room.usable};
  Count(id, free_gpus(id) - before);
}

// That many more GPUs of the node are free than were counted.
void ClusterState::Count(NodeId id, int more_free) {
  const topology::FabricNode& where = fabric_->nodes[std::size_t(id)];
  if (where.domain != topology::kNone) {
    whole_domains_ -= domain_is_whole(where.domain) ? 1 : 0;
    domain_free_[std::size_t(where.domain)] += more_free;
    whole_domains_ += domain_is_whole(where.domain) ? 1 : 0;
  }
  if (where.unit != topology::kNone) {
    unit_free_[std::size_t(where.unit)] += more_free;
  }
}

}  // namespace heddle::placement
