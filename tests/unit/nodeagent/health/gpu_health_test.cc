// Who is unhealthy at once and healthy again only after a while, and what of that lives through a restart.
#include "nodeagent/health/gpu_health.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "tests/support/builders.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr base::WallTime kThen{seconds(1'800'000'000)};  // 2027-01-15T08:00:00Z
const std::string kLost = "the driver has lost it, so it fell off the bus: power-cycle the node";

class GpuHealthTest : public testing::Test {
 protected:
  GpuHealthTest() {
    seen_.boot_id = "11111111-0000-4000-8000-000000000001";
    seen_.node = test::NodeNamed("node-1").Gpus(8);
    for (topology::Gpu& gpu : seen_.node.gpus) {
      gpu.pci = "0000:0" + std::to_string(gpu.index) + ":00.0";
      gpu.uuid = "GPU-" + std::to_string(gpu.index);
    }
  }

  // A minute later, GPU 3 has this fault; empty = none. What is published of it.
  topology::Gpu Look(const std::string& fault) {
    Observation seen = seen_;
    seen.node.gpus[3].healthy = fault.empty();
    seen.node.gpus[3].unhealthy_reason = fault;
    return LookAt(seen).node.gpus.at(3);
  }
  Observation LookAt(Observation seen) {
    passed_ += minutes(1);
    health_.Look(seen, base::MonotonicTime(hours(1)) + passed_, kThen + passed_);
    health_.Apply(seen);
    return seen;
  }
  // Another agent, which has read what this one published.
  void Restart(const topology::Gpu& published) {
    crds::NodeTopologyStatus status;
    status.boot_id = seen_.boot_id;
    status.node = seen_.node;
    status.node.gpus[3] = published;
    health_ = GpuHealth();
    health_.Restore(status);
  }

  Observation seen_;
  GpuHealth health_;
  minutes passed_{0};
};

TEST_F(GpuHealthTest, LeavesAHealthyGpuAsItIs) {
  EXPECT_EQ(LookAt(seen_), seen_);
  EXPECT_EQ(LookAt(seen_), seen_);
}

TEST_F(GpuHealthTest, IsBadAtOnceAndGoodOnlyAfterAQuietTime) {
  EXPECT_TRUE(Look("").healthy);
  const topology::Gpu bad = Look(kLost);
  EXPECT_FALSE(bad.healthy);
  EXPECT_EQ(bad.unhealthy_reason, kLost);
  for (int minute = 0; minute < 5; ++minute) {
    const topology::Gpu waits = Look("");
    EXPECT_FALSE(waits.healthy) << minute;
    EXPECT_EQ(waits.unhealthy_reason,
              kLost + " (no fault since 2027-01-15T08:03:00Z: healthy again after 5 min of that)")
        << minute;
  }
  const topology::Gpu good = Look("");
  EXPECT_TRUE(good.healthy);
  EXPECT_EQ(good.unhealthy_reason, "");
}

TEST_F(GpuHealthTest, DoesNotTakeOneLongPauseForSeveralLooks) {
  Look(kLost);
  Look("");
  passed_ += hours(1);
  EXPECT_FALSE(Look("").healthy) << "two looks";
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, JudgesEachGpuForItself) {
  Look(kLost);
  const Observation seen = LookAt(seen_);
  for (const topology::Gpu& gpu : seen.node.gpus) EXPECT_EQ(gpu.healthy, gpu.index != 3) << gpu.index;
}

TEST_F(GpuHealthTest, KeepsAGpuAwayThatAlternatesWithEachLookAndSaysItInFewWords) {
  Look("");
  std::set<std::string> reasons;
  for (int i = 0; i < 60; ++i) {
    const topology::Gpu gpu = Look(i % 2 == 0 ? kLost : "");
    EXPECT_FALSE(gpu.healthy) << i;
    if (i >= 4) {
      EXPECT_THAT(gpu.unhealthy_reason, AllOf(StartsWith(std::string(kGpuFlaps)), HasSubstr(kLost))) << i;
      reasons.insert(gpu.unhealthy_reason);
    }
  }
  EXPECT_THAT(reasons, testing::ElementsAre(
                           "it flaps, 12 failures in 1 h, since 2027-01-15T08:06:00Z, the last: " + kLost,
                           "it flaps, 24 failures in 1 h, since 2027-01-15T08:06:00Z, the last: " + kLost,
                           "it flaps, 3 failures in 1 h, since 2027-01-15T08:06:00Z, the last: " + kLost,
                           "it flaps, 6 failures in 1 h, since 2027-01-15T08:06:00Z, the last: " + kLost));
}

