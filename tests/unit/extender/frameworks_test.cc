// Gangs that an owner's UID does not tell, pods without numbers, and pods that nothing held back, through the whole
// controller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <set>

#include "crds/keys.h"
#include "extender/owner_kinds.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTwoUnits = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100";
const JobWords kPairs{.pods = 2, .parallelism = "tp=8,dp=2"};

const kube::Resource& Kind(const char* api_version, const char* kind) {
  return OwnerKindOf(api_version, kind)->resource;
}

// A gated pod with these labels and this owner; the Job that cluster.h would name is not there.
void PutPod(Cluster& cluster, const std::string& name, const Json& labels, const Json& owner,
            const JobWords& words = kPairs) {
  cluster.PutPod(words, "none", 0, name);
  cluster.server.Edit(kube::kPods, {"train", name}, [&](Json& pod) {
    pod["metadata"]["labels"] = labels;
    pod["metadata"].erase("ownerReferences");
    if (!owner.is_null()) pod["metadata"]["ownerReferences"] = Json::array({owner});
  });
}

Json Controller(const char* api_version, const char* kind, const std::string& name, const std::string& uid) {
  return {{"apiVersion", api_version}, {"kind", kind}, {"name", name}, {"uid", uid}, {"controller", true}};
}

std::vector<std::string> GangNames(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const Json& gang : cluster.server.All(kGangs)) names.push_back(kube::Name(gang));
  return names;
}

std::optional<crds::Gang> GangNamed(const Cluster& cluster, const std::string& title) {
  for (const Json& object : cluster.server.All(kGangs)) {
    const auto gang = crds::GangFromJson(object);
    if (gang && crds::GangTitle(gang->spec) == title) return *gang;
  }
  return std::nullopt;
}

bool Running(const Cluster& cluster, const std::string& title) {
  const auto gang = GangNamed(cluster, title);
  return gang && crds::Summarise(gang->spec, gang->status).starts_with("Running");
}

class Groups : public testing::Test {
 protected:
  Groups() {
    cluster.server.Serve(lws_);
    Json set = kube::NewObject(lws_, {"train", "serve"});
    set["spec"] = {{"replicas", 2}, {"leaderWorkerTemplate", {{"size", 2}}}};
    uid = kube::Uid(cluster.server.Put(lws_, set));
  }
  void PutGroupPod(int group, int worker) {
    const std::string leader = "serve-" + std::to_string(group);
    const std::string mark = "leaderworkerset.sigs.k8s.io/";
    PutPod(cluster, worker == 0 ? leader : leader + "-" + std::to_string(worker),
           {{mark + "name", "serve"},
            {mark + "group-index", std::to_string(group)},
            {mark + "worker-index", std::to_string(worker)}},
           Controller("apps/v1", "StatefulSet", worker == 0 ? "serve" : leader, "set-" + leader));
  }
  bool RunningGroup(RunningExtender& extender, const std::string& title) {
    return extender.Until([&] {
      cluster.BindReleased();
      return Running(cluster, title);
    });
  }

  const kube::Resource lws_ = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet");
  Cluster cluster{kTwoUnits};
  std::string uid;
};

TEST_F(Groups, EachIsPlannedByItselfWhileTheOtherStillCollects) {
  RunningExtender extender(cluster);
  PutGroupPod(0, 0);
  PutGroupPod(0, 1);
  PutGroupPod(1, 0);
  ASSERT_TRUE(RunningGroup(extender, "serve/0"));
  const auto first = GangNamed(cluster, "serve/0");
  EXPECT_EQ(first->owners[0].uid, uid);
  ASSERT_TRUE(extender.Until([&] { return GangNamed(cluster, "serve/1").has_value(); }));
  EXPECT_EQ(cluster.Pod("serve-1")["spec"]["schedulingGates"].size(), 1u) << "one of two";
  PutGroupPod(1, 1);
  ASSERT_TRUE(RunningGroup(extender, "serve/1"));
  EXPECT_EQ(ReadPod(cluster.Pod("serve-1-1")).plan->rank, 1);
  EXPECT_NE(ReadPod(cluster.Pod("serve-0")).plan->node, ReadPod(cluster.Pod("serve-1")).plan->node);
}

