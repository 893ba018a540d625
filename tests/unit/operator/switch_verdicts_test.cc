#include "operator/switch_verdicts.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "operator/switch_status.h"
#include "switches/openconfig_ports.h"
#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using lossless::LosslessVerdict;
using testing::ElementsAre;
using testing::HasSubstr;

const base::WallTime kNow = *base::ParseTime("2026-11-24T02:00:00Z");

class SwitchVerdictsTest : public testing::Test {
 protected:
  SwitchVerdictsTest() {
    nodes = {{"gpu-017", std::make_shared<crds::NodeTopology>(CabledTopology("gpu-017"))}};
    crds::LosslessPolicy policy;
    policy.name = "roce";
    policies.read = {policy};
    crds::FabricSwitch leaf;
    leaf.name = "leaf-3";
    leaf.spec.address = "leaf-3:8080";
    leaf.spec.name = "leaf-3";
    fabric_switches = {leaf};
    answers["leaf-3"] = {.read_at = kNow - std::chrono::seconds(30),
                         .config = SonicAnswerOf("leaf-3", true),
                         .connecting = false};
  }

  // spine-1, which answers as leaf-3 does. `lossless`: as SonicAnswerOf takes it.
  void AddSpine(bool lossless) {
    crds::FabricSwitch spine = fabric_switches[0];
    spine.name = spine.spec.name = "spine-1";
    spine.spec.role = crds::SwitchRole::kSpine;
    fabric_switches.push_back(spine);
    answers["spine-1"] = answers["leaf-3"];
    answers["spine-1"].config = SonicAnswerOf("spine-1", lossless);
  }

  // At the other end of the cable in its only port.
  void See(const std::string& who, const std::string& whom) {
    answers[who].neighbours = std::make_shared<const switches::Neighbours>(
        switches::Neighbours{{"Ethernet0", {whom, "", "etp1", "Ethernet0"}}});
    answers[who].saw_at = kNow;
  }

  SwitchVerdicts Decide() { return DecideVerdicts(fabric_switches, answers, nodes, policies, silent, kNow); }
  static std::string Reason(const crds::FabricSwitchStatus& status, std::string_view type) {
    const crds::Condition* condition = crds::FindCondition(status.conditions, type);
    return condition == nullptr ? "" : condition->reason;
  }

  std::vector<crds::FabricSwitch> fabric_switches;
  SwitchAnswers answers;
  std::vector<CabledNode> nodes;
  Policies<crds::LosslessPolicy> policies;
  Silent silent;
};

TEST_F(SwitchVerdictsTest, BothEndsThatGoTogetherAreLossless) {
  const SwitchVerdicts verdicts = Decide();
  ASSERT_EQ(verdicts.nodes.at("gpu-017")->reports.size(), 1u);
  const crds::CableReport& report = verdicts.nodes.at("gpu-017")->reports.front();
  EXPECT_EQ(report.verdict, LosslessVerdict::kLossless) << report.message;
  EXPECT_EQ(report.counted_percent, 100);
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCablesLossless), "Lossless");
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->counts, (crds::CableCounts{1, 1, 0, 0}));
}

TEST_F(SwitchVerdictsTest, AContradictionNamesBothEndsAndCountsAsThePolicySays) {
  answers["leaf-3"].config = SonicAnswerOf("leaf-3", false);
  const SwitchVerdicts verdicts = Decide();
  const crds::CableReport& report = verdicts.nodes.at("gpu-017")->reports.front();
  EXPECT_EQ(report.verdict, LosslessVerdict::kContradiction);
  EXPECT_THAT(report.message, HasSubstr("DSCP 26"));
  EXPECT_EQ(report.counted_percent, 50);
  const crds::FabricSwitchStatus& status = verdicts.statuses.at("leaf-3");
  ASSERT_EQ(status.worst_cables.size(), 1u);
  EXPECT_EQ(status.worst_cables[0].switch_port, "Ethernet0");
  EXPECT_FALSE(status.worst_cables[0].host.empty());
  EXPECT_FALSE(status.worst_cables[0].leaf.empty());
  EXPECT_THAT(verdicts.nodes.at("gpu-017")->worst, HasSubstr("gpu-017 mlx5_0:1 on leaf-3 Ethernet0"));
  policies.read[0].spec.counted = crds::CountedCables::kNotContradicting;
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().counted_percent, 0);
  policies.read[0].spec.counted = crds::CountedCables::kAll;
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().counted_percent, 100);
}

