#include "extender/occupancy.h"

#include <algorithm>
#include <bit>

#include "crds/gpu_indexes.h"
#include "crds/node_use.h"
#include "extender/compute_domain.h"

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

std::string WhyUnusable(const SnapshotInputs& inputs, const topology::Node& topology, const NodeFacts* node) {
  crds::NodeUse use;
  use.gone = node == nullptr;
  if (node != nullptr) {
    use.ready = node->ready;
    use.cordoned = node->cordoned;
    use.gpus = crds::CompareGpus(node->gpus, topology);
  }
  const auto spoken = inputs.fabrics->unusable.find(topology.name);
  if (spoken != inputs.fabrics->unusable.end()) use.published = spoken->second;
  use.silent = inputs.stale_nodes.contains(topology.name);
  return crds::WhyOutOfUse(use);
}

// One node's claims, in the order in which they count.
class Claims {
 public:
  explicit Claims(const Seat& seat) : seat_(seat) {
    if (seat.facts == nullptr) return;
    on_.state.free_milli_cpu = seat.facts->milli_cpu;
    on_.state.free_memory_bytes = seat.facts->memory_bytes;
    on_.state.free_pods = seat.facts->pods;
    on_.state.free_extended = WithImexChannel(seat.facts->extended, seat.topology);
  }

  Occupied Take() {
    for (const PodFacts* pod : seat_.bound) Use(pod->demand.resources);
    if (seat_.grants != nullptr) HoldGrants();
    for (const PodFacts* pod : seat_.bound) HoldAnnotated(*pod);
    for (const Hold* hold : seat_.reserved) HoldReserved(*hold);
    for (const PodFacts* pod : seat_.bound) HoldAssumed(*pod);
    return std::move(on_);
  }

 private:
  void Use(const placement::Resources& resources);
  void HoldGrants();
  void HoldAnnotated(const PodFacts& pod);
  void HoldReserved(const Hold& hold);
  void HoldAssumed(const PodFacts& pod);

  std::uint32_t Whole() const { return seat_.topology == nullptr ? 0 : crds::AllIndexes(*seat_.topology); }
  // The kubelet has told already.
  bool IsGranted(const PodFacts& pod) const {
    return std::find(granted_.begin(), granted_.end(), pod.uid) != granted_.end();
  }
  const PodFacts* PodOf(const crds::Grant& grant) const;

  const Seat& seat_;
  Occupied on_;
  std::vector<std::string_view> granted_;  // UIDs of pods
};

void Claims::Use(const placement::Resources& resources) {
  if (seat_.facts == nullptr) return;
  placement::NodeState& state = on_.state;
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

// Null where the pod is gone: the agent will take such a grant back.
const PodFacts* Claims::PodOf(const crds::Grant& grant) const {
  const auto found = std::find_if(seat_.bound.begin(), seat_.bound.end(), [&grant](const PodFacts* pod) {
    return pod->key.name == grant.pod_name && pod->key.ns == grant.pod_namespace;
  });
  if (found == seat_.bound.end() || (!grant.pod_uid.empty() && grant.pod_uid != (*found)->uid))
    return nullptr;
  return *found;
}

void Claims::HoldGrants() {
  std::vector<std::pair<const PodFacts*, PodGrants>> planned;  // to pods that have a plan for this node
  for (const crds::Grant& grant : *seat_.grants) {
    const PodFacts* pod = PodOf(grant);
    if (pod == nullptr) continue;
    std::uint32_t gpus = 0;
    bool whole = true;
    for (const auto& gpu : grant.gpus) {
      const bool known = gpu.index >= 0 && gpu.index < int(kMostGpus);
      if (known) gpus |= 1u << gpu.index;
      whole = whole && known;
    }
    if (pod->plan && pod->live() && pod->plan->node == pod->node) {
      auto given = std::find_if(planned.begin(), planned.end(),
                                [pod](const auto& entry) { return entry.first == pod; });
      if (given == planned.end()) given = planned.insert(planned.end(), {pod, {}});
      given->second.gpus |= gpus;
      given->second.whole = given->second.whole && whole;
      given->second.nics.insert(given->second.nics.end(), grant.nics.begin(), grant.nics.end());
    }
    if (gpus == 0) continue;
    if (!IsGranted(*pod)) granted_.push_back(pod->uid);
    const auto known = std::find_if(on_.holds.begin(), on_.holds.end(),
                                    [pod](const Hold& hold) { return hold.pod_uid == pod->uid; });
    if (known != on_.holds.end()) {
      known->gpus |= gpus;  // a grant a container
    } else {
      on_.holds.push_back(HoldOf(*pod, gpus, Hold::Source::kGrant));
    }
  }
  if (seat_.topology == nullptr) return;
  for (const auto& [pod, grants] : planned) {
    if (auto given = CompareGrants(*pod, grants, *seat_.topology)) on_.given.push_back(*std::move(given));
  }
}

void Claims::HoldAnnotated(const PodFacts& pod) {
  if (!pod.plan || pod.plan->node != pod.node || IsGranted(pod)) return;
  const std::uint32_t gpus = pod.plan->gpus != 0 ? pod.plan->gpus : Whole();
  on_.holds.push_back(HoldOf(pod, gpus, Hold::Source::kAnnotation));
}

void Claims::HoldReserved(const Hold& hold) {
  on_.holds.push_back(hold);
  if (hold.gpus == 0) on_.holds.back().gpus = Whole();
  Use(hold.resources);
}

// Nobody told us which GPUs these pods got: the lowest that are not spoken for, or else the lowest that are
// only reserved.
void Claims::HoldAssumed(const PodFacts& pod) {
  if (pod.demand.gpus == 0 || (pod.plan && pod.plan->node == pod.node) || IsGranted(pod)) return;
  std::uint32_t held = 0, reserved = 0;
  for (const Hold& hold : on_.holds) {
    (hold.source == Hold::Source::kReserved ? reserved : held) |= hold.gpus;
  }
  const std::uint32_t all = Whole();
  std::uint32_t chosen = 0;
  for (std::uint32_t pool : {all & ~held & ~reserved, all & ~held}) {
    pool &= ~chosen;
    while (pool != 0 && std::popcount(chosen) < pod.demand.gpus) {
      const std::uint32_t lowest = pool & (~pool + 1);
      chosen |= lowest;
      pool &= ~lowest;
    }
  }
  if (chosen != 0) on_.holds.push_back(HoldOf(pod, chosen, Hold::Source::kAssumed));
}

// Null where there is none.
template <class T>
Shared<T> FindNamed(const base::SharedList<Shared<T>>& sorted, std::string_view name) {
  const auto at =
      std::lower_bound(sorted.begin(), sorted.end(), name,
                       [](const Shared<T>& one, std::string_view key) { return one->name < key; });
  return at != sorted.end() && (*at)->name == name ? *at : nullptr;
}

}  // namespace