TEST_F(Groups, ARemadeLeaderStartsAnotherAttempt) {
  RunningExtender extender(cluster);
  PutGroupPod(0, 0);
  PutGroupPod(0, 1);
  ASSERT_TRUE(RunningGroup(extender, "serve/0"));
  const auto before = GangNamed(cluster, "serve/0");
  for (const char* name : {"serve-0", "serve-0-1"}) cluster.server.Remove(kube::kPods, {"train", name});
  PutGroupPod(0, 0);
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "serve/0");
    return gang && gang->uid != before->uid;
  }));
  extender.Pass(std::chrono::seconds(5));
  EXPECT_FALSE(cluster.Pod("serve-0")["spec"]["schedulingGates"].empty()) << "all or nothing, as at first";
  PutGroupPod(0, 1);
  EXPECT_TRUE(RunningGroup(extender, "serve/0"));
}

TEST_F(Groups, ARemadeWorkerGetsItsSlotAtOnce) {
  RunningExtender extender(cluster);
  PutGroupPod(0, 0);
  PutGroupPod(0, 1);
  ASSERT_TRUE(RunningGroup(extender, "serve/0"));
  const auto before = ReadPod(cluster.Pod("serve-0-1")).plan;
  cluster.server.Remove(kube::kPods, {"train", "serve-0-1"});
  PutGroupPod(0, 1);
  ASSERT_TRUE(extender.Until([&] { return ReadPod(cluster.Pod("serve-0-1")).plan.has_value(); }));
  EXPECT_EQ(ReadPod(cluster.Pod("serve-0-1")).plan->node, before->node);
}

// They have one pod template, so each mounts the ConfigMap of the same name.
TEST_F(Groups, EachFindsItsOwnRanksInTheFileThatTheyShare) {
  for (int group : {0, 1}) {
    for (int worker : {0, 1}) PutGroupPod(group, worker);
  }
  for (const char* name : {"serve-0", "serve-0-1", "serve-1", "serve-1-1"}) {
    cluster.server.Edit(kube::kPods, {"train", name}, [](Json& pod) {
      pod["spec"]["containers"][0]["env"] = Json::array({{{"name", "PET_RDZV_BACKEND"}, {"value", "c10d"}}});
    });
  }
  RunningExtender extender(cluster);
  ASSERT_TRUE(RunningGroup(extender, "serve/0"));
  ASSERT_TRUE(RunningGroup(extender, "serve/1"));
  const auto file = cluster.server.Find(kube::kConfigMaps, {"train", "serve-heddle-ranks"});
  ASSERT_TRUE(file);
  for (const std::string group : {"0", "1"}) {
    const std::string ranks = kube::StringAt(*file, {"data", "ranks-" + group + ".tsv"});
    for (const std::string& pod : {"serve-" + group, "serve-" + group + "-1"})
      EXPECT_THAT(ranks, HasSubstr("\t" + pod + "\t" + ReadPod(cluster.Pod(pod)).plan->node + "\t"));
  }
  std::set<std::string> owners;
  for (const Json& owner : (*file)["metadata"]["ownerReferences"])
    owners.insert(kube::StringAt(owner, {"uid"}));
  EXPECT_EQ(owners,
            (std::set<std::string>{GangNamed(cluster, "serve/0")->uid, GangNamed(cluster, "serve/1")->uid}))
      << "it stays as long as one of them does";
}

TEST_F(Groups, EndWhenTheyAreScaledAwayOrTheirOwnerIsDeleted) {
  RunningExtender extender(cluster);
  for (int group : {0, 1}) {
    PutGroupPod(group, 0);
    PutGroupPod(group, 1);
  }
  ASSERT_TRUE(RunningGroup(extender, "serve/0"));
  ASSERT_TRUE(RunningGroup(extender, "serve/1"));
  cluster.server.Edit(lws_, {"train", "serve"}, [](Json& set) { set["spec"]["replicas"] = 1; });
  for (const char* name : {"serve-1", "serve-1-1"}) cluster.server.Remove(kube::kPods, {"train", name});
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "serve/1");
    return gang && crds::IsTrue(gang->status.conditions, crds::kEnded);
  }));
  EXPECT_EQ(GangNamed(cluster, "serve/1")->status.reason, "ScaledDown");
  EXPECT_TRUE(Running(cluster, "serve/0"));
  cluster.server.Remove(lws_, {"train", "serve"});
  EXPECT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "serve/0");
    return gang && crds::IsTrue(gang->status.conditions, crds::kEnded);
  }));
}

