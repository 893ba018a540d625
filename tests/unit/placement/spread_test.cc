#include "placement/spread.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "placement/anneal.h"
#include "placement/backtrack.h"
#include "placement/gang_classes.h"
#include "placement/pricing.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

std::vector<PodPlacement> WholeNodes(const std::vector<NodeId>& nodes) {
  std::vector<PodPlacement> pods;
  for (const NodeId node : nodes) pods.push_back({node, 0xff});
  return pods;
}

Quality Taking(std::int64_t micros, std::int64_t crossings = 0) {
  Quality quality;
  quality.step_micros = micros;
  quality.leaf_crossings[std::size_t(Axis::kDp)] = crossings;
  return quality;
}

TEST(Spread, WeighsTheUnitsAndDomainsOfTheGroupThatReachesFarthest) {
  const ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 4}.Build());
  const GangRequest request = Gang(Sizes(8, 2, 2), 8);
  Spread spread(state, request);
  // tp: 384 x (1 + 1). dp is pods 0, 1 and 2, 3: 24 x (units + nodes); pp is pods 0, 2 and 1, 3: 1 x the same.
  EXPECT_EQ(spread.Of(WholeNodes({0, 1, 4, 5})).worst, 768 + 24 * (1 + 2) + (2 + 2));
  EXPECT_EQ(spread.Of(WholeNodes({0, 4, 1, 5})).worst, 768 + 24 * (2 + 2) + (1 + 2));
  EXPECT_EQ(spread.Of(WholeNodes({0, 1, 2, 4})).worst, 768 + 24 * (2 + 2) + (2 + 2))
      << "the worst group counts";
  EXPECT_EQ(spread.Least(), 768 + 24 * (1 + 2) + (1 + 2));
}

TEST(Spread, CountsRacksAsOneDomainAndPodsOfUnlikeSizes) {
  const ClusterState state = FreeCluster(FabricOf{.units = 1, .nodes = 4, .racks_per_unit = 2}.Build());
  GangRequest request = Gang(Sizes(1, 1, 12), 4);
  request.pods[1].gpus = 2;
  request.pods.push_back(request.pods[1]);
  Spread spread(state, request);
  EXPECT_EQ(spread.Of({{0, 0xf}, {1, 3}, {1, 0xf0}, {0, 0x30}}).worst, 24 * (1 + 1));
  EXPECT_EQ(spread.Of({{0, 0xf}, {1, 3}, {2, 0xf0}, {3, 0x30}}).worst, 24 * (1 + 2));
}

TEST(Spread, NoPlaceGoesBelowTheLeast) {
  int met = 0;
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    auto fabric = FabricOf{.units = 3, .nodes = 4, .racks_per_unit = random.Below(2) == 0 ? 2 : 0}.Build();
    auto nodes = AllFree(fabric);
    for (NodeState& node : nodes) {
      if (random.Below(2) == 0) node.free_gpus = 0;
    }
    const ClusterState state = Cluster(std::move(fabric), nodes);
    std::vector<NodeId> free;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].free_gpus != 0) free.push_back(NodeId(n));
    }
    if (free.size() < 4) continue;
    const GangRequest request = Gang(Sizes(8, 2, 2), 8);
    Spread spread(state, request);
    for (int i = 0; i < 20; ++i) {
      for (std::size_t n = free.size(); n > 1; --n) std::swap(free[n - 1], free[random.Below(n)]);
      const auto pods = WholeNodes({free[0], free[1], free[2], free[3]});
      const std::int64_t now = spread.Of(pods).worst;
      EXPECT_EQ(spread.WorstOf(pods), now);
      EXPECT_GE(now, spread.Least());
      met += now == spread.Least() ? 1 : 0;
    }
  }
  EXPECT_TRUE(met > 0 || test::Seeds(300).size() == 1);
}

