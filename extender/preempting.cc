#include "extender/preempting.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>

#include "crds/gpu_indexes.h"
#include "placement/planner.h"
#include "placement/preemption.h"

namespace heddle::extender {
namespace {

using placement::Victim;

constexpr std::size_t kMostNames = 3;
constexpr int kNobody = -1;  // whose claim is not among the holders: the gang's own, and strangers'

bool Owns(const Holder& holder, const Hold& hold) {
  if (!holder.pod_uid.empty()) return hold.pod_uid == holder.pod_uid;
  return hold.IsOf({holder.ns, holder.owner_uid, 0});
}

// What the end of each holder would free in one fabric. A GPU that two claim is freed by neither: the end of one alone
// frees nothing.
class Claims {
 public:
  Claims(const Snapshot& snapshot, const FabricView& view, const std::vector<Holder>& holders)
      : of_(holders.size()) {
    std::map<std::pair<std::string_view, std::string_view>, int> by_owner;
    std::map<std::string_view, int> by_pod;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const Holder& one = holders[i];
      if (one.pod_uid.empty()) {
        by_owner.emplace(std::pair<std::string_view, std::string_view>(one.ns, one.owner_uid), int(i));
      } else {
        by_pod.emplace(one.pod_uid, int(i));
      }
    }
    const auto whose = [&](const Hold& hold) {
      const auto gang = by_owner.find({hold.ns, hold.owner_uid});
      if (gang != by_owner.end()) return gang->second;
      const auto pod = by_pod.find(hold.pod_uid);
      return hold.pod_uid.empty() || pod == by_pod.end() ? kNobody : pod->second;
    };
    for (const auto& [name, on_node] : snapshot.holds) {
      const topology::NodeId id = view.Find(name);
      if (id != topology::kNone) AddNode(view, id, on_node, whose);
    }
  }

  const std::vector<Victim::Hold>& Of(std::size_t holder) const { return of_[holder]; }

 private:
  template <class Whose>
  void AddNode(const FabricView& view, topology::NodeId id, const std::vector<Hold>& on_node, Whose whose) {
    const topology::Node& node = view.fabric->nodes[std::size_t(id)].node;
    std::uint32_t healthy = 0;
    for (std::size_t i = 0; i < node.gpus.size() && i < 32; ++i) {
      if (node.gpus[i].healthy) healthy |= 1u << i;
    }
    std::map<int, std::uint32_t> held;
    std::uint32_t once = 0, twice = 0;
    for (const Hold& hold : on_node) held[whose(hold)] |= crds::PositionsOf(node, hold.gpus);
    for (const auto& [holder, gpus] : held) {
      twice |= once & gpus;
      once |= gpus;
    }
    for (const Hold& hold : on_node) {
      const int holder = whose(hold);
      if (holder == kNobody) continue;
      // Two claims of the same holder on a GPU free it once.
      const std::uint32_t gpus = crds::PositionsOf(node, hold.gpus) & held[holder] & healthy & ~twice;
      held[holder] &= ~gpus;
      of_[std::size_t(holder)].push_back({id, gpus, hold.resources});
    }
  }

  std::vector<std::vector<Victim::Hold>> of_;
};

void FreeAll(placement::ClusterState& state, const std::vector<Victim::Hold>& holds) {
  for (const Victim::Hold& hold : holds) state.Free(hold.node, hold.gpus, hold.resources);
}

std::optional<std::set<std::string>> NodesForPlan(placement::ClusterState& state, const FabricView& view,
                                                  const placement::GangRequest& request) {
  const placement::Decision decision = placement::PlanGang(state, request);
  const auto* plan = std::get_if<placement::Plan>(&decision);
  if (plan == nullptr) return std::nullopt;
  return NodesNeeded(view, state, request, *plan);
}

std::string Listed(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostNames; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostNames ? text + " and " + std::to_string(names.size() - kMostNames) + " more"
                                   : text;
}

std::int64_t LostGpuMinutes(const Snapshot& snapshot, const Holder& holder, base::WallTime now) {
  if (!holder.unsafe_since || *holder.unsafe_since >= now) return 0;
  return GpusOf(snapshot, holder) *
         std::int64_t(std::chrono::floor<std::chrono::minutes>(now - *holder.unsafe_since).count());
}

// Minutes count first, and below one of them the GPUs.
double CostOf(const Snapshot& snapshot, const Holder& holder, base::WallTime now) {
  return double(LostGpuMinutes(snapshot, holder, now)) + GpusOf(snapshot, holder) * 1e-5;
}

std::vector<std::size_t> ByName(const std::vector<Holder>& holders) {
  std::vector<std::size_t> order(holders.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&holders](std::size_t a, std::size_t b) { return holders[a].name < holders[b].name; });
  return order;
}

