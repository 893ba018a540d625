// Steps that people measured, against what layouts.h predicts for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "placement/layouts.h"
#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

topology::Fabric FabricOfLine(const std::string& line) {
  auto made = topology::ParseSynthetic(line);
  EXPECT_TRUE(made) << line;
  return topology::BuildFabric(std::move(made->nodes), made->declaration);
}

// Of one layout on a cluster of its own. Nobody's memory leaves it out, since it did run.
double StepMicros(const topology::Fabric& fabric, std::string_view gpu, const Parallelism& parallelism,
                  const ModelHints& model, std::int64_t batch, int most_virtual_stages) {
  const LayoutLimits limits{.world = parallelism.world(),
                            .global_batch = batch,
                            .largest_domain = 8,
                            .tflops = AchievedTflops(gpu),
                            .most_virtual_stages = most_virtual_stages};
  Layouts layouts = EnumerateLayouts({}, model, limits);
  std::erase_if(layouts.legal, [&](const Layout& one) { return one.parallelism != parallelism; });
  EXPECT_EQ(layouts.legal.size(), 1u);
  GangRequest request = Gang(parallelism, 8);
  request.model = model;
  request.model.tflops = int(limits.tflops);
  ClusterState state = FreeCluster(fabric);
  const Suggestions found = FindFastest(state, request, layouts, 1);
  EXPECT_EQ(found.fastest.size(), 1u);
  return found.fastest.empty() ? 1 : found.fastest.front().step_micros;
}

// Llama 3 405B on H100 (arXiv 2407.21783, table 4: TFLOP/s per GPU, 16 M tokens a step), interleaved and without
// recompute (section 3.3.2). The rate of the H100 is fitted to the first row. The third counts attention's
// operations; keys and values have 8 heads of 128, and hints that leave out heads and kvheads stand for 16 (one in eight),
// so CP's traffic is counted as twice what it is.
TEST(MeasuredSteps, OfLlama3OnUpTo16384Gpus) {
  constexpr const char* kEight =
      "su:64 node:16 gpu:8 nic:8 rail:8 spine:8 rate:400 transport:roce machine:h100";
  constexpr const char* kSixteen =
      "su:128 node:16 gpu:8 nic:8 rail:8 spine:8 rate:400 transport:roce machine:h100";
  struct Row {
    const char* cluster;
    Parallelism sizes;
    int seq;
    double tflops, within;
  };
  const Row rows[] = {{kEight, Sizes(8, 16, 64), 8192, 430, 0.05},
                      {kSixteen, Sizes(8, 16, 128), 8192, 400, 0.05},
                      {kSixteen, Sizes(8, 16, 8, 16), 131072, 380, 0.12}};
  for (const Row& row : rows) {
    const ModelHints model{.params = 405e9, .layers = 126, .hidden = 16384, .seq = row.seq, .microbatch = 1};
    const std::int64_t tokens = std::int64_t{2048} * 8192;
    const double attention = row.seq > 8192 ? 6.0 * 126 * 16384 * row.seq : 0;
    const double micros =
        StepMicros(FabricOfLine(row.cluster), "H100", row.sizes, model, tokens / row.seq, 64);
    const double shown = (6 * 405e9 + attention) * double(tokens) / double(row.sizes.world()) / micros / 1e6;
    std::printf("Llama 3 405B, %6ld GPUs, cp=%2d: %.0f TFLOP/s predicted, %.0f measured\n",
                long(row.sizes.world()), row.sizes.cp, shown, row.tflops);
    EXPECT_NEAR(shown / row.tflops, 1, row.within);
  }
}

struct Run {
  int tp, pp, microbatch;
  double seconds;
};

// The median of |predicted / measured - 1|, each printed.
double MedianError(const char* name, const ModelHints& model, const std::vector<Run>& runs) {
  const topology::Fabric fabric = FabricOfLine("su:1 node:8 gpu:8 nic:8 rail:8 rate:200 machine:a100");
  std::vector<double> errors;
  for (const Run& run : runs) {
    ModelHints hints = model;
    hints.microbatch = run.microbatch;
    const Parallelism sizes = Sizes(run.tp, run.pp, 64 / run.tp / run.pp);
    const double seconds = StepMicros(fabric, "A100", sizes, hints, 2048, 1) / 1e6;
    std::printf("%s tp=%d pp=%d microbatch=%d: %6.1f s predicted, %6.1f measured\n", name, run.tp, run.pp,
                run.microbatch, seconds, run.seconds);
    errors.push_back(std::abs(seconds / run.seconds - 1));
  }
  std::nth_element(errors.begin(), errors.begin() + std::ptrdiff_t(errors.size() / 2), errors.end());
  return errors[errors.size() / 2];
}

// 64 A100 of 80 GiB in nodes of eight, 2,048 sequences of 2,048 tokens a step, bf16, sequence parallelism,
// FlashAttention 2, no recompute (arXiv 2311.05610; the runs are in the authors' repository,
// Aleph-Alpha/NeurIPS-WANT-submission-efficient-parallelization-layouts, data/seqpara). The A100's rate and
// kLayerMicros are fitted to them.
TEST(MeasuredSteps, OfTheRunsOn64A100ThatWereFitted) {
  const ModelHints middle{.params = 32.5e9, .layers = 60, .hidden = 6656, .seq = 2048};
  const ModelHints large{.params = 65.2e9, .layers = 80, .hidden = 8192, .seq = 2048};
  EXPECT_LT(MedianError("30B", middle,
                        {{1, 4, 1, 72.60},
                         {2, 2, 1, 76.84},
                         {2, 4, 1, 76.58},
                         {2, 4, 2, 72.66},
                         {4, 1, 1, 89.33},
                         {4, 1, 2, 85.21},
                         {4, 2, 1, 85.47},
                         {4, 2, 2, 81.06},
                         {4, 4, 1, 87.68},
                         {4, 4, 2, 82.22}}),
            0.06);
  EXPECT_LT(MedianError("65B", large,
                        {{2, 4, 1, 147.02},
                         {2, 8, 1, 149.97},
                         {4, 2, 1, 162.32},
                         {4, 4, 1, 159.57},
                         {4, 4, 2, 149.92},
                         {4, 8, 1, 166.36},
                         {4, 8, 2, 156.40},
                         {8, 2, 1, 192.45},
                         {8, 2, 2, 178.64},
                         {8, 4, 1, 198.11},
                         {8, 4, 2, 179.87},
                         {8, 8, 1, 201.44},
                         {8, 8, 2, 186.54}}),
            0.06);
}

// The same work, and nothing is fitted to it. Another cluster: without sequence parallelism, tp=1 the same thing.
TEST(MeasuredSteps, OfTheRunsOn64A100ThatWereNotFitted) {
  const ModelHints small{.params = 13e9, .layers = 40, .hidden = 5120, .seq = 2048};
  EXPECT_LT(MedianError("13B", small,
                        {{1, 1, 1, 26.54},
                         {1, 2, 1, 31.06},
                         {1, 2, 2, 33.11},
                         {2, 1, 1, 31.29},
                         {2, 1, 2, 29.70},
                         {2, 2, 1, 34.84},
                         {2, 2, 2, 35.05},
                         {2, 2, 4, 37.57}}),
            0.12);
}

}  // namespace
}  // namespace heddle::placement
