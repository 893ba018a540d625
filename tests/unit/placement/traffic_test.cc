#include "placement/traffic.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace heddle::placement {
namespace {

// The worked case of performance anchors 3.3: 70B on 1,024 GPUs, tp 8, pp 4, dp 32, one micro-batch.
Parallelism SeventyBillion() {
  Parallelism p;
  p.tp = 8;
  p.pp = 4;
  p.dp = 32;
  return p;
}

const ModelHints kSeventyBillion{70e9, 80, 8192, 8192, 1, 1, 400};

TEST(Traffic, SendsTheBytesThatTheWorkedCaseSays) {
  const StepTraffic traffic = TrafficPerStep(SeventyBillion(), kSeventyBillion);
  EXPECT_NEAR(WireBytes(traffic.of(Axis::kTp)), 18.8e9, 0.1e9);
  EXPECT_NEAR(WireBytes(traffic.of(Axis::kDp)), 12.7e9, 0.1e9);
  EXPECT_NEAR(WireBytes(traffic.of(Axis::kPp)), 2 * 16.8e6, 0.1e6);
  EXPECT_EQ(WireBytes(traffic.of(Axis::kCp)), 0);
  EXPECT_EQ(WireBytes(traffic.of(Axis::kGang)), 0);
}

TEST(Traffic, CallsAsOftenAsTheLayersAndMicrobatchesAsk) {
  const StepTraffic traffic = TrafficPerStep(SeventyBillion(), kSeventyBillion);
  const AxisTraffic& tp = traffic.of(Axis::kTp);
  ASSERT_EQ(tp.count, 1);
  EXPECT_EQ(tp.transfers[0].collective, Collective::kAllReduce);
  EXPECT_EQ(tp.transfers[0].calls, 4 * 20);  // four a layer, 20 layers a stage, one micro-batch
  EXPECT_DOUBLE_EQ(tp.transfers[0].bytes, 8192.0 * 8192 * 2);
  EXPECT_FALSE(tp.transfers[0].overlappable());
  const AxisTraffic& dp = traffic.of(Axis::kDp);
  ASSERT_EQ(dp.count, 2);
  EXPECT_EQ(dp.transfers[0].collective, Collective::kReduceScatter);
  EXPECT_EQ(dp.transfers[1].collective, Collective::kAllGather);
  EXPECT_TRUE(dp.transfers[0].overlappable());
}

TEST(Traffic, ReducesTheReplicasOfAShardByItsPart) {
  Parallelism p;
  p.dp = 32;
  p.fsdp = 8;
  const StepTraffic traffic = TrafficPerStep(p, kSeventyBillion);
  EXPECT_EQ(traffic.of(Axis::kFsdp).ranks, 8);
  EXPECT_EQ(traffic.of(Axis::kFsdp).count, 3);
  const AxisTraffic& dp = traffic.of(Axis::kDp);
  EXPECT_EQ(dp.ranks, 4);
  ASSERT_EQ(dp.count, 1);
  EXPECT_EQ(dp.transfers[0].collective, Collective::kAllReduce);
  EXPECT_NEAR(dp.transfers[0].bytes * double(dp.transfers[0].calls), 2 * 70e9 / 8, 1e6);
}

// 6 x 70e9 x 8192 operations over 32 GPUs of 400 TFLOP/s, and a pipeline of four that one micro-batch fills badly.
TEST(Traffic, PredictsTheComputationOfAStep) {
  const double alone = 6 * 70e9 * 8192 / (32 * 400e12) * 1e6;
  EXPECT_NEAR(ComputeMicrosPerStep(SeventyBillion(), kSeventyBillion), 4 * alone, 1);
  ModelHints many = kSeventyBillion;
  many.microbatches = 16;
  EXPECT_NEAR(ComputeMicrosPerStep(SeventyBillion(), many), (16 + 3) * alone, 1);
  ModelHints silent = kSeventyBillion;
  silent.tflops = 0;
  EXPECT_EQ(ComputeMicrosPerStep(SeventyBillion(), silent), 0);
}

TEST(Traffic, HidesGradientsBehindTheLastBackwardPassAndNoFurther) {
  const Windows whole = WindowsOf(SeventyBillion(), kSeventyBillion);
  EXPECT_NEAR(whole.backward_us, 2 * whole.forward_us, 1e-6);
  const Transfer reduce{Collective::kReduceScatter, 1e9, 1, Overlap::kBackward};
  const Transfer critical{Collective::kAllReduce, 1e9, 1, Overlap::kNone};
  Windows left = whole;
  EXPECT_EQ(VisibleMicros(critical, 5000, left), 5000);
  EXPECT_DOUBLE_EQ(VisibleMicros(reduce, 5000, left), 5000.0 / 20);  // the last layer's part of it
  EXPECT_DOUBLE_EQ(VisibleMicros(reduce, 1e9, left), 1e9 - (whole.backward_us - 4750));
  EXPECT_DOUBLE_EQ(VisibleMicros(reduce, 700, left), 700);  // nothing is left to hide behind
  Windows silent = WindowsOf(SeventyBillion(), ModelHints{});
  EXPECT_EQ(VisibleMicros(reduce, 700, silent), 700);
}

TEST(Traffic, SumsToTheSameInAnyOrder) {
  const Windows whole = WindowsOf(SeventyBillion(), kSeventyBillion);
  const Transfer reduce{Collective::kReduceScatter, 1e9, 1, Overlap::kBackward};
  const auto sum = [&](std::initializer_list<double> all) {
    Windows left = whole;
    double visible = 0;
    for (const double micros : all) visible += VisibleMicros(reduce, micros, left);
    return visible;
  };
  const double most = whole.backward_us;
  EXPECT_NEAR(sum({most * 0.8, most * 0.3, most * 0.4}), sum({most * 0.4, most * 0.3, most * 0.8}), 1e-6);
  EXPECT_NEAR(sum({most, 100}), sum({100, most}), 1e-6);
}

TEST(Traffic, CountsTheStateOfAGpu) {
  Parallelism p = SeventyBillion();
  EXPECT_NEAR(StateBytesPerGpu(p, kSeventyBillion), 70e9 / 32 * (2 + 4 + 12.0 / 32), 1);
  p.cp = 2;
  EXPECT_NEAR(StateBytesPerGpu(p, kSeventyBillion), 70e9 / 32 * (2 + 4 + 12.0 / 64), 1);
  p.cp = 1;
  p.fsdp = 8;
  EXPECT_NEAR(StateBytesPerGpu(p, kSeventyBillion), 70e9 / 32 * 18 / 8, 1);
  EXPECT_EQ(StateBytesPerGpu(p, ModelHints{}), 0);
}

// DeepSeek-V3's report (arXiv 2412.19437 section 4.2): 671B parameters, 37B of a token, 8 of 256 experts, 61 layers,
// pp=16, ep=64, no tp, 2,048 GPUs.
const ModelHints kMixture{671e9, 61, 7168, 4096, 1, 0, 400, 37e9, 256, 8};

Parallelism OfTheMixture() {
  Parallelism p;
  p.pp = 16;
  p.dp = 128;
  p.ep = 64;
  return p;
}

TEST(Traffic, CountsTheExpertsOnceForEachOfTheirReplicas) {
  const Parallelism p = OfTheMixture();
  const double experts = (671e9 - 37e9) / (1 - 8.0 / 256), dense = 671e9 - experts;
  const double own_experts = experts / (64 * 16), own_dense = dense / 16;  // 639M and 1.0B
  EXPECT_NEAR(StateBytesPerGpu(p, kMixture), own_dense * (6 + 12.0 / 128) + own_experts * (6 + 12.0 / 2),
              1e3);
  const AxisTraffic dp = TrafficPerStep(p, kMixture).of(Axis::kDp);
  EXPECT_NEAR(dp.transfers[0].bytes, 4 * (own_dense + own_experts), 1e3);
  // No expert has a replica: nothing of theirs is reduced.
  Parallelism alone = p;
  alone.ep = 128;
  EXPECT_NEAR(TrafficPerStep(alone, kMixture).of(Axis::kDp).transfers[0].bytes, 4 * own_dense, 1e3);
  EXPECT_NEAR(StateBytesPerGpu(alone, kMixture), own_dense * (6 + 12.0 / 128) + own_experts / 2 * (6 + 12),
              1e3);
}

TEST(Traffic, ComputesWithTheParametersThatATokenMeets) {
  ModelHints dense = kMixture;
  dense.active = 0;
  EXPECT_NEAR(ComputeMicrosPerStep(OfTheMixture(), kMixture) / ComputeMicrosPerStep(OfTheMixture(), dense),
              37.0 / 671, 1e-9);
}

TEST(Traffic, SendsATokenToAsManyExpertsAsTheModelSays) {
  ModelHints two = kMixture;
  two.topk = 2;
  const auto bytes = [](const ModelHints& model) {
    return WireBytes(TrafficPerStep(OfTheMixture(), model).of(Axis::kEp));
  };
  EXPECT_NEAR(bytes(kMixture) / bytes(two), 4, 1e-9);
}

TEST(Traffic, SendsAsManyKeysAndValuesAsThereAreHeadsOfThem) {
  Parallelism p;
  p.cp = 4;
  ModelHints model = kSeventyBillion;
  const double guessed = WireBytes(TrafficPerStep(p, model).of(Axis::kCp));
  model.heads = 64;
  model.kvheads = 8;
  EXPECT_DOUBLE_EQ(WireBytes(TrafficPerStep(p, model).of(Axis::kCp)), guessed);  // as Llama 3
  model.kvheads = 64;
  EXPECT_DOUBLE_EQ(WireBytes(TrafficPerStep(p, model).of(Axis::kCp)), 8 * guessed);
}

// TP ~ EP >> CP > FSDP shard > DP > PP.
TEST(Traffic, KeepsTheOrderOfAxesWithoutHints) {
  Parallelism p;
  p.tp = p.cp = p.pp = p.fsdp = p.ep = 2;
  p.dp = 4;
  const StepTraffic traffic = TrafficPerStep(p, {});
  const auto of = [&](Axis axis) { return WireBytes(traffic.of(axis)); };
  EXPECT_NEAR(of(Axis::kTp), of(Axis::kEp), 1);
  EXPECT_GT(of(Axis::kTp), 2 * of(Axis::kCp));
  EXPECT_GT(of(Axis::kCp), of(Axis::kFsdp));
  EXPECT_GT(of(Axis::kFsdp), of(Axis::kDp));
  EXPECT_GT(of(Axis::kDp), of(Axis::kPp));
}

GroupShape Hopper(int domains, int local) {
  GroupShape shape;
  shape.ranks = domains * local;
  shape.domains = domains;
  shape.ranks_per_domain = local;
  shape.nvlink_gbs = 369;
  shape.nvlink_generation = 4;
  shape.nvswitch = true;
  shape.net_gbs = 48.5;
  return shape;
}

// Anchors 3.3: sharding 70B over 1,024 GPUs takes five times what a shard inside the server and replicas
// between take; tensor parallelism over two servers' NICs costs more than the computation it shares.
TEST(Traffic, PricesTheWorkedCasesChoices) {
  ModelHints model = kSeventyBillion;
  model.tflops = 0;
  Windows none;
  Parallelism full, hybrid;
  full.dp = full.fsdp = hybrid.dp = 1024;
  hybrid.fsdp = 8;
  const double flat = AxisMicros(TrafficPerStep(full, model).of(Axis::kFsdp), Hopper(128, 8), none);
  const StepTraffic traffic = TrafficPerStep(hybrid, model);
  const double inside = AxisMicros(traffic.of(Axis::kFsdp), Hopper(1, 8), none);
  const double between = AxisMicros(traffic.of(Axis::kDp), Hopper(128, 1), none);
  EXPECT_NEAR(inside / 1e6, 1.05, 0.15);
  EXPECT_NEAR(between / 1e6, 0.85, 0.1);  // 0.72 of bytes, the rest latency
  EXPECT_GT(flat, inside);

  const AxisTraffic tp = TrafficPerStep(SeventyBillion(), model).of(Axis::kTp);
  const double one_server = AxisMicros(tp, Hopper(1, 8), none);
  EXPECT_NEAR(one_server / 1000, 45, 8);
  EXPECT_GT(AxisMicros(tp, Hopper(8, 1), none), 7 * one_server);
}

TEST(Traffic, HidesWhatItCanOfAnAxis) {
  Windows none, left = WindowsOf(SeventyBillion(), kSeventyBillion);
  const AxisTraffic dp = TrafficPerStep(SeventyBillion(), kSeventyBillion).of(Axis::kDp);
  const double whole = AxisMicros(dp, Hopper(32, 1), none), seen = AxisMicros(dp, Hopper(32, 1), left);
  EXPECT_LT(seen, 0.3 * whole);
  EXPECT_GE(seen, whole / 20 * (1 - 1e-12));
}

}  // namespace
}  // namespace heddle::placement
