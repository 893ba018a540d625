#include "extender/reservations.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

namespace heddle::extender {
namespace {

struct KeyHash {
  std::size_t operator()(const GangKey& key) const { return std::hash<std::string>()(key.owner_uid); }
};

struct Holder {
  const crds::Gang* gang = nullptr;
  const placement::Resources* demand = nullptr;          // of any of its pods; null = it has none
  std::vector<std::vector<const PodFacts*>> ranks;       // the pods that have each rank, see RankIn
  std::multimap<std::string_view, std::size_t> by_node;  // ranks by their slots' nodes, once somebody asks
  bool begun = false;
};
using Holders = std::unordered_map<GangKey, Holder, KeyHash>;

// Whether a pod that is bound has any of this slot's GPUs.
bool IsOnSlot(const PodFacts& pod, const crds::Placement& slots, std::size_t rank) {
  if (slots.node_names[std::size_t(slots.nodes[rank])] != pod.node) return false;
  const std::uint32_t slot = slots.gpus.empty() ? 0 : slots.gpus[rank];
  const std::uint32_t held = pod.plan->node == pod.node ? pod.plan->gpus : 0;
  return slot == 0 || held == 0 || (slot & held) != 0;
}

// The rank that a pod with a plan has in the gang: what it was told. But an earlier Gang of its owner may have had
// another size, where that was another rank: then one that is bound has the rank on whose slot it stands.
std::int64_t RankIn(Holder& holder, const PodFacts& pod) {
  const int told = pod.plan->rank;
  if (!pod.occupies() || pod.plan->gang_uid == holder.gang->uid) return told;
  const crds::Placement& slots = *holder.gang->status.placement;
  const std::size_t count = slots.nodes.size();
  if (told >= 0 && std::size_t(told) < count && IsOnSlot(pod, slots, std::size_t(told))) return told;
  if (holder.by_node.empty()) {
    for (std::size_t rank = 0; rank < count; ++rank)
      holder.by_node.emplace(slots.node_names[std::size_t(slots.nodes[rank])], rank);
  }
  const auto [begin, end] = holder.by_node.equal_range(pod.node);
  for (auto at = begin; at != end; ++at) {
    if (IsOnSlot(pod, slots, at->second)) return std::int64_t(at->second);
  }
  return told;
}

Holders HoldersOf(const SnapshotInputs& inputs) {
  Holders holders;
  for (const auto& gang : inputs.gangs) {
    if (!HoldsSlots(*gang)) continue;
    Holder& holder = holders[KeyOfGang(*gang)];
    holder.gang = gang.get();
    holder.ranks.resize(gang->status.placement->nodes.size());
  }
  for (const auto& pod : inputs.pods) {
    const auto found = holders.find(pod->gang);
    if (found == holders.end()) continue;
    Holder& holder = found->second;
    if (holder.demand == nullptr) holder.demand = &pod->demand.resources;
    holder.begun = holder.begun || (pod->live() && !pod->gated);
    const std::int64_t rank = pod->plan ? RankIn(holder, *pod) : -1;
    if (rank < 0 || std::size_t(rank) >= holder.ranks.size()) continue;
    holder.ranks[std::size_t(rank)].push_back(pod.get());
  }
  return holders;
}

// A rank that is done needs its slot no more; one that failed may come again.
bool Done(const std::vector<const PodFacts*>& pods) {
  const bool live = std::any_of(pods.begin(), pods.end(), [](const PodFacts* pod) { return pod->live(); });
  return !live && std::any_of(pods.begin(), pods.end(), [](const PodFacts* pod) { return pod->succeeded; });
}

Hold SlotHold(const Holder& holder, std::uint32_t gpus, bool told) {
  const crds::Gang& gang = *holder.gang;
  return {gpus,
          Hold::Source::kReserved,
          "",
          KeyOfGang(gang).owner_uid,
          gang.ns,
          "gang " + gang.ns + "/" + gang.name,
          holder.demand == nullptr ? placement::Resources{} : *holder.demand,
          gang.status.planned_at,
          told,
          holder.begun};
}

const std::string kNowhere;

void AddSlots(const Holder& holder, const std::set<int>& lapsed, const std::set<int>& done,
              std::vector<Reservation>& all) {
  const crds::Placement& slots = *holder.gang->status.placement;
  for (std::size_t rank = 0; rank < slots.nodes.size(); ++rank) {
    // It was done when the plan was made. A pod that comes all the same gets a slot, and until then nothing but what it
    // may have been told.
    const std::string& planned = slots.node_names[std::size_t(slots.nodes[rank])];
    const bool has_slot = planned != crds::kNoNode;
    const std::string& node = has_slot ? planned : kNowhere;
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
    // The owner may be ahead of the pods here, or the Gang behind them: one that is seen to live has its slot.
    if (there || (!live && (done.contains(int(rank)) || lapsed.contains(int(rank))))) continue;
    if (has_slot)
      all.push_back({node, SlotHold(holder, gpus, waiting != nullptr && waiting->plan->node == node)});
    // Between the commit of a move and the patch of its pod the scheduler may still bind the pod where it was
    // sent first.
    if (waiting != nullptr && waiting->plan->node != node) {
      all.push_back({waiting->plan->node, SlotHold(holder, waiting->plan->gpus, true)});
    }
  }
}

// Whether the Gang that holds slots now has a rank of the number that the pod was told.
bool HasRank(const Holders& holders, const PodFacts& pod) {
  const auto holder = holders.find(pod.gang);
  return holder != holders.end() && pod.plan->rank >= 0 &&
         std::size_t(pod.plan->rank) < holder->second.ranks.size();
}

// Its Gang has ended, was deleted or has fewer ranks now, but while the pod lives it may be bound any moment, and may
// have been already: the watch of pods can be behind that of their owner.
void AddTold(const PodFacts& pod, std::vector<Reservation>& all) {
  if (pod.gated || !pod.live() || !pod.node.empty()) return;
  Hold hold = HoldOf(pod, pod.plan->gpus, Hold::Source::kReserved);
  hold.told = true;
  all.push_back({pod.plan->node, std::move(hold)});
}

}  // namespace

Hold HoldOf(const PodFacts& pod, std::uint32_t gpus, Hold::Source source) {
  return {gpus,
          source,
          pod.uid,
          pod.gang.owner_uid,
          pod.gang.ns,
          "pod " + pod.key.ToString(),
          pod.demand.resources,
          std::nullopt,
          false,
          false,
          pod.terminating && pod.plan.has_value()};
}

std::vector<Reservation> ReservationsOf(const SnapshotInputs& inputs) {
  const Holders holders = HoldersOf(inputs);
  std::vector<Reservation> all;
  const std::set<int> none;
  for (const auto& gang : inputs.gangs) {
    const auto holder = holders.find(KeyOfGang(*gang));
    if (holder == holders.end() || holder->second.gang != gang.get()) continue;
    const auto lapsed = inputs.lapsed.find(holder->first);
    const auto done = inputs.done.find(holder->first);
    AddSlots(holder->second, lapsed == inputs.lapsed.end() ? none : lapsed->second,
             done == inputs.done.end() ? none : done->second, all);
  }
  for (const auto& pod : inputs.pods) {
    if (pod->plan && !HasRank(holders, *pod)) AddTold(*pod, all);
  }
  return all;
}

}  // namespace heddle::extender
