#include "extender/planning.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "crds/gpu_indexes.h"
#include "extender/compute_domain.h"
#include "extender/node_constraints.h"
#include "placement/fabric_choice.h"
#include "placement/remainder.h"
#include "placement/spares.h"

namespace heddle::extender {
namespace {

using topology::NodeId;

// What is asked for: not for ranks that are done, where the others can be planned without them.
placement::Remainder LeftOf(const GangMembers& members) {
  std::vector<bool> gone(members.ranks.size());
  for (std::size_t i = 0; i < gone.size(); ++i) {
    gone[i] = !members.ranks[i] && i < members.done.size() && members.done[i];
  }
  const crds::GangSpec& spec = members.spec;
  // Where no pod is left nobody says how the gang is cut.
  const placement::Parallelism parallelism = spec.parallelism.value_or(placement::Parallelism{});
  return placement::RemainderOf(parallelism, spec.require, spec.prefer, spec.gpus_per_pod, gone);
}

// One fabric's view of a gang.
class RequestBuilder {
 public:
  // `kept`: nodes that are closed to all ranks.
  RequestBuilder(const Snapshot& snapshot, const FabricView& view, const GangMembers& members,
                 std::set<std::string> kept = {}, BarredNodes barred = {})
      : snapshot_(snapshot),
        view_(view),
        members_(members),
        kept_(std::move(kept)),
        barred_(std::move(barred)) {}

  // The planner knows a resource that is short; what to do about it depends on what it is.
  placement::Refusal Refused(placement::Refusal refusal) const {
    if (members_.compute_domain.empty()) return refusal;
    const auto& nodes = view_.fabric->nodes;
    const bool shared = std::any_of(nodes.begin(), nodes.end(), [this](const topology::FabricNode& one) {
      return int(one.node.gpus.size()) > members_.spec.gpus_per_pod;
    });
    if (shared) {
      refusal.sentence +=
          "; a node has one IMEX channel, so each pod of a ComputeDomain needs a node without another such "
          "pod";
    }
    if (without_channels_ > 0) {
      refusal.sentence += "; the gang asks for a ComputeDomain, and the NVLink domains of " +
                          std::to_string(without_channels_) + " nodes end at the node";
    }
    return refusal;
  }

  placement::GangRequest Build(Spares spares) {
    const crds::GangSpec& spec = members_.spec;
    const placement::Remainder left = LeftOf(members_);
    request_.parallelism = left.parallelism;
    request_.model = spec.model;
    request_.require = spec.require;
    request_.prefer = spec.prefer;
    request_.spares = spares == Spares::kUse ? 0 : snapshot_.spares;
    for (const std::int32_t pod : left.pods) {
      const auto& rank = members_.ranks[std::size_t(pod)];
      const auto barred = barred_.find(pod);
      request_.pods.push_back(rank ? Pod(*rank, barred == barred_.end() ? nullptr : &barred->second)
                                   : Finished());
    }
    return std::move(request_);
  }

 private:
  // `barred`: null = none.
  placement::PodRequest Pod(const Member& member, const std::set<std::string>* barred) {
    placement::PodRequest pod;
    pod.gpus = member.facts->demand.gpus;
    pod.resources = member.facts->demand.resources;
    pod.allowed = Allowed(member, barred == nullptr ? std::set<std::string>{} : *barred);
    Fix(*member.facts, pod);
    return pod;
  }

  // A rank without a pod among others of its group needs a place in the arithmetic only.
  placement::PodRequest Finished() const { return {.gpus = members_.spec.gpus_per_pod}; }