bool MayYield(const Holder& holder, int priority) {
  return !holder.leaving && holder.why_not.empty() && holder.priority < priority;
}

// One fabric's answer.
class RoomInFabric {
 public:
  RoomInFabric(const Snapshot& snapshot, const FabricView& view, const GangMembers& members,
               const std::set<std::string>& kept, Spares spares, const std::vector<Holder>& holders)
      : snapshot_(snapshot),
        view_(view),
        members_(members),
        holders_(holders),
        claims_(snapshot, view, holders),
        request_(RequestOf(snapshot, view, members, kept, spares)),
        state_(view.state) {
    for (std::size_t i = 0; i < holders.size(); ++i) {
      if (holders[i].leaving) FreeAll(state_, claims_.Of(i));
    }
  }

  // What it needs free to be placed when all that is leaving has left.
  std::optional<std::set<std::string>> Awaited() { return NodesForPlan(state_, view_, request_); }

  // Whose end makes room then, and at what cost.
  std::optional<double> Choose(base::WallTime now, RoomChoice& choice) {
    std::vector<std::size_t> candidates;
    std::vector<Victim> victims;
    for (const std::size_t i : ByName(holders_)) {
      const Holder& holder = holders_[i];
      if (!MayYield(holder, members_.spec.priority)) continue;
      if (claims_.Of(i).empty()) continue;
      candidates.push_back(i);
      victims.push_back({claims_.Of(i), CostOf(snapshot_, holder, now)});
    }
    if (candidates.empty()) return std::nullopt;
    const placement::VictimChoice found = placement::ChooseVictims(state_, request_, victims);
    if (!found.possible || found.victims.empty()) return std::nullopt;
    for (const int v : found.victims) FreeAll(state_, victims[std::size_t(v)].holds);
    auto nodes = NodesForPlan(state_, view_, request_);
    if (!nodes) return std::nullopt;
    choice = {RoomChoice::Kind::kVictims, {}, *std::move(nodes), ""};
    for (const int v : found.victims) choice.victims.push_back(candidates[std::size_t(v)]);
    return found.cost;
  }

 private:
  const Snapshot& snapshot_;
  const FabricView& view_;
  const GangMembers& members_;
  const std::vector<Holder>& holders_;
  const Claims claims_;
  const placement::GangRequest request_;
  placement::ClusterState state_;
};

std::string AwaitedWords(const Snapshot& snapshot, const std::vector<Holder>& holders,
                         const std::set<std::string>& nodes) {
  std::vector<std::string> names;
  for (const Holder& holder : holders) {
    if (!holder.leaving) continue;
    const bool there = std::any_of(snapshot.holds.begin(), snapshot.holds.end(), [&](const auto& on_node) {
      return nodes.contains(on_node.first) &&
             std::any_of(on_node.second.begin(), on_node.second.end(),
                         [&holder](const Hold& hold) { return Owns(holder, hold); });
    });
    if (there || (nodes.empty() && holder.leaving_for_us)) names.push_back(holder.name);
  }
  if (names.empty()) return "";
  const char* verb = names.size() == 1 ? " is" : " are";
  return "room is being made: " + Listed(std::move(names)) + verb + " leaving";
}

std::string VictimWords(const std::vector<Holder>& holders, const std::vector<std::size_t>& victims) {
  std::vector<std::string> names;
  names.reserve(victims.size());
  for (const std::size_t i : victims) {
    names.push_back(holders[i].name + " (priority " + std::to_string(holders[i].priority) + ")");
  }
  return "it preempts " + Listed(std::move(names));
}

