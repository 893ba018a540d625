#include "cli/status.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <regex>

#include "cli/status_parts.h"
#include "crds/device_conditions.h"
#include "crds/yaml.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kCluster = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";

class StatusTest : public Stage {
 protected:
  StatusTest() {
    server.Serve(ResourceOf(keys::kLosslessPolicy));
    server.Serve(ResourceOf(keys::kRdmaDevicePolicy));
    server.Serve(ResourceOf(keys::kFabricSwitch));
  }
  // NodeTopologies, and Nodes and Leases to them.
  void AddHealthy(const std::string& line = kCluster) {
    AddCluster(line);
    for (const Json& topology : server.All(ResourceOf(keys::kNodeTopology))) {
      Json node = kube::NewObject(kube::kNodes, {"", kube::Name(topology)});
      node["status"]["conditions"] =
          Json::array({ConditionOf("Ready", "True", "KubeletReady", "fine", hours(9))});
      server.Put(kube::kNodes, node);
      Beat(kube::Name(topology), seconds(30));
    }
  }
  Json ConditionOf(const std::string& type, const std::string& status, const std::string& reason,
                   const std::string& message, seconds ago) {
    return {{"type", type},
            {"status", status},
            {"reason", reason},
            {"message", message},
            {"lastTransitionTime", base::FormatTime(clock.WallNow() - ago)}};
  }
  void Say(const kube::Resource& kind, const std::string& name, Json condition) {
    server.Edit(kind, {"", name}, [&](Json& object) {
      Json& conditions = object["status"]["conditions"];
      if (!conditions.is_array()) conditions = Json::array();
      for (Json& one : conditions) {
        if (one["type"] == condition["type"]) {
          one = condition;
          return;
        }
      }
      conditions.push_back(std::move(condition));
    });
  }
  void SayOfNode(const std::string& node, const std::string& type, const std::string& reason,
                 const std::string& message, seconds ago = hours(3)) {
    Say(ResourceOf(keys::kNodeTopology), node, ConditionOf(type, "False", reason, message, ago));
  }
  void AddPolicy(keys::Kind kind, const std::string& name, const std::string& reason,
                 const std::string& message, seconds ago) {
    Json policy = kube::NewObject(ResourceOf(kind), {"", name});
    policy["status"]["conditions"] = Json::array({ConditionOf("Ready", "False", reason, message, ago)});
    server.Put(ResourceOf(kind), policy);
  }
  crds::Gang GangOf(const std::string& name, seconds age = hours(5)) {
    crds::Gang gang;
    gang.ns = "team";
    gang.name = name + "-3f9c1a7e-0";
    gang.created_at = std::chrono::floor<seconds>(clock.WallNow() - age);
    gang.spec.owner = {"batch/v1", "Job", name, name + "-uid"};
    gang.spec.pods = 2;
    gang.spec.gpus_per_pod = 8;
    return gang;
  }
  void Put(crds::Gang gang, std::vector<std::pair<std::string_view, bool>> conditions, seconds ago,
           const std::string& reason = "", const std::string& message = "") {
    for (const auto& [type, on] : conditions) {
      crds::SetCondition(gang.status.conditions,
                         {.type = std::string(type),
                          .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse,
                          .reason = "Said",
                          .message = "said",
                          .last_transition = std::chrono::floor<seconds>(clock.WallNow() - ago)});
    }
    gang.status.reason = reason;
    gang.status.message = message;
    server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
  }
  crds::Gang Placed(crds::Gang gang) {
    gang.status.placement = crds::ToColumns({{"node-00", 0, {}}, {"node-01", 0, {}}}, 1);
    gang.status.planned_at = gang.created_at;
    return gang;
  }
  crds::Gang HoldingOthers(crds::Gang gang, const std::string& message, seconds ago = hours(2)) {
    crds::SetCondition(gang.status.conditions,
                       {.type = std::string(crds::kDevicesAsPlanned),
                        .status = crds::ConditionStatus::kFalse,
                        .reason = "Differs",
                        .message = message,
                        .last_transition = std::chrono::floor<seconds>(clock.WallNow() - ago)});
    return gang;
  }
  Output Run(StatusOptions options = {}, Format format = Format::kText, std::size_t width = 0) {
    return RunStatus(client, clock, options, {.format = format, .style = {.width = width}}, {});
  }
  Json RunJson(StatusOptions options = {}) {
    const Output output = Run(std::move(options), Format::kJson);
    return Json::parse(output.out, nullptr, false);
  }
  // As kubectl prints them: what somebody keeps of a night.
  std::string Saved(const std::vector<kube::Resource>& kinds) {
    Json items = Json::array();
    for (const kube::Resource& kind : kinds) {
      for (const Json& object : server.All(kind)) items.push_back(object);
    }
    return ListOf(std::move(items));
  }
  Output Show(const std::string& text, StatusOptions options = {}, Format format = Format::kJson) {
    Files files;
    files.texts["night.json"] = text;
    options.topology = {"night.json"};
    return ShowStatus(options, clock.WallNow(), files.read, {.format = format});
  }
  std::vector<std::string> Whats(const Json& report) {
    std::vector<std::string> whats;
    for (const Json& item : report["items"]) whats.push_back(item["what"]);
    return whats;
  }
  // A night on which everything happens at once.
  void BreakEverything();
};

