#include "cli/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <set>
#include <variant>

#include "cli/gpu_use.h"
#include "cli/node_selection.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "kube/object.h"
#include "placement/planner.h"
#include "placement/preemption.h"
#include "placement/remainder.h"

namespace heddle::cli {
namespace {

using placement::Level;
using topology::NodeId;
constexpr int kMostNodesTried = 32, kMostSizesTried = 16;

std::optional<int> RankOf(const Json& pod) {
  const std::string text = kube::Annotation(pod, crds::keys::kRank).value_or("");
  int rank = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || end != text.data() + text.size() || rank < 0) return std::nullopt;
  return rank;
}

// The ranks that their Job says are done, or that have a pod that has succeeded, and none that lives. Where no Job was
// asked those count that have no slot in the gang's plan.
std::vector<bool> RanksDone(const Stuck& stuck) {
  const crds::Gang& gang = *stuck.gang;
  std::vector<bool> done(std::size_t(gang.spec.pods)), live(done.size());
  if (stuck.done) {
    for (const int rank : *stuck.done) {
      if (rank >= 0 && rank < gang.spec.pods) done[std::size_t(rank)] = true;
    }
  } else if (gang.status.placement) {
    const auto rows = crds::ToRows(*gang.status.placement);
    for (std::size_t rank = 0; rank < std::min(rows.size(), done.size()); ++rank)
      done[rank] = !rows[rank].has_slot();
  }
  for (const Json& pod : stuck.pods) {
    const auto rank = RankOf(pod);
    if (!rank || *rank >= gang.spec.pods) continue;
    if (IsLive(pod)) live[std::size_t(*rank)] = true;
    if (kube::StringAt(pod, {"status", "phase"}) == "Succeeded") done[std::size_t(*rank)] = true;
  }
  for (std::size_t rank = 0; rank < done.size(); ++rank) done[rank] = done[rank] && !live[rank];
  // A pod at the gate does not say its rank: where there are too many, one that was done has come again.
  const auto gated = std::ptrdiff_t(gang.status.progress.seen) - gang.status.progress.released;
  const auto count = [](const std::vector<bool>& ranks) {
    return std::count(ranks.begin(), ranks.end(), true);
  };
  if (!stuck.done && gated + count(live) + count(done) > gang.spec.pods) done.assign(done.size(), false);
  if (std::find(done.begin(), done.end(), false) == done.end()) done.assign(done.size(), false);
  return done;
}

// The gang on one fabric, asked for again and again with something changed.
class Trials {
 public:
  Trials(const Ground& ground, const Stuck& stuck, const std::map<std::string, PodGpus>& use)
      : ground_(ground), stuck_(stuck) {
    const crds::GangSpec& spec = stuck.gang->spec;
    for (std::size_t n = 0; n < ground_.nodes.size(); ++n) {
      const auto why = stuck.unusable.find(ground.fabric->nodes[n].node.name);
      if (why != stuck.unusable.end()) ground_.nodes[n].unusable = why->second;
    }
    placement::Remainder left = placement::RemainderOf(*spec.parallelism, spec.require, spec.prefer,
                                                       spec.gpus_per_pod, RanksDone(stuck));
    request_.parallelism = left.parallelism;
    request_.model = spec.model;
    request_.require = spec.require;
    request_.prefer = spec.prefer;
    request_.pods.assign(left.pods.size(), {.gpus = spec.gpus_per_pod});
    // As the extender: what ran once had a place, and spares are there to repair it.
    const bool had_place = crds::FindCondition(stuck.gang->status.conditions, crds::kRunning) != nullptr;
    request_.spares = had_place ? 0 : stuck.spares;
    left_ = std::move(left.pods);
    Select();
    for (const Json& pod : stuck.pods) Fix(pod, use);
  }

  bool elsewhere() const { return elsewhere_; }  // bound pods stand on another fabric
  bool begun() const { return begun_; }
  bool whole() const { return int(left_.size()) == stuck_.gang->spec.pods; }  // no rank of it is done
  const placement::GangRequest& request() const { return request_; }
  const Ground& ground() const { return ground_; }

