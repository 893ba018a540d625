#include "nodeagent/qos/loop.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "qos_bed.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessMode;
using crds::LosslessState;
using lossless::Setting;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kAll =
    "mlx5_0:1 trust,dscpToPriority,pfc,watchdogMs,priorityToClass,classAlgorithm,classPercent,mtu,tos";

TEST(QosLoop, SetsAPortWithExactlyTheWriteItNeeds) {
  QosBed bed;
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, ElementsAre(kAll));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, AsWanted());
  EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessApplied));
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_FALSE(bed.journal.records.at("mlx5_0:1").unsettled);
}

TEST(QosLoop, WritesNothingToAPortThatIsAsWanted) {
  QosBed bed;
  bed.io["mlx5_0:1"].have = AsWanted();
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, IsEmpty());
  EXPECT_THAT(bed.events, IsEmpty());
  EXPECT_EQ(bed.publications, 1);
  bed.Start();
  bed.RunAll();
  EXPECT_THAT(bed.io.writes, IsEmpty());
  EXPECT_EQ(bed.journal.puts, 1);  // that it was compliant once
}

TEST(QosLoop, TakesThePortAwayWaitsAndAsksForQueuePairsBeforeItWrites) {
  QosBed bed;
  bed.io["mlx5_0:1"].queue_pairs = 4;
  bed.Start();
  bed.RunFor(seconds(1));
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_THAT(bed.readings.withdrawn, SizeIs(1));
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kPending);
  EXPECT_THAT(bed.Report().reason, HasSubstr("waits for programs that use it"));
  EXPECT_THAT(bed.io.writes, IsEmpty());
  const int publications = bed.publications;
  bed.io["mlx5_0:1"].queue_pairs = 3;
  bed.RunAll();
  EXPECT_EQ(bed.publications, publications);  // a number that moves is no news
  bed.io["mlx5_0:1"].queue_pairs = 0;
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.readings.withdrawn, IsEmpty());
}

TEST(QosLoop, WritesOnlyToPortsThatWereTakenAway) {
  QosBed bed({"mlx5_0:1", "mlx5_1:1", "mlx5_2:1"});
  bed.Start();
  bed.io.before_write = [&](const QosPort& port, auto) {
    EXPECT_TRUE(bed.gate->Withdrawn(port.name));
    EXPECT_THAT(bed.gate->withdrawn, SizeIs(1)) << "one rail at a time";
  };
  bed.RunFor(seconds(5));
  EXPECT_THAT(bed.Report("mlx5_2:1").reason, HasSubstr("waits for its turn: mlx5_0:1"));
  bed.RunAll();
  EXPECT_THAT(bed.io.writes, SizeIs(3));
  EXPECT_EQ(bed.State("mlx5_2:1"), LosslessState::kCompliant);
  EXPECT_THAT(*bed.readings.reports, SizeIs(1));
}

TEST(QosLoop, SetsWhatInterruptsNothingWhileTrafficRuns) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.have = AsWanted();
  port.have.watchdog_ms = 0;
  port.have.tos = 0;
  port.queue_pairs = 16;
  bed.Start();
  bed.RunFor(seconds(1));
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, ElementsAre("mlx5_0:1 watchdogMs,tos"));
}

TEST(QosLoop, ObservingWritesNothing) {
  QosBed bed;
  bed.wishes[0].mode = LosslessMode::kObserve;
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kDrifted);
  EXPECT_THAT(bed.Report().reason, HasSubstr("only observes"));
  EXPECT_THAT(bed.Report().drift, SizeIs(9));
  EXPECT_THAT(bed.io.writes, IsEmpty());
  EXPECT_EQ(bed.journal.puts, 0);
}

TEST(QosLoop, SaysThatItMayNotSetAnything) {
  QosBed bed;
  bed.options.may_write = false;
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kDrifted);
  EXPECT_THAT(bed.Report().reason, HasSubstr("agent.lossless.enabled"));
  EXPECT_THAT(bed.io.writes, IsEmpty());
}