TEST_F(SwitchVerdictsTest, WhatACableCountedStaysWhileItsPolicyCannotBeRead) {
  answers["leaf-3"].config = SonicAnswerOf("leaf-3", false);
  const std::vector<crds::CableReport> told = Decide().nodes.at("gpu-017")->reports;
  ASSERT_EQ(told.size(), 1u);
  ASSERT_EQ(told[0].counted_percent, 50);
  auto node = std::make_shared<crds::NodeTopology>(*nodes[0].topology);
  node->spec.cables = told;
  nodes[0].topology = node;
  policies.read.clear();
  policies.unreadable["roce"];
  const SwitchVerdicts kept = Decide();
  EXPECT_EQ(kept.nodes.at("gpu-017")->reports, told)
      << "a policy that a newer version wrote was not taken back";
  EXPECT_EQ(kept.nodes.at("gpu-017")->counts, (crds::CableCounts{1, 0, 1, 0}));
  policies.unreadable.clear();
  EXPECT_THAT(Decide().nodes.at("gpu-017")->reports, testing::IsEmpty()) << "this one was";
}

TEST_F(SwitchVerdictsTest, WhatASwitchSaidIsNoProofOnceItIsStale) {
  answers["leaf-3"].read_at = kNow - std::chrono::seconds(3 * 60 + 1);
  answers["leaf-3"].trouble = SwitchTrouble{"Unreachable", "leaf-3:8080: nobody listens there"};
  const SwitchVerdicts verdicts = Decide();
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kReachable), "Unreachable");
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCompared), "Stale");
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCablesLossless), "Unproved");
}

TEST_F(SwitchVerdictsTest, ACableToAnotherSwitchOfTheNameIsNoneOfItsCablesWhenItIsStaleEither) {
  auto other = std::make_shared<crds::NodeTopology>(CabledTopology("gpu-017"));
  for (topology::Nic& nic : other->status.node.nics) {
    for (topology::NicPort& port : nic.ports) {
      if (!port.leaf_port) continue;
      topology::LeafPort leaf = *port.leaf_port;
      leaf.chassis_id = "04:3f:72:aa:bb:cc";
      port.leaf_port = leaf;
    }
  }
  nodes = {{"gpu-017", other}};
  answers["leaf-3"].chassis_id = "0c:42:a1:00:00:01";
  for (const int seconds_ago : {30, 3 * 60 + 1}) {
    answers["leaf-3"].read_at = kNow - std::chrono::seconds(seconds_ago);
    const SwitchVerdicts verdicts = Decide();
    EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
    EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCompared),
              seconds_ago == 30 ? "NoCables" : "Stale");
    EXPECT_EQ(verdicts.statuses.at("leaf-3").counts.cables, crds::CableCounts{}) << seconds_ago;
  }
}

TEST_F(SwitchVerdictsTest, AnAnswerThatIsNotStaleOutlivesAFailedTry) {
  answers["leaf-3"].trouble = SwitchTrouble{"Unreachable", "leaf-3:8080: nobody listens there"};
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kLossless);
}

TEST_F(SwitchVerdictsTest, ASwitchThatCallsItselfOtherwiseProvesNothing) {
  answers["leaf-3"].config = SonicAnswerOf("leaf-9", true);
  const SwitchVerdicts verdicts = Decide();
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCompared), "NameInDoubt");
}

TEST_F(SwitchVerdictsTest, OfTwoSwitchesWithOneNameNeitherProvesAnything) {
  fabric_switches.push_back(fabric_switches[0]);
  fabric_switches[1].name = "leaf-3-again";
  answers["leaf-3-again"] = answers["leaf-3"];
  const SwitchVerdicts verdicts = Decide();
  for (const auto& [name, status] : verdicts.statuses)
    EXPECT_EQ(Reason(status, crds::kCompared), "NameInDoubt") << name;
  for (const crds::CableReport& report : verdicts.nodes.at("gpu-017")->reports)
    EXPECT_EQ(report.verdict, LosslessVerdict::kUnproved);
}

