#include "extender/gang_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cached;
using test::GatedPod;
using test::IndexedJob;
using ::testing::HasSubstr;

const GangKey kKey{"train", "job-uid", 0};

GangMembers Read(const Json& job, const std::vector<Json>& pods) {
  std::vector<std::shared_ptr<const Json>> shared;
  for (const Json& pod : pods) shared.push_back(Cached(pod));
  return ReadMembers(kKey, &job, ReadPods(shared));
}

TEST(GangMembers, SeatsThePodsOfAnIndexedJobByTheirIndex) {
  const GangMembers members = Read(IndexedJob(2), {GatedPod(1), GatedPod(0)});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.spec.pods, 2);
  EXPECT_EQ(members.spec.gpus_per_pod, 8);
  EXPECT_EQ(members.spec.gpu_resource, "nvidia.com/gpu");
  EXPECT_EQ(members.spec.owner, (crds::GangOwner{"batch/v1", "Job", "job", "job-uid"}));
  EXPECT_EQ(members.seen(), 2);
  EXPECT_EQ(members.released(), 0);
  EXPECT_EQ(members.ranks[1]->facts->key.name, "job-1");
  EXPECT_EQ(members.ranks[1]->facts->demand.resources.milli_cpu, 4000);
}

TEST(GangMembers, TakesTheRankFromTheAnnotationWhereThereIsNoLabel) {
  Json pod = GatedPod(0);
  pod["metadata"].erase("labels");
  pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "1";
  const GangMembers members = Read(IndexedJob(2), {GatedPod(0), pod});
  EXPECT_FALSE(members.refusal);
  EXPECT_EQ(members.seen(), 2);
}

TEST(GangMembers, CountsOnlyLivePodsAndFreesTheRankOfALeavingOne) {
  Json leaving = GatedPod(0);
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Json again = GatedPod(0);
  again["metadata"]["name"] = "job-0-again";
  Json failed = GatedPod(1);
  failed["status"]["phase"] = "Failed";
  const GangMembers members = Read(IndexedJob(2), {leaving, again, failed});
  EXPECT_FALSE(members.refusal);
  EXPECT_EQ(members.ranks[0]->facts->key.name, "job-0-again");
  EXPECT_EQ(members.seen(), 1);
  EXPECT_EQ(members.leaving.size(), 2u);
  EXPECT_THAT(members.Missing(), testing::ElementsAre(1));
}

TEST(GangMembers, TreatsASucceededRankAsDone) {
  Json done = GatedPod(1);
  done["status"]["phase"] = "Succeeded";
  const GangMembers members = Read(IndexedJob(2), {GatedPod(0), done});
  EXPECT_EQ(members.seen(), 2);
  EXPECT_EQ(members.bound(), 1);
  EXPECT_THAT(members.Missing(), testing::IsEmpty());
}

TEST(GangMembers, ARankThatTheJobCallsCompletedIsDoneWithoutItsPod) {
  Json job = IndexedJob(4);
  job["status"]["completedIndexes"] = "0,2-3";
  const GangMembers members = Read(job, {GatedPod(1)});
  EXPECT_EQ(members.seen(), 4);
  EXPECT_EQ(members.released(), 3);
  EXPECT_EQ(members.let_go(), 0) << "done ranks stand in no plan's way";
  EXPECT_THAT(members.Missing(), testing::IsEmpty());
}

TEST(GangMembers, ARankThatAJobOfTheJobSetCallsCompletedIsDoneWithoutItsPod) {
  const test::JobSetNearItsEnd near;
  const ReadPods pods({near.pod});
  const GangMembers members =
      ReadMembers({"train", "set-uid", 0}, &near.set, pods, Mode::kPlace, nullptr, near.jobs);
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_THAT(members.done, testing::ElementsAre(true, true, true, false));
  ASSERT_TRUE(members.ranks[3]);
  EXPECT_EQ(members.seen(), 4);
  EXPECT_THAT(members.Missing(), testing::IsEmpty());
  EXPECT_THAT(ReadMembers({"train", "set-uid", 0}, &near.set, pods).Missing(), testing::ElementsAre(0, 1, 2));
}

