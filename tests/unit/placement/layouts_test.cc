#include "placement/layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

// Small enough to fit anywhere: 1,024 = 8 heads of 128.
const ModelHints kSmall{.params = 1e9, .layers = 4, .hidden = 1024, .seq = 2048, .microbatch = 1};
// Llama 3 405B (arXiv 2407.21783, table 3).
const ModelHints kLlama{.params = 405e9, .layers = 126, .hidden = 16384, .seq = 8192, .microbatch = 1};

LayoutLimits Limits(std::int64_t world, std::int64_t batch, int domain = 8) {
  return {
      .world = world, .global_batch = batch, .largest_domain = domain, .gpu_memory_gib = 80, .tflops = 400};
}

std::vector<std::array<int, 4>> SizesOf(const Layouts& layouts) {
  std::vector<std::array<int, 4>> sizes;
  for (const Layout& layout : layouts.legal) {
    const Parallelism& p = layout.parallelism;
    sizes.push_back({p.tp, p.cp, p.pp, p.dp});
  }
  return sizes;
}

const Layout* Find(const Layouts& layouts, const Parallelism& sizes) {
  const auto found = std::find_if(layouts.legal.begin(), layouts.legal.end(),
                                  [&](const Layout& layout) { return layout.parallelism == sizes; });
  return found == layouts.legal.end() ? nullptr : &*found;
}

TEST(EnumerateLayouts, CountsTheWaysToCutFourGpusByHand) {
  // 4 = 2·2: ten ways to deal two twos to four axes, and none fails.
  const Layouts layouts = EnumerateLayouts({}, kSmall, Limits(4, 4));
  EXPECT_THAT(SizesOf(layouts),
              ElementsAre(std::array{1, 1, 1, 4}, std::array{1, 1, 2, 2}, std::array{1, 1, 4, 1},
                          std::array{1, 2, 1, 2}, std::array{1, 2, 2, 1}, std::array{1, 4, 1, 1},
                          std::array{2, 1, 1, 2}, std::array{2, 1, 2, 1}, std::array{2, 2, 1, 1},
                          std::array{4, 1, 1, 1}));
  EXPECT_EQ(layouts.counts, (LayoutCounts{.all = 10, .legal = 10}));
}

TEST(EnumerateLayouts, NamesTheFirstRuleThatALayoutBreaks) {
  // 6 GPUs: tp = 6 fits no domain of 4 (1 cut) and tp = 3 divides no 8 heads (3). Of the 9 cuts with tp = 1 and the
  // 3 with tp = 2, pp = 2, 3 or 6 divides neither 5 nor 7 layers (5 and 1), cp = 3 or 6 no 2,048 (2 and 1), and
  // dp = 3 or 6 no batch of 4 (2 and 1).
  ModelHints five = kSmall;
  five.layers = 5;
  const Layouts layouts = EnumerateLayouts({}, five, Limits(6, 4, 4));
  EXPECT_EQ(layouts.counts,
            (LayoutCounts{.all = 16, .domain = 1, .heads = 3, .layers = 6, .sequence = 3, .batch = 3}));
}

TEST(EnumerateLayouts, LeavesALayerOutOfTheFirstAndTheLastStage) {
  // Llama 3 405B: 126 layers in 16 stages, as 7, 14 times 8, and 7; the stages of 8 set the pace.
  const Layouts layouts = EnumerateLayouts({}, kLlama, Limits(16384, 2048));
  const Layout* uneven = Find(layouts, Sizes(8, 16, 128));
  ASSERT_NE(uneven, nullptr);
  const double even = (6 * 405e9 + 6.0 * 126 * 16384 * 8192) * 2048 * 8192 / (16384 * 400e12) * 1e6;
  const Schedule& plain = uneven->schedules.at(0);
  EXPECT_EQ(uneven->stage_layers, 8);
  const double again = 1 + plain.recomputed_layers / 24.0;
  EXPECT_THAT(plain.compute_micros, DoubleNear(even * again * 128 / 126, 1));
  EXPECT_EQ(Find(layouts, Sizes(8, 32, 64)) != nullptr, true) << "128 / 32 = 4";
  EXPECT_EQ(Find(layouts, Sizes(8, 256, 8)), nullptr);
}