// Only of those who would have been asked.
std::string CannotYieldWords(const std::vector<Holder>& holders, int priority) {
  std::vector<std::string> names;
  for (const Holder& holder : holders) {
    if (holder.priority >= priority || holder.leaving || holder.why_not.empty()) continue;
    names.push_back(holder.name + " (" + holder.why_not + ")");
  }
  return names.empty() ? "" : "of lower priority, but not to be preempted: " + Listed(std::move(names));
}

// A pod as its controller would make it again: without what release_patch.h pinned it by. Fields that people match on
// themselves go with ours; hardly anybody does.
kube::Json Unpinned(kube::Json pod) {
  const kube::Json::json_pointer required(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
  if (!pod.contains(required) || !pod[required].is_object()) return pod;
  kube::Json kept = kube::Json::array();
  for (kube::Json term : kube::ArrayAt(pod[required], {"nodeSelectorTerms"})) {
    if (term.is_object()) term.erase("matchFields");
    if (!term.empty()) kept.push_back(std::move(term));
  }
  if (kept.empty()) {
    pod[required.parent_pointer()].erase(required.back());
  } else {
    pod[required]["nodeSelectorTerms"] = std::move(kept);
  }
  return pod;
}

}  // namespace

int GpusOf(const Snapshot& snapshot, const Holder& holder) {
  int gpus = 0;
  for (const auto& [node, on_node] : snapshot.holds) {
    std::uint32_t held = 0;
    for (const Hold& hold : on_node) held |= Owns(holder, hold) ? hold.gpus : 0;
    gpus += std::popcount(held);
  }
  return gpus;
}

double LostGpuHours(const Snapshot& snapshot, const Holder& holder, base::WallTime now) {
  return double(LostGpuMinutes(snapshot, holder, now)) / 60.0;
}

RoomChoice ChooseRoom(const Snapshot& snapshot, const GangMembers& members, const std::set<std::string>& kept,
                      Spares spares, const std::vector<Holder>& holders, base::WallTime now) {
  using Kind = RoomChoice::Kind;
  const int priority = members.spec.priority;
  // Most gangs wait behind their equals, and there is nothing to try: each fabric would be copied and planned again.
  if (std::none_of(holders.begin(), holders.end(), [priority](const Holder& holder) {
        return holder.leaving || MayYield(holder, priority);
      })) {
    return {Kind::kNone, {}, {}, CannotYieldWords(holders, priority)};
  }
  std::vector<RoomInFabric> fabrics;
  fabrics.reserve(snapshot.fabrics.size());
  for (const FabricView& view : snapshot.fabrics) {
    fabrics.emplace_back(snapshot, view, members, kept, spares, holders);
    if (auto nodes = fabrics.back().Awaited()) {
      std::string sentence = AwaitedWords(snapshot, holders, *nodes);
      return {Kind::kAwaited, {}, *std::move(nodes), std::move(sentence)};
    }
  }
  if (std::any_of(holders.begin(), holders.end(), [](const Holder& one) { return one.leaving_for_us; })) {
    return {Kind::kAwaited, {}, {}, AwaitedWords(snapshot, holders, {})};
  }
  RoomChoice best;
  std::optional<double> least;
  for (RoomInFabric& fabric : fabrics) {
    RoomChoice choice;
    const auto cost = fabric.Choose(now, choice);
    if (!cost || (least && *cost >= *least)) continue;
    least = cost;
    best = std::move(choice);
  }
  best.sentence = least ? VictimWords(holders, best.victims) : CannotYieldWords(holders, priority);
  return best;
}

bool FitsAnew(const Snapshot& snapshot, const GangMembers& members) {
  const std::vector<Holder> own{{.name = "it", .ns = members.key.ns, .owner_uid = members.key.owner_uid}};
  GangMembers remade = members;
  remade.done.assign(remade.ranks.size(), false);
  for (auto& rank : remade.ranks) {
    if (!rank || rank->facts->gated) continue;
    rank->OwnFacts().gated = true;
    rank->kept = std::make_shared<const kube::Json>(Unpinned(rank->Pod()));
  }
  return std::any_of(snapshot.fabrics.begin(), snapshot.fabrics.end(), [&](const FabricView& view) {
    placement::ClusterState state = view.state;
    FreeAll(state, Claims(snapshot, view, own).Of(0));
    return NodesForPlan(state, view, RequestOf(snapshot, view, remade, {}, Spares::kLeave)).has_value();
  });
}

}  // namespace heddle::extender
