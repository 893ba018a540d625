// How long a port in use is waited for: not for ever, and not so that its node is short of a rail for most of the time.
#include <gmock/gmock.h>

#include "qos_bed.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessState;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kPort = "mlx5_0:1";

class PortInUse : public testing::Test {
 protected:
  void Use(int queue_pairs) {
    for (const std::string& name : bed_.names) bed_.io[name].queue_pairs = queue_pairs;
  }
  // The share of so long a time in which any port is kept from new pods, looked at every ten seconds.
  double WithdrawnShare(std::chrono::nanoseconds time) {
    int withdrawn = 0, looks = 0;
    for (const base::MonotonicTime end = bed_.clock.Now() + time; bed_.clock.Now() < end; ++looks) {
      bed_.RunFor(seconds(10));
      EXPECT_LE(bed_.gate->withdrawn.size(), 1u);
      withdrawn += bed_.gate->withdrawn.empty() ? 0 : 1;
    }
    return double(withdrawn) / looks;
  }

  QosBed bed_;
};

TEST_F(PortInUse, IsGivenBackAfterItsTimeAndSaysWhoUsesItAndWhenItIsTriedAgain) {
  Use(64);
  bed_.io[kPort].holders = {"python3 (pid 4711)"};
  const base::WallTime begin = std::chrono::floor<seconds>(bed_.clock.WallNow());
  bed_.Start();
  bed_.gate->holders = {"train/llama-0"};
  bed_.RunFor(minutes(30));
  ASSERT_TRUE(bed_.gate->Withdrawn(kPort));
  EXPECT_THAT(bed_.Report().reason, HasSubstr("waits for programs that use it"));
  bed_.RunFor(minutes(1));
  EXPECT_FALSE(bed_.gate->Withdrawn(kPort));
  EXPECT_THAT(bed_.readings.withdrawn, IsEmpty());
  EXPECT_EQ(bed_.State(), LosslessState::kPending);
  const std::string until = base::FormatTime(begin + seconds(15) + minutes(60));
  EXPECT_THAT(bed_.Report().reason, AllOf(HasSubstr("new pods get it again until " + until + ","),
                                          HasSubstr("programs use it; pods"), HasSubstr("python3 (pid 4711)"),
                                          HasSubstr("train/llama-0"), HasSubstr("for 30 min")));
  const auto condition = LosslessCondition(bed_.readings);
  ASSERT_TRUE(condition);
  EXPECT_THAT(condition->message, AllOf(HasSubstr("train/llama-0"), HasSubstr("python3 (pid 4711)")));
  EXPECT_EQ(bed_.counts.given_back, 1u);
  EXPECT_THAT(bed_.Reasons(), ElementsAre(kLosslessPortInUse));
  EXPECT_THAT(bed_.io.writes, IsEmpty());
}

TEST_F(PortInUse, IsSetWhereItsProgramsEndInTime) {
  Use(1);
  bed_.Start();
  bed_.RunFor(minutes(29));
  Use(0);
  bed_.RunFor(minutes(1));
  EXPECT_EQ(bed_.State(), LosslessState::kCompliant);
  EXPECT_EQ(bed_.counts.given_back, 0u);
}

TEST_F(PortInUse, IsNotSetUnderAPodThatWasGivenItAndHasNotBegunToUseIt) {
  bed_.Start();
  bed_.gate->holders = {"train/llama-0"};
  bed_.RunFor(minutes(5));
  EXPECT_THAT(bed_.io.writes, IsEmpty());
  EXPECT_TRUE(bed_.gate->Withdrawn(kPort));
  EXPECT_THAT(bed_.Report().reason,
              AllOf(HasSubstr("waits for pods that were given it"), HasSubstr("30 min")));
  Use(64);
  bed_.RunFor(minutes(1));
  EXPECT_THAT(bed_.io.writes, IsEmpty());
  Use(0);
  bed_.gate->holders.clear();
  bed_.RunFor(minutes(1));
  EXPECT_EQ(bed_.State(), LosslessState::kCompliant);
}

