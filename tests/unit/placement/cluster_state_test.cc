#include "placement/cluster_state.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "placement/dense.h"
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
  }
  EXPECT_EQ(state.whole_domains(), 8);
}

// Nodes set one by one, in any order and several times, count as if the state had been made of them.
TEST(ClusterState, IsTheSameHoweverItsNodesWereSet) {
  auto fabric = FabricOf{.units = 2, .nodes = 4, .racks_per_unit = 2}.Build();
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  base::Random random(kSeed);
  auto nodes = AllFree(fabric);
  ClusterState state = Cluster(fabric, nodes);
  for (int i = 0; i < 200; ++i) {
    const std::size_t at = random.Below(nodes.size());
    NodeState& node = nodes[at];
    node.free_gpus = random.Below(3) == 0 ? 0xff : std::uint32_t(random.Below(1024));  // 9 and 10 are not there
    node.free_milli_cpu = std::int64_t(random.Below(9000));
    node.free_pods = std::int64_t(random.Below(9));
    node.unusable = random.Below(4) == 0 ? "Cordoned" : "";
    state.Set(topology::NodeId(at), node);
    const ClusterState fresh = Cluster(fabric, nodes);
    for (topology::NodeId n = 0; n < topology::NodeId(nodes.size()); ++n) {
      ASSERT_EQ(state.node(n), fresh.node(n));
      ASSERT_EQ(state.open_gpus(n), fresh.open_gpus(n));
      ASSERT_EQ(state.usable(n), fresh.usable(n));
      ASSERT_EQ(state.Copies(n, {1000, 0, {}}, 9), fresh.Copies(n, {1000, 0, {}}, 9));
    }
    for (std::size_t d = 0; d < fabric.domains.size(); ++d)
      ASSERT_EQ(state.free_gpus_in_domain(topology::DomainId(d)), fresh.free_gpus_in_domain(topology::DomainId(d)));
    for (int u = 0; u < 2; ++u) ASSERT_EQ(state.free_gpus_in_unit(u), fresh.free_gpus_in_unit(u));
    ASSERT_EQ(state.whole_domains(), fresh.whole_domains());
  }
}

Hop Between(const topology::Fabric& fabric, topology::NodeId a, topology::NodeId b, int gpu, int other) {
  return HopOf(fabric, PortOf(fabric, a, gpu), PortOf(fabric, b, other));
}

TEST(Hop, IsFasterOverNvlinkThanOnARailThanAcrossLeaves) {
  const auto fabric = FabricOf{.units = 2, .nodes = 2}.Build();
  const Hop nvlink = Between(fabric, 0, 0, 0, 1), rail = Between(fabric, 0, 1, 0, 0);
  const Hop crossing = Between(fabric, 0, 2, 0, 0);
  EXPECT_GT(nvlink.mbps, rail.mbps);
  EXPECT_EQ(rail.mbps, 388'000);
  EXPECT_LT(nvlink.tenths_us, rail.tenths_us);
  EXPECT_LT(rail.tenths_us, crossing.tenths_us);
  EXPECT_TRUE(crossing.crosses_leaf);
}

TEST(Hop, HalvesWithTheSlowerOfTwoLinks) {
  auto fabric = FabricOf{.nodes = 2}.Build();
  fabric.nodes[1].uplinks[3].gbps = 200;
  EXPECT_EQ(Between(fabric, 0, 1, 3, 3).mbps * 2, Between(fabric, 0, 1, 2, 2).mbps);
}

}  // namespace
}  // namespace heddle::placement