void StatusTest::BreakEverything() {
  AddHealthy();
  Put(Placed(GangOf("runs")), {{crds::kRunning, true}}, hours(4));
  Put(Placed(GangOf("llama")), {{crds::kRunning, true}}, hours(4), "NodeLost",
      "node-05 is NotReady, and rank 5 (pod llama-5-x7k2p) is there: the gang stands still");
  Put(Placed(GangOf("bert")), {{crds::kDegraded, true}}, minutes(20), "Requirement",
      "1 rank lost its slot (rank 9: node-09 is NotReady): no usable node is left where dp=leaf lets it go");
  Put(GangOf("typo"), {{crds::kPlanned, false}}, hours(2), "BadAnnotation", "tp=3 does not divide 16");
  Put(GangOf("patient"), {{crds::kCollected, true}, {crds::kPlanned, false}}, minutes(45), "NotEnoughFree",
      "2 hosts needed, best has 1 (su-0)");
  Put(GangOf("fresh", seconds(30)), {{crds::kPlanned, false}}, seconds(30), "NotEnoughFree", "1 host needed");
  Put(Placed(GangOf("slow")), {{crds::kRunning, true}}, hours(1), "RailDegraded", "mlx5_3 of node-02 flaps");
  Put(GangOf("done"), {{crds::kEnded, true}}, hours(1), "OwnerFinished", "over");
  Say(kube::kNodes, "node-05",
      ConditionOf("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.",
                  minutes(12)));
  server.Edit(kube::kNodes, {"", "node-06"}, [this](Json& node) {
    node["spec"] = {
        {"unschedulable", true},
        {"taints", Json::array({{{"key", "node.kubernetes.io/unschedulable"},
                                 {"timeAdded", base::FormatTime(clock.WallNow() - hours(50))}}})}};
  });
  for (const char* node : {"node-01", "node-02", "node-03", "node-04", "node-07"}) {
    SayOfNode(node, "Rail3Healthy", "LinkDown", "mlx5_3 port 1 (su-0-leaf-3 port 4) is down");
    SayOfNode(node, "LinksUp", "LinkDown", "mlx5_3:1 is down");
  }
  SayOfNode("node-08", "Rail1Healthy", "Flapping", "mlx5_1 port 1: 4 link downs in 10 minutes", minutes(5));
  SayOfNode("node-09", "GpusHealthy", "GpuFault", "GPU 3 (0000:5d:00.0): XID 79", hours(30));
  SayOfNode("node-09", "NvlinkHealthy", "NvlinkFault", "GPU 2: link 5 counted 31 replays");
  SayOfNode("node-10", "LeavesKnown", "Stale", "mlx5_0:1 is stale");
  SayOfNode("node-10", "Lossless", "Conflict", "mlx5_2:1: lldpad writes pfc");
  SayOfNode("node-11", "FutureHealthy", "Wobbles", "from an agent of tomorrow");
  Beat("node-12", minutes(40));
  server.Remove(kube::kLeases, {std::string(keys::kNamespace), keys::NodeLease("node-13")});
  Json fabric = kube::NewObject(ResourceOf(keys::kFabric), {"", "infiniband"});
  fabric["status"]["conditions"] =
      Json::array({ConditionOf("Ready", "True", "Assembled", "16 nodes", hours(9)),
                   ConditionOf("Cabled", "False", "CablingFaults", "node-14 …", hours(7)),
                   ConditionOf("Uniform", "False", "FewerThanPeers",
                               "node-15 has 7 GPUs, its peers 8. Look there for lost PCIe devices", hours(3)),
                   ConditionOf("Stale", "True", "AgentsSilent", "2 of 16 agents", minutes(36))});
  fabric["status"]["faults"] =
      Json::array({{{"node", "node-14"},
                    {"nic", "mlx5_3"},
                    {"port", 1},
                    {"sentence",
                     "node-14 mlx5_3 is cabled to su-1-leaf-4 port 6; its unit's rail 3 is su-1-leaf-3: "
                     "swapped with node-14 mlx5_4 on su-1-leaf-3 port 6"}},
                   {{"node", "node-15"},
                    {"nic", "mlx5_0"},
                    {"port", 1},
                    {"certainty", "Ambiguous"},
                    {"sentence", "node-15 …"}}});
  server.Put(ResourceOf(keys::kFabric), fabric);
  AddPolicy(keys::kLosslessPolicy, "roce", "CanaryStopped", "2 of 16 nodes have it and went no further",
            hours(6));
  AddPolicy(keys::kRdmaDevicePolicy, "rails", "Waiting", "1 of 16 nodes have not answered yet; node-13",
            minutes(2));
}

