#include "crds/observation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::crds {
namespace {

using testing::HasSubstr;

placement::Quality Priced(std::int64_t crossings, std::int64_t edges, std::int64_t micros) {
  placement::Quality quality;
  quality.leaf_crossings[std::size_t(placement::Axis::kDp)] = crossings;
  quality.edges[std::size_t(placement::Axis::kDp)] = edges;
  quality.step_micros = micros;
  return quality;
}

Gang Compared(const placement::Quality& actual, const placement::Quality& heddle) {
  Gang gang;
  gang.status.predicted = actual;
  gang.status.observed = Observed{.heddle = heddle};
  return gang;
}

Gang Waiting() {
  Gang gang;
  gang.status.predicted = Priced(1, 2, 3);
  gang.status.observed = Observed{.refusal = "16 hosts needed"};
  return gang;
}

TEST(Observation, IsOneLineOverAllJobs) {
  const auto totals = SumObserved({Compared(Priced(30, 50, 1000), Priced(4, 50, 800)),
                                   Compared(Priced(1, 50, 400), Priced(0, 50, 404)), Gang{}});
  EXPECT_EQ(totals.jobs, 2);
  EXPECT_EQ(ObservedLine(totals),
            "last 2 jobs: 31 % of DP edges crossed leaves; Heddle: 4 %; predicted step 14 % shorter");
}

TEST(Observation, CountsThoseThatHeddleWouldHaveMadeWaitApart) {
  EXPECT_EQ(ObservedLine(SumObserved({Waiting()})), "last 1 job would have waited for a better place");
  const auto totals = SumObserved({Waiting(), Compared(Priced(1, 2, 100), Priced(1, 2, 110))});
  EXPECT_EQ(totals.cluster.step_micros, 100) << "the one that waits has no second half";
  EXPECT_EQ(
      ObservedLine(totals),
      "last 1 job: 50 % of DP edges crossed leaves; Heddle: 50 %; predicted step 10 % longer; 1 job would "
      "have waited for a better place");
}

TEST(Observation, IsNoneOfWhatCouldNotBePriced) {
  Gang gang;
  gang.status.observed.emplace();
  gang.status.reason = "NotPriced";
  EXPECT_FALSE(WasPriced(gang.status));
  EXPECT_EQ(SumObserved({gang}), ObservedTotals{});
  EXPECT_TRUE(WasPriced(Compared({}, {}).status));
}

TEST(Observation, OfNothingSaysSo) {
  EXPECT_EQ(ObservedLine(SumObserved({})), "no job was observed yet");
  EXPECT_THAT(ObservedLine(SumObserved({Compared({}, {})})), HasSubstr("0 % of DP edges"));
  EXPECT_EQ(ObservedSentence({}), "");
}

TEST(Observation, OfOneGangNamesBothTimes) {
  Gang gang = Compared(Priced(84, 168, 2'526'000), Priced(0, 168, 1'302'000));
  EXPECT_EQ(
      ObservedSentence(gang.status),
      "predicted communication 2526.0 ms a step where its pods are, 1302.0 ms (48 % shorter) where Heddle "
      "would have put them; DP edges across leaves 84 of 168, and 0 of 168");
  gang.status.observed->assumed_parallelism = true;
  EXPECT_THAT(ObservedSentence(gang.status), HasSubstr("assumed"));
  EXPECT_THAT(ObservedSentence(Waiting().status), HasSubstr("would have made it wait: 16 hosts needed"));
}

}  // namespace
}  // namespace heddle::crds
