#pragma once

#include <chrono>
#include <cstdint>

namespace heddle::base {

// splitmix64 (Steele, Lea, Flood 2014): small, fast and the same on every machine, which std::uniform_* is
// not. Thread rule: one owner; give every thread its own, from Fork().
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next();
  // In [0, bound). Requires: bound > 0.
  std::uint64_t Below(std::uint64_t bound);
  // In [0, 1).
  double Unit();
  // In [0, limit): "full jitter".
  std::chrono::nanoseconds Jitter(std::chrono::nanoseconds limit);
  Random Fork() { return Random(Next()); }

 private:
  std::uint64_t state_;
};

}  // namespace heddle::base
