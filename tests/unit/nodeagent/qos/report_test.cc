#include "nodeagent/qos/report.h"

#include <gmock/gmock.h>

#include "crds/node_topology.h"
#include "nodeagent/publish/report.h"
#include "qos_bed.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessReport;
using crds::LosslessState;
using lossless::Setting;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

LosslessReport Of(const std::string& port, LosslessState state, std::string reason = "") {
  LosslessReport report;
  report.ports = {port};
  report.edition.policy = "roce";
  report.edition.generation = 1;
  report.state = state;
  report.reason = std::move(reason);
  return report;
}

LosslessReport Drifted(const std::string& port) {
  LosslessReport report = Of(port, LosslessState::kDrifted, "pfc differs");
  report.drift = {{{Setting::kPfc, "3", "3,4"}, base::WallTime{}, "lldpad"}};
  return report;
}

TEST(QosReport, PortsWithTheSameToSayShareAnEntry) {
  const auto groups = GroupReports({Of("mlx5_0:1", LosslessState::kCompliant), Drifted("mlx5_1:1"),
                                    Of("mlx5_2:1", LosslessState::kCompliant)});
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].ports, ElementsAre("mlx5_0:1", "mlx5_2:1"));
}

TEST(QosReport, NoNumberOfDifferentPortsIsTooMuchForAnObject) {
  std::vector<LosslessReport> ports;
  for (int i = 0; i < 200; ++i) {
    ports.push_back(
        Of("mlx5_" + std::to_string(i) + ":1", LosslessState::kFailed, "reason " + std::to_string(i)));
    ports.back().have = Fresh();
  }
  ports.push_back(Of("mlx5_200:1", LosslessState::kConflict, "two policies"));
  const auto groups = GroupReports(ports);
  ASSERT_THAT(groups, SizeIs(crds::kMaxLosslessEntries));
  EXPECT_EQ(groups[0].state, LosslessState::kConflict) << "the worst stays";
  EXPECT_FALSE(groups[0].have);
  EXPECT_THAT(groups.back().reason, HasSubstr("more different ports than an object holds"));
  crds::NodeTopology object;
  object.name = "a";
  object.status.lossless = groups;
  object.status.observed_at = base::WallTime{std::chrono::seconds(1)};
  object.status.hash = std::string(16, '0');
  EXPECT_EQ(crds::NodeTopologyFromJson(crds::ToJson(object))->status.lossless, groups);
}

