#include "extender/snapshot.h"

#include <algorithm>
#include <numeric>

#include "crds/fabric_assembly.h"
#include "crds/gang_load.h"
#include "crds/gpu_indexes.h"
#include "crds/gpus_unread.h"
#include "extender/slot_faults.h"
#include "placement/dense.h"
#include "placement/planner.h"

namespace heddle::extender {
namespace {

constexpr std::size_t kMostGpus = 32;  // a pod's GPUs are bits of 32
constexpr const char* kExcluded = "Excluded";

}  // namespace

std::vector<placement::LeafLoad> FabricView::LoadsWithout(const std::string& owner_uid) const {
  std::vector<placement::LeafLoad> others;
  for (const auto& [uid, load] : loads) {
    if (uid != owner_uid) others.insert(others.end(), load.begin(), load.end());
  }
  return others;
}

topology::NodeId FabricView::Find(std::string_view name) const {
  if (index == nullptr) return fabric->FindNode(name);
  return index->Find(name);
}

std::vector<topology::NodeId> FabricView::FindAll(const std::vector<std::string_view>& names) const {
  if (index != nullptr) return index->FindAll(names);
  std::vector<topology::NodeId> nodes;
  nodes.reserve(names.size());
  for (const std::string_view name : names) nodes.push_back(Find(name));
  return nodes;
}

bool MayReserve(const std::vector<Hold>& holds) {
  return std::any_of(holds.begin(), holds.end(),
                     [](const Hold& hold) { return hold.source == Hold::Source::kReserved || hold.leaving; });
}

bool Snapshot::Reserves() const {
  return std::any_of(fabrics.begin(), fabrics.end(), [](const FabricView& view) {
    return std::find(view.may_reserve.begin(), view.may_reserve.end(), 1) != view.may_reserve.end();
  });
}

void Snapshot::Prefetch(std::string_view node) const {
  for (const FabricView& view : fabrics) view.Prefetch(node);
}

const Hold* Snapshot::Reservation(std::string_view node) const {
  const bool may = std::any_of(fabrics.begin(), fabrics.end(), [node](const FabricView& view) {
    if (view.may_reserve.empty()) return false;
    const topology::NodeId id = view.Find(node);
    return id != topology::kNone && view.may_reserve[std::size_t(id)] != 0;
  });
  const auto on = may ? holds.find(node) : holds.end();
  if (on == holds.end()) return nullptr;
  for (const Hold& hold : on->second) {
    if (hold.source == Hold::Source::kReserved) return &hold;
    if (hold.leaving && gangs.contains({hold.ns, hold.owner_uid})) return &hold;
  }
  return nullptr;
}

void FabricView::Prefetch(std::string_view name) const {
  if (index != nullptr) index->Prefetch(name);
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

// An object without a hash is as good as its version. Grants and conditions are not part of the machine.
TopologyFacts FactsOf(const crds::NodeTopology& topology) {
  const crds::NodeTopologyStatus& status = topology.status;
  TopologyFacts facts{topology.name, {}, status.grants};
  if (status.observed_at) facts.content = status.hash.empty() ? topology.resource_version : status.hash;
  return facts;
}

FabricSet AssembleFabrics(std::vector<topology::Node> published, const std::vector<std::string>& silent,
                          const std::vector<Shared<crds::Fabric>>& declared) {
  FabricSet set;
  std::map<std::string, topology::Declaration> by_name;
  for (const auto& fabric : declared) {
    by_name.emplace(fabric->name, fabric->spec);
    set.excluded.insert(fabric->spec.excluded_nodes.begin(), fabric->spec.excluded_nodes.end());
  }
  // What people say comes before what their nodes do.
  for (const std::string& node : set.excluded) set.unusable.emplace(node, kExcluded);
  for (const std::string& name : silent) set.unusable.emplace(name, "NoTopology");
  for (const topology::Node& node : published) {
    if (!topology::Check(node).empty()) set.unusable.emplace(node.name, "TopologyContradictory");
    if (crds::GpusUnread(node)) set.unusable.emplace(node.name, "GpusUnread");
  }
  for (auto& [name, fabric] : crds::AssembleFabrics(std::move(published), by_name)) {
    // People may exclude every node of a fabric.
    if (fabric.nodes.empty()) continue;
    for (const topology::FabricNode& one : fabric.nodes) {
      if (IsFaulty(one.node)) set.faulty.insert(one.node.name);
    }
    set.fabrics.push_back(std::make_shared<const topology::Fabric>(std::move(fabric)));
    set.indexes.push_back(std::make_shared<const NodeIndex>(*set.fabrics.back()));
    set.dense.push_back(std::make_shared<const placement::DenseFabric>(*set.fabrics.back()));
  }
  return set;
}

const std::vector<placement::LeafLoad>& KnownLoads::Of(const placement::ClusterState& state,
                                                       const Shared<crds::Gang>& gang) {
  Known& known = known_[{&state.fabric(), KeyOfGang(*gang)}];
  const bool same = known.gang != nullptr &&
                    (known.gang == gang || (known.gang->spec == gang->spec &&
                                            known.gang->status.placement == gang->status.placement));
  if (!same) known.load = crds::LoadOf(state, *gang);
  known.fabric = state.shared_fabric();
  known.gang = gang;
  known.round = round_;
  return known.load;
}

void KnownLoads::ForgetOthers() {
  std::erase_if(known_, [this](const auto& entry) { return entry.second.round != round_; });
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
  if (view != nullptr) return view->state.node(id).unusable;
  return excluded.contains(name) ? kExcluded : "NoTopology";
}

std::vector<Hold> Snapshot::Conflicts(const std::string& node, std::uint32_t gpus,
                                      const GangKey& gang) const {
  std::vector<Hold> conflicts;
  const auto held = holds.find(node);
  if (held == holds.end()) return conflicts;
  for (const Hold& hold : held->second) {
    if ((gpus == 0 || (hold.gpus & gpus) != 0) && !hold.IsOf(gang)) conflicts.push_back(hold);
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
