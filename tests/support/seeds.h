#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace heddle::test {

// The seeds of a randomised test: 1 … count, a fifth of them under a sanitizer (five times slower), or only that in
// HEDDLE_SEED, which is how a failure is run again.
std::vector<std::uint64_t> Seeds(int count);

// For SCOPED_TRACE: what to type in front of the test to see this failure again.
std::string Replay(std::uint64_t seed);

// The text after one to six accidents: cut short, a byte changed, a special character repeated, a piece lost or doubled.
std::string Damage(std::string text, base::Random& random);

}  // namespace heddle::test