struct Wrong {
  const char* reason;
  const char* words;
  std::function<void(Json& job, std::vector<Json>& pods)> change;
};
class WrongGang : public testing::TestWithParam<Wrong> {};
TEST_P(WrongGang, IsRefusedByNameWithASentence) {
  Json job = IndexedJob(2);
  std::vector<Json> pods{GatedPod(0), GatedPod(1)};
  GetParam().change(job, pods);
  const GangMembers members = Read(job, pods);
  ASSERT_TRUE(members.refusal);
  EXPECT_EQ(members.refusal->reason, GetParam().reason);
  EXPECT_THAT(members.refusal->sentence, HasSubstr(GetParam().words));
}
Json Index(Json pod, const char* index) {
  pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = index;
  return pod;
}
Json Named(int number) {
  return GatedPod(number);
}
INSTANTIATE_TEST_SUITE_P(
    Table, WrongGang,
    testing::Values(
        Wrong{"NotIndexed", "completionMode: Indexed",
              [](Json& job, auto&) { job["spec"]["completionMode"] = "NonIndexed"; }},
        Wrong{"CompletionsNotParallelism", "completions 2 and parallelism 1",
              [](Json& job, auto&) { job["spec"]["parallelism"] = 1; }},
        Wrong{"CompletionsNotParallelism", "not set",
              [](Json& job, auto&) { job["spec"].erase("completions"); }},
        Wrong{"TooManyPods", "16384",
              [](Json& job, auto&) { job["spec"]["completions"] = job["spec"]["parallelism"] = 20000; }},
        Wrong{"NoPods", "makes no pods",
              [](Json& job, auto&) { job["spec"]["completions"] = job["spec"]["parallelism"] = 0; }},
        Wrong{"RankMissing", "job-2", [](Json&, auto& pods) { pods.push_back(Index(Named(2), "no")); }},
        Wrong{"RankOutOfRange", "0 to 1", [](Json&, auto& pods) { pods.push_back(Index(Named(2), "2")); }},
        Wrong{"RankDoubled", "job-0 and job-2",
              [](Json&, auto& pods) { pods.push_back(Index(Named(2), "0")); }},
        Wrong{"BadAnnotation", "heddle.dev/model",
              [](Json&, auto& pods) { pods[0]["metadata"]["annotations"]["heddle.dev/model"] = "parms=1"; }},
        Wrong{"BadAnnotation", "heddle.dev/wait",
              [](Json&, auto& pods) { pods[0]["metadata"]["annotations"]["heddle.dev/wait"] = "soon"; }},
        Wrong{"UnequalPods", "differ in heddle.dev/parallelism",
              [](Json&, auto& pods) { pods[1] = GatedPod(1, "tp=4,dp=4"); }},
        Wrong{"UnequalPods", "asks for 4 GPUs",
              [](Json&, auto& pods) { pods[1] = GatedPod(1, "tp=8,dp=2", 4); }},
        Wrong{"NoGpus", "nvidia.com/gpu",
              [](Json&, auto& pods) {
                for (Json& pod : pods) pod["spec"]["containers"][0].erase("resources");
              }},
        Wrong{"BadResources", "nvidia.com/gpu",
              [](Json&, auto& pods) {
                pods[0]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "many";
              }},
        Wrong{"BadResources", "amd.com/gpu and nvidia.com/gpu",
              [](Json&, auto& pods) {
                pods[0]["spec"]["containers"][0]["resources"]["limits"]["amd.com/gpu"] = "1";
              }},
        Wrong{"NotModelled", "topologySpreadConstraints",
              [](Json&, auto& pods) {
                pods[0]["spec"]["topologySpreadConstraints"] =
                    Json::parse(R"([{"whenUnsatisfiable":"DoNotSchedule","topologyKey":"zone"}])");
              }},
        Wrong{"NotModelled", "resourceClaims",
              [](Json&, auto& pods) {
                pods[1]["spec"]["resourceClaims"] = Json::parse(R"([{"name":"gpu"}])");
              }},
        Wrong{"NotModelled", "ephemeral volume scratch",
              [](Json&, auto& pods) {
                pods[0]["spec"]["volumes"] = Json::parse(R"([{"name":"scratch","ephemeral":{}}])");
              }},
        Wrong{"NotModelled", "hostPort 9",
              [](Json&, auto& pods) {
                pods[0]["spec"]["initContainers"] = Json::parse(R"([{"name":"i","ports":[{"hostPort":9}]}])");
              }},
        Wrong{"WorldMismatch", "heddle.dev/parallelism",
              [](Json&, auto& pods) {
                pods = {GatedPod(0, "tp=8,dp=3"), GatedPod(1, "tp=8,dp=3")};
              }}),
    [](const auto& one) { return std::string(one.param.reason) + std::to_string(one.index); });