TEST(QosLoop, LeavesWhatWasBegunAloneWhileItMayNotSetAnythingAndGoesOnWithItThen) {
  QosBed bed;
  bed.Start();
  bed.RunFor(std::chrono::seconds(17));
  ASSERT_THAT(bed.io.writes, SizeIs(1)) << "and its link is being watched";
  bed.options.may_write = false;
  for (int starts = 0; starts < 2 * kMaxStarts; ++starts) {
    bed.Start();
    bed.RunAll();
    EXPECT_EQ(bed.State(), LosslessState::kPending);
    EXPECT_THAT(bed.Report().reason, HasSubstr("once agent.lossless.enabled is on again"));
  }
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_EQ(std::count_if(bed.log.begin(), bed.log.end(),
                          [](const std::string& line) { return line.find("is half set") != line.npos; }),
            2 * kMaxStarts)
      << "each agent says it once";
  EXPECT_THAT(bed.io.writes, SizeIs(1));
  bed.options.may_write = true;
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
}

TEST(QosLoop, ReportsDriftWithinAMinuteAndKeepsItsTime) {
  QosBed bed;
  bed.Start();
  bed.RunAll();
  bed.io["mlx5_0:1"].have.pfc = lossless::PrioritySet{3, 4};
  bed.io["mlx5_0:1"].writers[Setting::kPfc] = "lldpad";
  bed.RunFor(seconds(30));
  ASSERT_EQ(bed.State(), LosslessState::kDrifted);
  ASSERT_THAT(bed.Report().drift, SizeIs(1));
  const crds::PortDrift drift = bed.Report().drift[0];
  EXPECT_EQ(drift.drift, (lossless::Drift{Setting::kPfc, "3", "3,4"}));
  EXPECT_EQ(drift.writer, "lldpad");
  EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessApplied, kLosslessDrift));
  bed.RunFor(minutes(5));
  bed.Start();  // a restart
  bed.RunFor(minutes(5));
  EXPECT_EQ(bed.Report().drift[0], drift);
  EXPECT_THAT(bed.events, SizeIs(2));
  EXPECT_THAT(bed.io.writes, SizeIs(1));  // onDrift: Report
}

TEST(QosLoop, RepairsAFewTimesAndThenDoesNotFight) {
  QosBed bed;
  bed.wishes[0].on_drift = crds::OnDrift::kRepair;
  bed.Start();
  bed.RunAll();
  for (int i = 0; i < 6; ++i) {
    bed.io["mlx5_0:1"].have.pfc = lossless::PrioritySet{};
    bed.RunFor(minutes(5));
  }
  EXPECT_EQ(bed.State(), LosslessState::kConflict);
  EXPECT_THAT(bed.Report().reason, HasSubstr("after 3 repairs in 2 hours, probably by hand"));
  EXPECT_THAT(bed.io.writes, SizeIs(1 + kMaxRepairs));
  EXPECT_THAT(bed.Reasons(), testing::Contains(kLosslessConflict).Times(1));
  bed.Start();
  bed.RunFor(std::chrono::hours(5));
  EXPECT_EQ(bed.State(), LosslessState::kConflict);
  EXPECT_THAT(bed.io.writes, SizeIs(1 + kMaxRepairs));
  // A person made it right.
  bed.io["mlx5_0:1"].have = AsWanted();
  bed.RunFor(minutes(1));
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

TEST(QosLoop, RollsBackWhatTakesTheCarrierAndTriesNoMoreUntilThePolicyChanges) {
  QosBed bed;
  bed.io["mlx5_0:1"].on_write = [](auto& port) {
    const bool lossless = !port.have.pfc->empty();
    port.link.carrier = !lossless;
    ++port.link.carrier_changes;
  };
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, HasSubstr("no carrier 60 s after the write"));
  EXPECT_THAT(bed.Report().reason, HasSubstr("what was there before is set again"));
  EXPECT_THAT(bed.io.writes, SizeIs(2));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_THAT(bed.Reasons(), testing::UnorderedElementsAre(kLosslessRolledBack, kLosslessFailed));
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.io.writes, SizeIs(2));
  bed.io["mlx5_0:1"].on_write = nullptr;
  bed.wishes[0].generation = 2;
  bed.Want(bed.wishes[0]);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

