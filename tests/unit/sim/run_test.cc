#include "tests/sim/run.h"

#include <gtest/gtest.h>

namespace heddle::sim {
namespace {

TEST(Run, IsTheSameToTheByteForTheSameSeed) {
  const auto trace = [](std::uint64_t seed) {
    std::string text;
    RunOptions options{.seed = seed, .trace = [&text](const std::string& line) { text += line + "\n"; }};
    (void)RunSeed(options);
    return text;
  };
  const std::string first = trace(3);
  EXPECT_GT(first.size(), 10'000u);
  EXPECT_EQ(trace(3), first);
  EXPECT_NE(trace(4), first);
}

TEST(Run, EndsEarlyWhereItIsToldTo) {
  const Outcome outcome = RunSeed({.seed = 3, .most_steps = 500});
  EXPECT_LT(outcome.steps, 100'000u);
  EXPECT_TRUE(outcome.violations.empty());
}

}  // namespace
}  // namespace heddle::sim
