#include "cli/plan.h"

#include <fmt/format.h>

#include <optional>
#include <variant>

#include "cli/plan_view.h"
#include "cli/what_if.h"
#include "crds/parallelism.h"
#include "placement/planner.h"

namespace heddle::cli {
namespace {

using base::Code;

base::Result<placement::GangRequest> RequestOf(const PlanOptions& options) {
  placement::GangRequest request;
  ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(options.parallelism), "--parallelism");
  if (!options.model.empty()) {
    ASSIGN_OR_RETURN(request.model, crds::ParseModel(options.model), "--model");
  }
  if (!options.require.empty()) {
    ASSIGN_OR_RETURN(request.require, crds::ParseConstraints(options.require), "--require");
  }
  if (!options.prefer.empty()) {
    ASSIGN_OR_RETURN(request.prefer, crds::ParseConstraints(options.prefer), "--prefer");
  }
  const std::int64_t world = request.parallelism.world();
  if (options.gpus_per_pod < 1 || world % options.gpus_per_pod != 0) {
    return base::Fail(Code::kInvalid,
                      fmt::format("{} ranks do not fill pods of {} GPUs: choose --gpus-per-pod so that "
                                  "it divides tp*cp*dp*pp",
                                  world, options.gpus_per_pod));
  }
  const std::int64_t pods = world / options.gpus_per_pod;
  if (pods > crds::kMaxPods) {
    return base::Fail(Code::kInvalid,
                      fmt::format("{} pods are more than {}: choose larger pods", pods, crds::kMaxPods));
  }
  TRY(crds::CheckWorld(request.parallelism, static_cast<int>(pods), options.gpus_per_pod));
  request.pods.assign(static_cast<std::size_t>(pods), placement::PodRequest{.gpus = options.gpus_per_pod});
  return request;
}

// The best plan of all fabrics; of several refusals, the one of the fabric with the most GPUs is the one to
// act on.
struct Best {
  const Ground* ground = nullptr;
  std::optional<placement::ClusterState> state;
  placement::Decision decision;
};

Best DecideBest(const std::vector<Ground>& grounds, const placement::GangRequest& request) {
  Best best;
  for (const Ground& ground : grounds) {
    placement::ClusterState state(ground.fabric, ground.nodes);
    placement::Decision decision = placement::PlanGang(state, request);
    const auto* plan = std::get_if<placement::Plan>(&decision);
    const auto* known = best.state ? std::get_if<placement::Plan>(&best.decision) : nullptr;
    const bool better =
        !best.state ||
        (plan != nullptr && (known == nullptr || plan->quality.step_micros < known->quality.step_micros)) ||
        (plan == nullptr && known == nullptr &&
         state.fabric().gpu_count() > best.state->fabric().gpu_count());
    if (!better) continue;
    best.ground = &ground;
    best.state.emplace(std::move(state));
    best.decision = std::move(decision);
  }
  return best;
}

base::Result<Output> Decide(const PlanOptions& options, const ReadFile& read, const OutputOptions& look) {
  ASSIGN_OR_RETURN(const placement::GangRequest request, RequestOf(options));
  ASSIGN_OR_RETURN(const Grounds grounds, ReadGround(options.ground, read));
  const Best best = DecideBest(grounds.fabrics, request);
  const auto* refusal = std::get_if<placement::Refusal>(&best.decision);
  const auto* plan = std::get_if<placement::Plan>(&best.decision);
  std::optional<WhatIf> what_if;
  if (options.what_if) what_if = AskWhatIf(*best.ground, grounds.holders, request);
  Output output;
  output.exit_code = refusal != nullptr ? Output::kRefused : Output::kOk;
  if (look.format == Format::kText) {
    output.out = refusal != nullptr ? RefusalText(*refusal, look.style)
                                    : PlanText(*best.state, request, *plan, look.style);
    if (what_if) output.out += "\n" + WhatIfText(*what_if, look.style);
  } else {
    Json json = refusal != nullptr ? RefusalJson(*refusal) : PlanJson(*best.state, request, *plan);
    if (what_if) json["whatIf"] = WhatIfJson(*what_if);
    output.out = Printed(json, look.format);
  }
  return output;
}

}  // namespace

Output Plan(const PlanOptions& options, const ReadFile& read, const OutputOptions& look) {
  const base::Result<Output> output = Decide(options, read, look);
  if (output) return *output;
  // Nothing was asked of a cluster, so whatever went wrong is in what was given.
  Output failure = Failure(output.error());
  failure.exit_code = Output::kUsage;
  return failure;
}

}  // namespace heddle::cli