  std::optional<std::int64_t> Try(const placement::GangRequest& request) const {
    placement::ClusterState state = ground_.State();
    return Plan(state, request);
  }
  // With these nodes usable.
  std::optional<std::int64_t> TryWith(const std::set<std::string>& back) const {
    Ground ground = ground_;
    for (std::size_t n = 0; n < ground.nodes.size(); ++n) {
      if (back.contains(ground.fabric->nodes[n].node.name)) ground.nodes[n].unusable.clear();
    }
    placement::ClusterState state = ground.State();
    return Plan(state, request_);
  }
  // All of it elsewhere, its own GPUs free. Ranks that are done may start again, too.
  std::optional<std::int64_t> TryAnew() const {
    placement::ClusterState state = ground_.State();
    placement::GangRequest request = request_;
    request.spares = stuck_.spares;  // what is started anew is a new gang
    for (auto& pod : request.pods) {
      if (!pod.fixed_node) continue;
      const std::uint32_t held = pod.fixed_gpus.value_or(0) & ~state.node(*pod.fixed_node).free_gpus;
      if (held != 0) state.Free(*pod.fixed_node, held, {});
      pod.fixed_node.reset();
      pod.fixed_gpus.reset();
    }
    if (!whole()) {
      const crds::GangSpec& spec = stuck_.gang->spec;
      request.parallelism = *spec.parallelism;
      request.pods.assign(std::size_t(spec.pods), placement::PodRequest(request.pods.front()));
    }
    return Plan(state, request);
  }
  std::optional<std::int64_t> TryAfter(const std::vector<placement::Victim>& victims,
                                       const std::vector<int>& ended) const {
    placement::ClusterState state = ground_.State();
    for (const int one : ended) {
      for (const auto& hold : victims[std::size_t(one)].holds)
        state.Free(hold.node, hold.gpus, hold.resources);
    }
    return Plan(state, request_);
  }

 private:
  static std::optional<std::int64_t> Plan(placement::ClusterState& state,
                                          const placement::GangRequest& request) {
    const placement::Decision decision = placement::PlanGang(state, request);
    const auto* plan = std::get_if<placement::Plan>(&decision);
    return plan == nullptr ? std::nullopt : std::optional(plan->quality.step_micros);
  }

  void Select() {
    if (stuck_.pods.empty()) return;
    const auto wanted = kube::StringMapAt(stuck_.pods.front(), {"spec", "nodeSelector"});
    if (wanted.empty()) return;
    request_.allowed_nodes.push_back(NodesWithLabels(ground_, stuck_.nodes, wanted));
    for (auto& pod : request_.pods) pod.allowed = 0;
  }

  // A pod that is bound stays where it is.
  void Fix(const Json& pod, const std::map<std::string, PodGpus>& use) {
    const auto rank = RankOf(pod);
    const std::string name = kube::StringAt(pod, {"spec", "nodeName"});
    if (!rank || name.empty()) return;
    const auto at = std::lower_bound(left_.begin(), left_.end(), *rank);
    if (at == left_.end() || *at != *rank) return;
    if (kube::DeletionTimestamp(pod) || !IsLive(pod)) return;
    const NodeId node = ground_.fabric->FindNode(name);
    const auto gpus = use.find(PodId(pod));
    begun_ = true;
    if (node == topology::kNone || gpus == use.end()) {
      elsewhere_ = true;
      return;
    }
    auto& request = request_.pods[std::size_t(at - left_.begin())];
    if (std::popcount(gpus->second.positions) != request.gpus) return;
    request.fixed_node = node;
    request.fixed_gpus = gpus->second.positions;
  }

