// Many seeds in several processes: each is lived once, and what goes wrong in one of them is told with its seed.
#include "tests/sim/crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace heddle::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome Fine(std::uint64_t seed) {
  Outcome outcome;
  outcome.seed = seed;
  outcome.jobs = int(seed);
  outcome.requests = 10 * seed;
  outcome.virtual_time = std::chrono::seconds(60);
  return outcome;
}

Outcome Broken(std::uint64_t seed) {
  Outcome outcome = Fine(seed);
  outcome.violations = {{"NoGpuTwice", "both have it", base::MonotonicTime(std::chrono::seconds(3607))}};
  return outcome;
}

struct Told {
  Tally tally;
  std::string text;
};
Told Share(const CrewOptions& options, const std::function<Outcome(std::uint64_t)>& live) {
  testing::internal::CaptureStdout();
  Told told;
  told.tally = RunSeeds({1, 40}, options, live);
  told.text = testing::internal::GetCapturedStdout();
  return told;
}

TEST(Crew, LivesEachSeedOnceHoweverManyShareThem) {
  for (const int jobs : {1, 3, 16}) {
    const Told told = Share({.jobs = jobs}, Fine);
    EXPECT_EQ(told.tally.seeds, 40u);
    EXPECT_EQ(told.tally.broken, 0u);
    EXPECT_EQ(told.tally.jobs, 820u);
    EXPECT_EQ(told.tally.requests, 8200u);
    EXPECT_EQ(told.tally.virtual_seconds, 2400u);
    EXPECT_EQ(told.text, "");
  }
}

TEST(Crew, SaysWhichSeedIsBrokenAndHowToSeeItAgain) {
  const auto live = [](std::uint64_t seed) { return seed % 20 == 7 ? Broken(seed) : Fine(seed); };
  const Told told = Share({.jobs = 3, .go_on = true, .again = "heddle_sim --trace"}, live);
  EXPECT_EQ(told.tally.seeds, 40u);
  EXPECT_EQ(told.tally.broken, 2u);
  for (const char* seed : {"7", "27"}) {
    EXPECT_THAT(told.text, HasSubstr(std::string("seed ") + seed +
                                     " broke NoGpuTwice after 7.0 s: both have it\n  see it again: "
                                     "heddle_sim --trace --seed " +
                                     seed + "\n"));
  }
}

TEST(Crew, BeginsNothingAfterABrokenSeedUnlessItIsToGoOn) {
  const Told told = Share({.jobs = 2}, Broken);
  EXPECT_GE(told.tally.broken, 1u);
  EXPECT_LE(told.tally.seeds, 2u);
}

TEST(Crew, AProcessThatEndsItselfIsABrokenSeedAndAnotherGoesOn) {
  const auto live = [](std::uint64_t seed) {
    if (seed == 11) (void)raise(SIGKILL);
    return Fine(seed);
  };
  const Told told = Share({.jobs = 2, .go_on = true, .again = "heddle_sim --trace"}, live);
  EXPECT_EQ(told.tally.seeds, 40u);
  EXPECT_EQ(told.tally.broken, 1u);
  EXPECT_EQ(told.tally.jobs, 820u - 11u);
  EXPECT_THAT(told.text,
              HasSubstr("seed 11 ended its process: Killed\n  see it again: heddle_sim --trace --seed 11\n"));
  EXPECT_THAT(told.text, Not(HasSubstr("seed 12")));
}

}  // namespace
}  // namespace heddle::sim
