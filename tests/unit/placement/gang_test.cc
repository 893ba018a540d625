#include "placement/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

namespace heddle::placement {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Parallelism Make(int tp, int cp, int dp, int pp) {
  Parallelism p;
  p.tp = tp;
  p.cp = cp;
  p.dp = dp;
  p.pp = pp;
  return p;
}

// By hand from the rule of Megatron-Core's parallel_state.py: rank = tp + 2·cp + 2·2·dp …; a group shares all
// other indices.
TEST(Groups, FollowTheDefaultOrderOfMegatronCore) {
  const Parallelism p = Make(2, 1, 2, 2);
  EXPECT_THAT(Groups(p, Axis::kTp),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_THAT(Groups(p, Axis::kDp),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(Groups(p, Axis::kPp),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
  EXPECT_THAT(Groups(p, Axis::kGang), ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
}

// The example in Megatron-Core's own comment: 16 GPUs, tp=2, pp=4 gives data-parallel groups [g0, g2], [g1,
// g3], [g4, g6] …
TEST(Groups, AgreeWithTheSixteenGpuExample) {
  const Parallelism p = Make(2, 1, 2, 4);
  const auto dp = Groups(p, Axis::kDp);
  ASSERT_EQ(dp.size(), 8u);
  EXPECT_THAT(dp[0], ElementsAre(0, 2));
  EXPECT_THAT(dp[1], ElementsAre(1, 3));
  EXPECT_THAT(dp[2], ElementsAre(4, 6));
  EXPECT_THAT(dp[7], ElementsAre(13, 15));
  EXPECT_THAT(Groups(p, Axis::kPp)[0], ElementsAre(0, 4, 8, 12));
}

TEST(Groups, PutContextParallelBetweenTensorAndData) {
  const Parallelism p = Make(2, 2, 2, 1);
  EXPECT_THAT(Groups(p, Axis::kCp),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(Groups(p, Axis::kDp),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
}

TEST(Groups, FollowAnotherOrder) {
  Parallelism p = Make(2, 1, 2, 2);
  p.order = {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp};
  EXPECT_THAT(Groups(p, Axis::kPp),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(Groups(p, Axis::kDp),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
}

// tp=2, dp=4, ep=2, etp=tp: expert rank = etp + 2·ep + 4·edp.
TEST(Groups, CutExpertGroupsFromASecondLayout) {
  Parallelism p = Make(2, 1, 4, 1);
  p.ep = 2;
  EXPECT_THAT(Groups(p, Axis::kEp),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  p.etp = 1;
  p.ep = 4;
  EXPECT_THAT(Groups(p, Axis::kEp), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
}

TEST(Groups, TakeConsecutiveDataRanksAsAShard) {
  Parallelism p = Make(1, 1, 8, 1);
  p.fsdp = 4;
  EXPECT_THAT(Groups(p, Axis::kFsdp), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  p = Make(2, 1, 4, 1);
  p.fsdp = 2;
  EXPECT_THAT(Groups(p, Axis::kFsdp),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
}

TEST(Groups, HoldEveryRankOnceOnEveryAxis) {
  Parallelism p = Make(4, 2, 6, 3);
  p.fsdp = 3;
  p.ep = 2;
  ASSERT_THAT(WhyNotLaidOut(p), IsEmpty());
  for (int axis = 0; axis < kAxisCount; ++axis) {
    std::vector<int> seen(std::size_t(p.world()), 0);
    for (const auto& group : Groups(p, Axis(axis))) {
      EXPECT_EQ(int(group.size()), p.size(Axis(axis)));
      EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
      for (std::int32_t rank : group) ++seen[std::size_t(rank)];
    }
    EXPECT_THAT(seen, testing::Each(1)) << AxisName(Axis(axis));
  }
}

TEST(Parallelism, SaysWhatDoesNotMultiply) {
  EXPECT_EQ(WhyNotLaidOut(Make(0, 1, 1, 1)), "tp=0: must be at least 1");
  EXPECT_THAT(WhyNotLaidOut(Make(INT_MAX, 1, INT_MAX, INT_MAX)), HasSubstr("more than 1048576 ranks"));
  Parallelism p = Make(2, 1, 4, 1);
  p.fsdp = 3;
  EXPECT_EQ(WhyNotLaidOut(p), "fsdp=3: must divide dp=4");
  p.fsdp = 0;
  p.ep = 3;
  EXPECT_EQ(WhyNotLaidOut(p), "ep=3 x etp=2 x pp=1: must divide the 8 ranks");
  p.ep = 1;
  p.order = {Axis::kTp, Axis::kTp, Axis::kDp, Axis::kPp};
  EXPECT_EQ(WhyNotLaidOut(p), "order: must name tp, cp, dp and pp once each");
}

TEST(Names, ReadBackAsTheyAreWritten) {
  for (int axis = 0; axis < kAxisCount; ++axis) EXPECT_EQ(ParseAxis(AxisName(Axis(axis))), Axis(axis));
  for (int level = 0; level < 6; ++level) EXPECT_EQ(ParseLevel(LevelName(Level(level))), Level(level));
  EXPECT_EQ(ParseAxis("TP"), std::nullopt);
  EXPECT_EQ(ParseLevel("rack"), std::nullopt);
}

}  // namespace
}  // namespace heddle::placement
