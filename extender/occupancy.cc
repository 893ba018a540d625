#include "extender/occupancy.h"

#include <algorithm>
#include <bit>

#include "crds/gpu_indexes.h"
#include "extender/compute_domain.h"

namespace heddle::extender {
namespace {

constexpr std::size_t kMostGpus = 32;  // a pod's GPUs are bits of 32

Hold HoldOf(const PodFacts& pod, std::uint32_t gpus, Hold::Source source) {
  return {
      gpus,         source, pod.uid, pod.gang.owner_uid, "pod " + pod.key.ToString(), pod.demand.resources,
      std::nullopt, false};
}

// A rank that is done needs its slot no more; one that failed may come again.
bool Done(const std::vector<const PodFacts*>& pods) {
  const bool live = std::any_of(pods.begin(), pods.end(), [](const PodFacts* pod) { return pod->live(); });
  return !live && std::any_of(pods.begin(), pods.end(), [](const PodFacts* pod) { return pod->succeeded; });
}

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

// Names of pods, without making a string of both.
struct PodName {
  std::string_view ns, name;
  friend bool operator==(const PodName&, const PodName&) = default;
};
struct PodNameHash {
  std::size_t operator()(const PodName& key) const {
    const std::hash<std::string_view> hash;
    return hash(key.name) * 31 + hash(key.ns);
  }
};

}  // namespace

Occupancy::Occupancy(const SnapshotInputs& inputs) : inputs_(inputs) {
  AddPlaces();
  for (const auto& gang : inputs_.gangs) {
    if (!HoldsSlots(*gang)) continue;
    Holder& holder = holders_[KeyOfGang(*gang)];
    holder.gang = gang.get();
    holder.ranks.resize(gang->status.placement->nodes.size());
  }
  ReadPods();
  HoldGrants();
  for (const Bound& bound : bound_) HoldAnnotated(bound);
  for (const auto& gang : inputs_.gangs) {
    const auto holder = holders_.find(KeyOfGang(*gang));
    if (holder == holders_.end() || holder->second.gang != gang.get()) continue;
    const auto lapsed = inputs_.lapsed.find(holder->first);
    const auto done = inputs_.done.find(holder->first);
    const std::set<int> none;
    HoldReserved(holder->second, lapsed == inputs_.lapsed.end() ? none : lapsed->second,
                 done == inputs_.done.end() ? none : done->second);
  }
  for (const auto& pod : inputs_.pods) {
    if (pod->plan && !holders_.contains(pod->gang)) HoldTold(*pod);
  }
  for (const Bound& bound : bound_) HoldAssumed(bound);
}

void Occupancy::AddPlaces() {
  for (const auto& fabric : inputs_.fabrics->fabrics) {
    begins_.push_back(places_.size());
    for (const topology::FabricNode& node : fabric->nodes)
      places_.push_back({node.node.name, &node.node, nullptr, {}, {}});
  }
  begins_.push_back(places_.size());
  for (const auto& node : inputs_.nodes) {
    Place& place = places_[PlaceOf(node->name)];
    place.facts = node.get();
    place.state.free_milli_cpu = node->milli_cpu;
    place.state.free_memory_bytes = node->memory_bytes;
    place.state.free_pods = node->pods;
    place.state.free_extended = WithImexChannel(node->extended, place.topology);
  }
}

std::size_t Occupancy::PlaceOf(std::string_view node) {
  for (std::size_t i = 0; i < inputs_.fabrics->indexes.size(); ++i) {
    const NodeIndex& index = *inputs_.fabrics->indexes[i];
    if (const auto found = index.find(node); found != index.end())
      return begins_[i] + std::size_t(found->second);
  }
  const auto [found, fresh] = outside_.try_emplace(node, places_.size());
  if (fresh) places_.push_back({node, nullptr, nullptr, {}, {}});
  return found->second;
}

void Occupancy::Use(Place& place, const placement::Resources& resources) {
  if (place.facts == nullptr) return;
  placement::NodeState& state = place.state;
  state.free_milli_cpu -= resources.milli_cpu;
  state.free_memory_bytes -= resources.memory_bytes;
  --state.free_pods;
  for (const auto& [name, amount] : resources.extended) {
    const auto it =
        std::lower_bound(state.free_extended.begin(), state.free_extended.end(), name,
                         [](const auto& entry, const std::string& wanted) { return entry.first < wanted; });
    if (it != state.free_extended.end() && it->first == name) it->second -= amount;
  }
}

void Occupancy::ReadPods() {
  bound_.reserve(inputs_.pods.size());
  for (const auto& pod : inputs_.pods) {
    if (pod->occupies()) {
      bound_.push_back({pod.get(), PlaceOf(pod->node)});
      Use(places_[bound_.back().place], pod->demand.resources);
    }
    const auto found = holders_.find(pod->gang);
    if (found == holders_.end()) continue;
    Holder& holder = found->second;
    if (holder.demand == nullptr) holder.demand = &pod->demand.resources;
    if (!pod->plan || pod->plan->rank < 0 || std::size_t(pod->plan->rank) >= holder.ranks.size()) continue;
    holder.ranks[std::size_t(pod->plan->rank)].push_back(pod.get());
  }
}

// Its Gang has ended or was deleted, but while the pod lives it may be bound any moment, and may have been already: the
// watch of pods can be behind that of their owner.
void Occupancy::HoldTold(const PodFacts& pod) {
  if (pod.gated || !pod.live() || !pod.node.empty()) return;
  Place& place = places_[PlaceOf(pod.plan->node)];
  const std::uint32_t whole = place.topology == nullptr ? 0 : crds::AllIndexes(*place.topology);
  Hold hold = HoldOf(pod, pod.plan->gpus != 0 ? pod.plan->gpus : whole, Hold::Source::kReserved);
  hold.told = true;
  place.holds.push_back(std::move(hold));
  Use(place, pod.demand.resources);
}

// A grant of a pod that is gone is old news: the agent will take it back.
void Occupancy::HoldGrants() {
  std::unordered_map<PodName, const Bound*, PodNameHash> by_name;
  std::unordered_map<const Bound*, PodGrants> planned;  // to pods that have a plan for the node they are on
  for (const auto& topology : inputs_.topologies) {
    for (const crds::Grant& grant : topology->grants) {
      if (by_name.empty()) {
        by_name.reserve(bound_.size());
        for (const Bound& bound : bound_)
          by_name.emplace(PodName{bound.pod->key.ns, bound.pod->key.name}, &bound);
      }
      const auto found = by_name.find({grant.pod_namespace, grant.pod_name});
      if (found == by_name.end() || found->second->pod->node != topology->name) continue;
      const PodFacts& pod = *found->second->pod;
      if (!grant.pod_uid.empty() && grant.pod_uid != pod.uid) continue;
      std::uint32_t gpus = 0;
      bool whole = true;
      for (const auto& gpu : grant.gpus) {
        const bool known = gpu.index >= 0 && gpu.index < int(kMostGpus);
        if (known) gpus |= 1u << gpu.index;
        whole = whole && known;
      }
      if (pod.plan && pod.live() && pod.plan->node == pod.node) {
        PodGrants& given = planned[found->second];
        given.gpus |= gpus;
        given.whole = given.whole && whole;
        given.nics.insert(given.nics.end(), grant.nics.begin(), grant.nics.end());
      }
      if (gpus == 0) continue;
      std::vector<Hold>& holds = places_[found->second->place].holds;
      const auto known = std::find_if(holds.begin(), holds.end(),
                                      [&pod](const Hold& hold) { return hold.pod_uid == pod.uid; });
      granted_[pod.uid] |= gpus;
      if (known != holds.end()) {
        known->gpus |= gpus;  // a grant a container
      } else {
        holds.push_back(HoldOf(pod, gpus, Hold::Source::kGrant));
      }
    }
  }
  for (const auto& [bound, given] : planned) {
    const topology::Node* node = places_[bound->place].topology;
    if (node != nullptr) AddGrants(*bound->pod, given, *node, given_);
  }
}

void Occupancy::HoldAnnotated(const Bound& bound) {
  const PodFacts& pod = *bound.pod;
  if (!pod.plan || pod.plan->node != pod.node || granted_.contains(pod.uid)) return;
  Place& place = places_[bound.place];
  const std::uint32_t whole = place.topology == nullptr ? 0 : crds::AllIndexes(*place.topology);
  const std::uint32_t gpus = pod.plan->gpus != 0 ? pod.plan->gpus : whole;
  place.holds.push_back(HoldOf(pod, gpus, Hold::Source::kAnnotation));
}

void Occupancy::Reserve(const std::string& node, std::uint32_t gpus, const Holder& holder, bool told) {
  Place& place = places_[PlaceOf(node)];
  if (gpus == 0 && place.topology != nullptr) gpus = crds::AllIndexes(*place.topology);
  const crds::Gang& gang = *holder.gang;
  const placement::Resources demand = holder.demand == nullptr ? placement::Resources{} : *holder.demand;
  place.holds.push_back({gpus, Hold::Source::kReserved, "", KeyOfGang(gang).owner_uid,
                         "gang " + gang.ns + "/" + gang.name, demand, gang.status.planned_at, told});
  Use(place, demand);
}

void Occupancy::HoldReserved(const Holder& holder, const std::set<int>& lapsed, const std::set<int>& done) {
  const crds::Placement& slots = *holder.gang->status.placement;
  for (std::size_t rank = 0; rank < slots.nodes.size(); ++rank) {
    if (lapsed.contains(int(rank))) continue;
    const std::string& node = slots.node_names[std::size_t(slots.nodes[rank])];
    const std::uint32_t gpus = slots.gpus.empty() ? 0 : slots.gpus[rank];
    const PodFacts* waiting = nullptr;
    bool live = false;
    bool there = false;  // the slot's resources are already counted
    const std::vector<const PodFacts*>& pods = holder.ranks[rank];
    if (Done(pods)) continue;
    for (const PodFacts* pod : pods) {
      if (pod->occupies() && (pod->live() || pod->node == node)) there = true;
      if (pod->live() && pod->node.empty()) waiting = pod;
      live = live || pod->live();
    }
    // The owner may be ahead of the pods here: one that is seen to live has its slot.
    if (there || (done.contains(int(rank)) && !live)) continue;
    Reserve(node, gpus, holder, waiting != nullptr && waiting->plan->node == node);
    // Between the commit of a move and the patch of its pod the scheduler may still bind the pod where it was
    // sent first.
    if (waiting != nullptr && waiting->plan->node != node) {
      Reserve(waiting->plan->node, waiting->plan->gpus, holder, true);
    }
  }
}

// Nobody told us which GPUs these pods got: the lowest that are not spoken for, or else the lowest that are
// only reserved.
void Occupancy::HoldAssumed(const Bound& bound) {
  const PodFacts& pod = *bound.pod;
  if (pod.demand.gpus == 0 || (pod.plan && pod.plan->node == pod.node) || granted_.contains(pod.uid)) return;
  Place& place = places_[bound.place];
  if (place.topology == nullptr) return;
  std::uint32_t held = 0, reserved = 0;
  for (const Hold& hold : place.holds) {
    (hold.source == Hold::Source::kReserved ? reserved : held) |= hold.gpus;
  }
  const std::uint32_t all = crds::AllIndexes(*place.topology);
  std::uint32_t chosen = 0;
  for (std::uint32_t pool : {all & ~held & ~reserved, all & ~held}) {
    pool &= ~chosen;
    while (pool != 0 && std::popcount(chosen) < pod.demand.gpus) {
      const std::uint32_t lowest = pool & (~pool + 1);
      chosen |= lowest;
      pool &= ~lowest;
    }
  }
  if (chosen != 0) place.holds.push_back(HoldOf(pod, chosen, Hold::Source::kAssumed));
}

std::vector<placement::NodeState> Occupancy::TakeStates(std::size_t fabric) {
  std::vector<placement::NodeState> states;
  states.reserve(begins_[fabric + 1] - begins_[fabric]);
  for (std::size_t i = begins_[fabric]; i < begins_[fabric + 1]; ++i) {
    Place& place = places_[i];
    place.state.unusable = WhyUnusable(inputs_, *place.topology, place.facts);
    place.state.free_gpus = FreePositions(*place.topology, place.holds);
    states.push_back(std::move(place.state));
  }
  return states;
}

std::map<std::string, std::vector<Hold>> Occupancy::TakeHolds() {
  std::vector<Place*> held;
  for (Place& place : places_) {
    if (!place.holds.empty()) held.push_back(&place);
  }
  const auto by_name = [](const Place* a, const Place* b) { return a->name < b->name; };
  if (!std::is_sorted(held.begin(), held.end(), by_name)) std::sort(held.begin(), held.end(), by_name);
  std::map<std::string, std::vector<Hold>> holds;
  for (Place* place : held) holds.emplace_hint(holds.end(), place->name, std::move(place->holds));
  return holds;
}

}  // namespace heddle::extender
