#include "operator/device_reconciler.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;

class DeviceReconcilerTest : public Stage {
 protected:
  DeviceReconcilerTest() {
    server.Serve(kube::kConfigMaps);
    server.Serve(daemon_sets);
  }
  void AddPolicy(const std::string& name, Json spec, int generation = 1) {
    Stage::AddPolicy(kRdmaDevicePolicies, name, std::move(spec), generation);
  }
  void AddRoceNode(const std::string& name) {
    AddNode(name, {{"pool", "gpu"}});
    topology::Node node;
    node.name = name;
    for (int rail = 0; rail < 2; ++rail) {
      topology::Nic nic;
      nic.name = "mlx5_" + std::to_string(rail);
      nic.transport = topology::Transport::kRoce;
      nic.role = topology::NicRole::kCompute;
      nic.rail = rail;
      nic.netdev = "eth" + std::to_string(rail);
      nic.ports.emplace_back();
      node.nics.push_back(nic);
    }
    Report(node);
  }
  int Reconcile() {
    const auto outcome = reconciler.Reconcile({});
    EXPECT_TRUE(outcome) << (outcome ? "" : base::ToString(outcome.error()));
    return outcome ? outcome->writes : -1;
  }

  ServerView policies{server, kRdmaDevicePolicies};
  const kube::Resource daemon_sets{"apps", "v1", "daemonsets", "DaemonSet", true};
  kube::Client labels_client{server, clock, {.field_manager = "heddle-operator-labels"}};
  kube::EventRecorder events{
      client, clock, base::Random(7), {.component = "heddle-operator", .instance = "op-0"}};
  DeviceReconciler reconciler{
      client,
      labels_client,
      clock,
      {.nodes = nodes, .topologies = topologies, .policies = policies},
      {.ns = "heddle-system", .images = {{crds::DevicePlugin::kRdmaShared, "registry.test/shared:v1"}}},
      events};
};

TEST_F(DeviceReconcilerTest, TellsNodesAndThenHasNothingMoreToWrite) {
  AddRoceNode("a");
  AddRoceNode("b");
  EXPECT_EQ(Reconcile(), 0) << "no policy";
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  EXPECT_EQ(Reconcile(), 3) << "two specs and one status";
  ASSERT_EQ(NodeOf("a").spec.devices.size(), 2u);
  EXPECT_EQ(NodeOf("a").spec.devices[1].ports, std::vector<std::string>{"mlx5_1:1"});
  EXPECT_EQ(NodeOf("a").status.node.nics.size(), 2u) << "the agent's half stays";
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(DeviceReconcilerTest, WritesNothingAgainWhileItsCacheShowsWhatWasThereBefore) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  topologies.Freeze();
  EXPECT_EQ(Reconcile(), 2);
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 0);
  EXPECT_EQ(NodeOf("a").spec.devices.size(), 2u);
}

TEST_F(DeviceReconcilerTest, SaysOfWhichNodeItMayNotWriteTheSpec) {
  AddRoceNode("a");
  AddRoceNode("b");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  server.FailNext({.method = "PATCH", .path_contains = "nodetopologies/a", .status = 403});
  ASSERT_FALSE(reconciler.Reconcile({}));
  const auto policy = crds::RdmaDevicePolicyFromJson(*server.Find(kRdmaDevicePolicies, {"", "rails"}));
  ASSERT_TRUE(policy);
  const auto* ready = crds::FindCondition(policy->status.conditions, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->reason, "NotTold");
  EXPECT_THAT(ready->message, testing::HasSubstr("write spec.devices of NodeTopology a"));
  EXPECT_EQ(NodeOf("b").spec.devices.size(), 2u) << "the others are told";
}

TEST_F(DeviceReconcilerTest, SaysByAnEventThatTheServerDoesNotTakeAStatus) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  server.FailNext({.method = "PATCH", .path_contains = "rdmadevicepolicies/rails/status", .status = 422});
  ASSERT_FALSE(reconciler.Reconcile({}));
  EXPECT_EQ(NodeOf("a").spec.devices.size(), 2u) << "nodes are told all the same";
  events.Flush({});
  ASSERT_EQ(server.All(kube::kEvents).size(), 1u);
  const Json event = server.All(kube::kEvents)[0];
  EXPECT_EQ(event["reason"], "StatusNotWritten");
  EXPECT_EQ(event["involvedObject"]["name"], "rails");
  EXPECT_THAT(kube::StringAt(event, {"message"}), testing::HasSubstr("the CRDs to one version"));
}

