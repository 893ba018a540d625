#include "placement/spares.h"

#include <gtest/gtest.h>

#include <set>

#include "placement/planner.h"
#include "placement/preemption.h"
#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

// Racks of 18 trays of 4 GPUs, one NVLink domain each.
ClusterState Racks(int racks) {
  const auto made = topology::ParseSynthetic("rack:" + std::to_string(racks) +
                                             " tray:18 gpu:4 nic:4 rail:4 machine:gb200 nvl");
  auto fabric = topology::BuildFabric(made->nodes, made->declaration);
  auto nodes = AllFree(fabric);
  return Cluster(std::move(fabric), std::move(nodes));
}

GangRequest Trays(int pods, int spares) {
  GangRequest request;
  request.parallelism.tp = 4;
  request.parallelism.dp = pods;
  request.pods.assign(std::size_t(pods), PodRequest{.gpus = 4});
  request.require = {{Axis::kGang, Level::kNvlink}};
  request.spares = spares;
  return request;
}

TEST(Spares, LeaveTwoTraysOfARackFreeWhereSixteenAreUsed) {
  ClusterState state = Racks(1);
  const Decision decision = PlanGang(state, Trays(16, 2));
  const auto* plan = std::get_if<Plan>(&decision);
  ASSERT_NE(plan, nullptr) << std::get<Refusal>(decision).sentence;
  EXPECT_EQ(plan->substitutes.For(0).size(), 2u) << "the spares are what a pod moves to";
  EXPECT_EQ(plan->quality, Evaluate(state, Trays(16, 2), plan->pods));
}

TEST(Spares, RefuseWhatWouldEatThem) {
  ClusterState state = Racks(1);
  const Decision decision = PlanGang(state, Trays(17, 2));
  const auto* refusal = std::get_if<Refusal>(&decision);
  ASSERT_NE(refusal, nullptr);
  EXPECT_THAT(refusal->sentence,
              testing::HasSubstr("2 free nodes of each NVLink domain over several nodes are kept as spares"));
  EXPECT_TRUE(std::holds_alternative<Plan>(PlanGang(state, Trays(17, 1))));
}

TEST(Spares, ArePassedOverWithTheirRackWhereTooFewAreFree) {
  ClusterState state = Racks(2);
  for (topology::NodeId node = 0; node < 17; ++node) state.Take(node, 0xf, {});  // rack-0 has one tray left
  GangRequest request = Trays(1, 2);
  const Decision decision = PlanGang(state, request);
  const auto* plan = std::get_if<Plan>(&decision);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(state.fabric().nodes[std::size_t(plan->pods[0].node)].domain, state.fabric().nodes[18].domain);
}

TEST(Spares, AreThereForRepair) {
  ClusterState state = Racks(1);
  const GangRequest request = Trays(16, 2);
  const Decision first = PlanGang(state, request);
  const auto* plan = std::get_if<Plan>(&first);
  ASSERT_NE(plan, nullptr);
  for (const PodPlacement& pod : plan->pods) state.Take(pod.node, pod.gpus, {});
  const auto before = state.Mark();
  const Decision repaired = RepairGang(state, request, plan->pods, {3});
  const auto* moved = std::get_if<Plan>(&repaired);
  ASSERT_NE(moved, nullptr) << std::get<Refusal>(repaired).sentence;
  EXPECT_EQ(state.Mark(), before);
  std::set<topology::NodeId> used;
  for (std::size_t pod = 0; pod < moved->pods.size(); ++pod) {
    used.insert(moved->pods[pod].node);
    EXPECT_EQ(moved->pods[pod] == plan->pods[pod], pod != 3);
  }
  EXPECT_EQ(used.size(), 16u);
  EXPECT_NE(moved->pods[3].node, plan->pods[3].node);
}

// Somebody who holds whole trays of Racks, which are taken from then on.
Victim Holds(ClusterState& state, const std::vector<topology::NodeId>& trays) {
  Victim victim{{}, 1};
  for (const topology::NodeId tray : trays) {
    state.Take(tray, 0xf, {});
    victim.holds.push_back({tray, 0xf, {}});
  }
  return victim;
}

// Sixteen trays are for the gang whoever ends, and yet it has no place before the last two are free.
TEST(Spares, AreMadeFreeByTheEndOfWhomeverStandsOnThem) {
  ClusterState state = Racks(1);
  const std::vector<Victim> victims{Holds(state, {17}), Holds(state, {16})};
  const VictimChoice choice = ChooseVictims(state, Trays(16, 2), victims);
  EXPECT_TRUE(choice.possible);
  EXPECT_EQ(choice.victims, (std::vector<int>{0, 1}));
  EXPECT_EQ(ChooseVictims(state, Trays(15, 2), victims).victims.size(), 1u);
  EXPECT_EQ(ChooseVictims(state, Trays(15, 0), victims).victims.size(), 0u);
}

// A plan that is made around pods that run uses spares, so who makes room for it has to know that it will.
TEST(Spares, AreThereForAGangWithBoundPodsThatRoomIsMadeFor) {
  ClusterState state = Racks(1);
  GangRequest request = Trays(18, 2);
  request.pods[0].fixed_node = 0;
  request.pods[0].fixed_gpus = 0xf;
  state.Take(0, 0xf, {});
  const std::vector<Victim> victims{Holds(state, {5})};
  const VictimChoice choice = ChooseVictims(state, request, victims);
  EXPECT_TRUE(choice.possible);
  EXPECT_EQ(choice.victims, std::vector<int>{0});
  state.Free(5, 0xf, {});
  EXPECT_TRUE(std::holds_alternative<Plan>(PlanGang(state, request)));
}

TEST(Spares, AreNeededFreeInTheRacksThatAPlaceUses) {
  ClusterState state = Racks(2);
  const std::vector<PodPlacement> place{{0, 0xf}, {2, 0xf}};
  EXPECT_EQ(NodesNeeded(state, Trays(2, 2), place), (std::set<topology::NodeId>{0, 2, 16, 17}));
  EXPECT_EQ(NodesNeeded(state, Trays(2, 0), place), (std::set<topology::NodeId>{0, 2}));
  GangRequest repaired = Trays(2, 2);
  repaired.pods[0].fixed_node = 0;
  EXPECT_EQ(NodesNeeded(state, repaired, place), (std::set<topology::NodeId>{0, 2}));
}

}  // namespace
}  // namespace heddle::placement