TEST(EnumerateLayouts, SplitsTheBatchOverTheReplicas) {
  const Layouts layouts = EnumerateLayouts({}, kSmall, Limits(8, 32));
  for (const Layout& layout : layouts.legal) {
    EXPECT_EQ(layout.microbatches * layout.parallelism.dp * kSmall.microbatch, 32);
    const Schedule& plain = layout.schedules.at(0);
    EXPECT_EQ(plain.virtual_stages, 1);
    EXPECT_DOUBLE_EQ(plain.bubble_micros, (plain.compute_micros + plain.fixed_micros) *
                                              (layout.parallelism.pp - 1) / layout.microbatches);
    // Four layers, and a fixed part of each for every microbatch of the stage that holds it.
    EXPECT_DOUBLE_EQ(plain.fixed_micros, kLayerMicros * 4 / layout.parallelism.pp * layout.microbatches);
  }
}

TEST(EnumerateLayouts, InterleavesWhereMegatronCan) {
  // 8 layers on 4 GPUs, 8 sequences. pp=4: two layers a stage, and 8 microbatches are two rounds of 4: each stage may
  // hold 2 parts, and with them 4 + 3/2 passes instead of 4. pp=2, dp=2: four layers, 2 or 4 parts, 4 microbatches.
  ModelHints eight = kSmall;
  eight.layers = 8;
  const Layouts layouts = EnumerateLayouts({}, eight, Limits(4, 8));
  const double element = 2048.0 * 1024;
  const Layout* four = Find(layouts, Sizes(1, 4, 1));
  ASSERT_NE(four, nullptr);
  EXPECT_THAT(four->schedules.at(0).memory_bytes, DoubleNear(1e9 / 4 * 18 + 34 * 2 * 4 * element, 1));
  ASSERT_EQ(four->schedules.size(), 2u);
  EXPECT_EQ(four->schedules[1].virtual_stages, 2);
  EXPECT_THAT(four->schedules[1].memory_bytes, DoubleNear(1e9 / 4 * 18 + 34 * 2 * 5.5 * element, 1));
  const Layout* two = Find(layouts, Sizes(1, 2, 2));
  ASSERT_NE(two, nullptr);
  ASSERT_EQ(two->schedules.size(), 3u);
  EXPECT_EQ(two->schedules[2].virtual_stages, 4);
  EXPECT_DOUBLE_EQ(two->schedules[2].bubble_micros * 4, two->schedules[0].bubble_micros);
  EXPECT_EQ(Find(layouts, Sizes(1, 1, 4))->schedules.size(), 1u) << "no pipeline";
  // Six microbatches are no rounds of four.
  EXPECT_EQ(Find(EnumerateLayouts({}, eight, Limits(4, 6)), Sizes(1, 4, 1))->schedules.size(), 1u);
  LayoutLimits plain = Limits(4, 8);
  plain.most_virtual_stages = 1;
  EXPECT_EQ(Find(EnumerateLayouts({}, eight, plain), Sizes(1, 4, 1))->schedules.size(), 1u);
}

