#include "base/random.h"

#include "base/check.h"

namespace heddle::base {

std::uint64_t Random::Next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint64_t Random::Below(std::uint64_t bound) {
  CHECK(bound > 0);
  // Values under the remainder would make small results likelier.
  const std::uint64_t remainder = -bound % bound;
  std::uint64_t value = Next();
  while (value < remainder) value = Next();
  return value % bound;
}

double Random::Unit() {
  return double(Next() >> 11) * 0x1.0p-53;
}

std::chrono::nanoseconds Random::Jitter(std::chrono::nanoseconds limit) {
  if (limit.count() <= 0) return std::chrono::nanoseconds{0};
  return std::chrono::nanoseconds{std::int64_t(Below(std::uint64_t(limit.count())))};
}

}  // namespace heddle::base
