#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.h"

namespace heddle::operators {

// How long whoever did not answer is left alone: `least` after the first failure, twice as long after each further one,
// never longer than `most`. `failures`: in a row before this one, from 0. Pure and total.
inline std::chrono::nanoseconds WaitAfter(int failures, std::chrono::nanoseconds least,
                                          std::chrono::nanoseconds most) {
  constexpr int kMostDoublings = 10;
  return std::min(least * (std::int64_t{1} << std::clamp(failures, 0, kMostDoublings)), most);
}

// Up to a tenth longer, so that many who failed together do not come back together.
inline std::chrono::nanoseconds Jittered(std::chrono::nanoseconds span, base::Random& random) {
  return span + std::chrono::nanoseconds(random.Below(std::uint64_t(span.count() / 10 + 1)));
}

}  // namespace heddle::operators
