#include "placement/load.h"

#include <gtest/gtest.h>

#include <string_view>

#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

// Two units of two servers: rings over both units cross leaves.
FabricOf TwoUnits(int oversubscription_percent) {
  return {.units = 2, .nodes = 2, .oversubscription_percent = oversubscription_percent};
}

std::vector<PodPlacement> WholeNodes(const ClusterState& state) {
  std::vector<PodPlacement> pods;
  for (std::size_t node = 0; node < state.fabric().nodes.size(); ++node) {
    pods.push_back({topology::NodeId(node), 0xff});
  }
  return pods;
}

TEST(LoadOf, SaysNothingWhereNoLinkIsShared) {
  const ClusterState state = FreeCluster(TwoUnits(100).Build());
  const GangRequest request = Gang(Sizes(8, 1, 4), 8);
  const auto pods = WholeNodes(state);
  EXPECT_THAT(LoadOf(state, request, pods, Evaluate(state, request, pods)), testing::IsEmpty());
}

TEST(LoadOf, LoadsEveryLeafThatARingCrosses) {
  const ClusterState state = FreeCluster(TwoUnits(400).Build());
  const GangRequest request = Gang(Sizes(8, 1, 4), 8);
  const auto pods = WholeNodes(state);
  const auto loads = LoadOf(state, request, pods, Evaluate(state, request, pods));
  ASSERT_EQ(loads.size(), state.fabric().leaves.size());
  for (const LeafLoad& load : loads) {
    EXPECT_GT(load.mbps, 0);
    EXPECT_EQ(load.mbps, loads.front().mbps) << "eight rails alike";
  }
}

// Stages in two units, so that every GPU sends over the ways up of its leaves at once.
std::int64_t PipelineMicros(std::string_view line) {
  const auto made = topology::ParseSynthetic(line);
  EXPECT_TRUE(made) << line;
  if (!made) return 0;
  const ClusterState state = FreeCluster(topology::BuildFabric(made->nodes, made->declaration));
  const Quality quality = Evaluate(state, Gang(Sizes(8, 2, 4), 8), WholeNodes(state));
  return quality.axis_micros[std::size_t(Axis::kPp)];
}

TEST(SharedLinks, AreThoseOfAllPlanesAndNicsOfAGpu) {
  const std::int64_t one = PipelineMicros("su:2 node:4 oversub:400");
  EXPECT_GT(one, PipelineMicros("su:2 node:4")) << "or nothing is shared";
  EXPECT_EQ(PipelineMicros("su:2 node:4 plane:2 oversub:400"), one) << "two planes of half the rate";
  EXPECT_EQ(PipelineMicros("su:2 node:4 nic:16 rate:200 oversub:400"), one) << "two NICs of half the rate";
}

TEST(LoadOf, MakesTheNextGangsCrossingDearer) {
  ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 4, .oversubscription_percent = 800}.Build());
  const GangRequest request = Gang(Sizes(8, 1, 4), 8);
  std::vector<PodPlacement> pods, others;
  for (const topology::NodeId node : {0, 1, 4, 5}) pods.push_back({node, 0xff});
  for (const topology::NodeId node : {2, 3, 6, 7}) others.push_back({node, 0xff});
  const Quality alone = Evaluate(state, request, pods);
  state.SetLoads(LoadOf(state, request, others, Evaluate(state, request, others)));
  const Quality beside = Evaluate(state, request, pods);
  EXPECT_GT(beside.step_micros, alone.step_micros);
  state.SetLoads({});
  EXPECT_EQ(Evaluate(state, request, pods), alone);
}

}  // namespace
}  // namespace heddle::placement