class Ray : public testing::Test {
 protected:
  Ray() {
    cluster.server.Serve(rays_);
    Json ray = kube::NewObject(rays_, {"train", "ray-x7z"});
    Json group = {{"groupName", "w"}, {"replicas", 2}};
    group["template"]["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=2";
    ray["spec"]["workerGroupSpecs"] = Json::array({group});
    ray["metadata"]["labels"]["ray.io/originated-from-cr-name"] = "job";
    ray["metadata"]["labels"]["ray.io/originated-from-crd"] = "RayJob";
    uid_ = kube::Uid(cluster.server.Put(rays_, ray));
  }
  void PutWorker(const std::string& name) {
    PutPod(cluster, name, {{"ray.io/cluster", "ray-x7z"}, {"ray.io/group", "w"}},
           Controller("ray.io/v1", "RayCluster", "ray-x7z", uid_));
  }
  std::string Ranks() const {
    const auto file = cluster.server.Find(kube::kConfigMaps, {"train", "job-heddle-ranks"});
    return file ? kube::StringAt(*file, {"data", "ranks.tsv"}) : "";
  }

  const kube::Resource rays_ = Kind("ray.io/v1", "RayCluster");
  Cluster cluster{kTwoUnits};

 private:
  std::string uid_;
};

TEST_F(Ray, GetsItsRanksInAConfigMapBeforeAnyPodIsLetGo) {
  RunningExtender extender(cluster);
  PutWorker("w-zz");
  PutWorker("w-aa");
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return Running(cluster, "ray-x7z");
  }));
  const std::string node = ReadPod(cluster.Pod("w-aa")).plan->node;
  EXPECT_THAT(Ranks(), HasSubstr("0\tw-aa\t" + node + "\t0,1,2,3,4,5,6,7\n"));
  EXPECT_EQ(ReadPod(cluster.Pod("w-zz")).plan->rank, 1);
  std::vector<std::string> lines;
  for (const auto& request : cluster.server.writes()) {
    if (request.plural == "configmaps" || request.plural == "pods") lines.push_back(request.Line());
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], HasSubstr("configmaps"));
  const auto gang = GangNamed(cluster, "ray-x7z");
  EXPECT_THAT(gang->status.explanation, Contains(HasSubstr("job-heddle-ranks")));
  const auto file = cluster.server.Find(kube::kConfigMaps, {"train", "job-heddle-ranks"});
  EXPECT_EQ((*file)["metadata"]["ownerReferences"][0]["uid"], gang->uid);
}

TEST_F(Ray, ARemadeWorkerTakesOverTheRankAndTheFileSaysSo) {
  RunningExtender extender(cluster);
  PutWorker("w-aa");
  PutWorker("w-zz");
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return Running(cluster, "ray-x7z");
  }));
  cluster.server.Remove(kube::kPods, {"train", "w-aa"});
  PutWorker("w-zzz");  // behind the other by name, and yet rank 0
  ASSERT_TRUE(extender.Until([&] { return ReadPod(cluster.Pod("w-zzz")).plan.has_value(); }));
  EXPECT_EQ(ReadPod(cluster.Pod("w-zzz")).plan->rank, 0);
  EXPECT_THAT(Ranks(), HasSubstr("0\tw-zzz\t"));
  EXPECT_THAT(Ranks(), Not(HasSubstr("w-aa")));
}

TEST_F(Ray, NeverOverwritesSomebodyElsesConfigMapAndSaysWhoseNameIsTaken) {
  Json theirs = kube::NewObject(kube::kConfigMaps, {"train", "job-heddle-ranks"});
  theirs["data"] = {{"mine", "1"}};
  cluster.server.Put(kube::kConfigMaps, theirs);
  RunningExtender extender(cluster);
  PutWorker("w-aa");
  PutWorker("w-zz");
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "ray-x7z");
    return gang && gang->status.reason == "NoRankFile";
  }));
  EXPECT_THAT(GangNamed(cluster, "ray-x7z")->status.message,
              HasSubstr("train/job-heddle-ranks is not Heddle's"));
  EXPECT_EQ((*cluster.server.Find(kube::kConfigMaps, {"train", "job-heddle-ranks"}))["data"]["mine"], "1");
  EXPECT_FALSE(ReadPod(cluster.Pod("w-aa")).plan) << "nothing starts with ranks that nobody can read";
  cluster.server.Remove(kube::kConfigMaps, {"train", "job-heddle-ranks"});
  EXPECT_TRUE(extender.Until([&] { return ReadPod(cluster.Pod("w-aa")).plan.has_value(); },
                             std::chrono::minutes(10)));
}

