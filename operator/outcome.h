#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"

namespace heddle::operators {

// What one reconcile did. An error is retried with back-off; `again` is a look at a known later time.
struct Outcome {
  int writes = 0;
  std::optional<std::chrono::nanoseconds> again;
};

}  // namespace heddle::operators