// A switch that is no FabricSwitch has the hostname of one that is.
TEST_F(SwitchVerdictsTest, ACableToAnotherSwitchOfTheNameIsNotProvedAndTheNodeIsToldBothChassis) {
  auto other = std::make_shared<crds::NodeTopology>(*nodes[0].topology);
  other->name = "gpu-018";
  other->status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf-3", "etp1", "04:3f:72:00:00:01"};
  nodes.push_back({"gpu-018", other});
  answers["leaf-3"].chassis_id = "0c:42:a1:00:00:01";
  const SwitchVerdicts verdicts = Decide();
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kLossless)
      << "an agent that says no chassis is believed as before, and nobody else claims its port";
  ASSERT_EQ(verdicts.nodes.at("gpu-018")->reports.size(), 1u) << "told whatever countedCables says";
  const crds::CableReport& report = verdicts.nodes.at("gpu-018")->reports.front();
  EXPECT_EQ(report.verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(report.counted_percent, 100);
  EXPECT_THAT(report.message, testing::AllOf(HasSubstr("gpu-018 mlx5_0:1 sees a switch called leaf-3"),
                                             HasSubstr("04:3f:72:00:00:01"), HasSubstr("0c:42:a1:00:00:01"),
                                             HasSubstr("two switches have one hostname")));
  EXPECT_EQ(verdicts.nodes.at("gpu-018")->counts, (crds::CableCounts{1, 0, 0, 1}));
  EXPECT_EQ(verdicts.statuses.at("leaf-3").counts.cables, (crds::CableCounts{1, 1, 0, 0}))
      << "it is no cable of this switch";
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCablesLossless), "Lossless");
  policies.read[0].spec.counted = crds::CountedCables::kLosslessOnly;
  EXPECT_EQ(Decide().nodes.at("gpu-018")->reports.front().counted_percent, 0);
  EXPECT_EQ(Decide().nodes.at("gpu-018")->reports.front().message, report.message);
  fabric_switches[0].spec.chassis_id = "04-3F-72-00-00-01";
  EXPECT_EQ(Decide().nodes.at("gpu-018")->reports.front().verdict, LosslessVerdict::kUnproved)
      << "what a person says counts; but now two hosts claim the port";
  nodes.erase(nodes.begin());
  EXPECT_EQ(Decide().nodes.at("gpu-018")->reports.front().verdict, LosslessVerdict::kLossless);
}

TEST_F(SwitchVerdictsTest, OneThatIsKnownByItsChassisIsBelievedAndOneWithANameIsNotWhileAnotherHasItToo) {
  fabric_switches.push_back(fabric_switches[0]);
  fabric_switches[1].name = "by-chassis";
  fabric_switches[1].spec.name.clear();
  fabric_switches[1].spec.chassis_id = "52:54:00:00:00:09";
  fabric_switches[0].spec.chassis_id = "52:54:00:00:00:08";
  answers["by-chassis"] = answers["leaf-3"];
  const SwitchVerdicts verdicts = Decide();
  const crds::Condition* doubt =
      crds::FindCondition(verdicts.statuses.at("leaf-3").conditions, crds::kCompared);
  EXPECT_EQ(doubt->reason, "NameInDoubt");
  EXPECT_THAT(doubt->message, HasSubstr("a hostname of its own"));
  EXPECT_EQ(Reason(verdicts.statuses.at("by-chassis"), crds::kCompared), "NoCables");
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
}

TEST_F(SwitchVerdictsTest, WhatAnAgentSaidIsNoProofOnceItIsSilent) {
  silent.nodes = {"gpu-017"};
  const SwitchVerdicts verdicts = Decide();
  const crds::CableReport& report = verdicts.nodes.at("gpu-017")->reports.front();
  EXPECT_EQ(report.verdict, LosslessVerdict::kUnproved);
  EXPECT_THAT(report.message, HasSubstr("nobody says any longer how the host is set"));
  EXPECT_THAT(report.message, HasSubstr("agent running"));
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCablesLossless), "Unproved");
  silent.nodes = {"gpu-018"};
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kLossless);
}

