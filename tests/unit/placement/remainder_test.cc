#include "placement/remainder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace heddle::placement {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::vector<Requirement> kNothing;

Remainder Left(const Parallelism& parallelism, int gpus_per_pod, const std::set<int>& gone,
               const std::vector<Requirement>& require = kNothing,
               const std::vector<Requirement>& prefer = kNothing) {
  std::vector<bool> pods(std::size_t(parallelism.world() / gpus_per_pod));
  for (const int pod : gone) pods[std::size_t(pod)] = true;
  return RemainderOf(parallelism, require, prefer, gpus_per_pod, pods);
}

TEST(Remainder, IsTheGangItselfWhereNobodyIsGone) {
  const Parallelism all{.tp = 8, .dp = 4, .ep = 4, .fsdp = 2};
  EXPECT_EQ(Left(all, 8, {}), (Remainder{all, {0, 1, 2, 3}}));
}

TEST(Remainder, LeavesOutAReplicaThatIsGone) {
  EXPECT_EQ(Left({.tp = 8, .dp = 4}, 8, {2}), (Remainder{{.tp = 8, .dp = 3}, {0, 1, 3}}));
}

TEST(Remainder, IsNothingWhereAllAreGone) {
  EXPECT_THAT(Left({.tp = 8, .dp = 2}, 8, {0, 1}).pods, IsEmpty());
  EXPECT_THAT(Left({.tp = 16}, 8, {0, 1}).pods, IsEmpty());
}

TEST(Remainder, KeepsATensorGroupWholeThatIsPartlyGone) {
  const Parallelism two{.tp = 16, .dp = 2};
  EXPECT_EQ(Left(two, 8, {0}), (Remainder{two, {0, 1, 2, 3}}));
  EXPECT_EQ(Left(two, 8, {0, 1}), (Remainder{{.tp = 16}, {2, 3}}));
  EXPECT_EQ(Left({.tp = 16}, 8, {1}), (Remainder{{.tp = 16}, {0, 1}}));
}

TEST(Remainder, KeepsPodsWholeThatHoldSeveralGroups) {
  EXPECT_EQ(Left({.tp = 2, .dp = 8}, 8, {1}), (Remainder{{.tp = 2, .dp = 4}, {0}}));
  EXPECT_EQ(Left({.tp = 2, .dp = 2}, 1, {0, 1}), (Remainder{{.tp = 2}, {2, 3}}));
  EXPECT_THAT(Left({.tp = 2, .dp = 2}, 1, {0, 2}).pods, SizeIs(4)) << "half of each group";
  // Three pods of four GPUs hold two groups of six.
  EXPECT_EQ(Left({.tp = 6, .dp = 4}, 4, {0, 1, 2}), (Remainder{{.tp = 6, .dp = 2}, {3, 4, 5}}));
}

TEST(Remainder, KeepsInnerAxesWhereThatLeavesNobodyMore) {
  const Parallelism rings{.tp = 4, .cp = 2, .dp = 2};
  EXPECT_EQ(Left(rings, 4, {2, 3}), (Remainder{{.tp = 4, .cp = 2}, {0, 1}}));
  EXPECT_EQ(Left(rings, 4, {3}), (Remainder{{.tp = 4, .dp = 3}, {0, 1, 2}}));
}

TEST(Remainder, LeavesOutARankOfAPipeline) {
  const Parallelism stages{.tp = 8, .dp = 2, .pp = 2};
  EXPECT_EQ(Left(stages, 8, {1}), (Remainder{{.tp = 8, .dp = 3}, {0, 2, 3}}));
  EXPECT_EQ(Left(stages, 8, {2, 3}), (Remainder{{.tp = 8, .dp = 2}, {0, 1}}));
  Parallelism other = stages;  // dp runs outside of pp
  other.order = {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp};
  Remainder first{{.tp = 8, .pp = 2, .order = other.order}, {0, 1}};
  EXPECT_EQ(Left(other, 8, {2, 3}), first);
}

TEST(Remainder, CutsNoGroupThatIsNamed) {
  const std::vector<Requirement> ring{{Axis::kCp, Level::kLeaf}};
  const Parallelism rings{.tp = 4, .cp = 2, .dp = 2};
  for (const bool required : {true, false}) {
    const auto& require = required ? ring : kNothing;
    const auto& prefer = required ? kNothing : ring;
    EXPECT_EQ(Left(rings, 4, {3}, require, prefer), (Remainder{rings, {0, 1, 2, 3}}));
    EXPECT_EQ(Left(rings, 4, {2, 3}, require, prefer), (Remainder{{.tp = 4, .cp = 2}, {0, 1}}));
  }
}

