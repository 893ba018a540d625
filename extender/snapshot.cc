#include "extender/snapshot.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "crds/fabric_assembly.h"
#include "crds/gang_load.h"
#include "crds/gpu_indexes.h"
#include "extender/occupancy.h"
#include "placement/planner.h"

namespace heddle::extender {
namespace {

constexpr std::size_t kMostGpus = 32;  // a pod's GPUs are bits of 32

// Healthy GPUs that nobody holds, by position.
std::uint32_t FreePositions(const topology::Node& node, const std::vector<Hold>& holds) {
  std::uint32_t free = 0;
  for (std::size_t i = 0; i < node.gpus.size() && i < kMostGpus; ++i) {
    if (node.gpus[i].healthy) free |= 1u << i;
  }
  for (const Hold& hold : holds) free &= ~crds::PositionsOf(node, hold.gpus);
  return free;
}

int HealthyGpus(const topology::Node& node) {
  return int(std::count_if(node.gpus.begin(), node.gpus.end(),
                           [](const topology::Gpu& gpu) { return gpu.healthy; }));
}

// The device plugin withdraws an unhealthy GPU some time before or after the agent reports it, so every
// number between the healthy and all of them agrees.
bool CountsAgree(const topology::Node& topology, const NodeFacts& node) {
  return node.gpus >= HealthyGpus(topology) && node.gpus <= int(topology.gpus.size());
}

std::string WhyUnusable(const SnapshotInputs& inputs, const topology::Node& topology, const NodeFacts* node) {
  if (node == nullptr) return "NodeGone";
  if (!node->ready) return "NotReady";
  if (node->cordoned) return "Cordoned";
  if (const auto found = inputs.fabrics->unusable.find(topology.name);
      found != inputs.fabrics->unusable.end()) {
    return found->second;
  }
  if (inputs.stale_nodes.contains(topology.name)) return "TopologyStale";
  if (topology.gpus.size() > kMostGpus || !CountsAgree(topology, *node)) return "GpuCountMismatch";
  return {};
}

void Subtract(std::vector<std::pair<std::string, std::int64_t>>& free, const placement::Resources& used) {
  for (const auto& [name, amount] : used.extended) {
    const auto it = std::lower_bound(free.begin(), free.end(), std::pair{name, std::int64_t{INT64_MIN}});
    if (it != free.end() && it->first == name) it->second -= amount;
  }
}

placement::NodeState StateOf(const SnapshotInputs& inputs, const Occupancy& occupancy,
                             const topology::Node& topology, const NodeFacts* node) {
  placement::NodeState state;
  state.unusable = WhyUnusable(inputs, topology, node);
  state.free_gpus = FreePositions(topology, occupancy.HoldsOf(topology.name));
  if (node == nullptr) return state;
  state.free_milli_cpu = node->milli_cpu;
  state.free_memory_bytes = node->memory_bytes;
  state.free_pods = node->pods;
  state.free_extended = node->extended;
  for (const placement::Resources& used : occupancy.UsesOf(topology.name)) {
    state.free_milli_cpu -= used.milli_cpu;
    state.free_memory_bytes -= used.memory_bytes;
    --state.free_pods;
    Subtract(state.free_extended, used);
  }
  return state;
}

void AddLoads(const std::vector<const crds::Gang*>& holders, FabricView& view) {
  std::vector<placement::LeafLoad> all;
  for (const crds::Gang* gang : holders) {
    auto load = crds::LoadOf(view.state, *gang);
    if (load.empty()) continue;
    all.insert(all.end(), load.begin(), load.end());
    view.loads.emplace_back(KeyOfGang(*gang).owner_uid, std::move(load));
  }
  view.state.SetLoads(all);
}

}  // namespace

std::vector<placement::LeafLoad> FabricView::LoadsWithout(const std::string& owner_uid) const {
  std::vector<placement::LeafLoad> others;
  for (const auto& [uid, load] : loads) {
    if (uid != owner_uid) others.insert(others.end(), load.begin(), load.end());
  }
  return others;
}

Shared<NodeIndex> IndexOf(const topology::Fabric& fabric) {
  NodeIndex index;
  index.reserve(fabric.nodes.size());
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    index.emplace(fabric.nodes[i].node.name, topology::NodeId(i));
  }
  return std::make_shared<const NodeIndex>(std::move(index));
}

topology::NodeId FabricView::Find(std::string_view name) const {
  if (index == nullptr) return fabric->FindNode(name);
  const auto found = index->find(name);
  return found == index->end() ? topology::kNone : found->second;
}

const std::vector<std::int8_t>& LonePodScores::Of(const placement::ClusterState& state, int gpus,
                                                  int spares) {
  gpus = std::min(gpus, int(kMostGpus) + 1);  // no node has more: one table for all such wishes
  const std::lock_guard lock(mutex_);
  const auto [table, made] = by_gpus_.try_emplace(gpus);
  if (made) {
    std::vector<topology::NodeId> all(state.fabric().nodes.size());
    std::iota(all.begin(), all.end(), 0);
    const std::vector<int> scores = placement::ScoreLonePod(state, gpus, all, spares);
    table->second.assign(scores.begin(), scores.end());
  }
  return table->second;
}

