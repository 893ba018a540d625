#include "placement/communicator.h"

#include <gtest/gtest.h>

#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

constexpr double kGiB = 1 << 30;

Communicator Over(FabricOf fabric, const Parallelism& parallelism, int gpus_per_pod = 8) {
  ClusterState state = FreeCluster(fabric.Build());
  const Plan plan = Planned(state, Gang(parallelism, gpus_per_pod));
  return {state, plan.pods};
}

double BusOf(const Communicator& over, Collective collective = Collective::kAllReduce) {
  return BusBandwidth(collective, over.ranks(), kGiB, over.Predict(collective, kGiB).micros);
}

TEST(Communicator, InOneServerIsTheServersShape) {
  const Communicator over = Over({.nodes = 1}, Sizes(8, 1, 1));
  EXPECT_EQ(over.ranks(), 8);
  EXPECT_EQ(over.Predict(Collective::kAllReduce, kGiB).algorithm, Algorithm::kNvls);
  EXPECT_EQ(over.BottleneckOf(Collective::kAllReduce, kGiB).bound, Bound::kNvlink);
}

// One rail is one leaf: a ring that comes and goes by the same rail crosses none, though rank 7 and rank 8 do.
TEST(Communicator, LeavesAServerByTheRailThatItCameIn) {
  const Communicator over = Over({.nodes = 4}, Sizes(1, 1, 32));
  EXPECT_EQ(over.BottleneckOf(Collective::kAllGather, kGiB).bound, Bound::kNic);
  EXPECT_GT(BusOf(over, Collective::kAllGather), 330) << "eight NICs of 400 Gb/s, less what packets take";
  const Communicator two_units = Over({.units = 2, .nodes = 2}, Sizes(1, 1, 32));
  EXPECT_EQ(two_units.BottleneckOf(Collective::kAllGather, kGiB).bound, Bound::kCrossing);
  EXPECT_LT(BusOf(two_units, Collective::kAllGather), BusOf(over, Collective::kAllGather));
}

// A send goes to the next rank, as sendrecv_perf has it: from rail 7 to rail 0.
TEST(Communicator, SendsFromRankToRank) {
  const Communicator over = Over({.nodes = 4}, Sizes(8, 1, 4));
  EXPECT_EQ(over.BottleneckOf(Collective::kSendRecv, kGiB).bound, Bound::kCrossing);
  EXPECT_LT(BusOf(over, Collective::kSendRecv), 50);
}

// How a gang cuts its ranks is nothing to a communicator over all of them, and neither is how many pods hold them.
TEST(Communicator, KnowsGpusAndNoLayout) {
  const double whole = BusOf(Over({.nodes = 4}, Sizes(8, 1, 4)));
  EXPECT_DOUBLE_EQ(BusOf(Over({.nodes = 4}, Sizes(8, 2, 2))), whole);
  EXPECT_DOUBLE_EQ(BusOf(Over({.nodes = 4}, Sizes(4, 1, 8), 4)), whole);
  EXPECT_DOUBLE_EQ(BusOf(Over({.nodes = 4}, Sizes(1, 1, 32), 1)), whole);
}

TEST(Communicator, IsSlowerWhereLinksAreShared) {
  FabricOf fabric{.units = 2, .nodes = 2, .oversubscription_percent = 800};
  const Communicator shared = Over(fabric, Sizes(8, 1, 4));
  EXPECT_EQ(shared.BottleneckOf(Collective::kAllReduce, kGiB).bound, Bound::kUplink);
  EXPECT_LT(BusOf(shared), BusOf(Over({.units = 2, .nodes = 2}, Sizes(8, 1, 4))));
}

TEST(Communicator, TakesUnlikeSharesOfNodes) {
  ClusterState state = FreeCluster(FabricOf{.nodes = 2}.Build());
  const Communicator over(state, {{0, 0xff}, {1, 0x0f}});
  EXPECT_EQ(over.ranks(), 12);
  EXPECT_GT(BusOf(over), 1);
}

}  // namespace
}  // namespace heddle::placement
