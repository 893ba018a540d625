#include "bench/peers/peers.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "bench/peers/clusters.h"
#include "bench/quality/policies.h"
#include "placement/dense.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::peers {
namespace {

using placement::AllFree;
using placement::Cluster;
using placement::ClusterState;
using placement::FabricOf;
using placement::Gang;
using placement::GangRequest;
using placement::NodeState;
using placement::PodPlacement;
using placement::Sizes;
using topology::NodeId;

ClusterState Free(const FabricOf& shape, const std::vector<std::uint32_t>& free) {
  auto fabric = shape.Build();
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < free.size(); ++n) nodes[n].free_gpus = free[n];
  return Cluster(std::move(fabric), std::move(nodes));
}

std::vector<NodeId> NodesOf(const Assignment& pods) {
  std::vector<NodeId> nodes;
  for (const PodPlacement& pod : pods.value()) nodes.push_back(pod.node);
  return nodes;
}

// Every pod has its GPUs, on a node that had them free, and no GPU is given twice.
void ExpectSound(const ClusterState& state, const GangRequest& request, const Assignment& pods) {
  ASSERT_TRUE(pods.has_value());
  ASSERT_EQ(pods->size(), request.pods.size());
  std::map<NodeId, std::uint32_t> given;
  for (std::size_t p = 0; p < pods->size(); ++p) {
    const auto& [node, gpus] = (*pods)[p];
    EXPECT_EQ(std::popcount(gpus), request.pods[p].gpus);
    EXPECT_EQ(gpus & ~state.node(node).free_gpus, 0U);
    EXPECT_EQ(gpus & given[node], 0U);
    given[node] |= gpus;
  }
}

TEST(PackBestFit, TakesTheFullestNodeFirstAndTheLowestGpus) {
  const ClusterState state = Free({.units = 2, .nodes = 2}, {0xff, 0xf0, 0x3f, 0xff});
  const Assignment pods = PackBestFit(state, Gang(Sizes(4, 1, 4), 4));
  EXPECT_EQ(NodesOf(pods), (std::vector<NodeId>{1, 2, 0, 0}));
  EXPECT_EQ((*pods)[0].gpus, 0xf0U);
  EXPECT_EQ((*pods)[1].gpus, 0x0fU);
  EXPECT_EQ((*pods)[3].gpus, 0xf0U);
}

// The definition itself, pod after pod, which filling node after node must equal.
std::vector<PodPlacement> PodAfterPod(const ClusterState& state, const GangRequest& request) {
  std::vector<std::uint32_t> free;
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n)
    free.push_back(state.node(NodeId(n)).free_gpus);
  std::vector<PodPlacement> out;
  for (const auto& pod : request.pods) {
    int best = -1;
    for (int n = 0; n < int(free.size()); ++n) {
      if (std::popcount(free[std::size_t(n)]) < pod.gpus) continue;
      if (best < 0 || std::popcount(free[std::size_t(n)]) < std::popcount(free[std::size_t(best)])) best = n;
    }
    if (best < 0) return {};
    std::uint32_t gpus = 0;
    for (int i = 0; i < pod.gpus; ++i)
      gpus |= (free[std::size_t(best)] & ~gpus) & -(free[std::size_t(best)] & ~gpus);
    free[std::size_t(best)] &= ~gpus;
    out.push_back({best, gpus});
  }
  return out;
}

TEST(PackBestFit, EqualsPackingPodAfterPod) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    std::vector<std::uint32_t> free;
    for (int n = 0; n < 8; ++n) free.push_back(std::uint32_t(random.Below(256)));
    const ClusterState state = Free({.units = 2, .nodes = 4}, free);
    const GangRequest request = Gang(Sizes(2, 1, 1 + int(random.Below(12))), 2);
    const auto expected = PodAfterPod(state, request);
    const Assignment pods = PackBestFit(state, request);
    ASSERT_EQ(pods.has_value(), !expected.empty());
    if (pods) {
      EXPECT_EQ(*pods, expected);
    }
  }
}

