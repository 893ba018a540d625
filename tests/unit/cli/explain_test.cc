#include "cli/explain.h"

#include <gmock/gmock.h>

#include "cli/explain_target.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kCluster = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";

class ExplainTest : public Stage {
 protected:
  // Eight pods of four GPUs; `first` and `second` name the nodes of an even and the odd pod behind it.
  void AddPods(bool side_by_side, bool say_gpus) {
    for (int i = 0; i < 8; ++i) {
      const int node = side_by_side ? i / 2 : i;
      const std::string gpus = !say_gpus ? "" : i % 2 == 0 || !side_by_side ? "0,1,2,3" : "4,5,6,7";
      AddPod("llama", i, "node-0" + std::to_string(node), 4, gpus);
    }
  }
  Json ExplainAsJson(ParallelismFlags flags = {}) {
    const Output output = ExplainJob("job/llama", Format::kJson, std::move(flags));
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return Json::parse(output.out, nullptr, false);
  }
  void SetUp() override { AddCluster(kCluster); }
};

TEST_F(ExplainTest, CountsWhatAGoodPlacementKeepsTogether) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, true);
  const Json json = ExplainAsJson();
  EXPECT_EQ(json["tpGroups"], 4);
  EXPECT_EQ(json["tpGroupsInDomain"], 4);
  EXPECT_EQ(json["leafCrossings"]["dp"], 0);
  EXPECT_EQ(json["leafCrossings"]["pp"], 0);
  EXPECT_EQ(json["railMisaligned"], 0);
  EXPECT_EQ(json["assumedGpus"], false);
  EXPECT_GT(json["stepMicros"], 0);
  EXPECT_GT(json["axisMicros"]["tp"], 0);
  ASSERT_EQ(json["pods"].size(), 8U);
  EXPECT_EQ(json["pods"][1],
            Json::parse(R"({"name":"llama-1","index":1,"node":"node-00","gpus":[4,5,6,7]})"));
}

TEST_F(ExplainTest, SaysWhichPodsWereGivenOtherGpusThanPlanned) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, true);
  EXPECT_THAT(ExplainJob("job/llama").out, testing::Not(HasSubstr("than planned")));
  server.Edit(ResourceOf(keys::kNodeTopology), {"", "node-01"}, [](Json& object) {
    crds::NodeTopology topology = *crds::NodeTopologyFromJson(object);
    for (const int pod : {2, 3}) {
      crds::Grant grant;
      grant.pod_namespace = "train";
      grant.pod_name = "llama-" + std::to_string(pod);
      const int first = pod == 2 ? 4 : 0;  // the two are exchanged
      for (int index = first; index < first + 4; ++index) grant.gpus.push_back({index, ""});
      topology.status.grants.push_back(grant);
    }
    object["status"] = crds::ToJson(topology)["status"];
  });
  const std::string text = ExplainJob("job/llama").out;
  EXPECT_THAT(text,
              HasSubstr("2 of 8 pods got other GPUs than planned: llama-2 holds 4,5,6,7 where its plan says "
                        "0,1,2,3"));
}

TEST_F(ExplainTest, CountsWhatABadPlacementTearsApart) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(false, true);
  const Json json = ExplainAsJson();
  EXPECT_EQ(json["tpGroupsInDomain"], 0);
  EXPECT_GT(json["stepMicros"], 0);
}

TEST_F(ExplainTest, AssumesTheLowestFreeGpusWhereNobodySaysAndSaysSo) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, false);
  const Json json = ExplainAsJson();
  EXPECT_EQ(json["assumedGpus"], true);
  EXPECT_EQ(json["tpGroupsInDomain"], 4);
  EXPECT_EQ(json["pods"][1]["gpus"], Json({4, 5, 6, 7}));
  EXPECT_THAT(ExplainJob("job/llama").out, HasSubstr("assumed"));
}

TEST_F(ExplainTest, TakesTheParallelismOfAJobThatHasNoneFromTheFlag) {
  AddJob("llama", 8, "");
  AddPods(true, false);
  const Output bare = ExplainJob("job/llama");
  EXPECT_EQ(bare.exit_code, Output::kUsage);
  EXPECT_THAT(bare.err, HasSubstr("--parallelism"));
  EXPECT_EQ(ExplainAsJson({.parallelism = "tp=8,pp=2,dp=2"})["tpGroups"], 4);
}

TEST_F(ExplainTest, PrintsATableForPeople) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, true);
  ExpectGolden("explain.txt", WithoutTimes(ExplainJob("job/llama").out));
  ExpectFits([this](const Style& style) {
    return RunExplain(client, clock, {.target = "job/llama", .ns = "train"}, {.style = style}, {}).out;
  });
}

