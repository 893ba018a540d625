#include "placement/defragment_trials.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <variant>

#include "base/check.h"
#include "placement/planner.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

// With more gangs on the move than this only the largest-first and the smallest-first order are tried.
constexpr std::size_t kMostPermuted = 4;

std::uint32_t HealthyGpus(const topology::FabricNode& node) {
  std::uint32_t healthy = 0;
  for (std::size_t p = 0; p < node.node.gpus.size() && p < 32; ++p)
    healthy |= (node.node.gpus[p].healthy ? 1U : 0U) << p;
  return healthy;
}

std::vector<OpenablePlace> AllPlaces(const topology::Fabric& fabric, const DefragmentGoal& goal) {
  std::vector<OpenablePlace> places;
  const auto add = [&](std::size_t id, const std::vector<NodeId>& nodes) {
    OpenablePlace place{std::int32_t(id), nodes, 0, {}};
    for (const NodeId node : nodes) place.gpus += std::popcount(HealthyGpus(fabric.nodes[std::size_t(node)]));
    if (place.gpus >= std::max(1, goal.min_gpus)) places.push_back(std::move(place));
  };
  if (goal.level == Level::kUnit) {
    for (std::size_t u = 0; u < fabric.units.size(); ++u) add(u, fabric.units[u].nodes);
  } else {
    for (std::size_t d = 0; d < fabric.domains.size(); ++d) add(d, fabric.domains[d].nodes);
  }
  return places;
}

bool IsWhole(const ClusterState& state, const OpenablePlace& place) {
  return std::all_of(place.nodes.begin(), place.nodes.end(), [&](NodeId node) {
    return state.free_gpus(node) == std::popcount(HealthyGpus(state.fabric().nodes[std::size_t(node)]));
  });
}

int GpusOf(const RunningGang& gang) {
  return std::accumulate(gang.pods.begin(), gang.pods.end(), 0,
                         [](int sum, const PodPlacement& pod) { return sum + std::popcount(pod.gpus); });
}

}  // namespace

int CountWhole(const ClusterState& state, const DefragmentGoal& goal) {
  const auto places = AllPlaces(state.fabric(), goal);
  return int(std::count_if(places.begin(), places.end(),
                           [&](const OpenablePlace& place) { return IsWhole(state, place); }));
}

OpenablePlaces FindOpenable(const ClusterState& state, const std::vector<RunningGang>& gangs,
                            const DefragmentGoal& goal) {
  const topology::Fabric& fabric = state.fabric();
  std::vector<std::vector<int>> on_node(fabric.nodes.size());
  std::vector<std::uint32_t> could_be_free(fabric.nodes.size(), 0);
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
    if (state.node(NodeId(n)).unusable.empty()) could_be_free[n] = state.node(NodeId(n)).free_gpus;
  }
  for (std::size_t g = 0; g < gangs.size(); ++g) {
    if (!gangs[g].movable) continue;
    for (const PodPlacement& pod : gangs[g].pods) {
      if (pod.gpus == 0) continue;
      on_node[std::size_t(pod.node)].push_back(int(g));
      could_be_free[std::size_t(pod.node)] |= pod.gpus;
    }
  }
  OpenablePlaces found;
  for (OpenablePlace& place : AllPlaces(fabric, goal)) {
    ++found.large_enough;
    bool pinned = false;
    for (const NodeId node : place.nodes) {
      const auto n = std::size_t(node);
      pinned = pinned || (HealthyGpus(fabric.nodes[n]) & ~could_be_free[n]) != 0 ||
               !state.node(node).unusable.empty();
      place.gangs.insert(place.gangs.end(), on_node[n].begin(), on_node[n].end());
    }
    if (pinned) continue;
    std::sort(place.gangs.begin(), place.gangs.end());
    place.gangs.erase(std::unique(place.gangs.begin(), place.gangs.end()), place.gangs.end());
    found.places.push_back(std::move(place));
  }
  return found;
}