TEST(EnumerateLayouts, LosesByCuttingALayerWhatTheLayersCostAnyway) {
  // The same operations, and twice the passes over each layer: one microbatch of one replica instead of two.
  const Layouts layouts = EnumerateLayouts({}, kSmall, Limits(2, 2));
  const Layout *cut = Find(layouts, Sizes(2, 1, 1)), *whole = Find(layouts, Sizes(1, 1, 2));
  const Layout* context = Find(layouts, Sizes(1, 1, 1, 2));
  ASSERT_TRUE(cut != nullptr && whole != nullptr && context != nullptr);
  EXPECT_DOUBLE_EQ(cut->schedules[0].compute_micros, whole->schedules[0].compute_micros);
  EXPECT_DOUBLE_EQ(cut->schedules[0].fixed_micros - whole->schedules[0].fixed_micros, 4 * kLayerMicros);
  EXPECT_DOUBLE_EQ(context->schedules[0].fixed_micros, cut->schedules[0].fixed_micros);
}

TEST(EnumerateLayouts, CountsMemoryAndWorkAsTheLiterature) {
  // 576 GPUs, tp=8, pp=9, dp=8, 64 microbatches: 405e9·(6 + 12/8)/72 bytes of state, and 14 layers of 9 passes would
  // hold 34·8192·16384/8 bytes each, 72 GB. 77.3 GB (90 % of 80 GiB) leave 35.1 GB: (34·14 - 32·r)·9 + 34 elements of
  // 16.8 MB, so r = 8 layers of each stage are computed again (7 would need 38.6 GB, 8 need 33.8).
  const Layouts layouts = EnumerateLayouts({}, kLlama, Limits(576, 512));
  const Layout* layout = Find(layouts, Sizes(8, 9, 8));
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(layout->microbatches, 64);
  const Schedule& plain = layout->schedules.at(0);
  EXPECT_EQ(plain.recomputed_layers, 8);
  const double element = 8192.0 * 16384 / 8;
  EXPECT_THAT(plain.memory_bytes, DoubleNear(405e9 * 7.5 / 72 + ((34 * 6 + 2 * 8) * 9 + 34) * element, 1));
  const double work = (6 + 2 * 8.0 / 14) * (405e9 + 126.0 * 16384 * 8192) * 512 * 8192;
  EXPECT_THAT(plain.compute_micros, DoubleNear(work / (576 * 400e12) * 1e6, 1));
  EXPECT_THAT(plain.fixed_micros, DoubleNear(kLayerMicros * (14 + 8.0 / 3) * 64, 1));
  // 405 GB of gradients and weights on one GPU is no layout.
  EXPECT_EQ(Find(layouts, Sizes(1, 1, 576)), nullptr);
  EXPECT_GT(layouts.counts.memory, 0);
}

TEST(EnumerateLayouts, LeavesMemoryAloneWhereNobodyKnowsIt) {
  LayoutLimits limits = Limits(576, 576);
  limits.gpu_memory_gib = 0;
  const Layouts layouts = EnumerateLayouts({}, kLlama, limits);
  EXPECT_EQ(layouts.counts.memory, 0);
  ASSERT_NE(Find(layouts, Sizes(1, 1, 576)), nullptr);
  EXPECT_EQ(Find(layouts, Sizes(1, 1, 576))->schedules.at(0).recomputed_layers, 0);
}

TEST(EnumerateLayouts, KeepsTheExpertLayoutWhereItFits) {
  Parallelism like;
  like.ep = 4;
  const Layouts layouts = EnumerateLayouts(like, kSmall, Limits(8, 8));
  ASSERT_FALSE(layouts.legal.empty());
  for (const Layout& layout : layouts.legal) {
    EXPECT_EQ(layout.parallelism.ep, 4);
    EXPECT_EQ(WhyNotLaidOut(layout.parallelism), "");
  }
  EXPECT_GT(layouts.counts.experts, 0);
}

