#include "operator/lossless_rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::operators {
namespace {

using crds::LosslessPolicy;
using crds::LosslessState;
using crds::LosslessWish;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

LosslessPolicy PolicyNamed(std::string name, std::int64_t generation = 1) {
  LosslessPolicy policy;
  policy.name = std::move(name);
  policy.generation = generation;
  policy.spec.mode = crds::LosslessMode::kApply;
  return policy;
}

topology::Nic NicNamed(std::string name, int rail, topology::Transport transport = topology::Transport::kRoce,
                       topology::NicRole role = topology::NicRole::kCompute) {
  topology::Nic nic;
  nic.name = std::move(name);
  nic.rail = rail;
  nic.transport = transport;
  nic.role = role;
  nic.ports.emplace_back();
  return nic;
}

LosslessNode NodeNamed(std::string name) {
  LosslessNode node;
  node.name = std::move(name);
  node.labels = {{"pool", "gpu"}};
  node.node.nics = {NicNamed("mlx5_0", 0), NicNamed("mlx5_1", 1),
                    NicNamed("mlx5_2", 0, topology::Transport::kRoce, topology::NicRole::kStorage)};
  return node;
}

// The agent says of all that it was told that it is in this state.
void Report(LosslessNode& node, const LosslessRollout& rollout, LosslessState state) {
  node.wishes = rollout.wishes.at(node.name);
  node.reports.clear();
  for (const LosslessWish& wish : node.wishes) {
    crds::LosslessReport report;
    report.ports = wish.ports;
    report.edition = crds::EditionOf(wish);
    report.state = state;
    if (state != LosslessState::kCompliant) report.reason = "as the test says";
    node.reports.push_back(report);
  }
}

std::string ReasonOf(const LosslessRollout& rollout, const std::string& policy) {
  const auto* ready = crds::FindCondition(rollout.statuses.at(policy).conditions, crds::kReady);
  return ready == nullptr ? "" : ready->reason;
}

TEST(LosslessRollout, TellsEqualPortsTheSameInOneEntry) {
  const auto rollout = DecideRollout({{PolicyNamed("roce", 7)}, {}}, {NodeNamed("a")}, kNow);
  const auto& wishes = rollout.wishes.at("a");
  ASSERT_EQ(wishes.size(), 1u);
  EXPECT_THAT(wishes[0].ports, ElementsAre("mlx5_0:1", "mlx5_1:1")) << "storage is not asked for";
  EXPECT_THAT(wishes[0].policies, ElementsAre("roce"));
  EXPECT_EQ(wishes[0].generation, 7);
  ASSERT_TRUE(wishes[0].settings);
  EXPECT_EQ(wishes[0].settings->pfc, lossless::PrioritySet{3});
  const auto& status = rollout.statuses.at("roce");
  EXPECT_EQ(status.counts, (crds::LosslessCounts{1, 2, 0, 0, 0, 0, 2}));
  EXPECT_EQ(status.profile, "generic/v1");
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Waiting");
  EXPECT_THAT(
      crds::FindCondition(status.conditions, crds::kReady)->message,
      HasSubstr("2 ports have not been reported yet, first a mlx5_0:1: `kubectl heddle doctor` says"));
}

TEST(LosslessRollout, IsNotCompliantWhileANodeThatItSelectsCannotBeRead) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.node_selector = {{"pool", "gpu"}};
  std::vector<LosslessNode> nodes{NodeNamed("a")};
  const std::vector<UnreadNode> unread{{"b", {{"pool", "gpu"}}, "status.nics[0].transport: what is this"}};
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  Report(nodes[0], rollout, LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow, unread);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Waiting") << "nor is it said to hold the others up";
  EXPECT_EQ(rollout.statuses.at("roce").counts.nodes, 2);
  EXPECT_FALSE(rollout.wishes.contains("b")) << "it keeps what it was told";
  EXPECT_THAT(crds::FindCondition(rollout.statuses.at("roce").conditions, crds::kReady)->message,
              HasSubstr("first b: status.nics[0].transport"));
  Report(nodes[0], rollout, LosslessState::kDrifted);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow, unread);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Drifted") << "what is known to be wrong is said first";
  Report(nodes[0], rollout, LosslessState::kCompliant);
  const std::vector<UnreadNode> other{{"b", {{"pool", "cpu"}}, "status.nics[0].transport: what is this"}};
  rollout = DecideRollout({{policy}, {}}, nodes, kNow, other);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Compliant") << "it does not select that one";
}