TEST_F(SwitchVerdictsTest, OfASwitchThatNobodyHasHeardYetStaysWhatWasWritten) {
  const SwitchVerdicts known = Decide();
  auto told = std::make_shared<crds::NodeTopology>(*nodes[0].topology);
  told->spec.cables = known.nodes.at("gpu-017")->reports;
  nodes[0].topology = told;
  fabric_switches[0].status = known.statuses.at("leaf-3");
  answers.clear();
  silent.switches = {"leaf-3"};
  const SwitchVerdicts kept = Decide();
  EXPECT_EQ(kept.nodes.at("gpu-017")->reports, known.nodes.at("gpu-017")->reports);
  EXPECT_EQ(kept.nodes.at("gpu-017")->counts, known.nodes.at("gpu-017")->counts);
  EXPECT_EQ(kept.statuses, known.statuses);
  // Also of a contradiction, and what it counts for is still as the policy says.
  told->spec.cables[0].verdict = LosslessVerdict::kContradiction;
  told->spec.cables[0].message = "DSCP 26";
  policies.read[0].spec.counted = crds::CountedCables::kLosslessOnly;
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().counted_percent, 0);
  EXPECT_THAT(Decide().nodes.at("gpu-017")->worst, HasSubstr("gpu-017 mlx5_0:1 on leaf-3 etp1: DSCP 26"));
  // It cannot be reached: that is said at once, and the rest stays.
  answers["leaf-3"] = {.trouble = SwitchTrouble{"Unreachable", "nobody listens"}, .connecting = false};
  EXPECT_EQ(Reason(Decide().statuses.at("leaf-3"), crds::kReachable), "Unreachable");
  EXPECT_EQ(Reason(Decide().statuses.at("leaf-3"), crds::kCablesLossless), "Lossless");
  // Once that was long enough ago nothing is proved.
  silent.switches.clear();
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(Reason(Decide().statuses.at("leaf-3"), crds::kCablesLossless), "Unproved");
}

TEST_F(SwitchVerdictsTest, OneThatNothingWasWrittenOfIsToldWhileItIsWaitedFor) {
  answers.clear();
  silent.switches = {"leaf-3"};
  const SwitchVerdicts verdicts = Decide();
  EXPECT_THAT(verdicts.nodes.at("gpu-017")->reports, testing::IsEmpty());
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kReachable), "Connecting");
}

TEST_F(SwitchVerdictsTest, SaysWhenTheFirstOfItIsStale) {
  EXPECT_EQ(Decide().turns, kNow + std::chrono::seconds(150));
  fabric_switches.push_back(fabric_switches[0]);
  fabric_switches[1].name = fabric_switches[1].spec.name = "leaf-4";
  fabric_switches[1].spec.poll_seconds = 10;
  answers["leaf-4"] = {.read_at = kNow, .config = SonicAnswerOf("leaf-4", true), .connecting = false};
  EXPECT_EQ(Decide().turns, kNow + std::chrono::seconds(30));
  answers["leaf-4"].read_at = kNow - std::chrono::seconds(31);  // it is
  EXPECT_EQ(Decide().turns, kNow + std::chrono::seconds(150));
}

