// What DecideRollout makes of a policy that was deleted and made anew under its name, before anybody saw it gone.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "operator/lossless_rollout.h"

namespace heddle::operators {
namespace {

class LosslessMadeAnewTest : public testing::Test {
 protected:
  LosslessMadeAnewTest() {
    policy.name = "roce";
    policy.generation = 1;
    policy.spec.mode = crds::LosslessMode::kApply;
    policy.spec.canary = 1;
    for (const char* name : {"a", "b", "c"}) {
      topology::Nic nic;
      nic.name = "mlx5_0";
      nic.rail = 0;
      nic.transport = topology::Transport::kRoce;
      nic.role = topology::NicRole::kCompute;
      nic.ports.emplace_back();
      LosslessNode node;
      node.name = name;
      node.node.nics = {nic};
      nodes.push_back(node);
    }
  }

  LosslessRollout Decide() const { return DecideRollout({{policy}, {}}, nodes, base::WallTime{}); }
  // Nodes are told it, and their agents have not spoken since.
  void Tell(const LosslessRollout& rollout) {
    for (LosslessNode& node : nodes) node.wishes = rollout.wishes.at(node.name);
  }
  static void ReportCompliant(LosslessNode& node) {
    node.reports.clear();
    for (const crds::LosslessWish& wish : node.wishes) {
      crds::LosslessReport report;
      report.ports = wish.ports;
      report.edition = crds::EditionOf(wish);
      report.state = crds::LosslessState::kCompliant;
      node.reports.push_back(report);
    }
  }
  // Of the first of them everywhere, and everywhere compliant.
  void RollOut() {
    for (int round = 0; round < 2; ++round) {
      Tell(Decide());
      for (LosslessNode& node : nodes) ReportCompliant(node);
    }
  }
  static std::vector<std::string> NodesWithMtu(const LosslessRollout& rollout, int mtu) {
    std::vector<std::string> names;
    for (const auto& [name, wishes] : rollout.wishes) {
      if (wishes.size() == 1 && wishes[0].settings && wishes[0].settings->mtu == mtu) names.push_back(name);
    }
    return names;
  }

  crds::LosslessPolicy policy;
  std::vector<LosslessNode> nodes;
};

TEST_F(LosslessMadeAnewTest, GoesToTheCanariesFirstThoughItsGenerationIsThatOfTheOldOne) {
  RollOut();
  policy.spec.policy.mtu = 8000;
  LosslessRollout rollout = Decide();
  EXPECT_THAT(NodesWithMtu(rollout, 8000), testing::ElementsAre("a"));
  EXPECT_EQ(rollout.statuses.at("roce").counts.compliant, 0) << "nobody has spoken of the new one";
  // What the canary reports is of the old one still.
  Tell(rollout);
  rollout = Decide();
  EXPECT_THAT(NodesWithMtu(rollout, 8000), testing::ElementsAre("a"));
  EXPECT_EQ(rollout.wishes.at("a"), nodes[0].wishes) << "nothing more is written";
  EXPECT_EQ(crds::FindCondition(rollout.statuses.at("roce").conditions, crds::kReady)->reason, "Canary");
  ReportCompliant(nodes[0]);
  EXPECT_THAT(NodesWithMtu(Decide(), 8000), testing::ElementsAre("a", "b", "c"));
}

TEST_F(LosslessMadeAnewTest, WhatIsReportedOfTheOldOneLateIsNoAnswerWhereItsNodesSawItGone) {
  policy.uid = "old";
  RollOut();
  const std::vector<crds::LosslessReport> late = nodes[0].reports;
  for (LosslessNode& node : nodes) node.wishes.clear();
  policy.uid = "new";
  policy.spec.policy.mtu = 8000;
  Tell(Decide());
  nodes[0].reports = late;
  EXPECT_EQ(nodes[0].wishes.at(0).generation, late.at(0).edition.generation);
  EXPECT_THAT(NodesWithMtu(Decide(), 8000), testing::ElementsAre("a"));
  ReportCompliant(nodes[0]);
  EXPECT_THAT(NodesWithMtu(Decide(), 8000), testing::ElementsAre("a", "b", "c"));
}

TEST_F(LosslessMadeAnewTest, NothingIsWrittenWhereItSaysTheSameUnderAnotherUid) {
  policy.uid = "old";
  RollOut();
  policy.uid = "new";
  const LosslessRollout same = Decide();
  for (const LosslessNode& node : nodes) EXPECT_EQ(same.wishes.at(node.name), node.wishes);
  EXPECT_EQ(same.statuses.at("roce").counts.compliant, 3) << "what was reported holds";
}

TEST_F(LosslessMadeAnewTest, KeepsTheNumberWhereItSaysTheSameAndTakesAHigherOneOfItsOwn) {
  RollOut();
  const LosslessRollout same = Decide();
  for (const LosslessNode& node : nodes) EXPECT_EQ(same.wishes.at(node.name), node.wishes);
  policy.generation = 7;
  policy.spec.policy.mtu = 8000;
  EXPECT_EQ(Decide().wishes.at("a").at(0).generation, 7);
}

}  // namespace
}  // namespace heddle::operators
