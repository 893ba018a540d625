#include "operator/lossless_reconciler.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LosslessReconcilerTest : public Stage {
 protected:
  void AddPolicy(const std::string& name, Json spec, int generation = 1) {
    Stage::AddPolicy(kLosslessPolicies, name, std::move(spec), generation);
  }
  void AddRoceNode(const std::string& name) {
    AddNode(name, {{"pool", "gpu"}});
    topology::Node node;
    node.name = name;
    topology::Nic nic;
    nic.name = "mlx5_0";
    nic.transport = topology::Transport::kRoce;
    nic.role = topology::NicRole::kCompute;
    nic.rail = 0;
    nic.ports.emplace_back();
    node.nics = {nic};
    Report(node);
  }
  int Reconcile() {
    const auto outcome = reconciler.Reconcile({});
    EXPECT_TRUE(outcome) << (outcome ? "" : base::ToString(outcome.error()));
    return outcome ? outcome->writes : -1;
  }
  crds::LosslessPolicy PolicyOf(const std::string& name) {
    return *crds::LosslessPolicyFromJson(*server.Find(kLosslessPolicies, {"", name}));
  }

  ServerView policies{server, kLosslessPolicies};
  std::set<std::string> late;
  kube::EventRecorder events{
      client, clock, base::Random(7), {.component = "heddle-operator", .instance = "op-0"}};
  LosslessReconciler reconciler{
      client,
      clock,
      {.nodes = nodes, .topologies = topologies, .policies = policies, .late = [this] { return late; }},
      events};
};

TEST_F(LosslessReconcilerTest, TellsNodesAndThenHasNothingMoreToWrite) {
  AddRoceNode("a");
  AddRoceNode("b");
  EXPECT_EQ(Reconcile(), 0) << "no policy";
  AddPolicy("roce", {{"nodeSelector", {{"pool", "gpu"}}}, {"mtu", 8900}});
  EXPECT_EQ(Reconcile(), 3) << "two specs and one status";
  ASSERT_EQ(NodeOf("a").spec.lossless.size(), 1u);
  EXPECT_EQ(NodeOf("a").spec.lossless[0].settings->mtu, 8900);
  EXPECT_EQ(NodeOf("a").status.node.nics.size(), 1u) << "the agent's half stays";
  EXPECT_EQ(PolicyOf("roce").status.counts.ports, 2);
  clock.Advance(1h);
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(LosslessReconcilerTest, BeginsWithNodesThatAreReadyAndWhoseAgentsSpeak) {
  for (const char* name : {"a", "b", "c"}) AddRoceNode(name);
  late = {"a"};
  server.Edit(kube::kNodes, {"", "b"}, [](Json& node) {
    node["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "Unknown"}}});
  });
  AddPolicy("roce", {{"mode", "Apply"}, {"canary", 1}});
  Reconcile();
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
  EXPECT_TRUE(NodeOf("b").spec.lossless.empty());
  EXPECT_EQ(NodeOf("c").spec.lossless.size(), 1u);
}

TEST_F(LosslessReconcilerTest, TakesBackWhatNoPolicySays) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  ASSERT_EQ(NodeOf("a").spec.lossless.size(), 1u);
  server.Remove(kLosslessPolicies, {"", "roce"});
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(LosslessReconcilerTest, WritesAStatusAtMostOnceInTenSeconds) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  EXPECT_EQ(Reconcile(), 2);
  AddRoceNode("b");
  const auto outcome = reconciler.Reconcile({});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->writes, 1) << "the spec of b only";
  ASSERT_TRUE(outcome->again);
  EXPECT_LE(*outcome->again, 10s);
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(PolicyOf("roce").status.counts.nodes, 2);
}

TEST_F(LosslessReconcilerTest, WritesNothingAgainWhileItsCacheShowsWhatWasThereBefore) {
  AddRoceNode("a");
  AddRoceNode("b");
  AddPolicy("roce", Json::object());
  topologies.Freeze();
  EXPECT_EQ(Reconcile(), 3);
  clock.Advance(20s);
  const auto behind = reconciler.Reconcile({});
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->writes, 0);
  ASSERT_TRUE(behind->again) << "nothing else brings it back where the cache stays as it is";
  EXPECT_EQ(*behind->again, 40s);
  topologies.Thaw();
  const auto there = reconciler.Reconcile({});
  ASSERT_TRUE(there);
  EXPECT_EQ(there->writes, 0);
  EXPECT_FALSE(there->again);
}