TEST_F(PortInUse, IsSetAfterItsTimeWherePodsThatWereGivenItDoNotUseIt) {
  bed_.Start();
  bed_.gate->holders = {"tools/shell-0"};
  bed_.RunFor(minutes(29));
  EXPECT_THAT(bed_.io.writes, IsEmpty());
  bed_.RunFor(minutes(3));
  EXPECT_EQ(bed_.State(), LosslessState::kCompliant);
  EXPECT_EQ(bed_.counts.given_back, 0u);
}

TEST_F(PortInUse, IsSetAtOnceWherePodsThatWereGivenItLongAgoDoNotUseIt) {
  bed_.wishes[0].mode = crds::LosslessMode::kObserve;
  bed_.Start();
  bed_.gate->holders = {"done/job-0"};
  bed_.RunFor(minutes(31));
  crds::LosslessWish apply = Wish({kPort});
  apply.generation = 2;
  bed_.Want(apply);
  bed_.RunFor(minutes(1));
  EXPECT_EQ(bed_.State(), LosslessState::kCompliant);
}

TEST_F(PortInUse, IsTriedAgainAfterPausesThatGrowAndEnd) {
  Use(1);
  bed_.Start();
  EXPECT_NEAR(WithdrawnShare(hours(1)), 0.5, 0.05);
  EXPECT_EQ(bed_.counts.given_back, 1u);
  bed_.RunFor(hours(24));
  // Pauses of 30 min, 1 h, 2 h, 4 h, and of 6 h from then on.
  EXPECT_EQ(bed_.counts.given_back, 7u);
  EXPECT_LT(WithdrawnShare(hours(13)), 0.09);
  EXPECT_EQ(bed_.publications, int(3 * bed_.counts.given_back)) << "a wait is no news";
  EXPECT_THAT(bed_.io.writes, IsEmpty());
}

TEST_F(PortInUse, IsSetAtOnceWhenItIsIdleMeanwhile) {
  Use(1);
  bed_.Start();
  bed_.RunFor(minutes(35));
  ASSERT_FALSE(bed_.gate->Withdrawn(kPort));
  Use(0);
  bed_.RunFor(minutes(1));
  EXPECT_EQ(bed_.io.writes.size(), 1u);
  bed_.RunFor(minutes(1));
  EXPECT_EQ(bed_.State(), LosslessState::kCompliant);
  // The next time is the first again.
  bed_.wishes[0].settings->mtu = 4200;
  bed_.wishes[0].generation = 2;
  bed_.Want(bed_.wishes[0]);
  Use(1);
  EXPECT_NEAR(WithdrawnShare(hours(1)), 0.5, 0.05);
}

TEST_F(PortInUse, AnIdleMomentThatIsOverIsNoReasonToKeepPodsAway) {
  Use(1);
  bed_.Start();
  bed_.RunFor(minutes(35));
  Use(0);
  while (!bed_.gate->Withdrawn(kPort)) bed_.RunFor(seconds(1));
  Use(1);
  bed_.RunFor(seconds(16));
  EXPECT_FALSE(bed_.gate->Withdrawn(kPort));
  EXPECT_EQ(bed_.counts.given_back, 1u);
  EXPECT_THAT(bed_.io.writes, IsEmpty());
  // One that flickers is not taken away with each flicker.
  Use(0);
  bed_.RunFor(minutes(4));
  EXPECT_FALSE(bed_.gate->Withdrawn(kPort));
  bed_.RunFor(minutes(2));
  EXPECT_EQ(bed_.io.writes.size(), 1u);
}

TEST_F(PortInUse, WithoutALimitIsKeptUntilItsProgramsHaveEnded) {
  bed_.options.timings.patience = seconds(0);
  Use(1);
  bed_.Start();
  bed_.RunFor(hours(3));
  EXPECT_TRUE(bed_.gate->Withdrawn(kPort));
  EXPECT_EQ(bed_.counts.given_back, 0u);
}

TEST_F(PortInUse, ThatNobodyCanCountIsGivenBackToo) {
  bed_.io[kPort].queue_pairs_unknown = base::Error{base::Code::kForbidden, "run the agent with hostPID", {}};
  bed_.Start();
  bed_.RunFor(minutes(31));
  EXPECT_FALSE(bed_.gate->Withdrawn(kPort));
  EXPECT_THAT(bed_.Report().reason,
              AllOf(HasSubstr("whether programs use it is not known"),
                    HasSubstr("run the agent with hostPID"), Not(HasSubstr("rdma resource show"))));
}

