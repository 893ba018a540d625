#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "cli/best_fabric.h"
#include "cli/defragment.h"
#include "cli/fabrics.h"
#include "cli/plan_request.h"
#include "cli/plan_view.h"
#include "cli/suggest.h"
#include "cli/what_if.h"

namespace heddle::cli {
namespace {

constexpr int kMostPlaces = 1'000'000;

base::Result<Output> DecideSuggest(const PlanOptions& options, const ReadFile& read,
                                   const OutputOptions& look) {
  ASSIGN_OR_RETURN(const placement::GangRequest request, SuggestRequestOf(options));
  ASSIGN_OR_RETURN(const std::int64_t batch, GlobalBatchOf(options, request));
  ASSIGN_OR_RETURN(const Grounds grounds, ReadGround(options.ground, read));
  const SuggestAnswer answer = AskSuggest(grounds.fabrics, request, batch, SaysASize(options.parallelism));
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
  const auto level = options.defragment_level.empty() ? placement::Level::kNvlink
                                                      : placement::ParseLevel(options.defragment_level);
  if (level != placement::Level::kNvlink && level != placement::Level::kUnit) {
    return refuse(fmt::format("--defragment-level \"{}\": write nvlink or su", options.defragment_level));
  }
  goal.level = *level;
  goal.min_gpus = options.defragment_gpus.value_or(goal.min_gpus);
  if (goal.min_gpus < 1) return refuse("--defragment-gpus: write a number of GPUs, 1 or more");
  goal.slower_percent = options.slower_percent.value_or(goal.slower_percent);
  if (goal.slower_percent < -1 || goal.slower_percent > 1000) {
    return refuse("--slower: write a percentage from 0 to 1000, or -1 for wherever there is room");
  }
  return goal;
}

// The first option that speaks of one gang to place; empty = none is given.
std::string_view WordOfAGang(const PlanOptions& options) {
  const std::pair<bool, std::string_view> words[] = {{!options.parallelism.empty(), "--parallelism"},
                                                     {!options.model.empty(), "--model"},
                                                     {options.gpus_per_pod.has_value(), "--gpus-per-pod"},
                                                     {!options.require.empty(), "--require"},
                                                     {!options.prefer.empty(), "--prefer"},
                                                     {options.spares != 0, "--spares"},
                                                     {options.what_if, "--what-if"},
                                                     {options.suggest, "--suggest"},
                                                     {options.gpus.has_value(), "--gpus"},
                                                     {options.global_batch.has_value(), "--global-batch"}};
  for (const auto& [given, word] : words) {
    if (given) return word;
  }
  return "";
}

// An option that says nothing without another is a mistake, and no wish to ignore.
base::Status CheckCompany(const PlanOptions& options) {
  struct Word {
    std::string_view word, company;
    bool given, has_company;
  };
  const bool defragment = options.defragment.has_value();
  const Word words[] = {
      {"--gpus", "--suggest", options.gpus.has_value(), options.suggest || defragment},
      {"--global-batch", "--suggest", options.global_batch.has_value(), options.suggest || defragment},
      {"--defragment-level", "--defragment", !options.defragment_level.empty(), defragment},
      {"--defragment-gpus", "--defragment", options.defragment_gpus.has_value(), defragment},
      {"--slower", "--defragment", options.slower_percent.has_value(), defragment}};
  for (const Word& one : words) {
    if (one.given && !one.has_company) {
      return base::Fail(base::Code::kInvalid, fmt::format("{0} goes with {1} only: add {1}, or leave {0} out",
                                                          one.word, one.company));
    }
  }
  return {};
}

base::Result<Output> DecideDefragment(const PlanOptions& options, const ReadFile& read,
                                      const OutputOptions& look) {
  if (const std::string_view word = WordOfAGang(options); !word.empty()) {
    return base::Fail(base::Code::kInvalid,
                      fmt::format("--defragment asks about the gangs in the file: leave {} out", word));
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

// Nobody said how large the pods are, and what is usual fits no node here.
std::string SmallNodesText(const PlanOptions& options, const placement::ClusterState& state) {
  int largest = 0;
  for (const topology::FabricNode& node : state.fabric().nodes)
    largest = std::max(largest, int(node.node.gpus.size()));
  if (options.gpus_per_pod || largest == 0 || largest >= kUsualGpusPerPod) return "";
  return fmt::format(
      "Pods have {0} GPUs unless --gpus-per-pod says otherwise, and no node here has more than {1}: "
      "try --gpus-per-pod {1}\n",
      kUsualGpusPerPod, largest);
}

base::Result<Output> Decide(const PlanOptions& options, const ReadFile& read, const OutputOptions& look) {
  TRY(CheckCompany(options));
  if (options.defragment) return DecideDefragment(options, read, look);
  if (options.suggest && options.what_if) {
    return base::Fail(base::Code::kInvalid, "--suggest and --what-if are two questions: ask one at a time");
  }
  if (options.suggest) return DecideSuggest(options, read, look);
  ASSIGN_OR_RETURN(const placement::GangRequest request, RequestOf(options));
  ASSIGN_OR_RETURN(const Grounds grounds, ReadGround(options.ground, read));
  const BestFabric best = DecideOnBest(grounds.fabrics, request);
  const auto* refusal = std::get_if<placement::Refusal>(&best.decision);
  const auto* plan = std::get_if<placement::Plan>(&best.decision);
  std::optional<WhatIf> what_if;
  if (options.what_if) what_if = AskWhatIf(*best.ground, grounds.holders, request);
  Output output;
  output.exit_code = refusal != nullptr ? Output::kRefused : Output::kOk;
  if (look.format == Format::kText) {
    if (grounds.fabrics.size() > 1) {
      output.out =
          fmt::format("Of {} fabrics, {} {}; no gang lies on two.\n\n", grounds.fabrics.size(),
                      Title(*best.ground->fabric), plan != nullptr ? "is the fastest" : "has the most GPUs");
    }
    output.out += refusal != nullptr
                      ? RefusalText(*refusal, look.style) + SmallNodesText(options, *best.state)
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
  return output ? *output : FailureOfInput(output.error());
}

}  // namespace heddle::cli