TEST(Remainder, MakesAGroupOfTheOutermostAxisSmallerAlsoWhereItIsNamed) {
  const std::vector<Requirement> close{{Axis::kDp, Level::kUnit}, {Axis::kGang, Level::kSpine}};
  EXPECT_EQ(Left({.tp = 8, .dp = 4}, 8, {0}, close), (Remainder{{.tp = 8, .dp = 3}, {1, 2, 3}}));
  const Parallelism inside{.tp = 8, .dp = 2, .pp = 2};
  EXPECT_THAT(Left(inside, 8, {0}, close).pods, SizeIs(4)) << "dp is not the outermost";
}

TEST(Remainder, DropsAnExpertLayoutAndAShardThatFitNoMore) {
  EXPECT_EQ(Left({.tp = 8, .dp = 4, .ep = 4, .fsdp = 2}, 8, {3}), (Remainder{{.tp = 8, .dp = 3}, {0, 1, 2}}));
  EXPECT_EQ(Left({.tp = 8, .dp = 4, .ep = 2, .fsdp = 2}, 8, {2, 3}),
            (Remainder{{.tp = 8, .dp = 2, .ep = 2, .fsdp = 2}, {0, 1}}));
}

TEST(Remainder, LeavesNobodyOutWhereExpertsOrShardsAreNamed) {
  const Parallelism experts{.tp = 8, .dp = 4, .ep = 2, .fsdp = 2};
  for (const Axis axis : {Axis::kEp, Axis::kFsdp}) {
    EXPECT_EQ(Left(experts, 8, {2, 3}, {{axis, Level::kUnit}}), (Remainder{experts, {0, 1, 2, 3}}));
  }
}

TEST(Remainder, LeavesNobodyOutOfWhatDoesNotMultiply) {
  const Parallelism said{.tp = 8, .dp = 4};
  EXPECT_THAT(RemainderOf(said, {}, {}, 8, {false, true, false}).pods, ElementsAre(0, 1, 2));
  EXPECT_THAT(RemainderOf(said, {}, {}, 0, {false, true, false, false}).pods, SizeIs(4));
}

// The ranks of a gang's tensor groups, of those pods that are left.
std::set<std::vector<std::int32_t>> TensorGroups(const Remainder& left, int gpus_per_pod) {
  std::set<std::vector<std::int32_t>> groups;
  for (std::vector<std::int32_t> group : Groups(left.parallelism, Axis::kTp)) {
    for (std::int32_t& rank : group)
      rank = left.pods[std::size_t(rank / gpus_per_pod)] * gpus_per_pod + rank % gpus_per_pod;
    groups.insert(std::move(group));
  }
  return groups;
}

TEST(Remainder, OfWhoeverIsGoneHasTensorGroupsOfTheGangAndAllThatAreNotGone) {
  const std::array<Axis, 4> inside_out{Axis::kPp, Axis::kTp, Axis::kDp, Axis::kCp};
  for (const Parallelism& all :
       {Parallelism{.tp = 2, .dp = 4}, Parallelism{.tp = 2, .cp = 2, .dp = 2, .pp = 1},
        Parallelism{.tp = 2, .dp = 2, .pp = 2}, Parallelism{.tp = 4, .dp = 2},
        Parallelism{.tp = 2, .dp = 2, .pp = 2, .order = inside_out}}) {
    const Remainder whole = Left(all, 1, {});
    const auto groups = TensorGroups(whole, 1);
    for (int some = 1; some < 255; ++some) {
      std::set<int> gone;
      for (int pod = 0; pod < 8; ++pod) {
        if ((some >> pod & 1) != 0) gone.insert(pod);
      }
      const Remainder left = Left(all, 1, gone);
      ASSERT_EQ(left.parallelism.world(), std::int64_t(left.pods.size())) << some;
      const std::set<int> there(left.pods.begin(), left.pods.end());
      for (int pod = 0; pod < 8; ++pod) {
        ASSERT_TRUE(gone.contains(pod) || there.contains(pod)) << some;
      }
      for (const auto& group : TensorGroups(left, 1)) ASSERT_TRUE(groups.contains(group)) << some;
    }
  }
}

}  // namespace
}  // namespace heddle::placement