TEST(QosReport, TheConditionSaysTheWorstFirst) {
  LosslessReadings readings;
  EXPECT_FALSE(LosslessCondition(readings)) << "nobody knows the spec yet";
  readings.reports.emplace();
  EXPECT_FALSE(LosslessCondition(readings)) << "no policy speaks of this node";
  readings.reports = {Of("mlx5_0:1", LosslessState::kCompliant), Drifted("mlx5_1:1"),
                      Of("mlx5_2:1", LosslessState::kFailed, "no carrier")};
  auto condition = LosslessCondition(readings);
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->reason, "Failed");
  EXPECT_EQ(condition->status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(condition->message, "mlx5_2:1 Failed: no carrier; mlx5_1:1 Drifted: pfc differs");
  readings.reports = {Of("mlx5_0:1", LosslessState::kPending, "waits")};
  EXPECT_EQ(LosslessCondition(readings)->status, crds::ConditionStatus::kUnknown);
  readings.reports = {Of("mlx5_0:1", LosslessState::kCompliant),
                      Of("mlx5_1:1", LosslessState::kNotApplicable)};
  EXPECT_EQ(LosslessCondition(readings)->status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(LosslessCondition(readings)->reason, "Compliant");
  readings.reports = {Of("mlx5_0:1", LosslessState::kCompliant),
                      Of("mlx5_1:1", LosslessState::kCompliant, "PFC without a watchdog")};
  EXPECT_EQ(LosslessCondition(readings)->status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(LosslessCondition(readings)->reason, "NoWatchdog");
  EXPECT_EQ(LosslessCondition(readings)->message,
            "every port is as its LosslessPolicy says; mlx5_1:1: PFC without a watchdog");
  LosslessReport open = Of("mlx5_0:1", LosslessState::kCompliant);
  open.gaps = {{lossless::Setting::kWatchdogMs, "none"}, {lossless::Setting::kDcqcn, "none"}};
  readings.reports = {open};
  EXPECT_EQ(LosslessCondition(readings)->reason, "Compliant") << "fine tuning that the driver does not have";
  open.gaps = {{lossless::Setting::kEcn, "no files"}, {lossless::Setting::kCnpDscp, "no files"}};
  readings.reports = {open};
  EXPECT_EQ(LosslessCondition(readings)->status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(LosslessCondition(readings)->reason, "Unproved");
  EXPECT_EQ(LosslessCondition(readings)->message,
            "every port is as its LosslessPolicy says; mlx5_0:1: not proved: ecn, cnpDscp (no files)");
  readings.reports = {Of("mlx5_1:1", LosslessState::kCompliant, "PFC without a watchdog"), open};
  EXPECT_EQ(LosslessCondition(readings)->reason, "NoWatchdog") << "the worse of both";
  EXPECT_THAT(LosslessCondition(readings)->message, HasSubstr("not proved: ecn"));
  open.state = LosslessState::kNotApplicable;
  readings.reports = {open};
  EXPECT_EQ(LosslessCondition(readings)->reason, "NotApplicable");
  readings.reports = {
      Of("mlx5_0:1", LosslessState::kNotApplicable, "InfiniBand is lossless by link credits")};
  EXPECT_EQ(LosslessCondition(readings)->reason, "NotApplicable");
  readings.problems = {"a file cannot be read"};
  EXPECT_EQ(LosslessCondition(readings)->reason, "JournalUnreadable");
}

TEST(QosReport, EventsAreOfWhatChanged) {
  const LosslessReport fine = Of("mlx5_0:1", LosslessState::kCompliant);
  const LosslessReport drifted = Drifted("mlx5_0:1");
  EXPECT_THAT(EventsOf(&fine, drifted),
              ElementsAre(QosEvent{true, kLosslessDrift, "mlx5_0:1", "pfc: want 3, have 3,4 (lldpad)"}));
  EXPECT_THAT(EventsOf(&drifted, drifted), SizeIs(0));
  EXPECT_THAT(EventsOf(nullptr, drifted), SizeIs(0)) << "it never was as wanted";
  const LosslessReport failed = Of("mlx5_0:1", LosslessState::kFailed, "no carrier");
  EXPECT_THAT(EventsOf(nullptr, failed),
              ElementsAre(QosEvent{true, kLosslessFailed, "mlx5_0:1", "no carrier"}));
  const auto joined = JoinEvents({{true, kLosslessDrift, "mlx5_0:1", "pfc"},
                                  {false, kLosslessApplied, "mlx5_2:1", "mtu is set"},
                                  {true, kLosslessDrift, "mlx5_1:1", "pfc"}});
  ASSERT_THAT(joined, SizeIs(2));
  EXPECT_EQ(joined[0].note, "mlx5_0:1, mlx5_1:1: pfc");
}

TEST(QosReport, OfAPortThatIsBeingSetNothingIsUsable) {
  Observation seen;
  topology::Nic nic;
  nic.name = "mlx5_0";
  nic.role = topology::NicRole::kCompute;
  nic.rail = 0;
  nic.ports.resize(1);
  nic.ports[0].state = topology::LinkState::kActive;
  nic.ports[0].rate_gbps = nic.ports[0].usable_gbps = 400;
  seen.node.nics = {nic};
  crds::NodeTopology current;
  current.status.lossless = {Of("mlx5_0:1", LosslessState::kCompliant)};
  LosslessReadings readings;
  readings.withdrawn["mlx5_0:1"] = "its lossless settings are being changed";
  const auto next = Report(current, seen, base::WallTime{}, nullptr, nullptr, &readings);
  EXPECT_EQ(next.status.node.nics[0].ports[0].usable_gbps, 0);
  EXPECT_EQ(next.status.lossless, current.status.lossless) << "not known yet, so it stays";
  const auto* rail = crds::FindCondition(next.status.conditions, "Rail0Healthy");
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->reason, "BeingSet");
  EXPECT_THAT(rail->message, StartsWith("mlx5_0 port 1: its lossless settings are being changed"));
  EXPECT_EQ(topology::Check(next.status.node), topology::Check(seen.node));
}

}  // namespace
}  // namespace heddle::nodeagent