Occupied Occupy(const SnapshotInputs& inputs, const Seat& seat) {
  Occupied on = Claims(seat).Take();
  if (seat.topology == nullptr) return on;
  on.state.unusable = WhyUnusable(inputs, *seat.topology, seat.facts.get());
  on.state.free_gpus = FreePositions(*seat.topology, on.holds);
  return on;
}

// To look 20,000 pods up by name is what the seats of all nodes take their time for: hence the fabrics' own indexes.
Seats::Seats(const SnapshotInputs& inputs, const std::vector<Reservation>& reservations, const Names* some)
    : fabrics_(*inputs.fabrics), all_(some == nullptr) {
  if (some == nullptr) {
    AddAll(inputs);
  } else {
    AddSome(inputs, *some);
  }
  for (const auto& pod : inputs.pods) {
    if (!pod->occupies()) continue;
    if (Seat* seat = Find(pod->node)) seat->bound.push_back(pod.get());
  }
  for (const Reservation& reservation : reservations) {
    if (Seat* seat = Find(reservation.node)) seat->reserved.push_back(&reservation.hold);
  }
}

void Seats::AddAll(const SnapshotInputs& inputs) {
  for (std::size_t fabric = 0; fabric < fabrics_.fabrics.size(); ++fabric) {
    begins_.push_back(seats_.size());
    const auto& nodes = fabrics_.fabrics[fabric]->nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const topology::Node& node = nodes[i].node;
      seats_.push_back({node.name, fabric, topology::NodeId(i), &node, nullptr, nullptr, {}, {}});
    }
  }
  for (const auto& node : inputs.nodes) Find(node->name)->facts = node;
  for (const auto& topology : inputs.topologies) {
    if (!topology->grants.empty()) Find(topology->name)->grants = &topology->grants;
  }
}

void Seats::AddSome(const SnapshotInputs& inputs, const Names& names) {
  for (const std::string_view name : names) {
    Seat seat{.name = name};
    for (std::size_t i = 0; i < fabrics_.indexes.size() && seat.topology == nullptr; ++i) {
      const topology::NodeId id = fabrics_.indexes[i]->Find(name);
      if (id == topology::kNone) continue;
      seat.fabric = i;
      seat.id = id;
      seat.topology = &fabrics_.fabrics[i]->nodes[std::size_t(seat.id)].node;
    }
    seat.facts = FindNamed(inputs.nodes, name);
    if (const auto topology = FindNamed(inputs.topologies, name)) seat.grants = &topology->grants;
    others_.emplace(name, seats_.size());
    seats_.push_back(std::move(seat));
  }
}

Seat* Seats::Find(std::string_view node) {
  for (std::size_t i = 0; all_ && i < fabrics_.indexes.size(); ++i) {
    const topology::NodeId id = fabrics_.indexes[i]->Find(node);
    if (id != topology::kNone) return &seats_[begins_[i] + std::size_t(id)];
  }
  if (!all_) {
    const auto found = others_.find(node);
    return found == others_.end() ? nullptr : &seats_[found->second];
  }
  const auto [found, fresh] = others_.try_emplace(node, seats_.size());
  if (fresh) seats_.push_back({.name = node});
  return &seats_[found->second];
}

}  // namespace heddle::extender