TEST_F(StatusTest, SaysOnceWhatIsWrongWithTheUfmOfAFabric) {
  Json fabric = kube::NewObject(ResourceOf(keys::kFabric), {"", "infiniband"});
  fabric["status"]["conditions"] =
      Json::array({ConditionOf("UfmReachable", "False", "PasswordRefused", "see credentialsSecret", hours(2)),
                   ConditionOf("UfmCounted", "False", "NotAsked", "UFM does not answer", hours(2))});
  server.Put(ResourceOf(keys::kFabric), fabric);
  std::string said = Run().out;
  EXPECT_THAT(said, testing::HasSubstr("its UFM does not answer"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("counts no ports")));
  fabric["status"]["conditions"][0] = ConditionOf("UfmReachable", "True", "Answers", "", hours(2));
  server.Put(ResourceOf(keys::kFabric), fabric);
  EXPECT_THAT(Run().out, testing::HasSubstr("its UFM counts no ports"));
}

TEST_F(StatusTest, SaysThatANicIsGoneBesideARailThatIsDown) {
  AddHealthy();
  SayOfNode("node-01", "Rail5Healthy", "LinkDown", "mlx5_5 port 1 is down");
  SayOfNode("node-01", "LinksUp", "NicGone", "GPU 3 has no NIC of its own on rail 3 and borrows mlx5_0");
  EXPECT_THAT(Whats(RunJson()), testing::Contains(testing::HasSubstr("NICs gone")));
}

TEST_F(StatusTest, ShowsANightWithTheWorstFirst) {
  BreakEverything();
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  EXPECT_EQ(output.err, "");
  ExpectGolden("status.txt", output.out);
}

TEST_F(StatusTest, BreaksLinesOnANarrowTerminal) {
  BreakEverything();
  const std::string text = Run({}, Format::kText, 80).out;
  ExpectGolden("status_80.txt", text);
  ExpectFits([this](const Style& style) { return RunStatus(client, clock, {}, {.style = style}, {}).out; });
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 80U) << line;
  EXPECT_EQ(Run({}, Format::kText, 2000).out, Run().out);
}

TEST_F(StatusTest, SaysInASentenceThatNothingIsWrong) {
  AddHealthy();
  Put(Placed(GangOf("runs")), {{crds::kRunning, true}}, hours(4));
  AddPod("runs", 0, "node-00", 8);
  AddPod("runs", 1, "node-01", 8);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(output.out,
            "Nothing is wrong: 16 nodes, 128 GPUs: 16 bound, 112 free; 1 gang running, 0 waiting.\n");
  EXPECT_EQ(RunJson()["wrong"], false);
  EXPECT_EQ(Run({}, Format::kText, 80).out,
            "Nothing is wrong: 16 nodes, 128 GPUs: 16 bound, 112 free; 1 gang running, 0\nwaiting.\n");
}

TEST_F(StatusTest, FitsFiveThousandNodesOnAScreenAndShowsEachWhenAsked) {
  AddHealthy("su:4 node:32 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  for (const Json& topology : server.All(ResourceOf(keys::kNodeTopology)))
    SayOfNode(kube::Name(topology), "Rail3Healthy", "LinkDown", "mlx5_3 port 1 is down");
  const Json report = RunJson();
  ASSERT_EQ(report["items"].size(), 1U);
  EXPECT_EQ(report["items"][0]["count"], 128);
  EXPECT_EQ(report["items"][0]["names"].size(), 128U);
  EXPECT_THAT(Run().out, HasSubstr("128 nodes: node-000, node-001, … 126 more"));
  EXPECT_EQ(RunJson({.all = true})["items"].size(), 128U);
  EXPECT_THAT(Run({.all = true}).out, HasSubstr("node node-127"));
}

TEST_F(StatusTest, CountsGpusThatNobodyCanUse) {
  AddHealthy("su:1 node:4 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 badgpu:node-01/5");
  AddPod("llama", 0, "node-01", 4);
  AddPod("llama", 1, "node-02", 8);
  AddPod("llama", 2, "", 8);
  server.Edit(kube::kNodes, {"", "node-03"}, [](Json& node) { node["spec"]["unschedulable"] = true; });
  const Json totals = RunJson()["totals"];
  EXPECT_EQ(totals["gpus"], 32);
  EXPECT_EQ(totals["gpusBound"], 12);
  EXPECT_EQ(totals["gpusFree"], 8 + 3);
  EXPECT_EQ(totals["gpusOutOfUse"], 8 + 1);
  EXPECT_EQ(totals["nodesOutOfUse"], 1);
}

TEST_F(StatusTest, CountsTheGpusOfASidecarBesideThoseOfTheOthers) {
  AddHealthy();
  AddPod("llama", 0, "node-01", 4);
  server.Edit(kube::kPods, {"train", "llama-0"}, [](Json& pod) {
    pod["spec"]["initContainers"] = Json::parse(
        R"([{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
            {"resources": {"limits": {"nvidia.com/gpu": "2"}}}])");
  });
  EXPECT_EQ(RunJson()["totals"]["gpusBound"], 5);
}