TEST(LosslessRollout, SelectsByLabelRoleAndRail) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.node_selector = {{"pool", "gpu"}};
  policy.spec.roles = {topology::NicRole::kCompute, topology::NicRole::kStorage};
  policy.spec.rails = {0};
  LosslessNode other = NodeNamed("b");
  other.labels["pool"] = "cpu";
  const auto rollout = DecideRollout({{policy}, {}}, {NodeNamed("a"), other}, kNow);
  EXPECT_THAT(rollout.wishes.at("a").at(0).ports, ElementsAre("mlx5_0:1", "mlx5_2:1"));
  EXPECT_THAT(rollout.wishes.at("b"), IsEmpty());
  EXPECT_EQ(rollout.statuses.at("roce").counts.nodes, 1);
}

TEST(LosslessRollout, SaysWhySomePortsHaveNothingToSet) {
  LosslessNode node = NodeNamed("a");
  node.node.nics[1].transport = topology::Transport::kInfiniBand;
  auto rollout = DecideRollout({{PolicyNamed("roce")}, {}}, {node}, kNow);
  const auto& wishes = rollout.wishes.at("a");
  ASSERT_EQ(wishes.size(), 2u);
  EXPECT_FALSE(wishes[1].settings);
  EXPECT_THAT(wishes[1].reason, HasSubstr("InfiniBand"));
}

TEST(LosslessRollout, TellsInfiniBandPortsWhatThePolicySaysForThem) {
  LosslessNode node = NodeNamed("a");
  node.node.nics[1].transport = topology::Transport::kInfiniBand;
  LosslessPolicy policy = PolicyNamed("mixed");
  policy.spec.policy.infiniband = {1, false};
  auto rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  const auto& wishes = rollout.wishes.at("a");
  ASSERT_EQ(wishes.size(), 2u);
  EXPECT_TRUE(wishes[0].infiniband.empty()) << "a RoCE port";
  EXPECT_EQ(wishes[1].infiniband, (lossless::InfiniBand{1, false}));
  EXPECT_FALSE(wishes[1].settings);
  EXPECT_FALSE(wishes[1].refused);
  EXPECT_THAT(rollout.statuses.at("mixed").findings, IsEmpty());
  // Another level is a new generation for that port only.
  Report(node, rollout, LosslessState::kCompliant);
  policy.generation = 2;
  policy.spec.policy.infiniband.service_level = 2;
  rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  EXPECT_EQ(rollout.wishes.at("a")[0].generation, 1);
  EXPECT_EQ(rollout.wishes.at("a")[1].generation, 2);
}

TEST(LosslessRollout, SaysThatNoPortTakesWhatAPolicySaysForInfiniBand) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.policy.infiniband = {1, std::nullopt};
  const auto rollout = DecideRollout({{policy}, {}}, {NodeNamed("a")}, kNow);
  EXPECT_THAT(
      rollout.statuses.at("roce").findings,
      ElementsAre("infiniband-nowhere: infiniBand says service level 1; none of the 2 ports it selects "
                  "is InfiniBand"));
  EXPECT_TRUE(rollout.wishes.at("a").at(0).settings) << "it is no reason to tell ports nothing";
  EXPECT_THAT(DecideRollout({{policy}, {}}, {}, kNow).statuses.at("roce").findings, IsEmpty())
      << "a cluster without nodes yet";
}

