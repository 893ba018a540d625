#include "operator/fabric_reconciler.h"

#include <gmock/gmock.h>

#include "operator/fabric_status.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Three hosts a unit: two are no majority.
constexpr const char* kSwapped =
    "su:2 node:3 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100 swap:node-01/rail-2/rail-3";
constexpr const char* kTwoUnits = "su:2 node:2 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";

class FabricReconcilerTest : public Stage {
 protected:
  base::Result<Outcome> Reconcile() { return reconciler.Reconcile(never); }
  // A process that died and came back: no memory, the same server.
  void Restart() {
    reconciler_holder = std::make_unique<FabricReconciler>(
        client, clock, FabricReconciler::Reads{nodes, topologies, fabrics, heartbeats}, assembly, events);
  }
  std::vector<std::string> EventNotes() {
    events.Flush(never);
    std::vector<std::string> notes;
    for (const Json& event : server.All(kube::kEvents)) {
      notes.push_back(kube::StringAt(event, {"reason"}) + ": " + kube::StringAt(event, {"message"}));
    }
    return notes;
  }
  const crds::Condition& ConditionOf(const crds::Fabric& fabric, std::string_view type) {
    const crds::Condition* condition = crds::FindCondition(fabric.status.conditions, type);
    EXPECT_NE(condition, nullptr) << type;
    static const crds::Condition kNothing;
    return condition == nullptr ? kNothing : *condition;
  }

  kube::Heartbeats heartbeats{{.prefix = "heddle-node-"}};
  CurrentAssembly assembly;
  kube::EventRecorder events{
      client, clock, base::Random(1), {.component = "heddle-operator", .instance = "test"}};
  std::unique_ptr<FabricReconciler> reconciler_holder = std::make_unique<FabricReconciler>(
      client, clock, FabricReconciler::Reads{nodes, topologies, fabrics, heartbeats}, assembly, events);
  FabricReconciler& reconciler = *reconciler_holder;
};

TEST_F(FabricReconcilerTest, WritesOneFabricForOneTransport) {
  ReportCluster(kTwoUnits);
  ASSERT_TRUE(Reconcile());
  const crds::Fabric fabric = FabricNamed("infiniband");
  EXPECT_EQ(fabric.status.counts.nodes, 4);
  EXPECT_EQ(fabric.status.counts.gpus, 32);
  EXPECT_EQ(fabric.status.counts.leaves, 16);
  EXPECT_EQ(fabric.status.counts.units, 2);
  EXPECT_EQ(fabric.status.rails, 8);
  EXPECT_TRUE(crds::IsTrue(fabric.status.conditions, crds::kReady));
  EXPECT_TRUE(crds::IsTrue(fabric.status.conditions, crds::kCabled));
  EXPECT_TRUE(crds::IsTrue(fabric.status.conditions, kConditionComplete));
  EXPECT_TRUE(crds::IsTrue(fabric.status.conditions, kConditionUniform));
  EXPECT_FALSE(crds::IsTrue(fabric.status.conditions, kConditionStale));
  EXPECT_THAT(WriteLines(), ElementsAre("POST fabrics", "PATCH fabrics/status infiniband"));
}

TEST_F(FabricReconcilerTest, WritesNothingWhenNothingChanged) {
  ReportCluster(kTwoUnits);
  ASSERT_TRUE(Reconcile());
  server.ClearRequests();
  for (int i = 0; i < 5; ++i) {
    clock.Advance(1min);
    EXPECT_EQ(Reconcile()->writes, 0);
  }
  EXPECT_THAT(server.requests(), IsEmpty());
}

TEST_F(FabricReconcilerTest, WritesAStatusAtMostOnceInTenSeconds) {
  const auto cluster = ReportCluster(kTwoUnits);
  ASSERT_TRUE(Reconcile());
  server.ClearRequests();
  for (int second = 1; second <= 30; ++second) {
    clock.Advance(1s);
    topology::Node changed = cluster[0];
    changed.gpus.resize(static_cast<std::size_t>(1 + second % 8));
    std::erase_if(changed.paths, [&](const auto& path) { return path.gpu >= 1 + second % 8; });
    Report(changed);
    const auto outcome = Reconcile();
    ASSERT_TRUE(outcome);
    if (outcome->again) {
      EXPECT_LE(*outcome->again, 10s);
    }
  }
  EXPECT_THAT(server.writes(), SizeIs(3));
}

