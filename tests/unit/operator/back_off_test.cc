#include "operator/back_off.h"

#include <gtest/gtest.h>

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;

TEST(BackOff, DoublesWithEachFailureUpToTheMost) {
  EXPECT_EQ(WaitAfter(0, 2s, 60s), 2s);
  EXPECT_EQ(WaitAfter(1, 2s, 60s), 4s);
  EXPECT_EQ(WaitAfter(4, 2s, 60s), 32s);
  EXPECT_EQ(WaitAfter(5, 2s, 60s), 60s);
  EXPECT_EQ(WaitAfter(2'000'000'000, 2s, 60s), 60s);
}

TEST(BackOff, IsSpreadOverATenthMore) {
  base::Random random(7);
  bool spread = false;
  for (int i = 0; i < 100; ++i) {
    const auto wait = Jittered(60s, random);
    EXPECT_GE(wait, 60s);
    EXPECT_LE(wait, 66s);
    spread = spread || wait > 63s;
  }
  EXPECT_TRUE(spread);
  EXPECT_EQ(Jittered(0s, random), 0s);
}

}  // namespace
}  // namespace heddle::operators