TEST_F(DeviceReconcilerTest, TakesBackWhatNoPolicySaysAnyMore) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  Reconcile();
  server.Remove(kRdmaDevicePolicies, {"", "rails"});
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_TRUE(NodeOf("a").spec.devices.empty());
  EXPECT_EQ(Reconcile(), 0);
}

TEST_F(DeviceReconcilerTest, WritesAStatusOnceInTenSeconds) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  Reconcile();
  AddRoceNode("b");
  const auto soon = reconciler.Reconcile({});
  ASSERT_TRUE(soon);
  EXPECT_EQ(soon->writes, 1) << "the new node's spec";
  ASSERT_TRUE(soon->again);
  clock.Advance(*soon->again);
  EXPECT_EQ(Reconcile(), 1);
}

TEST_F(DeviceReconcilerTest, APolicyOfANewerVersionTakesNothingAway) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  Reconcile();
  AddPolicy("rails", {{"mode", "OfNextYear"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}}, 2);
  EXPECT_EQ(Reconcile(), 0);
  EXPECT_EQ(NodeOf("a").spec.devices.size(), 2u);
}

TEST_F(DeviceReconcilerTest, TakesOutWhatANewerOperatorWrote) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  Reconcile();
  const auto told = NodeOf("a").spec.devices;
  const auto write = [&](const char* key, const char* word) {
    server.Edit(kNodeTopologies, {"", "a"}, [&](Json& node) { node["spec"]["devices"][0][key] = word; });
  };
  write("numa", "Strict");
  EXPECT_EQ(Reconcile(), 1)
      << "an agent of this version offers nothing of an entry with a key it does not know";
  EXPECT_EQ(NodeOf("a").spec.devices, told);
  EXPECT_EQ(Reconcile(), 0);
  write("mode", "OfNextYear");
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(NodeOf("a").spec.devices, told);
  write("numa", "Strict");
  server.Remove(kRdmaDevicePolicies, {"", "rails"});
  EXPECT_EQ(Reconcile(), 1) << "also where nothing is left to be told";
  EXPECT_TRUE(NodeOf("a").spec.devices.empty());
}

TEST_F(DeviceReconcilerTest, SaysInTheStatusWhichFieldOfAPolicyItDoesNotUnderstand) {
  AddRoceNode("a");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  Reconcile();
  const auto told = NodeOf("a").spec.devices;
  const auto change = [&](const char* mode, int generation) {
    server.Edit(kRdmaDevicePolicies, {"", "rails"}, [&](Json& policy) {
      policy["spec"]["mode"] = mode;
      policy["metadata"]["generation"] = generation;
    });
    clock.Advance(10s);
  };
  change("OfNextYear", 2);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(Reconcile(), 0) << "it is said once";
  EXPECT_EQ(NodeOf("a").spec.devices, told);
  const Json object = *server.Find(kRdmaDevicePolicies, {"", "rails"});
  const Json* ready = kube::Condition(object, crds::kReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ((*ready)["status"], "False");
  EXPECT_EQ((*ready)["reason"], "NotUnderstood");
  EXPECT_THAT((*ready)["message"].get<std::string>(),
              testing::AllOf(testing::HasSubstr("spec.mode"), testing::HasSubstr("OfNextYear"),
                             testing::HasSubstr("Correct that field")));
  EXPECT_EQ(kube::IntAt(object, {"status", "observedGeneration"}), 1) << "the other was never in force";
  EXPECT_EQ(kube::IntAt(object, {"status", "counts", "nodes"}), 1) << "the rest of it stays";
  events.Flush({});
  ASSERT_EQ(server.All(kube::kEvents).size(), 1u);
  EXPECT_EQ(server.All(kube::kEvents)[0]["reason"], "DevicesNotUnderstood");
  change("Nics", 3);
  EXPECT_EQ(Reconcile(), 1);
  const auto policy = crds::RdmaDevicePolicyFromJson(*server.Find(kRdmaDevicePolicies, {"", "rails"}));
  ASSERT_TRUE(policy);
  EXPECT_EQ(crds::FindCondition(policy->status.conditions, crds::kReady)->reason, "Waiting");
}

TEST_F(DeviceReconcilerTest, CountsAndNamesANodeThatItCannotRead) {
  AddRoceNode("a");
  AddRoceNode("b");
  AddPolicy("rails", {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/rail{rail}"}}}}});
  Reconcile();
  server.Edit(kNodeTopologies, {"", "b"},
              [](Json& node) { node["status"]["nics"][0]["transport"] = "Telepathy"; });
  clock.Advance(10s);
  EXPECT_EQ(Reconcile(), 1) << "the status, and nothing of the node";
  const auto policy = crds::RdmaDevicePolicyFromJson(*server.Find(kRdmaDevicePolicies, {"", "rails"}));
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->status.counts.nodes, 2);
  EXPECT_EQ(policy->status.counts.waiting, 2);
  EXPECT_THAT(crds::FindCondition(policy->status.conditions, crds::kReady)->message,
              testing::AllOf(testing::HasSubstr("b: cannot be read"), testing::HasSubstr("Telepathy")));
}

TEST_F(DeviceReconcilerTest, AnEventSaysWhatAPolicyTurnedTo) {
  AddRoceNode("a");
  AddPolicy("mgmt",
            {{"mode", "Nics"}, {"resources", {{{"name", "heddle.dev/mgmt"}, {"roles", {"management"}}}}}});
  Reconcile();
  events.Flush({});
  const auto told = server.All(kube::kEvents);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]["reason"], "DevicesRefused");
  EXPECT_THAT(told[0].dump(), testing::HasSubstr("no RDMA device of this node"));
  clock.Advance(1min);
  Reconcile();
  events.Flush({});
  EXPECT_EQ(server.All(kube::kEvents).size(), 1u) << "said once";
}