TEST(LosslessRollout, APolicyOfInfiniBandAloneSaysWhatItIsFor) {
  LosslessNode node = NodeNamed("a");
  for (topology::Nic& nic : node.node.nics) nic.transport = topology::Transport::kInfiniBand;
  LosslessPolicy policy = PolicyNamed("ib");
  policy.spec.policy.infiniband = {1, false};
  auto rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  Report(node, rollout, LosslessState::kNotApplicable);
  rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  const auto* ready = crds::FindCondition(rollout.statuses.at("ib").conditions, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(
      ready->message,
      "nothing is to be set on the hosts of its 2 ports: they are InfiniBand, EFA or without RDMA; what "
      "infiniBand says goes into NCCL's configuration of their nodes");
}

TEST(LosslessRollout, TellsAPortWhoseNicIsAnotherOnlyTheReason) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.policy.profile = "connectx-7/v1";
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b")};
  for (LosslessNode& node : nodes) {
    for (topology::Nic& nic : node.node.nics) nic.pci_id = "15b3:1021";
  }
  nodes[1].node.nics[1].pci_id = "15b3:101d";
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(rollout.wishes.at("a").size(), 1u);
  const auto& wishes = rollout.wishes.at("b");
  ASSERT_EQ(wishes.size(), 2u);
  EXPECT_TRUE(wishes[0].settings) << "the other port of the node gets it";
  EXPECT_FALSE(wishes[1].settings);
  EXPECT_TRUE(wishes[1].refused);
  EXPECT_THAT(wishes[1].ports, ElementsAre("mlx5_1:1"));
  EXPECT_THAT(wishes[1].reason,
              HasSubstr("not for a NIC of PCI id 15b3:101d: name connectx-6/v1, or generic/v1"));
  // Before any agent has answered.
  const auto ready = [](const LosslessRollout& decided) {
    const auto* condition = crds::FindCondition(decided.statuses.at("roce").conditions, crds::kReady);
    return condition->reason + ": " + condition->message;
  };
  EXPECT_EQ(rollout.statuses.at("roce").counts.failed, 1);
  EXPECT_THAT(ready(rollout),
              testing::StartsWith("Refused: 1 ports are told nothing, because their NICs cannot have "
                                  "it; b mlx5_1:1: profile connectx-7/v1 is not for"));
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(rollout.statuses.at("roce").counts.compliant, 3);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Refused");
  // An agent before that published it: nothing is held against its NICs.
  for (topology::Nic& nic : nodes[1].node.nics) nic.pci_id.clear();
  EXPECT_EQ(DecideRollout({{policy}, {}}, nodes, kNow).wishes.at("b").size(), 1u);
}

std::vector<std::string> Told(const LosslessRollout& rollout, std::int64_t generation) {
  std::vector<std::string> names;
  for (const auto& [name, wishes] : rollout.wishes) {
    if (!wishes.empty() && wishes[0].generation == generation) names.push_back(name);
  }
  return names;
}

// Nothing is written there, so that nothing is learnt there.
TEST(LosslessRollout, ANicThatCannotHaveItHoldsNobodyUp) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.policy.profile = "connectx-7/v1";
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b"), NodeNamed("c")};
  for (topology::Nic& nic : nodes[0].node.nics) nic.pci_id = "14e4:1760";
  nodes[1].node.nics[1].pci_id = "14e4:1760";
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("b"));
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Canary");
  for (int round = 0; round < 2; ++round) {
    for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
    rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  }
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a", "b", "c"));
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Refused");
}