TEST(PickAtRandom, IsSoundAndRepeatsWithItsSeed) {
  const ClusterState state = Free({.units = 2, .nodes = 4}, {0x0f, 0x33});
  const GangRequest request = Gang(Sizes(4, 1, 14), 4);
  base::Random first(5), again(5);
  const Assignment pods = PickAtRandom(state, request, first);
  ExpectSound(state, request, pods);
  EXPECT_EQ(pods, PickAtRandom(state, request, again));
  EXPECT_NE(pods, PickAtRandom(state, request, again));
  EXPECT_EQ(PickAtRandom(state, Gang(Sizes(4, 1, 15), 4), first), std::nullopt);
}

TEST(PackRacks, TakesTheTightestUnitThatHoldsTheGang) {
  // Four, two and three whole nodes: two pods go to the second unit.
  const ClusterState state = Free({.units = 3, .nodes = 4}, {0xff, 0xff, 0xff, 0xff, 0, 0xff, 0, 0xff, 0x0f});
  EXPECT_EQ(NodesOf(PackRacks(state, Gang(Sizes(8, 1, 2), 8))), (std::vector<NodeId>{5, 7}));
  EXPECT_EQ(NodesOf(PackRacks(state, Gang(Sizes(8, 1, 3), 8))), (std::vector<NodeId>{9, 10, 11}));
}

TEST(PackRacks, TakesTheMostFreeUnitsAndTheTightestForTheRest) {
  // 4, 1 and 3 whole nodes; five pods: the unit of four, then the unit of one. Ranks go by node name.
  const ClusterState state = Free({.units = 3, .nodes = 4}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0});
  EXPECT_EQ(NodesOf(PackRacks(state, Gang(Sizes(8, 1, 5), 8))), (std::vector<NodeId>{0, 1, 2, 3, 7}));
}

TEST(PackRacks, StaysUnderOneSetOfSpinesWhereThatHoldsTheGang) {
  // Units 0 and 2 share spines, and so do 1 and 3; only the second pair has four whole nodes together.
  const ClusterState state = Free({.units = 4, .nodes = 3, .spine_groups = 2},
                                  {0xff, 0xff, 0, 0xff, 0xff, 0, 0xff, 0, 0, 0xff, 0xff, 0});
  ASSERT_EQ(state.dense().cells(placement::Tier::kSpine), 2);
  const Assignment pods = PackRacks(state, Gang(Sizes(8, 1, 4), 8));
  std::set<std::int32_t> groups;
  for (const NodeId node : NodesOf(pods)) groups.insert(state.dense().cell(placement::Tier::kSpine, node));
  EXPECT_EQ(groups.size(), 1U);
}

TEST(PackRacks, KeepsTheSlicesOfAGangOnOneNode) {
  const ClusterState state = Free({.units = 1, .nodes = 4}, {0x0f, 0xff, 0x0f, 0xff});
  const GangRequest request = Gang(Sizes(8, 1, 2), 4);
  EXPECT_EQ(NodesOf(PackRacks(state, request, 2)), (std::vector<NodeId>{1, 1, 3, 3}));
  EXPECT_EQ(PackRacks(state, Gang(Sizes(8, 1, 3), 4), 2), std::nullopt);
  EXPECT_NE(PackRacks(state, Gang(Sizes(8, 1, 3), 4)), std::nullopt);  // 3 × 8 GPUs are free
}

