#include "placement/torus_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "placement/spread.h"
#include "placement/torus_mapping.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

using testing::Each;
using topology::kNone;
using topology::NodeId;

topology::Synthetic Made(const std::string& line) {
  const auto made = topology::ParseSynthetic(line);
  EXPECT_TRUE(made) << line;
  return made ? *made : topology::Synthetic{};
}
topology::Fabric Torus(const std::string& line) {
  const topology::Synthetic made = Made(line);
  return topology::BuildFabric(made.nodes, made.declaration);
}
NodeId At(const topology::Fabric& fabric, int x, int y, int z) {
  for (NodeId n = 0; n < NodeId(fabric.nodes.size()); ++n) {
    if (fabric.nodes[std::size_t(n)].torus == std::array<int, 3>{x, y, z}) return n;
  }
  return kNone;
}

std::optional<TorusPlace> Searched(const ClusterState& state, const GangRequest& request) {
  Pricing pricing(state, request);
  return PlaceOnTorus(state, request, ClassesOf(request, EffectiveRequirements(request)), pricing);
}

// The whole nodes of `box` in the order of `walk`, one pod each.
std::vector<PodPlacement> Laid(const topology::Fabric& fabric, const std::vector<std::array<int, 3>>& walk) {
  std::vector<PodPlacement> pods;
  for (const auto& [x, y, z] : walk) pods.push_back({At(fabric, x, y, z), 0xf});
  return pods;
}