// What is wrong with one pod's number leaves a gang that can be placed, only not in that order.
TEST(GangMembers, SeatsPodsWithoutAGoodNumberByNameAndSaysSo) {
  for (const char* index : {"-1", "2", "0"}) {
    const GangMembers members = Read(IndexedJob(2), {Index(GatedPod(1), index), GatedPod(0)});
    ASSERT_FALSE(members.refusal) << members.refusal->sentence;
    EXPECT_EQ(members.ranks[0]->facts->key.name, "job-0");
    EXPECT_EQ(members.ranks[1]->facts->key.name, "job-1");
    ASSERT_EQ(members.notes.size(), 1u);
    EXPECT_THAT(members.notes[0], HasSubstr("ranks are not in order"));
    EXPECT_THAT(members.notes[0], HasSubstr("job-heddle-ranks"));
    EXPECT_EQ(members.rank_file, "job-heddle-ranks");
  }
  EXPECT_EQ(Read(IndexedJob(2), {GatedPod(0), GatedPod(1)}).rank_file, "");
}

TEST(GangMembers, APodThatWasLetGoKeepsTheRankThatItWasTold) {
  Json told = Index(GatedPod(0), "0");
  told["spec"].erase("schedulingGates");
  told["metadata"]["annotations"]["heddle.dev/rank"] = "1";
  told["metadata"]["annotations"]["heddle.dev/node"] = "node-3";
  const GangMembers members = Read(IndexedJob(2), {Index(GatedPod(1), "0"), told});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.ranks[1]->facts->key.name, "job-0");
  EXPECT_EQ(members.ranks[0]->facts->key.name, "job-1");
}

TEST(GangMembers, TorchrunThatMeetsByC10dGetsItsRanksInAFile) {
  for (const char* container :
       {R"({"env":[{"name":"PET_RDZV_BACKEND","value":"c10d"}]})",
        R"({"command":["torchrun","--rdzv-backend=c10d"]})", R"({"args":["--rdzv_backend","c10d"]})",
        R"({"command":["sh","-c"],"args":["torchrun --rdzv-backend c10d train.py"]})"}) {
    Json pod = GatedPod(0);
    pod["spec"]["containers"][0].merge_patch(Json::parse(container));
    const GangMembers members = Read(IndexedJob(2), {SlimPod(pod), GatedPod(1)});
    EXPECT_EQ(members.rank_file, "job-heddle-ranks") << container;
    ASSERT_EQ(members.notes.size(), 1u);
    EXPECT_THAT(members.notes[0], HasSubstr("order of ranks is advice"));
  }
  Json pod = GatedPod(0);
  pod["spec"]["containers"][0]["args"] = {"--rdzv-backend=static", "--name=c10d-run", 7};
  EXPECT_EQ(Read(IndexedJob(2), {SlimPod(pod), GatedPod(1)}).rank_file, "");
}

TEST(GangMembers, AJobThatIsOnlyObservedIsTakenToCutItsModelWithinAPod) {
  Json first = GatedPod(0), second = GatedPod(1);
  for (Json* pod : {&first, &second}) (*pod)["metadata"].erase("annotations");
  const Json job = IndexedJob(2);
  const GangMembers members =
      ReadMembers(kKey, &job, ReadPods({Cached(first), Cached(second)}), Mode::kObserve);
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_TRUE(members.assumed_parallelism);
  EXPECT_EQ(members.spec.parallelism->tp, 8);
  EXPECT_EQ(members.spec.parallelism->dp, 2);
  EXPECT_EQ(Read(job, {first, second}).refusal->reason, "NoParallelism") << "placing needs to know";
}

