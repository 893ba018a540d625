// `kubectl heddle check --where`, in a cluster.
#include "cli/landing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/cli/check_stage.h"

namespace heddle::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class WhereItWouldLand : public CheckInACluster {
 protected:
  void AddNode(const std::string& name, bool ready, const std::string& pool = "") {
    Json node = kube::NewObject(kube::kNodes, {"", name});
    if (!pool.empty()) node["metadata"]["labels"]["pool"] = pool;
    node["status"]["conditions"] = {{{"type", "Ready"}, {"status", ready ? "True" : "False"}}};
    server.Put(kube::kNodes, node);
  }
  Output Where(const std::string& target, Format format = Format::kText) {
    return RunCheck(client, clock, {.targets = {target}, .ns = "train", .where = true}, FromDisk,
                    {.format = format}, {});
  }
  static int TimesIn(const std::string& text, const std::string& what) {
    int times = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
    return times;
  }
  const std::string sound = kWorkloads + "sound.yaml";
};

TEST_F(WhereItWouldLand, IsSaidWithItsMillisecondsOfAFile) {
  AddCluster("su:2 node:16 gpu:8 nic:8 rail:8 transport:ib");
  const Output output = Where(sound);
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("Job train/llama would land now on 16 nodes of InfiniBand: node-00"),
                    HasSubstr(" ms of communication a step; 16/16 TP groups inside one NVLink domain"),
                    HasSubstr("nothing was found")));
  const Json landing = Json::parse(Where(sound, Format::kJson).out).at("workloads")[0].at("landing");
  EXPECT_EQ(landing.at("feasible"), true);
  EXPECT_EQ(landing.at("nodes").size(), 16u);
  EXPECT_GT(landing.at("milliseconds").get<double>(), 0);
}

TEST_F(WhereItWouldLand, IsNotAskedUnlessSomebodyDoes) {
  EXPECT_FALSE(AsksCluster({.targets = {"a.yaml"}}));
  EXPECT_TRUE(AsksCluster({.targets = {"a.yaml"}, .where = true}));
  const Json json =
      Json::parse(Check({.targets = {sound}}, {}, {.read = FromDisk}, {.format = Format::kJson}).out);
  EXPECT_FALSE(json.at("workloads")[0].contains("landing"));
}

TEST_F(WhereItWouldLand, NamesTheRefusalAndStillFindsNothingWrongWithTheJob) {
  AddCluster("su:1 node:8 gpu:8 nic:8 rail:8 transport:ib");
  const Output output = Where(sound);
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("Job train/llama has no place now: TooLargeForFabric: "));
}

TEST_F(WhereItWouldLand, LeavesOutNodesThatAreNotReadyOrThatItDoesNotSelect) {
  AddCluster("su:1 node:18 gpu:8 nic:8 rail:8 transport:ib");
  for (int n = 0; n < 18; ++n) AddNode(fmt::format("node-{:02}", n), n != 3, n == 5 ? "other" : "a");
  EXPECT_THAT(Where(sound, Format::kJson).out, AllOf(Not(HasSubstr("node-03")), HasSubstr("node-05")));
  std::string text = *FromDisk(sound);
  text.replace(text.find("      restartPolicy"), 0, "      nodeSelector: {pool: a}\n");
  const ReadFile read = [&](const std::string&) -> base::Result<std::string> { return text; };
  const Output output =
      RunCheck(client, clock, {.targets = {"-"}, .where = true}, read, {.format = Format::kJson}, {});
  EXPECT_THAT(output.out, AllOf(Not(HasSubstr("node-03")), Not(HasSubstr("node-05")), HasSubstr("node-17")));
}

TEST_F(WhereItWouldLand, LeavesOutANodeWhoseDevicePluginOffersOtherGpusThanItsAgentFinds) {
  AddCluster("su:1 node:17 gpu:8 nic:8 rail:8 transport:ib");
  for (int n = 0; n < 17; ++n) {
    const std::string name = fmt::format("node-{:02}", n);
    AddNode(name, true);
    server.Edit(kube::kNodes, {"", name}, [n](Json& node) {
      node["status"]["allocatable"] = {{"nvidia.com/gpu", n == 3 ? "4" : "8"}};
    });
  }
  EXPECT_THAT(Where(sound, Format::kJson).out, AllOf(Not(HasSubstr("node-03")), HasSubstr("node-16")));
}