TEST_F(DeviceReconcilerTest, SaysThatItMayNotRunAnotherPluginAndRunsItOnceItMay) {
  AddRoceNode("a");
  AddPolicy("shared",
            {{"mode", "Nics"},
             {"plugin", "RdmaShared"},
             {"resources", Json::array({Json{{"name", "rdma/hca"}, {"rails", Json::array({0})}}})}});
  AddPolicy("ours",
            {{"mode", "Nics"},
             {"resources", Json::array({Json{{"name", "heddle.dev/nic"}, {"rails", Json::array({1})}}})}});
  bool forbidden = true;
  int asked = 0;
  server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!forbidden || request.plural != "daemonsets" || !request.write()) return std::nullopt;
    ++asked;
    return test::StatusResponse(403, "Forbidden", "daemonsets.apps is forbidden");
  });
  const auto ready = [this](const std::string& policy) {
    const Json object = *server.Find(kRdmaDevicePolicies, {"", policy});
    return object["status"]["conditions"][0];
  };
  const auto refused = reconciler.Reconcile({});
  ASSERT_FALSE(refused) << "and so it is tried again, after pauses that grow";
  EXPECT_EQ(refused.error().code, base::Code::kForbidden);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(ready("shared")["reason"], "PluginNotRun");
  EXPECT_EQ(ready("shared")["status"], "False");
  EXPECT_THAT(ready("shared")["message"].get<std::string>(),
              testing::AllOf(testing::HasSubstr("make DaemonSet heddle-rdma-shared-"),
                             testing::HasSubstr("daemonsets.apps is forbidden"),
                             testing::HasSubstr("kubectl heddle doctor")));
  EXPECT_NE(ready("ours")["reason"], "PluginNotRun") << "which has nothing to do with it";
  events.Flush({});
  EXPECT_THAT(server.All(kube::kEvents), testing::Contains(testing::Truly([](const Json& event) {
                return event["reason"] == "DevicesPluginNotRun";
              })));
  // No node is left with a label that picks a plugin which is not there.
  EXPECT_FALSE(kube::Labels(*server.Find(kube::kNodes, {"", "a"})).contains("heddle.dev/rdma-class"));

  forbidden = false;
  clock.Advance(1min);
  Reconcile();
  EXPECT_EQ(server.All(daemon_sets).size(), 1u);
  EXPECT_EQ(ready("shared")["reason"], "Waiting");
}

TEST_F(DeviceReconcilerTest, WhyAPluginIsNotRunIsCutBetweenCharactersInFrontOfWhatToDo) {
  AddRoceNode("a");
  AddPolicy("shared",
            {{"mode", "Nics"},
             {"plugin", "RdmaShared"},
             {"resources", Json::array({Json{{"name", "rdma/hca"}, {"rails", Json::array({0})}}})}});
  std::string words;
  for (int i = 0; i < 500; ++i) words += "µ";
  // Whatever is put in front of it, one of both ends within a character.
  for (const char* first : {"", "x"}) {
    server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.plural != "daemonsets" || !request.write()) return std::nullopt;
      return test::StatusResponse(403, "Forbidden", first + words);
    });
    clock.Advance(1min);
    ASSERT_FALSE(reconciler.Reconcile({}));
    const Json object = *server.Find(kRdmaDevicePolicies, {"", "shared"});
    const std::string message = object["status"]["conditions"][0]["message"].get<std::string>();
    EXPECT_THAT(message, testing::AllOf(testing::HasSubstr("µµ.... It tries again by itself"),
                                        testing::EndsWith("names rights that it lacks"),
                                        testing::Not(testing::HasSubstr("\xef\xbf\xbd"))));
  }
}