TEST_F(SwitchVerdictsTest, SaysWhetherItsCountersAreReadAndWhichOfThemWereReset) {
  const auto counted = [&] {
    return *crds::FindCondition(Decide().statuses.at("leaf-3").conditions, kCounted);
  };
  SwitchCounting& counting = answers["leaf-3"].counting;
  EXPECT_EQ(counted().reason, "NotYet");
  counting.trouble = SwitchTrouble{"NotAllowed", "leaf-3:8080: may not be read; give the user the right"};
  EXPECT_EQ(counted().status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(counted().reason, "NotAllowed");
  EXPECT_THAT(counted().message, HasSubstr("nothing of it was ever counted"));
  counting.counted_at = kNow;
  EXPECT_THAT(counted().message, HasSubstr("last counted at 2026-11-24T02:00:00Z"));
  counting.trouble.reset();
  counting.ports = 64;
  EXPECT_EQ(counted().reason, "Counts");
  counting.noted = 2;
  counting.notes = {"Ethernet0: in_errors went back from 120 to 4"};
  EXPECT_EQ(counted().status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(counted().reason, "CountersReset");
  EXPECT_THAT(counted().message, HasSubstr("of 2 ports"));
  EXPECT_THAT(counted().message, HasSubstr("in_errors went back from 120 to 4; ..."));
}

TEST_F(SwitchVerdictsTest, SaysWhatItMissesOfASwitchThatCountsNoFlaps) {
  const auto counted = [&] {
    return *crds::FindCondition(Decide().statuses.at("leaf-3").conditions, kCounted);
  };
  SwitchCounting& counting = answers["leaf-3"].counting;
  counting.counted_at = kNow;
  counting.ports = 64;
  counting.flaps = switches::FlapsBy::kCounter;
  EXPECT_EQ(counted().message, "the counters of 64 ports are read");
  counting.flaps = switches::FlapsBy::kState;
  EXPECT_EQ(counted().status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(counted().reason, "FlapsByState");
  EXPECT_THAT(counted().message, HasSubstr("down and up again in between is not seen"));
  counting.noted = 1;
  counting.notes = {"Ethernet0: in_errors went back from 120 to 4"};
  EXPECT_EQ(counted().reason, "CountersReset");
  EXPECT_THAT(counted().message, HasSubstr("in between is not seen")) << "whatever else there is to say";
  counting.trouble = SwitchTrouble{"NotAllowed", "leaf-3:8080: may not be read; give the user the right"};
  EXPECT_EQ(counted().status, crds::ConditionStatus::kFalse);
}

TEST_F(SwitchVerdictsTest, ACableToNoFabricSwitchIsToldOnlyWhereNothingButAProofCounts) {
  fabric_switches.clear();
  EXPECT_THAT(Decide().nodes.at("gpu-017")->reports, testing::IsEmpty());
  policies.read[0].spec.counted = crds::CountedCables::kLosslessOnly;
  const auto reports = Decide().nodes.at("gpu-017")->reports;
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].counted_percent, 0);
  EXPECT_THAT(reports[0].message, HasSubstr("no FabricSwitch is called leaf-3"));
  silent.unread = {"leaf-3"};
  const std::string message = Decide().nodes.at("gpu-017")->reports.front().message;
  EXPECT_THAT(message, HasSubstr("cannot read the FabricSwitch of leaf-3"));
  EXPECT_THAT(message, testing::Not(HasSubstr("make one")));
}

TEST_F(SwitchVerdictsTest, EqualFactsLaterGiveAnEqualStatus) {
  fabric_switches[0].status = Decide().statuses.at("leaf-3");
  answers["leaf-3"].read_at = kNow + std::chrono::minutes(1);
  EXPECT_EQ(DecideVerdicts(fabric_switches, answers, nodes, policies, silent, kNow + std::chrono::minutes(2))
                .statuses.at("leaf-3"),
            fabric_switches[0].status);
  answers["leaf-3"].read_at = kNow + std::chrono::minutes(11);
  EXPECT_NE(DecideVerdicts(fabric_switches, answers, nodes, policies, silent, kNow + std::chrono::minutes(11))
                .statuses.at("leaf-3"),
            fabric_switches[0].status);
}

TEST_F(SwitchVerdictsTest, ACableWhoseSwitchSeesAnotherHostIsNotProved) {
  answers["leaf-3"].neighbours = std::make_shared<const switches::Neighbours>(
      switches::Neighbours{{"Ethernet0", {"gpu-017", "", "", "eth0"}}});
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kLossless);
  auto other = std::make_shared<crds::NodeTopology>(*nodes[0].topology);
  other->name = "gpu-018";
  other->status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf-9", "etp1"};
  nodes.push_back({"gpu-018", other});
  answers["leaf-3"].neighbours = std::make_shared<const switches::Neighbours>(
      switches::Neighbours{{"Ethernet0", {"gpu-018", "", "", "eth0"}}});
  const SwitchVerdicts verdicts = Decide();
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
  EXPECT_THAT(verdicts.nodes.at("gpu-017")->reports.front().message,
              testing::AllOf(HasSubstr("gpu-017 mlx5_0:1"), HasSubstr("sees gpu-018 eth0 there")));
  EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCablesLossless), "Unproved");
}