TEST(LosslessRollout, HasACanaryOfEachKindOfNic) {
  LosslessPolicy policy = PolicyNamed("roce");  // two of them, as where nothing is said
  std::vector<LosslessNode> nodes;
  for (const char* name : {"a", "b", "c", "d", "e"}) nodes.push_back(NodeNamed(name));
  const auto is = [](LosslessNode& node, const char* pci_id, const char* driver) {
    for (topology::Nic& nic : node.node.nics) {
      nic.pci_id = pci_id;
      nic.driver = driver;
    }
  };
  for (LosslessNode& node : nodes) is(node, "15b3:1021", "mlx5_core");
  EXPECT_THAT(Told(DecideRollout({{policy}, {}}, nodes, kNow), 1), ElementsAre("a", "b"));
  is(nodes[3], "14e4:1760", "bnxt_en");
  EXPECT_THAT(Told(DecideRollout({{policy}, {}}, nodes, kNow), 1), ElementsAre("a", "d"));
  // More than the policy asks for, where there are more kinds: another model, and one node with a NIC of another.
  is(nodes[4], "15b3:101d", "mlx5_core");
  nodes[1].node.nics[1].pci_id = "15b3:1023";
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a", "b", "d", "e"));
  for (LosslessNode& node : nodes)
    Report(node, rollout, node.name == "d" ? LosslessState::kFailed : LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(rollout.wishes.at("c"), IsEmpty()) << "the other driver failed";
  EXPECT_EQ(ReasonOf(rollout, "roce"), "CanaryStopped");
  // Nor do NICs that the policy does not select, or tells no settings, make canaries.
  nodes[2].node.nics[2].pci_id = "14e4:1750";
  nodes[2].node.nics[1].transport = topology::Transport::kInfiniBand;
  nodes[2].node.nics[1].pci_id = "15b3:101b";
  EXPECT_THAT(DecideRollout({{policy}, {}}, nodes, kNow).wishes.at("c"), IsEmpty());
  policy.spec.canary = 0;
  EXPECT_THAT(Told(DecideRollout({{policy}, {}}, nodes, kNow), 1), ElementsAre("a", "b", "c", "d", "e"));
}

TEST(LosslessRollout, SaysOnThePolicyWhatADriverDoesWithout) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.policy.dcqcn = lossless::Dcqcn{{lossless::DcqcnParameter::kRpAiRate, 5}};
  LosslessNode node = NodeNamed("a");
  for (topology::Nic& nic : node.node.nics) nic.driver = "mlx5_core";
  EXPECT_THAT(DecideRollout({{policy}, {}}, {node}, kNow).statuses.at("roce").findings, IsEmpty());
  for (topology::Nic& nic : node.node.nics) nic.driver = "bnxt_en";
  const auto rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  EXPECT_THAT(rollout.statuses.at("roce").findings,
              ElementsAre(testing::StartsWith(
                              "watchdogMs of 2 ports (first a mlx5_0:1) is left out: Linux's bnxt_en"),
                          testing::StartsWith("dcqcn of 2 ports (first a mlx5_0:1) is left out: these are")));
  EXPECT_TRUE(rollout.wishes.at("a").at(0).settings);
  for (topology::Nic& nic : node.node.nics) nic.driver = "ionic";
  EXPECT_TRUE(DecideRollout({{policy}, {}}, {node}, kNow).wishes.at("a").at(0).refused);
}

TEST(LosslessRollout, SaysOnThePolicyWhatIsNotProvedOfCompliantPorts) {
  const LosslessPolicy policy = PolicyNamed("roce");
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b")};
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  nodes[1].reports[0].gaps = {{lossless::Setting::kWatchdogMs, "none"},
                              {lossless::Setting::kEcn, "the firmware decides"}};
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Compliant");
  EXPECT_THAT(rollout.statuses.at("roce").findings,
              ElementsAre("ecn of 2 compliant ports is not proved, first b mlx5_0:1: the firmware decides"));
  nodes[1].reports[0].state = LosslessState::kDrifted;
  EXPECT_THAT(DecideRollout({{policy}, {}}, nodes, kNow).statuses.at("roce").findings, IsEmpty())
      << "there is worse to say of it";
}