TEST_F(StatusTest, SeesWhatADevicePluginOffersInAClusterAndInAFile) {
  AddHealthy();
  server.Edit(kube::kNodes, {"", "node-03"}, [](Json& node) {
    node["status"]["allocatable"] = {{"cpu", "128"}, {"nvidia.com/gpu", "0"}};
  });
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("node node-03"), HasSubstr("0 GPUs allocatable, and its agent finds 8"),
                    HasSubstr("16 nodes (1 out of use), 128 GPUs: 0 bound, 120 free, 8 out of use")));
  const Output file = Show(Saved({ResourceOf(keys::kNodeTopology), kube::kNodes}));
  EXPECT_THAT(Whats(Json::parse(file.out, nullptr, false)), Contains("GPU count mismatch"));
}

// "No GPUs" would be a lie that nobody looks after.
TEST_F(StatusTest, NamesANodeOfWhichNobodyKnowsTheGpus) {
  AddHealthy();
  Say(ResourceOf(keys::kNodeTopology), "node-03",
      ConditionOf("Ready", "Unknown", "BusUnreadable", "whether there are GPUs here is not known: …",
                  hours(1)));
  const Json report = RunJson();
  EXPECT_THAT(Whats(report), ElementsAre("GPUs not known"));
  EXPECT_EQ(report["items"][0]["severity"], "problem");
  EXPECT_EQ(report["items"][0]["names"], Json::array({"node-03"}));
}

TEST_F(StatusTest, SaysOfSomeReasonsWhatElseThereIsToDo) {
  AddHealthy();
  SayOfNode("node-03", "NvlinksUp", "LinkSlow", "GPU 3: link 4 trained to 100 Gb/s, others to 200");
  SayOfNode("node-04", "LeavesKnown", "NoPlaceLabel", "4 of 4 compute ports: no place label on the Node");
  const Json report = RunJson();
  EXPECT_THAT(Whats(report), ElementsAre("NVLinks slower than the others", "leaves not known"));
  EXPECT_THAT(report["items"][1]["do"].get<std::string>(), HasSubstr("a file of labels"));
}

TEST_F(StatusTest, GivesThePassingTimeBeforeItCallsThemWrong) {
  AddHealthy();
  Put(GangOf("fresh", minutes(9)), {{crds::kPlanned, false}}, minutes(9), "NotEnoughFree", "1 host needed");
  Put(GangOf("new", seconds(20)), {{crds::kPlanned, false}}, seconds(20), "UnequalPods",
      "the pods of one gang must be alike");
  AddPolicy(keys::kLosslessPolicy, "roce", "Applying", "8 ports are to be set", minutes(9));
  EXPECT_EQ(Run().exit_code, Output::kOk) << Run().out;
  clock.Advance(minutes(2));
  for (int node = 0; node < 16; ++node)
    Beat(node < 10 ? "node-0" + std::to_string(node) : "node-" + std::to_string(node), seconds(1));
  const Json report = RunJson();
  EXPECT_THAT(Whats(report),
              ElementsAre("refused: UnequalPods", "needs room: NotEnoughFree", "being applied"));
  EXPECT_EQ(report["items"][2]["severity"], "warning");
}

TEST_F(StatusTest, NodesThatTheOperatorMayNotTellAreAProblemAtOnce) {
  AddHealthy();
  AddPolicy(keys::kLosslessPolicy, "roce", "NotTold", "3 nodes are not told what it says", minutes(1));
  const Json report = RunJson();
  ASSERT_THAT(Whats(report), ElementsAre("nodes may not be told"));
  EXPECT_EQ(report["items"][0]["severity"], "problem");
  EXPECT_THAT(report["items"][0]["do"].get<std::string>(), HasSubstr("heddle doctor"));
}