TEST(Front, PrefersLessSpreadUpToOnePercent) {
  const ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 4}.Build());
  const GangRequest request = Gang(Sizes(8, 1, 2), 8);
  Spread spread(state, request);
  const auto far = WholeNodes({0, 4}), near = WholeNodes({0, 1});
  Front front(&spread);
  front.Offer(far, Taking(10'000));
  front.Offer(near, Taking(10'101));
  EXPECT_EQ(front.chosen().pods, far);
  front.Offer(near, Taking(10'100));
  EXPECT_EQ(front.chosen().pods, near);
  EXPECT_EQ(front.fastest().pods, far);
  front.Offer(far, Taking(9'000));
  EXPECT_EQ(front.chosen().pods, far) << "one per cent of what is the fastest now";
}

TEST(Front, WithoutASpreadTheFastestIsChosen) {
  Front front(nullptr);
  front.Offer(WholeNodes({0, 1}), Taking(10'001));
  front.Offer(WholeNodes({0, 4}), Taking(10'000));
  EXPECT_EQ(front.chosen().quality.step_micros, 10'000);
}

TEST(Front, ChoosesTheSameWhateverTheOrderOfOffers) {
  const ClusterState state = FreeCluster(FabricOf{.units = 4, .nodes = 4}.Build());
  const GangRequest request = Gang(Sizes(8, 1, 4), 8);
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Spread spread(state, request);
    std::vector<Found> offers;
    for (int i = 0; i < 12; ++i) {
      Found offer;
      std::set<NodeId> nodes;
      while (nodes.size() < 4) nodes.insert(NodeId(random.Below(16)));
      offer.pods = WholeNodes({nodes.begin(), nodes.end()});
      offer.quality = Taking(10'000 + std::int64_t(random.Below(300)), std::int64_t(random.Below(3)));
      offers.push_back(std::move(offer));
    }
    // The rule in words: of those within one per cent of the fastest, the least spread, then crossings, then time.
    std::int64_t fastest = offers.front().quality.step_micros;
    for (const Found& offer : offers) fastest = std::min(fastest, offer.quality.step_micros);
    const auto key = [&](const Found& offer) {
      return std::tuple(spread.Of(offer.pods).worst, offer.quality.crossings(), offer.quality.step_micros);
    };
    std::optional<std::tuple<std::int64_t, std::int64_t, std::int64_t>> expected;
    for (const Found& offer : offers) {
      if (offer.quality.step_micros * 100 > fastest * 101) continue;
      if (!expected || key(offer) < *expected) expected = key(offer);
    }
    for (int order = 0; order < 5; ++order) {
      for (std::size_t i = offers.size(); i > 1; --i) std::swap(offers[i - 1], offers[random.Below(i)]);
      Front front(&spread);
      for (const Found& offer : offers) front.Offer(offer.pods, offer.quality);
      EXPECT_EQ(key(front.chosen()), *expected);
      EXPECT_EQ(front.fastest().quality.step_micros, fastest);
    }
  }
}

// Eight nodes of units with 3, 4, 3 and 4 free ones: no single move leads from three units to two.
TEST(Gather, PoursTheGangIntoTheUnitsThatHoldIt) {
  auto fabric = FabricOf{.units = 4, .nodes = 4}.Build();
  auto nodes = AllFree(fabric);
  nodes[3].free_gpus = nodes[11].free_gpus = 0;
  const ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  GangRequest request = Gang(Sizes(8, 1, 8), 8);
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  Pricing pricing(state, request);
  Spread spread(state, request);
  Front front(&spread);
  const auto start = WholeNodes({4, 5, 6, 7, 0, 1, 2, 8});
  front.Offer(start, pricing.Price(start));
  ASSERT_GT(front.chosen_spread(), spread.Least());
  Gather(state, request, classes, pricing, GatherTrialsFor(64), spread.Least(), spread, front);
  EXPECT_EQ(front.chosen_spread(), spread.Least());
  EXPECT_EQ(front.chosen().quality, pricing.Price(front.chosen().pods));
  EXPECT_FALSE(FirstBroken(state.dense(), request, classes, front.chosen().pods));
}

TEST(Backtrack, SaysWhetherItSawEveryPlace) {
  ClusterState state = FreeCluster(FabricOf{.units = 2, .nodes = 2}.Build());
  const GangRequest request = Gang(Sizes(8, 1, 2), 8);
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  const std::vector<PodPlacement> nowhere;
  int places = 0;
  Backtrack all(state, request, classes, nowhere, 10'000);
  all.Run([&places](const std::vector<PodPlacement>&) { return ++places < 0; }, true);
  EXPECT_TRUE(all.saw_all());
  EXPECT_EQ(places, 4) << "each pod in either unit: the two nodes of one are alike";
  Backtrack some(state, request, classes, nowhere, 10'000);
  some.Run([](const std::vector<PodPlacement>&) { return true; }, true);
  EXPECT_FALSE(some.saw_all());
  Backtrack poor(state, request, classes, nowhere, 5);
  poor.Run([](const std::vector<PodPlacement>&) { return false; }, true);
  EXPECT_FALSE(poor.saw_all());
}

TEST(Backtrack, TellsServersApartByTheirNvlink) {
  auto fabric = FabricOf{.units = 1, .nodes = 2}.Build();
  fabric.nodes[0].node.nvlink = {4, 18, 1800, {}};
  ClusterState state = FreeCluster(std::move(fabric));
  const GangRequest request = Gang(Sizes(8, 1, 1), 8);
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  const std::vector<PodPlacement> nowhere;
  int places = 0;
  Backtrack all(state, request, classes, nowhere, 10'000);
  all.Run([&places](const std::vector<PodPlacement>&) { return ++places < 0; }, true);
  EXPECT_EQ(places, 2) << "one of the two is slower inside";
}

// 72 GPUs in 9 servers, all of them wanted, in pods that only fit together the largest first.
TEST(Backtrack, FillsServersToTheBrimWithUnlikePods) {
  ClusterState state = FreeCluster(FabricOf{.units = 3, .nodes = 3, .leaves = 1}.Build());
  GangRequest request = Gang(Sizes(1, 3, 12, 2), 4);
  request.pods.clear();
  for (const int gpus : {1, 4, 4, 4, 2, 4, 4, 7, 4, 6, 4, 5, 3, 4, 4, 4, 4, 4})
    request.pods.push_back({.gpus = gpus});
  const Plan plan = Planned(state, request);
  EXPECT_EQ(Faults(state, request, plan), std::vector<std::string>{});
}

}  // namespace
}  // namespace heddle::placement
