#include "cli/plan.h"

#include <fmt/format.h>

#include <optional>
#include <variant>

#include "cli/defragment.h"
#include "cli/plan_request.h"
#include "cli/plan_view.h"
#include "cli/suggest.h"
#include "cli/what_if.h"
#include "placement/planner.h"

namespace heddle::cli {
namespace {

constexpr int kMostPlaces = 1'000'000;

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
    placement::ClusterState state = ground.State();
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

base::Result<Output> DecideSuggest(const PlanOptions& options, const ReadFile& read,
                                   const OutputOptions& look) {
  ASSIGN_OR_RETURN(const placement::GangRequest request, SuggestRequestOf(options));
  ASSIGN_OR_RETURN(const std::int64_t batch, GlobalBatchOf(options, request));
  ASSIGN_OR_RETURN(const Grounds grounds, ReadGround(options.ground, read));
  const SuggestAnswer answer = AskSuggest(grounds.fabrics, request, batch, !options.parallelism.empty());
  Output output;
  output.exit_code = answer.found.fastest.empty() ? Output::kRefused : Output::kOk;
  output.out = look.format == Format::kText ? SuggestText(answer, look.style)
                                            : Printed(SuggestJson(answer), look.format);
  return output;
}

base::Result<placement::DefragmentGoal> GoalOf(const PlanOptions& options) {
  const auto refuse = [](std::string why) { return base::Fail(base::Code::kInvalid, std::move(why)); };
  placement::DefragmentGoal goal;
  goal.places = *options.defragment;
  if (goal.places < 1 || goal.places > kMostPlaces) {
    return refuse(
        fmt::format("--defragment {} does not fit: say how many places should be whole, from 1 to {}",
                    goal.places, kMostPlaces));
  }
  const auto level = placement::ParseLevel(options.defragment_level);
  if (level != placement::Level::kNvlink && level != placement::Level::kUnit) {
    return refuse(fmt::format("--defragment-level \"{}\": write nvlink or su", options.defragment_level));
  }
  goal.level = *level;
  goal.min_gpus = options.defragment_gpus;
  if (goal.min_gpus < 1) return refuse("--defragment-gpus: write a number of GPUs, 1 or more");
  goal.slower_percent = options.slower_percent;
  if (goal.slower_percent < -1 || goal.slower_percent > 1000) {
    return refuse("--slower: write a percentage from 0 to 1000, or -1 for wherever there is room");
  }
  return goal;
}

base::Result<Output> DecideDefragment(const PlanOptions& options, const ReadFile& read,
                                      const OutputOptions& look) {
  if (options.suggest || options.what_if || options.spares != 0 || !options.parallelism.empty() ||
      !options.model.empty()) {
    return base::Fail(
        base::Code::kInvalid,
        "--defragment asks about the gangs in the file: leave --parallelism, --model, --suggest, "
        "--spares and --what-if out");
  }
  ASSIGN_OR_RETURN(const placement::DefragmentGoal goal, GoalOf(options));
  ASSIGN_OR_RETURN(const Grounds grounds, ReadGround(options.ground, read));
  if (grounds.gangs.empty()) {
    return base::Fail(
        base::Code::kInvalid,
        options.ground.synthetic.empty()
            ? "--defragment: there is no Gang in the files, so there is nobody to move; make them "
              "with `kubectl get nt,fabrics,gangs -A -o json`"
            : "--defragment: a cluster in one line has no gangs to move, --taken or not; give "
              "--topology FILE with them");
  }
  const DefragmentAnswer answer = AskDefragment(grounds, goal);
  Output output;
  output.exit_code = answer.found.refusal ? Output::kRefused : Output::kOk;
  output.out = look.format == Format::kText ? DefragmentText(answer, look.style)
                                            : Printed(DefragmentJson(answer), look.format);
  return output;
}

base::Result<Output> Decide(const PlanOptions& options, const ReadFile& read, const OutputOptions& look) {
  if (options.defragment) return DecideDefragment(options, read, look);
  if (options.suggest && options.what_if) {
    return base::Fail(base::Code::kInvalid, "--suggest and --what-if are two questions: ask one at a time");
  }
  if (options.suggest) return DecideSuggest(options, read, look);
  if (options.gpus || options.global_batch) {
    return base::Fail(
        base::Code::kInvalid,
        fmt::format("{} goes with --suggest only: add it, or leave {} out",
                    options.gpus ? "--gpus" : "--global-batch", options.gpus ? "--gpus" : "--global-batch"));
  }
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