TEST_F(StatusTest, NamesGangsThatHoldOtherDevicesThanPlannedBelowWhatStopsOne) {
  AddHealthy();
  const std::string message =
      "pod team/mixed-1 (rank 1) holds GPU 4,5 of node-01 where its plan says GPU 0,1; so do 6 more. They "
      "run, and "
      "may cross rails: mode Pairs with followPlans gives pods what they were planned";
  Put(HoldingOthers(Placed(GangOf("mixed")), message), {{crds::kRunning, true}}, hours(4));
  Put(HoldingOthers(Placed(GangOf("other")), "pod team/other-0 …", hours(1)), {{crds::kRunning, true}},
      hours(4));
  Put(HoldingOthers(Placed(GangOf("stopped")), "pod team/stopped-0 …", hours(1)), {{crds::kDegraded, true}},
      minutes(20), "Requirement", "1 rank lost its slot");
  AddPolicy(keys::kRdmaDevicePolicy, "rails", "Waiting", "1 of 16 nodes", minutes(2));
  const Json report = RunJson();
  ASSERT_THAT(Whats(report),
              ElementsAre("degraded: Requirement", "has other devices than planned", "waits for nodes"));
  const Json& devices = report["items"][1];
  EXPECT_EQ(devices["severity"], "warning");
  EXPECT_EQ(devices["kind"], "Gang");
  EXPECT_EQ(devices["reason"], "DevicesAsPlanned/Differs");
  EXPECT_EQ(devices["names"], Json::array({"team/mixed", "team/other", "team/stopped"}));
  EXPECT_EQ(devices["since"], base::FormatTime(clock.WallNow() - hours(2)));
  EXPECT_EQ(devices["message"], message);
  EXPECT_THAT(devices["do"].get<std::string>(),
              AllOf(HasSubstr("followPlans"), HasSubstr("docs/devices.md")));
  const std::string text = Run().out;
  EXPECT_THAT(
      text, HasSubstr("team/mixed says: pod team/mixed-1 (rank 1) holds GPU 4,5 of node-01 where its plan "));
  EXPECT_THAT(text, Not(HasSubstr("what they were planned"))) << "a line has the beginning";
}

TEST_F(StatusTest, HoldsNoGangToDevicesThatItGivesBackOrNoLongerHas) {
  AddHealthy();
  Put(HoldingOthers(Placed(GangOf("ended")), "of before"), {{crds::kEnded, true}}, hours(1));
  Put(HoldingOthers(Placed(GangOf("yields")), "of before"), {{crds::kPreempted, true}}, hours(1));
  Put(HoldingOthers(GangOf("waits"), "of before"), {{crds::kPlanned, false}}, hours(1), "NotEnoughFree", "…");
  Put(Placed(GangOf("follows")), {{crds::kRunning, true}, {crds::kDevicesAsPlanned, true}}, hours(1));
  EXPECT_THAT(Whats(RunJson()),
              AllOf(Contains("needs room: NotEnoughFree"), Not(Contains("has other devices than planned"))));
}

TEST_F(StatusTest, CallsNothingWrongThatModeObserveCannotPrice) {
  AddHealthy();
  crds::Gang observed = GangOf("typo");
  observed.status.observed = crds::Observed{.at = *observed.created_at};
  Put(observed, {{crds::kCollected, true}, {crds::kPlanned, false}, {crds::kRunning, true}}, hours(4),
      "WorldMismatch", "2 pods of 8 GPUs have 16, and heddle.dev/parallelism makes 24");
  crds::Gang pending = GangOf("pending");
  pending.status.observed = observed.status.observed;
  Put(pending, {}, hours(4));
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(output.out, HasSubstr("Nothing is wrong: 16 nodes"));
  const Json report = RunJson();
  ASSERT_THAT(Whats(report), ElementsAre("not priced: WorldMismatch")) << "one waits for its own scheduler";
  const Json& note = report["items"][0];
  EXPECT_EQ(note["severity"], "note");
  EXPECT_EQ(note["reason"], "WorldMismatch");
  EXPECT_EQ(note["names"], Json::array({"team/typo"}));
  EXPECT_EQ(note["since"], base::FormatTime(clock.WallNow() - hours(5)));
  EXPECT_THAT(note["message"].get<std::string>(), HasSubstr("makes 24"));
  EXPECT_EQ(report["totals"]["gangsWaiting"], 0);
}

TEST_F(StatusTest, LooksAtGangsOfOneNamespaceOnly) {
  BreakEverything();
  const Json report = RunJson({.ns = "elsewhere"});
  for (const Json& item : report["items"]) EXPECT_NE(item["kind"], "Gang");
  EXPECT_EQ(report["totals"]["gangsStandingStill"], 0);
  EXPECT_EQ(report["totals"]["nodes"], 16);
}

