#include "operator/pace.h"

#include <gtest/gtest.h>

namespace heddle::operators {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr base::MonotonicTime kStart{std::chrono::hours(1)};

TEST(Pace, LetsTheFirstLookBegin) {
  EXPECT_LE(Pace().Wait(kStart), nanoseconds(0));
}

TEST(Pace, RestsNineTimesAsLongAsALookTook) {
  Pace pace;
  pace.Took(kStart, kStart + milliseconds(200));
  EXPECT_EQ(pace.Wait(kStart + milliseconds(200)), milliseconds(1800));
  EXPECT_EQ(pace.Wait(kStart + milliseconds(1500)), milliseconds(500));
  EXPECT_LE(pace.Wait(kStart + seconds(2)), nanoseconds(0));
}

TEST(Pace, RestsNoLongerThanPeopleWait) {
  Pace pace;
  pace.Took(kStart, kStart + seconds(60));
  EXPECT_EQ(pace.Wait(kStart + seconds(60)), Pace::kLongestRest);
}

// All nodes change for as long as it takes to write them: looks take a tenth of that and not the square of the nodes.
TEST(Pace, SpendsATenthOfATimeFullOfChanges) {
  for (const milliseconds cost : {milliseconds(20), milliseconds(200)}) {
    Pace pace;
    nanoseconds spent{};
    for (base::MonotonicTime now = kStart; now < kStart + seconds(60); now += milliseconds(1)) {
      if (pace.Wait(now) > nanoseconds(0)) continue;
      pace.Took(now, now + cost);
      now += cost;
      spent += cost;
    }
    EXPECT_LE(spent, seconds(6) + cost);
    EXPECT_GE(spent, seconds(5));
  }
}

}  // namespace
}  // namespace heddle::operators