// A policy's cache is another than that of the nodes. Told a number of its own, each agent would report anew.
TEST_F(LosslessReconcilerTest, KeepsTheGenerationAlsoWhileItsCacheDoesNotShowThatItWasTold) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  topologies.Freeze();
  EXPECT_EQ(Reconcile(), 2);
  AddPolicy("roce", {{"rdma", {{"dscp", 26}}}}, 2);  // as before, said in words
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 1) << "the policy's status";
  EXPECT_EQ(NodeOf("a").spec.lossless[0].generation, 1);
}

TEST_F(LosslessReconcilerTest, WritesNothingAgainAlsoWhereAnAgentsStatusCameInBetween) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  // Between our look and our write an agent writes its status, and the cache gets as far as that.
  server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.method == "PATCH" && request.plural == "nodetopologies") {
      server.Edit(kNodeTopologies, {"", "a"}, [](Json& object) { object["status"]["agentVersion"] = "0.9"; });
      topologies.Freeze();
      server.Intercept(nullptr);
    }
    return std::nullopt;
  });
  EXPECT_EQ(Reconcile(), 2);
  EXPECT_EQ(NodeOf("a").status.agent_version, "0.9") << "no conflict: our write names no resourceVersion";
  const auto shown = topologies.Get({"", "a"});
  ASSERT_NE(shown, nullptr);
  EXPECT_EQ(kube::StringAt(*shown, {"status", "agentVersion"}), "0.9");
  EXPECT_TRUE(kube::ArrayAt(*shown, {"spec", "lossless"}).empty());
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(LosslessReconcilerTest, TakesBackWhatItsCacheDoesNotShowYetAndNotTwice) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  topologies.Freeze();
  EXPECT_EQ(Reconcile(), 2);
  server.Remove(kLosslessPolicies, {"", "roce"});
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(LosslessReconcilerTest, WritesAgainWhatAServerThatWasSetBackHasLost) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  const Json backup = *server.Find(kNodeTopologies, {"", "a"});
  EXPECT_EQ(Reconcile(), 2);
  server.Put(kNodeTopologies, backup);
  EXPECT_EQ(Reconcile(), 0) << "a cache that is behind shows the same";
  clock.Advance(SpecsAhead::kPatience);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.lossless.size(), 1u);
}

TEST_F(LosslessReconcilerTest, WritesAgainAtOnceWhatSomebodyElseTookAway) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  EXPECT_EQ(Reconcile(), 2);
  Json object = *server.Find(kNodeTopologies, {"", "a"});
  object["spec"].erase("lossless");
  object["metadata"]["generation"] = kube::Generation(object) + 1;
  server.Put(kNodeTopologies, object);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.lossless.size(), 1u);
}

TEST_F(LosslessReconcilerTest, TellsTheObjectThatWasMadeAnewUnderANodesName) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  EXPECT_EQ(Reconcile(), 2);
  server.Remove(kNodeTopologies, {"", "a"});
  AddRoceNode("a");
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.lossless.size(), 1u);
}

TEST_F(LosslessReconcilerTest, LooksAgainInASecondAfterAConflictAndCountsNothingAsWritten) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  server.FailNext({.method = "PATCH", .path_contains = "nodetopologies/a", .status = 409});
  const auto refused = reconciler.Reconcile({});
  ASSERT_TRUE(refused);
  ASSERT_TRUE(refused->again);
  EXPECT_EQ(*refused->again, 1s);
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.lossless.size(), 1u);
}

TEST_F(LosslessReconcilerTest, LeavesPortsAloneWhosePolicyItCannotRead) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  const auto told = NodeOf("a").spec.lossless;
  AddPolicy("roce", {{"trust", "FromTheFuture"}}, 2);
  EXPECT_EQ(Reconcile(), 0);
  EXPECT_EQ(NodeOf("a").spec.lossless, told);
}