TEST_F(StatusTest, TellsByFabricsWhichAgentsAreSilentWhereLeasesCannotBeRead) {
  BreakEverything();
  server.FailNext({.method = "GET", .path_contains = "/leases", .status = 403});
  server.FailNext({.method = "GET", .path_contains = "/pods", .status = 403});
  const Output output = Run();
  EXPECT_THAT(output.out, AllOf(HasSubstr("agents silent"), Not(HasSubstr("agent silent "))));
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("Note: Which agents fell silent"), HasSubstr("Note: Who holds how many GPUs")));
  EXPECT_THAT(output.out, AllOf(Not(HasSubstr("bound, ")), HasSubstr("16 nodes (2 out of use), 128 GPUs")));
}

const std::vector<kube::Resource> kOfHeddle{ResourceOf(keys::kNodeTopology), ResourceOf(keys::kFabric),
                                            ResourceOf(keys::kGang, true)};

// Leases aside, which say who is silent on the day on which they are read.
TEST_F(StatusTest, SaysTheSameOfAFileAsOfTheClusterThatItWasReadFrom) {
  BreakEverything();
  AddPod("llama", 0, "node-01", 4);
  std::vector<kube::Resource> kinds = kOfHeddle;
  for (const keys::Kind kind : {keys::kLosslessPolicy, keys::kRdmaDevicePolicy, keys::kFabricSwitch})
    kinds.push_back(ResourceOf(kind));
  kinds.insert(kinds.end(), {kube::kNodes, kube::kPods});
  server.FailNext({.method = "GET", .path_contains = "/leases", .status = 403});
  const Json live = RunJson();
  const std::string saved = Saved(kinds);
  for (const std::string& text : {saved, crds::ToYaml(Json::parse(saved))}) {
    const Output output = Show(text);
    EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
    const Json file = Json::parse(output.out, nullptr, false);
    EXPECT_EQ(file["items"], live["items"]);
    EXPECT_EQ(file["totals"], live["totals"]);
    ASSERT_EQ(file["notRead"].size(), 1U);
    EXPECT_THAT(file["notRead"][0].get<std::string>(),
                HasSubstr("nothing is said of what is not in them (Leases, FabricSwitches)"));
  }
}

TEST_F(StatusTest, LeavesOutWhatAFileDoesNotHold) {
  BreakEverything();
  const Json report = Json::parse(Show(Saved(kOfHeddle)).out, nullptr, false);
  EXPECT_THAT(Whats(report),
              AllOf(Contains("degraded: Requirement"), Contains("rail 3 down"), Contains("cabled wrongly"),
                    Contains("agents silent"), Not(Contains("not ready")), Not(Contains("rollout stopped"))));
  EXPECT_EQ(report["totals"]["gangsStandingStill"], 2);
  EXPECT_EQ(report["totals"]["gpusBound"], nullptr);
  const Json elsewhere = Json::parse(Show(Saved(kOfHeddle), {.ns = "elsewhere"}).out, nullptr, false);
  for (const Json& item : elsewhere["items"]) EXPECT_NE(item["kind"], "Gang");
  EXPECT_THAT(elsewhere["notRead"][0].get<std::string>(), Not(HasSubstr("Gangs")));
}

TEST_F(StatusTest, SaysWhatIsLeftOutWhereNothingElseIsWrong) {
  AddHealthy();
  server.FailNext({.method = "GET", .path_contains = "/nodes", .status = 403});
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_THAT(output.out, HasSubstr("as far as can be seen"));
  EXPECT_THAT(output.err, HasSubstr("Which nodes are ready is left out"));
}

TEST_F(StatusTest, FailsWhereNobodyCanBeAsked) {
  server.FailNext({.method = "GET", .path_contains = "nodetopologies", .status = 404});
  Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("Is Heddle installed here?"));
  server.FailNext({.method = "GET", .path_contains = "nodetopologies", .status = 403});
  server.FailNext({.method = "GET", .path_contains = "gangs", .status = 403});
  output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("Ask for the right"));
}

TEST_F(StatusTest, AnEngineerWhoMaySeeGangsOnlySeesThose) {
  BreakEverything();
  for (const char* kind :
       {"nodetopologies", "fabrics", "losslesspolicies", "rdmadevicepolicies", "/nodes", "/pods", "/leases"})
    server.FailNext({.method = "GET", .path_contains = kind, .status = 403});
  const Json report = RunJson({.ns = "team"});
  EXPECT_EQ(report["items"][0]["what"], "degraded: Requirement");
  EXPECT_EQ(report["notRead"].size(), 7U);
}