TEST(LosslessRollout, AppliesNeitherOfTwoPoliciesOnOnePortAndNamesBoth) {
  LosslessPolicy second = PolicyNamed("rails");
  second.spec.rails = {1};
  const auto rollout = DecideRollout({{PolicyNamed("roce"), second}, {}}, {NodeNamed("a")}, kNow);
  const auto& wishes = rollout.wishes.at("a");
  ASSERT_EQ(wishes.size(), 2u);
  EXPECT_TRUE(wishes[0].settings);
  EXPECT_FALSE(wishes[1].settings);
  EXPECT_THAT(wishes[1].ports, ElementsAre("mlx5_1:1"));
  EXPECT_THAT(wishes[1].policies, ElementsAre("rails", "roce"));
  for (const char* name : {"roce", "rails"}) {
    EXPECT_EQ(rollout.statuses.at(name).counts.conflicting, 1) << name;
    EXPECT_EQ(ReasonOf(rollout, name), "Conflict");
    const auto* ready = crds::FindCondition(rollout.statuses.at(name).conditions, crds::kReady);
    EXPECT_EQ(
        ready->message,
        "1 ports are selected by other LosslessPolicies too, and none of them applies there; a mlx5_1:1: "
        "several policies select this port: narrow nodeSelector, roles or rails of all but one of "
        "LosslessPolicies rails, roce");
  }
}

TEST(LosslessRollout, SaysOfPoliciesWithLongNamesWhatToDo) {
  LosslessPolicies policies;
  for (const char letter : {'a', 'b', 'c'}) policies.read.push_back(PolicyNamed(std::string(250, letter)));
  const auto rollout = DecideRollout(policies, {NodeNamed("a")}, kNow);
  const auto& wishes = rollout.wishes.at("a");
  ASSERT_EQ(wishes.size(), 1u);
  EXPECT_THAT(wishes[0].reason, testing::EndsWith("…"));
  EXPECT_THAT(wishes[0].reason, HasSubstr("narrow nodeSelector, roles or rails of all but one"));
}

TEST(LosslessRollout, RefusesAPolicyThatContradictsItselfAndKeepsWhatWas) {
  LosslessPolicy policy = PolicyNamed("roce");
  LosslessNode node = NodeNamed("a");
  Report(node, DecideRollout({{policy}, {}}, {node}, kNow), LosslessState::kCompliant);
  policy.generation = 2;
  policy.spec.policy.tos = 0;
  const auto rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  EXPECT_EQ(rollout.wishes.at("a"), node.wishes) << "generation 1 stays in force";
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Refused");
  EXPECT_THAT(rollout.statuses.at("roce").findings,
              testing::Contains(HasSubstr("tos-elsewhere: rdma_cm sends ToS 0")));
  policy.spec.policy.tos.reset();
  policy.spec.policy.profile = "connectx-5/v1";
  const auto unknown = DecideRollout({{policy}, {}}, {node}, kNow);
  const auto* ready = crds::FindCondition(unknown.statuses.at("roce").conditions, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_THAT(ready->message, HasSubstr("there is no profile"));
}

TEST(LosslessRollout, GoesOnWithAWarning) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.policy.ecn = lossless::PrioritySet{};
  const auto rollout = DecideRollout({{policy}, {}}, {NodeNamed("a")}, kNow);
  EXPECT_EQ(rollout.wishes.at("a").size(), 1u);
  EXPECT_THAT(rollout.statuses.at("roce").findings, ElementsAre(HasSubstr("ecn-off")));
}

TEST(LosslessRollout, TriesAFewNodesFirstAndStopsOnTheFirstFailure) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 2;
  std::vector<LosslessNode> nodes{NodeNamed("d"), NodeNamed("b"), NodeNamed("a"), NodeNamed("c")};
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a", "b"));
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Canary");
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a", "b", "c", "d"));
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Compliant");
  EXPECT_EQ(rollout.statuses.at("roce").counts.compliant, 8);

  // The next generation fails on one canary: the others keep the last.
  policy.generation = 2;
  policy.spec.policy.mtu = 8000;
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 2), ElementsAre("a", "b"));
  EXPECT_THAT(Told(rollout, 1), ElementsAre("c", "d"));
  for (LosslessNode& node : nodes) {
    Report(node, rollout, node.name == "b" ? LosslessState::kFailed : LosslessState::kCompliant);
  }
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("c", "d"));
  EXPECT_EQ(rollout.statuses.at("roce").counts.failed, 2);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "CanaryStopped");
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  EXPECT_THAT(Told(DecideRollout({{policy}, {}}, nodes, kNow), 2), ElementsAre("a", "b", "c", "d"));
}