TEST_F(SwitchVerdictsTest, ACableThatTwoHostsClaimIsProvedOfNeither) {
  auto other = std::make_shared<crds::NodeTopology>(*nodes[0].topology);
  other->name = "gpu-018";
  nodes.push_back({"gpu-018", other});
  const SwitchVerdicts verdicts = Decide();
  for (const char* node : {"gpu-017", "gpu-018"}) {
    EXPECT_EQ(verdicts.nodes.at(node)->reports.front().verdict, LosslessVerdict::kUnproved) << node;
    EXPECT_THAT(
        verdicts.nodes.at(node)->reports.front().message,
        HasSubstr("gpu-017 mlx5_0:1 and gpu-018 mlx5_0:1 both say that they end on leaf-3 Ethernet0"));
    EXPECT_EQ(verdicts.nodes.at(node)->rails,
              (std::map<int, LosslessVerdict>{{0, LosslessVerdict::kUnproved}}));
  }
}

TEST_F(SwitchVerdictsTest, SaysWhetherPortsMarkAsThePolicyWantsAndNoVerdictDependsOnIt) {
  const auto marks = [this] {
    const SwitchVerdicts verdicts = Decide();
    EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kLossless);
    return *crds::FindCondition(verdicts.statuses.at("leaf-3").conditions, kMarksEcn);
  };
  EXPECT_EQ(marks().reason, "Marks");
  policies.read[0].spec.policy.marking = lossless::EcnMarking{150'000, 1'500'000, 100};
  crds::Condition condition = marks();
  EXPECT_EQ(condition.status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(condition.reason, "OtherThanPolicy");
  EXPECT_THAT(condition.message,
              HasSubstr("1 of 1 ports with a cable; Ethernet0: priority 3 is marked from"));
  switches::SonicAnswer answer = *answers["leaf-3"].config;
  for (formats::SonicPort& port : answer.config.ports) port.settings.ecn = lossless::PrioritySet{};
  answers["leaf-3"].config = std::make_shared<const switches::SonicAnswer>(answer);
  condition = marks();
  EXPECT_EQ(condition.reason, "Off");
  EXPECT_THAT(condition.message, HasSubstr("lossless priority 3 is not marked"));
  answers["leaf-3"].read_at = kNow - std::chrono::hours(2);
  const SwitchVerdicts stale = Decide();
  EXPECT_EQ(Reason(stale.statuses.at("leaf-3"), kMarksEcn), "NotKnown");
}

TEST_F(SwitchVerdictsTest, ASwitchOfOpenConfigProvesNothingAndContradictsByItsLines) {
  fabric_switches[0].spec.dialect = crds::SwitchDialect::kOpenConfig;
  const auto say = [&](const std::string& hostname, int speed) {
    switches::SonicAnswer answer;
    answer.config.hostname = hostname;
    formats::SonicPort port;
    port.name = "etp1";
    port.speed_mbps = speed;
    port.bare = switches::kNoPfcPath;
    answer.config.bare = {port};
    answers["leaf-3"].config = std::make_shared<const switches::SonicAnswer>(answer);
  };
  answers["leaf-3"].config = nullptr;
  EXPECT_EQ(Reason(Decide().statuses.at("leaf-3"), crds::kCompared), "DialectLacksPfc");
  for (const char* name : {"leaf-3", ""}) {
    say(name, 100'000);
    const SwitchVerdicts verdicts = Decide();
    EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
    EXPECT_EQ(Reason(verdicts.statuses.at("leaf-3"), crds::kCompared), "DialectLacksPfc") << name;
    EXPECT_EQ(verdicts.statuses.at("leaf-3").counts.ports, 1);
  }
  say("leaf-3", 400'000);
  const SwitchVerdicts verdicts = Decide();
  EXPECT_EQ(verdicts.nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(verdicts.statuses.at("leaf-3").worst_cables.at(0).setting, "speed");
  say("leaf-9", 400'000);
  EXPECT_EQ(Reason(Decide().statuses.at("leaf-3"), crds::kCompared), "NameInDoubt");
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
}

TEST_F(SwitchVerdictsTest, ACableThatOneSwitchSawTooLongAgoIsNotProvedUntilItSaysSoAgain) {
  AddSpine(true);
  answers["spine-1"].neighbours = std::make_shared<const switches::Neighbours>();
  answers["leaf-3"].neighbours = std::make_shared<const switches::Neighbours>(
      switches::Neighbours{{"Ethernet0", {"spine-1", "", "etp1", "Ethernet0"}}});
  nodes.clear();
  const auto verdict = [this](std::chrono::seconds ago) {
    answers["leaf-3"].saw_at = kNow - ago;
    const SwitchVerdicts verdicts = Decide();
    EXPECT_EQ(verdicts.between.size(), 1u);
    return verdicts.between.empty() ? LosslessVerdict::kContradiction : verdicts.between[0].outcome.verdict;
  };
  EXPECT_EQ(verdict(std::chrono::seconds(100)), LosslessVerdict::kLossless);
  EXPECT_EQ(Decide().turns, kNow + std::chrono::seconds(80)) << "before its settings are stale";
  EXPECT_EQ(verdict(std::chrono::seconds(181)), LosslessVerdict::kUnproved);
  EXPECT_EQ(Decide().turns, kNow + std::chrono::seconds(150)) << "they are next";
  EXPECT_EQ(Reason(Decide().statuses.at("leaf-3"), crds::kCablesLossless), "Unproved");
  EXPECT_EQ(verdict(std::chrono::seconds(0)), LosslessVerdict::kLossless);
}

TEST_F(SwitchVerdictsTest, ACableBetweenTwoSwitchesStandsAtBoth) {
  AddSpine(false);
  nodes.clear();
  See("leaf-3", "spine-1");
  See("spine-1", "leaf-3");
  const SwitchVerdicts verdicts = Decide();
  ASSERT_EQ(verdicts.between.size(), 1u);
  EXPECT_EQ(verdicts.between[0].lower, "leaf-3");
  EXPECT_EQ(verdicts.between[0].outcome.verdict, LosslessVerdict::kContradiction);
  const auto& at_leaf = verdicts.statuses.at("leaf-3").worst_cables;
  const auto& at_spine = verdicts.statuses.at("spine-1").worst_cables;
  ASSERT_EQ(at_leaf.size(), 1u);
  ASSERT_EQ(at_spine.size(), 1u);
  EXPECT_EQ(at_leaf[0].node + " " + at_spine[0].node, "spine-1 leaf-3");
  EXPECT_EQ(at_leaf[0].setting, "dscpToPriority");
  EXPECT_EQ(at_leaf[0].leaf, at_spine[0].host) << "its own value, and the other's";
  EXPECT_EQ(Reason(verdicts.statuses.at("spine-1"), crds::kCablesLossless), "Contradiction");
}

// Fabrics are told anew by it.
TEST_F(SwitchVerdictsTest, ACableBetweenTwoSwitchesThatIsJudgedOtherwiseIsNews) {
  AddSpine(true);
  nodes.clear();
  See("leaf-3", "spine-1");
  See("spine-1", "leaf-3");
  const SwitchVerdicts before = Decide();
  EXPECT_TRUE(SayTheSameOfCables(before, Decide()));
  answers["spine-1"].config = SonicAnswerOf("spine-1", false);
  EXPECT_FALSE(SayTheSameOfCables(before, Decide()));
}

TEST_F(SwitchVerdictsTest, ASwitchWhoseTablesNameNoBuffersForDataProvesNothing) {
  std::map<std::string, crds::Json> tables = SonicTables("leaf-3", true);
  for (const char* table : {"BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE"})
    tables[table] = crds::Json::object();
  std::map<std::string, std::string> texts;
  for (const auto& [name, table] : tables) texts[name] = table.dump();
  auto answer = switches::ReadSonicText(switches::SonicConfigText(texts).value());
  ASSERT_TRUE(answer) << answer.error().message;
  answers["leaf-3"].config = std::make_shared<const switches::SonicAnswer>(*std::move(answer));
  EXPECT_EQ(Decide().nodes.at("gpu-017")->reports.front().verdict, LosslessVerdict::kUnproved);
}

TEST_F(SwitchVerdictsTest, APortBetweenTwoSwitchesIsRenderedByThePolicyOfTheHostsBelow) {
  AddSpine(true);
  fabric_switches[0].spec.mode = fabric_switches[1].spec.mode = crds::SwitchMode::kRender;
  std::map<std::string, crds::Json> tables = SonicTables("leaf-3", true);
  tables["PORT"]["Ethernet4"] = tables["PORT"]["Ethernet0"];
  tables["PORT"]["Ethernet4"]["alias"] = "etp2";
  tables["PORT_QOS_MAP"]["Ethernet4"] = tables["PORT_QOS_MAP"]["Ethernet0"];
  std::map<std::string, std::string> texts;
  for (const auto& [name, table] : tables) texts[name] = table.dump();
  auto answer = switches::ReadSonicText(switches::SonicConfigText(texts).value());
  ASSERT_TRUE(answer) << answer.error().message;
  answers["leaf-3"].config = std::make_shared<const switches::SonicAnswer>(*std::move(answer));
  const auto sees = [&](const char* who, const char* at, const char* whom, const char* port) {
    answers[who].neighbours =
        std::make_shared<const switches::Neighbours>(switches::Neighbours{{at, {whom, "", "", port}}});
    answers[who].saw_at = kNow;
  };
  sees("leaf-3", "Ethernet4", "spine-1", "Ethernet0");
  sees("spine-1", "Ethernet0", "leaf-3", "Ethernet4");
  SwitchVerdicts verdicts = Decide();
  const HostCables& leaf = verdicts.host_cables.at("leaf-3");
  EXPECT_THAT(leaf.ports, ElementsAre(testing::Pair("roce", ElementsAre("Ethernet0"))));
  EXPECT_THAT(leaf.fabric.ports, ElementsAre(testing::Pair("roce", ElementsAre("Ethernet4"))));
  const HostCables& spine = verdicts.host_cables.at("spine-1");
  EXPECT_EQ(spine.cables, 0);
  EXPECT_THAT(spine.fabric.ports, ElementsAre(testing::Pair("roce", ElementsAre("Ethernet0"))));
  // The spine alone is rendered: its hosts' policy is known by their leaf all the same.
  fabric_switches[0].spec.mode = crds::SwitchMode::kObserve;
  EXPECT_EQ(Decide().host_cables.at("spine-1"), spine);
  EXPECT_FALSE(Decide().host_cables.contains("leaf-3"));
  sees("spine-1", "Ethernet0", "somebody-else", "Ethernet4");
  verdicts = Decide();
  EXPECT_THAT(verdicts.host_cables.at("spine-1").fabric.ports, testing::IsEmpty());
  EXPECT_TRUE(verdicts.host_cables.at("spine-1").fabric.left_out.contains("Ethernet0"));
}

TEST_F(SwitchVerdictsTest, APortThatAHostSaysItsCableEndsOnIsNotRenderedAsOneBetweenSwitches) {
  AddSpine(true);
  fabric_switches[0].spec.mode = crds::SwitchMode::kRender;
  See("leaf-3", "spine-1");
  See("spine-1", "leaf-3");
  const HostCables leaf = Decide().host_cables.at("leaf-3");
  EXPECT_TRUE(leaf.doubted.contains("Ethernet0"));
  EXPECT_TRUE(leaf.fabric.empty());
}

}  // namespace
}  // namespace heddle::operators
