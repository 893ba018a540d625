// What a change of the fabric, the model or the assignment must do to the predicted time, whatever the model of it says
// in milliseconds. Assignments are drawn at random as well as planned, so that bad ones are priced too.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/random.h"
#include "placement/planner.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

constexpr std::array kPricedAxes{Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp};

struct Placed {
  topology::Fabric fabric;
  GangRequest request;
  std::vector<PodPlacement> pods;
  std::vector<LeafLoad> loads;

  Quality Price() const {
    const ClusterState state(std::make_shared<const topology::Fabric>(fabric), AllFree(fabric), loads);
    return Evaluate(state, request, pods);
  }
  std::int64_t Micros(Axis axis) const { return Price().axis_micros[std::size_t(axis)]; }
};

bool Chance(base::Random& random, int percent) {
  return int(random.Below(100)) < percent;
}
int OneOf(base::Random& random, std::initializer_list<int> values) {
  return values.begin()[random.Below(values.size())];
}

ModelHints SomeModel(base::Random& random) {
  ModelHints model;
  model.params = 1e9 * double(OneOf(random, {1, 8, 70, 405}));
  model.layers = OneOf(random, {24, 80, 126});
  model.hidden = OneOf(random, {2048, 8192, 16384});
  model.seq = OneOf(random, {2048, 8192, 131072});
  model.microbatch = OneOf(random, {1, 2});
  model.microbatches = OneOf(random, {0, 8, 64});
  return model;
}

void Shuffle(base::Random& random, std::vector<PodPlacement>& pods) {
  for (std::size_t i = pods.size(); i > 1; --i) std::swap(pods[i - 1], pods[random.Below(i)]);
}

// Up to 24 nodes and 192 ranks, with room for all; an eighth of the assignments are the planner's, as it costs a hundred
// times what is asked here.
Placed Draw(base::Random& random) {
  Placed out;
  FabricOf shape;
  shape.units = OneOf(random, {1, 2, 3});
  shape.nodes = OneOf(random, {4, 6, 8});
  shape.leaves = OneOf(random, {8, 8, 4, 1});
  shape.spine_groups = OneOf(random, {1, 2});
  shape.oversubscription_percent = OneOf(random, {100, 200, 400});
  if (Chance(random, 25)) shape.racks_per_unit = 2;
  out.fabric = shape.Build();
  Parallelism p = Sizes(OneOf(random, {1, 2, 4, 8}), OneOf(random, {1, 2, 4}), 1, OneOf(random, {1, 1, 2}));
  const int most = int(out.fabric.nodes.size()) * 8 / int(p.world());
  if (most < 1) p = Sizes(8, 1, 1);
  p.dp = 1 + int(random.Below(std::uint64_t(std::max(1, most))));
  if (p.dp % 2 == 0 && Chance(random, 30)) p.fsdp = 2;
  if (Chance(random, 30)) p.ep = 2;
  if (!WhyNotLaidOut(p).empty()) p.ep = 1;
  int pod = OneOf(random, {8, 8, 4, 2});
  while (p.world() % pod != 0) pod /= 2;
  out.request = Gang(p, pod);
  if (Chance(random, 50)) out.request.model = SomeModel(random);
  if (Chance(random, 12)) {
    auto state = FreeCluster(out.fabric);
    const Decision decision = PlanGang(state, out.request);
    if (const auto* plan = std::get_if<Plan>(&decision)) {
      out.pods = plan->pods;
      return out;
    }
  }
  std::vector<PodPlacement> slots;
  for (std::size_t n = 0; n < out.fabric.nodes.size(); ++n) {
    for (int first = 0; first + pod <= 8; first += pod) {
      slots.push_back({topology::NodeId(n), ((1U << pod) - 1) << first});
    }
  }
  Shuffle(random, slots);
  slots.resize(out.request.pods.size());
  out.pods = std::move(slots);
  return out;
}

void HalveOneNic(base::Random& random, Placed& placed) {
  const PodPlacement& pod = placed.pods[random.Below(placed.pods.size())];
  const auto gpu = std::size_t(std::countr_zero(pod.gpus));
  placed.fabric.nodes[std::size_t(pod.node)].uplinks[gpu].gbps /= 2;
}

TEST(Metamorphic, HalvingANicNeverMakesAnyAxisFaster) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed = Draw(random);
    // Where a link is full, one group's slower NIC leaves more of it to the slowest group.
    for (auto& leaf : placed.fabric.leaves) leaf.up_gbps = std::max(leaf.up_gbps, leaf.down_gbps);
    const Quality before = placed.Price();
    HalveOneNic(random, placed);
    const Quality after = placed.Price();
    for (const Axis axis : kPricedAxes) {
      EXPECT_GE(after.axis_micros[std::size_t(axis)], before.axis_micros[std::size_t(axis)])
          << AxisName(axis);
    }
    EXPECT_GE(after.step_micros, before.step_micros);
    EXPECT_EQ(after.leaf_crossings, before.leaf_crossings);
  }
}

