#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "tests/support/fake_clock.h"

namespace heddle::base {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Time, WritesWhatKubernetesWrites) {
  const WallTime time{seconds(1'767'323'045) + microseconds(7)};
  EXPECT_EQ(FormatTime(time), "2026-01-02T03:04:05Z");
  EXPECT_EQ(FormatMicroTime(time), "2026-01-02T03:04:05.000007Z");
  EXPECT_EQ(FormatTime(WallTime{microseconds(-1)}), "1969-12-31T23:59:59Z");
}

TEST(Time, ReadsBackWhatItWrites) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    // From 1970 to the end of 9999.
    const WallTime time{microseconds(std::int64_t(random.Below(253'402'300'799'000'000)))};
    EXPECT_EQ(ParseTime(FormatMicroTime(time)), time);
    EXPECT_EQ(ParseTime(FormatTime(time)), std::chrono::floor<seconds>(time));
  }
}

TEST(Time, ReadsOffsetsAndFractions) {
  const auto noon = ParseTime("2026-01-02T12:00:00Z");
  EXPECT_EQ(ParseTime("2026-01-02T14:00:00+02:00"), noon);
  EXPECT_EQ(ParseTime("2026-01-02T06:30:00-05:30"), noon);
  EXPECT_EQ(ParseTime("2026-01-02t12:00:00z"), noon);
  EXPECT_EQ(ParseTime("2026-01-02T12:00:00.5Z"), *noon + milliseconds(500));
  EXPECT_EQ(ParseTime("2026-01-02T12:00:00.123456789Z"), *noon + microseconds(123456));
  EXPECT_EQ(ParseTime("2026-06-30T23:59:60Z"), ParseTime("2026-07-01T00:00:00Z")) << "a leap second";
}

TEST(Time, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z",
        "2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.1234567890Z", "2026-01-02T03:04:05ZZ", " 2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05+2:00", "2026-01-02T03:04:05+24:00", "-026-01-02T03:04:05Z",
        "2026-1-02T03:04:05Z", "tomorrow"}) {
    EXPECT_FALSE(ParseTime(text)) << text;
  }
}

TEST(SystemClock, SleepsUntilTheDeadlineOrStop) {
  SystemClock clock;
  EXPECT_TRUE(clock.SleepFor(milliseconds(1), {}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(clock.SleepFor(std::chrono::hours(1), stop.get_token()));
  std::jthread sleeper(
      [&](std::stop_token token) { EXPECT_FALSE(clock.SleepUntil(MonotonicTime::max(), token)); });
  sleeper.request_stop();
}

TEST(FakeClock, WakesSleepersInTheOrderOfTheirDeadlines) {
  test::FakeClock clock;
  std::mutex mutex;
  std::string order;
  std::vector<std::jthread> sleepers;
  for (const auto& [name, delay] : {std::pair('c', 3), std::pair('a', 1), std::pair('b', 2)}) {
    sleepers.emplace_back([&, name = name, delay = delay] {
      EXPECT_TRUE(clock.SleepFor(seconds(delay), {}));
      const std::lock_guard lock(mutex);
      order += name;
    });
  }
  ASSERT_TRUE(clock.WaitForSleepers(3));
  clock.Advance(seconds(10));
  sleepers.clear();
  EXPECT_EQ(order, "abc");
}

TEST(FakeClock, LetsALoopSleepAgainOnTheWay) {
  test::FakeClock clock;
  std::atomic<int> rounds = 0;
  std::jthread loop([&](std::stop_token stop) {
    while (clock.SleepFor(seconds(1), stop)) ++rounds;
  });
  ASSERT_TRUE(clock.WaitForSleepers(1));
  clock.Advance(seconds(10));
  EXPECT_EQ(rounds, 10);
}

TEST(Random, IsTheSameEverywhere) {
  Random random(42);
  EXPECT_EQ(random.Next(), 13679457532755275413ULL);
  EXPECT_EQ(random.Next(), 2949826092126892291ULL);
}

TEST(Random, StaysInItsBounds) {
  Random random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[random.Below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  for (int i = 0; i < 1000; ++i) {
    const double unit = random.Unit();
    EXPECT_TRUE(unit >= 0 && unit < 1);
    const auto jitter = random.Jitter(seconds(2));
    EXPECT_TRUE(jitter.count() >= 0 && jitter < seconds(2));
  }
  EXPECT_EQ(random.Jitter(seconds(0)).count(), 0);
  EXPECT_EQ(random.Jitter(seconds(-1)).count(), 0);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(Random, ForksIndependentStreams) {
  Random random(1);
  Random fork = random.Fork();
  EXPECT_NE(fork.Next(), random.Next());
}

}  // namespace
}  // namespace heddle::base
