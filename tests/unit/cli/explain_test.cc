#include "cli/explain.h"

#include <gmock/gmock.h>

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

TEST_F(ExplainTest, SaysWhatToDoAboutEveryKindOfError) {
  EXPECT_THAT(ExplainJob("job/nothing").err, HasSubstr("kubectl get jobs"));
  EXPECT_EQ(ExplainJob("job/nothing").exit_code, Output::kFailed);
  EXPECT_EQ(ExplainJob("pod/x").exit_code, Output::kUsage);
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
