#include "placement/cluster_state.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "placement/cost.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

TEST(ClusterState, CountsWhatIsFreeByNodeDomainAndUnit) {
  auto fabric = FabricOf{.units = 2, .nodes = 2}.Build();
  auto nodes = AllFree(fabric);
  nodes[0].free_gpus = 0x0f;
  nodes[3].unusable = "Cordoned";
  const ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  EXPECT_EQ(state.free_gpus(0), 4);
  EXPECT_EQ(state.free_gpus(3), 0);
  EXPECT_EQ(state.free_gpus_in_domain(0), 4);
  EXPECT_EQ(state.free_gpus_in_unit(0), 12);
  EXPECT_EQ(state.free_gpus_in_unit(1), 8);
  EXPECT_EQ(state.nodes_with_free(0, 4), 1);
  EXPECT_EQ(state.nodes_with_free(1, 0), 1);
  EXPECT_EQ(state.whole_domains(), 2);
}

TEST(ClusterState, TakesAndGivesBackResourcesWithTheGpus) {
  auto fabric = FabricOf{.nodes = 1}.Build();
  auto nodes = AllFree(fabric);
  nodes[0].free_milli_cpu = 3000;
  nodes[0].free_extended = {{"hugepages-2Mi", 4}, {"rdma/hca", 2}};
  ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  const Resources pod{1000, 0, {{"rdma/hca", 1}}};
  EXPECT_EQ(state.Copies(0, pod, 8), 2);
  state.Take(0, 0x03, pod);
  state.Take(0, 0x0c, pod);
  EXPECT_FALSE(state.Fits(0, pod));
  EXPECT_EQ(state.free_gpus(0), 4);
  state.Free(0, 0x03, pod);
  EXPECT_TRUE(state.Fits(0, pod));
  EXPECT_FALSE(state.Fits(0, {0, 0, {{"vendor/other", 1}}}));
}

TEST(ClusterState, RollsBackAnyRunOfTrials) {
  auto fabric = FabricOf{.units = 2, .nodes = 4}.Build();
  ClusterState state = FreeCluster(fabric);
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  base::Random random(kSeed);
  const auto mark = state.Mark();
  for (int i = 0; i < 500; ++i) {
    const auto node = topology::NodeId(random.Below(8));
    const std::uint32_t gpu = 1U << random.Below(8);
    const Resources pod{std::int64_t(random.Below(100)), 1, {}};
    if ((state.node(node).free_gpus & gpu) != 0) {
      state.Take(node, gpu, pod);
    } else {
      state.Free(node, gpu, pod);
    }
  }
  state.Rollback(mark);
  const ClusterState fresh = FreeCluster(std::move(fabric));
  for (topology::NodeId n = 0; n < 8; ++n) EXPECT_EQ(state.node(n), fresh.node(n));
  for (int u = 0; u < 2; ++u) {
    EXPECT_EQ(state.free_gpus_in_unit(u), fresh.free_gpus_in_unit(u));
    for (int free = 0; free <= 8; ++free)
      EXPECT_EQ(state.nodes_with_free(u, free), fresh.nodes_with_free(u, free));
  }
  EXPECT_EQ(state.whole_domains(), 8);
}

TEST(Cost, KeepsTheOrderOfAxesWithoutHints) {
  Parallelism p;
  p.tp = p.cp = p.pp = p.fsdp = p.ep = 2;
  p.dp = 4;
  const AxisBytes bytes = BytesPerStep(p, {});
  const auto of = [&](Axis axis) { return bytes.bytes[std::size_t(axis)]; };
  EXPECT_EQ(of(Axis::kTp), of(Axis::kEp));
  EXPECT_GT(of(Axis::kTp), 2 * of(Axis::kCp));
  EXPECT_GT(of(Axis::kCp), of(Axis::kFsdp));
  EXPECT_GT(of(Axis::kFsdp), of(Axis::kDp));
  EXPECT_GT(of(Axis::kDp), of(Axis::kPp));
}

// The worked case of performance anchors 3.3: 70B on 1,024 GPUs, tp 8, pp 4, dp 32, one micro-batch.
TEST(Cost, GivesTheBytesOfTheWorkedSeventyBillionCase) {
  Parallelism p;
  p.tp = 8;
  p.pp = 4;
  p.dp = 32;
  const ModelHints model{70e9, 80, 8192, 8192, 1, 1};
  const AxisBytes bytes = BytesPerStep(p, model);
  EXPECT_NEAR(bytes.bytes[std::size_t(Axis::kTp)], 18.8e9, 0.1e9);
  EXPECT_NEAR(bytes.bytes[std::size_t(Axis::kDp)], 12.7e9, 0.1e9);
  EXPECT_NEAR(bytes.bytes[std::size_t(Axis::kPp)], 2 * 16.8e6, 0.1e6);
}

TEST(Cost, PricesNvlinkBelowARailBelowALeafCrossing) {
  const auto fabric = FabricOf{.units = 2, .nodes = 2}.Build();
  const EdgeCost nvlink = CostOfEdge(fabric, 0, 0, 0, 1), rail = CostOfEdge(fabric, 0, 0, 1, 0);
  const EdgeCost crossing = CostOfEdge(fabric, 0, 0, 2, 0);
  EXPECT_GT(nvlink.gbps, rail.gbps);
  EXPECT_GT(rail.gbps, crossing.gbps);
  EXPECT_LT(nvlink.latency_us, rail.latency_us);
  EXPECT_LT(rail.latency_us, crossing.latency_us);
  EXPECT_DOUBLE_EQ(rail.gbps, 388);
}

TEST(Cost, HalvesWithTheSlowerOfTwoLinks) {
  auto fabric = FabricOf{.nodes = 2}.Build();
  fabric.nodes[1].uplinks[3].gbps = 200;
  EXPECT_DOUBLE_EQ(CostOfEdge(fabric, 0, 3, 1, 3).gbps * 2, CostOfEdge(fabric, 0, 2, 1, 2).gbps);
}

}  // namespace
}  // namespace heddle::placement
