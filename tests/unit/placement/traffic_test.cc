#include "placement/traffic.h"

#include <gtest/gtest.h>

#include "placement/cost.h"

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

// Every cut of 64 ranks, with and without hints, against the sums that the planner weighed axes by before.
TEST(Traffic, SendsAsManyBytesAsItsParts) {
  const ModelHints model{70e9, 80, 8192, 8192, 2, 6, 0};
  for (const ModelHints& hints : {ModelHints{}, model}) {
    for (const int tp : {1, 2, 8}) {
      for (const int cp : {1, 2}) {
        for (const int fsdp : {0, 2, 4}) {
          Parallelism p{.tp = tp, .cp = cp, .dp = 4, .pp = 2, .ep = 2, .fsdp = fsdp};
          const AxisBytes sums = BytesPerStep(p, hints);
          const StepTraffic traffic = TrafficPerStep(p, hints);
          for (int a = 0; a < kAxisCount; ++a) {
            EXPECT_NEAR(WireBytes(traffic.axes[std::size_t(a)]), sums.bytes[std::size_t(a)],
                        1e-9 * sums.bytes[std::size_t(a)])
                << AxisName(Axis(a)) << " tp=" << tp << " cp=" << cp << " fsdp=" << fsdp;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle::placement