TEST_F(DeviceReconcilerTest, SaysWhereThePodsAreOfAPluginThatOffersNothing) {
  AddRoceNode("a");
  AddPolicy("shared",
            {{"mode", "Nics"},
             {"plugin", "RdmaShared"},
             {"resources", Json::array({Json{{"name", "rdma/hca"}, {"rails", Json::array({0})}}})}});
  Reconcile();
  const auto ready = [this] {
    return (*server.Find(kRdmaDevicePolicies, {"", "shared"}))["status"]["conditions"][0];
  };
  EXPECT_THAT(ready()["message"].get<std::string>(), testing::Not(testing::HasSubstr("look at")))
      << "of its agent nothing is heard yet";
  const auto answer = [this](const char* state, int devices) {
    server.Edit(kNodeTopologies, {"", "a"}, [&](Json& node) {
      Json report{
          {"resource", "rdma/hca"}, {"policy", "shared"}, {"generation", 1}, {"reason", "as the test says"}};
      report["policyUid"] = node["spec"]["devices"][0]["policyUid"];
      report["state"] = state;
      report["healthy"] = report["total"] = devices;
      node["status"]["devices"] = Json::array({report});
    });
    clock.Advance(10s);
  };
  answer("Pending", 0);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(ready()["reason"], "Waiting");
  const auto sets = server.All(daemon_sets);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(ready()["message"].get<std::string>(),
            "1 of 1 nodes wait for the plugin; a: rdma/hca: as the test says; of a look at: kubectl -n "
            "heddle-system get pods -o wide -l app.kubernetes.io/name=" +
                kube::Name(sets[0]));
  EXPECT_EQ(Reconcile(), 0) << "said once";
  answer("Elsewhere", 16);
  EXPECT_EQ(Reconcile(), 1);
  EXPECT_EQ(ready()["reason"], "Offered");
}

TEST_F(DeviceReconcilerTest, AnotherPluginGoesOnOnANodeThatCannotBeRead) {
  AddRoceNode("a");
  AddPolicy("shared",
            {{"mode", "Nics"},
             {"plugin", "RdmaShared"},
             {"resources", Json::array({Json{{"name", "rdma/hca"}, {"rails", Json::array({0})}}})}});
  Reconcile();
  const auto label = [&] {
    const auto labels = kube::Labels(*server.Find(kube::kNodes, {"", "a"}));
    const auto found = labels.find("heddle.dev/rdma-class");
    return found == labels.end() ? std::string() : found->second;
  };
  const std::string before = label();
  ASSERT_NE(before, "");
  const Json readable = *server.Find(kNodeTopologies, {"", "a"});
  server.Edit(kNodeTopologies, {"", "a"},
              [](Json& node) { node["status"]["nics"][0]["transport"] = "Telepathy"; });
  for (int minute = 0; minute < 2; ++minute) {
    clock.Advance(1min);
    Reconcile();
    EXPECT_EQ(label(), before);
    EXPECT_EQ(server.All(daemon_sets).size(), 1u);
    EXPECT_EQ(server.All(kube::kConfigMaps).size(), 1u);
  }
  server.Remove(kRdmaDevicePolicies, {"", "shared"});
  server.Put(kNodeTopologies, readable);
  clock.Advance(1min);
  Reconcile();
  EXPECT_EQ(label(), "");
  EXPECT_TRUE(server.All(daemon_sets).empty());
}

TEST_F(DeviceReconcilerTest, AnotherPluginGoesOnOnANodeWhoseStatusWasLost) {
  AddRoceNode("a");
  AddPolicy("shared",
            {{"mode", "Nics"},
             {"plugin", "RdmaShared"},
             {"resources", Json::array({Json{{"name", "rdma/hca"}, {"rails", Json::array({0})}}})}});
  Reconcile();
  const std::string before = kube::Labels(*server.Find(kube::kNodes, {"", "a"})).at("heddle.dev/rdma-class");
  const auto maps = server.All(kube::kConfigMaps);
  ASSERT_EQ(maps.size(), 1u);
  server.Edit(kNodeTopologies, {"", "a"}, [](Json& node) { node.erase("status"); });
  for (int minute = 0; minute < 2; ++minute) {
    clock.Advance(1min);
    Reconcile();
    EXPECT_EQ(kube::Labels(*server.Find(kube::kNodes, {"", "a"})).at("heddle.dev/rdma-class"), before);
    ASSERT_EQ(server.All(kube::kConfigMaps).size(), 1u) << "and none without interfaces";
    EXPECT_EQ(kube::Name(server.All(kube::kConfigMaps)[0]), kube::Name(maps[0]));
    EXPECT_EQ(server.All(daemon_sets).size(), 1u);
  }
}