  Ground ground_;
  const Stuck& stuck_;
  placement::GangRequest request_;
  std::vector<std::int32_t> left_;  // the ranks that it asks for, ascending
  bool elsewhere_ = false, begun_ = false;
};

std::uint32_t Sound(const topology::Node& node) {
  std::uint32_t sound = 0;
  for (std::size_t p = 0; p < node.gpus.size() && p < 32; ++p) sound |= (node.gpus[p].healthy ? 1U : 0U) << p;
  return sound;
}

void TryEnds(const Trials& trials, const Grounds& grounds, const crds::Gang& gang, Remedies& remedies) {
  const Ground& ground = trials.ground();
  std::vector<placement::Victim> victims;
  std::vector<std::string> names;
  for (const Holder& holder : grounds.holders) {
    const bool higher =
        holder.gang >= 0 && grounds.gangs[std::size_t(holder.gang)].spec.priority > gang.spec.priority;
    // A pod of a gang that is stuck itself stands for the gang.
    if (higher || holder.name.starts_with("own ")) continue;
    placement::Victim victim;
    for (const auto& [name, positions] : holder.gpus) {
      const NodeId node = ground.fabric->FindNode(name);
      if (node == topology::kNone) continue;
      const std::uint32_t freed = positions & Sound(ground.fabric->nodes[std::size_t(node)].node);
      if (freed == 0) continue;
      victim.holds.push_back({node, freed, {}});
      victim.cost += std::popcount(freed);
    }
    if (victim.holds.empty()) continue;
    names.push_back(fmt::format("{} ({} GPUs)", holder.name, victim.cost));
    victims.push_back(std::move(victim));
  }
  placement::ClusterState state = ground.State();
  const auto choice = placement::ChooseVictims(state, trials.request(), victims);
  if (!choice.possible || choice.victims.empty()) return;
  const auto micros = trials.TryAfter(victims, choice.victims);
  if (!micros) return;
  Remedy remedy{.kind = Remedy::Kind::kEnd, .step_micros = *micros};
  for (const int one : choice.victims) remedy.names.push_back(names[std::size_t(one)]);
  remedy.what = fmt::format("the end of {}", fmt::join(remedy.names, " and "));
  remedies.found.push_back(std::move(remedy));
}

void TryNodes(const Trials& trials, const Stuck& stuck, Remedies& remedies) {
  std::set<std::string> all;
  Remedy one{.kind = Remedy::Kind::kNodeBack};
  int tried = 0;
  for (const auto& [name, why] : stuck.unusable) {
    if (trials.ground().fabric->FindNode(name) == topology::kNone) continue;
    all.insert(name);
    if (++tried > kMostNodesTried) continue;
    const auto micros = trials.TryWith({name});
    if (!micros) continue;
    one.names.push_back(fmt::format("{} ({})", name, why));
    if (one.names.size() == 1 || *micros < one.step_micros) one.step_micros = *micros;
  }
  if (!one.names.empty()) {
    constexpr std::size_t kShown = 4;
    const std::size_t more = one.names.size() > kShown ? one.names.size() - kShown : 0;
    one.what = fmt::format(
        "{} back and usable",
        fmt::join(one.names.begin(), one.names.begin() + std::ptrdiff_t(one.names.size() - more), " or "));
    if (more > 0) one.what += fmt::format(" (or one of {} others)", more);
    remedies.found.push_back(std::move(one));
    return;
  }
  if (all.size() < 2) return;
  const auto micros = trials.TryWith(all);
  if (!micros) return;
  remedies.found.push_back({Remedy::Kind::kNodeBack,
                            fmt::format("all {} nodes back that are out of use now", all.size()),
                            {all.begin(), all.end()},
                            *micros});
}

void TryWeaker(const Trials& trials, Remedies& remedies) {
  constexpr std::array kWider{Level::kLeaf, Level::kUnit, Level::kSpine, Level::kSite};
  const auto& require = trials.request().require;
  for (std::size_t i = 0; i < require.size(); ++i) {
    const std::string was =
        fmt::format("{}={}", placement::AxisName(require[i].axis), placement::LevelName(require[i].level));
    const auto attempt = [&](std::optional<Level> level) {
      placement::GangRequest request = trials.request();
      if (level) {
        request.require[i].level = *level;
      } else {
        request.require.erase(request.require.begin() + std::ptrdiff_t(i));
      }
      const auto micros = trials.Try(request);
      if (!micros) return false;
      remedies.found.push_back(
          {Remedy::Kind::kWeaker,
           level ? fmt::format("heddle.dev/require with {}={} in the place of {}",
                               placement::AxisName(require[i].axis), placement::LevelName(*level), was)
                 : fmt::format("heddle.dev/require without {}", was),
           {was},
           *micros});
      return true;
    };
    const bool found = std::any_of(kWider.begin(), kWider.end(),
                                   [&](Level level) { return level > require[i].level && attempt(level); });
    if (!found) attempt(std::nullopt);
  }
}

// Fewer replicas of the model: the other axes are what makes it fit.
void TryFewer(const Trials& trials, const crds::GangSpec& spec, Remedies& remedies) {
  placement::GangRequest request = trials.request();
  const int dp = request.parallelism.dp;
  const int step = std::max(1, dp / kMostSizesTried);
  for (int fewer = dp - 1; fewer >= 1; fewer -= fewer > step ? step : 1) {
    request.parallelism.dp = fewer;
    const std::int64_t world = request.parallelism.world();
    if (spec.gpus_per_pod == 0 || world % spec.gpus_per_pod != 0) continue;
    if (!placement::WhyNotLaidOut(request.parallelism).empty()) continue;
    request.pods.resize(std::size_t(world / spec.gpus_per_pod));
    const auto micros = trials.Try(request);
    if (!micros) continue;
    remedies.found.push_back(
        {Remedy::Kind::kFewer,
         fmt::format("dp={} instead of {}: {} pods, {} GPUs", fewer, dp, request.pods.size(), world),
         {},
         *micros});
    return;
  }
}

std::string_view KindName(Remedy::Kind kind) {
  constexpr std::array<std::string_view, 6> names{"RoomNow", "NodeBack",          "Restart",
                                                  "End",     "WeakerRequirement", "FewerGpus"};
  return names[std::size_t(kind)];
}

}  // namespace

