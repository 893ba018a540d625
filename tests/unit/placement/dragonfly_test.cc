// A dragonfly: leaves of a group reach each other directly, groups reach each other by one global link.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "placement/dense.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

topology::Fabric Dragonfly(const std::string& line) {
  const auto made = topology::ParseSynthetic(line);
  EXPECT_TRUE(made) << line;
  return made ? topology::BuildFabric(made->nodes, made->declaration) : topology::Fabric{};
}

int GroupOf(const topology::Fabric& fabric, NodeId node) {
  const topology::UnitId unit = fabric.nodes[std::size_t(node)].unit;
  return fabric.leaves[std::size_t(fabric.units[std::size_t(unit)].leaves.front())].group;
}

std::map<int, int> NodesByGroup(const ClusterState& state, const Plan& plan) {
  std::set<NodeId> nodes;
  for (const PodPlacement& pod : plan.pods) nodes.insert(pod.node);
  std::map<int, int> count;
  for (const NodeId node : nodes) ++count[GroupOf(state.fabric(), node)];
  return count;
}

TEST(Dragonfly, AGroupIsACellOfTheSpineTier) {
  const topology::Fabric fabric = Dragonfly("dragonfly:3 tor:2 node:2 gpu:8 nic:1");
  const DenseFabric dense(fabric);
  EXPECT_EQ(dense.cells(Tier::kSpine), 3);
  EXPECT_EQ(dense.cells(Tier::kUnit), 6);
  for (NodeId a = 0; a < 12; ++a) {
    for (NodeId b = 0; b < 12; ++b) {
      const bool together = dense.cell(Tier::kSpine, a) == dense.cell(Tier::kSpine, b);
      EXPECT_EQ(together, GroupOf(fabric, a) == GroupOf(fabric, b)) << a << " " << b;
    }
  }
  EXPECT_EQ(dense.CellName(Tier::kSpine, 1), "group-1");
}

TEST(Dragonfly, HopsAreLookedUpAsTheFabricCountsThem) {
  const topology::Fabric fabric = Dragonfly("dragonfly:3 tor:3 node:1 gpu:8 nic:1");
  const DenseFabric dense(fabric);
  std::set<int> seen;
  for (topology::LeafId a = 0; a < 9; ++a) {
    for (topology::LeafId b = 0; b < 9; ++b) {
      EXPECT_EQ(dense.Hops(a, b), fabric.Hops(a, b)) << a << " " << b;
      seen.insert(dense.Hops(a, b));
      const Hop fast = dense.Between(dense.port(a, 0), dense.port(b, 0));
      EXPECT_EQ(fast, HopOf(fabric, dense.port(a, 0), dense.port(b, 0)));
    }
  }
  EXPECT_EQ(seen, (std::set<int>{0, 2, 4}));
}

TEST(Dragonfly, ALeafOfNoGroupIsAloneInItsOwn) {
  auto made = topology::ParseSynthetic("dragonfly:2 tor:2 node:1 gpu:8 nic:1");
  ASSERT_TRUE(made);
  made->declaration.groups[1].leaves.clear();
  const topology::Fabric fabric = topology::BuildFabric(made->nodes, made->declaration);
  const DenseFabric dense(fabric);
  EXPECT_EQ(dense.cells(Tier::kSpine), 3);
  EXPECT_EQ(dense.Hops(2, 3), 4);
}

TEST(Dragonfly, AGangThatFitsOneGroupStaysInIt) {
  auto fabric = Dragonfly("dragonfly:4 tor:4 node:2 gpu:8 nic:1");
  auto nodes = AllFree(fabric);
  // Every group has lost some, and the leaves of several groups together would hold it just as well.
  for (const NodeId taken : {0, 1, 9, 10, 12, 17, 25, 26, 28, 30}) nodes[std::size_t(taken)].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 1, 6), 8));
  EXPECT_EQ(NodesByGroup(state, plan), (std::map<int, int>{{0, 6}})) << "the tightest group that holds it";
}

TEST(Dragonfly, AGangOfTwoGroupsTakesTwoWhole) {
  auto fabric = Dragonfly("dragonfly:4 tor:4 node:2 gpu:8 nic:1");
  auto nodes = AllFree(fabric);
  nodes[0].free_gpus = 0;   // group 0
  nodes[20].free_gpus = 0;  // group 2
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 2, 8), 8));
  EXPECT_EQ(NodesByGroup(state, plan), (std::map<int, int>{{1, 8}, {3, 8}}));
}

TEST(Dragonfly, RequiringASpineKeepsAnAxisInAGroup) {
  auto state = FreeCluster(Dragonfly("dragonfly:3 tor:2 node:2 gpu:8 nic:1"));
  auto request = Gang(Sizes(8, 3, 4), 8);
  request.require = {{Axis::kDp, Level::kSpine}};
  const Plan plan = Planned(state, request);
  const auto& pods = plan.pods;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    std::set<int> groups;
    for (std::size_t replica = 0; replica < 4; ++replica) {
      groups.insert(GroupOf(state.fabric(), pods[stage * 4 + replica].node));
    }
    EXPECT_EQ(groups.size(), 1u) << "stage " << stage;
  }
  request.require = {{Axis::kGang, Level::kSpine}};
  EXPECT_EQ(Refused(state, request).reason, RefusalReason::kTooLargeForFabric);
}

TEST(Dragonfly, NoGangSpansMoreGroupsThanItMust) {
  int compared = 0;
  for (const std::uint64_t seed : test::Seeds(60)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    auto fabric = Dragonfly("dragonfly:5 tor:2 node:4 gpu:8 nic:1");
    auto nodes = AllFree(fabric);
    std::vector<int> free(5, 0);
    for (NodeId n = 0; n < NodeId(nodes.size()); ++n) {
      if (random.Below(100) < 40) nodes[std::size_t(n)].free_gpus = 0;
      if (nodes[std::size_t(n)].free_gpus != 0) ++free[std::size_t(GroupOf(fabric, n))];
    }
    const int wanted = 2 + int(random.Below(14));
    std::sort(free.rbegin(), free.rend());
    int least = 0, held = 0;
    while (least < 5 && held < wanted) held += free[std::size_t(least++)];
    if (held < wanted) continue;
    auto state = Cluster(std::move(fabric), std::move(nodes));
    const Plan plan = Planned(state, Gang(Sizes(8, 1, wanted), 8));
    EXPECT_EQ(int(NodesByGroup(state, plan).size()), least);
    ++compared;
  }
  EXPECT_TRUE(compared == 1 || compared > 10) << compared;
}

}  // namespace
}  // namespace heddle::placement
