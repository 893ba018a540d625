#include "operator/node_topology_reconciler.h"

#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using testing::Test;

class NodeTopologyReconcilerTest : public Stage {
 protected:
  base::Result<Outcome> Reconcile(const std::string& node, NodeSelection selection = {}) {
    return NodeTopologyReconciler(client, {.nodes = nodes, .topologies = topologies}, selection)
        .Reconcile(node, never);
  }
  Json Topology(const std::string& name) { return server.Find(kNodeTopologies, {"", name}).value_or(Json()); }
  std::string OwnerUid(const std::string& name) {
    const Json topology = Topology(name);
    const Json& owners = kube::ArrayAt(topology, {"metadata", "ownerReferences"});
    return owners.empty() ? "" : kube::StringAt(owners.back(), {"uid"});
  }
};

TEST_F(NodeTopologyReconcilerTest, MakesAnObjectThatItsNodeOwns) {
  const Json node = AddNode("a1");
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(OwnerUid("a1"), kube::Uid(node));
  EXPECT_EQ(WriteLines(), std::vector<std::string>{"POST nodetopologies"});
}

TEST_F(NodeTopologyReconcilerTest, WritesNothingWhenTheObjectIsThere) {
  AddNode("a1");
  ASSERT_TRUE(Reconcile("a1"));
  server.ClearRequests();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Reconcile("a1")->writes, 0);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(NodeTopologyReconcilerTest, ReplacesTheObjectOfAMachineThatHadTheSameName) {
  AddNode("a1");
  ASSERT_TRUE(Reconcile("a1"));
  const std::string old_uid = kube::Uid(Topology("a1"));
  server.Remove(kube::kNodes, {"", "a1"});
  const Json again = AddNode("a1");
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_TRUE(Topology("a1").is_null());
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(OwnerUid("a1"), kube::Uid(again));
  EXPECT_NE(kube::Uid(Topology("a1")), old_uid);
}

TEST_F(NodeTopologyReconcilerTest, DoesNotDeleteAnObjectThatWasAlreadyRemade) {
  AddNode("a1");
  ASSERT_TRUE(Reconcile("a1"));
  topologies.Freeze();  // our cache still shows the first object
  server.Remove(kube::kNodes, {"", "a1"});
  AddNode("a1");
  server.Remove(kNodeTopologies, {"", "a1"});
  server.Put(kNodeTopologies, kube::NewObject(kNodeTopologies, {"", "a1"}));
  const auto outcome = Reconcile("a1");
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->again);
  EXPECT_FALSE(Topology("a1").is_null());
}

TEST_F(NodeTopologyReconcilerTest, AdoptsAnObjectThatNobodyOwnsAndKeepsItsStatus) {
  const Json node = AddNode("a1");
  Json orphan = kube::NewObject(kNodeTopologies, {"", "a1"});
  orphan["status"]["hash"] = "0123456789abcdef";
  server.Put(kNodeTopologies, orphan);
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(OwnerUid("a1"), kube::Uid(node));
  EXPECT_EQ(kube::StringAt(Topology("a1"), {"status", "hash"}), "0123456789abcdef");
}

TEST_F(NodeTopologyReconcilerTest, KeepsThePlaceLabelsOfTheNodeInTheSpecAndNoOthers) {
  constexpr const char* kLayer = "topology.k8s.aws/network-node-layer-3";
  AddNode("a1", {{kLayer, "nn-1"}, {"team", "blue"}});
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(Topology("a1")["spec"]["labels"], Json({{kLayer, "nn-1"}}));
  server.ClearRequests();
  EXPECT_EQ(Reconcile("a1")->writes, 0);
  server.Edit(kube::kNodes, {"", "a1"}, [&](Json& node) {
    node["metadata"]["labels"] = {{"fabric.topograph.run/tier-0", "s1"}, {"team", "red"}};
  });
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(Topology("a1")["spec"]["labels"], Json({{"fabric.topograph.run/tier-0", "s1"}}));
  EXPECT_EQ(WriteLines(), std::vector<std::string>{"PATCH nodetopologies a1"});
  server.Edit(kNodeTopologies, {"", "a1"}, [](Json& topology) { topology["spec"]["labels"] = "nonsense"; });
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(Topology("a1")["spec"]["labels"], Json({{"fabric.topograph.run/tier-0", "s1"}}));
}

