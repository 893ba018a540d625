#include "crds/gang_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/synthetic.h"

namespace heddle::crds {
namespace {

placement::ClusterState Cluster(const char* line) {
  auto made = topology::ParseSynthetic(line);
  EXPECT_TRUE(made);
  auto fabric = std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(made->nodes), made->declaration));
  std::vector<placement::NodeState> nodes(fabric->nodes.size());
  for (placement::NodeState& node : nodes) node.free_gpus = 0xff;
  return placement::ClusterState(std::move(fabric), std::move(nodes));
}

// tp=8, dp=4 over the two nodes of each unit.
Gang FourNodes() {
  Gang gang;
  gang.spec.pods = 4;
  gang.spec.gpus_per_pod = 8;
  gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 4};
  std::vector<PlacedPod> rows;
  for (const char* node : {"node-00", "node-01", "node-02", "node-03"}) rows.push_back({node, 0, {}});
  gang.status.placement = ToColumns(rows, 1);
  return gang;
}

constexpr const char* kNarrow = "su:2 node:2 gpu:8 rail:8 spine:2 oversub:400";

TEST(GangLoad, LoadsTheLeavesThatAPlacedGangCrosses) {
  const auto state = Cluster(kNarrow);
  EXPECT_EQ(LoadOf(state, FourNodes()).size(), state.fabric().leaves.size());
}

TEST(GangLoad, IsThatOfTheRanksThatHaveASlot) {
  const auto state = Cluster(kNarrow);
  Gang gang = FourNodes();
  gang.status.placement = ToColumns({{"node-00", 0, {}}, {}, {"node-02", 0, {}}, {}}, 1);
  const auto placed = PlacedOn(state.fabric(), gang);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->request.parallelism, (placement::Parallelism{.tp = 8, .dp = 2}));
  ASSERT_EQ(placed->pods.size(), 2U);
  EXPECT_EQ(placed->pods[1].node, state.fabric().FindNode("node-02"));
  Gang two = gang;
  two.spec.pods = 2;
  two.spec.parallelism->dp = 2;
  two.status.placement = ToColumns({{"node-00", 0, {}}, {"node-02", 0, {}}}, 1);
  const auto loads = LoadOf(state, gang), same = LoadOf(state, two);
  ASSERT_FALSE(loads.empty());
  ASSERT_EQ(loads.size(), same.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    EXPECT_EQ(loads[i].leaf, same[i].leaf);
    EXPECT_EQ(loads[i].mbps, same[i].mbps);
  }
}

TEST(GangLoad, IsNothingForWhatHasNoSlotOrHalfAGroup) {
  const auto state = Cluster(kNarrow);
  Gang nobody = FourNodes();
  nobody.status.placement = ToColumns(std::vector<PlacedPod>(4), 1);
  Gang half = FourNodes();
  half.spec.parallelism = placement::Parallelism{.tp = 16, .dp = 2};
  half.status.placement = ToColumns({{"node-00", 0, {}}, {}, {"node-02", 0, {}}, {"node-03", 0, {}}}, 1);
  for (const Gang& gang : {nobody, half}) {
    EXPECT_FALSE(PlacedOn(state.fabric(), gang));
    EXPECT_THAT(LoadOf(state, gang), testing::IsEmpty());
  }
}

TEST(GangLoad, IsNothingWhereNoLinkIsShared) {
  EXPECT_THAT(LoadOf(Cluster("su:2 node:2 gpu:8 rail:8 spine:2"), FourNodes()), testing::IsEmpty());
}

TEST(GangLoad, IsNothingForWhatCannotBeSaid) {
  const auto state = Cluster(kNarrow);
  Gang unread = FourNodes();
  unread.spec.parallelism.reset();
  Gang waiting = FourNodes();
  waiting.status.placement.reset();
  Gang elsewhere = FourNodes();
  elsewhere.status.placement->node_names.front() = "node-99";
  Gang larger = FourNodes();
  larger.spec.parallelism->dp = 5;
  Gang torn = FourNodes();
  torn.spec.parallelism->fsdp = 3;
  for (const Gang& gang : {unread, waiting, elsewhere, larger, torn}) {
    EXPECT_THAT(LoadOf(state, gang), testing::IsEmpty());
    EXPECT_FALSE(PlacedOn(state.fabric(), gang));
  }
}

}  // namespace
}  // namespace heddle::crds