  std::uint32_t Allowed(const Member& member, const std::set<std::string>& barred) {
    const auto its_own = member.Constraints();
    const PodConstraints& constraints = *its_own;
    const bool channel = !member.facts->terms->compute_domain.empty();
    const auto [known, fresh] = lists_.emplace(std::tuple(channel, constraints.fingerprint(), barred),
                                               std::uint32_t(request_.allowed_nodes.size()));
    if (!fresh) return known->second;
    std::vector<NodeId> nodes;
    int without_channels = 0;
    for (const NodeId id : Candidates(constraints)) {
      const topology::Node& topology = view_.fabric->nodes[std::size_t(id)].node;
      const auto node = snapshot_.nodes.find(topology.name);
      if (node == snapshot_.nodes.end() || kept_.contains(topology.name)) continue;
      if (barred.contains(topology.name)) continue;
      if (node->second->gpu_resource != members_.spec.gpu_resource) continue;
      if (!constraints.Admit(*node->second)) continue;
      if (channel && !HasImexChannel(topology)) {
        ++without_channels;
      } else {
        nodes.push_back(id);
      }
    }
    without_channels_ = std::max(without_channels_, without_channels);
    request_.allowed_nodes.push_back(std::move(nodes));
    return known->second;
  }

  // In the fabric's order, each once.
  std::vector<NodeId> Candidates(const PodConstraints& constraints) const {
    std::vector<NodeId> nodes;
    if (!constraints.named()) {
      nodes.resize(view_.fabric->nodes.size());
      std::iota(nodes.begin(), nodes.end(), NodeId(0));
      return nodes;
    }
    for (const std::string& name : *constraints.named()) {
      const NodeId id = view_.fabric->FindNode(name);
      if (id != topology::kNone) nodes.push_back(id);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  // Where a pod is bound, or was sent by an earlier Gang of the same owner, outranks a new plan.
  void Fix(const PodFacts& facts, placement::PodRequest& pod) const {
    if (facts.gated) return;
    const std::string& name = !facts.node.empty() ? facts.node : facts.plan ? facts.plan->node : facts.node;
    const NodeId id = name.empty() ? topology::kNone : view_.fabric->FindNode(name);
    if (id == topology::kNone) return;
    pod.fixed_node = id;
    const topology::Node& node = view_.fabric->nodes[std::size_t(id)].node;
    std::uint32_t gpus = facts.plan && facts.plan->node == name ? facts.plan->gpus : 0;
    if (const auto held = snapshot_.holds.find(name); held != snapshot_.holds.end()) {
      for (const Hold& hold : held->second) {
        if (hold.pod_uid == facts.uid) gpus = hold.gpus;
      }
    }
    if (gpus != 0) pod.fixed_gpus = crds::PositionsOf(node, gpus);
  }

  const Snapshot& snapshot_;
  const FabricView& view_;
  const GangMembers& members_;
  const std::set<std::string> kept_;
  const BarredNodes barred_;
  placement::GangRequest request_;
  // By channel, fingerprint and barred nodes.
  std::map<std::tuple<bool, std::string, std::set<std::string>>, std::uint32_t> lists_;
  int without_channels_ = 0;  // nodes that are left out for that alone
};

// A row for each of `all` ranks: `left` are those that the plan is of, the others have no slot.
PlannedGang ToRows(const FabricView& view, placement::Plan plan, const std::vector<std::int32_t>& left,
                   std::size_t all) {
  PlannedGang planned{std::vector<crds::PlacedPod>(all), plan.quality, std::move(plan.explanation)};
  for (std::size_t i = 0; i < plan.pods.size(); ++i) {
    const topology::Node& node = view.fabric->nodes[std::size_t(plan.pods[i].node)].node;
    crds::PlacedPod row{node.name, crds::IndexesOf(node, plan.pods[i].gpus), {}};
    for (const NodeId id : plan.substitutes.For(i)) {
      row.substitutes.push_back(view.fabric->nodes[std::size_t(id)].node.name);
    }
    planned.rows[std::size_t(left[i])] = std::move(row);
  }
  if (left.size() < all) {
    planned.explanation.push_back(
        "ranks that are done, for which nothing was asked: " + std::to_string(all - left.size()) + " of " +
        std::to_string(all) + "; the predicted times are of the others");
  }
  return planned;
}

void Keep(std::optional<PlanAnswer>& best, placement::FabricAnswer& known, PlanAnswer answer, int gpus) {
  placement::FabricAnswer compared{std::nullopt, gpus};
  if (const auto* plan = std::get_if<PlannedGang>(&answer))
    compared.step_micros = double(plan->quality.step_micros);
  if (best && !placement::IsBetter(compared, known)) return;
  best = std::move(answer);
  known = compared;
}

placement::Refusal NoFabric(const Snapshot& snapshot) {
  placement::Refusal refusal{placement::RefusalReason::kTooLargeForFabric,
                             "no node's topology is known yet: no heddle-nodeagent has reported GPUs",
                             {}};
  for (const auto& [word, count] : snapshot.left_out) refusal.left_out.emplace_back(word, count);
  return refusal;
}

// As if nobody but the unusable stood on these nodes.
placement::ClusterState Emptied(const Snapshot& snapshot, const FabricView& view, topology::UnitId unit) {
  std::vector<placement::NodeState> nodes = view.state.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const topology::FabricNode& one = view.fabric->nodes[i];
    const auto facts = snapshot.nodes.find(one.node.name);
    if ((unit != topology::kNone && one.unit != unit) || facts == snapshot.nodes.end()) continue;
    for (std::size_t gpu = 0; gpu < one.node.gpus.size() && gpu < 32; ++gpu) {
      if (one.node.gpus[gpu].healthy) nodes[i].free_gpus |= 1u << gpu;
    }
    nodes[i].free_milli_cpu = facts->second->milli_cpu;
    nodes[i].free_memory_bytes = facts->second->memory_bytes;
    nodes[i].free_pods = facts->second->pods;
    nodes[i].free_extended = WithImexChannel(facts->second->extended, &one.node);
  }
  return placement::ClusterState(view.fabric, std::move(nodes), {}, view.state.shared_dense());
}

// Units with the most free GPUs first, and at last none in particular: the whole fabric.
std::vector<topology::UnitId> UnitsByRoom(const FabricView& view) {
  const placement::ClusterState state = view.state;
  std::vector<topology::UnitId> units;
  for (std::size_t i = 0; i < view.fabric->units.size(); ++i) units.push_back(topology::UnitId(i));
  std::stable_sort(units.begin(), units.end(), [&state](topology::UnitId a, topology::UnitId b) {
    return state.free_gpus_in_unit(a) > state.free_gpus_in_unit(b);
  });
  constexpr std::size_t kMostTrials =
      8;  // each is a whole planning; the last, the whole fabric, is always tried
  if (units.size() > kMostTrials) units.resize(kMostTrials);
  units.push_back(topology::kNone);
  return units;
}

}  // namespace

placement::GangRequest RequestOf(const Snapshot& snapshot, const FabricView& view, const GangMembers& members,
                                 const std::set<std::string>& kept, Spares spares) {
  return RequestBuilder(snapshot, view, members, kept).Build(spares);
}

std::set<std::string> NodesNeeded(const FabricView& view, const placement::ClusterState& state,
                                  const placement::GangRequest& request, const placement::Plan& plan) {
  std::set<std::string> names;
  for (const NodeId node : placement::NodesNeeded(state, request, plan.pods))
    names.insert(view.fabric->nodes[std::size_t(node)].node.name);
  return names;
}

PlanAnswer PlanMembers(const Snapshot& snapshot, const GangMembers& members,
                       const std::set<std::string>& kept, Spares spares) {
  std::optional<PlanAnswer> best;
  placement::FabricAnswer known;
  const std::size_t all = members.ranks.size();
  const placement::Remainder left = LeftOf(members);
  if (all > 0 && left.pods.empty()) {
    return PlannedGang{std::vector<crds::PlacedPod>(all), {}, {"every rank is done, so there is no slot"}};
  }
  for (const FabricView& view : snapshot.fabrics) {
    placement::ClusterState state = view.state;
    RequestBuilder builder(snapshot, view, members, kept);
    const placement::GangRequest request = builder.Build(spares);
    placement::Decision decision = placement::PlanGang(state, request);
    if (auto* plan = std::get_if<placement::Plan>(&decision)) {
      Keep(best, known, ToRows(view, std::move(*plan), left.pods, all), view.fabric->gpu_count());
    } else {
      Keep(best, known, builder.Refused(std::get<placement::Refusal>(std::move(decision))),
           view.fabric->gpu_count());
    }
  }
  if (!best) return NoFabric(snapshot);
  return *std::move(best);
}

std::variant<placement::Quality, std::string> EvaluateMembers(const Snapshot& snapshot,
                                                              const GangMembers& members,
                                                              const std::vector<crds::PlacedPod>& rows) {
  std::vector<placement::PodPlacement> placed;
  const FabricView* fabric = nullptr;
  for (const crds::PlacedPod& row : rows) {
    topology::NodeId id = topology::kNone;
    const FabricView* view = snapshot.FindNode(row.node, id);
    if (view == nullptr) return "the topology of node " + row.node + " is not known";
    if (fabric != nullptr && fabric != view) return "its pods stand on nodes of two fabrics";
    fabric = view;
    const std::uint32_t gpus = crds::PositionsOf(view->fabric->nodes[std::size_t(id)].node, row.gpus);
    if (std::popcount(gpus) != members.spec.gpus_per_pod) {
      return "a pod on node " + row.node + " has other GPUs than its NodeTopology knows";
    }
    placed.push_back({id, gpus});
  }
  if (fabric == nullptr) return std::string("it has no pods");
  const placement::GangRequest request = RequestOf(snapshot, *fabric, members, {}, Spares::kLeave);
  return placement::Evaluate(fabric->state, request, placed);
}

namespace {

// A gang where it is now, and what becomes of it when some of its ranks get other slots.
class Standing {
 public:
  Standing(const Snapshot& snapshot, const FabricView& view, const GangMembers& members,
           const std::vector<crds::PlacedPod>& current, const BarredNodes& barred)
      : view_(view),
        current_(current),
        left_(LeftOf(members).pods),
        builder_(snapshot, view, members, {}, barred),
        request_(builder_.Build(Spares::kUse)),  // that is what they are for, also where every rank is lost
        state_(view.state) {
    state_.SetLoads(view.LoadsWithout(members.key.owner_uid));  // its own is no other gang's
    for (const std::int32_t rank : left_) {
      const crds::PlacedPod& row = current[std::size_t(rank)];
      const NodeId id = view.fabric->FindNode(row.node);
      if (id == topology::kNone) {
        placed_.push_back({id, 0});
        continue;
      }
      const topology::Node& node = view.fabric->nodes[std::size_t(id)].node;
      placed_.push_back({id, crds::PositionsOf(node, row.gpus == 0 ? crds::AllIndexes(node) : row.gpus)});
    }
  }