TEST_F(WhereItWouldLand, LeavesOutANodeWhoseAgentFellSilent) {
  AddCluster("su:1 node:17 gpu:8 nic:8 rail:8 transport:ib");
  Beat("node-02", std::chrono::seconds(30));
  Beat("node-03", std::chrono::minutes(9));
  EXPECT_THAT(Where(sound, Format::kJson).out,
              AllOf(HasSubstr("node-02"), Not(HasSubstr("node-03")), HasSubstr("node-16")));
  for (int n = 0; n < 17; ++n) AddNode(fmt::format("node-{:02}", n), true);
  EXPECT_THAT(Where(sound, Format::kJson).out, AllOf(Not(HasSubstr("node-03")), HasSubstr("node-16")));
  Beat("node-04", std::chrono::minutes(9));
  EXPECT_THAT(Where(sound).out, HasSubstr("has no place now"));
  server.FailNext({.path_contains = "leases", .status = 403});
  const Output unread = Where(sound);
  EXPECT_THAT(unread.out, HasSubstr("would land now on 16 nodes"));
  EXPECT_THAT(unread.err, HasSubstr("Note: Which agents fell silent is not known"));
}

TEST_F(WhereItWouldLand, LeavesOutANodeThatIsGoneAndLeftItsNodeTopology) {
  AddCluster("su:1 node:17 gpu:8 nic:8 rail:8 transport:ib");
  for (int n = 0; n < 17; ++n) {
    if (n != 3) AddNode(fmt::format("node-{:02}", n), true);
  }
  EXPECT_THAT(Where(sound, Format::kJson).out, AllOf(Not(HasSubstr("node-03")), HasSubstr("node-16")));
}

TEST_F(WhereItWouldLand, LeavesTheSparesThatTheExtenderKeeps) {
  AddCluster("rack:1 tray:17 gpu:8 nic:8 rail:8 rate:400 nvl");
  const kube::Resource deployments{"apps", "v1", "deployments", "Deployment", true};
  server.Serve(deployments);
  const Output unknown = Where(sound);
  EXPECT_THAT(unknown.out, HasSubstr("would land now"));
  EXPECT_THAT(unknown.out + unknown.err, HasSubstr("keeps as spares is not known"));
  Json deployment = kube::NewObject(deployments, {"heddle-system", "heddle-scheduler"});
  Json extender;
  extender["command"] = Json::array({"heddle-extender", "--spares=2"});
  deployment["spec"]["template"]["spec"]["containers"] = Json::array();
  deployment["spec"]["template"]["spec"]["containers"].push_back(extender);
  server.Put(deployments, deployment);
  const Output kept = Where(sound);
  EXPECT_THAT(kept.out, HasSubstr("has no place now"));
  EXPECT_THAT(kept.out + kept.err, Not(HasSubstr("spares is not known")));
}

TEST_F(WhereItWouldLand, IsNoQuestionForWhatIsNoGangOrHasItsPlace) {
  AddCluster("su:2 node:16 gpu:8 nic:8 rail:8 transport:ib");
  AddSample("rdma/hca");
  EXPECT_THAT(Where("job/llama").out, HasSubstr("not asked: its pods have no heddle.dev/parallelism"));
  std::string text = *FromDisk(sound);
  text.replace(text.find("tp=8,pp=2,dp=8"), 14, "tp=8,pp=2,dp=9");
  const ReadFile read = [&](const std::string&) -> base::Result<std::string> { return text; };
  EXPECT_THAT(RunCheck(client, clock, {.targets = {"-"}, .where = true}, read, {}, {}).out,
              HasSubstr("not asked: heddle.dev/parallelism makes 144 GPUs and its pods ask for 128"));
}

TEST_F(WhereItWouldLand, IsSaidOfAllPodsOfAPodGroupTogether) {
  AddCluster("su:1 node:2 gpu:8 nic:8 rail:8 transport:roce");
  const std::string examples = std::string(HEDDLE_SOURCE_DIR) + "/docs/examples/";
  for (const bool native : {true, false}) {
    const std::string file = examples + (native ? "podgroup.yaml" : "pods.yaml");
    const Output output = Where(file);
    EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
    EXPECT_THAT(output.out, AllOf(HasSubstr(std::string(native ? "PodGroup" : "gang") +
                                            " pair (2 pods) would land now on 2 nodes of "),
                                  HasSubstr("2/2 TP groups inside one NVLink domain")));
    EXPECT_EQ(TimesIn(output.out, "would land"), 1) << "of the gang, not of each pod: " << output.out;
    const Json workloads = Json::parse(Where(file, Format::kJson).out).at("workloads");
    ASSERT_EQ(workloads.size(), 2u);
    for (const Json& one : workloads) {
      EXPECT_EQ(one.at("gang").at("group"), native ? "PodGroup/pair" : "Pods/pair");
      EXPECT_EQ(one.at("landing").at("nodes").size(), 2u);
    }
  }
}