TEST_F(ExplainTest, SaysWhichPodsAreNotBoundAndFails) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPod("llama", 0, "node-00", 4);
  AddPod("llama", 3, "", 4);
  const Output output = ExplainJob("job/llama");
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("7 of 8 pods are not bound"));
  EXPECT_EQ(Json::parse(ExplainJob("job/llama", Format::kJson).out)["podsWanted"], 8);
}

TEST_F(ExplainTest, ShowsTheGangThatWasRefusedWithItsReason) {
  const Json job = AddJob("llama", 8, "tp=8,pp=2,dp=2");
  crds::Gang gang;
  gang.name = "llama-1";
  gang.ns = "train";
  gang.spec.owner = {.api_version = "batch/v1", .kind = "Job", .name = "llama", .uid = kube::Uid(job)};
  gang.spec.pods = 8;
  gang.spec.gpus_per_pod = 4;
  gang.spec.gpu_resource = "nvidia.com/gpu";
  gang.status.reason = "NotEnoughFree";
  gang.status.message = "16 hosts needed in one scalable unit, best has 12 (su-3)";
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
  const Output output = ExplainJob("job/llama");
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("16 hosts needed in one scalable unit"));
  EXPECT_EQ(Json::parse(ExplainJob("job/llama", Format::kJson).out)["gang"]["reason"], "NotEnoughFree");
}