TEST_F(FabricReconcilerTest, NamesBothEndsOfASwappedCableAndSaysSoOnce) {
  ReportCluster(kSwapped);
  ASSERT_TRUE(Reconcile());
  const crds::Fabric fabric = FabricNamed("infiniband");
  EXPECT_EQ(ConditionOf(fabric, crds::kCabled).status, crds::ConditionStatus::kFalse);
  EXPECT_THAT(ConditionOf(fabric, crds::kCabled).message, HasSubstr("node-"));
  ASSERT_FALSE(fabric.status.faults.empty());
  const auto notes = EventNotes();
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes.front(), HasSubstr("CablingFault: "));
  clock.Advance(1min);
  ASSERT_TRUE(Reconcile());
  EXPECT_EQ(EventNotes().size(), notes.size());
}

TEST_F(FabricReconcilerTest, SaysOnceOfASwappedCableWhatIsLongerThanTheStatusKeeps) {
  const auto synthetic = topology::ParseSynthetic(kSwapped);
  ASSERT_TRUE(synthetic);
  for (topology::Node node : synthetic->nodes) {
    node.name += std::string(100, 'n');
    for (topology::Nic& nic : node.nics) {
      for (topology::NicPort& port : nic.ports) {
        if (!port.leaf_port) continue;
        topology::LeafPort leaf = *port.leaf_port;
        leaf.leaf.resize(128, 'x');
        port.leaf_port = leaf;
      }
    }
    AddNode(node.name);
    Report(node);
  }
  ASSERT_TRUE(Reconcile());
  const crds::Fabric fabric = FabricNamed("infiniband");
  ASSERT_FALSE(fabric.status.faults.empty());
  EXPECT_THAT(fabric.status.faults.front().sentence, testing::EndsWith("…"));
  const auto notes = EventNotes();
  clock.Advance(1min);
  const auto again = Reconcile();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->writes, 0);
  EXPECT_EQ(EventNotes().size(), notes.size());
}

TEST_F(FabricReconcilerTest, TellsTheNodeAtTheEndOfAWrongCableToo) {
  const auto cluster = ReportCluster(kSwapped);
  ASSERT_TRUE(Reconcile());
  std::vector<std::string> about;
  events.Flush(never);
  for (const Json& event : server.All(kube::kEvents)) {
    about.push_back(kube::StringAt(event, {"involvedObject", "kind"}) + " " +
                    kube::StringAt(event, {"involvedObject", "name"}));
    if (about.back() == "Node node-01") {
      EXPECT_EQ(kube::StringAt(event, {"involvedObject", "uid"}),
                kube::Uid(*server.Find(kube::kNodes, {"", "node-01"})));
    }
  }
  EXPECT_EQ(std::count(about.begin(), about.end(), "Node node-01"), 2);
  EXPECT_EQ(std::count(about.begin(), about.end(), "Fabric infiniband"), 2);
}

TEST_F(FabricReconcilerTest, AsksWhereTwoHostsDifferAndPeopleDeclareNothing) {
  ReportCluster("su:1 node:2 gpu:8 nic:8 rail:8 swap:node-0/rail-2/rail-3");
  ASSERT_TRUE(Reconcile());
  crds::Fabric fabric = FabricNamed("infiniband");
  EXPECT_EQ(ConditionOf(fabric, crds::kCabled).status, crds::ConditionStatus::kUnknown);
  EXPECT_EQ(ConditionOf(fabric, crds::kCabled).reason, "Ambiguous");
  EXPECT_THAT(ConditionOf(fabric, crds::kCabled).message, HasSubstr("declare it in spec.leafNames"));
  EXPECT_EQ(fabric.status.counts.cabling_faults, 0);
  EXPECT_THAT(EventNotes().front(), HasSubstr("CablingAmbiguous: "));
  server.Edit(kFabrics, {"", "infiniband"},
              [](Json& object) { object["spec"]["leafNames"] = {"su{unit}-r{rail}"}; });
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  fabric = FabricNamed("infiniband");
  EXPECT_EQ(ConditionOf(fabric, crds::kCabled).status, crds::ConditionStatus::kFalse);
  EXPECT_THAT(ConditionOf(fabric, crds::kCabled).message, HasSubstr("node-00 mlx5_2 is cabled to su0-r3"));
  EXPECT_EQ(fabric.status.counts.cabling_faults, 2);
}

