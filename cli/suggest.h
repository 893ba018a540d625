#pragma once

#include <optional>
#include <string>

#include "cli/ground.h"
#include "cli/table.h"
#include "placement/layouts.h"

namespace heddle::cli {

// The fastest ways to cut one job, on the fabric where the fastest of them is.
struct SuggestAnswer {
  std::string fabric;     // "InfiniBand at berlin"
  std::string gpu_model;  // the slowest of the fabric; empty where no node names one
  int nodes = 0;
  placement::LayoutLimits limits;
  placement::ModelHints model;
  placement::LayoutCounts counts;
  placement::Suggestions found;                // without their plans
  bool asked_given = false;                    // a layout was given …
  std::optional<placement::Suggestion> given;  // … and this is what it takes; nothing = illegal, or no place
};
inline constexpr int kMostSuggestions = 5;
// What an H100 reaches (placement/layouts.h), for GPUs that nobody measured; the answer says so.
inline constexpr double kAssumedTflops = 605;

SuggestAnswer AskSuggest(const std::vector<Ground>& grounds, const placement::GangRequest& request,
                         std::int64_t global_batch, bool asked_given);

// {"feasible":…,"fabric":…,"world":…,"globalBatch":…,"gpuModel":…,"tflopsPerGpu":…,"gpuMemoryGib":…,
//  "suggestions":[{"rank","parallelism":{"tp","cp","pp","dp"},"microbatches","virtualStages","recompute",
//   "recomputedLayers","milliseconds","computeMilliseconds","fixedMilliseconds","bubbleMilliseconds",
//   "communicationMilliseconds","axes":[{"axis","milliseconds"}],"memoryGib","leafCrossings",
//   "tokensPerSecond"}],
//  "given":…,"layouts":{"all","legal","priced","refused","skipped","leftOut":{…}},"refusal":…}
// compute, fixed, bubble and communication sum to milliseconds, and the axes to communication.
crds::Json SuggestJson(const SuggestAnswer& answer);
std::string SuggestText(const SuggestAnswer& answer, const Style& style);

}  // namespace heddle::cli