DefragmentTrials::DefragmentTrials(ClusterState& state, const std::vector<RunningGang>& gangs,
                                   const DefragmentGoal& goal)
    : state_(state), gangs_(gangs), goal_(goal), closed_(state.fabric().nodes.size(), 0) {
  for (const topology::FabricNode& node : state.fabric().nodes) healthy_.push_back(HealthyGpus(node));
  for (std::size_t g = 0; g < gangs.size(); ++g) {
    CHECK(gangs[g].pods.size() == gangs[g].request.pods.size());
    if (gangs[g].movable) by_cost_.push_back(int(g));
  }
  std::stable_sort(by_cost_.begin(), by_cost_.end(),
                   [&](int a, int b) { return gangs_[std::size_t(a)].cost < gangs_[std::size_t(b)].cost; });
}

std::uint32_t DefragmentTrials::HealthyOf(const PodPlacement& pod) const {
  return pod.gpus == 0 ? 0 : pod.gpus & healthy_[std::size_t(pod.node)];
}

double DefragmentTrials::CostOf(const std::vector<GangMove>& moves) const {
  return std::accumulate(moves.begin(), moves.end(), 0.0, [this](double sum, const GangMove& move) {
    return sum + gangs_[std::size_t(move.gang)].cost;
  });
}

double DefragmentTrials::CostOf(const std::vector<const OpenablePlace*>& places) const {
  double cost = 0;
  for (const int gang : GangsOn(places)) cost += gangs_[std::size_t(gang)].cost;
  return cost;
}

double DefragmentTrials::CostBeside(const OpenablePlace& place, const std::set<int>& moving) const {
  double cost = 0;
  for (const int gang : place.gangs) cost += moving.contains(gang) ? 0 : gangs_[std::size_t(gang)].cost;
  return cost;
}

std::vector<int> DefragmentTrials::GangsOn(const std::vector<const OpenablePlace*>& places) const {
  std::set<int> gangs;
  for (const OpenablePlace* place : places) gangs.insert(place->gangs.begin(), place->gangs.end());
  return {gangs.begin(), gangs.end()};
}

std::optional<std::vector<GangMove>> DefragmentTrials::Open(const std::vector<const OpenablePlace*>& places,
                                                            double most) {
  std::vector<int> order = GangsOn(places);
  if (order.empty()) return Moves{};
  const ClusterState::Savepoint before = state_.Mark();
  for (const OpenablePlace* place : places) {
    for (const NodeId node : place->nodes) {
      closed_[std::size_t(node)] = 1;
      state_.Take(node, state_.node(node).free_gpus, {});
    }
  }
  std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
    return GpusOf(gangs_[std::size_t(a)]) > GpusOf(gangs_[std::size_t(b)]);
  });
  std::optional<Moves> moves = InOrder(order, most);
  if (!moves && order.size() > 1) {
    if (order.size() <= kMostPermuted) {
      std::sort(order.begin(), order.end());
      do {
        moves = InOrder(order, most);
      } while (!moves && !exhausted() && std::next_permutation(order.begin(), order.end()));
    } else {
      std::reverse(order.begin(), order.end());
      moves = InOrder(order, most);
    }
  }
  state_.Rollback(before);
  std::fill(closed_.begin(), closed_.end(), 0);
  return moves;
}

// Whoever has no room now may have it once another one has moved, so each is asked again after every move.
std::optional<DefragmentTrials::Moves> DefragmentTrials::InOrder(const std::vector<int>& order, double most) {
  const ClusterState::Savepoint before = state_.Mark();
  std::vector<int> left = order;
  std::set<int> waiting(order.begin(), order.end());
  Moves moves;
  while (!left.empty()) {
    auto moved = std::find_if(left.begin(), left.end(), [&](int gang) { return Move(gang, moves); });
    if (moved == left.end()) {
      double rest = most - CostOf(moves);
      for (const int gang : left) rest -= gangs_[std::size_t(gang)].cost;
      moved = std::find_if(left.begin(), left.end(),
                           [&](int gang) { return MoveBehindAnother(gang, waiting, rest, moves); });
      if (moved == left.end()) {
        state_.Rollback(before);
        return std::nullopt;
      }
      waiting.insert(moves[moves.size() - 2].gang);
    }
    left.erase(moved);
  }
  state_.Rollback(before);
  return moves;
}

