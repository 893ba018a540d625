#include "kube/server_clock.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const base::WallTime kSent{seconds(784'111'777)};  // RFC 9110's own example

HttpResponse Dated(const char* date) {
  return {.status = 200, .headers = {{"date", date}}, .body = {}};
}

TEST(ServerClock, ReadsTheOneFormOfADateThatServersWrite) {
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), kSent);
  for (const char* other :
       {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:-1:37 GMT",
        "Sun, 06 Abc 1994 08:49:37 GMT"}) {
    EXPECT_EQ(ParseHttpDate(other), std::nullopt) << other;
  }
}

TEST(ServerClock, IsOnesOwnWhereTheServersIsAboutTheSame) {
  for (const int off : {-1, 0, 2}) {
    test::FakeClock own(kSent + seconds(off));
    ServerClock clock(own);
    EXPECT_FALSE(clock.Saw(Dated("Sun, 06 Nov 1994 08:49:37 GMT"), own.WallNow()));
    EXPECT_EQ(clock.WallNow(), own.WallNow());
  }
}

TEST(ServerClock, FollowsAServerThatIsMinutesAheadOrBehind) {
  for (const minutes off : {minutes(-5), minutes(5)}) {
    test::FakeClock own(kSent + off);
    ServerClock clock(own);
    EXPECT_TRUE(clock.Saw(Dated("Sun, 06 Nov 1994 08:49:37 GMT"), own.WallNow()));
    EXPECT_LE(std::chrono::abs(clock.WallNow() - kSent), seconds(1));
    own.Advance(seconds(10));
    EXPECT_LE(std::chrono::abs(clock.WallNow() - kSent - seconds(10)), seconds(1));
  }
}

TEST(ServerClock, ComesBackWhenItsHostsClockIsSet) {
  test::FakeClock right(kSent);
  ServerClock clock(right);
  EXPECT_TRUE(clock.Saw(Dated("Sun, 06 Nov 1994 08:54:37 GMT"), right.WallNow()));
  EXPECT_GT(clock.ahead(), minutes(4));
  EXPECT_TRUE(clock.Saw(Dated("Sun, 06 Nov 1994 08:49:37 GMT"), right.WallNow()));
  EXPECT_EQ(clock.WallNow(), right.WallNow());
}

TEST(ServerClock, LearnsNothingFromASlowAnswerOrOneWithoutADate) {
  test::FakeClock own(kSent);
  ServerClock clock(own);
  EXPECT_FALSE(clock.Saw({.status = 200, .headers = {}, .body = {}}, own.WallNow()));
  EXPECT_FALSE(clock.Saw(Dated("yesterday"), own.WallNow()));
  EXPECT_FALSE(clock.Saw(Dated("Sun, 06 Nov 1994 09:49:37 GMT"), own.WallNow() - seconds(30)));
  EXPECT_EQ(clock.WallNow(), own.WallNow());
}

}  // namespace
}  // namespace heddle::kube
