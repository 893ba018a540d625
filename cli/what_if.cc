#include "cli/what_if.h"

#include <fmt/format.h>

#include <bit>
#include <variant>

#include "placement/planner.h"
#include "placement/preemption.h"

namespace heddle::cli {
namespace {

// Those who stand on this fabric; a GPU costs as much as another, since files do not say when checkpoints
// were.
std::vector<placement::Victim> VictimsOn(const topology::Fabric& fabric, const std::vector<Holder>& holders,
                                         std::vector<WhatIf::Ending>& names) {
  std::vector<placement::Victim> victims;
  for (const Holder& holder : holders) {
    placement::Victim victim;
    int gpus = 0;
    for (const auto& [name, positions] : holder.gpus) {
      const topology::NodeId node = fabric.FindNode(name);
      if (node == topology::kNone) continue;
      std::uint32_t sound = 0;  // what is broken is not free when its holder ends
      const auto& all = fabric.nodes[std::size_t(node)].node.gpus;
      for (std::size_t p = 0; p < all.size() && p < 32; ++p) sound |= (all[p].healthy ? 1U : 0U) << p;
      if ((positions & sound) == 0) continue;
      victim.holds.push_back({node, positions & sound, {}});
      gpus += std::popcount(positions & sound);
    }
    if (victim.holds.empty()) continue;
    victim.cost = gpus;
    victims.push_back(std::move(victim));
    names.push_back({holder.name, gpus});
  }
  return victims;
}

}  // namespace

WhatIf AskWhatIf(const Ground& ground, const std::vector<Holder>& holders,
                 const placement::GangRequest& request) {
  placement::ClusterState state = ground.State();
  WhatIf answer;
  while (answer.copies < kMostCopies) {
    const placement::Decision decision = placement::PlanGang(state, request);
    const auto* plan = std::get_if<placement::Plan>(&decision);
    if (plan == nullptr) break;
    ++answer.copies;
    for (std::size_t pod = 0; pod < plan->pods.size(); ++pod) {
      if (plan->pods[pod].gpus != 0) {
        state.Take(plan->pods[pod].node, plan->pods[pod].gpus, request.pods[pod].resources);
      }
    }
  }
  answer.more = answer.copies == kMostCopies;
  answer.possible = answer.copies > 0;
  if (answer.possible) return answer;
  std::vector<WhatIf::Ending> names;
  const auto victims = VictimsOn(*ground.fabric, holders, names);
  const placement::VictimChoice choice = placement::ChooseVictims(state, request, victims);
  answer.possible = choice.possible;
  for (const int victim : choice.victims) answer.endings.push_back(names[std::size_t(victim)]);
  return answer;
}

crds::Json WhatIfJson(const WhatIf& answer) {
  crds::Json endings = crds::Json::array();
  for (const WhatIf::Ending& ending : answer.endings)
    endings.push_back({{"name", ending.name}, {"gpus", ending.gpus}});
  return {{"copies", answer.copies},
          {"more", answer.more},
          {"possible", answer.possible},
          {"endings", std::move(endings)}};
}

std::string WhatIfText(const WhatIf& answer, const Style& style) {
  if (answer.copies > 0) {
    return fmt::format("What if: {}{} of these fit beside each other now\n", answer.more ? "at least " : "",
                       answer.copies);
  }
  if (!answer.possible) return "What if: not even the end of everybody who holds GPUs would make room\n";
  int gpus = 0;
  Table table({"WOULD HAVE TO END", "GPUS"});
  for (const WhatIf::Ending& ending : answer.endings) {
    table.Add({ending.name, std::to_string(ending.gpus)});
    gpus += ending.gpus;
  }
  return fmt::format("What if: room for one once {} GPUs are given back\n\n", gpus) + table.Format(style);
}

}  // namespace heddle::cli
