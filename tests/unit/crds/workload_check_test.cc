// Each rule at a workload that breaks it, and the same workload without it.
#include "crds/workload_check.h"

#include <gmock/gmock.h>

#include <set>

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two pods of eight GPUs with all that they need.
Json Sound() {
  return Json::parse(R"({"kind": "Job", "metadata": {"name": "llama", "namespace": "train"}, "spec": {
      "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 3, "template": {"spec": {"hostNetwork": true,
      "containers": [{"name": "w", "resources": {"limits": {"nvidia.com/gpu": "8", "heddle.dev/rdma": "1",
        "heddle.dev/fabric": "1"}}, "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}],
      "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}}}})");
}

Json With(const char* pointer, Json value) {
  Json job = Sound();
  job[Json::json_pointer(pointer)] = std::move(value);
  return job;
}
Json Without(const char* pointer) {
  Json job = Sound();
  const Json::json_pointer at(pointer);
  job.at(at.parent_pointer()).erase(at.back());
  return job;
}

std::vector<std::string> Rules(const Json& object, const WorkloadGround& ground = {}) {
  std::vector<std::string> rules;
  for (const WorkloadFinding& finding : CheckWorkload(object, ground).findings)
    rules.emplace_back(finding.rule->id);
  return rules;
}

constexpr const char* kPod = "/spec/template/spec";
constexpr const char* kLimits = "/spec/template/spec/containers/0/resources/limits";
std::string In(const char* parent, const char* rest) {
  return std::string(parent) + rest;
}

TEST(Workload, ThatHasAllItNeedsHasNoFinding) {
  const CheckedWorkload checked = CheckWorkload(Sound(), {});
  EXPECT_THAT(checked.findings, IsEmpty());
  EXPECT_EQ(checked.name, "Job train/llama");
  ASSERT_EQ(checked.templates.size(), 1u);
  EXPECT_EQ(checked.templates[0].pods, 2);
  EXPECT_EQ(checked.templates[0].gpus, 8);
  EXPECT_THAT(checked.templates[0].rdma, ElementsAre("heddle.dev/rdma"));
}

TEST(Workload, OverSeveralNodesNeedsRdmaDevices) {
  const Json job = Without(In(kLimits, "/heddle.dev~1rdma").c_str());
  EXPECT_THAT(Rules(job), ElementsAre("no-rdma"));
  EXPECT_THAT(CheckWorkload(job, {}).findings[0].fact, HasSubstr("2 pods with 16 GPUs in all"));
  EXPECT_THAT(Rules(job, {.gpus_per_node = 16}), IsEmpty()) << "both fit one node";
  // What brings them otherwise.
  for (const char* name : {"rdma/hca", "vpc.amazonaws.com/efa", "openshift.io/mlx", "nvidia.com/mlnxnics",
                           "nvidia.com/hostdev", "intel.com/mlnx_rdma", "heddle.dev/rail3"}) {
    Json other = job;
    other[Json::json_pointer(kLimits)][name] = "1";
    EXPECT_THAT(Rules(other), IsEmpty()) << name;
  }
  Json own = job;
  own[Json::json_pointer(kLimits)]["example.com/nic"] = 1;
  EXPECT_THAT(Rules(own), ElementsAre("no-rdma"));
  EXPECT_THAT(Rules(own, {.rdma_resources = {{.name = "example.com/nic"}}}), IsEmpty());
  Json by_rail = job;
  by_rail[Json::json_pointer(kLimits)]["example.com/nic255"] = 1;
  const RdmaResource of_all_rails{.name = "example.com/nic{rail}"};
  EXPECT_THAT(Rules(by_rail, {.rdma_resources = {of_all_rails}}), IsEmpty());
  EXPECT_THAT(Rules(own, {.rdma_resources = {of_all_rails}}), ElementsAre("no-rdma"));
  Json claimed = job;
  claimed[Json::json_pointer(kPod)]["resourceClaims"] = {{{"name", "nics"}}};
  EXPECT_THAT(Rules(claimed), IsEmpty());
  claimed[Json::json_pointer(kPod)]["resourceClaims"] = {{{"name", "heddle-compute-domain"}}};
  EXPECT_THAT(Rules(claimed), ElementsAre("no-rdma")) << "an IMEX channel is no NIC";
  Json privileged = job;
  privileged[Json::json_pointer(kPod)]["containers"][0]["securityContext"] = {{"privileged", true}};
  EXPECT_THAT(Rules(privileged), IsEmpty());
  Json device = job;
  device[Json::json_pointer(kPod)]["volumes"].push_back(
      {{"name", "ib"}, {"hostPath", {{"path", "/dev/infiniband"}}}});
  EXPECT_THAT(Rules(device), IsEmpty());
}

TEST(Workload, AsksForNoRailThatPoliciesAreNotFor) {
  const RdmaResource low{.name = "example.com/nic{rail}", .rails = {0, 1}},
      high{.name = "example.com/nic{rail}", .rails = {6, 7}},
      own{.name = "heddle.dev/rail{rail}", .rails = {0}};
  Json job = Without(In(kLimits, "/heddle.dev~1rdma").c_str());
  Json& limits = job[Json::json_pointer(kLimits)];
  limits["example.com/nic1"] = 1;
  EXPECT_THAT(Rules(job, {.rdma_resources = {low}}), IsEmpty());
  limits["example.com/nic6"] = 1;
  limits["example.com/nic5"] = "0";
  EXPECT_THAT(Rules(job, {.rdma_resources = {low, high}}), IsEmpty()) << "each of another policy";
  const CheckedWorkload checked = CheckWorkload(job, {.rdma_resources = {low}});
  ASSERT_EQ(checked.findings.size(), 1u);
  EXPECT_EQ(checked.findings[0].rule->id, "rail-not-offered");
  EXPECT_THAT(checked.findings[0].fact, HasSubstr("asks for example.com/nic6, and"));
  // A device it is all the same, and no missing one: that it is of no rail that there is says what to do.
  limits.erase("example.com/nic1");
  EXPECT_THAT(Rules(job, {.rdma_resources = {low}}), ElementsAre("rail-not-offered"));
  // By whichever name: those of Heddle are known for RDMA devices without any policy.
  limits["heddle.dev/rail1"] = 1;
  EXPECT_THAT(Rules(job, {.rdma_resources = {high, own}}), ElementsAre("rail-not-offered"));
  EXPECT_THAT(Rules(job, {.rdma_resources = {high}}), IsEmpty()) << "nothing is known of such resources";
}

TEST(Workload, HasTheGpusOfItsSidecarsBesideItsOwn) {
  Json job = Sound();
  const Json sidecar = {{"name", "s"}, {"resources", {{"limits", {{"nvidia.com/gpu", 1}}}}}};
  job[Json::json_pointer(kPod)]["initContainers"] = Json::array({sidecar});
  EXPECT_EQ(CheckWorkload(job, {}).templates.at(0).gpus, 8) << "it ends before the others start";
  job[Json::json_pointer(kPod)]["initContainers"][0]["restartPolicy"] = "Always";
  EXPECT_EQ(CheckWorkload(job, {}).templates.at(0).gpus, 9);
}

TEST(Workload, TellsRdmaResourcesFromOthers) {
  for (const char* name : {"heddle.dev/fabric", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "intel.com/qat",
                           "cpu", "memory", "hugepages-2Mi", "example.com/rdma"})
    EXPECT_FALSE(IsRdmaResource(name)) << name;
  EXPECT_TRUE(IsRdmaResource("heddle.dev/gpu")) << "a GPU with its NIC, of mode Pairs";
}

TEST(Workload, OnRoceNeedsAnInterface) {
  EXPECT_THAT(Rules(Without(In(kPod, "/hostNetwork").c_str())), ElementsAre("no-interface"));
  EXPECT_THAT(Rules(Without(In(kPod, "/hostNetwork").c_str()), {.roce = false}), IsEmpty());
  Json efa = Without(In(kPod, "/hostNetwork").c_str());
  efa[Json::json_pointer(kLimits)].erase("heddle.dev/rdma");
  efa[Json::json_pointer(kLimits)]["vpc.amazonaws.com/efa"] = 32;
  EXPECT_THAT(Rules(efa), IsEmpty());
}

TEST(Workload, NeedsMemoryThatMayBePinned) {
  EXPECT_THAT(Rules(Without(In(kPod, "/containers/0/securityContext").c_str())), ElementsAre("may-not-pin"));
}

TEST(Workload, NeedsRoomInDevShm) {
  EXPECT_THAT(Rules(Without(In(kPod, "/volumes").c_str())), ElementsAre("shm-small"));
  const std::string dir = In(kPod, "/volumes/0/emptyDir");
  EXPECT_THAT(Rules(With(dir.c_str(), Json::object())), ElementsAre("shm-small"));
  EXPECT_THAT(Rules(With(dir.c_str(), {{"medium", "Memory"}, {"sizeLimit", "512Mi"}})),
              ElementsAre("shm-small"));
  EXPECT_THAT(Rules(With(dir.c_str(), {{"medium", "Memory"}, {"sizeLimit", "1Gi"}})), IsEmpty());
  EXPECT_THAT(
      Rules(With(In(kPod, "/volumes/0").c_str(), {{"name", "shm"}, {"hostPath", {{"path", "/dev/shm"}}}})),
      IsEmpty());
  Json host = Without(In(kPod, "/volumes").c_str());
  host[Json::json_pointer(kPod)]["hostIPC"] = true;
  EXPECT_THAT(Rules(host), IsEmpty());
  // One GPU in a container has nobody there to share memory with.
  Json one = Without(In(kPod, "/volumes").c_str());
  one[Json::json_pointer(kLimits)]["nvidia.com/gpu"] = 1;
  EXPECT_THAT(Rules(one), IsEmpty());
}

TEST(Workload, AsksForGpusThatNodesHave) {
  EXPECT_THAT(Rules(Sound(), {.gpus_per_node = 4}), ElementsAre("larger-than-node"));
  EXPECT_THAT(Rules(With(In(kLimits, "/nvidia.com~1gpu").c_str(), 6)), ElementsAre("does-not-tile"));
  EXPECT_THAT(Rules(With(In(kLimits, "/nvidia.com~1gpu").c_str(), 4), {.gpus_per_node = 72}), IsEmpty());
}

TEST(Workload, HasTheWorldOfItsParallelism) {
  const std::string annotation = "/spec/template/metadata/annotations/heddle.dev~1parallelism";
  EXPECT_THAT(Rules(With(annotation.c_str(), "tp=8,dp=2")), IsEmpty());
  EXPECT_THAT(Rules(With(annotation.c_str(), "tp=8,dp=4")), ElementsAre("not-its-gpus"));
  EXPECT_THAT(Rules(With(annotation.c_str(), "tp=eight")), ElementsAre("annotation-unread"));
  EXPECT_THAT(Rules(With("/spec/template/metadata/annotations/heddle.dev~1require", "tp=moon")),
              ElementsAre("annotation-unread"));
}

TEST(Workload, HasNoAnnotationThatHeddleRefuses) {
  const std::string annotations = "/spec/template/metadata/annotations/";
  const Json misspelt = With((annotations + "heddle.dev~1modle").c_str(), "params=70e9");
  ASSERT_THAT(Rules(misspelt), ElementsAre("unknown-key"));
  EXPECT_THAT(CheckWorkload(misspelt, {}).findings.front().fact,
              HasSubstr("heddle.dev/modle is none of Heddle's; is heddle.dev/model meant?"));
  EXPECT_THAT(Rules(With((annotations + "heddle.dev~1paralelism").c_str(), 7)), ElementsAre("unknown-key"))
      << "whatever its value is";
  for (const char* known : {"heddle.dev~1checkpoint", "heddle.dev~1rank", "example.com~1modle"})
    EXPECT_THAT(Rules(With((annotations + known).c_str(), "1")), IsEmpty()) << known;
}

TEST(Workload, OfAGangHasPodsWithRanks) {
  Json job = With("/spec/template/metadata/annotations/heddle.dev~1parallelism", "tp=8,dp=2");
  EXPECT_THAT(Rules(job), IsEmpty());
  for (const char* mode : {"", "NonIndexed"}) {
    job["spec"]["completionMode"] = mode;
    EXPECT_THAT(Rules(job), ElementsAre("no-ranks")) << mode;
  }
  job["spec"].erase("completionMode");
  EXPECT_THAT(Rules(job), ElementsAre("no-ranks")) << "what a Job is by itself";
  Json set = Json::parse(R"({"kind": "JobSet", "spec": {"replicatedJobs": [{"template": {}}]}})");
  set["spec"]["replicatedJobs"][0]["template"]["spec"] = job["spec"];
  EXPECT_THAT(Rules(set), IsEmpty()) << "a JobSet makes Indexed Jobs by itself";
  set["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] = "NonIndexed";
  EXPECT_THAT(Rules(set), ElementsAre("no-ranks"));
  job["spec"]["template"].erase("metadata");
  EXPECT_THAT(Rules(job), IsEmpty()) << "of no gang nobody asks for ranks";
}

TEST(Workload, OfAGangHasPodsThatStartTogether) {
  Json job = With("/spec/template/metadata/annotations/heddle.dev~1parallelism", "tp=8,dp=100");
  job["spec"]["completions"] = 1;
  job["spec"]["parallelism"] = 100;
  EXPECT_THAT(Rules(job), ElementsAre("not-at-once"));
  const CheckedWorkload checked = CheckWorkload(job, {});
  EXPECT_EQ(checked.findings.at(0).fact, "completions is 1 and parallelism 100");
  EXPECT_EQ(checked.templates.at(0).pods, 1) << "as many as have to complete";
  job["spec"].erase("completions");
  EXPECT_EQ(CheckWorkload(job, {}).findings.at(0).fact, "completions is not set and parallelism 100");
  job["spec"]["completions"] = 100;
  EXPECT_THAT(Rules(job), IsEmpty());
  job["spec"].erase("parallelism");
  EXPECT_EQ(CheckWorkload(job, {}).findings.at(0).fact, "completions is 100 and parallelism 1");
  job["spec"].erase("completions");
  EXPECT_THAT(Rules(job), ElementsAre("not-its-gpus")) << "one pod, which is no 800 GPUs";
  // In a JobSet each Job of the gang is asked.
  Json set = Json::parse(R"({"kind": "JobSet", "spec": {"replicatedJobs": [{"template": {}}]}})");
  set["spec"]["replicatedJobs"][0]["template"]["spec"] = job["spec"];
  set["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] = 4;
  EXPECT_THAT(Rules(set), ElementsAre("not-at-once"));
}

TEST(Workload, HasTheWorldOfEachOfItsGangs) {
  const Json job = With("/spec/template/metadata/annotations/heddle.dev~1parallelism", "tp=8,dp=2");
  const Json pods = job["spec"]["template"];
  Json set = {{"kind", "LeaderWorkerSet"},
              {"metadata", {{"name", "serve"}}},
              {"spec", {{"replicas", 3}, {"leaderWorkerTemplate", {{"size", 2}, {"workerTemplate", pods}}}}}};
  EXPECT_THAT(Rules(set), IsEmpty()) << "each group is a gang";
  set["spec"]["leaderWorkerTemplate"]["size"] = 3;
  EXPECT_THAT(Rules(set), ElementsAre("not-its-gpus"));
  set["spec"]["replicas"] = 0;
  EXPECT_THAT(Rules(set), IsEmpty()) << "no pods, nothing to find";
  Json pod = pods;
  pod["kind"] = "Pod";
  EXPECT_THAT(Rules(pod), ElementsAre("not-its-gpus"));
  pod["metadata"]["labels"] = {{"heddle.dev/gang-name", "pair"}, {"heddle.dev/gang-size", "2"}};
  EXPECT_THAT(Rules(pod), IsEmpty());
  pod["metadata"]["labels"] = {{"kueue.x-k8s.io/pod-group-name", "pair"}};
  pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = "2";
  EXPECT_THAT(Rules(pod), IsEmpty());
  pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = "many";
  EXPECT_THAT(Rules(pod), ElementsAre("not-its-gpus"));
}

// A pod of Sound() as one of two, in a PodGroup.
Json OfAPodGroup() {
  Json pod =
      With("/spec/template/metadata/annotations/heddle.dev~1parallelism", "tp=8,dp=2")["spec"]["template"];
  pod["kind"] = "Pod";
  pod["spec"]["schedulingGroup"]["podGroupName"] = "pair";
  return pod;
}

TEST(Workload, OfAPodGroupHasTheWorldOfTheGroup) {
  const auto rules = [](const Json& pod, const PodGroupFacts& group) {
    std::vector<std::string> ids;
    for (const WorkloadFinding& finding : CheckWorkload(pod, {}, group).findings)
      ids.emplace_back(finding.rule->id);
    return ids;
  };
  Json pod = OfAPodGroup();
  EXPECT_THAT(rules(pod, {.pods = 2}), IsEmpty());
  EXPECT_EQ(CheckWorkload(pod, {}, {.pods = 2}).gang_pods, 2);
  EXPECT_THAT(rules(pod, {.pods = 3}), ElementsAre("not-its-gpus"));
  EXPECT_THAT(rules(pod, {}), IsEmpty()) << "nothing is said of a group that nobody has read";
  EXPECT_THAT(rules(pod, {.asks_for_gang = false}), ElementsAre("no-gang"));
  // The extender asks the group, whatever this label says.
  pod["metadata"]["labels"]["heddle.dev/gang-size"] = "3";
  EXPECT_THAT(rules(pod, {.pods = 2}), IsEmpty());
  pod["metadata"]["labels"]["heddle.dev/gang-name"] = "ours";
  EXPECT_THAT(rules(pod, {.pods = 2}), ElementsAre("not-its-gpus"));
}

TEST(Workload, OfAPodOfAJobIsNotHeldAgainstItsWorldAlone) {
  Json pod = OfAPodGroup();
  pod["spec"].erase("schedulingGroup");
  EXPECT_THAT(Rules(pod), ElementsAre("not-its-gpus")) << "one of nobody is alone";
  pod["metadata"]["ownerReferences"] = {{{"kind", "Job"}, {"name", "llama"}, {"controller", false}}};
  EXPECT_THAT(Rules(pod), ElementsAre("not-its-gpus"));
  pod["metadata"]["ownerReferences"][0]["controller"] = true;
  EXPECT_THAT(Rules(pod), IsEmpty()) << "its Job says how many there are";
  pod["metadata"]["annotations"]["heddle.dev/gang-size"] = "3";
  EXPECT_THAT(Rules(pod), ElementsAre("not-its-gpus")) << "but it says so itself";
}

TEST(Workload, OfOnePodNeedsWhatItsGangNeeds) {
  Json pod = OfAPodGroup();
  pod["spec"]["containers"][0]["resources"]["limits"].erase("heddle.dev/rdma");
  const CheckedWorkload checked = CheckWorkload(pod, {}, {.pods = 2});
  ASSERT_EQ(checked.findings.size(), 1u);
  EXPECT_EQ(checked.findings[0].rule->id, "no-rdma");
  EXPECT_THAT(checked.findings[0].fact, HasSubstr("2 pods with 16 GPUs in all"));
  EXPECT_EQ(checked.templates.at(0).pods, 1) << "it is one of them all the same";
  pod["spec"].erase("schedulingGroup");
  pod["metadata"]["annotations"]["heddle.dev/gang-size"] = "2";
  EXPECT_THAT(Rules(pod), ElementsAre("no-rdma")) << "an annotation says it as well as a label";
  pod["metadata"]["annotations"].clear();
  EXPECT_THAT(Rules(pod), IsEmpty()) << "alone it fits a node";
}

TEST(Workload, IsToldItsNics) {
  const Json job = Without(In(kLimits, "/heddle.dev~1fabric").c_str());
  EXPECT_THAT(Rules(job), ElementsAre("no-nccl-file"));
  // Admission adds it to pods of gangs.
  Json gang = job;
  gang["spec"]["template"]["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=2";
  EXPECT_THAT(Rules(gang), IsEmpty());
  EXPECT_THAT(Rules(job, {.gpus_per_node = 16}), IsEmpty());
}

TEST(Workload, OutlivesTheLossOfAPod) {
  EXPECT_THAT(Rules(With("/spec/backoffLimit", 0)), ElementsAre("no-retry"));
  Json ignores = With("/spec/backoffLimit", 0);
  ignores["spec"]["podFailurePolicy"]["rules"] = {
      {{"action", "Ignore"}, {"onPodConditions", {{{"type", "DisruptionTarget"}}}}}};
  EXPECT_THAT(Rules(ignores), IsEmpty());
  Json jobset =
      Json::parse(R"({"kind": "JobSet", "spec": {"replicatedJobs": [{"replicas": 2, "template": {}}]}})");
  jobset["spec"]["replicatedJobs"][0]["template"]["spec"] = With("/spec/backoffLimit", 0)["spec"];
  EXPECT_THAT(Rules(jobset), ElementsAre("no-retry"));
  jobset["spec"]["failurePolicy"]["maxRestarts"] = 2;
  EXPECT_THAT(Rules(jobset), IsEmpty());
}

TEST(Workload, SaysTheWorstFirstAndWhatToDo) {
  Json job = Without(In(kPod, "/volumes").c_str());
  job["spec"]["backoffLimit"] = 0;
  job[Json::json_pointer(kLimits)].erase("heddle.dev/fabric");
  const CheckedWorkload checked = CheckWorkload(job, {});
  EXPECT_THAT(Rules(job), ElementsAre("shm-small", "no-nccl-file", "no-retry"));
  for (const WorkloadFinding& finding : checked.findings) EXPECT_FALSE(finding.remedy.empty());
}

TEST(Workload, WithoutGpusIsNoneOfOurs) {
  Json job = Sound();
  job[Json::json_pointer(kLimits)] = {{"cpu", 1}};
  const CheckedWorkload checked = CheckWorkload(job, {});
  EXPECT_THAT(checked.templates, IsEmpty());
  EXPECT_THAT(checked.findings, IsEmpty());
}

TEST(Workload, OfATrainJobAloneIsNotLookedAt) {
  Json job = Json::parse(R"({"kind": "TrainJob", "metadata": {"name": "llama", "namespace": "team"},
      "spec": {"runtimeRef": {"name": "torch"}}})");
  EXPECT_THAT(Rules(job), ElementsAre("not-looked-at"));
  const WorkloadFinding finding = CheckWorkload(job, {}).findings.at(0);
  EXPECT_FALSE(finding.rule->error);
  EXPECT_EQ(finding.fact, "its pods are made from ClusterTrainingRuntime torch, which is not here");
  EXPECT_THAT(finding.remedy, HasSubstr("`kubectl heddle check trainjob/llama -n team`"));
  // A patch of a pod template is none.
  Json patched = job;
  patched["spec"]["runtimePatches"] =
      Json::parse(R"([{"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
      {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}]}}}}])");
  EXPECT_THAT(Rules(patched), ElementsAre("not-looked-at"));
  job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime";
  EXPECT_THAT(CheckWorkload(job, {}).findings.at(0).remedy,
              HasSubstr("`kubectl get trainingruntime torch -n team -o yaml`"));
  job["spec"]["trainer"]["resourcesPerNode"]["limits"]["nvidia.com/gpu"] = 8;
  EXPECT_THAT(Rules(job), ElementsAre("not-looked-at"));
  job["spec"]["trainer"]["resourcesPerNode"]["limits"] = {{"cpu", 8}};
  EXPECT_THAT(Rules(job), IsEmpty()) << "whatever the runtime says, its pods have no GPU";
}

TEST(Workload, OfNonsenseIsNothing) {
  for (const char* text :
       {"null", "[]", "7",
        R"({"spec": {"containers": [1, {"resources": []}, {"resources": {"limits": [1]}}]}})",
        R"({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": {}}}}]}, "metadata": []})",
        R"({"kind": 7, "metadata": {"name": []}, "spec": {"template": {"spec": {"containers": [{}]}}}})"})
    EXPECT_THAT(CheckWorkload(Json::parse(text), {}).findings, IsEmpty()) << text;
}

TEST(WorkloadRules, AreEachSaidInFull) {
  std::set<std::string_view> ids;
  for (const WorkloadRule& rule : WorkloadRules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.forbids.empty() || rule.why.empty() || rule.remedy.empty()) << rule.id;
  }
}

}  // namespace
}  // namespace heddle::crds
