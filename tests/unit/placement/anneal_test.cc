#include "placement/anneal.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

// The most nodes that one group of the axis touches. Requires: pods of one GPU.
std::size_t MostNodesOfAGroup(const GangRequest& request, const std::vector<PodPlacement>& pods, Axis axis) {
  std::size_t most = 0;
  for (const auto& group : Groups(request.parallelism, axis)) {
    std::set<NodeId> nodes;
    for (const std::int32_t rank : group) nodes.insert(pods[std::size_t(rank)].node);
    most = std::max(most, nodes.size());
  }
  return most;
}

TEST(Anneal, GathersARingThatIsSpreadOneRankANode) {
  const ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 4}.Build());
  const GangRequest request = Gang(Sizes(1, 1, 8), 1);
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  Pricing pricing(state, request);
  std::vector<PodPlacement> pods;
  for (NodeId n = 0; n < 8; ++n) pods.push_back({n, 1U << n});
  Spread spread(state, request);
  Front front(&spread);
  front.Offer(pods, pricing.Price(pods));
  Anneal(state, request, classes, pricing, AnnealTrialsFor(8), front);
  EXPECT_EQ(MostNodesOfAGroup(request, front.fastest().pods, Axis::kDp), 1U);
  EXPECT_EQ(front.fastest().quality, pricing.Price(front.fastest().pods));
}

TEST(Anneal, LeavesAPlaceAloneThatItCannotMakeFaster) {
  ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 4}.Build());
  const GangRequest request = Gang(Sizes(8, 1, 2), 8);
  const Plan plan = Planned(state, request);
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  Pricing pricing(state, request);
  Spread spread(state, request);
  Front front(&spread);
  front.Offer(plan.pods, plan.quality);
  Anneal(state, request, classes, pricing, 500, front);
  EXPECT_EQ(front.chosen().pods, plan.pods);
}

TEST(Anneal, TakesTheRailsThatAPeerOnAnotherNodeHas) {
  auto fabric = FabricOf{.units = 1, .nodes = 2}.Build();
  auto nodes = AllFree(fabric);
  nodes[1].free_gpus = 0b10110100;
  const ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  GangRequest request = Gang(Sizes(4, 1, 2), 4);
  request.allowed_nodes = {{0}, {1}};
  request.pods[0].allowed = 0;
  request.pods[1].allowed = 1;
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  Pricing pricing(state, request);
  const std::vector<PodPlacement> pods{{0, 0b1111}, {1, 0b10110100}};
  Front front(nullptr);
  front.Offer(pods, pricing.Price(pods));
  Anneal(state, request, classes, pricing, AnnealTrialsFor(8), front);
  EXPECT_EQ(front.fastest().pods[0], (PodPlacement{0, 0b10110100}));
  EXPECT_EQ(front.fastest().quality.rail_misaligned, 0);
}

TEST(Anneal, KeepsEveryRuleAndIsNeverDearer) {
  int faster = 0, runs = 0;
  for (const std::uint64_t seed : test::Seeds(25)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    auto fabric = FabricOf{.units = 3, .nodes = 4, .racks_per_unit = random.Below(2) == 0 ? 2 : 0}.Build();
    auto nodes = AllFree(fabric);
    for (NodeState& node : nodes) {
      if (random.Below(2) == 0) node.free_gpus &= std::uint32_t(random.Below(256));
      node.free_milli_cpu = 1000 * std::int64_t(random.Below(12));
      if (random.Below(5) == 0) node.free_pods = std::int64_t(random.Below(4));
    }
    ClusterState state = Cluster(std::move(fabric), std::move(nodes));
    GangRequest request = Gang(Sizes(2, 2, 4), 2);
    request.allowed_nodes = {{0, 1, 2, 3, 5, 6, 7, 9, 10, 11}};
    for (PodRequest& pod : request.pods) {
      pod.resources.milli_cpu = 1000 * std::int64_t(1 + random.Below(2));
      if (random.Below(2) == 0) pod.allowed = 0;
    }
    if (random.Below(2) == 0) request.require.push_back({Axis::kDp, Level::kUnit});
    Decision decision = PlanGang(state, request);
    Plan* plan = std::get_if<Plan>(&decision);
    if (plan == nullptr) continue;
    // From a worse place: ranks and places are paired anew as long as the rules hold.
    const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
    for (int i = 0; i < 40; ++i) {
      auto pods = plan->pods;
      std::swap(pods[random.Below(pods.size())], pods[random.Below(pods.size())]);
      if (FirstBroken(state.dense(), request, classes, pods)) continue;
      std::swap(plan->pods, pods);
      if (!Faults(state, request, *plan).empty()) std::swap(plan->pods, pods);
    }
    Pricing pricing(state, request);
    plan->quality = pricing.Price(plan->pods);
    const Quality before = plan->quality;
    Front front(nullptr);
    front.Offer(plan->pods, before);
    Anneal(state, request, classes, pricing, 500, front);
    plan->pods = front.chosen().pods;
    plan->quality = front.chosen().quality;
    EXPECT_EQ(Faults(state, request, *plan), std::vector<std::string>{});
    EXPECT_LE(plan->quality.step_micros, before.step_micros);
    EXPECT_EQ(plan->quality, pricing.Price(plan->pods));
    faster += plan->quality.step_micros < before.step_micros ? 1 : 0;
    ++runs;
  }
  EXPECT_TRUE(runs <= 1 || faster * 4 > runs) << runs << " runs, " << faster << " faster";
}

// Beyond 256 ranks nothing walks afterwards: what follows is filling alone.
TEST(Filling, LetsDpStayInNodesWherePpOnlyHasToStayInTheUnit) {
  ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 40}.Build());
  GangRequest request = Gang(Sizes(1, 40, 8), 1);
  request.require = {{Axis::kPp, Level::kUnit}};
  const Plan plan = Planned(state, request);
  EXPECT_EQ(MostNodesOfAGroup(request, plan.pods, Axis::kDp), 1U);
}

TEST(Filling, CountsPodsThatDifferOnlyInWhereTheyMayGo) {
  auto fabric = FabricOf{.units = 3, .nodes = 24}.Build();
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); n += 3) nodes[n].free_gpus = 0b111;
  ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  GangRequest request = Gang(Sizes(1, 40, 8), 1);
  auto& list = request.allowed_nodes.emplace_back();
  for (NodeId n = 1; n < 72; ++n) list.push_back(n);
  for (std::size_t p = 0; p < request.pods.size(); p += 2) request.pods[p].allowed = 0;
  const Plan plan = Planned(state, request);
  EXPECT_EQ(MostNodesOfAGroup(request, plan.pods, Axis::kDp), 1U);
}

}  // namespace
}  // namespace heddle::placement