TEST_F(LosslessReconcilerTest, SaysInTheStatusWhichFieldOfAPolicyItDoesNotUnderstand) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  const auto told = NodeOf("a").spec.lossless;
  const auto change = [&](const char* trust, int generation) {
    server.Edit(kLosslessPolicies, {"", "roce"}, [&](Json& policy) {
      policy["spec"]["trust"] = trust;
      policy["metadata"]["generation"] = generation;
    });
    clock.Advance(10s);
  };
  change("FromTheFuture", 2);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(Reconcile(), 0) << "it is said once";
  EXPECT_EQ(NodeOf("a").spec.lossless, told);
  const Json object = *server.Find(kLosslessPolicies, {"", "roce"});
  const Json* ready = kube::Condition(object, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ((*ready)["status"], "False");
  EXPECT_EQ((*ready)["reason"], "NotUnderstood");
  EXPECT_THAT(
      (*ready)["message"].get<std::string>(),
      testing::AllOf(HasSubstr("spec.trust"), HasSubstr("FromTheFuture"), HasSubstr("Correct that field")));
  EXPECT_EQ(kube::IntAt(object, {"status", "observedGeneration"}), 1) << "the other was never in force";
  EXPECT_EQ(kube::IntAt(object, {"status", "counts", "ports"}), 1) << "the rest of it stays";
  events.Flush({});
  ASSERT_EQ(server.All(kube::kEvents).size(), 1u);
  EXPECT_EQ(server.All(kube::kEvents)[0]["reason"], "LosslessNotUnderstood");
  change("DSCP", 3);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(crds::FindCondition(PolicyOf("roce").status.conditions, crds::kReady)->reason, "Waiting");
}

TEST_F(LosslessReconcilerTest, SaysItAlsoWhereItCannotReadTheStatusOfThePolicyEither) {
  AddRoceNode("a");
  AddPolicy("roce", {{"trust", "FromTheFuture"}});
  server.Edit(kLosslessPolicies, {"", "roce"},
              [](Json& policy) { policy["status"]["counts"]["nodes"] = "many"; });
  EXPECT_EQ(Reconcile(), 1);
  const Json object = *server.Find(kLosslessPolicies, {"", "roce"});
  const Json* ready = kube::Condition(object, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ((*ready)["reason"], "NotUnderstood");
  EXPECT_THAT((*ready)["message"].get<std::string>(), HasSubstr("spec.trust"));
}

// Its status cannot say so: who writes it would have to know the object.
TEST_F(LosslessReconcilerTest, SaysByAnEventThatItCanReadNothingOfAPolicyOnceForEachOfItsVersions) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  const auto told = NodeOf("a").spec.lossless;
  const auto spoil = [&](int owners) {
    server.Edit(kLosslessPolicies, {"", "roce"},
                [&](Json& policy) { policy["metadata"]["ownerReferences"] = owners; });
    clock.Advance(10s);
    for (int look = 0; look < 3; ++look) EXPECT_EQ(Reconcile(), 0);
    events.Flush({});
  };
  spoil(7);
  EXPECT_EQ(NodeOf("a").spec.lossless, told);
  ASSERT_EQ(server.All(kube::kEvents).size(), 1u);
  EXPECT_EQ(server.All(kube::kEvents)[0]["reason"], "LosslessNotUnderstood");
  EXPECT_EQ(server.All(kube::kEvents)[0]["count"], 1);
  EXPECT_THAT(kube::StringAt(server.All(kube::kEvents)[0], {"message"}), HasSubstr("ownerReferences"));
  spoil(8);
  std::int64_t said = 0;
  for (const Json& event : server.All(kube::kEvents)) said += event["count"].get<std::int64_t>();
  EXPECT_EQ(said, 2);
}

TEST_F(LosslessReconcilerTest, GoesByThePolicyWhoseStatusAloneItCannotReadAndWritesThatAnew) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  server.Edit(kLosslessPolicies, {"", "roce"},
              [](Json& policy) { policy["status"]["counts"]["nodes"] = "many"; });
  EXPECT_EQ(Reconcile(), 2) << "the spec of the node and the status";
  EXPECT_EQ(NodeOf("a").spec.lossless.size(), 1u);
  ASSERT_TRUE(crds::LosslessPolicyFromJson(*server.Find(kLosslessPolicies, {"", "roce"})));
  EXPECT_EQ(PolicyOf("roce").status.counts.nodes, 1);
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(LosslessReconcilerTest, CountsAndNamesANodeThatItCannotRead) {
  AddRoceNode("a");
  AddRoceNode("b");
  AddPolicy("roce", Json::object());
  Reconcile();
  server.Edit(kNodeTopologies, {"", "b"},
              [](Json& node) { node["status"]["nics"][0]["transport"] = "Telepathy"; });
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 1) << "the status, and nothing of the node";
  EXPECT_EQ(Reconcile(), 0) << "nor is it taken apart into something else when nothing changed";
  const crds::LosslessPolicy policy = PolicyOf("roce");
  EXPECT_EQ(policy.status.counts.nodes, 2);
  EXPECT_EQ(policy.status.counts.ports, 1);
  EXPECT_THAT(crds::FindCondition(policy.status.conditions, crds::kReady)->message,
              testing::AllOf(HasSubstr("first b:"), HasSubstr("Telepathy")));
  // Of a Node that is gone nobody waits for anything.
  server.Remove(kube::kNodes, {"", "b"});
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(PolicyOf("roce").status.counts.nodes, 1);
}

