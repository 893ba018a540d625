#include "nodeagent/qos/decide.h"

#include <gmock/gmock.h>

#include "nodeagent/qos/apply.h"
#include "qos_bed.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessState;
using lossless::Setting;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const base::WallTime kNow{seconds(1'800'000'000)};

class QosJudge : public testing::Test {
 protected:
  QosJudge() {
    facts_.port = PortOf("mlx5_0:1");
    facts_.wish = &wish_;
    facts_.reading.have = AsWanted();
    facts_.may_write = true;
  }
  Judgement Judged() { return Judge(facts_, record_, before_ ? &*before_ : nullptr, kNow); }

  crds::LosslessWish wish_ = Wish({"mlx5_0:1"});
  QosFacts facts_;
  PortRecord record_;
  std::optional<crds::LosslessReport> before_;
};

TEST_F(QosJudge, NcclsTrafficClassIsNoSettingOfAPort) {
  ASSERT_TRUE(wish_.settings->traffic_class);
  ASSERT_FALSE(facts_.reading.have.traffic_class);
  const Judgement judged = Judged();
  EXPECT_EQ(judged.report.state, LosslessState::kCompliant);
  EXPECT_THAT(judged.report.gaps, IsEmpty());
}

TEST_F(QosJudge, WhatTheLastAgentPublishedIsRememberedWhereTheFolderIsNew) {
  facts_.reading.have.mtu = 1500;
  EXPECT_THAT(Judged().to_set, ElementsAre(Setting::kMtu)) << "never as wanted before";
  before_.emplace();
  before_->edition.policy = "roce";
  before_->edition.generation = 1;
  before_->state = LosslessState::kCompliant;
  EXPECT_THAT(Judged().to_set, IsEmpty()) << "onDrift: Report";
  EXPECT_EQ(Judged().report.state, LosslessState::kDrifted);
  before_->edition.generation = 0;
  EXPECT_THAT(Judged().to_set, ElementsAre(Setting::kMtu)) << "another generation";
}

// k8snetworkplumbingwg/sriov-network-operator takes only an MTU that is too small for drift.
TEST_F(QosJudge, AnMtuAboveTheWantedOneIsDriftLikeOneBelow) {
  for (const int mtu : {1500, 8999, 9001, 9216}) {
    facts_.reading.have.mtu = mtu;
    record_ = {};
    before_.reset();
    EXPECT_THAT(Judged().to_set, ElementsAre(Setting::kMtu)) << mtu;
    before_.emplace();
    before_->edition.policy = "roce";
    before_->edition.generation = 1;
    before_->state = LosslessState::kCompliant;
    const Judgement judged = Judged();
    EXPECT_EQ(judged.report.state, LosslessState::kDrifted) << mtu;
    ASSERT_EQ(judged.report.drift.size(), 1U);
    EXPECT_EQ(judged.report.drift[0].drift, (lossless::Drift{Setting::kMtu, "9000", std::to_string(mtu)}));
  }
}

TEST_F(QosJudge, ForgetsRepairsThatAreYetToComeOnceTheClockWasSetBack) {
  wish_.on_drift = crds::OnDrift::kRepair;
  record_ = Judged().record;
  ASSERT_TRUE(record_.applied);
  facts_.reading.have.mtu = 1500;
  record_.repairs.assign(kMaxRepairs, kNow + std::chrono::hours(72));
  EXPECT_THAT(Judged().to_set, ElementsAre(Setting::kMtu));
  EXPECT_THAT(Judged().record.repairs, IsEmpty());
  record_.repairs.assign(kMaxRepairs, kNow + seconds(60));
  EXPECT_EQ(Judged().report.state, LosslessState::kConflict) << "a clock that was set back a little";
}

TEST_F(QosJudge, ADecisionAboutAnotherNicOrGenerationIsNone) {
  facts_.reading.have.mtu = 1500;
  record_ = Judged().record;
  record_.failed = "no carrier";
  EXPECT_EQ(Judged().report.state, LosslessState::kFailed);
  facts_.port.pci_address = "0000:99:00.0";
  EXPECT_EQ(Judged().report.state, LosslessState::kPending);
  facts_.port = PortOf("mlx5_0:1");
  wish_.generation = 2;
  EXPECT_EQ(Judged().report.state, LosslessState::kPending);
}

TEST_F(QosJudge, ADecisionAboutAPolicyIsNoneAboutOneMadeAnewUnderItsName) {
  wish_.policy_uid = "old";
  facts_.reading.have.mtu = 1500;
  record_ = Judged().record;
  record_.failed = "no carrier";
  EXPECT_EQ(Judged().report.state, LosslessState::kFailed);
  wish_.policy_uid = "new";
  const Judgement anew = Judged();
  EXPECT_EQ(anew.report.state, LosslessState::kPending);
  EXPECT_NE(AboutOf(anew.record), AboutOf(record_));
}

TEST_F(QosJudge, SaysWhosePolicyItSpeaksOf) {
  wish_.policy_uid = "7c0e6a3c";
  EXPECT_EQ(Judged().report.edition.uid, "7c0e6a3c");
}

TEST_F(QosJudge, ConflictingPoliciesSetNothing) {
  wish_.settings.reset();
  wish_.policies = {"roce", "other"};
  wish_.reason = "LosslessPolicies roce, other select this port";
  EXPECT_EQ(Judged().report.state, LosslessState::kConflict);
  EXPECT_EQ(Judged().report.reason, wish_.reason);
  EXPECT_THAT(Judged().to_set, IsEmpty());
  wish_.policies = {"roce"};
  EXPECT_EQ(Judged().report.state, LosslessState::kNotApplicable);
}

TEST_F(QosJudge, SaysWhyANicGetsNothingOfItsPolicy) {
  wish_.settings.reset();
  wish_.refused = true;
  wish_.reason = "profile connectx-7/v1 is not for a NIC of PCI id 15b3:101d";
  EXPECT_EQ(Judged().report.state, LosslessState::kFailed);
  EXPECT_EQ(Judged().report.reason, wish_.reason);
  EXPECT_THAT(Judged().to_set, IsEmpty());
}

TEST_F(QosJudge, LeavesAloneWhatItDoesNotKnowAndNeverCallsItCompliant) {
  wish_.not_understood = {"spec.lossless[0].settings.pauseQuota", "spec.lossless[0].settings.dcqcn.rpNew"};
  Judgement judged = Judged();
  EXPECT_EQ(judged.report.state, LosslessState::kUnknown) << "all that it knows is as wanted";
  EXPECT_THAT(judged.report.reason, HasSubstr("settings.pauseQuota and 1 more"));
  EXPECT_FALSE(judged.record.applied);
  facts_.reading.have = Fresh();
  judged = Judged();
  EXPECT_EQ(judged.report.state, LosslessState::kUnknown);
  EXPECT_THAT(judged.to_set, IsEmpty());
  EXPECT_EQ(judged.report.have, Fresh());
}

TEST_F(QosJudge, SaysOfAPortThatPausesThatNothingEndsItsPauses) {
  EXPECT_EQ(Judged().report.reason, "");
  facts_.reading.have.watchdog_ms.reset();
  facts_.reading.gaps = {{Setting::kWatchdogMs, "bnxt_en has none"}};
  EXPECT_EQ(Judged().report.state, LosslessState::kCompliant) << "no reason to refuse it";
  EXPECT_THAT(Judged().report.reason, HasSubstr("PFC without a watchdog of this port (bnxt_en has none)"));
  // As the profile of a NIC that has none leaves it.
  wish_.settings->watchdog_ms.reset();
  EXPECT_THAT(Judged().report.reason, HasSubstr("PFC without a watchdog"));
  facts_.reading.have.watchdog_ms = lossless::kWatchdogOff;
  facts_.reading.gaps.clear();
  EXPECT_THAT(Judged().report.reason, HasSubstr("(it is off)"));
  wish_.settings->pfc = facts_.reading.have.pfc = lossless::PrioritySet{};
  EXPECT_EQ(Judged().report.reason, "") << "nothing is paused";
}

TEST_F(QosJudge, APortWithGlobalPauseIsNotLosslessByClass) {
  using lossless::GlobalPause;
  const std::string subject = Judged().record.subject;
  EXPECT_EQ(Judged().report.state, LosslessState::kCompliant) << "nobody read it: nothing is found";
  EXPECT_THAT(Judged().report.gaps, IsEmpty());
  facts_.reading.gaps = {{Setting::kGlobalPause, "it takes CAP_NET_ADMIN"}};
  EXPECT_EQ(Judged().report.state, LosslessState::kCompliant);
  EXPECT_THAT(Judged().report.gaps, ElementsAre(facts_.reading.gaps[0]));
  facts_.reading.gaps.clear();
  facts_.reading.have.global_pause = GlobalPause::kNone;
  EXPECT_EQ(Judged().report.state, LosslessState::kCompliant);
  facts_.reading.have.global_pause = GlobalPause::kBoth;
  Judgement judged = Judged();
  EXPECT_EQ(judged.report.state, LosslessState::kPending);
  ASSERT_EQ(judged.report.drift.size(), 1U);
  EXPECT_EQ(judged.report.drift[0].drift, (lossless::Drift{Setting::kGlobalPause, "None", "RXTX"}));
  EXPECT_THAT(judged.to_set, ElementsAre(Setting::kGlobalPause));
  EXPECT_EQ(judged.record.subject, subject) << "an agent that reads it decides nothing anew";
  // As its driver refuses to write it.
  record_ = judged.record;
  record_.unsupported[Setting::kGlobalPause] = "its driver does not offer this";
  judged = Judged();
  EXPECT_EQ(judged.report.state, LosslessState::kFailed);
  EXPECT_THAT(judged.report.reason, HasSubstr("cannot set globalPause (its driver does not offer this)"));
  EXPECT_THAT(judged.to_set, IsEmpty());
  wish_.settings->pfc = facts_.reading.have.pfc = lossless::PrioritySet{};
  EXPECT_EQ(Judged().report.state, LosslessState::kCompliant) << "who wants no PFC may want this";
}

TEST_F(QosJudge, GlobalPauseFromBeforeAnyAgentReadItIsSetAndNobodysChange) {
  using lossless::GlobalPause;
  record_ = Judged().record;
  ASSERT_TRUE(record_.applied);
  ASSERT_FALSE(record_.pause_off) << "as an agent left it that did not read it";
  facts_.reading.have.global_pause = GlobalPause::kBoth;
  facts_.writers[Setting::kGlobalPause] = "manual";
  Judgement judged = Judged();
  EXPECT_THAT(judged.to_set, ElementsAre(Setting::kGlobalPause));
  EXPECT_FALSE(judged.repair);
  ASSERT_EQ(judged.report.drift.size(), 1U);
  EXPECT_EQ(judged.report.drift[0].writer, "");
  // Once it was off, it is like any other setting.
  facts_.reading.have.global_pause = GlobalPause::kNone;
  record_ = Judged().record;
  ASSERT_TRUE(record_.pause_off);
  facts_.reading.have.global_pause = GlobalPause::kBoth;
  judged = Judged();
  EXPECT_EQ(judged.report.state, LosslessState::kDrifted);
  EXPECT_THAT(judged.to_set, IsEmpty());
  EXPECT_EQ(judged.report.drift[0].writer, "manual");
}

TEST_F(QosJudge, WhatIsOnlyReadIsNoDriftThatAnybodyIsToSetBack) {
  facts_.reading.read_only = {{Setting::kCnpDscp, "set it with niccli"}, {Setting::kMtu, "not so"}};
  EXPECT_THAT(Judged().report.gaps, IsEmpty()) << "as wanted";
  facts_.reading.have.cnp_dscp = 46;
  for (const auto mode : {crds::LosslessMode::kObserve, crds::LosslessMode::kApply}) {
    wish_.mode = mode;
    // Also of a port that was compliant by an agent that could not read it.
    for (const bool applied : {false, true}) {
      record_ = Judged().record;
      record_.applied = applied;
      const Judgement judged = Judged();
      EXPECT_EQ(judged.report.state, LosslessState::kCompliant) << applied;
      EXPECT_THAT(judged.report.gaps, ElementsAre(lossless::Gap{Setting::kCnpDscp, "set it with niccli"}));
      EXPECT_THAT(judged.report.drift, IsEmpty());
      EXPECT_THAT(judged.to_set, IsEmpty());
    }
  }
  record_ = {};
  facts_.reading.have.mtu = 1500;
  EXPECT_THAT(Judged().to_set, ElementsAre(Setting::kMtu)) << "no port is lossless without";
}

TEST_F(QosJudge, WhatIsLeftToTheFirmwareIsSetLikeWhatIsOther) {
  facts_.reading.have.cnp_priority.reset();
  facts_.reading.gaps = {{Setting::kCnpPriority, "debugfs is not mounted"}};
  EXPECT_THAT(Judged().to_set, IsEmpty()) << "nobody knows what it is";
  facts_.reading.left_to_firmware = {{Setting::kCnpPriority, "np_cnp_prio_mode is not 0"}};
  Judgement judged = Judged();
  EXPECT_THAT(judged.to_set, ElementsAre(Setting::kCnpPriority));
  EXPECT_THAT(judged.report.gaps, IsEmpty());
  ASSERT_EQ(judged.report.drift.size(), 1U);
  EXPECT_EQ(judged.report.drift[0].drift,
            (lossless::Drift{Setting::kCnpPriority, "6", "left to the firmware: np_cnp_prio_mode is not 0"}));
  facts_.reading.have.mtu = 1500;
  EXPECT_THAT(Judged().to_set, ElementsAre(Setting::kMtu, Setting::kCnpPriority)) << "in their order";
  wish_.mode = crds::LosslessMode::kObserve;
  EXPECT_EQ(Judged().report.state, LosslessState::kDrifted);
  EXPECT_THAT(Judged().to_set, IsEmpty());
}

TEST_F(QosJudge, TheWriterOfWhatNeverWasSetIsNobody) {
  facts_.reading.have.mtu = 1500;
  facts_.writers[Setting::kMtu] = "manual";
  EXPECT_EQ(Judged().report.drift.at(0).writer, "");
  facts_.writers[Setting::kMtu] = "lldpad";
  EXPECT_EQ(Judged().report.drift.at(0).writer, "lldpad");
}

TEST(QosApply, WhatRunsThroughAPortIsInterruptedByAllButParameters) {
  std::vector<std::string_view> quiet;
  for (int i = 0; i < lossless::kHostSettings; ++i) {
    if (!Interrupts(Setting(i))) quiet.push_back(lossless::SettingName(Setting(i)));
  }
  EXPECT_THAT(quiet, ElementsAre("watchdogMs", "ecn", "cnpDscp", "cnpPriority", "tos", "dcqcn"));
}

TEST(QosApply, ErrorsThatWereThereBeforeAreNoRegression) {
  const LinkEvidence calm{true, 2, {{"rx_crc", 100}, {"fresh", 5}}};
  LinkEvidence now = calm;
  EXPECT_EQ(Worse(calm, now, {}), "");
  now.errors["rx_crc"] = 110;
  EXPECT_EQ(Worse(calm, now, {}), "");
  now.errors["rx_crc"] = 111;
  EXPECT_THAT(Worse(calm, now, {}), HasSubstr("rx_crc grew by 11"));
  EXPECT_EQ(Worse(calm, now, {{"rx_crc", 6}}), "");
  now.errors["rx_crc"] = 3;  // reset by the bounce
  EXPECT_EQ(Worse(calm, now, {}), "");
  now.errors["never_seen"] = 1000;
  EXPECT_EQ(Worse(calm, now, {}), "");
}

TEST(QosApply, ACounterIsHeldAgainstItsOwnRateBeforeTheWrite) {
  const LinkEvidence calm{true, 2, {{"rx_discards_phy", 1000}}};
  LinkEvidence now = calm;
  now.errors["rx_discards_phy"] = 1061;
  EXPECT_EQ(Worse(calm, now, {}),
            "rx_discards_phy grew by 61 after the write, and by 0 in the time before it");
  EXPECT_EQ(Worse(calm, now, {{"rx_discards_phy", 1}}), "");
  now.errors["rx_discards_phy"] = 1600;
  EXPECT_EQ(Worse(calm, now, {{"rx_discards_phy", 100}}),
            "rx_discards_phy grew by 600 after the write, and by 100 in the time before it");
  EXPECT_EQ(Worse(calm, now, {{"rx_discards_phy", 100}}, 3), "") << "in three times as long";
}

TEST(QosApply, ALongerLookAllowsForMoreOfWhatCameBefore) {
  PortRecord record;
  UnsettledWrite& write = record.unsettled.emplace();
  write.link.carrier = true;
  write.noise = {{"rx_discards_phy", 100}};
  StepFacts facts;
  facts.wanted = true;
  facts.record = &record;
  facts.timings.settle = seconds(60);
  const base::MonotonicTime now{std::chrono::hours(1)};
  facts.progress.stage = ApplyStage::kSettling;
  facts.progress.since = facts.progress.at_time = now - seconds(30);
  facts.progress.at = LinkEvidence{true, 0, {{"rx_discards_phy", 0}}};
  facts.asked.link = base::Result<LinkEvidence>(LinkEvidence{true, 0, {{"rx_discards_phy", 1200}}});
  write.noise_seconds = 5;
  EXPECT_EQ(NextStepOf(facts, now).step, ApplyStep::kNothing);
  write.noise_seconds = 15;
  const NextApplyStep next = NextStepOf(facts, now);
  EXPECT_EQ(next.step, ApplyStep::kRollBack);
  EXPECT_THAT(next.why, HasSubstr("rx_discards_phy grew by 1200 after the write, and by 100"));
}

TEST(QosApply, NothingIsSetWhereNobodyKnowsWhoUsesThePort) {
  QosBed bed;
  Judgement judged;
  judged.to_set = {Setting::kPfc};
  const PortRecord record;
  StepFacts facts;
  facts.judged = &judged;
  facts.wanted = true;
  facts.record = &record;
  facts.progress.stage = ApplyStage::kDraining;
  const base::MonotonicTime now{std::chrono::hours(1)};
  facts.progress.since = facts.progress.withdrawn = now - facts.timings.drain;
  facts.asked.link = base::Result<LinkEvidence>(LinkEvidence{true, 0, {}});
  facts.asked.queue_pairs = base::Result<int>(base::Fail(base::Code::kUnimplemented, "kernel 4.4 has none"));
  NextApplyStep next = NextStepOf(facts, now);
  EXPECT_EQ(next.step, ApplyStep::kNothing);
  EXPECT_THAT(next.reason, HasSubstr("kernel 4.4 has none"));
  facts.asked.queue_pairs = base::Result<int>(0);
  EXPECT_EQ(NextStepOf(facts, now).step, ApplyStep::kWrite);
}

}  // namespace
}  // namespace heddle::nodeagent