TEST(QosLoop, SaysBeforehandThatItTakesTheLinkDownAndAfterwardsHowOften) {
  QosBed bed;
  std::size_t told = 0;
  bed.io.before_write = [&](auto&&...) { told = bed.own_changes.size(); };
  bed.io["mlx5_0:1"].on_write = [](auto& port) { port.link.carrier_changes += 4; };
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(told, 1u);
  ASSERT_THAT(bed.own_changes, SizeIs(2));
  EXPECT_EQ(bed.own_changes[0].port, "mlx5_0:1");
  EXPECT_EQ(bed.own_changes[0].most, 2 * kMaxBounces);
  EXPECT_EQ(bed.own_changes[0].until - bed.own_changes[0].from, seconds(70));
  EXPECT_EQ(bed.own_changes[1].from, bed.own_changes[0].from);
  EXPECT_EQ(bed.own_changes[1].most, 4u);
  ASSERT_THAT(bed.events, SizeIs(1));
  EXPECT_THAT(bed.events[0].note,
              HasSubstr("its link went down and up 2 times by that, which is no flapping"));
}

TEST(QosLoop, SaysNothingOfTheLinkWhereAWriteLeavesItAlone) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.have = AsWanted();
  port.have.tos = 0;
  bed.Start();
  bed.RunAll();
  EXPECT_THAT(bed.io.writes, SizeIs(1));
  EXPECT_THAT(bed.own_changes, IsEmpty());
}

TEST(QosLoop, TakesBackEntriesOfDscpsThatHadNone) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.have.dscp_to_priority = lossless::AllDscps(lossless::kNotSaid);
  port.have.dscp_to_priority->at(26) = 4;
  const lossless::PortSettings before = port.have;
  port.faults[Setting::kMtu] = {base::Code::kInvalid, "no", -1};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_EQ(port.have, before);
}

// RoCE v1 has no ToS: it reads as 0, and so does v2 with the ToS that is written back.
TEST(QosLoop, MakesConnectionsRoce1AgainWhereTheyWereBefore) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.roce1 = true;
  port.on_write = [](auto& one) { one.link.carrier = one.have.pfc->empty(); };
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_EQ(port.have, Fresh());
  EXPECT_TRUE(port.roce1);
  EXPECT_THAT(bed.Report().reason, testing::Not(HasSubstr("but for")));

  QosBed stuck;
  auto& other = stuck.io["mlx5_0:1"];
  other.roce1 = true;
  other.keeps_roce2 = true;
  other.on_write = port.on_write;
  stuck.Start();
  stuck.RunAll();
  EXPECT_THAT(stuck.Report().reason, HasSubstr("what was there before is set again, but for tos"));
  EXPECT_FALSE(stuck.gate->Withdrawn("mlx5_0:1"));

  QosBed never;
  never.io["mlx5_0:1"].on_write = port.on_write;
  never.Start();
  never.RunAll();
  EXPECT_THAT(never.io.writes, testing::Not(testing::Contains("mlx5_0:1 RoCE v1"))) << "they were v2 before";
}

TEST(QosLoop, GivesTheOldKindOfDcbxUpBeforeItSetsTheRest) {
  QosBed bed;
  bed.io["mlx5_0:1"].have.dcbx = lossless::Dcbx::kHostCee;
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  ASSERT_THAT(bed.io.writes, SizeIs(2));
  EXPECT_EQ(bed.io.writes[0], "mlx5_0:1 dcbx");
}

TEST(QosLoop, SwitchesGlobalPauseOffAndBackOnWhereTheWriteIsTakenBack) {
  using lossless::GlobalPause;
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.have.global_pause = GlobalPause::kBoth;
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_EQ(port.have.global_pause, GlobalPause::kNone);
  ASSERT_THAT(bed.io.writes, SizeIs(1));
  EXPECT_THAT(bed.io.writes[0], HasSubstr("globalPause"));
  // Of one that is off already nothing is written.
  QosBed off;
  off.io["mlx5_0:1"].have.global_pause = GlobalPause::kNone;
  off.Start();
  off.RunAll();
  EXPECT_EQ(off.State(), LosslessState::kCompliant);
  ASSERT_THAT(off.io.writes, SizeIs(1));
  EXPECT_THAT(off.io.writes[0], testing::Not(HasSubstr("globalPause")));
  QosBed bad;
  auto& taken_back = bad.io["mlx5_0:1"];
  taken_back.have.global_pause = GlobalPause::kReceive;
  const lossless::PortSettings before = taken_back.have;
  bad.Start();
  bad.RunFor(seconds(20));
  EXPECT_EQ(taken_back.have.global_pause, GlobalPause::kNone);
  taken_back.link.errors["rx_crc_errors_phy"] += 500;
  bad.RunAll();
  EXPECT_EQ(bad.State(), LosslessState::kFailed);
  EXPECT_EQ(taken_back.have, before);
}