TEST(PackRacks, KeepsSlicesTooLargeForANodeInOneNvlinkDomain) {
  // Racks of three trays of 4 GPUs with 3, 1, 2 and 3 of them free; a tp group is two pods.
  const ClusterState state = Free({.units = 4, .nodes = 3, .gpus = 4, .leaves = 4, .racks_per_unit = 1},
                                  {0xf, 0xf, 0xf, 0, 0xf, 0, 0xf, 0xf, 0, 0xf, 0xf, 0xf});
  const GangRequest two = Gang(Sizes(8, 1, 2), 4);
  EXPECT_EQ(NodesOf(PackRacks(state, two, 2)), (std::vector<NodeId>{0, 1, 6, 7}));
  EXPECT_EQ(quality::Measure(state, two, *PackRacks(state, two, 2)).broken_tp, 0);
  EXPECT_EQ(NodesOf(PackRacks(state, Gang(Sizes(8, 1, 1), 4), 2)), (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(PackRacks(state, Gang(Sizes(8, 1, 4), 4), 2), std::nullopt);  // three racks hold a group each
  EXPECT_EQ(
      quality::Measure(state, Gang(Sizes(8, 1, 4), 4), *PackRacks(state, Gang(Sizes(8, 1, 4), 4))).broken_tp,
      2);
}

TEST(Peers, AreSoundAndPlaceWheneverRoomIsThere) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    std::vector<std::uint32_t> free;
    int slots = 0;
    for (int n = 0; n < 24; ++n) {
      free.push_back(random.Below(2) == 0 ? 0xffU : std::uint32_t(random.Below(256)));
      slots += std::popcount(free.back()) / 4;
    }
    const ClusterState state = Free({.units = 6, .nodes = 4, .spine_groups = 2}, free);
    const int pods = 1 + int(random.Below(std::uint64_t(slots)));
    const GangRequest request = Gang(Sizes(4, 1, pods), 4), larger = Gang(Sizes(4, 1, slots + 1), 4);
    ExpectSound(state, request, PackBestFit(state, request));
    ExpectSound(state, request, PickAtRandom(state, request, random));
    ExpectSound(state, request, PackRacks(state, request));
    EXPECT_EQ(PackBestFit(state, larger), std::nullopt);
    EXPECT_EQ(PickAtRandom(state, larger, random), std::nullopt);
    EXPECT_EQ(PackRacks(state, larger), std::nullopt);
  }
}

TEST(Churn, HoldsWhatWasAskedForAndRepeatsWithItsSeed) {
  const auto fabric = MakeFabric({.nodes = 500, .unit = 16, .units_per_spine_group = 8}, 1);
  EXPECT_EQ(topology::Check(*fabric), std::vector<std::string>{});
  Churn churn(*fabric, Ties::kByLot, 3), again(*fabric, Ties::kByLot, 3), other(*fabric, Ties::kByLot, 4);
  for (const int percent : {70, 90}) {
    for (Churn* one : {&churn, &again, &other}) one->RunAt(percent);
    EXPECT_GE(churn.held_percent(), percent);
    EXPECT_LE(churn.held_percent(), percent + 26);  // the last job may have 1,024 of 4,000 GPUs
    EXPECT_EQ(churn.nodes(), again.nodes());
    EXPECT_NE(churn.nodes(), other.nodes());
  }
}

TEST(Churn, ScattersFreeNodesByLotAndKeepsThemTogetherByName) {
  const auto fabric = MakeFabric({.nodes = 2000, .unit = 16}, 1);
  const auto whole_units = [&](Ties ties) {
    Churn churn(*fabric, ties, 3);
    churn.RunAt(80);
    const ClusterState state(fabric, churn.nodes());
    int whole = 0;
    for (std::size_t u = 0; u < fabric->units.size(); ++u) {
      const int all = int(fabric->units[u].nodes.size()) * 8;
      whole += state.free_gpus_in_unit(topology::UnitId(u)) == all ? 1 : 0;
    }
    return whole;
  };
  EXPECT_EQ(whole_units(Ties::kByLot), 0);
  EXPECT_GT(whole_units(Ties::kByName), 5);
}

