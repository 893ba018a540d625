#include "operator/fabric_status.h"

#include <gmock/gmock.h>

#include "crds/fabric_assembly.h"
#include "topology/synthetic.h"

namespace heddle::operators {
namespace {

using lossless::LosslessVerdict;
using testing::HasSubstr;

class LosslessConditionTest : public testing::Test {
 protected:
  LosslessConditionTest() {
    const auto synthetic = topology::ParseSynthetic("su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:roce");
    EXPECT_TRUE(synthetic);
    assembly.fabrics = crds::AssembleFabrics(synthetic->nodes, {});
    name = assembly.fabrics.begin()->first;
    for (const topology::Node& node : synthetic->nodes) {
      for (int rail = 0; rail < 8; ++rail) Cable(node.name, rail, LosslessVerdict::kLossless);
    }
  }

  void Cable(const std::string& node, int rail, LosslessVerdict verdict) {
    NodeVerdict now = verdicts.nodes.contains(node) ? *verdicts.nodes.at(node) : NodeVerdict{};
    now.counts.Add(verdict);
    const auto [of, fresh] = now.rails.emplace(rail, verdict);
    of->second = Worst(of->second, verdict);
    verdicts.nodes[node] = std::make_shared<const NodeVerdict>(now);
  }
  void Between(const std::string& lower, LosslessVerdict verdict) {
    switches::SwitchLink link{lower, "spine-1", "Ethernet256", "Ethernet0", 0, 1, {verdict, {}}};
    link.outcome.findings.push_back({verdict, "switch-link-pfc", "pfc", "3", "4", "they differ", "mend it"});
    verdicts.between.push_back(link);
  }
  std::string NodeAt(std::size_t i) const { return assembly.fabrics.at(name).nodes[i].node.name; }
  crds::Condition Condition() const {
    const std::set<std::string> stale;
    const FabricView view{name, assembly, stale, &verdicts, {}};
    const crds::FabricStatus status = DesiredStatus(view, {}, 1, base::WallTime{std::chrono::seconds(1)});
    const crds::Condition* found = crds::FindCondition(status.conditions, kConditionLossless);
    return found == nullptr ? crds::Condition{} : *found;
  }

  Assembly assembly;
  std::string name;
  SwitchVerdicts verdicts;
};

TEST_F(LosslessConditionTest, SaysHowEveryRailIs) {
  EXPECT_EQ(Condition().status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(Condition().message, "both ends of all 16 cables go together (rails 0-7 Lossless)");
  Cable(NodeAt(1), 3, LosslessVerdict::kUnproved);
  EXPECT_THAT(Condition().message,
              HasSubstr("1 of 17 cables nobody can say (rail 3 Unproved, rails 0-2 and 4-7 "
                        "Lossless)"));
  Cable(NodeAt(0), 3, LosslessVerdict::kContradiction);
  NodeVerdict blamed = *verdicts.nodes.at(NodeAt(0));
  blamed.worst = "this one: data is lossy there";
  verdicts.nodes[NodeAt(0)] = std::make_shared<const NodeVerdict>(blamed);
  EXPECT_EQ(Condition().reason, "Contradiction");
  EXPECT_EQ(
      Condition().message,
      "1 of 18 cables (rail 3 Contradiction, rails 0-2 and 4-7 Lossless): this one: data is lossy there");
}

TEST_F(LosslessConditionTest, IsFalseWhereLeafAndSpineContradictEachOther) {
  const std::string leaf = assembly.fabrics.at(name).leaves.front().name;
  Between(leaf, LosslessVerdict::kLossless);
  Between("leaf-of-another-fabric", LosslessVerdict::kContradiction);
  EXPECT_EQ(Condition().status, crds::ConditionStatus::kTrue);
  Between(leaf, LosslessVerdict::kContradiction);
  EXPECT_EQ(Condition().status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(Condition().reason, "Contradiction");
  EXPECT_EQ(Condition().message,
            "1 cable between switches: " + leaf + " Ethernet256 <-> spine-1 Ethernet0: they differ");
}

TEST_F(LosslessConditionTest, IsFalseWhereLeafAndSpineContradictEachOtherAndNoPolicySelectsAnyHost) {
  verdicts.nodes.clear();
  const std::string leaf = assembly.fabrics.at(name).leaves.front().name;
  Between(leaf, LosslessVerdict::kLossless);
  EXPECT_EQ(Condition().type, "") << "nothing is judged that this fabric's hosts need";
  Between(leaf, LosslessVerdict::kContradiction);
  EXPECT_EQ(Condition().status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(Condition().reason, "Contradiction");
  EXPECT_EQ(Condition().message,
            "1 cable between switches: " + leaf + " Ethernet256 <-> spine-1 Ethernet0: they differ");
  assembly.fabrics.at(name).transport = topology::Transport::kInfiniBand;
  EXPECT_EQ(Condition().type, "") << "its leaf only has the name of a switch that is asked";
  name = "of-nobody";
  EXPECT_EQ(Condition().type, "") << "it has no switches";
}

}  // namespace
}  // namespace heddle::operators