TEST_F(FabricReconcilerTest, TellsOfAFaultOnlyAfterItWasWritten) {
  ReportCluster(kSwapped);
  server.FailNext({.method = "PATCH", .path_contains = "fabrics", .status = 500});
  EXPECT_FALSE(Reconcile());
  EXPECT_THAT(EventNotes(), IsEmpty());
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  EXPECT_FALSE(EventNotes().empty());
}

TEST_F(FabricReconcilerTest, ReadsWhatPeopleDeclareAndNeverWritesIt) {
  ReportCluster(kTwoUnits);
  Json declared = kube::NewObject(kFabrics, {"", "infiniband"});
  declared["spec"]["excludedNodes"] = {"node-00"};
  server.Put(kFabrics, declared);
  ASSERT_TRUE(Reconcile());
  EXPECT_EQ(FabricNamed("infiniband").status.counts.nodes, 3);
  EXPECT_EQ((*server.Find(kFabrics, {"", "infiniband"}))["spec"], declared["spec"]);
  for (const test::ApiRequest& write : server.writes())
    EXPECT_FALSE(write.json().contains("spec")) << write.body;
}

TEST_F(FabricReconcilerTest, GivesTwoTransportsOfOneSiteADeclarationEach) {
  ReportCluster(kTwoUnits);
  auto roce = topology::ParseSynthetic("tor:1 node:2 gpu:8 nic:2 rate:100 transport:roce");
  ASSERT_TRUE(roce);
  for (topology::Node node : roce->nodes) {
    node.name = "roce-" + node.name;
    if (node.nvlink_domain) node.nvlink_domain = topology::NvlinkMembership{node.name, false};
    Report(node);
  }
  Json declared = kube::NewObject(kFabrics, {"", "roce"});
  declared["spec"]["excludedNodes"] = {"roce-" + roce->nodes.front().name};
  server.Put(kFabrics, declared);
  ASSERT_TRUE(Reconcile());
  EXPECT_EQ(FabricNamed("infiniband").status.counts.nodes, 4);
  EXPECT_EQ(FabricNamed("roce").status.counts.nodes, 1);
}

TEST_F(FabricReconcilerTest, SaysWhatIsWrongWithASpecItCannotReadAndGoesOn) {
  ReportCluster(kTwoUnits);
  Json declared = kube::NewObject(kFabrics, {"", "infiniband"});
  declared["spec"]["rails"] = "eight";
  server.Put(kFabrics, declared);
  ASSERT_TRUE(Reconcile());
  const Json stored = *server.Find(kFabrics, {"", "infiniband"});
  const Json* ready = kube::Condition(stored, "Ready");
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ((*ready)["reason"], "SpecUnreadable");
  EXPECT_THAT((*ready)["message"].get<std::string>(), HasSubstr("rails"));
  server.ClearRequests();
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  EXPECT_THAT(server.writes(), IsEmpty()) << "it is said once";
}

TEST_F(FabricReconcilerTest, GoesByAFabricWhoseStatusAloneItCannotReadAndWritesThatAnew) {
  ReportCluster(kTwoUnits);
  ASSERT_TRUE(Reconcile());
  server.Edit(kFabrics, {"", "infiniband"}, [](Json& object) {
    object["spec"]["excludedNodes"] = {"node-00"};
    object["status"]["rails"] = "eight";
  });
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  const crds::Fabric fabric = FabricNamed("infiniband");
  EXPECT_EQ(fabric.status.counts.nodes, 3);
  EXPECT_EQ(ConditionOf(fabric, crds::kReady).reason, "Assembled");
}

TEST_F(FabricReconcilerTest, KeepsAFabricThatHasLostItsNodesAndSaysSo) {
  for (const topology::Node& node : ReportCluster(kTwoUnits)) {
    if (!server.Find(kFabrics, {"", "infiniband"})) {
      ASSERT_TRUE(Reconcile());
    }
    server.Remove(kNodeTopologies, {"", node.name});
  }
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  const crds::Fabric fabric = FabricNamed("infiniband");
  EXPECT_EQ(ConditionOf(fabric, crds::kReady).reason, "NoNodes");
  EXPECT_EQ(fabric.status.counts.nodes, 0);
}

