#include "operator/status_pace.h"

#include <gtest/gtest.h>

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;

constexpr base::MonotonicTime kStart{1h};

TEST(StatusPace, LetsAStatusBeWrittenOnceInItsInterval) {
  StatusPace pace(10s);
  EXPECT_EQ(pace.UntilWrite("a", false, kStart), 0s);
  EXPECT_EQ(pace.UntilWrite("a", false, kStart + 4s), 6s);
  EXPECT_EQ(pace.UntilWrite("b", false, kStart + 4s), 0s) << "each has its own";
  EXPECT_EQ(pace.UntilWrite("a", false, kStart + 10s), 0s);
}

TEST(StatusPace, LetsAnUrgentOneComeASecondTimeAndNoThird) {
  StatusPace pace(10s);
  EXPECT_EQ(pace.UntilWrite("a", true, kStart), 0s);
  EXPECT_EQ(pace.UntilWrite("a", true, kStart + 1s), 0s);
  EXPECT_EQ(pace.UntilWrite("a", true, kStart + 2s), 9s);
}

TEST(StatusPace, TriesWhatIsRefusedAfterPausesThatGrowAlsoWhereItIsUrgent) {
  StatusPace pace(10s);
  base::MonotonicTime now = kStart;
  for (const auto pause : {10s, 20s, 40s, 60s, 60s}) {
    EXPECT_EQ(pace.UntilWrite("a", true, now), 0s);
    pace.Answered("a", true);
    EXPECT_EQ(pace.UntilWrite("a", true, now + 1s), pause - 1s);
    now += pause;
  }
  EXPECT_EQ(pace.UntilWrite("a", false, now), 0s);
  pace.Answered("a", false);
  EXPECT_EQ(pace.UntilWrite("a", true, now + 1s), 0s) << "it is taken again, and so is what is urgent";
}

}  // namespace
}  // namespace heddle::operators
