#include "cli/waiting.h"

#include <gmock/gmock.h>

#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Gangs that lack room: the Job "llama", one of whose ranks is done, and "important", of a higher priority.
class PlaceInQueue : public Stage {
 protected:
  crds::Gang Refused(const std::string& name, const std::string& uid, int priority, int done) {
    crds::Gang gang;
    gang.name = name + "-1";
    gang.ns = "train";
    gang.uid = name + "-gang-uid";
    gang.created_at = clock.WallNow();
    gang.spec.owner = {.api_version = "batch/v1", .kind = "Job", .name = name, .uid = uid};
    gang.spec.pods = 4;
    gang.spec.gpus_per_pod = 8;
    gang.spec.gpu_resource = "nvidia.com/gpu";
    gang.spec.priority = priority;
    gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 4};
    gang.status.progress = {4, done, done};
    gang.status.reason = "NotEnoughFree";
    gang.status.message = "4 nodes needed in one fabric, best has 2";
    return gang;
  }
  void Put(const crds::Gang& gang) { server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang)); }
  void SetUp() override {
    AddCluster("su:1 node:2 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
    uid_ = kube::Uid(AddJob("llama", 4, "tp=8,dp=4"));
    Put(Refused("llama", uid_, 0, 1));
    Put(Refused("important", "important-uid", 100, 0));
    for (const int index : {1, 2, 3}) {
      AddPod("llama", index, "", 8);
      server.Edit(kube::kPods, Rank(index), [](Json& pod) {
        pod["spec"]["schedulingGates"] = Json::array({{{"name", keys::kGangGate}}});
      });
    }
  }
  static kube::ObjectKey Rank(int index) { return {"train", "llama-" + std::to_string(index)}; }
  // By a Gang that is there no more.
  void LetGoOfRank1() {
    server.Edit(kube::kPods, Rank(1), [this](Json& pod) {
      pod["spec"].erase("schedulingGates");
      pod["metadata"]["annotations"][std::string(keys::kGangUid)] = "an-earlier-one";
      pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                         {"kind", "Job"},
                                                         {"name", "llama"},
                                                         {"uid", uid_},
                                                         {"controller", true}}});
    });
  }
  std::vector<std::string> Ahead(const std::string& target) {
    const Json said = Json::parse(ExplainJob(target, Format::kJson).out, nullptr, false);
    const Json* waiting = kube::Find(said, {"waiting"});
    EXPECT_EQ(kube::IntAt(said, {"waiting", "queued"}), 2) << said.dump();
    return waiting == nullptr ? std::vector<std::string>{"nobody knows"}
                              : (*waiting)["ahead"].get<std::vector<std::string>>();
  }

  std::string uid_;
};

TEST_F(PlaceInQueue, IsNotAheadOfAHigherPriorityForRanksThatAreDone) {
  EXPECT_THAT(Ahead("job/llama"), ElementsAre("train/important (priority 100)"));
  EXPECT_THAT(Ahead("gang/important-1"), IsEmpty());
}

TEST_F(PlaceInQueue, IsAheadOfAHigherPriorityForAPodPastTheGate) {
  LetGoOfRank1();
  EXPECT_THAT(Ahead("job/llama"), IsEmpty());
  EXPECT_THAT(Ahead("gang/important-1"), ElementsAre("train/llama (priority 0)"));
  server.Edit(kube::kPods, Rank(1), [](Json& pod) { pod["status"]["phase"] = "Succeeded"; });
  EXPECT_THAT(Ahead("gang/important-1"), IsEmpty()) << "what has finished holds no node";
}

TEST_F(PlaceInQueue, OfAJobSetIsToldByThePodsOfItsJobs) {
  LetGoOfRank1();
  Put(Refused("llama", "set-uid", 0, 1));
  EXPECT_THAT(Ahead("gang/important-1"), IsEmpty()) << "it is a Job's pod";
  server.Edit(kube::kPods, Rank(1),
              [](Json& pod) { pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-uid"] = "set-uid"; });
  EXPECT_THAT(Ahead("gang/important-1"), ElementsAre("train/llama (priority 0)"));
}

TEST_F(PlaceInQueue, IsByTheGangsOwnCountWherePodsMayNotBeRead) {
  const auto forbid = [this] {
    server.FailNext({.method = "GET", .path_contains = "/api/v1/pods", .status = 403});
  };
  forbid();
  EXPECT_THAT(Ahead("gang/important-1"), ElementsAre("train/llama (priority 0)"));
  forbid();
  EXPECT_THAT(Ahead("job/llama"), ElementsAre("train/important (priority 100)"))
      << "who asks may read the pods of his own Job";
}

// The extender's keys: "LeaderWorkerSet/serve/0@train" comes before a UID that begins with a small letter.
TEST_F(PlaceInQueue, OfGangsThatCameTogetherIsByWhatTellsThemApart) {
  std::vector<crds::Gang> gangs{Refused("alone", "f0", 0, 0)};
  for (const char* index : {"1", "0"}) {
    gangs.push_back(Refused("serve", "zz", 0, 0));
    gangs.back().name = gangs.back().uid = std::string("serve-") + index;
    gangs.back().spec.group = std::string("LeaderWorkerSet/serve/") + index;
  }
  const auto waiting = WhyWaiting(gangs.front(), gangs, {}, {});
  ASSERT_TRUE(waiting);
  EXPECT_THAT(waiting->ahead, ElementsAre("train/serve/0", "train/serve/1"));
}

}  // namespace
}  // namespace heddle::cli
