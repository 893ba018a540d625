#pragma once

#include <string_view>

#include "cli/plan.h"
#include "placement/gang.h"

namespace heddle::cli {

// The gang that the options of `plan` describe. Errors name the option.
[[nodiscard]] base::Result<placement::GangRequest> RequestOf(const PlanOptions& options);

// The gang of --suggest: the layout is --parallelism where it is given, else dp alone over --gpus.
// Without tp, cp, dp and pp the words of --parallelism are those of every layout that is looked at.
[[nodiscard]] base::Result<placement::GangRequest> SuggestRequestOf(const PlanOptions& options);

// Sequences per step: --global-batch, else microbatches · microbatch · dp of the layout that was given, with pp·4
// microbatches where the model does not say. Words without a size are no layout. Requires: SuggestRequestOf(options)
// is `request`.
[[nodiscard]] base::Result<std::int64_t> GlobalBatchOf(const PlanOptions& options,
                                                       const placement::GangRequest& request);

// Whether tp, cp, dp or pp is among the words.
bool SaysASize(std::string_view words);

}  // namespace heddle::cli
