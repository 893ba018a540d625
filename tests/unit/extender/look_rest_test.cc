#include "extender/look_rest.h"

#include <gtest/gtest.h>

namespace heddle::extender {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPods = 5'000;
const GangKey kLarge{"train", "large", 0}, kOther{"train", "other", 0};
const base::MonotonicTime kStart{seconds(100)};

TEST(LookRest, IsFourTimesALookThatTookLong) {
  LookRest rest;
  EXPECT_EQ(rest.Wait(kLarge, kStart), milliseconds(0)) << "nobody has looked";
  const auto ended = kStart + milliseconds(20);
  rest.Ended(kLarge, kPods, kStart, ended);
  EXPECT_EQ(rest.Wait(kLarge, ended), milliseconds(80));
  EXPECT_EQ(rest.Wait(kLarge, ended + milliseconds(30)), milliseconds(50));
  EXPECT_LE(rest.Wait(kLarge, ended + milliseconds(80)), milliseconds(0));
  EXPECT_EQ(rest.Wait(kOther, ended), milliseconds(0)) << "another gang waits for nobody";
}

TEST(LookRest, HoldsForWhatChangesDuringALookToo) {
  LookRest rest;
  rest.Began(kLarge, kStart);
  EXPECT_EQ(rest.Wait(kLarge, kStart), milliseconds(0)) << "how long looks take is not known yet";
  rest.Ended(kLarge, kPods, kStart, kStart + milliseconds(20));
  const auto again = kStart + milliseconds(100);
  rest.Began(kLarge, again);
  EXPECT_EQ(rest.Wait(kLarge, again + milliseconds(5)), milliseconds(95));
}

TEST(LookRest, IsNoneAfterAShortLookOrOfAFewPodsAndASecondAtMost) {
  LookRest rest;
  rest.Ended(kLarge, kPods, kStart, kStart + milliseconds(9));
  EXPECT_EQ(rest.Wait(kLarge, kStart + milliseconds(9)), milliseconds(0));
  rest.Ended(kLarge, kPods, kStart, kStart + seconds(5));
  EXPECT_EQ(rest.Wait(kLarge, kStart + seconds(5)), seconds(1));
  rest.Ended(kLarge, 16, kStart, kStart + seconds(5));
  EXPECT_EQ(rest.Wait(kLarge, kStart + seconds(5)), milliseconds(0)) << "it was the cluster, or the server";
  rest.Ended(kLarge, kPods, kStart, kStart + seconds(5));
  rest.Clear();
  EXPECT_EQ(rest.Wait(kLarge, kStart + seconds(5)), milliseconds(0));
}

}  // namespace
}  // namespace heddle::extender