TEST(MakeFabric, HasUnevenUnitsInGroupsOfSpines) {
  const auto fabric = MakeFabric({.nodes = 1000, .unit = 32, .oversubscription_percent = 400}, 2);
  EXPECT_NEAR(double(fabric->nodes.size()), 1000, 60);
  std::set<std::size_t> sizes;
  for (const auto& unit : fabric->units) sizes.insert(unit.nodes.size());
  EXPECT_GT(sizes.size(), 3U);
  EXPECT_EQ(*sizes.rbegin(), 32U);
  for (const auto& leaf : fabric->leaves) EXPECT_EQ(leaf.up_gbps * 4, leaf.down_gbps);
  const ClusterState state(fabric, std::vector<NodeState>(fabric->nodes.size(), RoomyNode(0xff)));
  EXPECT_EQ(state.dense().cells(placement::Tier::kSpine), int(fabric->units.size() + 15) / 16);
}

TEST(Measure, CountsTheUnitsOfAGroupAndThoseLeftWhole) {
  // Three units of four nodes; ranks: dp fastest, then pp. Stages 0 and 1 of dp 0 lie in one unit, those of dp 1 in
  // two.
  const ClusterState state = Free({.units = 3, .nodes = 4}, {});
  const GangRequest request = Gang(Sizes(8, 2, 2), 8);
  const std::vector<PodPlacement> pods{{0, 0xff}, {1, 0xff}, {2, 0xff}, {4, 0xff}};
  const quality::Measures measures = quality::Measure(state, request, pods);
  EXPECT_EQ(measures.dp_spread, 2);
  EXPECT_EQ(measures.pp_spread, 2);
  EXPECT_EQ(measures.whole_units, 1);
  EXPECT_EQ(measures.whole_domains, 8);
  EXPECT_EQ(measures.broken_tp, 0);
  EXPECT_EQ(measures.pp_crossings, 8);  // 1 to 4, on each of 8 rails
  EXPECT_LT(measures.network_ms, measures.step_ms);
  const quality::Measures packed =
      quality::Measure(state, request, {{0, 0xff}, {1, 0xff}, {2, 0xff}, {3, 0xff}});
  EXPECT_EQ(packed.dp_spread, 1);
  EXPECT_EQ(packed.whole_units, 2);
  EXPECT_LT(packed.network_ms, measures.network_ms);
}

TEST(Measure, SeesBrokenTpGroupsAndEdgesOffTheirRail) {
  const ClusterState state = Free({.units = 1, .nodes = 4}, {});
  const GangRequest request = Gang(Sizes(4, 1, 2), 2);
  const quality::Measures broken =
      quality::Measure(state, request, {{0, 0x03}, {1, 0x0c}, {2, 0x03}, {2, 0x0c}});
  EXPECT_EQ(broken.broken_tp, 1);
  EXPECT_GT(broken.misaligned, 0);
  const quality::Measures whole =
      quality::Measure(state, request, {{0, 0x03}, {0, 0x0c}, {2, 0x03}, {2, 0x0c}});
  EXPECT_EQ(whole.broken_tp, 0);
  EXPECT_EQ(whole.misaligned, 0);
}

TEST(MakeFabric, MakesEveryRackOneDomainAndOneUnit) {
  const auto fabric = MakeFabric({.nodes = 180, .unit = 18, .nvl72 = true}, 1);
  ASSERT_EQ(fabric->domains.size(), fabric->units.size());
  EXPECT_TRUE(fabric->domains.front().spans_nodes);
  Churn churn(*fabric, Ties::kByName, 1);
  churn.RunAt(60);
  EXPECT_GE(churn.held_percent(), 60);
  const ClusterState state(fabric, churn.nodes());
  EXPECT_TRUE(state.dense().nested());
}

TEST(DrawVisits, LoadsTheClusterAsAsked) {
  const auto visits = DrawVisits(32'000, 85, 20'000, 7);
  double held = 0;
  for (std::size_t tick = 0; tick < visits.size(); ++tick) {
    ASSERT_GT(visits[tick].leaves_at, int(tick));
    held += double(visits[tick].gpus) * double(visits[tick].leaves_at - int(tick));
  }
  EXPECT_NEAR(held / double(visits.size()), 0.85 * 32'000, 0.1 * 32'000);
}

}  // namespace
}  // namespace heddle::peers