TEST(Metamorphic, HalvingANicSlowsTheAxisThatCrossesIt) {
  for (const std::uint64_t seed : test::Seeds(60)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    // One unit and whole nodes: only dp leaves a node, and nothing else is in its way.
    Placed placed;
    placed.fabric = FabricOf{.units = 1, .nodes = 8}.Build();
    placed.request = Gang(Sizes(8, 1, OneOf(random, {2, 3, 4, 8})), 8);
    for (std::size_t p = 0; p < placed.request.pods.size(); ++p)
      placed.pods.push_back({topology::NodeId(p), 0xff});
    const Quality before = placed.Price();
    HalveOneNic(random, placed);
    const Quality after = placed.Price();
    EXPECT_GT(after.axis_micros[std::size_t(Axis::kDp)], before.axis_micros[std::size_t(Axis::kDp)]);
    EXPECT_EQ(after.axis_micros[std::size_t(Axis::kTp)], before.axis_micros[std::size_t(Axis::kTp)]);
  }
}

TEST(Metamorphic, CuttingAllNicsToAnEighthSlowsEveryAxisThatLeavesNvlink) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed = Draw(random);
    const Quality before = placed.Price();
    for (auto& node : placed.fabric.nodes) {
      for (auto& uplink : node.uplinks) uplink.gbps /= 8;  // half a NIC is still more than a send fills
    }
    for (auto& leaf : placed.fabric.leaves) leaf.up_gbps /= 8;
    const Quality after = placed.Price();
    for (const Axis axis : kPricedAxes) {
      const auto a = std::size_t(axis);
      EXPECT_GE(after.axis_micros[a], before.axis_micros[a]) << AxisName(axis);
      // A slower edge inside a server may be what holds the axis back.
      const auto [stride, size] = TrafficStrideOf(placed.request.parallelism, axis);
      const std::int64_t world = placed.request.parallelism.world();
      const std::int64_t edges = axis == Axis::kPp ? world / size * (size - 1) : world;
      if (before.edges[a] == edges && before.axis_micros[a] > 0) {
        EXPECT_GT(after.axis_micros[a], before.axis_micros[a]) << AxisName(axis);
      }
      if (before.edges[a] == 0) {
        EXPECT_EQ(after.axis_micros[a], before.axis_micros[a]) << AxisName(axis);
      }
    }
  }
}

TEST(Metamorphic, ALargerModelIsNeverFaster) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed = Draw(random);
    placed.request.model = SomeModel(random);
    const Quality before = placed.Price();
    Placed longer = placed, larger = placed;
    longer.request.model.seq *= 2;
    larger.request.model.params *= 2;
    const Quality with_seq = longer.Price(), with_params = larger.Price();
    for (const Axis axis : kPricedAxes) {
      EXPECT_GE(with_seq.axis_micros[std::size_t(axis)], before.axis_micros[std::size_t(axis)])
          << AxisName(axis);
      EXPECT_GE(with_params.axis_micros[std::size_t(axis)], before.axis_micros[std::size_t(axis)])
          << AxisName(axis);
    }
    const Parallelism& p = placed.request.parallelism;
    if (p.dp > 1) {
      EXPECT_GT(with_params.step_micros, before.step_micros);
    }
    if (p.tp > 1) {
      EXPECT_GT(with_seq.axis_micros[std::size_t(Axis::kTp)], before.axis_micros[std::size_t(Axis::kTp)]);
    }
  }
}

TEST(Metamorphic, OversubscriptionNeverMakesAnyAxisFaster) {
  int slower = 0, compared = 0;
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed = Draw(random);
    const Quality before = placed.Price();
    for (auto& leaf : placed.fabric.leaves) leaf.up_gbps /= OneOf(random, {1, 2, 4});
    const Quality after = placed.Price();
    for (const Axis axis : kPricedAxes) {
      EXPECT_GE(after.axis_micros[std::size_t(axis)], before.axis_micros[std::size_t(axis)])
          << AxisName(axis);
    }
    slower += after.step_micros > before.step_micros ? 1 : 0;
    ++compared;
  }
  EXPECT_TRUE(compared == 1 || slower > 0) << compared;
}

TEST(Metamorphic, AnotherGangOnTheUplinksNeverMakesAnyAxisFaster) {
  int slower = 0, compared = 0;
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed = Draw(random);
    const Quality before = placed.Price();
    for (std::size_t l = 0; l < placed.fabric.leaves.size(); ++l) {
      placed.loads.push_back(
          {topology::LeafId(l), placed.fabric.leaves[l].up_gbps * OneOf(random, {0, 1, 2}) / 2});
    }
    const Quality after = placed.Price();
    for (const Axis axis : kPricedAxes) {
      EXPECT_GE(after.axis_micros[std::size_t(axis)], before.axis_micros[std::size_t(axis)])
          << AxisName(axis);
    }
    slower += after.step_micros > before.step_micros ? 1 : 0;
    ++compared;
  }
  EXPECT_TRUE(compared == 1 || slower > 0) << compared;
}