std::string MessageOf(const LosslessRollout& rollout, const std::string& policy) {
  const auto* ready = crds::FindCondition(rollout.statuses.at(policy).conditions, crds::kReady);
  return ready == nullptr ? "" : ready->message;
}

TEST(LosslessRollout, BeginsWithNodesOfWhichSomethingIsHeard) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b"), NodeNamed("c"), NodeNamed("d")};
  nodes[0].silence = "its agent is silent";
  nodes[2].silence = "the Node is not Ready";
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("b"));
  EXPECT_THAT(MessageOf(rollout, "roce"), HasSubstr("; b mlx5_0:1 has not been reported yet"));
  EXPECT_THAT(MessageOf(rollout, "roce"), testing::Not(HasSubstr("nothing is heard")));
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a", "b", "c", "d"))
      << "the silent ones are told too, and wait for nobody";
  // They never answered. Who comes new is not held up by them.
  Report(nodes[1], rollout, LosslessState::kCompliant);
  Report(nodes[3], rollout, LosslessState::kCompliant);
  for (const std::size_t silent : {0u, 2u}) nodes[silent].wishes = rollout.wishes.at(nodes[silent].name);
  nodes.push_back(NodeNamed("e"));
  EXPECT_EQ(DecideRollout({{policy}, {}}, nodes, kNow).wishes.at("e").size(), 1u);
}

// What it was told may be why it is: the next would follow it, and then the next.
TEST(LosslessRollout, TakesNoOtherForACanaryThatFallsSilent) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b"), NodeNamed("c")};
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kPending);
  nodes[0].silence = "its agent is silent";
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a"));
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Canary");
  EXPECT_EQ(MessageOf(rollout, "roce"),
            "1 of 3 nodes have it; the others wait until every port of these is compliant; nothing is heard "
            "of 1 of them, "
            "and `kubectl heddle doctor` says why; to go on without, leave them out by nodeSelector, or set "
            "canary: 0; "
            "they are a (its agent is silent); a mlx5_0:1: as the test says");
  // The way out that it names.
  policy.spec.canary = 0;
  EXPECT_THAT(Told(DecideRollout({{policy}, {}}, nodes, kNow), 1), ElementsAre("a", "b", "c"));
}

TEST(LosslessRollout, NamesACanaryWhoseAgentDoesNotKnowHowItIs) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b")};
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kUnknown);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Canary");
  EXPECT_THAT(MessageOf(rollout, "roce"), HasSubstr("is compliant; a mlx5_0:1: as the test says"));
}

// A message is kept up to 1,024 characters, and names are up to 253.
TEST(LosslessRollout, SaysHowToGoOnWithoutSilentCanariesBeforeItNamesThem) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 5;
  std::vector<LosslessNode> nodes;
  for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'})
    nodes.push_back(NodeNamed(std::string(250, letter)));
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kPending);
  for (LosslessNode& node : nodes) node.silence = "its agent is silent";
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  ASSERT_EQ(ReasonOf(rollout, "roce"), "Canary");
  const std::string message = MessageOf(rollout, "roce");
  EXPECT_THAT(message.substr(0, 512), HasSubstr("leave them out by nodeSelector, or set canary: 0"));
  EXPECT_THAT(message, HasSubstr(" and 1 more"));
}

// Where a kind of NIC is in silent nodes only there is no other way to learn of it.
TEST(LosslessRollout, WaitsForASilentNodeThatAloneHasItsKindOfNic) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b"), NodeNamed("c")};
  for (topology::Nic& nic : nodes[0].node.nics) nic.driver = "bnxt_en";
  nodes[0].silence = "its agent is silent";
  const auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_THAT(Told(rollout, 1), ElementsAre("a", "b"));
  EXPECT_THAT(MessageOf(rollout, "roce"), HasSubstr("they are a (its agent is silent)"));
}