// Nothing ever held its pods, so that they run says nothing of their number.
TEST(GangMembers, AJobThatIsOnlyObservedIsToldOfANumberThatDoesNotMultiply) {
  Json first = GatedPod(0, "tp=8,dp=3"), second = GatedPod(1, "tp=8,dp=3");
  for (Json* pod : {&first, &second}) (*pod)["spec"].erase("schedulingGates");
  const Json job = IndexedJob(2);
  const GangMembers members =
      ReadMembers(kKey, &job, ReadPods({Cached(first), Cached(second)}), Mode::kObserve);
  ASSERT_TRUE(members.refusal);
  EXPECT_EQ(members.refusal->reason, "WorldMismatch");
}

TEST(GangMembers, RefusesOwnersThatItCannotRank) {
  Json pod = GatedPod(0);
  pod["metadata"]["ownerReferences"][0]["kind"] = "PyTorchJob";
  const GangMembers members = ReadMembers(kKey, nullptr, ReadPods({Cached(pod)}));
  ASSERT_TRUE(members.refusal);
  EXPECT_EQ(members.refusal->reason, "UnsupportedOwner");
  EXPECT_THAT(members.refusal->sentence, HasSubstr("PyTorchJob"));
}

TEST(GangMembers, SaysInNotesWhatItDoesNotWeigh) {
  Json pod = GatedPod(0);
  pod["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
      Json::parse(R"([{"weight":1}])");
  pod["spec"]["topologySpreadConstraints"] =
      Json::parse(R"([{"whenUnsatisfiable":"ScheduleAnyway","topologyKey":"zone"}])");
  const GangMembers members = Read(IndexedJob(2), {pod, GatedPod(1)});
  EXPECT_FALSE(members.refusal);
  EXPECT_EQ(members.notes.size(), 2u);
}

TEST(OwnerState, FollowsTheOwner) {
  const auto state = [](const char* patch) {
    Json job = IndexedJob(2);
    job.merge_patch(Json::parse(patch));
    return Read(job, {GatedPod(0)}).owner_state;
  };
  EXPECT_EQ(state("{}"), OwnerState::kActive);
  EXPECT_EQ(state(R"({"spec":{"suspend":true}})"), OwnerState::kSuspended);
  EXPECT_EQ(state(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})"), OwnerState::kDeleting);
  EXPECT_EQ(state(R"({"metadata":{"uid":"another"}})"), OwnerState::kGone);
  EXPECT_EQ(state(R"({"status":{"conditions":[{"type":"Failed","status":"True"}]}})"), OwnerState::kFinished);
  EXPECT_EQ(state(R"({"status":{"conditions":[{"type":"Failed","status":"False"}]}})"), OwnerState::kActive);
  EXPECT_EQ(state(R"({"status":{"restarts":1}})"), OwnerState::kNextAttempt);
}

TEST(GangKey, ReadsBackWhatItWrites) {
  const GangKey key{"train", "1f-a", 3};
  EXPECT_EQ(GangKey::Parse(key.ToString()), key);
  EXPECT_FALSE(GangKey::Parse("~plan"));
  EXPECT_FALSE(GangKey::Parse("a/b"));
  EXPECT_FALSE(GangKey::Parse("a/b/c"));
}

TEST(PodDemand, CountsInitContainersAndSidecarsAsTheSchedulerDoes) {
  const PodDemand demand = ReadDemand(Json::parse(R"({"spec":{"overhead":{"cpu":"100m"},
    "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                      {"resources":{"requests":{"cpu":"9","rdma/hca":"2"}}}],
    "containers":[{"resources":{"requests":{"cpu":"2"},"limits":{"nvidia.com/gpu":4}}},
                  {"resources":{"limits":{"nvidia.com/gpu":"4","cpu":"3"}}}]}})"));
  EXPECT_EQ(demand.gpus, 8);
  EXPECT_EQ(demand.resources.milli_cpu, 10'100);
  EXPECT_EQ(demand.resources.extended, (std::vector<std::pair<std::string, std::int64_t>>{{"rdma/hca", 2}}));
}

}  // namespace
}  // namespace heddle::extender