TEST(TorusHop, TakesItsRateAndLatencyFromItsLinks) {
  const topology::Fabric fabric = Torus("torus:8x8x8 gpu:4 nic:4 rate:400");
  const DenseFabric dense(fabric);
  const auto hop = [&](int x, int y, int z) {
    const NodeId to = At(fabric, x, y, z);
    const Hop fast = dense.Between(dense.port(At(fabric, 0, 0, 0), 1), dense.port(to, 1));
    EXPECT_EQ(fast, HopOf(fabric, dense.port(At(fabric, 0, 0, 0), 1), dense.port(to, 1)));
    EXPECT_FALSE(fast.crosses_leaf);
    EXPECT_EQ(dense.WayBetween(At(fabric, 0, 0, 0), to).links, fabric.TorusHops(At(fabric, 0, 0, 0), to));
    return std::pair(fast.mbps, fast.tenths_us);
  };
  EXPECT_EQ(hop(0, 0, 1), std::pair(std::int64_t{388'000}, 145));
  EXPECT_EQ(hop(7, 0, 0), std::pair(std::int64_t{388'000}, 145)) << "around the end";
  EXPECT_EQ(hop(0, 2, 0), std::pair(std::int64_t{194'000}, 150));
  EXPECT_EQ(hop(1, 2, 1), std::pair(std::int64_t{194'000}, 160)) << "its links in y are shared";
  EXPECT_EQ(hop(4, 4, 4), std::pair(std::int64_t{97'000}, 200));
}

TEST(TorusHop, ANodeWithoutAPositionIsTakenToBeFar) {
  auto made = Made("torus:4x4x4 gpu:4 nic:4");
  made.declaration.torus.pop_back();
  const topology::Fabric fabric = topology::BuildFabric(made.nodes, made.declaration);
  const DenseFabric dense(fabric);
  EXPECT_EQ(dense.WayBetween(0, 63), (TorusWay{6, 2}));
}

TEST(TorusSearch, AGangOfTheWholeTorusHasOnlyNeighbours) {
  auto state = FreeCluster(Torus("torus:4x4x4 gpu:4 nic:4"));
  const auto request = Gang(Sizes(4, 4, 16), 4);
  const auto place = Searched(state, request);
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->ideal);
  EXPECT_EQ(SliceOf(state.fabric(), place->pods), (TorusSlice{{{0, 0, 0}, {4, 4, 4}}, 64}));
  EXPECT_EQ(Planned(state, request).quality.step_micros, place->quality.step_micros);
}

// 16 nodes as dp=4 x pp=4. In 4x2x2 a dp ring goes round a 2x2 face and the stages go along the line of four:
// every step is one link. In 4x4x1 of a larger torus a ring of four has to fold, or share sides with the
// stages, and takes two links at some step.
TEST(TorusSearch, FourByTwoByTwoIsCheaperThanFourByFourByOneWhereSidesDoNotClose) {
  auto state = FreeCluster(Torus("torus:8x8x8 gpu:4 nic:4"));
  const auto request = Gang(Sizes(4, 4, 4), 4);
  std::vector<std::array<int, 3>> flat, deep;
  for (int stage = 0; stage < 4; ++stage) {
    for (const int y : {0, 1, 3, 2}) flat.push_back({stage, y, 0});
    for (const auto& [y, z] : {std::pair{0, 0}, {0, 1}, {1, 1}, {1, 0}}) deep.push_back({stage, y, z});
  }
  const Quality folded = Evaluate(state, request, Laid(state.fabric(), flat));
  const Quality round = Evaluate(state, request, Laid(state.fabric(), deep));
  EXPECT_LT(round.step_micros, folded.step_micros);
  const auto dp = std::size_t(Axis::kDp);
  EXPECT_NEAR(double(folded.axis_micros[dp]), 2 * double(round.axis_micros[dp]),
              double(round.axis_micros[dp]) / 50)
      << "half the rate, the same start-up";

  const auto place = Searched(state, request);
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->ideal);
  EXPECT_EQ(place->quality.step_micros, round.step_micros);
  auto slice = SliceOf(state.fabric(), place->pods);
  ASSERT_TRUE(slice && slice->whole());
  std::sort(slice->box.sides.begin(), slice->box.sides.end());
  EXPECT_EQ(slice->box.sides, (Sides{2, 2, 4}));
}

// Of a torus four nodes wide, a line of four is a ring, and both are equally good.
TEST(TorusSearch, FourByFourByOneIsAsGoodWhereItsSidesClose) {
  auto fabric = Torus("torus:4x4x4 gpu:4 nic:4");
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (fabric.nodes[n].torus[2] != 2) nodes[n].free_gpus = 0;  // one layer is left
  }
  auto layer = Cluster(fabric, std::move(nodes));
  auto empty = FreeCluster(std::move(fabric));
  const auto request = Gang(Sizes(4, 4, 4), 4);
  const auto flat = Searched(layer, request), any = Searched(empty, request);
  ASSERT_TRUE(flat && any);
  EXPECT_TRUE(flat->ideal);
  EXPECT_EQ(flat->quality.step_micros, any->quality.step_micros);
  EXPECT_EQ(SliceOf(layer.fabric(), flat->pods), (TorusSlice{{{0, 0, 2}, {4, 4, 1}}, 16}));
}

TEST(TorusSearch, FindsTheBoxAroundTheEndsOfAFragmentedTorus) {
  auto fabric = Torus("torus:5x5x5 gpu:4 nic:4");
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto& [x, y, z] = fabric.nodes[n].torus;
    const bool corner = (x == 4 || x == 0) && (y == 4 || y == 0) && (z == 4 || z == 0);
    const bool inner = std::min({x, y, z}) > 0 && std::max({x, y, z}) < 4;
    if (!corner && (!inner || (x + y + z) % 2 == 0)) nodes[n].free_gpus = 0;
  }
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(4, 2, 4), 4));
  EXPECT_EQ(SliceOf(state.fabric(), plan.pods), (TorusSlice{{{4, 4, 4}, {2, 2, 2}}, 8}));
}

TEST(TorusSearch, TakesWhatIsFreeWhereNoBoxIs) {
  auto fabric = Torus("torus:4x4x4 gpu:4 nic:4");
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto& [x, y, z] = fabric.nodes[n].torus;
    if ((x + y + z) % 2 == 0) nodes[n].free_gpus = 0;  // no two neighbours are free
  }
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const auto place = Searched(state, Gang(Sizes(4, 1, 32), 4));
  ASSERT_TRUE(place);
  EXPECT_FALSE(place->ideal);
  Planned(state, Gang(Sizes(4, 1, 32), 4));
  Planned(state, Gang(Sizes(4, 1, 31), 4));
  EXPECT_EQ(Refused(state, Gang(Sizes(4, 1, 33), 4)).reason, RefusalReason::kNotEnoughFree);
}

// Two free boxes of 2 x 2 x 2, far from each other: the rings go into one each, the stages between them.
TEST(TorusSearch, CutsAGangIntoEqualBoxesWhereNoBoxHoldsIt) {
  auto fabric = Torus("torus:8x8x8 gpu:4 nic:4");
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto& [x, y, z] = fabric.nodes[n].torus;
    const bool one = x < 2 && y < 2 && z<2, other = x> 3 && x < 6 && y > 2 && y < 5 && z < 2;
    if (!one && !other) nodes[n].free_gpus = 0;
  }
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(4, 2, 8), 4));
  for (int stage = 0; stage < 2; ++stage) {
    const auto first = plan.pods.begin() + stage * 8;
    const auto slice = SliceOf(state.fabric(), {first, first + 8});
    ASSERT_TRUE(slice);
    EXPECT_EQ(slice->box.sides, (Sides{2, 2, 2}));
  }
  // As fast as a ring of neighbours can be: eight servers under one leaf.
  auto flat = FreeCluster(FabricOf{.nodes = 16, .gpus = 4, .leaves = 4}.Build());
  EXPECT_LE(plan.quality.axis_micros[std::size_t(Axis::kDp)] * 100,
            Planned(flat, Gang(Sizes(4, 2, 8), 4)).quality.axis_micros[std::size_t(Axis::kDp)] * 101);
}

TEST(TorusSearch, LeavesSlowNodesAloneWhileThereAreOthers) {
  auto state = FreeCluster(Torus("torus:4x4x2 gpu:4 nic:4 half:node-05/rail-2 half:node-12/rail-0"));
  const auto request = Gang(Sizes(4, 1, 8), 4);
  const auto place = Searched(state, request);
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->ideal);
  for (const PodPlacement& pod : place->pods) EXPECT_TRUE(pod.node != 5 && pod.node != 12) << pod.node;
  Planned(state, Gang(Sizes(4, 1, 31), 4));
}

TEST(TorusSearch, PutsThePodsOfANodeTogether) {
  auto state = FreeCluster(Torus("torus:4x4x4 gpu:8 nic:8"));
  const auto place = Searched(state, Gang(Sizes(4, 2, 16), 4));
  ASSERT_TRUE(place);
  for (std::size_t p = 0; p < place->pods.size(); p += 2) {
    EXPECT_EQ(place->pods[p].node, place->pods[p + 1].node);
    EXPECT_EQ(place->pods[p].gpus, 0x0fU);
    EXPECT_EQ(place->pods[p + 1].gpus, 0xf0U);
  }
  const auto slice = SliceOf(state.fabric(), place->pods);
  ASSERT_TRUE(slice);
  EXPECT_TRUE(slice->whole());
  Planned(state, Gang(Sizes(4, 2, 16), 4));
}

TEST(TorusSearch, ALauncherGoesBesideTheGang) {
  auto state = FreeCluster(Torus("torus:4x4x4 gpu:4 nic:4"));
  auto request = Gang(Sizes(4, 2, 4), 4);
  request.pods.insert(request.pods.begin(), PodRequest{});
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.pods[0], (PodPlacement{plan.pods[1].node, 0}));
}

TEST(TorusSearch, UsesOnlyNodesThatThePodsAllow) {
  auto state = FreeCluster(Torus("torus:4x4x4 gpu:4 nic:4"));
  auto request = Gang(Sizes(4, 1, 4), 4);
  request.allowed_nodes = {{3, 17, 18, 19, 40, 63, 900}};
  for (PodRequest& pod : request.pods) pod.allowed = 0;
  const auto place = Searched(state, request);
  ASSERT_TRUE(place);
  for (const PodPlacement& pod : place->pods) {
    EXPECT_TRUE(std::set<NodeId>({3, 17, 18, 19, 40, 63}).contains(pod.node));
  }
  Planned(state, request);
}

TEST(TorusSearch, HonoursRequirementsAsElsewhere) {
  auto state = FreeCluster(Torus("torus:4x4x4 gpu:4 nic:4"));
  auto request = Gang(Sizes(2, 2, 8), 4);
  request.require = {{Axis::kTp, Level::kNode}, {Axis::kGang, Level::kSite}};
  Planned(state, request);
  request.require = {{Axis::kGang, Level::kUnit}};  // a torus has no units, so that none holds the gang
  EXPECT_FALSE(Searched(state, request));
  Refused(state, request);
}

TEST(TorusSearch, LeavesOtherGangsToTheCountingSearch) {
  const auto request = Gang(Sizes(4, 1, 4), 4);
  EXPECT_FALSE(Searched(FreeCluster(FabricOf{}.Build()), request)) << "not a torus";
  auto torus = FreeCluster(Torus("torus:4x4x4 gpu:8 nic:8"));
  EXPECT_FALSE(Searched(torus, Gang(Sizes(2, 1, 2), 2))) << "half a node";
  EXPECT_FALSE(Searched(torus, Gang(Sizes(8, 1, 1), 8))) << "one node has no way to go";
  auto bound = Gang(Sizes(8, 1, 2), 8);
  bound.pods[0].fixed_node = 5;
  EXPECT_FALSE(Searched(torus, bound)) << "a bound pod";
  Planned(torus, bound);

  auto made = Made("torus:4x4x4 gpu:4 nic:4");
  made.declaration.torus_size = {1024, 1024, 1024};
  auto vast = FreeCluster(topology::BuildFabric(made.nodes, made.declaration));
  EXPECT_FALSE(Searched(vast, request)) << "too many places to look at";
  Planned(vast, request);
  made.declaration.torus.clear();
  made.declaration.shape = topology::Shape::kTorus3d;
  auto unknown = FreeCluster(topology::BuildFabric(made.nodes, made.declaration));
  EXPECT_FALSE(Searched(unknown, request)) << "nobody said where the nodes are";
  Planned(unknown, request);
}

TEST(TorusSearch, SlicesGoAroundTheEnds) {
  const topology::Fabric fabric = Torus("torus:6x4x3 gpu:4 nic:4");
  const auto slice = [&](const std::vector<std::array<int, 3>>& places) {
    return SliceOf(fabric, Laid(fabric, places));
  };
  EXPECT_EQ(slice({{5, 0, 1}, {0, 0, 1}}), (TorusSlice{{{5, 0, 1}, {2, 1, 1}}, 2}));
  EXPECT_EQ(slice({{1, 1, 0}, {1, 2, 2}, {3, 1, 0}}), (TorusSlice{{{1, 1, 2}, {3, 2, 2}}, 3}));
  EXPECT_FALSE(slice({{1, 1, 0}, {1, 2, 2}, {3, 1, 0}})->whole());
  EXPECT_FALSE(SliceOf(fabric, {}));
  EXPECT_FALSE(SliceOf(FabricOf{}.Build(), {{0, 0xf}}));
}

Parallelism RandomSizes(base::Random& random, int nodes) {
  Parallelism p;
  p.tp = 4;
  for (int* size : {&p.pp, &p.cp}) {
    for (const int factor : {2, 3, 2}) {
      if (nodes % factor == 0 && random.Below(3) == 0) {
        *size *= factor;
        nodes /= factor;
      }
    }
  }
  p.dp = nodes;
  if (p.dp % 2 == 0 && random.Below(3) == 0) p.fsdp = 2;
  if (p.dp % 2 == 0 && random.Below(4) == 0) p.ep = 2;
  if (random.Below(3) == 0) std::swap(p.order[2], p.order[3]);
  return p;
}

TEST(TorusSearch, NeverDoesWorseThanNodesByName) {
  int boxes = 0, others = 0;
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const auto side = [&random] { return std::to_string(1 + random.Below(6)); };
    // One after the other: in one expression each compiler draws in its own order.
    std::string sides = side();
    for (int more = 0; more < 2; ++more) sides += "x" + side();
    auto fabric = Torus("torus:" + sides + " gpu:4 nic:4");
    auto nodes = AllFree(fabric);
    const int percent = int(random.Below(80));
    int free = 0;
    for (NodeState& node : nodes) {
      if (int(random.Below(100)) < percent) node.free_gpus &= std::uint32_t(random.Below(15));
      free += node.free_gpus == 0xf ? 1 : 0;
    }
    if (free < 2) continue;
    auto state = Cluster(std::move(fabric), std::move(nodes));
    const int wanted = 2 + int(random.Below(std::uint64_t(free - 1)));
    const auto request = Gang(RandomSizes(random, wanted), 4);
    if (!WhyNotLaidOut(request.parallelism).empty()) continue;
    const Plan plan = Planned(state, request);
    std::vector<PodPlacement> by_name;
    for (NodeId n = 0; int(by_name.size()) < wanted; ++n) {
      if (state.free_gpus(n) == 4) by_name.push_back({n, 0xf});
    }
    // Among places that are as fast, the one that spreads least is chosen.
    EXPECT_LE(plan.quality.step_micros, AsFast(Evaluate(state, request, by_name).step_micros));
    const auto place = Searched(state, request);
    ASSERT_TRUE(place) << "enough is free";
    EXPECT_LE(plan.quality.step_micros, place->quality.step_micros);
    EXPECT_THAT(Faults(state, request, Plan{place->pods, {}, place->quality, {}}), testing::IsEmpty());
    if (place->ideal) {
      EXPECT_EQ(plan.quality.step_micros, place->quality.step_micros);
    }
    (SliceOf(state.fabric(), place->pods)->whole() ? boxes : others) += 1;
  }
  EXPECT_TRUE(boxes + others <= 1 || (boxes > 2 && others > 2)) << boxes << " " << others;
}

TEST(TorusMapping, LaysEveryMemberOnAPlaceOfItsOwn) {
  for (const std::uint64_t seed : test::Seeds(150)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    std::vector<TorusAxis> axes;
    Sides sides{1, 1, 1};
    for (int left = 1 + int(random.Below(4)); left > 0; --left) {
      const int size = 2 + int(random.Below(4));
      sides[random.Below(3)] *= size;
      axes.push_back({size, random.Below(2) == 0, double(random.Below(100))});
    }
    const Sides torus{sides[0] + int(random.Below(2)), sides[1] + int(random.Below(2)), sides[2]};
    const auto mappings = MappingsOnto(torus, sides, axes, 5);
    ASSERT_FALSE(mappings.empty());
    double before = 0, floor = 0;
    for (const TorusAxis& axis : axes) floor += axis.weight;
    for (const TorusMapping& mapping : mappings) {
      EXPECT_GE(mapping.estimate, before);
      EXPECT_GE(mapping.estimate, floor);
      before = mapping.estimate;
      std::set<std::array<int, 3>> seen{{0, 0, 0}};
      for (const auto& offsets : mapping.offsets) {
        std::set<std::array<int, 3>> sums;
        for (const auto& from : seen) {
          for (const auto& offset : offsets) {
            sums.insert({from[0] + offset[0], from[1] + offset[1], from[2] + offset[2]});
          }
        }
        seen = std::move(sums);
      }
      EXPECT_EQ(std::int64_t(seen.size()), Volume(sides));
      for (const auto& place : seen) {
        for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(place[i] >= 0 && place[i] < sides[i]);
      }
    }
  }
}

TEST(TorusMapping, FoldsARingThatIsALine) {
  const auto open = MappingsOnto({8, 8, 8}, {4, 1, 1}, {{4, false, 1}}, 1);
  const auto folded = MappingsOnto({8, 8, 8}, {4, 1, 1}, {{4, true, 1}}, 1);
  const auto ring = MappingsOnto({4, 8, 8}, {4, 1, 1}, {{4, true, 1}}, 1);
  ASSERT_TRUE(open.size() == 1 && folded.size() == 1 && ring.size() == 1);
  EXPECT_EQ(open[0].estimate, 1);
  EXPECT_EQ(folded[0].estimate, 2);
  EXPECT_EQ(ring[0].estimate, 1);
}

}  // namespace
}  // namespace heddle::placement
