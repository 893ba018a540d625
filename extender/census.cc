#include "extender/census.h"

#include <algorithm>
#include <bit>

#include "crds/condition.h"
#include "crds/device_conditions.h"
#include "crds/gpu_indexes.h"
#include "extender/lost_nodes.h"

namespace heddle::extender {
namespace {

std::uint32_t HealthyPositions(const topology::Node& node) {
  std::uint32_t healthy = 0;
  for (std::size_t i = 0; i < node.gpus.size() && i < 32; ++i) {
    if (node.gpus[i].healthy) healthy |= 1u << i;
  }
  return healthy;
}

void CountNode(const Snapshot& snapshot, const topology::Node& node, const placement::NodeState& state,
               Census& census) {
  const std::uint32_t healthy = HealthyPositions(node);
  census.unhealthy += std::int64_t(node.gpus.size()) - std::popcount(healthy);
  std::uint32_t bound = 0, reserved = 0;
  if (const auto held = snapshot.holds.find(node.name); held != snapshot.holds.end()) {
    for (const Hold& hold : held->second) {
      (hold.source == Hold::Source::kReserved ? reserved : bound) |= crds::PositionsOf(node, hold.gpus);
    }
  }
  bound &= healthy;
  reserved &= healthy & ~bound;
  const std::uint32_t free = healthy & ~bound & ~reserved;
  census.bound += std::popcount(bound);
  census.reserved += std::popcount(reserved);
  if (!state.unusable.empty()) {
    census.unusable += std::popcount(free);
    ++census.unusable_nodes[state.unusable];
    return;
  }
  census.free += std::popcount(free);
  if (free == healthy) {
    census.whole_nodes += free != 0;
  } else {
    census.free_on_shared_nodes += std::popcount(free);
  }
}

// Racks and single servers are no sum: a group that needs a rack finds no place on eight servers.
void CountDomains(const FabricView& view, Census& census) {
  const auto& domains = view.fabric->domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (domains[i].gpus == 0) continue;
    census.whole_domains[domains[i].gpus] += view.state.domain_is_whole(topology::DomainId(i)) ? 1 : 0;
  }
}

bool IsWhole(const FabricView& view, topology::NodeId id) {
  const std::uint32_t healthy = HealthyPositions(view.fabric->nodes[std::size_t(id)].node);
  return healthy != 0 && view.state.open_gpus(id) == healthy;
}

}  // namespace

std::string_view GangStateName(GangState state) {
  constexpr std::array<std::string_view, kGangStates> names{"collecting", "waiting", "planned",   "released",
                                                            "running",    "stalled", "repairing", "degraded"};
  return names[std::size_t(state)];
}

GangState StateOf(const crds::Gang& gang) {
  const auto is = [&gang](std::string_view type) { return crds::IsTrue(gang.status.conditions, type); };
  if (is(crds::kDegraded)) return GangState::kDegraded;
  if (is(crds::kRepairing)) return GangState::kRepairing;
  if (is(crds::kRunning)) return gang.status.reason == kNodeLost ? GangState::kStalled : GangState::kRunning;
  if (is(crds::kReleased)) return GangState::kReleased;
  if (is(crds::kPlanned)) return GangState::kPlanned;
  if (is(crds::kCollected) || gang.status.reason == "WaitingForQuota") return GangState::kWaiting;
  return crds::FindCondition(gang.status.conditions, crds::kPlanned) != nullptr ? GangState::kWaiting
                                                                                : GangState::kCollecting;
}

GangCount CountGangs(const std::vector<Shared<crds::Gang>>& gangs) {
  GangCount count{};
  for (const auto& gang : gangs) {
    const auto& conditions = gang->status.conditions;
    // What mode observe looks at waits for its own scheduler, if at all, and for no plan.
    if (crds::IsTrue(conditions, crds::kEnded) ||
        (gang->status.observed && !crds::IsTrue(conditions, crds::kRunning)))
      continue;
    ++count[std::size_t(StateOf(*gang))];
  }
  return count;
}

int CountDevicesDiffer(const std::vector<Shared<crds::Gang>>& gangs) {
  return int(std::count_if(gangs.begin(), gangs.end(), [](const Shared<crds::Gang>& gang) {
    const auto& conditions = gang->status.conditions;
    const crds::Condition* devices = crds::FindCondition(conditions, crds::kDevicesAsPlanned);
    return devices != nullptr && devices->status == crds::ConditionStatus::kFalse &&
           !crds::IsTrue(conditions, crds::kEnded);
  }));
}

Census TakeCensus(const Snapshot& snapshot) {
  Census census;
  for (const auto& [word, nodes] : snapshot.left_out) census.unusable_nodes[word] += nodes;
  for (const FabricView& view : snapshot.fabrics) {
    for (std::size_t i = 0; i < view.fabric->nodes.size(); ++i) {
      CountNode(snapshot, view.fabric->nodes[i].node, view.state.nodes()[i], census);
    }
    CountDomains(view, census);
    for (const topology::Unit& unit : view.fabric->units) {
      const auto whole = std::count_if(unit.nodes.begin(), unit.nodes.end(),
                                       [&view](topology::NodeId id) { return IsWhole(view, id); });
      census.largest = std::max(census.largest, int(whole));
      for (int size = 0; size < Census::kSizes; ++size) census.fit[std::size_t(size)] += whole >> size;
    }
  }
  return census;
}

}  // namespace heddle::extender
