#include "cli/best_fabric.h"

#include <utility>
#include <variant>

#include "placement/fabric_choice.h"
#include "placement/planner.h"

namespace heddle::cli {

BestFabric DecideOnBest(const std::vector<Ground>& grounds, const placement::GangRequest& request) {
  BestFabric best;
  placement::FabricAnswer known;
  for (const Ground& ground : grounds) {
    placement::ClusterState state = ground.State();
    placement::Decision decision = placement::PlanGang(state, request);
    placement::FabricAnswer answer{std::nullopt, state.fabric().gpu_count()};
    if (const auto* plan = std::get_if<placement::Plan>(&decision))
      answer.step_micros = double(plan->quality.step_micros);
    if (best.state && !placement::IsBetter(answer, known)) continue;
    known = answer;
    best.ground = &ground;
    best.state.emplace(std::move(state));
    best.decision = std::move(decision);
  }
  return best;
}

}  // namespace heddle::cli