TEST_F(GpuHealthTest, BelievesAGpuThatFlappedAfterHalfAnHour) {
  for (int i = 0; i < 3; ++i) {
    Look(kLost);
    Look("");
  }
  // The last look was the first good one.
  for (int minute = 1; minute < 30; ++minute) EXPECT_FALSE(Look("").healthy) << minute;
  EXPECT_TRUE(Look("").healthy);
  EXPECT_EQ(Look(kLost).unhealthy_reason, kLost) << "it begins anew";
}

TEST_F(GpuHealthTest, CountsFailuresThatHealedInBetween) {
  for (int failure = 0; failure < 2; ++failure) {
    EXPECT_EQ(Look(kLost).unhealthy_reason, kLost);
    for (int minute = 0; minute < 10; ++minute) Look("");
    EXPECT_TRUE(Look("").healthy);
  }
  EXPECT_THAT(Look(kLost).unhealthy_reason, StartsWith(std::string(kGpuFlaps)));
}

TEST_F(GpuHealthTest, DoesNotCallAGpuFlappingThatFailsNowAndThen) {
  for (int failure = 0; failure < 5; ++failure) {
    EXPECT_EQ(Look(kLost).unhealthy_reason, kLost) << failure;
    for (int minute = 0; minute < 40; ++minute) Look("");
    EXPECT_TRUE(Look("").healthy);
  }
}

TEST_F(GpuHealthTest, TellsAnotherFaultOfABadGpuAtOnceButNotWithEachLook) {
  Look(kLost);
  EXPECT_EQ(Look("XID 79 was reported").unhealthy_reason, "XID 79 was reported");
  int told = 0;
  std::string last = "XID 79 was reported";
  for (int i = 0; i < 60; ++i) {
    const std::string now = Look(std::to_string(i) + " uncorrectable ECC errors").unhealthy_reason;
    told += now != last ? 1 : 0;
    last = now;
  }
  EXPECT_GE(told, 5);
  EXPECT_LE(told, 11) << "what is left of six, and one in ten minutes";
}

TEST_F(GpuHealthTest, TakesAGpuThatWasGoneForOneThatFailed) {
  LookAt(seen_);
  Observation seven = seen_;
  seven.node.gpus.erase(seven.node.gpus.begin() + 3);
  EXPECT_EQ(LookAt(seven), seven) << "there is nothing that could be unhealthy";
  const topology::Gpu back = Look("");
  EXPECT_FALSE(back.healthy);
  EXPECT_THAT(back.unhealthy_reason, StartsWith("it was no longer found"));
  for (int minute = 1; minute < 5; ++minute) Look("");
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, DoesNotTakeADriverThatCouldNotBeAskedForAFailureOfItsGpus) {
  LookAt(seen_);
  Observation unasked = seen_;
  unasked.gpus_unreadable = true;
  unasked.no_driver = "libnvidia-ml.so.1 cannot be loaded";
  for (topology::Gpu& gpu : unasked.node.gpus) {
    gpu.uuid.clear();
    gpu.healthy = false;
    gpu.unhealthy_reason = unasked.no_driver;
    unasked.unasked_gpus.insert(gpu.index);
  }
  const Observation put = LookAt(unasked);
  EXPECT_FALSE(put.node.gpus[3].healthy);
  EXPECT_EQ(put.unasked_gpus, unasked.unasked_gpus) << "which is no evidence against any";
  EXPECT_EQ(LookAt(seen_), seen_) << "healthy at once";
  Observation nothing = unasked;
  nothing.node.gpus.clear();
  nothing.bus_unread = true;
  LookAt(nothing);
  EXPECT_EQ(LookAt(seen_), seen_) << "none was gone";
}