Remedies FindRemedies(const Grounds& grounds, const Stuck& stuck) {
  Remedies remedies;
  const crds::GangSpec& spec = stuck.gang->spec;
  if (!spec.parallelism || spec.pods <= 0) return remedies;
  remedies.not_looked = {"CPU", "memory", "taints"};
  if (!stuck.pods.empty() && kube::Find(stuck.pods.front(), {"spec", "affinity"}) != nullptr)
    remedies.not_looked.emplace_back("affinity");
  if (!stuck.done) remedies.not_looked.emplace_back("ranks that are done");
  std::vector<crds::NodeTopology> topologies;
  for (const Ground& ground : grounds.fabrics) {
    for (const topology::FabricNode& one : ground.fabric->nodes) {
      topologies.emplace_back();
      topologies.back().name = one.node.name;
      topologies.back().status.node = one.node;
    }
  }
  const auto use = FindGpuUse(stuck.pods, topologies);
  for (const Ground& ground : grounds.fabrics) {
    const Trials trials(ground, stuck, use);
    if (trials.elsewhere()) continue;
    if (const auto micros = trials.Try(trials.request())) {
      remedies.found = {{Remedy::Kind::kRoomNow,
                         "nothing: there is room for it now, if none is kept for gangs ahead of it",
                         {},
                         *micros}};
      return remedies;
    }
    TryNodes(trials, stuck, remedies);
    if (trials.begun()) {
      if (const auto micros = trials.TryAnew()) {
        remedies.found.push_back({Remedy::Kind::kRestart,
                                  "a restart of all its pods: there is room for them together",
                                  {},
                                  *micros});
      }
    }
    TryEnds(trials, grounds, *stuck.gang, remedies);
    TryWeaker(trials, remedies);
    if (!trials.begun() && trials.whole()) TryFewer(trials, spec, remedies);
  }
  return remedies;
}

Json RemediesJson(const Remedies& remedies) {
  Json list = Json::array();
  for (const Remedy& remedy : remedies.found) {
    list.push_back({{"kind", KindName(remedy.kind)},
                    {"what", remedy.what},
                    {"names", remedy.names},
                    {"stepMicros", remedy.step_micros}});
  }
  return list;
}

std::string RemediesText(const Remedies& remedies, const Style& style) {
  if (remedies.found.empty())
    return "What would help\n  Nothing that was tried: the end of others, nodes that come back, a weaker "
           "requirement, fewer GPUs.\n";
  Table table({"WHAT WOULD HELP", "MS PER STEP"});
  for (const Remedy& remedy : remedies.found) {
    table.Add({remedy.what, fmt::format("{:.3f}", double(remedy.step_micros) / 1000)});
  }
  return table.Format(style) +
         fmt::format("Each alone, as tried on the cluster as it stands. Not looked at: {}.\n",
                     fmt::join(remedies.not_looked, ", "));
}

}  // namespace heddle::cli
