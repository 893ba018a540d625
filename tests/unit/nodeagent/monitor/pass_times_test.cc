#include "nodeagent/monitor/pass_times.h"

#include <gmock/gmock.h>

namespace heddle::nodeagent {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

const base::MonotonicTime kBegin{seconds(1000)};
const base::WallTime kWall{seconds(1'800'000'000)};  // 2027-01-15T08:00:00Z
const std::map<Pass, std::chrono::nanoseconds> kAtMost{{Pass::kLook, seconds(180)},
                                                       {Pass::kCounterPass, seconds(60)}};

TEST(PassTimes, CallsAPassStuckOnlyAfterItsTime) {
  PassTimes times;
  times.Began(Pass::kCounterPass, kBegin, kWall);
  EXPECT_THAT(times.Stuck(kAtMost, kBegin + seconds(60)), IsEmpty());
  EXPECT_THAT(times.Stuck(kAtMost, kBegin + seconds(61)), ElementsAre(StuckPass{Pass::kCounterPass, kWall}));
  times.Ended(Pass::kCounterPass);
  EXPECT_THAT(times.Stuck(kAtMost, kBegin + seconds(61)), IsEmpty());
}

TEST(PassTimes, CountsEachPassFromItsOwnBegin) {
  PassTimes times;
  times.Began(Pass::kLook, kBegin, kWall);
  times.Ended(Pass::kLook);
  times.Began(Pass::kLook, kBegin + seconds(150), kWall + seconds(150));
  EXPECT_THAT(times.Stuck(kAtMost, kBegin + seconds(200)), IsEmpty());
  EXPECT_THAT(times.Stuck(kAtMost, kBegin + seconds(331)),
              ElementsAre(StuckPass{Pass::kLook, kWall + seconds(150)}));
}

TEST(PassTimes, KnowsNoLimitOfOtherPasses) {
  PassTimes times;
  times.Began(Pass::kLeafPass, kBegin, kWall);
  EXPECT_THAT(times.Stuck(kAtMost, kBegin + std::chrono::hours(1)), IsEmpty());
}

TEST(PassTimes, SaysWhichPassesDoNotEndAndSinceWhen) {
  EXPECT_EQ(StuckText({}), "");
  EXPECT_EQ(StuckText({{Pass::kCounterPass, kWall}}),
            "the pass over the counters has not ended since 2027-01-15T08:00:00Z: a driver or the firmware "
            "of a NIC "
            "does not answer, and what it would tell is published as it was before");
  EXPECT_THAT(StuckText({{Pass::kLook, kWall}, {Pass::kCounterPass, kWall + seconds(5)}}),
              testing::StartsWith(
                  "the look at the machine has not ended since 2027-01-15T08:00:00Z, and the pass over "
                  "the counters has not ended since 2027-01-15T08:00:05Z: "));
}

}  // namespace
}  // namespace heddle::nodeagent