  // Nothing where a part of it is on no node that is known.
  std::optional<placement::Quality> Price() const {
    const bool known = std::all_of(placed_.begin(), placed_.end(),
                                   [](const auto& pod) { return pod.node != topology::kNone; });
    if (!known) return std::nullopt;
    return placement::Evaluate(state_, request_, placed_);
  }

  PlanAnswer Move(const std::vector<int>& lost) {
    std::vector<int> moved;  // as the request counts; who has a live pod is among them
    for (const int rank : lost) {
      const auto at = std::lower_bound(left_.begin(), left_.end(), rank);
      if (at != left_.end() && *at == rank) moved.push_back(int(at - left_.begin()));
    }
    placement::Decision decision = placement::RepairGang(state_, request_, placed_, moved);
    auto* plan = std::get_if<placement::Plan>(&decision);
    if (plan == nullptr) return builder_.Refused(std::get<placement::Refusal>(std::move(decision)));
    PlannedGang planned = ToRows(view_, std::move(*plan), left_, current_.size());
    // The planner moved the lost ones only, and gives the others no new substitutes.
    for (std::size_t i = 0; i < current_.size(); ++i) {
      if (std::find(lost.begin(), lost.end(), int(i)) == lost.end()) planned.rows[i] = current_[i];
    }
    return planned;
  }