TEST(QosLoop, RollsBackWhatBringsErrors) {
  QosBed bed;
  bed.io["mlx5_0:1"].on_write = [](auto& port) { port.link.carrier_changes += 2; };
  bed.Start();
  bed.RunFor(seconds(20));
  ASSERT_THAT(bed.io.writes, SizeIs(1));
  bed.io["mlx5_0:1"].link.errors["rx_crc_errors_phy"] += 500;
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, HasSubstr("rx_crc_errors_phy grew by 500"));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
}

TEST(QosLoop, RollsBackALinkThatGoesOnGoingDownOnceItIsBack) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.on_write = [](auto& one) { one.link.carrier_changes += 2; };
  bed.Start();
  bed.RunFor(seconds(20));
  ASSERT_THAT(bed.io.writes, SizeIs(1));
  port.link.carrier_changes += 2;
  bed.RunFor(seconds(2));
  EXPECT_THAT(bed.io.writes, SizeIs(1)) << "once may be the link itself";
  port.link.carrier_changes += 2;
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason,
              HasSubstr("carrier_changes grew by 4 after the write, and by 0 in the time before it"));
  EXPECT_EQ(port.have, Fresh());
}

TEST(QosLoop, WhatALinkDidBeforeTheWriteIsNoneOfItsDoing) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.link.errors["rx_discards_phy"] = 1000;
  bed.Start();
  bed.RunFor(seconds(5));
  ASSERT_THAT(bed.io.writes, SizeIs(0));
  port.link.carrier_changes += 4;
  port.link.errors["rx_discards_phy"] += 100;
  bed.RunFor(seconds(15));
  ASSERT_THAT(bed.io.writes, SizeIs(1));
  port.link.carrier_changes += 4;
  port.link.errors["rx_discards_phy"] += 150;
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

TEST(QosLoop, ADriverWithoutASettingGetsTheRest) {
  QosBed bed;
  bed.io["mlx5_0:1"].faults[Setting::kWatchdogMs] = {base::Code::kUnimplemented, "the driver has none", -1};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  ASSERT_THAT(bed.Report().gaps, SizeIs(1));
  EXPECT_EQ(bed.Report().gaps[0],
            (lossless::Gap{Setting::kWatchdogMs, "set watchdogMs: the driver has none"}));
  EXPECT_THAT(bed.Report().drift, IsEmpty());
  const std::size_t writes = bed.io.writes.size();
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.io.writes.size(), writes);
}

TEST(QosLoop, ADriverThatCannotSetPfcIsNotCalledLossless) {
  QosBed bed;
  bed.io["mlx5_0:1"].faults[Setting::kPfc] = {base::Code::kUnimplemented, "no dcbnl_ops", -1};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, HasSubstr("the driver cannot set pfc"));
  EXPECT_EQ(bed.io["mlx5_0:1"].have.mtu, 9000);
  EXPECT_THAT(bed.Report().drift, SizeIs(1));
}

TEST(QosLoop, ABusyPortIsTriedAgainAfterPausesThatGrowAndThenSetBack) {
  QosBed bed;
  bed.io["mlx5_0:1"].faults[Setting::kMtu] = {base::Code::kUnavailable, "busy", -1};
  bed.Start();
  bed.RunFor(seconds(16));
  EXPECT_EQ(bed.State(), LosslessState::kPending);
  EXPECT_THAT(bed.Report().reason, HasSubstr("is busy"));
  bed.RunFor(minutes(30));
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
  EXPECT_LE(bed.io.writes.size(), 8u);
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
}

TEST(QosLoop, ADriverThatRefusesItsOldValuesGivesThePortBackWithoutThem) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.on_write = [](auto& one) {
    one.link.carrier = one.have.pfc->empty();
    one.faults[Setting::kMtu] = one.faults[Setting::kTrust] = {base::Code::kInvalid, "no", -1};
  };
  bed.Start();
  bed.RunFor(std::chrono::hours(2));
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, HasSubstr("set again, but for "));
  EXPECT_THAT(bed.Report().reason, HasSubstr("mtu"));
  EXPECT_THAT(bed.Report().reason, HasSubstr("trust"));
  EXPECT_EQ(port.have.pfc, Fresh().pfc) << "all else is as before";
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
}