TEST_F(PortInUse, WhoseUsersAreNotSeenSaysWhereTheyAre) {
  Use(1);
  bed_.Start();
  bed_.RunFor(minutes(31));
  EXPECT_THAT(bed_.Report().reason, HasSubstr("programs use it; which those are is not seen from here"));
  EXPECT_THAT(bed_.Report().reason, HasSubstr("rdma resource show pd"));
}

TEST_F(PortInUse, WithoutAJournalIsGivenBackToo) {
  bed_.journal.broken = base::Error{base::Code::kUnavailable, "read-only file system", {}};
  bed_.Start();
  bed_.RunFor(minutes(30));
  for (int i = 0; i < 120 && bed_.counts.given_back == 0; ++i) bed_.RunFor(seconds(5));
  EXPECT_EQ(bed_.counts.given_back, 1u);
  EXPECT_THAT(bed_.Report().reason, HasSubstr("--state-dir"));
  EXPECT_LT(WithdrawnShare(minutes(29)), 0.15) << "nobody uses it, so it is tried from time to time";
  EXPECT_THAT(bed_.io.writes, IsEmpty());
}

TEST_F(PortInUse, AnotherPolicyIsTriedAtOnce) {
  Use(1);
  bed_.Start();
  bed_.RunFor(minutes(35));
  ASSERT_FALSE(bed_.gate->Withdrawn(kPort));
  bed_.wishes[0].generation = 2;
  bed_.Want(bed_.wishes[0]);
  bed_.RunFor(seconds(1));
  EXPECT_TRUE(bed_.gate->Withdrawn(kPort));
}

TEST_F(PortInUse, WhatInterruptsNothingIsSetAllTheSame) {
  Use(1);
  bed_.Start();
  bed_.RunFor(minutes(35));
  auto& port = bed_.io[kPort];
  port.have = AsWanted();
  port.have.tos = 0;
  bed_.RunFor(minutes(1));
  EXPECT_THAT(bed_.io.writes, ElementsAre("mlx5_0:1 tos"));
}

class PortsInUse : public PortInUse {
 protected:
  PortsInUse() {
    bed_.names = {"mlx5_0:1", "mlx5_1:1", "mlx5_2:1"};
    for (const std::string& name : bed_.names) bed_.io[name].have = Fresh();
    bed_.wishes = {Wish(bed_.names)};
  }
};

TEST_F(PortsInUse, ShareTheirPausesSoThatANodeIsNotAlwaysShortOfOne) {
  Use(1);
  bed_.Start();
  EXPECT_NEAR(WithdrawnShare(hours(1)), 0.5, 0.05);
  EXPECT_THAT(bed_.Report("mlx5_1:1").reason, HasSubstr("mlx5_0:1 was waited for in vain"));
  EXPECT_LT(WithdrawnShare(hours(20)), 0.16);
}

TEST_F(PortsInUse, TakeTurnsAndThoseThatAreIdleAreSet) {
  Use(1);
  bed_.io["mlx5_2:1"].queue_pairs = 0;
  bed_.Start();
  bed_.RunFor(minutes(35));
  EXPECT_EQ(bed_.State("mlx5_2:1"), LosslessState::kCompliant) << "in the pause of the others";
  bed_.io["mlx5_1:1"].queue_pairs = 0;
  bed_.RunFor(minutes(5));
  EXPECT_EQ(bed_.State("mlx5_1:1"), LosslessState::kCompliant);
  EXPECT_EQ(bed_.State("mlx5_0:1"), LosslessState::kPending);
}

TEST_F(PortsInUse, ThatWereWaitedForInVainLeaveTheTurnToTheNext) {
  Use(1);
  bed_.Start();
  std::vector<std::string> taken;
  for (const base::MonotonicTime end = bed_.clock.Now() + hours(10); bed_.clock.Now() < end;) {
    bed_.RunFor(seconds(20));
    for (const auto& [name, why] : bed_.gate->withdrawn)
      if (taken.empty() || taken.back() != name) taken.push_back(name);
  }
  EXPECT_THAT(taken, ElementsAre("mlx5_0:1", "mlx5_1:1", "mlx5_2:1", "mlx5_0:1", "mlx5_1:1"));
}

}  // namespace
}  // namespace heddle::nodeagent