void DefragmentTrials::Stop(int gang) {
  const RunningGang& one = gangs_[std::size_t(gang)];
  for (std::size_t p = 0; p < one.pods.size(); ++p) {
    const std::uint32_t gpus = HealthyOf(one.pods[p]);
    if (gpus == 0) continue;
    state_.Free(one.pods[p].node, gpus, one.request.pods[p].resources);
    if (closed_[std::size_t(one.pods[p].node)] != 0) state_.Take(one.pods[p].node, gpus, {});
  }
}

void DefragmentTrials::Start(int gang, const std::vector<PodPlacement>& pods) {
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (pods[p].gpus == 0) continue;
    state_.Take(pods[p].node, pods[p].gpus, gangs_[std::size_t(gang)].request.pods[p].resources);
  }
}

const Quality& DefragmentTrials::BeforeOf(int gang) {
  const auto known = before_.find(gang);
  if (known != before_.end()) return known->second;
  const RunningGang& one = gangs_[std::size_t(gang)];
  return before_.emplace(gang, Evaluate(state_, one.request, one.pods)).first->second;
}

bool DefragmentTrials::TooSlow(const GangMove& move) const {
  const double most = double(move.before.step_micros) * (100 + goal_.slower_percent) / 100;
  return goal_.slower_percent >= 0 && double(move.after.step_micros) > most;
}

// Leaves the state as it was where it answers false.
bool DefragmentTrials::Move(int gang, Moves& moves) {
  if (exhausted()) return false;
  const RunningGang& one = gangs_[std::size_t(gang)];
  const ClusterState::Savepoint before = state_.Mark();
  Stop(gang);
  ++trials_;
  Decision decision = PlanGang(state_, one.request);
  if (auto* refusal = std::get_if<Refusal>(&decision)) {
    state_.Rollback(before);
    stuck_ = gang;
    stuck_refusal_ = std::move(*refusal);
    return false;
  }
  GangMove move{.gang = gang, .plan = std::get<Plan>(std::move(decision)), .before = BeforeOf(gang)};
  move.after = move.plan.quality;
  if (TooSlow(move)) {
    state_.Rollback(before);
    stuck_ = gang;
    stuck_refusal_.reset();
    return false;
  }
  Start(gang, move.plan.pods);
  moves.push_back(std::move(move));
  return true;
}

// The other one goes where it can while the gang's wish is free; then the gang, with the room it left.
bool DefragmentTrials::MoveBehindAnother(int gang, const std::set<int>& waiting, double most, Moves& moves) {
  const ClusterState::Savepoint before = state_.Mark();
  const std::size_t known = moves.size();
  for (const int other : by_cost_) {
    if (gangs_[std::size_t(other)].cost > most || exhausted()) break;
    if (waiting.contains(other)) continue;
    // Both have stopped: where would the gang go?
    Stop(other);
    Stop(gang);
    ++trials_;
    const Decision wish = PlanGang(state_, gangs_[std::size_t(gang)].request);
    state_.Rollback(before);
    const auto* plan = std::get_if<Plan>(&wish);
    if (plan == nullptr) continue;
    // The other one keeps off it, and then the gang takes it or something better.
    std::vector<std::pair<NodeId, std::uint32_t>> kept;
    Stop(other);
    for (const PodPlacement& pod : plan->pods) {
      const std::uint32_t free = pod.gpus & state_.node(pod.node).free_gpus;
      if (free == 0) continue;
      state_.Take(pod.node, free, {});
      kept.emplace_back(pod.node, free);
    }
    ++trials_;
    Decision elsewhere = PlanGang(state_, gangs_[std::size_t(other)].request);
    for (const auto& [node, gpus] : kept) state_.Free(node, gpus, {});
    if (auto* found = std::get_if<Plan>(&elsewhere)) {
      GangMove move{.gang = other, .plan = std::move(*found), .before = BeforeOf(other)};
      move.after = move.plan.quality;
      if (!TooSlow(move)) {
        Start(other, move.plan.pods);
        moves.push_back(std::move(move));
        if (Move(gang, moves)) return true;
      }
    }
    moves.resize(known);
    state_.Rollback(before);
  }
  return false;
}

}  // namespace heddle::placement