TEST(QosLoop, ABusyMomentIsSatOut) {
  QosBed bed;
  bed.io["mlx5_0:1"].faults[Setting::kMtu] = {base::Code::kUnavailable, "busy", 2};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

TEST(QosLoop, FirmwareThatKeepsTheSayIsAConflictAndNothingElseIsWritten) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.have.dcbx = lossless::Dcbx::kFirmware;
  port.faults[Setting::kDcbx] = {base::Code::kInvalid, "refused", -1};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kConflict);
  EXPECT_THAT(bed.Report().reason, HasSubstr("firmware has the say"));
  EXPECT_THAT(bed.io.writes, ElementsAre("mlx5_0:1 dcbx"));
  port.faults.clear();
  bed.wishes[0].generation = 2;
  bed.Want(bed.wishes[0]);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_EQ(bed.io.writes[1], "mlx5_0:1 dcbx");  // before all else
}

TEST(QosLoop, SomebodyWhoWritesOverItAtOnceIsAConflict) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.on_write = [](auto& one) { one.have.pfc = lossless::PrioritySet{}; };
  port.writers[Setting::kPfc] = "lldpad";
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kConflict);
  EXPECT_THAT(bed.Report().reason, HasSubstr("lldpad wrote over pfc at once"));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
}

TEST(QosLoop, APortThatVanishesInTheMiddleIsGoneOnWithWhenItIsBack) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.faults[Setting::kMtu] = {base::Code::kUnavailable, "eth2 is gone", 1};
  bed.Start();
  bed.RunFor(seconds(16));
  ASSERT_THAT(bed.io.writes, SizeIs(1));
  port.gone = true;
  bed.RunFor(minutes(5));
  EXPECT_EQ(bed.State(), LosslessState::kUnknown);
  EXPECT_THAT(bed.Report().reason, HasSubstr("vanished in the middle"));
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  port.gone = false;
  port.have = Fresh();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

// The port is set, and its link is watched.
void RunUntilItSettles(QosBed& bed, std::size_t writes) {
  for (int i = 0; i < 60 && bed.io.writes.size() < writes; ++i) bed.RunFor(seconds(1));
  ASSERT_THAT(bed.io.writes, SizeIs(writes));
  ASSERT_THAT(bed.Report().reason, HasSubstr("its link is watched"));
}

// A NIC that is reset: gone, and back with what its driver begins with.
void Reset(QosBed& bed) {
  bed.io["mlx5_0:1"].gone = true;
  bed.RunFor(seconds(10));
  EXPECT_EQ(bed.State(), LosslessState::kUnknown);
  EXPECT_THAT(bed.Report().reason, HasSubstr("vanished in the middle"));
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  bed.io["mlx5_0:1"].gone = false;
  bed.io["mlx5_0:1"].have = Fresh();
}

TEST(QosLoop, ANicThatIsResetWhileItsLinkIsWatchedIsSetAgain) {
  QosBed bed;
  bed.Start();
  RunUntilItSettles(bed, 1);
  Reset(bed);
  EXPECT_EQ(bed.journal.records.at("mlx5_0:1").unsettled->undone, 1);
  RunUntilItSettles(bed, 2);
  EXPECT_THAT(bed.events, IsEmpty()) << "it was told as applied too early";
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_EQ(bed.io["mlx5_0:1"].have, AsWanted());
  EXPECT_THAT(bed.io.writes, SizeIs(2));
  EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessApplied));
}

// Else both would write in turns, and neither is told who the other is.
TEST(QosLoop, WhoWritesOverAPortWhoseLinkIsWatchedIsMetAsDriftAndNotAtOnce) {
  QosBed bed;
  bed.Start();
  RunUntilItSettles(bed, 1);
  bed.io["mlx5_0:1"].have = Fresh();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kDrifted);
  EXPECT_THAT(bed.io.writes, SizeIs(1));
}

TEST(QosLoop, ANicThatIsBackAsItWasSetIsNotWrittenAgain) {
  QosBed bed;
  bed.Start();
  RunUntilItSettles(bed, 1);
  bed.io["mlx5_0:1"].gone = true;
  bed.RunFor(seconds(10));
  bed.io["mlx5_0:1"].gone = false;
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, SizeIs(1));
}