// What a hand-written object, a broken controller or another version may hold.
TEST(StatusReport, SurvivesWhateverStandsInObjects) {
  const std::vector<Json> odd{
      Json(),
      Json(7),
      Json("text"),
      Json::array({1, 2}),
      Json::object(),
      Json::parse(R"({"metadata": 3, "status": [], "spec": "x"})"),
      Json::parse(
          R"({"metadata": {"name": 5, "creationTimestamp": {}}, "status": {"conditions": {}, "gpus": 8}})"),
      Json::parse(
          R"({"metadata": {"name": "a"}, "status": {"observedAt": "x", "conditions": [null, 3, {"type": 1, "status": "False"},
        {"type": "RailHealthy", "status": "False"}, {"type": "Ready", "status": "False", "reason": [], "lastTransitionTime": "tomorrow"},
        {"type": "Cabled", "status": "False"}, {"type": "Stale", "status": "True"}], "gpus": [1, null, {"health": 1}], "faults": [null, 4, {"certainty": true}]}})"),
      Json::parse(
          R"({"metadata": {"name": "heddle-node-a"}, "spec": {"nodeName": 3, "renewTime": 12, "leaseDurationSeconds": -9223372036854775808, "taints": [3],
        "unschedulable": "yes", "containers": [null, {"resources": {"limits": {"nvidia.com/gpu": []}}}]}})"),
      Json::parse(
          R"({"metadata": {"name": "heddle-node-a"}, "spec": {"renewTime": "9999-12-31T23:59:59.000000Z", "leaseDurationSeconds": 9223372036854775807}})"),
  };
  StatusReading reading;
  for (Objects* kind : {&*(reading.topologies = odd), &*(reading.fabrics = odd), &*(reading.gangs = odd),
                        &*(reading.lossless = odd), &*(reading.devices = odd), &*(reading.nodes = odd),
                        &*(reading.pods = odd), &*(reading.leases = odd)})
    EXPECT_EQ(kind->size(), odd.size());
  const StatusReport report = ReportStatus(reading);
  EXPECT_TRUE(report.wrong());
  EXPECT_THAT(report.notes, Not(IsEmpty()));
  EXPECT_THAT(StatusText(report, {}, reading.now, {.width = 80}), HasSubstr("not Cabled"));
  EXPECT_EQ(StatusJson(report, {.all = true})["items"].size(), report.troubles.size());
}

TEST(StatusOfSuspects, NamesBothEndsWhoCrossesThemAndWhatToDo) {
  StatusReading reading;
  reading.fabrics = Objects{Json::parse(R"({"metadata": {"name": "roce"}, "status": {"suspects": [
      {"kind": "Cable", "name": "leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1", "symptom": "Flap", "gangs": 3,
       "evidence": "41 flaps in 10 min", "next": "drain or reseat it"},
      {"kind": "Cable", "name": "leaf su1-r4 port Ethernet8 <-> gpu-018 mlx5_4:1", "symptom": "Errors",
       "evidence": "700 errors in 1 min", "next": "clean it"}],
      "conditions": [{"type": "Lossless", "status": "False", "reason": "Contradiction", "message": "2 of 8 cables"}]}})")};
  const StatusReport report = ReportStatus(reading);
  ASSERT_EQ(report.troubles.size(), 3u);
  EXPECT_EQ(report.troubles[0].gravity, Gravity::kProblem);
  EXPECT_EQ(report.troubles[0].what, "flaps");
  EXPECT_EQ(report.troubles[0].message, "41 flaps in 10 min, 3 gangs cross it");
  EXPECT_EQ(report.troubles[0].remedy, "drain or reseat it");
  EXPECT_EQ(report.troubles[1].gravity, Gravity::kWarning);  // nobody crosses it
  EXPECT_EQ(report.troubles[2].what, "cables are not lossless");
  EXPECT_THAT(StatusText(report, {}, reading.now, {.width = 200}),
              HasSubstr("leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1"));
}

