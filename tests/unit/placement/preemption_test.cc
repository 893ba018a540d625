#include "placement/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Gangs on a cluster of four servers to a unit; each takes whole servers.
class Stage {
 public:
  explicit Stage(int units, int racks = 0)  // in each unit; 0 = each server is alone
      : fabric_(FabricOf{.units = units, .nodes = 4, .racks_per_unit = racks}.Build()),
        nodes_(AllFree(fabric_)) {}

  void Holds(double cost, const std::vector<int>& nodes, std::uint32_t gpus = 0xFF) {
    Victim victim{{}, cost};
    for (const int node : nodes) {
      nodes_[std::size_t(node)].free_gpus &= ~gpus;
      victim.holds.push_back({topology::NodeId(node), gpus, {}});
    }
    victims.push_back(std::move(victim));
  }
  VictimChoice Choose(const GangRequest& request) const {
    ClusterState state = Cluster(fabric_, nodes_);
    const int before = state.whole_domains();
    VictimChoice choice = ChooseVictims(state, request, victims);
    EXPECT_EQ(state.whole_domains(), before);
    return choice;
  }
  // Whether the gang has a place when these have ended.
  bool Fits(const GangRequest& request, const std::vector<int>& ended) const {
    std::vector<NodeState> nodes = nodes_;
    for (const int v : ended) {
      for (const Victim::Hold& hold : victims[std::size_t(v)].holds)
        nodes[std::size_t(hold.node)].free_gpus |= hold.gpus;
    }
    ClusterState state = Cluster(fabric_, nodes);
    return std::holds_alternative<Plan>(PlanGang(state, request));
  }
  std::vector<Victim> victims;

 private:
  topology::Fabric fabric_;
  std::vector<NodeState> nodes_;
};

GangRequest InOneUnit(int nodes) {
  GangRequest request = Gang(Sizes(8, 1, nodes), 8);
  request.require = {{Axis::kGang, Level::kUnit}};
  return request;
}

TEST(ChooseVictims, NeedsNobodyWhereThereIsRoom) {
  Stage stage(2);
  stage.Holds(1, {0});
  const VictimChoice choice = stage.Choose(InOneUnit(4));
  EXPECT_TRUE(choice.possible);
  EXPECT_THAT(choice.victims, IsEmpty());
}

TEST(ChooseVictims, TakesTheOneThatCostsLeast) {
  Stage stage(3);
  stage.Holds(9, {0});
  stage.Holds(4, {4});
  stage.Holds(7, {8});
  const VictimChoice choice = stage.Choose(InOneUnit(4));
  EXPECT_THAT(choice.victims, ElementsAre(1));
  EXPECT_EQ(choice.cost, 4);
}

TEST(ChooseVictims, SparesThoseWhoseEndWouldNotHelp) {
  Stage stage(2);
  stage.Holds(1, {0});  // cheap, but one of three in its unit
  stage.Holds(2, {1});
  stage.Holds(50, {2});
  stage.Holds(5, {4});
  stage.Holds(6, {5});
  const VictimChoice choice = stage.Choose(InOneUnit(4));
  EXPECT_THAT(choice.victims, ElementsAre(3, 4));
  EXPECT_EQ(choice.cost, 11);
}

TEST(ChooseVictims, PrefersOneToSeveralThatCostMore) {
  Stage stage(2);
  stage.Holds(5, {0});
  stage.Holds(5, {1});
  stage.Holds(8, {4, 5, 6});
  EXPECT_THAT(stage.Choose(InOneUnit(4)).victims, ElementsAre(2));
}

TEST(ChooseVictims, SaysWhenNobodysEndWouldDo) {
  Stage stage(1);
  stage.Holds(1, {0});
  EXPECT_FALSE(stage.Choose(InOneUnit(5)).possible);
}

// Who holds half a server here and there, drawn.
void FillHalves(Stage& stage, base::Random& random) {
  for (int node = 0; node < 12; ++node) {
    for (const std::uint32_t half : {0x0Fu, 0xF0u}) {
      if (random.Below(10) < 6) stage.Holds(double(1 + random.Below(20)), {node}, half);
    }
  }
}

void ExpectNobodyToSpareAndNoCheaperSingle(const Stage& stage, const GangRequest& request) {
  const VictimChoice choice = stage.Choose(request);
  ASSERT_TRUE(choice.possible) << "an empty unit holds any of these";
  EXPECT_TRUE(stage.Fits(request, choice.victims));
  for (const int spared : choice.victims) {
    std::vector<int> fewer = choice.victims;
    std::erase(fewer, spared);
    EXPECT_FALSE(stage.Fits(request, fewer)) << spared << " could be spared";
  }
  for (std::size_t v = 0; v < stage.victims.size(); ++v) {
    if (stage.victims[v].cost >= choice.cost) continue;
    EXPECT_FALSE(stage.Fits(request, {int(v)})) << v << " alone is cheaper";
  }
  EXPECT_EQ(choice, stage.Choose(request));
}

TEST(ChooseVictims, OnRandomClustersLeavesNobodyWhoCouldBeSparedAndFindsTheCheapestSingle) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Stage stage(3);
    FillHalves(stage, random);
    ExpectNobodyToSpareAndNoCheaperSingle(stage, InOneUnit(1 + int(random.Below(4))));
  }
}

TEST(ChooseVictims, OnRandomRacksMakesTheSparesFreeThatTheGangLeaves) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Stage stage(3, 1);
    FillHalves(stage, random);
    GangRequest request = InOneUnit(1 + int(random.Below(2)));
    request.spares = 1 + int(random.Below(2));
    ExpectNobodyToSpareAndNoCheaperSingle(stage, request);
  }
}

}  // namespace
}  // namespace heddle::placement