// Long after the rollout; and a node that comes new is the first by its name.
TEST(LosslessRollout, TakesNothingBackWhereACanaryDriftsLater) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("b"), NodeNamed("c"), NodeNamed("d")};
  for (int round = 0; round < 2; ++round) {
    const auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
    for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  }
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  Report(nodes.front(), rollout, LosslessState::kDrifted);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Drifted");
  EXPECT_EQ(rollout.statuses.at("roce").counts.unknown, 0);
  EXPECT_EQ(rollout.statuses.at("roce").counts.compliant, 4);
  for (const LosslessNode& node : nodes) EXPECT_EQ(rollout.wishes.at(node.name), node.wishes);

  Report(nodes.front(), rollout, LosslessState::kCompliant);
  nodes.push_back(NodeNamed("a"));
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  EXPECT_EQ(rollout.statuses.at("roce").counts.compliant, 6);
  EXPECT_EQ(rollout.statuses.at("roce").counts.unknown, 2) << "of the new one only";
}

TEST(LosslessRollout, LooksEverywhereAtOnceWhereItOnlyObserves) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  policy.spec.mode = crds::LosslessMode::kObserve;
  const auto rollout = DecideRollout({{policy}, {}}, {NodeNamed("a"), NodeNamed("b")}, kNow);
  EXPECT_EQ(rollout.wishes.at("b").size(), 1u);
}

TEST(LosslessRollout, ChangesNothingOfWhatStandsAlready) {
  LosslessPolicy policy = PolicyNamed("roce");
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b")};
  auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  policy.status = rollout.statuses.at("roce");
  const auto again = DecideRollout({{policy}, {}}, nodes, kNow + std::chrono::hours(1));
  for (const LosslessNode& node : nodes) EXPECT_EQ(again.wishes.at(node.name), node.wishes);
  EXPECT_TRUE(again.statuses.at("roce") == policy.status) << "a time is no change";
}

TEST(LosslessRollout, KeepsTheGenerationOfWhatANewOneDoesNotChange) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.canary = 1;
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b")};
  for (int round = 0; round < 2; ++round) {
    const auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
    for (LosslessNode& node : nodes) Report(node, rollout, LosslessState::kCompliant);
  }
  policy.generation = 2;
  policy.spec.canary = 0;
  policy.spec.policy.rdma_dscp = 26;  // as the profile has it
  const auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  for (const LosslessNode& node : nodes) EXPECT_EQ(rollout.wishes.at(node.name), node.wishes);
  EXPECT_EQ(ReasonOf(rollout, "roce"), "Compliant");
  EXPECT_EQ(rollout.statuses.at("roce").observed_generation, 2);
  policy.spec.policy.mtu = 8000;
  EXPECT_EQ(DecideRollout({{policy}, {}}, nodes, kNow).wishes.at("b").at(0).generation, 2);
}

TEST(LosslessRollout, TakesBackWhatADeletedPolicySaid) {
  LosslessPolicy policy = PolicyNamed("roce");
  LosslessNode node = NodeNamed("a");
  Report(node, DecideRollout({{policy}, {}}, {node}, kNow), LosslessState::kCompliant);
  EXPECT_THAT(DecideRollout({{}, {}}, {node}, kNow).wishes.at("a"), IsEmpty());
  policy.deleted_at = kNow;
  const auto rollout = DecideRollout({{policy}, {}}, {node}, kNow);
  EXPECT_THAT(rollout.wishes.at("a"), IsEmpty());
  EXPECT_THAT(rollout.statuses, IsEmpty());
}

TEST(LosslessRollout, KeepsWhatAPolicySaidThatItCannotRead) {
  LosslessNode node = NodeNamed("a");
  Report(node, DecideRollout({{PolicyNamed("roce")}, {}}, {node}, kNow), LosslessState::kCompliant);
  EXPECT_EQ(DecideRollout({{}, {{"roce", {}}}}, {node}, kNow).wishes.at("a"), node.wishes);
  EXPECT_THAT(DecideRollout({{}, {{"another", {}}}}, {node}, kNow).wishes.at("a"), IsEmpty());
}

