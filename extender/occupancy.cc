#include "extender/occupancy.h"

#include <algorithm>
#include <bit>

#include "crds/gpu_indexes.h"

namespace heddle::extender {
namespace {

Hold HoldOf(const PodFacts& pod, std::uint32_t gpus, Hold::Source source) {
  return {gpus, source, pod.uid, pod.gang.owner_uid, "pod " + pod.key.ToString(), std::nullopt, false};
}

// A rank that is done needs its slot no more; one that failed may come again.
bool Done(const std::vector<const PodFacts*>& pods) {
  const bool live = std::any_of(pods.begin(), pods.end(), [](const PodFacts* pod) { return pod->live(); });
  return !live && std::any_of(pods.begin(), pods.end(), [](const PodFacts* pod) { return pod->succeeded; });
}

}  // namespace

const topology::Node* Occupancy::Topology(const std::string& node) const {
  const auto found = topologies_.find(node);
  return found == topologies_.end() ? nullptr : found->second;
}

const std::vector<Hold>& Occupancy::HoldsOf(const std::string& node) const {
  static const std::vector<Hold> none;
  const auto found = holds_.find(node);
  return found == holds_.end() ? none : found->second;
}

const std::vector<placement::Resources>& Occupancy::UsesOf(const std::string& node) const {
  static const std::vector<placement::Resources> none;
  const auto found = uses_.find(node);
  return found == uses_.end() ? none : found->second;
}

void Occupancy::Fill(const SnapshotInputs& inputs) {
  ByUid bound;
  ByRank ranks;
  std::map<GangKey, placement::Resources> demands;
  for (const auto& pod : inputs.pods) {
    if (pod->occupies()) {
      bound.emplace(pod->uid, pod.get());
      Use(pod->node, pod->demand.resources);
    }
    demands.emplace(pod->gang, pod->demand.resources);
    if (pod->plan) ranks[{pod->gang, pod->plan->rank}].push_back(pod.get());
  }
  HoldGrants(inputs, bound);
  for (const auto& [uid, pod] : bound) HoldAnnotated(*pod);
  std::set<GangKey> holding;
  for (const auto& gang : inputs.gangs) {
    if (!HoldsSlots(*gang)) continue;
    const GangKey key = KeyOfGang(*gang);
    holding.insert(key);
    const auto demand = demands.find(key);
    const auto lapsed = inputs.lapsed.find(key);
    const auto done = inputs.done.find(key);
    const std::set<int> none;
    HoldReserved(*gang, ranks, demand == demands.end() ? placement::Resources{} : demand->second,
                 lapsed == inputs.lapsed.end() ? none : lapsed->second,
                 done == inputs.done.end() ? none : done->second);
  }
  for (const auto& pod : inputs.pods) {
    if (pod->plan && !holding.contains(pod->gang)) HoldTold(*pod);
  }
  for (const auto& [uid, pod] : bound) HoldAssumed(*pod);
}

// Its Gang has ended or was deleted, but while the pod lives it may be bound any moment, and may have been already: the
// watch of pods can be behind that of their owner.
void Occupancy::HoldTold(const PodFacts& pod) {
  if (pod.gated || !pod.live() || !pod.node.empty()) return;
  const topology::Node* topology = Topology(pod.plan->node);
  const std::uint32_t whole = topology == nullptr ? 0 : crds::AllIndexes(*topology);
  Hold hold = HoldOf(pod, pod.plan->gpus != 0 ? pod.plan->gpus : whole, Hold::Source::kReserved);
  hold.told = true;
  holds_[pod.plan->node].push_back(std::move(hold));
  Use(pod.plan->node, pod.demand.resources);
}

// A grant of a pod that is gone is old news: the agent will take it back.
void Occupancy::HoldGrants(const SnapshotInputs& inputs, const ByUid& bound) {
  std::map<kube::ObjectKey, const PodFacts*> by_name;
  for (const auto& [uid, pod] : bound) by_name.emplace(pod->key, pod);
  for (const auto& topology : inputs.topologies) {
    for (const crds::Grant& grant : topology->status.grants) {
      const auto found = by_name.find({grant.pod_namespace, grant.pod_name});
      if (found == by_name.end() || found->second->node != topology->name) continue;
      if (!grant.pod_uid.empty() && grant.pod_uid != found->second->uid) continue;
      std::uint32_t gpus = 0;
      for (const auto& gpu : grant.gpus) {
        if (gpu.index >= 0 && gpu.index < 32) gpus |= 1u << gpu.index;
      }
      if (gpus == 0) continue;
      granted_[found->second->uid] |= gpus;
      holds_[topology->name].push_back(HoldOf(*found->second, gpus, Hold::Source::kGrant));
    }
  }
}

void Occupancy::HoldAnnotated(const PodFacts& pod) {
  if (granted_.contains(pod.uid) || !pod.plan || pod.plan->node != pod.node) return;
  const topology::Node* topology = Topology(pod.node);
  const std::uint32_t whole = topology == nullptr ? 0 : crds::AllIndexes(*topology);
  const std::uint32_t gpus = pod.plan->gpus != 0 ? pod.plan->gpus : whole;
  holds_[pod.node].push_back(HoldOf(pod, gpus, Hold::Source::kAnnotation));
}

void Occupancy::Reserve(const std::string& node, std::uint32_t gpus, const crds::Gang& gang,
                        const placement::Resources& demand, bool told) {
  const topology::Node* topology = Topology(node);
  if (gpus == 0 && topology != nullptr) gpus = crds::AllIndexes(*topology);
  holds_[node].push_back({gpus, Hold::Source::kReserved, "", KeyOfGang(gang).owner_uid,
                          "gang " + gang.ns + "/" + gang.name, gang.status.planned_at, told});
  Use(node, demand);
}

void Occupancy::HoldReserved(const crds::Gang& gang, const ByRank& ranks, const placement::Resources& demand,
                             const std::set<int>& lapsed, const std::set<int>& done) {
  const GangKey key = KeyOfGang(gang);
  const auto rows = crds::ToRows(*gang.status.placement);
  for (int rank = 0; rank < int(rows.size()); ++rank) {
    if (lapsed.contains(rank)) continue;
    const crds::PlacedPod& slot = rows[std::size_t(rank)];
    const auto found = ranks.find({key, rank});
    const PodFacts* waiting = nullptr;
    bool live = false;
    bool there = false;  // the slot's resources are already counted
    if (found != ranks.end()) {
      if (Done(found->second)) continue;
      for (const PodFacts* pod : found->second) {
        if (pod->occupies() && (pod->live() || pod->node == slot.node)) there = true;
        if (pod->live() && pod->node.empty()) waiting = pod;
        live = live || pod->live();
      }
    }
    // The owner may be ahead of the pods here: one that is seen to live has its slot.
    if (there || (done.contains(rank) && !live)) continue;
    Reserve(slot.node, slot.gpus, gang, demand, waiting != nullptr && waiting->plan->node == slot.node);
    // Between the commit of a move and the patch of its pod the scheduler may still bind the pod where it was
    // sent first.
    if (waiting != nullptr && waiting->plan->node != slot.node) {
      Reserve(waiting->plan->node, waiting->plan->gpus, gang, demand, true);
    }
  }
}

// Nobody told us which GPUs these pods got: the lowest that are not spoken for, or else the lowest that are
// only reserved.
void Occupancy::HoldAssumed(const PodFacts& pod) {
  if (pod.demand.gpus == 0 || granted_.contains(pod.uid) || (pod.plan && pod.plan->node == pod.node)) return;
  const topology::Node* topology = Topology(pod.node);
  if (topology == nullptr) return;
  std::uint32_t held = 0, reserved = 0;
  for (const Hold& hold : holds_[pod.node]) {
    (hold.source == Hold::Source::kReserved ? reserved : held) |= hold.gpus;
  }
  const std::uint32_t all = crds::AllIndexes(*topology);
  std::uint32_t chosen = 0;
  for (std::uint32_t pool : {all & ~held & ~reserved, all & ~held}) {
    pool &= ~chosen;
    while (pool != 0 && std::popcount(chosen) < pod.demand.gpus) {
      const std::uint32_t lowest = pool & (~pool + 1);
      chosen |= lowest;
      pool &= ~lowest;
    }
  }
  if (chosen != 0) holds_[pod.node].push_back(HoldOf(pod, chosen, Hold::Source::kAssumed));
}

}  // namespace heddle::extender