TEST(QosLoop, ANicThatIsResetEachTimeItIsSetIsSetBackAndLeftAlone) {
  QosBed bed;
  bed.Start();
  RunUntilItSettles(bed, 1);
  Reset(bed);
  bed.Start();  // another agent counts on
  RunUntilItSettles(bed, 2);
  Reset(bed);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, HasSubstr("gone again 2 times before it had settled"));
  EXPECT_THAT(bed.io.writes, SizeIs(2)) << "the driver's own settings are what was there before";
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_THAT(bed.Reasons(), testing::UnorderedElementsAre(kLosslessRolledBack, kLosslessFailed));
  bed.RunAll();
  EXPECT_THAT(bed.io.writes, SizeIs(2));
}

TEST(QosLoop, ANicThatIsResetByTheWriteItselfIsSetBackAndLeftAlone) {
  QosBed bed;
  bed.io["mlx5_0:1"].on_write = [](auto& port) { port.gone = true; };
  bed.Start();
  for (int i = 0; i < 20; ++i) {
    bed.RunFor(seconds(10));
    if (!bed.io["mlx5_0:1"].gone) continue;
    bed.io["mlx5_0:1"].gone = false;
    bed.io["mlx5_0:1"].have = Fresh();
  }
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.io.writes, SizeIs(kMaxUndone));
}

// What the kernel says of files that went with it: ENOENT of the MTU and of configfs, no such folder of ECN.
TEST(QosLoop, WhatAWriteSaysOfANicThatVanishesMeanwhileIsNothingOfItsDriver) {
  for (const base::Code code : {base::Code::kNotFound, base::Code::kUnimplemented}) {
    QosBed bed;
    auto& port = bed.io["mlx5_0:1"];
    port.faults[Setting::kTos] = {code, "No such file or directory", 1, true};
    bed.Start();
    bed.RunFor(seconds(30));
    EXPECT_EQ(bed.State(), LosslessState::kUnknown);
    EXPECT_THAT(bed.Report().reason, HasSubstr("vanished in the middle"));
    port.gone = false;
    port.have = Fresh();
    bed.RunAll();
    EXPECT_EQ(bed.State(), LosslessState::kCompliant);
    EXPECT_EQ(port.have, AsWanted());
    EXPECT_THAT(bed.Report().gaps, IsEmpty());
    EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessApplied));
  }
}

TEST(QosLoop, ANicThatIsAwayWhileAgentsComeAndGoVanishedOnce) {
  QosBed bed;
  bed.Start();
  RunUntilItSettles(bed, 1);
  bed.io["mlx5_0:1"].gone = true;
  bed.RunFor(seconds(10));
  bed.Start();
  bed.RunFor(minutes(1));
  EXPECT_EQ(bed.journal.records.at("mlx5_0:1").unsettled->undone, 1);
  bed.io["mlx5_0:1"].gone = false;
  bed.io["mlx5_0:1"].have = Fresh();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

TEST(QosLoop, NoPortWaitsForANicThatVanishedInTheMiddle) {
  QosBed bed({"mlx5_0:1", "mlx5_1:1"});
  bed.Start();
  RunUntilItSettles(bed, 1);
  EXPECT_THAT(bed.Report("mlx5_1:1").reason, HasSubstr("waits for its turn: mlx5_0:1 is being set"));
  bed.io["mlx5_0:1"].gone = true;
  bed.RunAll();
  EXPECT_EQ(bed.State("mlx5_0:1"), LosslessState::kUnknown);
  EXPECT_EQ(bed.State("mlx5_1:1"), LosslessState::kCompliant);
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  bed.io["mlx5_0:1"].gone = false;
  bed.io["mlx5_0:1"].have = Fresh();
  bed.RunAll();
  EXPECT_EQ(bed.State("mlx5_0:1"), LosslessState::kCompliant);
  EXPECT_EQ(bed.io["mlx5_0:1"].have, AsWanted());
}

// A write that the link does not bear.
void SetInVain(QosBed& bed) {
  bed.io["mlx5_0:1"].on_write = [](auto& port) { port.link.carrier = port.have.pfc->empty(); };
  bed.Start();
  bed.RunAll();
  ASSERT_EQ(bed.State(), LosslessState::kFailed);
  ASSERT_THAT(bed.io.writes, SizeIs(2));
}

TEST(QosLoop, WhatFailedIsNotTriedAgainAfterANicWasAwayForAMoment) {
  QosBed bed;
  SetInVain(bed);
  bed.loop->Have({});
  bed.loop->Want({});
  bed.RunFor(minutes(5));
  bed.loop->Have(bed.Machine());
  bed.RunFor(seconds(15));
  bed.loop->Want(bed.wishes);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.io.writes, SizeIs(2));
}