// Of two on one port, one cannot be read any more, as after a downgrade: that is no reason to set it as the other says.
TEST(LosslessRollout, AppliesNoOtherPolicyWhereOneThatItCannotReadHasToldThePort) {
  LosslessPolicy second = PolicyNamed("rails");
  second.spec.rails = {1};
  LosslessNode both = NodeNamed("a"), one = NodeNamed("b");
  Report(both, DecideRollout({{PolicyNamed("roce"), second}, {}}, {both}, kNow), LosslessState::kConflict);
  Report(one, DecideRollout({{PolicyNamed("roce")}, {}}, {one}, kNow), LosslessState::kCompliant);
  second.spec.canary = 1;
  const auto rollout = DecideRollout({{second}, {{"roce", {}}}}, {both, one}, kNow);
  EXPECT_EQ(rollout.wishes.at("a"), both.wishes) << "neither of the two applies, as before";
  EXPECT_EQ(rollout.wishes.at("b"), one.wishes) << "it keeps what roce told it";
  const auto& status = rollout.statuses.at("rails");
  EXPECT_EQ(status.counts.conflicting, 2);
  const auto* ready = crds::FindCondition(status.conditions, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->reason, "Conflict");
  EXPECT_EQ(
      ready->message,
      "2 ports keep what another LosslessPolicy told them, which cannot be read; a mlx5_1:1: LosslessPolicy "
      "roce: correct that one, or narrow nodeSelector, roles or rails of this one");
  // A node that was told nothing is this policy's, and waits for no port that is kept.
  const auto more = DecideRollout({{second}, {{"roce", {}}}}, {both, one, NodeNamed("c")}, kNow);
  EXPECT_THAT(more.wishes.at("c").at(0).policies, ElementsAre("rails"));
}

TEST(LosslessRollout, SaysTheWorstAndAnExampleOfIt) {
  const LosslessPolicy policy = PolicyNamed("roce");
  std::vector<LosslessNode> nodes{NodeNamed("a"), NodeNamed("b")};
  const auto rollout = DecideRollout({{policy}, {}}, nodes, kNow);
  const auto after = [&](LosslessState first, LosslessState second) {
    Report(nodes[0], rollout, first);
    Report(nodes[1], rollout, second);
    const auto now = DecideRollout({{policy}, {}}, nodes, kNow);
    const auto* ready = crds::FindCondition(now.statuses.at("roce").conditions, crds::kReady);
    return ready->reason + ": " + ready->message;
  };
  using enum LosslessState;
  EXPECT_EQ(after(kPending, kFailed), "Failed: 2 ports could not be set; b mlx5_0:1: as the test says");
  EXPECT_EQ(
      after(kConflict, kFailed),
      "Conflict: 2 ports are written by somebody else, too; a mlx5_0:1: as the test says; b mlx5_0:1: as the "
      "test says");
  EXPECT_EQ(after(kDrifted, kPending),
            "Drifted: 2 ports are not as they should be; a mlx5_0:1: as the test says");
  EXPECT_THAT(after(kCompliant, kPending), HasSubstr("Applying: 2 ports are to be set"));
  EXPECT_THAT(after(kCompliant, kUnknown), HasSubstr("Waiting: 2 ports are not known to be well; b"));
  EXPECT_EQ(after(kCompliant, kNotApplicable), "Compliant: 2 ports are as they should be");
}

TEST(LosslessRollout, SaysWhenNothingIsSelected) {
  LosslessPolicy policy = PolicyNamed("roce");
  policy.spec.node_selector = {{"pool", "none"}};
  EXPECT_EQ(ReasonOf(DecideRollout({{policy}, {}}, {NodeNamed("a")}, kNow), "roce"), "NothingSelected");
}

}  // namespace
}  // namespace heddle::operators