TEST(StatusOfSwitches, NamesThoseThatDoNotAnswerAndThoseThatAreSomebodyElse) {
  StatusReading reading;
  reading.switches = Objects{Json::parse(R"({"metadata": {"name": "leaf-3"}, "status": {"conditions": [
          {"type": "Reachable", "status": "False", "reason": "PasswordRefused", "message": "leaf-3:8080: refused"},
          {"type": "Compared", "status": "False", "reason": "NotRead"}]}})"),
                             Json::parse(R"({"metadata": {"name": "leaf-4"}, "status": {"conditions": [
          {"type": "Reachable", "status": "True"}, {"type": "Compared", "status": "False", "reason": "NameInDoubt"},
          {"type": "Rendered", "status": "False", "reason": "NameInDoubt"}]}})"),
                             Json::parse(R"({"metadata": {"name": "spine-0"}, "status": {"conditions": [
          {"type": "Reachable", "status": "True"}, {"type": "Compared", "status": "False", "reason": "NoCables"}]}})"),
                             Json::parse(R"({"metadata": {"name": "leaf-5"}, "status": {"conditions": [
          {"type": "Reachable", "status": "True"}, {"type": "Compared", "status": "True", "reason": "Compared"},
          {"type": "Counted", "status": "False", "reason": "NotAllowed", "message": "counters of queues: no"}]}})"),
                             Json::parse(R"({"metadata": {"name": "leaf-6"}, "status": {"conditions": [
          {"type": "MarksEcn", "status": "False", "reason": "Off", "message": "3 of 64 ports with a cable; Ethernet0: …"}]}})"),
                             Json::parse(R"({"metadata": {"name": "leaf-7"}, "status": {"conditions": [
          {"type": "Rendered", "status": "False", "reason": "Forbidden", "message": "the operator may not"}]}})"),
                             Json::parse(R"({"metadata": {"name": "leaf-8"}, "status": {"conditions": [
          {"type": "Reachable", "status": "False", "reason": "NotUnderstood", "message": "FabricSwitch leaf-8: spec.role: …"},
          {"type": "Compared", "status": "False", "reason": "NotRead"}]}})"),
                             Json::parse(R"({"metadata": {"name": "leaf-9"}, "status": {"conditions": [
          {"type": "Compared", "status": "False", "reason": "NotTold", "message": "1 nodes are not told …"}]}})"),
                             Json::parse(R"({"metadata": {"name": "odd"}, "status": {"conditions": 4}})")};
  const StatusReport report = ReportStatus(reading);
  std::vector<std::string> what;
  for (const Trouble& one : report.troubles) what.push_back(one.names.at(0) + " " + one.what);
  EXPECT_THAT(what,
              testing::UnorderedElementsAre(
                  "leaf-3 does not answer", "leaf-4 is not who it should be",
                  "leaf-5 is not counted, so that no fault of its links is seen from there",
                  "leaf-6 does not slow senders down in good time",
                  "leaf-7 has no ConfigMap of what it should have", "leaf-8 is not understood, and not asked",
                  "leaf-9 has nodes that may not be told of their cables"));
  const auto rendered = std::find_if(report.troubles.begin(), report.troubles.end(),
                                     [](const Trouble& one) { return one.reason == "Rendered/Forbidden"; });
  ASSERT_TRUE(rendered != report.troubles.end());
  EXPECT_THAT(rendered->remedy, HasSubstr("operator.switches.render"));
}

// The words in the first column of a table's rows.
std::vector<std::string> FirstWords(const std::string& table, const std::string& row) {
  std::vector<std::string> words;
  const std::regex first(row);
  for (auto it = std::sregex_iterator(table.begin(), table.end(), first); it != std::sregex_iterator(); ++it)
    words.push_back((*it)[1]);
  return words;
}

// Why a policy is not in force is told in words of its own, for each reason that the docs explain.
TEST(StatusOfPolicies, HasWordsForEachReasonInTheDocs) {
  const std::string root = HEDDLE_SOURCE_DIR;
  const auto lossless = FromDisk(root + "/docs/lossless.md"),
             conditions = FromDisk(root + "/docs/conditions.md");
  ASSERT_TRUE(lossless && conditions);
  const std::size_t table = lossless->find("| reason of `Ready` |");
  const std::size_t section = conditions->find("\n## RdmaDevicePolicy\n");
  ASSERT_NE(table, std::string::npos);
  ASSERT_NE(section, std::string::npos);
  std::vector<std::string> reasons =
      FirstWords(lossless->substr(table, lossless->find("\n\n", table) - table), "\n\\| `(\\w+)`");
  const std::size_t of_lossless = reasons.size();
  EXPECT_EQ(std::erase(reasons, "Compliant"), 1u);
  for (const std::string& reason :
       FirstWords(conditions->substr(section, conditions->find("\n## ", section + 1) - section),
                  "\n\\| False `(\\w+)`"))
    reasons.push_back(reason);
  EXPECT_GT(of_lossless, 5u);
  EXPECT_GT(reasons.size(), of_lossless + 3);
  for (const std::string& reason : reasons) {
    Json policy{{"metadata", {{"name", "one"}}}};
    policy["status"]["conditions"] =
        Json::array({{{"type", "Ready"}, {"status", "False"}, {"reason", reason}}});
    const auto troubles = PolicyTroubles(Objects{policy}, "LosslessPolicy", base::WallTime{});
    ASSERT_EQ(troubles.size(), 1u) << reason;
    EXPECT_EQ(troubles[0].what.find("not ready"), std::string::npos) << reason;
  }
}

}  // namespace
}  // namespace heddle::cli