TEST_F(ExplainTest, SaysWhyModeObserveDoesNotPriceAGangThatWaitsForNobody) {
  const Json job = AddJob("llama", 2, "tp=8,dp=3");
  AddPod("llama", 0, "node-00", 8);
  AddPod("llama", 1, "node-01", 8);
  crds::Gang gang;
  gang.name = "llama-1";
  gang.ns = "train";
  gang.spec.owner = {.api_version = "batch/v1", .kind = "Job", .name = "llama", .uid = kube::Uid(job)};
  gang.spec.pods = 2;
  gang.spec.gpus_per_pod = 8;
  gang.spec.gpu_resource = "nvidia.com/gpu";
  gang.status.observed = crds::Observed{.at = base::WallTime(std::chrono::seconds(1'800'000'000))};
  gang.status.reason = "WorldMismatch";
  gang.status.message = "2 pods of 8 GPUs have 16, and heddle.dev/parallelism makes 24";
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
  const Json json = Json::parse(ExplainJob("job/llama", Format::kJson).out);
  EXPECT_FALSE(json.contains("waiting"));
  ASSERT_TRUE(json.contains("notes"));
  EXPECT_THAT(json["notes"].dump(), HasSubstr("Mode observe has no price for it, which holds nothing up: "
                                              "2 pods of 8 GPUs have 16"));
}

TEST(ExplainTargetTest, IsInTheClusterAndNoFile) {
  for (const char* file : {"llama.yaml", "job/llama.yml", "./jobs/llama.json"}) {
    const auto target = ParseExplainTarget(file);
    ASSERT_FALSE(target) << file;
    EXPECT_EQ(target.error().code, base::Code::kInvalid);
    EXPECT_THAT(target.error().message,
                HasSubstr(std::string("`kubectl heddle check --where ") + file + "`"));
  }
  for (const char* text : {"", "job/", "job/.", "job/..", "job/a/b", "cronjob/llama"})
    EXPECT_FALSE(ParseExplainTarget(text)) << text;
  EXPECT_EQ(ParseExplainTarget("llama")->kind->kind, "Job");
}

TEST(ExplainTargetTest, AWrongWordIsAnsweredWithEveryKindAndAMissingNameWithItsOwn) {
  const std::string wrong = ParseExplainTarget("cronjob/llama").error().message;
  for (const ExplainKind& kind : ExplainKinds())
    EXPECT_THAT(wrong, testing::ContainsRegex("[ ]" + kind.words.front() + "[, ]")) << kind.kind;
  EXPECT_EQ(ParseExplainTarget("job/").error().message,
            "\"job/\" lacks the name: write job/NAME, as job/llama");
  EXPECT_EQ(ParseExplainTarget("lws/a/b").error().message,
            "\"lws/a/b\" is no name: write lws/NAME, as lws/llama");
  EXPECT_THAT(ParseExplainTarget("gangs/").error().message, HasSubstr("write gang/NAME"));
}

const std::vector<kube::Resource> kOfHeddle{ResourceOf(keys::kNodeTopology), ResourceOf(keys::kFabric),
                                            ResourceOf(keys::kGang, true)};

// Gangs on the eight nodes of the stage, as the extender would have written them.
class ExplainGangTest : public ExplainTest {
 protected:
  crds::Gang NewGang(const std::string& name, const std::string& kind, int pods, int priority = 0) {
    crds::Gang gang;
    gang.name = name + "-1";
    gang.ns = "train";
    gang.uid = name + "-gang-uid";
    gang.created_at = clock.WallNow();
    gang.spec.owner = {.api_version = "v1", .kind = kind, .name = name, .uid = name + "-uid"};
    gang.spec.pods = pods;
    gang.spec.gpus_per_pod = 8;
    gang.spec.gpu_resource = "nvidia.com/gpu";
    gang.spec.priority = priority;
    gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = pods};
    return gang;
  }
  void Say(crds::Gang& gang, std::string_view type, bool on, const std::string& message = "said") {
    crds::SetCondition(gang.status.conditions,
                       {.type = std::string(type),
                        .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse,
                        .reason = "Word",
                        .message = message,
                        .last_transition = std::chrono::floor<std::chrono::seconds>(clock.WallNow())});
  }
  void Put(const crds::Gang& gang) { server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang)); }
  // Runs on whole nodes from `first` on.
  crds::Gang PutRunning(const std::string& name, const std::string& kind, int first, int pods,
                        int priority = 0) {
    crds::Gang gang = NewGang(name, kind, pods, priority);
    std::vector<crds::PlacedPod> rows;
    for (int i = 0; i < pods; ++i) rows.push_back({"node-0" + std::to_string(first + i), 0xFF, {}});
    gang.status.placement = crds::ToColumns(rows, 1);
    gang.status.planned_at = std::chrono::floor<std::chrono::seconds>(clock.WallNow());
    gang.status.progress = {pods, pods, pods};
    gang.status.explanation = {"whole in su-0"};
    for (const auto type : {crds::kCollected, crds::kPlanned, crds::kReleased, crds::kRunning})
      Say(gang, type, true);
    Put(gang);
    for (int i = 0; i < pods; ++i) {
      Json pod = kube::NewObject(kube::kPods, {"train", name + "-" + std::to_string(i)});
      pod["metadata"]["annotations"] = {
          {keys::kGangUid, gang.uid}, {keys::kRank, std::to_string(i)}, {keys::kGpus, "0,1,2,3,4,5,6,7"}};
      pod["spec"]["nodeName"] = rows[std::size_t(i)].node;
      pod["spec"]["containers"] =
          Json::array({{{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", "8"}}}}}}});
      pod["status"]["phase"] = "Running";
      server.Put(kube::kPods, pod);
    }
    return gang;
  }
  // "llama" wants room: its rank 2 was done when it was planned and has no slot, and neither rank 2 nor 3 has a pod.
  // node-03 is away, and a gang that goes before has the other unit.
  void PutWithoutASlotForRank2(const std::string& message,
                               std::optional<crds::GangProgress> progress = std::nullopt) {
    PutNodes("node-03");
    PutRunning("important", "Job", 4, 4, 100);
    crds::Gang gang = PutRunning("llama", "Job", 0, 4);
    auto rows = crds::ToRows(*gang.status.placement);
    rows[2] = {};
    gang.status.placement = crds::ToColumns(rows, 2);
    if (progress) gang.status.progress = *progress;
    gang.status.reason = "NotEnoughFree";
    gang.status.message = message;
    Say(gang, crds::kDegraded, true, message);
    Say(gang, crds::kRunning, false);
    Put(gang);
    for (const char* pod : {"llama-2", "llama-3"}) server.Remove(kube::kPods, {"train", pod});
  }
  crds::Gang PutRefused(const std::string& name, int pods, const std::string& require, int priority = 0) {
    crds::Gang gang = NewGang(name, "JobSet", pods, priority);
    if (!require.empty()) gang.spec.require = {{placement::Axis::kDp, placement::Level::kLeaf}};
    gang.status.progress = {pods, 0, 0};
    gang.status.reason = "NotEnoughFree";
    gang.status.message = "4 nodes needed in one scalable unit, best has 3 (su-1)";
    Say(gang, crds::kCollected, true);
    Say(gang, crds::kPlanned, false, gang.status.message);
    Put(gang);
    return gang;
  }
  void PutNodes(const std::string& not_ready = "") {
    for (int i = 0; i < 8; ++i) {
      const std::string name = "node-0" + std::to_string(i);
      Json node = kube::NewObject(kube::kNodes, {"", name});
      node["status"]["conditions"] =
          Json::array({{{"type", "Ready"}, {"status", name == not_ready ? "Unknown" : "True"}}});
      server.Put(kube::kNodes, node);
    }
  }
  // Of what the cluster has of these kinds, in a file.
  Output OfFile(const std::string& target, const std::vector<kube::Resource>& kinds,
                const std::string& ns = "train") {
    Json items = Json::array();
    for (const kube::Resource& kind : kinds) {
      for (const Json& object : server.All(kind)) items.push_back(object);
    }
    Files files;
    files.texts["now.json"] = ListOf(std::move(items));
    return ShowExplain({.target = target, .ns = ns, .topology = {"now.json"}}, files.read,
                       {.format = Format::kJson});
  }
  Json Remedies(const std::string& target) {
    return Json::parse(ExplainJob(target, Format::kJson).out, nullptr, false)["wouldHelp"];
  }
};

TEST_F(ExplainGangTest, PricesAGangByItsOwnNameWhateverMadeIt) {
  PutRunning("llama", "RayCluster", 0, 4);
  const Output output = ExplainJob("gang/llama-1", Format::kJson);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  const Json json = Json::parse(output.out, nullptr, false);
  EXPECT_EQ(json["kind"], "Gang");
  EXPECT_EQ(json["tpGroupsInDomain"], 4);
  EXPECT_EQ(json["leafCrossings"]["dp"], 0);
  EXPECT_FALSE(json.contains("waiting")) << "it runs";
  EXPECT_THAT(ExplainJob("gang/llama-1").out, HasSubstr("whole in su-0"));
}

TEST_F(ExplainGangTest, SaysOfAGangInAFileWhatItSaysOfItInTheCluster) {
  PutRunning("llama", "RayCluster", 0, 4);
  const Json live = Json::parse(ExplainJob("gang/llama-1", Format::kJson).out, nullptr, false);
  for (const char* target : {"gang/llama-1", "raycluster/llama"}) {
    const Output output = OfFile(target, kOfHeddle, "");
    EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
    const Json file = Json::parse(output.out, nullptr, false);
    for (const char* key : {"kind", "name", "stepMicros", "tpGroups", "tpGroupsInDomain", "leafCrossings",
                            "fabric", "podsWanted", "parallelism", "gang", "assumedGpus"})
      EXPECT_EQ(file[key], live[key]) << key;
    EXPECT_EQ(file["pods"][3],
              Json::parse(R"({"name":"rank-3","index":3,"node":"node-03","gpus":[0,1,2,3,4,5,6,7]})"));
    EXPECT_THAT(file["notes"][0].get<std::string>(), HasSubstr("its places are those of its plan"));
  }
  std::vector<kube::Resource> kinds = kOfHeddle;
  kinds.push_back(kube::kPods);
  const Json with_pods = Json::parse(OfFile("gang/llama-1", kinds).out, nullptr, false);
  EXPECT_EQ(with_pods["pods"], live["pods"]);
  EXPECT_THAT(with_pods["notes"][0].get<std::string>(), testing::Not(HasSubstr("plan")));
}

TEST_F(ExplainGangTest, TriesOnTheNodesOfAFileWhatWouldHelpAGangInIt) {
  PutRunning("first", "Job", 0, 2);
  PutRefused("stuck", 3, "dp=leaf");
  const Output output = OfFile("gang/stuck-1", kOfHeddle);
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  const Json json = Json::parse(output.out, nullptr, false);
  EXPECT_EQ(json["wouldHelp"][0]["kind"], "RoomNow");
  EXPECT_EQ(json["whyNot"], "It has no places yet, so there is nothing to price");
  EXPECT_THAT(json["notes"][0].get<std::string>(), HasSubstr("each node counts as Ready"));
}

// Which ranks still have pods is not in its plan.
TEST_F(ExplainGangTest, MakesUpNoPodsOfAGangThatLostPlaces) {
  PutWithoutASlotForRank2("1 rank lost its slot");
  const Json json = Json::parse(OfFile("gang/llama-1", kOfHeddle).out, nullptr, false);
  EXPECT_THAT(json["whyNot"].get<std::string>(), HasSubstr("the files hold no pods that say which"));
  EXPECT_FALSE(json.contains("wouldHelp"));
  EXPECT_EQ(json["pods"], Json::array());
}

TEST_F(ExplainGangTest, SaysWhatFilesHoldInPlaceOfAGangThatTheyDoNot) {
  PutRunning("llama", "RayCluster", 0, 4);
  for (const char* target : {"job/other", "gang/llama", "pods/llama"}) {
    const Output output = OfFile(target, kOfHeddle);
    EXPECT_EQ(output.exit_code, Output::kUsage) << target;
    EXPECT_EQ(output.out, "") << target;
    EXPECT_THAT(output.err, HasSubstr(std::string("the files hold no gang of ") + target +
                                      " in namespace train: they hold gang/llama-1; "));
    EXPECT_THAT(output.err, HasSubstr("leave out --topology to ask the cluster"));
  }
  EXPECT_THAT(OfFile("gang/llama-1", kOfHeddle, "elsewhere").err, HasSubstr("they hold none there"));
  crds::Gang twin = NewGang("llama", "RayCluster", 4);
  twin.ns = "dev";
  Put(twin);
  const Output two = OfFile("gang/llama-1", kOfHeddle, "");
  EXPECT_EQ(two.exit_code, Output::kUsage);
  EXPECT_THAT(two.err, HasSubstr("gang/llama-1 is there in dev and in train: say which by -n"));
  EXPECT_EQ(OfFile("gang/llama-1", kOfHeddle).exit_code, Output::kOk);
}

TEST_F(ExplainGangTest, FindsTheGangOfALabelledPodGroupAndOfALeaderWorkerSetsWorstGroup) {
  crds::Gang pods = PutRunning("loose", "Pod", 0, 2);
  pods.spec.group = "Pods/loose";
  Put(pods);
  EXPECT_EQ(ExplainJob("pods/loose").exit_code, 0) << ExplainJob("pods/loose").err;
  EXPECT_EQ(ExplainJob("pods/other").exit_code, Output::kFailed);
  EXPECT_THAT(ExplainJob("pods/other").err, HasSubstr("kubectl get gangs -n train"));
}

Json ControlledBy(Json object, const std::string& kind, const std::string& uid) {
  object["metadata"]["ownerReferences"] = Json::array(
      {{{"apiVersion", "v1"}, {"kind", kind}, {"name", "x"}, {"uid", uid}, {"controller", true}}});
  return object;
}

// While it is upgraded it has two.
TEST_F(ExplainGangTest, FollowsARayServiceToEachOfItsClusters) {
  const kube::Resource &services = ExplainKindOf("RayService")->resource,
                       &clusters = ExplainKindOf("RayCluster")->resource;
  server.Serve(services);
  server.Serve(clusters);
  const std::string uid = kube::Uid(server.Put(services, kube::NewObject(services, {"train", "chat"})));
  for (const char* name : {"chat-a", "chat-b"}) {
    Json made = ControlledBy(kube::NewObject(clusters, {"train", name}), "RayService", uid);
    crds::Gang gang = PutRunning(name, "RayCluster", name[5] == 'a' ? 0 : 4, 2);
    gang.spec.owner.uid = kube::Uid(server.Put(clusters, made));
    Put(gang);
  }
  const Output output = ExplainJob("rayservice/chat");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out + output.err, HasSubstr("RayService train/chat makes 2 gangs"));
}

TEST_F(ExplainGangTest, FindsAPodGroupOfAnEarlierVersion) {
  kube::Resource groups = ExplainKindOf("PodGroup")->resource;
  groups.version = "v1alpha2";
  server.Serve(groups);
  server.Put(groups, kube::NewObject(groups, {"train", "native"}));
  crds::Gang gang = PutRunning("native", "PodGroup", 0, 2);
  gang.spec.group = "PodGroup/native";
  Put(gang);
  EXPECT_EQ(ExplainJob("podgroup/native").exit_code, 0) << ExplainJob("podgroup/native").err;
  EXPECT_THAT(ExplainJob("podgroup/other").err, HasSubstr("there is native"));
}

// Who ran before it was scaled has its place from an earlier Gang.
TEST_F(ExplainGangTest, CountsThePodsThatAScaledOwnerHadBefore) {
  const kube::Resource& sets = ExplainKindOf("StatefulSet")->resource;
  server.Serve(sets);
  const std::string uid = kube::Uid(server.Put(sets, kube::NewObject(sets, {"train", "wide"})));
  crds::Gang gang = PutRunning("wide", "StatefulSet", 0, 2);
  gang.spec.owner.uid = uid;
  Put(gang);
  server.Edit(kube::kPods, {"train", "wide-0"}, [&](Json& pod) {
    pod = ControlledBy(pod, "StatefulSet", uid);
    pod["metadata"]["annotations"][std::string(keys::kGangUid)] = "an-earlier-one";
    pod["metadata"]["annotations"][std::string(keys::kNode)] = "node-00";
  });
  const Output output = ExplainJob("sts/wide", Format::kJson);
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(Json::parse(output.out, nullptr, false)["pods"].size(), 2U) << output.out;
}

TEST_F(ExplainGangTest, SaysWhyAGangWaitsBehindWhomAndWhatWouldHelp) {
  PutNodes("node-07");
  PutRunning("first", "Job", 0, 2);
  PutRunning("important", "Job", 4, 1, 100);
  PutRefused("ahead", 8, "", 50);
  PutRefused("stuck", 3, "dp=leaf");
  const Output output = ExplainJob("gang/stuck-1");
  EXPECT_EQ(output.exit_code, Output::kRefused);
  ExpectFits([this](const Style& style) {
    return RunExplain(client, clock, {.target = "gang/stuck-1", .ns = "train"}, {.style = style}, {}).out;
  });
  ExpectGolden("explain_waiting.txt",
               std::regex_replace(WithoutTimes(output.out), std::regex("[0-9]{4}-[0-9T:-]+Z"), "<time>"));
  const Json remedies = Remedies("gang/stuck-1");
  ASSERT_EQ(remedies.size(), 4U) << remedies.dump(2);
  EXPECT_EQ(remedies[0]["kind"], "NodeBack");
  EXPECT_EQ(remedies[0]["names"], Json::array({"node-07 (NotReady)"}))
      << "three of its unit's nodes are free";
  EXPECT_EQ(remedies[1]["kind"], "End");
  EXPECT_EQ(remedies[1]["names"], Json::array({"gang train/first (16 GPUs)"}))
      << "not the one of higher priority";
  EXPECT_EQ(remedies[2]["kind"], "WeakerRequirement");
  EXPECT_EQ(remedies[3]["kind"], "FewerGpus");
  for (const Json& remedy : remedies) EXPECT_GT(remedy["stepMicros"], 0);
}

TEST_F(ExplainGangTest, SaysSinceWhenRanksHaveNoPod) {
  PutNodes();
  crds::Gang gang = PutRunning("short", "JobSet", 0, 3);
  Say(gang, crds::kCollected, false, "rank 1 and others have no pod; a slot is kept for five minutes");
  Say(gang, crds::kRunning, false);
  const base::WallTime lost{std::chrono::seconds(1'800'000'000)};
  gang.status.missing = {{1, lost}, {2, lost + std::chrono::seconds(290)}};
  Put(gang);
  const std::string text = ExplainJob("gang/short-1").out;
  EXPECT_THAT(text, HasSubstr("rank 1 and others have no pod"));
  EXPECT_THAT(text, HasSubstr("RANK WITHOUT A POD"));
  EXPECT_THAT(text, HasSubstr("2027-01-15T08:00:00Z"));
  EXPECT_THAT(text, HasSubstr("2027-01-15T08:04:50Z"));
  const Json json = Json::parse(ExplainJob("gang/short-1", Format::kJson).out, nullptr, false);
  EXPECT_EQ(json["waiting"]["missing"], Json::parse(R"([{"rank": 1, "since": "2027-01-15T08:00:00Z"},
                            {"rank": 2, "since": "2027-01-15T08:04:50Z"}])"));
}

TEST_F(ExplainGangTest, NamesNothingThatDoesNotHelp) {
  PutNodes();
  PutRunning("important", "Job", 0, 8, 100);
  PutRefused("stuck", 4, "");
  EXPECT_EQ(Remedies("gang/stuck-1"), Json::array());
  EXPECT_THAT(ExplainJob("gang/stuck-1").out, HasSubstr("Nothing that was tried"));
}

TEST_F(ExplainGangTest, SaysThatThereIsRoomNowWhenThereIs) {
  PutNodes();
  PutRefused("stuck", 4, "");
  const Json remedies = Remedies("gang/stuck-1");
  ASSERT_EQ(remedies.size(), 1U);
  EXPECT_EQ(remedies[0]["kind"], "RoomNow");
}

TEST_F(ExplainGangTest, LeavesOutANodeWhoseAgentFellSilentAsTheExtenderDoes) {
  PutRunning("important", "Job", 4, 4, 100);
  PutRefused("stuck", 4, "dp=leaf");
  Beat("node-02", std::chrono::seconds(30));
  Beat("node-03", std::chrono::minutes(9));
  for (const bool nodes : {false, true}) {
    if (nodes) PutNodes();
    const Json remedies = Remedies("gang/stuck-1");
    ASSERT_FALSE(remedies.empty());
    EXPECT_EQ(remedies[0]["kind"], "NodeBack") << remedies.dump(2);
    EXPECT_EQ(remedies[0]["names"], Json::array({"node-03 (TopologyStale)"}));
  }
  server.FailNext({.path_contains = "leases", .status = 403});
  const Json unread = Json::parse(ExplainJob("gang/stuck-1", Format::kJson).out, nullptr, false);
  EXPECT_EQ(unread["wouldHelp"][0]["kind"], "RoomNow");
  EXPECT_THAT(unread["notes"].dump(), HasSubstr("Which agents fell silent is not known"));
  Beat("node-03", std::chrono::seconds(30));
  EXPECT_EQ(Remedies("gang/stuck-1")[0]["kind"], "RoomNow");
}

TEST_F(ExplainGangTest, LeavesOutANodeThatIsGoneUnlessAFileMayHoldSomeNodesOnly) {
  PutNodes();
  PutRunning("important", "Job", 4, 4, 100);
  PutRefused("stuck", 4, "dp=leaf");
  server.Remove(kube::kNodes, {"", "node-03"});
  EXPECT_EQ(Remedies("gang/stuck-1")[0]["names"], Json::array({"node-03 (NodeGone)"}));
  std::vector<kube::Resource> kinds = kOfHeddle;
  kinds.push_back(kube::kNodes);
  const Json file = Json::parse(OfFile("gang/stuck-1", kinds).out, nullptr, false);
  EXPECT_EQ(file["wouldHelp"][0]["kind"], "RoomNow");
}

TEST_F(ExplainGangTest, SeeksARankThatLostItsNodeAPlaceBesideTheOthers) {
  PutNodes("node-03");
  crds::Gang gang = PutRunning("llama", "Job", 0, 4);
  gang.spec.require = {{placement::Axis::kDp, placement::Level::kLeaf}};
  gang.status.reason = "Requirement";
  gang.status.message = "1 rank lost its slot";
  Say(gang, crds::kDegraded, true, gang.status.message);
  Say(gang, crds::kRunning, false);
  Put(gang);
  server.Remove(kube::kPods, {"train", "llama-3"});
  const Json remedies = Remedies("gang/llama-1");
  ASSERT_EQ(remedies.size(), 3U) << remedies.dump(2);
  EXPECT_EQ(remedies[0]["names"], Json::array({"node-03 (NotReady)"}));
  EXPECT_EQ(remedies[1]["kind"], "Restart") << "the other unit is free";
  EXPECT_EQ(remedies[2]["kind"], "WeakerRequirement");
}

// Rank 2 is done and its pod is gone; rank 3 is to be placed, and there is one node for it.
TEST_F(ExplainGangTest, SeeksNoPlaceForARankWithoutASlot) {
  PutWithoutASlotForRank2("1 rank lost its slot");
  const Json remedies = Remedies("gang/llama-1");
  ASSERT_EQ(remedies.size(), 1U) << remedies.dump(2);
  EXPECT_EQ(remedies[0]["kind"], "RoomNow") << "node-02 is enough";
}

// It and rank 3 are at the gate, where pods do not say their ranks.
TEST_F(ExplainGangTest, SeeksAPlaceForARankWithoutASlotThatHasComeAgain) {
  PutWithoutASlotForRank2("2 ranks lost their slots", crds::GangProgress{4, 2, 2});
  const Json remedies = Remedies("gang/llama-1");
  ASSERT_FALSE(remedies.empty());
  EXPECT_EQ(remedies[0]["kind"], "NodeBack") << "node-02 is not enough for two";
}

// Its pod is gone, and the gang has no plan that would say so.
TEST_F(ExplainGangTest, SeeksNoPlaceForARankThatItsJobSaysIsDone) {
  PutNodes("node-03");
  PutRunning("important", "Job", 4, 4, 100);
  const Json job = AddJob("llama", 4, "tp=8,dp=4");
  crds::Gang gang = PutRefused("llama", 4, "");
  gang.spec.owner = {.api_version = "batch/v1", .kind = "Job", .name = "llama", .uid = kube::Uid(job)};
  Put(gang);
  for (const int index : {0, 2, 3}) AddPod("llama", index, "", 8);
  EXPECT_EQ(Remedies("job/llama")[0]["kind"], "NodeBack") << "three nodes are free";
  server.Edit(kube::kJobs, {"train", "llama"}, [](Json& one) { one["status"]["completedIndexes"] = "1"; });
  const Json remedies = Remedies("job/llama");
  ASSERT_EQ(remedies.size(), 1U) << remedies.dump(2);
  EXPECT_EQ(remedies[0]["kind"], "RoomNow");
  EXPECT_THAT(ExplainJob("job/llama").out, HasSubstr("Not looked at: CPU, memory, taints."));
  EXPECT_THAT(ExplainJob("gang/llama-1").out, HasSubstr("taints, ranks that are done."))
      << "what made the gang is not read";
}

TEST_F(ExplainTest, RefusesAWorldThatIsNotTheGpus) {
  AddJob("llama", 8, "tp=8,pp=2,dp=4");
  AddPods(true, true);
  const Output output = ExplainJob("job/llama");
  EXPECT_NE(output.exit_code, 0);
  EXPECT_THAT(output.out, HasSubstr("64 ranks"));
  EXPECT_THAT(output.out, HasSubstr("32 GPUs"));
}

TEST_F(ExplainTest, NamesTheNodeWithoutTopology) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, true);
  server.Remove(ResourceOf(keys::kNodeTopology), {"", "node-01"});
  const Output output = ExplainJob("job/llama");
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("node-01"));
  EXPECT_THAT(output.out, HasSubstr("heddle-nodeagent"));
}

TEST_F(ExplainTest, PricesTheYoungestLivePodOfAnIndex) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, true);
  Json failed = AddPod("llama", 0, "node-07", 4, "0,1,2,3");
  server.Remove(kube::kPods, {"train", "llama-0"});
  failed["metadata"]["name"] = "llama-0-old";
  failed["metadata"].erase("uid");
  failed["status"]["phase"] = "Failed";
  server.Put(kube::kPods, failed);
  AddPod("llama", 0, "node-00", 4, "0,1,2,3");
  EXPECT_EQ(ExplainAsJson()["pods"][0]["name"], "llama-0");
}