TEST(EnumerateLayouts, OnRandomWorldsTellsEveryCutFromTheOthers) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::int64_t world = 1 + std::int64_t(random.Below(400));
    ModelHints model = kSmall;
    model.params = double(1 + random.Below(100)) * 1e9;
    model.layers = 1 + int(random.Below(130));
    model.hidden = 128 * (1 + int(random.Below(130)));
    const LayoutLimits limits =
        Limits(world, 1 + std::int64_t(random.Below(1000)), 1 + int(random.Below(72)));
    const Layouts layouts = EnumerateLayouts({}, model, limits);
    std::int64_t all = 0;
    for (std::int64_t a = 1; a <= world; ++a) {
      for (std::int64_t b = 1; a * b <= world; ++b) {
        for (std::int64_t c = 1; a * b * c <= world; ++c) all += world % (a * b * c) == 0 ? 1 : 0;
      }
    }
    const LayoutCounts& counts = layouts.counts;
    EXPECT_EQ(counts.all, all);
    EXPECT_EQ(all, counts.domain + counts.heads + counts.layers + counts.sequence + counts.batch +
                       counts.experts + counts.memory + counts.legal);
    for (const Layout& layout : layouts.legal) {
      ASSERT_FALSE(layout.schedules.empty());
      EXPECT_EQ(layout.schedules[0].virtual_stages, 1);
      for (const Schedule& one : layout.schedules) {
        EXPECT_EQ(layout.stage_layers % one.virtual_stages, 0);
        EXPECT_LE(one.memory_bytes, 0.9 * 80 * (1 << 30));
        EXPECT_LE(one.recomputed_layers, layout.stage_layers);
        EXPECT_GE(one.recomputed_layers, layout.schedules[0].recomputed_layers) << "interleaving holds more";
        // One layer less would not have fitted: it holds 32 bytes of each element and pass more.
        const Parallelism& p = layout.parallelism;
        const double element = double(model.seq) * model.hidden / (double(p.tp) * p.cp);
        const double passes = one.virtual_stages == 1 ? std::min(p.pp, layout.microbatches)
                                                      : p.pp + (p.pp - 1.0) / one.virtual_stages;
        const double one_less = one.memory_bytes + 32 * passes * element;
        EXPECT_TRUE(one.recomputed_layers < 2 || one_less > 0.9 * 80 * (1 << 30));
      }
    }
    auto sizes = SizesOf(layouts);
    EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
    EXPECT_EQ(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const auto& [tp, cp, pp, dp] : sizes) {
      EXPECT_EQ(std::int64_t(tp) * cp * pp * dp, world);
      EXPECT_LE(tp, limits.largest_domain);
      EXPECT_TRUE(model.layers % pp == 0 || (model.layers + 2) % pp == 0);
      EXPECT_EQ(limits.global_batch % dp, 0);
    }
  }
}

TEST(AchievedTflops, KnowsTheModelsByTheirDriversNames) {
  EXPECT_EQ(AchievedTflops("NVIDIA H100 80GB HBM3"), 605);
  EXPECT_EQ(AchievedTflops("NVIDIA A100-SXM4-80GB"), 200);
  EXPECT_GT(AchievedTflops("NVIDIA GB200"), AchievedTflops("NVIDIA B200"));
  EXPECT_EQ(AchievedTflops("Abacus"), 0);
}