TEST_F(DeviceReconcilerTest, RunsAnotherPluginWhereAPolicyNamesItAndCleansUpAfterIt) {
  AddRoceNode("a");
  AddRoceNode("b");
  AddNode("c");
  const Json spec{{"nodeSelector", {{"pool", "gpu"}}},
                  {"mode", "Nics"},
                  {"plugin", "RdmaShared"},
                  {"resources", {{{"name", "rdma/rail{rail}"}, {"slots", 63}}}}};
  AddPolicy("shared", spec);
  Reconcile();
  const auto maps = server.All(kube::kConfigMaps);
  ASSERT_EQ(maps.size(), 1u) << "both nodes have the same interfaces";
  const Json config = Json::parse(maps[0]["data"]["config.json"].get<std::string>());
  ASSERT_EQ(config["configList"].size(), 2u);
  EXPECT_EQ(config["configList"][1], (Json{{"resourcePrefix", "rdma"},
                                           {"resourceName", "rail1"},
                                           {"rdmaHcaMax", 63},
                                           {"selectors", {{"ifNames", {"eth1"}}}}}));
  const auto sets = server.All(daemon_sets);
  ASSERT_EQ(sets.size(), 1u);
  const std::string hash = kube::Labels(*server.Find(kube::kNodes, {"", "a"})).at("heddle.dev/rdma-class");
  EXPECT_EQ(kube::Name(sets[0]), "heddle-rdma-shared-" + hash);
  EXPECT_EQ(sets[0]["spec"]["template"]["spec"]["nodeSelector"], (Json{{"heddle.dev/rdma-class", hash}}));
  EXPECT_EQ(sets[0]["spec"]["template"]["spec"]["containers"][0]["image"], "registry.test/shared:v1");
  EXPECT_FALSE(kube::Labels(*server.Find(kube::kNodes, {"", "c"})).contains("heddle.dev/rdma-class"));
  EXPECT_EQ(Reconcile(), 0);

  server.Remove(daemon_sets, kube::KeyOf(sets[0]));
  clock.Advance(1min);
  EXPECT_EQ(Reconcile(), 1) << "what somebody took away is back within a minute";
  EXPECT_EQ(server.All(daemon_sets).size(), 1u);

  server.Remove(kRdmaDevicePolicies, {"", "shared"});
  Reconcile();
  EXPECT_TRUE(server.All(daemon_sets).empty());
  EXPECT_TRUE(server.All(kube::kConfigMaps).empty());
  EXPECT_FALSE(kube::Labels(*server.Find(kube::kNodes, {"", "a"})).contains("heddle.dev/rdma-class"));
  clock.Advance(1min);
  EXPECT_EQ(Reconcile(), 0);
}

// It was idle, another led and died between taking back the policy's word and its objects, and now it leads again.
TEST_F(DeviceReconcilerTest, CleansUpWhatAnotherLeaderLeftBehind) {
  AddRoceNode("a");
  Reconcile();
  AddPolicy("shared", {{"nodeSelector", {{"pool", "gpu"}}},
                       {"mode", "Nics"},
                       {"plugin", "RdmaShared"},
                       {"resources", {{{"name", "rdma/rail{rail}"}, {"slots", 63}}}}});
  DeviceReconciler other{
      client,
      labels_client,
      clock,
      {.nodes = nodes, .topologies = topologies, .policies = policies},
      {.ns = "heddle-system", .images = {{crds::DevicePlugin::kRdmaShared, "registry.test/shared:v1"}}},
      events};
  ASSERT_TRUE(other.Reconcile({}));
  ASSERT_EQ(server.All(daemon_sets).size(), 1u);
  server.Remove(kRdmaDevicePolicies, {"", "shared"});
  clock.Advance(1min);
  reconciler.LeadingBegins();
  Reconcile();
  EXPECT_TRUE(server.All(daemon_sets).empty());
  EXPECT_TRUE(server.All(kube::kConfigMaps).empty());
  EXPECT_FALSE(kube::Labels(*server.Find(kube::kNodes, {"", "a"})).contains("heddle.dev/rdma-class"));
  clock.Advance(1min);
  EXPECT_EQ(Reconcile(), 0);
}

}  // namespace
}  // namespace heddle::operators