TEST(Metamorphic, NicsDoNotChangeATpGroupInsideANode) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed;
    placed.fabric =
        FabricOf{.units = 2, .nodes = 4, .leaves = OneOf(random, {8, 1}), .oversubscription_percent = 200}
            .Build();
    const int tp = OneOf(random, {2, 4, 8});
    placed.request = Gang(Sizes(tp, OneOf(random, {1, 2}), 8 / tp * OneOf(random, {1, 2, 4})), 8);
    for (std::size_t p = 0; p < placed.request.pods.size(); ++p)
      placed.pods.push_back({topology::NodeId(p), 0xff});
    Shuffle(random, placed.pods);
    const std::int64_t before = placed.Micros(Axis::kTp);
    for (auto& node : placed.fabric.nodes) {
      for (auto& uplink : node.uplinks) uplink.gbps = OneOf(random, {0, 100, 400, 800});
    }
    for (auto& leaf : placed.fabric.leaves) leaf.up_gbps /= 8;
    EXPECT_EQ(placed.Micros(Axis::kTp), before);
    EXPECT_GT(before, 0);
  }
}

// The pods of data-parallel rank d stand where those of rank moved_to[d] stood. Whole nodes, default order.
std::vector<PodPlacement> WithReplicasMoved(const Placed& placed, const std::vector<int>& moved_to) {
  const Parallelism& p = placed.request.parallelism;
  const int nodes_of_replica = p.tp * p.cp / 8;
  std::vector<PodPlacement> out = placed.pods;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int within = int(i) % nodes_of_replica, dp = int(i) / nodes_of_replica % p.dp;
    const int stage = int(i) / nodes_of_replica / p.dp;
    out[i] = placed.pods[std::size_t((stage * p.dp + moved_to[std::size_t(dp)]) * nodes_of_replica + within)];
  }
  return out;
}

TEST(Metamorphic, ReplicasInOneUnitMayChangePlaces) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed;
    placed.fabric = FabricOf{.units = 1, .nodes = 32}.Build();
    placed.request =
        Gang(Sizes(8, OneOf(random, {1, 2, 4}), OneOf(random, {2, 3, 8}), OneOf(random, {1, 1, 2})), 8);
    if (placed.request.pods.size() > 32) continue;
    for (std::size_t p = 0; p < placed.request.pods.size(); ++p)
      placed.pods.push_back({topology::NodeId(p), 0xff});
    std::vector<int> moved_to(std::size_t(placed.request.parallelism.dp));
    std::iota(moved_to.begin(), moved_to.end(), 0);
    for (std::size_t i = moved_to.size(); i > 1; --i) std::swap(moved_to[i - 1], moved_to[random.Below(i)]);
    const Quality before = placed.Price();
    placed.pods = WithReplicasMoved(placed, moved_to);
    EXPECT_EQ(placed.Price(), before);
  }
}

TEST(Metamorphic, ARingOfReplicasOverUnitsMayStartAnywhere) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Placed placed;
    placed.fabric = FabricOf{.units = 4, .nodes = 8, .oversubscription_percent = 200}.Build();
    placed.request = Gang(Sizes(8, OneOf(random, {1, 2}), OneOf(random, {4, 7, 8, 16})), 8);
    for (std::size_t n = 0; n < placed.fabric.nodes.size(); ++n)
      placed.pods.push_back({topology::NodeId(n), 0xff});
    Shuffle(random, placed.pods);
    placed.pods.resize(placed.request.pods.size());
    const int dp = placed.request.parallelism.dp, by = 1 + int(random.Below(std::uint64_t(dp - 1)));
    std::vector<int> moved_to;
    for (int d = 0; d < dp; ++d) moved_to.push_back((d + by) % dp);
    const Quality before = placed.Price();
    placed.pods = WithReplicasMoved(placed, moved_to);
    EXPECT_EQ(placed.Price(), before);
  }
}

TEST(Metamorphic, ATpGroupOverTwoNodesIsSlowerThanInOne) {
  for (const int tp : {2, 4, 8}) {
    Placed placed;
    placed.fabric = FabricOf{.units = 1, .nodes = 2}.Build();
    placed.request = Gang(Sizes(tp, 1, 1), tp / 2);
    const std::uint32_t half = (1U << (tp / 2)) - 1;
    placed.pods = {{0, half}, {0, half << (tp / 2)}};
    const std::int64_t inside = placed.Price().step_micros;
    placed.pods = {{0, half}, {1, half << (tp / 2)}};
    EXPECT_GT(placed.Price().step_micros, inside);
  }
}

}  // namespace
}  // namespace heddle::placement
