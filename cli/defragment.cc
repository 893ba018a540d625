#include "cli/defragment.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "cli/advice.h"
#include "cli/gpu_use.h"
#include "cli/plan_view.h"
#include "crds/gang_load.h"

namespace heddle::cli {
namespace {

using crds::Json;
using placement::RunningGang;

// The gang as it stands on this fabric; nothing where it cannot be planned anew: a part of it is elsewhere or done
// (it is about to end), its GPUs are not the ones it holds, or nobody knows how it is cut.
std::optional<RunningGang> RunningOn(const topology::Fabric& fabric, const crds::Gang& gang,
                                     const Holder& holder) {
  std::optional<crds::PlacedGang> placed = crds::PlacedOn(fabric, gang);
  if (!placed || int(placed->pods.size()) != gang.spec.pods) return std::nullopt;
  std::map<std::string, std::uint32_t> planned;
  for (const placement::PodPlacement& pod : placed->pods) {
    std::uint32_t& gpus = planned[fabric.nodes[std::size_t(pod.node)].node.name];
    if (std::popcount(pod.gpus) != gang.spec.gpus_per_pod || (gpus & pod.gpus) != 0) return std::nullopt;
    gpus |= pod.gpus;
  }
  if (planned != holder.gpus) return std::nullopt;
  RunningGang running{.request = std::move(placed->request), .pods = std::move(placed->pods)};
  running.request.require = gang.spec.require;
  running.request.prefer = gang.spec.prefer;
  running.cost = gang.spec.gpus();
  return running;
}

DefragmentAnswer AskOn(const Ground& ground, const Grounds& grounds, const placement::DefragmentGoal& goal) {
  DefragmentAnswer answer{.fabric = ground.fabric, .goal = goal};
  for (const Holder& holder : grounds.holders) {
    const bool here = std::any_of(holder.gpus.begin(), holder.gpus.end(), [&](const auto& one) {
      return ground.fabric->FindNode(one.first) != topology::kNone;
    });
    if (!here) continue;
    std::optional<RunningGang> running;
    if (holder.gang >= 0)
      running = RunningOn(*ground.fabric, grounds.gangs[std::size_t(holder.gang)], holder);
    if (!running) {
      ++answer.unmovable_holders;
      continue;
    }
    answer.gangs.push_back(*std::move(running));
    answer.names.push_back(holder.name);
  }
  // Without loads: a gang that moves takes its own with it.
  placement::ClusterState state(ground.fabric, ground.nodes);
  answer.found = placement::PlanDefragmentation(state, answer.gangs, goal);
  return answer;
}

bool Better(const DefragmentAnswer& one, const DefragmentAnswer& other) {
  if (one.found.refusal.has_value() != other.found.refusal.has_value()) return !one.found.refusal;
  if (!one.found.refusal) return one.found.cost < other.found.cost;
  return one.fabric->gpu_count() > other.fabric->gpu_count();
}

std::string_view ReasonName(placement::DefragmentRefusal reason) {
  switch (reason) {
    case placement::DefragmentRefusal::kTooFewPlaces:
      return "TooFewPlaces";
    case placement::DefragmentRefusal::kPinned:
      return "Pinned";
    case placement::DefragmentRefusal::kTooFewFree:
      return "TooFewFree";
    case placement::DefragmentRefusal::kNoRoom:
      return "NoRoom";
  }
  return "";
}

std::string PlaceName(const DefragmentAnswer& answer, std::int32_t id) {
  return answer.goal.level == placement::Level::kUnit ? answer.fabric->units[std::size_t(id)].name
                                                      : answer.fabric->domains[std::size_t(id)].id;
}

std::vector<std::string> NodesOf(const topology::Fabric& fabric,
                                 const std::vector<placement::PodPlacement>& pods) {
  std::set<topology::NodeId> nodes;
  for (const placement::PodPlacement& pod : pods) nodes.insert(pod.node);
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const topology::NodeId node : nodes) names.push_back(fabric.nodes[std::size_t(node)].node.name);
  return names;
}

// Why the gang in the way has no other place.
std::string StuckText(const DefragmentAnswer& answer) {
  if (!answer.found.stuck) return "";
  return answer.found.stuck_refusal
             ? answer.found.stuck_refusal->sentence
             : fmt::format("where there is room, its step communicates longer than now by more than {} %",
                           answer.goal.slower_percent);
}

// "node-00, node-03 and 14 more"
std::string Short(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  if (names.size() <= kShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, … {} in all", fmt::join(names.begin(), names.begin() + 2, ", "), names.size());
}

std::string MovesText(const DefragmentAnswer& answer, const Style& style) {
  Table table({"ORDER", "GANG", "GPUS", "FROM", "TO", "MS NOW", "MS THEN"});
  int order = 0;
  for (const placement::GangMove& move : answer.found.moves) {
    const RunningGang& gang = answer.gangs[std::size_t(move.gang)];
    const bool slower = move.after.step_micros > move.before.step_micros;
    table.Add({std::to_string(++order),
               answer.names[std::size_t(move.gang)],
               std::to_string(gang.request.parallelism.world()),
               Short(NodesOf(*answer.fabric, gang.pods)),
               Short(NodesOf(*answer.fabric, move.plan.pods)),
               fmt::format("{:.3f}", double(move.before.step_micros) / 1000),
               {fmt::format("{:.3f}", double(move.after.step_micros) / 1000),
                slower ? Colour::kBad : Colour::kNone}});
  }
  return table.Format(style);
}

}  // namespace

DefragmentAnswer AskDefragment(const Grounds& grounds, const placement::DefragmentGoal& goal) {
  std::optional<DefragmentAnswer> best;
  for (const Ground& ground : grounds.fabrics) {
    DefragmentAnswer answer = AskOn(ground, grounds, goal);
    if (!best || Better(answer, *best)) best = std::move(answer);
  }
  return *std::move(best);
}

Json DefragmentJson(const DefragmentAnswer& answer) {
  const placement::Defragmentation& found = answer.found;
  const topology::Fabric& fabric = *answer.fabric;
  Json moves = Json::array();
  for (const placement::GangMove& move : found.moves) {
    const RunningGang& gang = answer.gangs[std::size_t(move.gang)];
    Json to = Json::array();
    for (std::size_t pod = 0; pod < move.plan.pods.size(); ++pod) {
      const auto& [node, gpus] = move.plan.pods[pod];
      const topology::Node& at = fabric.nodes[std::size_t(node)].node;
      to.push_back({{"pod", pod}, {"node", at.name}, {"gpus", IndexesAt(at, gpus)}});
    }
    moves.push_back({{"gang", answer.names[std::size_t(move.gang)]},
                     {"gpus", gang.request.parallelism.world()},
                     {"cost", gang.cost},
                     {"from", NodesOf(fabric, gang.pods)},
                     {"to", std::move(to)},
                     {"millisecondsBefore", double(move.before.step_micros) / 1000},
                     {"millisecondsAfter", double(move.after.step_micros) / 1000}});
  }
  Json opened = Json::array();
  for (const std::int32_t id : found.opened) opened.push_back(PlaceName(answer, id));
  Json refusal;
  if (found.refusal) {
    refusal = {{"reason", ReasonName(*found.refusal)},
               {"message", found.sentence},
               {"most", found.most},
               {"gang", found.stuck ? Json(answer.names[std::size_t(*found.stuck)]) : Json()},
               {"why", found.stuck ? Json(StuckText(answer)) : Json()}};
  }
  return {{"possible", !found.refusal},
          {"level", placement::LevelName(answer.goal.level)},
          {"wanted", answer.goal.places},
          {"minGpus", answer.goal.min_gpus},
          {"slowerPercent", answer.goal.slower_percent},
          {"wholeBefore", found.whole_before},
          {"wholeAfter", found.whole_after},
          {"opened", std::move(opened)},
          {"cost", found.cost},
          {"moves", std::move(moves)},
          {"refusal", std::move(refusal)}};
}

std::string DefragmentText(const DefragmentAnswer& answer, const Style& style) {
  const placement::Defragmentation& found = answer.found;
  const std::string_view places =
      answer.goal.level == placement::Level::kUnit ? "scalable units" : "NVLink domains";
  const auto whole = [&](int count) {
    return fmt::format(
        "{} whole {}{}", count, places,
        answer.goal.min_gpus > 1 ? fmt::format(" of {} GPUs or more", answer.goal.min_gpus) : std::string());
  };
  const std::string who =
      fmt::format("Gangs that can be planned anew: {}; others who hold GPUs and stay where they are: {}\n",
                  answer.gangs.size(), answer.unmovable_holders);
  if (found.refusal) {
    std::string out = fmt::format("{} {}\n{}\n", style.Paint("Refused", Colour::kBad),
                                  ReasonName(*found.refusal), found.sentence);
    if (found.stuck) {
      out += fmt::format("{} has no other place: {}\n",
                         WithoutControls(answer.names[std::size_t(*found.stuck)]), StuckText(answer));
    }
    return ProseText(out + who, style);
  }
  if (found.moves.empty())
    return ProseText(fmt::format("Nobody has to move: there are {} now\n", whole(found.whole_before)) + who,
                     style);
  std::vector<std::string> opened;
  for (const std::int32_t id : found.opened) opened.push_back(WithoutControls(PlaceName(answer, id)));
  const std::string text =
      fmt::format("\nNow {}, then {}; opened: {}\n", whole(found.whole_before), found.whole_after,
                  fmt::join(opened, ", ")) +
      fmt::format(
          "Cost: {:.0f} GPUs restart from their last checkpoint; files do not say how old those are\n",
          found.cost) +
      "Make the moves in this order, each once the one before it runs again.\n" + who;
  return MovesText(answer, style) + ProseText(text, style);
}

}  // namespace heddle::cli
