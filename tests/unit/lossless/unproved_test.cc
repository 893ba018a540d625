#include "lossless/unproved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::lossless {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Unproved, IsWhatLeavesOpenWhetherSendersSlowDown) {
  const Gap ecn{Setting::kEcn, "no switch"}, tos{Setting::kTos, "no rdma_cm"};
  EXPECT_THAT(Unproved({{Setting::kWatchdogMs, "none"}, ecn, tos, {Setting::kDcqcn, "none"}}),
              ElementsAre(ecn, tos));
  EXPECT_THAT(Unproved({{Setting::kWatchdogMs, "none"}, {Setting::kBufferBytes, "none"}}), IsEmpty())
      << "a watchdog has a word of its own, and buffers are the driver's";
}

TEST(Unproved, SaysAReasonOnceForAllThatHaveIt) {
  EXPECT_EQ(UnprovedText({{Setting::kEcn, "no files"},
                          {Setting::kCnpDscp, "no files"},
                          {Setting::kCnpPriority, "no files"},
                          {Setting::kTos, "no rdma_cm"}}),
            "ecn, cnpDscp, cnpPriority (no files), tos (no rdma_cm)");
  EXPECT_EQ(UnprovedText({}), "");
}

}  // namespace
}  // namespace heddle::lossless
