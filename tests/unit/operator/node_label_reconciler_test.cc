#include "operator/node_label_reconciler.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

constexpr const char* kTwoUnits = "su:2 node:2 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";

class NodeLabelReconcilerTest : public Stage {
 protected:
  void Assemble() { current.Set(assembler.Assemble(topologies.List(), fabrics.List())); }
  base::Result<Outcome> Reconcile(const std::string& node) {
    return NodeLabelReconciler(client, nodes, current).Reconcile(node, never);
  }
  Labels LabelsOn(const std::string& node) { return kube::Labels(*server.Find(kube::kNodes, {"", node})); }

  Assembler assembler;
  CurrentAssembly current;
};

TEST_F(NodeLabelReconcilerTest, SaysWhereANodeIsInTheFabric) {
  const auto cluster = ReportCluster(kTwoUnits);
  Assemble();
  for (const topology::Node& node : cluster) ASSERT_TRUE(Reconcile(node.name));
  const Labels first = LabelsOn(cluster[0].name);
  EXPECT_THAT(
      first, AllOf(Contains(Pair("heddle.dev/su", "infiniband-su-0")),
                   Contains(Pair("heddle.dev/rails", "8")), Contains(Pair("heddle.dev/fabric", "infiniband")),
                   Contains(Key("heddle.dev/machine")), Contains(Key("heddle.dev/nvlink-domain")),
                   Contains(Key("heddle.dev/leaf-0")), Contains(Key("heddle.dev/leaf-7"))));
  EXPECT_THAT(first, Not(Contains(Key("heddle.dev/site"))));
  EXPECT_THAT(LabelsOn(cluster[3].name), Contains(Pair("heddle.dev/su", "infiniband-su-1")));
  EXPECT_NE(first.at("heddle.dev/nvlink-domain"), LabelsOn(cluster[1].name).at("heddle.dev/nvlink-domain"));
}

TEST_F(NodeLabelReconcilerTest, GivesOneDomainToEveryTrayOfARack) {
  const auto cluster = ReportCluster("rack:2 tray:3 gpu:4 nic:4 rail:4 rate:400 nvl");
  Assemble();
  std::map<std::string, int> domains;
  for (const topology::Node& node : cluster) {
    ASSERT_TRUE(Reconcile(node.name));
    ++domains[LabelsOn(node.name)["heddle.dev/nvlink-domain"]];
  }
  ASSERT_EQ(domains.size(), 2U);
  for (const auto& [domain, trays] : domains) EXPECT_EQ(trays, 3) << domain;
}

TEST_F(NodeLabelReconcilerTest, WritesOnlyWhatDiffersAndNothingWhenNothingDoes) {
  const auto cluster = ReportCluster(kTwoUnits);
  Assemble();
  const std::string name = cluster[0].name;
  ASSERT_TRUE(Reconcile(name));
  server.ClearRequests();
  EXPECT_EQ(Reconcile(name)->writes, 0);
  EXPECT_THAT(server.requests(), IsEmpty());
  server.Edit(kube::kNodes, {"", name},
              [](Json& node) { node["metadata"]["labels"]["heddle.dev/rails"] = "3"; });
  ASSERT_TRUE(Reconcile(name));
  ASSERT_EQ(server.writes().size(), 1U);
  const test::ApiRequest write = server.writes().front();
  EXPECT_EQ(write.content_type, "application/merge-patch+json");
  EXPECT_EQ(write.json()["metadata"]["labels"], Json({{"heddle.dev/rails", "8"}}));
}

TEST_F(NodeLabelReconcilerTest, RemovesWhatIsNoLongerTrueAndTouchesNoForeignLabel) {
  AddNode("a1", {{"heddle.dev/su", "infiniband-su-9"},
                 {"heddle.dev/leaf-3", "old"},
                 {"heddle.dev/agent", "true"},
                 {"heddle.dev/leaf-owner", "alice"},
                 {"zone", "z1"}});
  Assemble();
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(LabelsOn("a1"),
            (Labels{{"heddle.dev/agent", "true"}, {"heddle.dev/leaf-owner", "alice"}, {"zone", "z1"}}));
}

TEST_F(NodeLabelReconcilerTest, RemovesNothingBeforeTheFirstAssembly) {
  AddNode("a1", {{"heddle.dev/su", "infiniband-su-9"}});
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(NodeLabelReconcilerTest, DoesNotLabelAnotherMachineOfTheSameName) {
  const auto cluster = ReportCluster(kTwoUnits);
  Assemble();
  const std::string name = cluster[0].name;
  nodes.Freeze();
  server.Remove(kube::kNodes, {"", name});
  AddNode(name);
  (void)Reconcile(name);
  EXPECT_THAT(LabelsOn(name), IsEmpty());
}

TEST_F(NodeLabelReconcilerTest, GivesAMovingCableNoSecondLabel) {
  auto cluster = ReportCluster(kTwoUnits);
  Assemble();
  const std::string name = cluster[0].name;
  ASSERT_TRUE(Reconcile(name));
  const Labels before = LabelsOn(name);
  for (topology::Nic& nic : cluster[0].nics) {
    for (topology::NicPort& port : nic.ports) port.state = topology::LinkState::kDown, port.usable_gbps = 0;
  }
  Report(cluster[0]);
  Assemble();
  ASSERT_TRUE(Reconcile(name));
  EXPECT_EQ(LabelsOn(name).at("heddle.dev/rails"), before.at("heddle.dev/rails"));
}

TEST_F(NodeLabelReconcilerTest, TriesAgainAfterErrorsAndLostAnswers) {
  const auto cluster = ReportCluster(kTwoUnits);
  Assemble();
  const std::string name = cluster[0].name;
  for (const int status : {403, 500}) {
    server.FailNext({.method = "PATCH", .path_contains = "nodes", .status = status});
    EXPECT_FALSE(Reconcile(name));
  }
  server.FailNext({.method = "PATCH", .path_contains = "nodes", .status = 409});
  EXPECT_TRUE(Reconcile(name)->again);
  server.FailNext({.method = "PATCH", .path_contains = "nodes", .after_the_fact = true});
  EXPECT_FALSE(Reconcile(name));
  EXPECT_EQ(Reconcile(name)->writes, 0);
  server.Remove(kube::kNodes, {"", name});
  EXPECT_EQ(Reconcile(name)->writes, 0);
}

TEST_F(NodeLabelReconcilerTest, MakesHostileNamesValid) {
  auto cluster = ReportCluster(kTwoUnits);
  cluster[0].machine = std::string(100, 'M') + " / \xc3\xbc";
  cluster[0].nvlink_domain = topology::NvlinkMembership{"a b/c", true};
  Report(cluster[0]);
  Assemble();
  ASSERT_TRUE(Reconcile(cluster[0].name));
  for (const auto& [key, value] : LabelsOn(cluster[0].name)) {
    EXPECT_LE(value.size(), 63U);
    EXPECT_EQ(value.find_first_of(" /"), std::string::npos) << key << "=" << value;
  }
}

}  // namespace
}  // namespace heddle::operators