TEST_F(GpuHealthTest, KeepsAFaultWhileTheDriverCannotBeAsked) {
  Look(kLost);
  Observation unasked = seen_;
  unasked.gpus_unreadable = true;
  for (topology::Gpu& gpu : unasked.node.gpus) {
    gpu.uuid.clear();
    gpu.healthy = false;
    gpu.unhealthy_reason = "its driver does not answer";
    unasked.unasked_gpus.insert(gpu.index);
  }
  EXPECT_FALSE(LookAt(unasked).unasked_gpus.contains(3)) << "what stood against it does so still";
  EXPECT_TRUE(LookAt(unasked).unasked_gpus.contains(4));
  for (int minute = 0; minute < 10; ++minute) LookAt(unasked);
  const Observation back = LookAt(seen_);
  EXPECT_FALSE(back.node.gpus[3].healthy);
  EXPECT_TRUE(back.node.gpus[4].healthy);
}

TEST_F(GpuHealthTest, LetsMigGoAtOnce) {
  EXPECT_FALSE(Look(std::string(kMigIsOn)).healthy);
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, GoesOnWithTheQuietTimeAfterARestart) {
  Look("");
  Restart(Look(kLost));
  for (int minute = 0; minute < 5; ++minute) EXPECT_FALSE(Look("").healthy) << minute;
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, SaysTheSameAfterARestartOfAGpuThatStillFails) {
  Restart(Look(kLost));
  EXPECT_EQ(Look(kLost).unhealthy_reason, kLost);
  const topology::Gpu waits = Look("");
  Restart(waits);
  EXPECT_THAT(Look("").unhealthy_reason,
              AllOf(StartsWith(kLost + " (no fault since "), Not(HasSubstr("that) (no fault since"))));
}

TEST_F(GpuHealthTest, RemembersAfterARestartThatAGpuFlaps) {
  topology::Gpu flaps;
  for (int i = 0; i < 3; ++i) {
    flaps = Look(kLost);
    Look("");
  }
  ASSERT_THAT(flaps.unhealthy_reason, StartsWith(std::string(kGpuFlaps)));
  Restart(flaps);
  EXPECT_EQ(Look(""), flaps) << "so nothing is written";
  EXPECT_EQ(Look(kLost), flaps);
  for (int minute = 0; minute < 30; ++minute) EXPECT_EQ(Look(""), flaps) << minute;
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, BeginsAnewWhenTheNodeHasBooted) {
  Restart(Look(kLost));
  seen_.boot_id = "11111111-0000-4000-8000-000000000002";
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, DoesNotBlameAnotherCardInTheSlot) {
  Look(kLost);
  seen_.node.gpus[3].uuid = "GPU-another";
  EXPECT_TRUE(Look("").healthy);
}

TEST_F(GpuHealthTest, DoesNotMixUpGpusThatNothingNames) {
  for (topology::Gpu& gpu : seen_.node.gpus) {
    gpu.pci.clear();
    gpu.uuid.clear();
  }
  EXPECT_FALSE(Look(kLost).healthy);
  EXPECT_EQ(LookAt(seen_), seen_);
}

TEST(GpuAllowance, GivesSixInARowAndThenOneInTenMinutes) {
  GpuAllowance allowance;
  base::MonotonicTime now{hours(1)};
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(allowance.Take(now)) << i;
  EXPECT_FALSE(allowance.Take(now));
  EXPECT_FALSE(allowance.Take(now + minutes(9)));
  EXPECT_TRUE(allowance.Take(now + minutes(10)));
  EXPECT_FALSE(allowance.Take(now + minutes(19)));
  now += hours(24);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(allowance.Take(now)) << i;
  EXPECT_FALSE(allowance.Take(now));
}

}  // namespace
}  // namespace heddle::nodeagent
