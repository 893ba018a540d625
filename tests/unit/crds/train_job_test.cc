#include "crds/train_job.h"

#include <gmock/gmock.h>

#include "crds/json_at.h"
#include "crds/pod_templates.h"

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// As the one that Trainer installs for torchrun.
Json Runtime() {
  return Json::parse(R"({"kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"}, "spec": {
      "mlPolicy": {"numNodes": 2, "torch": {}}, "template": {"spec": {"replicatedJobs": [
        {"name": "dataset", "template": {"spec": {"parallelism": 3, "template": {"spec": {"containers": [
          {"name": "node"}]}}}}},
        {"name": "node", "replicas": 7, "template": {
          "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
          "spec": {"template": {"metadata": {"annotations": {"a": "1", "b": "1"}}, "spec": {
            "tolerations": [{"key": "x"}], "volumes": [{"name": "shm", "emptyDir": {}}],
            "containers": [{"name": "side"}, {"name": "node", "image": "i",
              "resources": {"limits": {"cpu": 1}, "claims": [{"name": "c"}]},
              "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}]}}}}}]}}}})");
}

// As deepspeed's and MLX's: the launcher is the first of the nodes.
Json MpiRuntime(bool launcher_is_node) {
  Json runtime = Json::parse(R"({"kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"}, "spec": {
      "mlPolicy": {"numNodes": 1, "mpi": {}}, "template": {"spec": {"replicatedJobs": [
        {"name": "launcher", "template": {
          "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
          "spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}},
        {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}]}}}})");
  runtime["spec"]["mlPolicy"]["mpi"]["runLauncherAsNode"] = launcher_is_node;
  return runtime;
}

Json TrainJob(const char* spec) {
  Json job = Json::parse(R"({"kind": "TrainJob", "metadata": {"name": "llama", "namespace": "team"}})");
  job["spec"] = Json::parse(spec);
  job["spec"]["runtimeRef"]["name"] = "torch";
  return job;
}

std::vector<std::int64_t> PodsOfJobs(const Json& set) {
  std::vector<std::int64_t> pods;
  for (const PodTemplate& one : PodTemplatesOf(set)) pods.push_back(one.pods);
  return pods;
}

// The pod template of the job at `index`.
const Json& Pod(const Json& set, std::size_t index) {
  return set.at("spec").at("replicatedJobs").at(index).at("template").at("spec").at("template");
}

TEST(TrainJob, IsMadeAJobSetOfAsManyPodsAsItSays) {
  const Json set = JobSetOf(TrainJob(R"({"trainer": {"numNodes": 8}})"), Runtime());
  EXPECT_EQ(set.at("kind"), "JobSet");
  EXPECT_EQ(set.at("metadata"), Json::parse(R"({"name": "llama", "namespace": "team"})"));
  EXPECT_THAT(PodsOfJobs(set), ElementsAre(3, 8)) << "of the trainer's job there is one replica";
  EXPECT_THAT(PodsOfJobs(JobSetOf(TrainJob("{}"), Runtime())), ElementsAre(3, 2)) << "the runtime's numNodes";
  EXPECT_THAT(PodsOfJobs(JobSetOf(Json::object(), Runtime())), ElementsAre(3, 2));
}

TEST(TrainJob, CountsTheLauncherOfMpiAmongItsNodes) {
  const Json job =
      TrainJob(R"({"trainer": {"numNodes": 8, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}})");
  const Json with = JobSetOf(job, MpiRuntime(true)), without = JobSetOf(job, MpiRuntime(false));
  EXPECT_THAT(PodsOfJobs(with), ElementsAre(1, 7));
  EXPECT_THAT(PodsOfJobs(without), ElementsAre(1, 8));
  const auto gpus = [](const Json& set, std::size_t index) {
    return At(Pod(set, index).at("spec").at("containers")[0], {"resources", "limits", "nvidia.com/gpu"});
  };
  EXPECT_EQ(gpus(with, 0), 8);
  EXPECT_EQ(gpus(with, 1), 8);
  EXPECT_EQ(gpus(without, 1), nullptr) << "Trainer gives the resources to the trainer's job alone";
}

TEST(TrainJob, PutsItsResourcesInThePlaceOfTheContainers) {
  const Json job = TrainJob(R"({"trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}})");
  const Json set = JobSetOf(job, Runtime());
  const Json& containers = Pod(set, 1).at("spec").at("containers");
  EXPECT_FALSE(containers[0].contains("resources"));
  EXPECT_EQ(containers[1].at("resources"), Json::parse(R"({"limits": {"nvidia.com/gpu": 4}})"));
  EXPECT_FALSE(Pod(set, 0).at("spec").at("containers")[0].contains("resources"))
      << "that is not the trainer's";
}

TEST(TrainJob, MergesItsOverridesAsAStrategicPatch) {
  const char* pod = R"({"metadata": {"annotations": {"b": "2", "heddle.dev/parallelism": "tp=8"}}, "spec": {
      "nodeSelector": {"pool": "a"}, "tolerations": [{"key": "y"}],
      "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "data"}],
      "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
      "schedulingGates": [{"name": "g"}]}})";
  Json overrides = Json::parse(pod);
  overrides["targetJobs"] = Json::parse(R"([{"name": "other"}, {"name": "node"}])");
  Json patches = Json::parse(R"([{"manager": "me", "trainingRuntimeSpec": {"template": {"spec": {
      "replicatedJobs": [{"name": "node", "template": {"spec": {}}}]}}}}])");
  patches[0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"] =
      Json::parse(pod);
  Json old = TrainJob("{}"), later = TrainJob("{}");
  old["spec"]["podTemplateOverrides"].push_back(overrides);
  later["spec"]["runtimePatches"] = patches;
  for (const Json& job : {old, later}) {
    EXPECT_THAT(PodPatchesOf(job, "node"), SizeIs(1));
    EXPECT_THAT(PodPatchesOf(job, "dataset"), IsEmpty());
    const Json set = JobSetOf(job, Runtime());
    EXPECT_EQ(Pod(set, 1).at("metadata").at("annotations"),
              Json::parse(R"({"a": "1", "b": "2", "heddle.dev/parallelism": "tp=8"})"));
    EXPECT_EQ(Pod(set, 1).at("spec"), Json::parse(R"({
        "nodeSelector": {"pool": "a"}, "tolerations": [{"key": "y"}], "schedulingGates": [{"name": "g"}],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "data"}],
        "containers": [{"name": "side"}, {"name": "node", "image": "i",
          "resources": {"limits": {"cpu": 1}, "claims": [{"name": "c"}]},
          "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "data", "mountPath": "/data"}]}]})"));
    EXPECT_FALSE(Pod(set, 0).contains("metadata"));
  }
}

TEST(TrainJob, NamesItsRuntime) {
  const Json job = TrainJob("{}");
  EXPECT_TRUE(Names(job, Runtime())) << "the cluster's, where it says no kind";
  Json other = Runtime();
  other["metadata"]["name"] = "jax";
  EXPECT_FALSE(Names(job, other));
  const Json own = TrainJob(R"({"runtimeRef": {"kind": "TrainingRuntime"}})");
  EXPECT_FALSE(Names(own, Runtime()));
  Json theirs = Runtime();
  theirs["kind"] = "TrainingRuntime";
  EXPECT_TRUE(Names(own, theirs)) << "kubectl gives both the same namespace";
  theirs["metadata"]["namespace"] = "team";
  EXPECT_TRUE(Names(own, theirs));
  theirs["metadata"]["namespace"] = "other";
  EXPECT_FALSE(Names(own, theirs));
  EXPECT_EQ(RuntimeOf(own).ns, "team");
  EXPECT_TRUE(IsTrainJob(job) && IsTrainingRuntime(theirs) && IsTrainingRuntime(Runtime()));
  EXPECT_FALSE(IsTrainJob(theirs) || IsTrainingRuntime(job));
}

TEST(TrainJob, OfNonsenseIsAJobSetOfNothing) {
  for (
      const char* text :
      {"null", "[]", "7", R"({"spec": 7})", R"({"metadata": [], "spec": {"template": {"spec": []}}})",
       R"({"spec": {"template": {"spec": {"replicatedJobs": {}}}}})",
       R"({"spec": {"template": {"spec": {"replicatedJobs": [7, null, {"name": 7, "template": []}]}}}})",
       R"({"spec": {"mlPolicy": [], "trainer": 7, "podTemplateOverrides": [7, {"targetJobs": 7}]}})",
       R"({"spec": {"runtimePatches": [{"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [7]}}}}]}})"}) {
    const Json odd = Json::parse(text);
    EXPECT_THAT(PodTemplatesOf(JobSetOf(odd, odd)), IsEmpty()) << text;
    EXPECT_THAT(PodTemplatesOf(JobSetOf(TrainJob("{}"), odd)), IsEmpty()) << text;
    EXPECT_THAT(PodTemplatesOf(JobSetOf(odd, Runtime())), SizeIs(2)) << text;
  }
  const Json most = TrainJob(R"({"trainer": {"numNodes": -9223372036854775808}})");
  EXPECT_THAT(PodsOfJobs(JobSetOf(most, MpiRuntime(true))), ElementsAre(1, 1));
}

}  // namespace
}  // namespace heddle::crds