TEST_F(LosslessReconcilerTest, SaysWhatTheServerDoesNotTakeAndWhereToMendIt) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  const auto said = [&](int status, const std::string& words) {
    server.Intercept([status, words](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.method != "PATCH" || request.plural != "nodetopologies") return std::nullopt;
      return test::StatusResponse(status, "Refused", words);
    });
    clock.Advance(10s);
    EXPECT_FALSE(reconciler.Reconcile({})) << "and so it is tried again, after pauses that grow";
    const crds::LosslessPolicy policy = PolicyOf("roce");
    const auto* ready = crds::FindCondition(policy.status.conditions, crds::kReady);
    return ready == nullptr ? std::string() : ready->reason + ": " + ready->message;
  };
  EXPECT_THAT(said(500, "etcdserver: leader changed"), testing::StartsWith("Waiting: "))
      << "which passes by itself";
  const auto not_told = [](const char* words, const char* advice) {
    return testing::AllOf(testing::StartsWith("NotTold: 1 nodes are not told"), HasSubstr(words),
                          HasSubstr(advice));
  };
  EXPECT_THAT(said(422, "spec.lossless[0].settings.trust: Unsupported value"),
              not_told("Unsupported value", "the CRDs to one version"));
  EXPECT_THAT(said(413, "Request entity too large"), not_told("too large", "narrow the policies"));
  EXPECT_THAT(said(500, R"(Internal error occurred: failed calling webhook "w.example": connection refused)"),
              not_told("connection refused", "look at the webhook"));
  const std::string denied = said(403, R"(admission webhook "w.example" denied the request: not today)");
  EXPECT_THAT(denied, not_told("not today", "look at the webhook"));
  EXPECT_THAT(denied, testing::Not(HasSubstr("doctor"))) << "no right is missing";
  EXPECT_THAT(said(409, R"(admission webhook "w.example" denied the request: somebody has it)"),
              not_told("somebody has it", "look at the webhook"))
      << "no cache will show why: a look each second would be for ever";
  EXPECT_THAT(said(403, "nodetopologies.heddle.dev is forbidden"), not_told("is forbidden", "heddle doctor"));
  events.Flush({});
  EXPECT_EQ(server.All(kube::kEvents).size(), 1u) << "said once";
}

TEST_F(LosslessReconcilerTest, TellsTheOthersWhereItMayNotTellOneAndThatOneLater) {
  AddRoceNode("a");
  AddRoceNode("b");
  AddPolicy("roce", Json::object());
  server.FailNext({.method = "PATCH", .path_contains = "nodetopologies/a", .status = 403});
  const auto refused = reconciler.Reconcile({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kForbidden);
  EXPECT_THAT(refused.error().message, HasSubstr("write spec.lossless of NodeTopology a"));
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
  EXPECT_EQ(NodeOf("b").spec.lossless.size(), 1u);
  const crds::LosslessPolicy policy = PolicyOf("roce");
  EXPECT_EQ(policy.status.counts.ports, 2) << "what there is to say of it is said";
  const auto* ready = crds::FindCondition(policy.status.conditions, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->reason, "NotTold");
  EXPECT_THAT(ready->message,
              testing::AllOf(HasSubstr("1 nodes are not told what it says"),
                             HasSubstr("write spec.lossless of NodeTopology a"), HasSubstr("heddle doctor")));
  events.Flush({});
  ASSERT_EQ(server.All(kube::kEvents).size(), 1u);
  EXPECT_EQ(server.All(kube::kEvents)[0]["reason"], "LosslessNotTold");
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.lossless.size(), 1u);
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 1) << "and it is no longer said";
  EXPECT_EQ(crds::FindCondition(PolicyOf("roce").status.conditions, crds::kReady)->reason, "Waiting");
}

TEST_F(LosslessReconcilerTest, SaysNothingNewWhileItMayStillNotTellANode) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  for (int i = 0; i < 3; ++i) {
    server.FailNext({.method = "PATCH", .path_contains = "nodetopologies/a", .status = 403});
    ASSERT_FALSE(reconciler.Reconcile({}));
    clock.Advance(1h);
  }
  EXPECT_EQ(PolicyOf("roce").status.conditions.size(), 1u);
  events.Flush({});
  EXPECT_EQ(server.All(kube::kEvents).size(), 1u) << "said once";
}

