#include "extender/look_rest.h"

#include <gtest/gtest.h>

namespace heddle::extender {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const GangKey kLarge{"train", "large", 0}, kOther{"train", "other", 0};
const base::MonotonicTime kStart{seconds(100)};

TEST(LookRest, IsFourTimesALookThatTookLong) {
  LookRest rest;
  EXPECT_EQ(rest.Wait(kLarge, kStart), milliseconds(0)) << "nobody has looked";
  const auto ended = kStart + milliseconds(20);
  rest.Took(kLarge, kStart, ended);
  EXPECT_EQ(rest.Wait(kLarge, ended), milliseconds(80));
  EXPECT_EQ(rest.Wait(kLarge, ended + milliseconds(30)), milliseconds(50));
  EXPECT_LE(rest.Wait(kLarge, ended + milliseconds(80)), milliseconds(0));
  EXPECT_EQ(rest.Wait(kOther, ended), milliseconds(0)) << "another gang waits for nobody";
}

TEST(LookRest, IsNoneAfterAShortLookAndASecondAtMost) {
  LookRest rest;
  rest.Took(kLarge, kStart, kStart + milliseconds(9));
  EXPECT_EQ(rest.Wait(kLarge, kStart + milliseconds(9)), milliseconds(0));
  rest.Took(kLarge, kStart, kStart + seconds(5));
  EXPECT_EQ(rest.Wait(kLarge, kStart + seconds(5)), seconds(1));
  rest.Took(kLarge, kStart, kStart + milliseconds(1));
  EXPECT_EQ(rest.Wait(kLarge, kStart + milliseconds(1)), milliseconds(0)) << "most of its pods have gone";
}

}  // namespace
}  // namespace heddle::extender