TEST_F(FabricReconcilerTest, DeletesAnEmptyFabricThatNobodyDeclaredAfterTenMinutes) {
  for (const char* name : {"ethernet", "roce"}) server.Put(kFabrics, kube::NewObject(kFabrics, {"", name}));
  server.Edit(kFabrics, {"", "roce"}, [](Json& object) { object["spec"]["rails"] = 8; });
  ASSERT_TRUE(Reconcile());
  clock.Advance(9min);
  EXPECT_LE(*Reconcile()->again, 60s);
  EXPECT_TRUE(server.Find(kFabrics, {"", "ethernet"}));
  clock.Advance(1min);
  ASSERT_TRUE(Reconcile());
  EXPECT_FALSE(server.Find(kFabrics, {"", "ethernet"}));
  EXPECT_EQ(FabricNamed("roce").spec.rails, 8);
  EXPECT_EQ(FabricNamed("roce").status.transport, topology::Transport::kRoce);
}

TEST_F(FabricReconcilerTest, KeepsAnEmptyFabricThatSomebodyDeclaresAtTheLastMoment) {
  server.Put(kFabrics, kube::NewObject(kFabrics, {"", "ethernet"}));
  ASSERT_TRUE(Reconcile());
  clock.Advance(10min);
  fabrics.Freeze();
  server.Edit(kFabrics, {"", "ethernet"}, [](Json& object) { object["spec"]["rails"] = 2; });
  ASSERT_TRUE(Reconcile());
  EXPECT_EQ(FabricNamed("ethernet").spec.rails, 2);
}

TEST_F(FabricReconcilerTest, NamesTheAgentsThatFellSilent) {
  const auto cluster = ReportCluster(kTwoUnits);
  ASSERT_TRUE(Reconcile());
  heartbeats.Observe({}, {{cluster[0].name}}, clock.Now());
  clock.Advance(5min);
  heartbeats.Observe({}, {{cluster[0].name}}, clock.Now());
  ASSERT_TRUE(Reconcile());
  const crds::Fabric fabric = FabricNamed("infiniband");
  EXPECT_TRUE(crds::IsTrue(fabric.status.conditions, kConditionStale));
  EXPECT_THAT(ConditionOf(fabric, kConditionStale).message, HasSubstr(cluster[0].name));
}

TEST_F(FabricReconcilerTest, SurvivesNodeTopologiesThatMakeNoSense) {
  const auto cluster = ReportCluster(kTwoUnits);
  const Json good = *server.Find(kNodeTopologies, {"", cluster[0].name});
  const std::vector<Json> hostile{Json("x"),
                                  Json(5),
                                  Json::array(),
                                  Json{{"gpus", "many"}},
                                  Json{{"gpus", {nullptr, 7}}},
                                  Json{{"nics", Json::array({Json::object()})}},
                                  Json{{"observedAt", "yesterday"}},
                                  Json{{"conditions", {{{"type", 3}}}}}};
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    Json bad = kube::NewObject(kNodeTopologies, {"", "hostile-" + std::to_string(i)});
    bad["status"] = hostile[i];
    server.Put(kNodeTopologies, bad);
  }
  // Every single value of a real one replaced by something else.
  int number = 0;
  const Json values = good["status"].flatten();
  for (const auto& [path, value] : values.items()) {
    Json bad = good;
    bad["metadata"] = {{"name", "bent-" + std::to_string(++number)}};
    bad["status"][Json::json_pointer(path)] = number % 2 == 0 ? Json(-1) : Json("\x01 odd");
    server.Put(kNodeTopologies, bad);
  }
  ASSERT_TRUE(Reconcile());
  EXPECT_FALSE(crds::IsTrue(FabricNamed("infiniband").status.conditions, kConditionComplete));
  EXPECT_FALSE(assembly.Get()->left_out.empty());
}