// Both would keep their ranks in job-heddle-ranks, and the second would start the first one's processes elsewhere.
TEST_F(Ray, NeverTakesTheFileOfALivingGangOfAnotherKindAndTakesItWhenThatHasEnded) {
  RunningExtender extender(cluster);
  PutWorker("w-aa");
  PutWorker("w-zz");
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return Running(cluster, "ray-x7z");
  }));
  const std::string before = Ranks();
  const kube::Resource jobs = Kind("kubeflow.org/v2beta1", "MPIJob");
  cluster.server.Serve(jobs);
  Json job = kube::NewObject(jobs, {"train", "job"});
  Json worker = {{"replicas", 2}};
  worker["template"]["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=2";
  job["spec"]["mpiReplicaSpecs"] = {{"Launcher", Json::object()}, {"Worker", worker}};
  const std::string uid = kube::Uid(cluster.server.Put(jobs, job));
  const std::string mark = "training.kubeflow.org/";
  for (int i = 0; i < 2; ++i) {
    PutPod(cluster, "job-worker-" + std::to_string(i),
           {{mark + "job-name", "job"},
            {mark + "job-role", "worker"},
            {mark + "replica-index", std::to_string(i)}},
           Controller("kubeflow.org/v2beta1", "MPIJob", "job", uid));
  }
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "job");
    return gang && gang->status.reason == "NoRankFile";
  }));
  EXPECT_THAT(GangNamed(cluster, "job")->status.message,
              HasSubstr("holds the ranks of the gang " + GangNamed(cluster, "ray-x7z")->name));
  EXPECT_EQ(Ranks(), before);
  EXPECT_FALSE(ReadPod(cluster.Pod("job-worker-0")).plan);
  cluster.server.Remove(rays_, {"train", "ray-x7z"});
  for (const char* name : {"w-aa", "w-zz"}) cluster.server.Remove(kube::kPods, {"train", name});
  EXPECT_TRUE(extender.Until([&] { return ReadPod(cluster.Pod("job-worker-0")).plan.has_value(); },
                             std::chrono::minutes(10)));
  EXPECT_THAT(Ranks(), HasSubstr("job-worker-1"));
}

// The RayJob's cluster is of the same kind, but goes by another name than its file.
TEST_F(Ray, NeverTakesTheFileOfARayJobForAClusterThatHasTheRayJobsName) {
  RunningExtender extender(cluster);
  PutWorker("w-aa");
  PutWorker("w-zz");
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return Running(cluster, "ray-x7z");
  }));
  const std::string before = Ranks();
  Json other = *cluster.server.Find(rays_, {"train", "ray-x7z"});
  other["metadata"] = {{"namespace", "train"}, {"name", "job"}};
  const std::string uid = kube::Uid(cluster.server.Put(rays_, other));
  for (const char* name : {"v-aa", "v-zz"}) {
    PutPod(cluster, name, {{"ray.io/cluster", "job"}, {"ray.io/group", "w"}},
           Controller("ray.io/v1", "RayCluster", "job", uid));
  }
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "job");
    return gang && gang->status.reason == "NoRankFile";
  }));
  EXPECT_EQ(Ranks(), before);
}

class LonePods : public testing::Test {
 protected:
  void Put(const std::string& name, int rank) {
    PutPod(cluster, name,
           {{"heddle.dev/gang-name", "train"},
            {"heddle.dev/gang-size", "2"},
            {"heddle.dev/gang-rank", std::to_string(rank)}},
           nullptr);
  }
  bool Starts(RunningExtender& extender) {
    return extender.Until([&] {
      cluster.BindReleased();
      return Running(cluster, "train");
    });
  }
  Cluster cluster{kTwoUnits};
};

TEST_F(LonePods, AreAGangByTheirLabelsAndItGoesWithTheLastOfThem) {
  RunningExtender extender(cluster);
  Put("b", 0);
  Put("a", 1);
  ASSERT_TRUE(Starts(extender));
  EXPECT_EQ(ReadPod(cluster.Pod("b")).plan->rank, 0);
  EXPECT_THAT(GangNamed(cluster, "train")->owners, IsEmpty())
      << "no pod of them outlives the others for sure";
  EXPECT_THAT(cluster.server.All(kube::kConfigMaps), IsEmpty());
  for (const char* name : {"a", "b"}) cluster.server.Remove(kube::kPods, {"train", name});
  EXPECT_TRUE(extender.Until([&] { return GangNames(cluster).empty(); }));
}