// What FindFastest would find without its bound.
TEST(FindFastest, LosesNothingByTheLayoutsItDoesNotPrice) {
  for (const int taken : {0, 3}) {
    const topology::Fabric fabric = FabricOf{.units = 2, .nodes = 4}.Build();
    auto nodes = AllFree(fabric);
    for (int n = 0; n < taken; ++n) nodes[std::size_t(3 * n)].free_gpus = 0;
    ClusterState state = Cluster(fabric, nodes);
    ModelHints model = kSmall;
    model.params = 30e9;
    GangRequest request = Gang(Sizes(8, 1, 4), 8);
    request.model = model;
    const Layouts layouts = EnumerateLayouts({}, model, Limits(32, 32));
    const Suggestions fast = FindFastest(state, request, layouts, 5);
    const Suggestions all = FindFastest(state, request, layouts, int(layouts.legal.size()));
    EXPECT_EQ(all.skipped, 0);
    EXPECT_GT(fast.skipped, 0) << "the bound left nothing out";
    EXPECT_EQ(fast.priced + fast.skipped, int(layouts.legal.size()));
    ASSERT_EQ(fast.fastest.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(fast.fastest[i], all.fastest[i]) << i;
    for (const Suggestion& one : all.fastest) {
      request.parallelism = one.layout.parallelism;
      EXPECT_THAT(Faults(state, request, one.plan), Each(std::string())) << one.layout.parallelism.tp;
      EXPECT_GE(one.bubble_micros, one.schedule.bubble_micros);
      EXPECT_GE(one.communication_micros, double(one.plan.quality.step_micros));
      EXPECT_DOUBLE_EQ(one.step_micros, one.schedule.compute_micros + one.schedule.fixed_micros +
                                            one.bubble_micros + one.communication_micros);
    }
  }
}

TEST(FindFastest, PutsSlowLinksToUseForWhatIsSmall) {
  // With a hundredth of the bandwidth between nodes, gradients cost more than a pipeline does.
  const auto best_on = [](int gbps) {
    ClusterState state = FreeCluster(FabricOf{.units = 1, .nodes = 4, .gbps = gbps}.Build());
    GangRequest request = Gang(Sizes(8, 1, 4), 8);
    request.model = kSmall;
    request.model.params = 30e9;
    return FindFastest(state, request, EnumerateLayouts({}, request.model, Limits(32, 512)), 1)
        .fastest.at(0)
        .layout.parallelism;
  };
  EXPECT_LT(best_on(4).dp, best_on(400).dp);
}

TEST(FindFastest, InterleavesAsLongAsTheSendsCostLess) {
  ModelHints model{.params = 8e9, .layers = 32, .hidden = 4096, .seq = 8192, .microbatch = 1};
  const auto timed = [&](int gbps) {
    ClusterState state = FreeCluster(FabricOf{.units = 1, .nodes = 8, .gbps = gbps}.Build());
    GangRequest request = Gang(Sizes(8, 8, 1), 8);
    request.model = model;
    Layouts layouts = EnumerateLayouts({}, model, Limits(64, 16));
    std::erase_if(layouts.legal, [](const Layout& one) { return one.parallelism != Sizes(8, 8, 1); });
    return FindFastest(state, request, layouts, 1).fastest.at(0);
  };
  // Four layers a stage: 1, 2 or 4 parts.
  const Suggestion fast = timed(400), slow = timed(1);
  EXPECT_EQ(fast.schedule.virtual_stages, 4);
  EXPECT_EQ(slow.schedule.virtual_stages, 1) << "a wait is cheaper than four times the sends";
  EXPECT_GT(fast.schedule.memory_bytes, slow.schedule.memory_bytes);
  const double tp = double(fast.plan.quality.axis_micros[std::size_t(Axis::kTp)]);
  EXPECT_NEAR(fast.bubble_micros,
              (fast.schedule.compute_micros + fast.schedule.fixed_micros + tp) * 7 / 16 / 4, 1);
  const double pp = double(fast.plan.quality.axis_micros[std::size_t(Axis::kPp)]);
  EXPECT_NEAR(fast.communication_micros, tp + 4 * pp, 1);
}

TEST(FindFastest, SaysWhyNothingHasAPlace) {
  ClusterState state = FreeCluster(FabricOf{.units = 1, .nodes = 2}.Build());
  GangRequest request = Gang(Sizes(8, 1, 4), 8);
  request.model = kSmall;
  const Layouts layouts = EnumerateLayouts({}, kSmall, Limits(32, 32));
  const Suggestions none = FindFastest(state, request, layouts, 5);
  EXPECT_TRUE(none.fastest.empty());
  EXPECT_EQ(none.unplaced, int(layouts.legal.size()));
  EXPECT_EQ(none.refusal.reason, RefusalReason::kTooLargeForFabric) << none.refusal.sentence;
}

}  // namespace
}  // namespace heddle::placement