TEST_F(FabricReconcilerTest, WaitsForNodesThatHaveNotReported) {
  AddNode("a1");
  server.Put(kNodeTopologies, kube::NewObject(kNodeTopologies, {"", "a1"}));
  ASSERT_TRUE(Reconcile());
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(FabricReconcilerTest, EndsAlikeAfterACrashBehindEveryWrite) {
  ReportCluster(kTwoUnits);
  server.FailNext({.method = "POST", .path_contains = "fabrics", .after_the_fact = true});
  EXPECT_FALSE(Reconcile());
  Restart();
  server.FailNext({.method = "PATCH", .path_contains = "fabrics", .after_the_fact = true});
  EXPECT_FALSE(reconciler_holder->Reconcile(never));
  Restart();
  EXPECT_EQ(reconciler_holder->Reconcile(never)->writes, 0);
  EXPECT_EQ(FabricNamed("infiniband").status.counts.nodes, 4);
}

// What flaps goes down in between, and then its agent does not know its leaf.
TEST_F(FabricReconcilerTest, ASuspectKeepsItsNameWhileItsLinkIsDownAndOverARestart) {
  auto cluster = ReportCluster(kTwoUnits);
  topology::NicPort& port = cluster[0].nics[2].ports[0];
  port.fault = topology::LinkFault::kFlapping;
  port.reason = "41 link downs in 10 min";
  Report(cluster[0]);
  ASSERT_TRUE(Reconcile());
  const auto before = FabricNamed("infiniband").status.suspects;
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_THAT(before[0].name, HasSubstr(port.leaf_port->leaf + " port " + port.leaf_port->port + " <-> "));
  const auto told = EventNotes();
  port.leaf_port = topology::Missing::kStale;
  port.state = topology::LinkState::kDown;
  port.rate_gbps = port.usable_gbps = 0;
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    clock.Advance(1min);
    Report(cluster[0]);
    ASSERT_TRUE(reconciler_holder->Reconcile(never));
    EXPECT_EQ(FabricNamed("infiniband").status.suspects, before) << restarted;
  }
  EXPECT_EQ(EventNotes(), told) << "neither recovered nor suspected anew";
}

TEST_F(FabricReconcilerTest, ReportsRefusalsAndTriesAgainLater) {
  ReportCluster(kTwoUnits);
  server.FailNext({.method = "POST", .path_contains = "fabrics", .status = 403});
  const auto refused = Reconcile();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kForbidden);
  server.FailNext({.method = "POST", .path_contains = "fabrics", .status = 409, .reason = "AlreadyExists"});
  EXPECT_TRUE(Reconcile()->again);
  server.FailNext({.method = "PATCH", .path_contains = "fabrics", .status = 409});
  EXPECT_FALSE(Reconcile());
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  EXPECT_EQ(FabricNamed("infiniband").status.counts.nodes, 4);
}

TEST_F(FabricReconcilerTest, SaysByAnEventThatTheServerDoesNotTakeItsStatus) {
  ReportCluster(kTwoUnits);
  const test::Fault refusal{.method = "PATCH", .path_contains = "fabrics/infiniband/status", .status = 422};
  server.FailNext(refusal, 2);
  ASSERT_FALSE(Reconcile());
  clock.Advance(10s);
  ASSERT_FALSE(Reconcile());
  clock.Advance(10s);
  const auto waits = Reconcile();
  ASSERT_TRUE(waits) << "it is not tried as often as it would be written";
  ASSERT_TRUE(waits->again);
  EXPECT_EQ(*waits->again, 10s);
  const std::vector<std::string> notes = EventNotes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("StatusNotWritten: what its status says may be old"));
  EXPECT_THAT(notes[0], HasSubstr("write the status of Fabric infiniband"));
  clock.Advance(10s);
  ASSERT_TRUE(Reconcile());
  EXPECT_EQ(FabricNamed("infiniband").status.counts.nodes, 4);
}

TEST_F(FabricReconcilerTest, CutsAnEndlessListOfNamesInAMessage) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("n" + std::to_string(i));
  EXPECT_EQ(SomeOf(names, 2), "n0, n1 and 98 more");
  EXPECT_EQ(SomeOf({"a"}, 5), "a");
  EXPECT_EQ(SomeOf({}, 5), "");
}

