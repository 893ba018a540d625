#pragma once

#include <span>
#include <string>
#include <string_view>

#include "placement/gang.h"

namespace heddle::sizing {

// Models that a step is predicted for by name.
struct NamedModel {
  std::string_view word;  // "llama3-70b"
  placement::ModelHints hints;
  std::int64_t batch = 0;  // sequences per step
  std::string_view source;
};
std::span<const NamedModel> Models();  // the smallest first
const NamedModel* FindModel(std::string_view word);
std::string ModelWords();
// The largest that a fabric of so many GPUs is usually bought for: our own choice, which the answer names.
const NamedModel& UsualModel(std::int64_t gpus);

}  // namespace heddle::sizing
