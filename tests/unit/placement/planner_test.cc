#include "placement/planner.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using testing::IsEmpty;

FabricOf DemoFabric() { return {.units = 2, .nodes = 16, .gpus = 8, .leaves = 8}; }

std::set<topology::UnitId> UnitsOf(const ClusterState& state, const Plan& plan) {
  std::set<topology::UnitId> units;
  for (const PodPlacement& pod : plan.pods) units.insert(state.fabric().nodes[std::size_t(pod.node)].unit);
  return units;
}

TEST(Planner, PutsTheDemoGangIntoOneUnitWithWholeTpGroupsAndNoCrossing) {
  auto fabric = DemoFabric().Build();
  auto nodes = AllFree(fabric);
  for (int n : {1, 4, 9}) nodes[std::size_t(n)].free_gpus = 0xf0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 2, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups, 16);
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 16);
  EXPECT_EQ(plan.quality.crossings(), 0);
  EXPECT_EQ(plan.quality.rail_misaligned, 0);
  EXPECT_EQ(UnitsOf(state, plan), (std::set<topology::UnitId>{1}));
}

TEST(Planner, LetsPipelinesCrossWhenTheGangMustSpanTwoUnits) {
  auto fabric = DemoFabric().Build();
  auto nodes = AllFree(fabric);
  for (int n = 0; n < 6; ++n) nodes[std::size_t(n)].free_gpus = 0x0f;
  for (int n = 16; n < 20; ++n) nodes[std::size_t(n)].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 2, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 16);
  EXPECT_EQ(plan.quality.crossings(), 0);
  EXPECT_EQ(plan.quality.leaf_crossings[std::size_t(Axis::kPp)], 64);
  EXPECT_EQ(UnitsOf(state, plan).size(), 2u);
}

TEST(Planner, PutsATpGroupOfSixteenIntoOneNvlinkRack) {
  auto state = FreeCluster(FabricOf{.units = 1, .nodes = 36, .gpus = 4, .leaves = 4, .racks_per_unit = 2}.Build());
  const Plan plan = Planned(state, Gang(Sizes(16, 1, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 8);
  EXPECT_EQ(plan.quality.crossings(), 0);
}

TEST(Planner, RefusesATpGroupThatNoDomainHolds) {
  auto state = FreeCluster(DemoFabric().Build());
  const Refusal refusal = Refused(state, Gang(Sizes(16, 1, 2), 8));
  EXPECT_EQ(refusal.reason, RefusalReason::kTooLargeForDomain);
  EXPECT_EQ(refusal.sentence, "a TP group of 16 GPUs must lie in one NVLink domain, the largest has 8 (node-0000)");
}

}  // namespace
}  // namespace heddle::placement