TEST(QosLoop, WhatFailedIsNotTriedAgainByAnAgentThatStartsBeforeItsWish) {
  QosBed bed;
  SetInVain(bed);
  bed.Start(false);
  bed.loop->Have(bed.Machine());
  bed.loop->Want({});
  bed.RunFor(seconds(15));
  bed.loop->Want(bed.wishes);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.io.writes, SizeIs(2));
}

TEST(QosLoop, WhatFailedIsForgottenWithItsPolicy) {
  QosBed bed;
  SetInVain(bed);
  bed.loop->Want({});
  bed.RunFor(minutes(1));
  EXPECT_THAT(bed.journal.records, IsEmpty());
}

// As it is where the NIC itself goes: the agent publishes the machine without it, and the operator tells it nothing then.
TEST(QosLoop, ANicThatVanishesInTheMiddleWithItsWishIsSaidAndGoneOnWithWhenBothAreBack) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.faults[Setting::kMtu] = {base::Code::kUnavailable, "eth2 is busy", -1};
  bed.Start();
  bed.RunFor(seconds(16));
  EXPECT_THAT(bed.Report().reason, HasSubstr("is busy"));
  port.gone = true;
  bed.loop->Have({});
  bed.RunFor(seconds(1));
  EXPECT_EQ(bed.State(), LosslessState::kUnknown);
  EXPECT_THAT(bed.Report().reason, HasSubstr("vanished in the middle"))
      << "though the next try was for later";
  bed.loop->Want({});
  bed.RunFor(minutes(5));
  EXPECT_EQ(bed.State(), LosslessState::kUnknown);
  EXPECT_EQ(bed.Report().edition.policy, "roce");
  EXPECT_THAT(bed.Report().reason, HasSubstr("vanished in the middle"));
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  // The NIC first, the wish once that was published.
  port.gone = false;
  port.have = Fresh();
  port.faults.clear();
  bed.loop->Have(bed.Machine());
  bed.RunFor(seconds(3));
  bed.loop->Want(bed.wishes);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessApplied)) << "it was never taken back";
}

TEST(QosLoop, ANicThatIsBackAndThatNobodyWantsAnyMoreIsTakenBack) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.faults[Setting::kMtu] = {base::Code::kUnavailable, "eth2 is busy", -1};
  bed.Start();
  bed.RunFor(seconds(16));
  port.gone = true;
  bed.loop->Have({});
  bed.loop->Want({});
  bed.RunFor(minutes(1));
  port.gone = false;
  port.faults.clear();
  bed.loop->Have(bed.Machine());
  bed.RunFor(seconds(19));
  EXPECT_THAT(bed.Reasons(), IsEmpty());
  bed.RunFor(seconds(2));
  EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessRolledBack));
  EXPECT_EQ(port.have, Fresh());
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
}

// An agent that took up what the one before it had published.
void StartWherePublished(QosBed& bed) {
  bed.Start();
  bed.RunAll();
  bed.Start();
  bed.RunAll();
  ASSERT_EQ(bed.State(), LosslessState::kCompliant);
  ASSERT_THAT(bed.io.writes, SizeIs(1));
}

TEST(QosLoop, ANicThatWasResetAndTakenOutOfTheSpecMeanwhileIsSetAgain) {
  QosBed bed;
  StartWherePublished(bed);
  bed.io["mlx5_0:1"].gone = true;
  bed.loop->Have({});
  bed.RunFor(seconds(5));
  bed.loop->Want({});
  bed.RunFor(minutes(1));
  bed.io["mlx5_0:1"].gone = false;
  bed.io["mlx5_0:1"].have = Fresh();
  bed.loop->Have(bed.Machine());
  bed.RunFor(seconds(3));
  bed.loop->Want(bed.wishes);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, SizeIs(2));
}

// A new object of a name begins at generation 1, as the old one did.
TEST(QosLoop, APolicyThatIsMadeAnewIsAppliedToWhatWasSetByHandMeanwhile) {
  QosBed bed;
  StartWherePublished(bed);
  bed.loop->Want({});
  bed.RunFor(minutes(1));
  bed.io["mlx5_0:1"].have.mtu = 1500;
  bed.RunFor(minutes(1));
  bed.loop->Want(bed.wishes);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, ElementsAre(kAll, "mlx5_0:1 mtu"));
}