TEST_F(ExplainTest, PricesNoPodThatIsOnItsWayOutOnceItsSuccessorIsThere) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, true);
  Json leaving = AddPod("llama", 5, "node-02", 4, "4,5,6,7");
  server.Remove(kube::kPods, {"train", "llama-5"});
  leaving["metadata"]["name"] = "llama-5-old";
  leaving["metadata"].erase("uid");
  leaving["metadata"]["deletionTimestamp"] = "2026-11-23T03:00:00Z";
  server.Put(kube::kPods, leaving);
  EXPECT_TRUE(ExplainAsJson().contains("stepMicros")) << "nobody has taken its place yet";
  AddPod("llama", 5, "", 4);
  EXPECT_THAT(ExplainJob("job/llama").out, HasSubstr("1 of 8 pods is not bound to a node yet (index 5)"));
}

TEST_F(ExplainTest, SaysWhatToDoAboutEveryKindOfError) {
  EXPECT_THAT(ExplainJob("job/nothing").err, HasSubstr("kubectl get jobs"));
  EXPECT_EQ(ExplainJob("job/nothing").exit_code, Output::kFailed);
  EXPECT_EQ(ExplainJob("pod/x").exit_code, Output::kUsage);
  EXPECT_THAT(ExplainJob("pod/x").err, HasSubstr("jobset, trainjob, pytorchjob"));
  EXPECT_EQ(ExplainJob("jobset/").exit_code, Output::kUsage);
  EXPECT_THAT(ExplainJob("jobset/x").err, HasSubstr("this cluster has no jobsets"));
  EXPECT_EQ(ExplainJob("gang/x").exit_code, Output::kFailed);
  AddJob("llama", 8, "tp=eight");
  EXPECT_EQ(ExplainJob("job/llama").exit_code, Output::kUsage);
  server.FailNext({.method = "GET", .path_contains = "jobs", .status = 403});
  EXPECT_THAT(ExplainJob("job/llama").err, HasSubstr("kubectl auth can-i"));
  server.FailNext({.method = "GET", .path_contains = "jobs"});
  EXPECT_THAT(ExplainJob("job/llama").err, HasSubstr("kubectl version"));
}

TEST_F(ExplainTest, SurvivesObjectsThatMakeNoSense) {
  AddJob("llama", 8, "tp=8,pp=2,dp=2");
  AddPods(true, false);
  for (const char* text : {R"({"spec":5})", R"({"status":{"gpus":"x"}})", R"({"metadata":{"labels":7}})"}) {
    Json odd = Json::parse(text);
    Json topology = kube::NewObject(ResourceOf(keys::kNodeTopology), {"", "odd"});
    topology.update(odd, true);
    server.Put(ResourceOf(keys::kNodeTopology), topology);
    Json pod = kube::NewObject(kube::kPods, {"train", "odd"});
    pod.update(odd, true);
    server.Put(kube::kPods, pod);
    Json gang = kube::NewObject(ResourceOf(keys::kGang, true), {"train", "odd"});
    gang.update(odd, true);
    server.Put(ResourceOf(keys::kGang, true), gang);
    EXPECT_EQ(ExplainJob("job/llama").exit_code, 0) << text;
  }
}

}  // namespace
}  // namespace heddle::cli
