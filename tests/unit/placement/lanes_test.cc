// Whole nodes are priced a node's GPUs at once. The same ranks in pods of half a node are priced rank by
// rank, and must come to the same, digit for digit.
#include "placement/lanes.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "placement/planner.h"
#include "placement/pricing.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

constexpr const char* kLines[] = {
    "su:3 node:4 gpu:8 nic:8 rail:8 spine:2 oversub:400",
    "su:2 node:6 gpu:8 nic:8 rail:8 spine:2 half:node-3/rail-2 down:node-5/rail-1 swap:node-1/rail-1/rail-2",
    "su:2 node:6 gpu:8 nic:4 rail:4 spine:4",
    "su:2 node:6 gpu:8 nic:8 rail:8 railonly",
    "rack:3 tray:4 gpu:4 nic:4 rail:4 nvl",
    "tor:3 node:4 gpu:4 nic:1 rate:100 transport:roce machine:l40s oversub:300",
    "su:2 node:6 gpu:8 nic:8 rail:8 badgpu:node-2/5",
    "dragonfly:3 tor:2 node:2 gpu:8 nic:1",
    "su:4 node:3 gpu:8 nic:8 rail:8 machine:h100,a100",
    "torus:4x3x2 gpu:4 nic:4 half:node-03/rail-2 half:node-04/rail-0",
};

GangRequest Request(const Parallelism& parallelism, int gpus_per_pod) {
  GangRequest request;
  request.parallelism = parallelism;
  request.require = {{Axis::kTp, Level::kSite}};
  request.pods.assign(std::size_t(parallelism.world() / gpus_per_pod), PodRequest{.gpus = gpus_per_pod});
  return request;
}

Parallelism RandomSizes(base::Random& random, int world) {
  Parallelism p;
  for (int* size : {&p.tp, &p.pp, &p.cp}) {
    for (int left = int(random.Below(4)); left > 0 && world % 2 == 0; --left) {
      *size *= 2;
      world /= 2;
    }
  }
  p.dp = world;
  if (p.dp % 2 == 0 && random.Below(3) == 0) p.fsdp = 2;
  if (p.dp % 2 == 0 && random.Below(3) == 0) p.ep = 2;
  if (random.Below(3) == 0) std::swap(p.order[2], p.order[3]);
  return p;
}

// Within the limit all is known; beyond it only that.
void ExpectLimitKept(const ClusterState& state, const GangRequest& request,
                     const std::vector<PodPlacement>& pods, const Quality& quality) {
  Pricing pricing(state, request);
  EXPECT_EQ(pricing.Price(pods, quality.step_micros), quality);
  EXPECT_EQ(pricing.Price(pods, quality.step_micros + 1), quality);
  const Quality beyond = pricing.Price(pods, quality.step_micros - 1);
  EXPECT_GT(beyond.step_micros, quality.step_micros - 1);
  EXPECT_LE(beyond.step_micros, quality.step_micros);
}

TEST(Lanes, PriceWholeNodesAsRankByRank) {
  int compared = 0;
  for (const std::uint64_t seed : test::Seeds(400)) {
    base::Random random(seed);
    const char* line = kLines[seed % std::size(kLines)];
    SCOPED_TRACE(test::Replay(seed) + " " + line);
    const auto made = topology::ParseSynthetic(line);
    ASSERT_TRUE(made);
    auto fabric =
        std::make_shared<const topology::Fabric>(topology::BuildFabric(made->nodes, made->declaration));
    // Without loads many fabrics share no link, and leaves are not told apart.
    const bool loaded = random.Below(2) == 0;
    std::vector<LeafLoad> loads;
    for (std::size_t leaf = 0; loaded && leaf < fabric->leaves.size(); ++leaf) {
      if (random.Below(4) == 0) loads.push_back({topology::LeafId(leaf), 400'000});
    }
    const ClusterState state(fabric, AllFree(*fabric), loads);
    std::vector<topology::NodeId> nodes(fabric->nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.Below(i)]);
    const int gpus = state.dense().gpus(0);
    nodes.resize(std::size_t(1) << (1 + random.Below(3)));
    const Parallelism sizes = RandomSizes(random, int(nodes.size()) * gpus);
    if (!WhyNotLaidOut(sizes).empty()) continue;
    const std::uint32_t all = (1U << gpus) - 1, low = (1U << gpus / 2) - 1;
    std::vector<PodPlacement> whole, halves;
    for (const topology::NodeId node : nodes) {
      whole.push_back({node, all});
      halves.push_back({node, low});
      halves.push_back({node, all & ~low});
    }
    const GangRequest of_whole = Request(sizes, gpus), of_halves = Request(sizes, gpus / 2);
    const Quality by_node = Pricing(state, of_whole).Price(whole);
    EXPECT_EQ(by_node, Pricing(state, of_whole, Pricing::Stride::kRanks).Price(whole));
    EXPECT_EQ(by_node, Pricing(state, of_halves).Price(halves));
    EXPECT_GT(by_node.tp_groups, 0);
    ExpectLimitKept(state, of_whole, whole, by_node);
    ++compared;
  }
  EXPECT_TRUE(compared <= 1 || compared > 50) << compared;
}

TEST(Lanes, AreTheSameForAllPairsOfUnitsUnlessLeavesAreTold) {
  const auto made = topology::ParseSynthetic("su:3 node:2 gpu:8 nic:8 rail:8 spine:4");
  const topology::Fabric fabric = topology::BuildFabric(made->nodes, made->declaration);
  const DenseFabric dense(fabric);
  Lanes alike(dense, false), told(dense, true);
  EXPECT_EQ(&alike.Between(0, 2), &alike.Between(3, 5));
  EXPECT_EQ(&alike.Between(0, 1), &alike.Between(2, 3));
  EXPECT_NE(&alike.Between(0, 1), &alike.Between(1, 2));
  EXPECT_NE(&told.Between(0, 2), &told.Between(3, 5));
  EXPECT_EQ(told.Between(0, 2).hop, told.Between(3, 5).hop);
}

TEST(Lanes, TellNodesApartThatAreCabledAlikeButLieInDifferentDomains) {
  const auto made = topology::ParseSynthetic("rack:2 tray:2 gpu:4 nic:4 rail:4 nvl");
  const topology::Fabric fabric = topology::BuildFabric(made->nodes, made->declaration);
  const DenseFabric dense(fabric);
  Lanes lanes(dense, false);
  EXPECT_FALSE(lanes.Between(0, 1).hop.network);
  EXPECT_TRUE(lanes.Between(1, 2).hop.network);
  EXPECT_FALSE(lanes.Between(2, 3).hop.network);
  EXPECT_TRUE(lanes.Between(0, 0).unlike.empty());
}

}  // namespace
}  // namespace heddle::placement