TEST_F(LosslessReconcilerTest, TakesOutWhatANewerOperatorWrote) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  Json object = *server.Find(kNodeTopologies, {"", "a"});
  object["spec"]["lossless"][0]["settings"]["pauseQuota"] = 7;
  server.Put(kNodeTopologies, object);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(Reconcile(), 0);
  EXPECT_THAT(server.Find(kNodeTopologies, {"", "a"})->dump(), testing::Not(HasSubstr("pauseQuota")));
  server.Put(kNodeTopologies, object);
  server.Remove(kLosslessPolicies, {"", "roce"});
  EXPECT_EQ(Reconcile(), 1) << "also where nothing is left to be told";
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
}

TEST_F(LosslessReconcilerTest, TakesOutAWordThatItDoesNotKnow) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  Json object = *server.Find(kNodeTopologies, {"", "a"});
  object["spec"]["lossless"][0]["settings"]["trust"] = "MPLS";
  ASSERT_FALSE(crds::NodeTopologyFromJson(object));
  server.Put(kNodeTopologies, object);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.lossless[0].settings->trust, lossless::Trust::kDscp);
  EXPECT_EQ(Reconcile(), 0);
  server.Put(kNodeTopologies, object);
  server.Remove(kLosslessPolicies, {"", "roce"});
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
}

TEST_F(LosslessReconcilerTest, LeavesANodeAloneWhoseStatusItCannotRead) {
  AddRoceNode("a");
  AddPolicy("roce", Json::object());
  Reconcile();
  Json object = *server.Find(kNodeTopologies, {"", "a"});
  object["status"]["nics"][0]["transport"] = "Telepathy";
  server.Put(kNodeTopologies, object);
  server.Remove(kLosslessPolicies, {"", "roce"});
  EXPECT_EQ(Reconcile(), 0) << "it is not a node without NICs";
}

TEST_F(LosslessReconcilerTest, DoesNotWriteAgainWhatTheSchemaCutsShort) {
  AddRoceNode("a");
  for (const char letter : {'b', 'c', 'd', 'e'}) AddPolicy(std::string(200, letter), Json::object());
  EXPECT_EQ(Reconcile(), 5);
  ASSERT_EQ(NodeOf("a").spec.lossless.size(), 1u);
  EXPECT_THAT(NodeOf("a").spec.lossless[0].reason, testing::EndsWith("…"));
  clock.Advance(1h);
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(LosslessReconcilerTest, SaysInTheStatusWhyAPolicyIsRefused) {
  AddRoceNode("a");
  AddPolicy("roce", {{"tos", 0}});
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_TRUE(NodeOf("a").spec.lossless.empty());
  const crds::LosslessPolicy policy = PolicyOf("roce");
  const auto* ready = crds::FindCondition(policy.status.conditions, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->reason, "Refused");
  EXPECT_THAT(ready->message, HasSubstr("rdma_cm sends ToS 0, which is DSCP 0; the RDMA class is DSCP 26"));
}

TEST_F(LosslessReconcilerTest, TellsOfAPolicyWhatItsStatusChangedTo) {
  AddRoceNode("a");
  AddPolicy("roce", {{"tos", 0}});
  Reconcile();
  clock.Advance(1h);
  Reconcile();
  events.Flush({});
  ASSERT_EQ(server.All(kube::kEvents).size(), 1u) << "once";
  const Json refused = server.All(kube::kEvents)[0];
  EXPECT_EQ(refused["reason"], "LosslessRefused");
  EXPECT_EQ(refused["type"], "Warning");
  EXPECT_EQ(refused["involvedObject"]["kind"], "LosslessPolicy");
  EXPECT_EQ(refused["involvedObject"]["name"], "roce");
  EXPECT_THAT(refused["message"].get<std::string>(), HasSubstr("rdma_cm sends ToS 0"));
  // On the way to something, which is no news.
  Json policy = *server.Find(kLosslessPolicies, {"", "roce"});
  policy["spec"] = Json::object();
  policy["metadata"]["generation"] = 2;
  server.Put(kLosslessPolicies, policy);
  clock.Advance(1h);
  Reconcile();
  events.Flush({});
  EXPECT_EQ(server.All(kube::kEvents).size(), 1u);
}

}  // namespace
}  // namespace heddle::operators