TEST_F(NodeTopologyReconcilerTest, WritesNoLabelsIntoTheObjectOfAnotherMachine) {
  constexpr const char* kLayer = "topology.k8s.aws/network-node-layer-3";
  AddNode("a1");
  ASSERT_TRUE(Reconcile("a1"));
  server.Edit(kube::kNodes, {"", "a1"}, [&](Json& node) { node["metadata"]["labels"][kLayer] = "nn-1"; });
  topologies.Freeze();
  server.Remove(kNodeTopologies, {"", "a1"});
  server.Put(kNodeTopologies, kube::NewObject(kNodeTopologies, {"", "a1"}));
  const auto outcome = Reconcile("a1");
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->again);
  EXPECT_FALSE(Topology("a1")["spec"].contains("labels"));
}

TEST_F(NodeTopologyReconcilerTest, LeavesAGoneNodeToGarbageCollection) {
  server.Put(kNodeTopologies, kube::NewObject(kNodeTopologies, {"", "a1"}));
  EXPECT_EQ(Reconcile("a1")->writes, 0);
  EXPECT_TRUE(server.writes().empty());
}

TEST_F(NodeTopologyReconcilerTest, SelectsNodesWithGpusOrTheAgentLabel) {
  const NodeSelection gpu{.all = false};
  AddNode("plain");
  AddNode("marked", {{"heddle.dev/agent", "true"}});
  AddNode("gpu");
  server.Edit(kube::kNodes, {"", "gpu"},
              [](Json& node) { node["status"]["allocatable"]["nvidia.com/gpu"] = "0"; });
  for (const char* name : {"plain", "marked", "gpu"}) ASSERT_TRUE(Reconcile(name, gpu));
  EXPECT_TRUE(Topology("plain").is_null());
  EXPECT_FALSE(Topology("marked").is_null());
  EXPECT_FALSE(Topology("gpu").is_null());
}

TEST_F(NodeTopologyReconcilerTest, TakesAnObjectThatAppearedMeanwhileForDone) {
  AddNode("a1");
  topologies.Freeze();
  server.Put(kNodeTopologies, kube::NewObject(kNodeTopologies, {"", "a1"}));
  const auto outcome = Reconcile("a1");
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->again);
}

TEST_F(NodeTopologyReconcilerTest, SurvivesALostAnswerAndEveryErrorAndEndsWithOneObject) {
  const Json node = AddNode("a1");
  server.FailNext({.method = "POST", .path_contains = "nodetopologies", .after_the_fact = true});
  EXPECT_FALSE(Reconcile("a1"));
  EXPECT_EQ(Reconcile("a1")->writes, 0);
  server.Remove(kNodeTopologies, {"", "a1"});
  for (const int status : {403, 500, 401}) {
    server.FailNext({.method = "POST", .path_contains = "nodetopologies", .status = status});
    EXPECT_FALSE(Reconcile("a1")) << status;
  }
  ASSERT_TRUE(Reconcile("a1"));
  EXPECT_EQ(OwnerUid("a1"), kube::Uid(node));
  EXPECT_EQ(server.All(kNodeTopologies).size(), 1U);
}

TEST_F(NodeTopologyReconcilerTest, SurvivesOwnersThatAreNoOwners) {
  AddNode("a1");
  for (const Json& owners : {Json("x"), Json::array({1, nullptr, "x"}), Json::array({{{"kind", 5}}})}) {
    Json hostile = kube::NewObject(kNodeTopologies, {"", "a1"});
    hostile["metadata"]["ownerReferences"] = owners;
    const auto action = DecideTopology({}, nodes.Get({"", "a1"}).get(), &hostile);
    EXPECT_EQ(action, TopologyAction::kAdopt) << owners;
  }
}

}  // namespace
}  // namespace heddle::operators