TEST_F(WhereItWouldLand, IsSaidOfEachWayThatPodsOfAGangHaveIt) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 transport:roce");
  std::string text = *FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/examples/podgroup.yaml");
  text.replace(text.rfind("tp=8,dp=2"), 9, "tp=8,pp=2");
  const ReadFile read = [&](const std::string&) -> base::Result<std::string> { return text; };
  const Output output = RunCheck(client, clock, {.targets = {"-"}, .where = true}, read, {}, {});
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("PodGroup pair (2 pods) as pair-0 has it would land now on 2 nodes"),
                    HasSubstr("PodGroup pair (2 pods) as pair-1 has it would land now on 2 nodes")));
}

TEST_F(WhereItWouldLand, IsSaidApartOfGangsThatAreLikeEachOther) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 transport:roce");
  const std::string one = *FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/examples/podgroup.yaml");
  std::string two = one;
  for (std::size_t at = two.find("pair"); at != std::string::npos; at = two.find("pair", at))
    two.replace(at, 4, "twin");
  const ReadFile read = [&](const std::string&) -> base::Result<std::string> { return one + "---\n" + two; };
  const Output output = RunCheck(client, clock, {.targets = {"-"}, .where = true}, read, {}, {});
  EXPECT_THAT(output.out, AllOf(HasSubstr("PodGroup pair (2 pods) would land now on 2 nodes"),
                                HasSubstr("PodGroup twin (2 pods) would land now on 2 nodes")));
  EXPECT_EQ(TimesIn(output.out, "would land"), 2) << output.out;
}

TEST_F(WhereItWouldLand, IsNoQuestionForAPodWhoseGangHasItsPlace) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 transport:ib");
  for (const bool native : {true, false}) {
    Json pod = kube::NewObject(kube::kPods, {"train", "pair-0"});
    pod["metadata"]["annotations"] = {{"heddle.dev/parallelism", "tp=8,dp=2"}, {"heddle.dev/gang-size", "2"}};
    pod["spec"]["containers"] = Json::array(
        {{{"name", "w"}, {"resources", {{"limits", {{"nvidia.com/gpu", "8"}, {"rdma/hca", "1"}}}}}}});
    if (native) {
      pod["spec"]["schedulingGroup"]["podGroupName"] = "pair";
    } else {
      pod["metadata"]["labels"]["heddle.dev/gang-name"] = "pair";
    }
    server.Put(kube::kPods, pod);
    crds::Gang gang;
    gang.ns = "train";
    gang.name = "pair-1";
    gang.spec.owner = {.api_version = "v1", .kind = "Pod", .name = "pair-1", .uid = "of-the-other"};
    gang.spec.group = native ? "PodGroup/pair" : "Pods/pair";
    gang.spec.pods = 2;
    gang.spec.gpus_per_pod = 8;
    gang.spec.gpu_resource = "nvidia.com/gpu";
    gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 2};
    gang.status.placement = crds::ToColumns({{"node-00", 0xFF, {}}, {"node-01", 0xFF, {}}}, 1);
    server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
    EXPECT_THAT(Where("pod/pair-0").out, HasSubstr("not asked: it has its place already")) << native;
  }
}

TEST_F(WhereItWouldLand, IsNoQuestionForAPodWhoseJobHasItsPlace) {
  AddCluster("su:1 node:4 gpu:8 nic:8 rail:8 transport:ib");
  const Json job = AddJob("llama", 2, "tp=8,dp=2");
  Json pod = AddPod("llama", 0, "node-00", 8);
  pod["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=2";
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "Job"},
                                                     {"name", "llama"},
                                                     {"uid", kube::Uid(job)},
                                                     {"controller", true}}});
  server.Put(kube::kPods, pod);
  EXPECT_THAT(Where("pod/llama-0").out, Not(HasSubstr("it has its place already")));
  crds::Gang gang;
  gang.ns = "train";
  gang.name = "llama-1";
  gang.spec.owner = {.api_version = "batch/v1", .kind = "Job", .name = "llama", .uid = kube::Uid(job)};
  gang.spec.pods = 2;
  gang.spec.gpus_per_pod = 8;
  gang.spec.gpu_resource = "nvidia.com/gpu";
  gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 2};
  gang.status.placement = crds::ToColumns({{"node-00", 0xFF, {}}, {"node-01", 0xFF, {}}}, 1);
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
  EXPECT_THAT(Where("pod/llama-0").out, HasSubstr("not asked: it has its place already"));
}

TEST_F(WhereItWouldLand, SaysThatHeddleIsNotThere) {
  const Output output = Where(sound);
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("--where: no node has reported its GPUs yet"));
}

}  // namespace
}  // namespace heddle::cli