class FabricWithUfmTest : public FabricReconcilerTest {
 protected:
  FabricWithUfmTest() {
    cluster = ReportCluster(kTwoUnits);
    EXPECT_TRUE(Reconcile());
    Json object = *server.Find(kFabrics, {"", "infiniband"});
    object["spec"]["ufm"] = {{"address", "ufm.example:443"}, {"credentialsSecret", {{"name", "login"}}}};
    object["spec"]["ufm"]["tls"]["caSecret"]["name"] = "ca";
    server.Put(kFabrics, object);
    leaf = cluster[0].nics[0].ports[0].leaf_port->leaf;
    Begin();
  }
  void Begin() {
    FabricReconciler::Reads reads{nodes, topologies, fabrics, heartbeats};
    reads.ufm = [this](const std::string&) { return ufm; };
    with = std::make_unique<FabricReconciler>(client, clock, reads, assembly, events);
  }
  void Answer() {
    std::vector<switches::UfmPort> ports{
        {"00000000000000aa_40", "00000000000000aa", leaf, 40, "00000000000000bb_3"},
        {"00000000000000bb_3", "00000000000000bb", "spine-x", 3, "00000000000000aa_40"}};
    ufm = UfmAnswer{.read_at = clock.WallNow(), .connecting = false};
    ufm->ports = std::make_shared<const std::vector<switches::UfmPort>>(ports);
    ufm->counting.counted_at = clock.WallNow();
    ufm->counting.ports = 2;
  }
  crds::Fabric Reconciled() {
    clock.Advance(1min);
    EXPECT_TRUE(with->Reconcile(never));
    return FabricNamed("infiniband");
  }

  std::vector<topology::Node> cluster;
  std::string leaf;
  std::optional<UfmAnswer> ufm;
  std::unique_ptr<FabricReconciler> with;
};

TEST_F(FabricWithUfmTest, SaysWhetherItAnswersAndCounts) {
  EXPECT_EQ(crds::FindCondition(Reconciled().status.conditions, kConditionUfmReachable), nullptr);
  Answer();
  crds::Fabric fabric = Reconciled();
  EXPECT_EQ(ConditionOf(fabric, kConditionUfmReachable).reason, "Answers");
  EXPECT_EQ(ConditionOf(fabric, kConditionUfmCounted).message, "2 ports of switches are counted");
  ufm->trouble = SwitchTrouble{"PasswordRefused", "see the user name"};
  fabric = Reconciled();
  EXPECT_EQ(ConditionOf(fabric, kConditionUfmReachable).status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(ConditionOf(fabric, kConditionUfmReachable).reason, "PasswordRefused");
  EXPECT_EQ(ConditionOf(fabric, kConditionUfmCounted).reason, "NotAsked");
  Json object = *server.Find(kFabrics, {"", "infiniband"});
  object["spec"].erase("ufm");
  server.Put(kFabrics, object);
  EXPECT_EQ(crds::FindCondition(Reconciled().status.conditions, kConditionUfmReachable), nullptr);
}

TEST_F(FabricWithUfmTest, SuspectsACableAboveTheLeavesAndKeepsItWhereTheNextOperatorHasHeardNothing) {
  Answer();
  ufm->sightings["00000000000000bb"] = {
      {"3", {{topology::Symptom::kFlap, true, "41 link downs in 10 min"}}, ""}};
  crds::Fabric fabric = Reconciled();
  ASSERT_THAT(fabric.status.suspects, SizeIs(1));
  EXPECT_THAT(fabric.status.suspects[0].name, testing::AllOf(HasSubstr("spine-x"), HasSubstr(leaf)));
  EXPECT_THAT(EventNotes(), testing::Contains(HasSubstr("LinkSuspected: ")));
  ufm.reset();
  Begin();
  EXPECT_THAT(Reconciled().status.suspects, SizeIs(1));
  Answer();
  EXPECT_THAT(Reconciled().status.suspects, SizeIs(1));  // it has not counted for long
  ufm->primed = true;
  EXPECT_THAT(Reconciled().status.suspects, IsEmpty());
}

TEST_F(FabricWithUfmTest, IsDeclaredByAPersonAndStays) {
  for (const topology::Node& node : cluster) {
    server.Remove(kube::kNodes, {"", node.name});
    server.Remove(kNodeTopologies, {"", node.name});
  }
  Answer();
  for (int i = 0; i < 20; ++i) Reconciled();
  EXPECT_TRUE(server.Find(kFabrics, {"", "infiniband"}));
}

}  // namespace
}  // namespace heddle::operators