FabricSet AssembleFabrics(const std::vector<Shared<crds::NodeTopology>>& topologies,
                          const std::vector<Shared<crds::Fabric>>& declared) {
  FabricSet set;
  std::map<std::string, topology::Declaration> by_name;
  for (const auto& fabric : declared) {
    by_name.emplace(fabric->name, fabric->spec);
    for (const std::string& node : fabric->spec.excluded_nodes) set.unusable[node] = "Excluded";
  }
  std::vector<topology::Node> nodes;
  for (const auto& topology : topologies) {
    topology::Node node = topology->status.node;
    node.name = topology->name;
    if (!topology->status.observed_at) {
      set.unusable.emplace(node.name, "NoTopology");
      continue;
    }
    if (!topology::Check(node).empty()) set.unusable.emplace(node.name, "TopologyContradictory");
    nodes.push_back(std::move(node));
  }
  for (auto& [name, fabric] : crds::AssembleFabrics(std::move(nodes), by_name)) {
    // People may exclude every node of a fabric.
    if (fabric.nodes.empty()) continue;
    set.fabrics.push_back(std::make_shared<const topology::Fabric>(std::move(fabric)));
    set.indexes.push_back(IndexOf(*set.fabrics.back()));
  }
  return set;
}

Snapshot TakeSnapshot(const SnapshotInputs& inputs) {
  Snapshot snapshot;
  snapshot.spares = inputs.spares;
  for (const auto& node : inputs.nodes) snapshot.nodes.emplace(node->name, node);
  std::map<std::string, const topology::Node*> topologies;
  for (const auto& fabric : inputs.fabrics->fabrics) {
    for (const topology::FabricNode& node : fabric->nodes) topologies.emplace(node.node.name, &node.node);
  }
  Occupancy occupancy(topologies);
  occupancy.Fill(inputs);
  std::vector<const crds::Gang*> holders;
  for (const auto& gang : inputs.gangs) {
    if (HoldsSlots(*gang)) holders.push_back(gang.get());
  }
  for (std::size_t i = 0; i < inputs.fabrics->fabrics.size(); ++i) {
    const Shared<topology::Fabric>& fabric = inputs.fabrics->fabrics[i];
    std::vector<placement::NodeState> nodes;
    for (const topology::FabricNode& one : fabric->nodes) {
      const auto node = snapshot.nodes.find(one.node.name);
      nodes.push_back(
          StateOf(inputs, occupancy, one.node, node == snapshot.nodes.end() ? nullptr : node->second.get()));
    }
    snapshot.fabrics.push_back(
        {fabric, nodes, placement::ClusterState(fabric, nodes), {}, inputs.fabrics->indexes[i]});
    AddLoads(holders, snapshot.fabrics.back());
  }
  for (const auto& [name, node] : snapshot.nodes) {
    if (node->gpus == 0 || topologies.contains(name)) continue;
    const auto why = inputs.fabrics->unusable.find(name);
    ++snapshot.left_out[why == inputs.fabrics->unusable.end() ? "NoTopology" : why->second];
  }
  snapshot.holds = occupancy.TakeHolds();
  for (const crds::Gang* gang : holders) {
    snapshot.gangs[KeyOfGang(*gang).owner_uid] = gang->ns + "/" + crds::GangTitle(gang->spec);
  }
  return snapshot;
}

const FabricView* Snapshot::FindNode(const std::string& name, topology::NodeId& id) const {
  for (const FabricView& view : fabrics) {
    id = view.Find(name);
    if (id != topology::kNone) return &view;
  }
  return nullptr;
}

const topology::Node* Snapshot::Topology(const std::string& name) const {
  topology::NodeId id = topology::kNone;
  const FabricView* view = FindNode(name, id);
  return view == nullptr ? nullptr : &view->fabric->nodes[std::size_t(id)].node;
}

std::string Snapshot::Unusable(const std::string& name) const {
  topology::NodeId id = topology::kNone;
  const FabricView* view = FindNode(name, id);
  return view == nullptr ? "NoTopology" : view->nodes[std::size_t(id)].unusable;
}

std::vector<Hold> Snapshot::Conflicts(const std::string& node, std::uint32_t gpus,
                                      const std::string& owner_uid) const {
  std::vector<Hold> conflicts;
  const auto held = holds.find(node);
  if (held == holds.end()) return conflicts;
  for (const Hold& hold : held->second) {
    if ((gpus == 0 || (hold.gpus & gpus) != 0) && hold.owner_uid != owner_uid) conflicts.push_back(hold);
  }
  return conflicts;
}

std::uint32_t Snapshot::Unhealthy(const std::string& node, std::uint32_t gpus) const {
  const topology::Node* topology = Topology(node);
  if (topology == nullptr) return gpus;
  std::uint32_t healthy = 0;
  for (const topology::Gpu& gpu : topology->gpus) {
    if (gpu.healthy && gpu.index >= 0 && gpu.index < int(kMostGpus)) healthy |= 1u << gpu.index;
  }
  return (gpus == 0 ? crds::AllIndexes(*topology) : gpus) & ~healthy;
}

bool HoldsSlots(const crds::Gang& gang) {
  return gang.status.placement.has_value() && !crds::IsTrue(gang.status.conditions, crds::kEnded);
}

}  // namespace heddle::extender