TEST(QosLoop, ANicThatThisMachineLacksIsUnknown) {
  QosBed bed;
  bed.wishes = {Wish({"mlx5_0:1", "mlx5_9:1"})};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_EQ(bed.State("mlx5_9:1"), LosslessState::kUnknown);
}

TEST(QosLoop, ANicWithoutAnInterfaceIsUnknownAndLeftAlone) {
  QosBed bed;
  bed.Start(false);
  std::vector<QosPort> ports = bed.Machine();
  ports[0].netdev.clear();
  bed.loop->Have(ports);
  bed.loop->Want(bed.wishes);
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kUnknown);
  EXPECT_THAT(bed.Report().reason, HasSubstr("the interface of this port is not there"));
  EXPECT_EQ(bed.io.reads, 0);
}

TEST(QosLoop, APolicyThatGoesAwayInTheMiddleIsTakenBack) {
  QosBed bed;
  bed.Start();
  bed.RunFor(seconds(17));
  ASSERT_THAT(bed.io.writes, SizeIs(1));
  ASSERT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  bed.wishes.clear();
  bed.loop->Want({});
  bed.RunAll();
  // What reads back as wanted is only watched: nothing is half set, so it stays.
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_THAT(bed.journal.records, IsEmpty());
  EXPECT_THAT(*bed.readings.reports, IsEmpty());
}

TEST(QosLoop, APolicyThatGoesAwayWhileItWaitsGivesThePortBack) {
  QosBed bed;
  bed.io["mlx5_0:1"].queue_pairs = 1;
  bed.Start();
  bed.RunFor(minutes(1));
  ASSERT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  bed.loop->Want({});
  bed.RunAll();
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_THAT(bed.io.writes, IsEmpty());
  EXPECT_THAT(bed.journal.records, IsEmpty());
}

TEST(QosLoop, WithoutAJournalNothingIsWritten) {
  QosBed bed;
  bed.journal.broken = base::Error{base::Code::kUnavailable, "read-only file system", {}};
  bed.Start();
  bed.RunAll();
  EXPECT_THAT(bed.io.writes, IsEmpty());
  EXPECT_EQ(bed.State(), LosslessState::kPending);
  EXPECT_THAT(bed.Report().reason, HasSubstr("--state-dir"));
  bed.journal.broken.reset();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
}

TEST(QosLoop, WhatAPortCannotTellIsUnknownWhereItMatters) {
  QosBed bed;
  auto& port = bed.io["mlx5_0:1"];
  port.have = AsWanted();
  port.have.ecn.reset();
  port.gaps = {{Setting::kEcn, "debugfs is not mounted"}};
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.Report().gaps, ElementsAre(port.gaps[0]));
  port.have.pfc.reset();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kUnknown);
  EXPECT_THAT(bed.Report().reason, HasSubstr("pfc cannot be read"));
}

TEST(QosLoop, AMachineThatWasRestartedIsSetAgain) {
  QosBed bed;
  bed.Start();
  bed.RunAll();
  bed.io["mlx5_0:1"].have = Fresh();
  bed.options.boot = "boot-2";
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, SizeIs(2));
  EXPECT_THAT(bed.Reasons(), ElementsAre(kLosslessApplied, kLosslessApplied)) << "a reboot is no drift";
}

// Its image is loaded anew each time, and so is the folder of the journal.
TEST(QosLoop, AMachineWithoutADiskIsSetAgainAfterARestart) {
  QosBed bed;
  bed.Start();
  bed.RunAll();
  bed.io["mlx5_0:1"].have = Fresh();
  bed.journal.records.clear();
  bed.options.boot = "boot-2";
  bed.Start();
  bed.RunAll();
  EXPECT_EQ(bed.State(), LosslessState::kCompliant);
  EXPECT_THAT(bed.io.writes, SizeIs(2));
}

TEST(QosLoop, ReadsEachPortTwiceAMinuteAtRest) {
  QosBed bed({"mlx5_0:1", "mlx5_1:1"});
  bed.io["mlx5_0:1"].have = bed.io["mlx5_1:1"].have = AsWanted();
  bed.Start();
  bed.RunFor(minutes(1));
  bed.io.reads = 0;
  bed.RunFor(minutes(10));
  EXPECT_EQ(bed.io.reads, 2 * 20);
  EXPECT_EQ(bed.publications, 1);
}

}  // namespace
}  // namespace heddle::nodeagent