TEST_F(LonePods, MayUseTheNameAgain) {
  RunningExtender extender(cluster);
  Put("a", 0);
  Put("b", 1);
  ASSERT_TRUE(Starts(extender));
  for (const char* name : {"a", "b"}) {
    cluster.server.Edit(kube::kPods, {"train", name},
                        [](Json& pod) { pod["status"]["phase"] = "Succeeded"; });
  }
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = GangNamed(cluster, "train");
    return gang && crds::IsTrue(gang->status.conditions, crds::kEnded);
  }));
  Put("c", 0);
  Put("d", 1);
  EXPECT_TRUE(Starts(extender));
}

// As an earlier version named it, which told titles apart by less.
TEST_F(LonePods, WaitForAnotherGangThatHasTheNameOfTheirs) {
  PutPod(cluster, "o", {{"heddle.dev/gang-name", "other"}, {"heddle.dev/gang-size", "3"}}, nullptr);
  crds::Gang other;
  other.ns = "train";
  other.name = "train-pods-0";
  other.spec.owner = {"v1", "Pod", "o", "o-uid"};
  other.spec.group = "Pods/other";
  other.spec.pods = 3;
  other.spec.gpus_per_pod = 8;
  other.spec.gpu_resource = "nvidia.com/gpu";
  cluster.server.Put(kGangs, crds::ToJson(other));
  std::atomic<int> writes = 0;
  cluster.server.Intercept([&writes](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.plural == "gangs" && request.method == "POST") ++writes;
    return std::nullopt;
  });
  RunningExtender extender(cluster);
  Put("a", 0);
  Put("b", 1);
  ASSERT_TRUE(extender.Until([&] { return writes > 0; }));
  extender.Pass(std::chrono::seconds(5));
  EXPECT_LT(writes.load(), 50) << "each try later than the one before";
  EXPECT_EQ(GangNames(cluster), std::vector<std::string>{"train-pods-0"});
  cluster.server.Remove(kube::kPods, {"train", "o"});
  EXPECT_TRUE(Starts(extender));
}

TEST(PassedTheGate, IsToldOnceToTheOwnerOfThePods) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  ASSERT_TRUE(extender.Until([&] { return extender.controller().ready(); }));
  cluster.Submit({.pods = 3, .parallelism = "tp=8,dp=3", .pod_spec = {{"schedulingGates", nullptr}}});
  const auto told = [&] {
    int count = 0;
    for (const Json& event : cluster.server.All(kube::kEvents)) {
      if (kube::StringAt(event, {"reason"}) == "NotGated")
        count += int(kube::IntAt(event, {"count"}).value_or(1));
    }
    return count;
  };
  ASSERT_TRUE(extender.Until([&] { return told() > 0; }));
  extender.Pass(std::chrono::seconds(10));
  EXPECT_EQ(told(), 1);
  EXPECT_THAT(GangNames(cluster), IsEmpty());
}

class NativeGroup : public testing::TestWithParam<const char*> {};

TEST_P(NativeGroup, IsAGangInWhicheverVersionTheClusterServesIt) {
  Cluster cluster(kTwoUnits);
  const kube::Resource& groups = Kind(GetParam(), "PodGroup");
  cluster.server.Serve(groups);
  Json group = kube::NewObject(groups, {"train", "native"});
  group["spec"] = {{"schedulingPolicy", {{"gang", {{"minCount", 2}}}}}};
  const std::string uid = kube::Uid(cluster.server.Put(groups, group));
  RunningExtender extender(cluster);
  for (const char* name : {"a", "b"}) {
    PutPod(cluster, name, Json::object(), nullptr);
    cluster.server.Edit(kube::kPods, {"train", name}, [](Json& pod) {
      pod["spec"]["schedulingGroup"] = {{"podGroupName", "native"}};
    });
  }
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return Running(cluster, "native");
  })) << GetParam();
  const auto gang = GangNamed(cluster, "native");
  EXPECT_EQ(gang->spec.owner, (crds::GangOwner{GetParam(), "PodGroup", "native", uid}));
  cluster.server.Remove(groups, {"train", "native"});
  for (const char* name : {"a", "b"}) cluster.server.Remove(kube::kPods, {"train", name});
  EXPECT_TRUE(extender.Until([&] {
    const auto ended = GangNamed(cluster, "native");
    return !ended || crds::IsTrue(ended->status.conditions, crds::kEnded);
  }));
}
INSTANTIATE_TEST_SUITE_P(Versions, NativeGroup,
                         testing::Values("scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"),
                         [](const auto& one) { return std::string(one.param).substr(18); });

}  // namespace
}  // namespace heddle::extender