 private:
  const FabricView& view_;
  const std::vector<crds::PlacedPod>& current_;
  const std::vector<std::int32_t> left_;  // ranks that the request is of
  RequestBuilder builder_;
  placement::GangRequest request_;
  placement::ClusterState state_;
  std::vector<placement::PodPlacement> placed_;
};

// The fabric of the first rank that stands on a known node.
const FabricView* FabricUnder(const Snapshot& snapshot, const std::vector<crds::PlacedPod>& rows) {
  topology::NodeId id = topology::kNone;
  for (const crds::PlacedPod& row : rows) {
    if (const FabricView* view = snapshot.FindNode(row.node, id)) return view;
  }
  return nullptr;
}

// Predictions are not good for differences of less than one part in a hundred.
std::int64_t Less(std::int64_t micros) {
  return micros - micros / 100 - 1;
}
std::int64_t More(std::int64_t micros) {
  return micros + micros / 100;
}

}  // namespace

PlanAnswer RepairMembers(const Snapshot& snapshot, const GangMembers& members,
                         const std::vector<crds::PlacedPod>& current, const std::vector<int>& lost,
                         const BarredNodes& barred) {
  const FabricView* view = FabricUnder(snapshot, current);
  const bool slots =
      std::any_of(current.begin(), current.end(), [](const auto& row) { return row.has_slot(); });
  if (view == nullptr && !slots) {
    return placement::Refusal{
        placement::RefusalReason::kNotEnoughFree,
        "its ranks were done; it is planned anew when all of those that came again are there",
        {}};
  }
  if (view == nullptr) return NoFabric(snapshot);
  return Standing(snapshot, *view, members, current, barred).Move(lost);
}

std::optional<FasterGang> FindFasterSlots(const Snapshot& snapshot, const GangMembers& members,
                                          const std::vector<crds::PlacedPod>& current,
                                          const std::vector<int>& slow, const BarredNodes& barred) {
  constexpr std::size_t kMostTrials = 8;  // each is a planning
  const FabricView* view = FabricUnder(snapshot, current);
  if (view == nullptr || slow.empty()) return std::nullopt;
  Standing standing(snapshot, *view, members, current, barred);
  const auto now = standing.Price();
  if (!now) return std::nullopt;
  const auto move = [&](std::vector<int> ranks, std::int64_t limit) -> std::optional<FasterGang> {
    PlanAnswer answer = standing.Move(ranks);
    auto* plan = std::get_if<PlannedGang>(&answer);
    if (plan == nullptr || plan->quality.step_micros > limit) return std::nullopt;
    const std::int64_t saved = now->step_micros - plan->quality.step_micros;
    return FasterGang{std::move(*plan), std::move(ranks), saved};
  };
  const std::int64_t enough = Less(now->step_micros);
  auto best = move(slow, enough);
  const std::size_t trials = slow.size() > 1 ? std::min(slow.size(), kMostTrials) : 0;
  if (!best) {  // there may be a place for one of them
    for (std::size_t i = 0; i < trials && !best; ++i) best = move({slow[i]}, enough);
    return best;
  }
  const std::int64_t as_good = std::min(enough, More(best->plan.quality.step_micros));
  for (std::size_t i = 0; i < trials && best->moved.size() > 1; ++i) {
    std::vector<int> others = best->moved;
    std::erase(others, slow[i]);
    if (auto without = move(std::move(others), as_good)) best = std::move(without);
  }
  return best;
}

std::set<std::string> NodesToKeep(const Snapshot& snapshot, const GangMembers& members, Spares spares) {
  for (const FabricView& view : snapshot.fabrics) {
    const placement::GangRequest request = RequestOf(snapshot, view, members, {}, spares);
    for (const topology::UnitId unit : UnitsByRoom(view)) {
      placement::ClusterState state = Emptied(snapshot, view, unit);
      const placement::Decision decision = placement::PlanGang(state, request);
      const auto* plan = std::get_if<placement::Plan>(&decision);
      if (plan != nullptr) return NodesNeeded(view, state, request, *plan);
    }
  }
  return {};
}

}  // namespace heddle::extender
