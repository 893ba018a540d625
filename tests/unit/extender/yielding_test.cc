#include "extender/yielding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/keys.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using ::testing::HasSubstr;
namespace keys = crds::keys;

Json Object(const std::string& api_version, const std::string& kind, const std::string& name) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata",
           {{"name", name}, {"namespace", "train"}, {"uid", name + "-uid"}, {"resourceVersion", "5"}}},
          {"spec", Json::object()}};
}

OwnerChain Chain(std::vector<Json> objects) {
  OwnerChain chain;
  for (Json& object : objects) chain.owners.push_back(test::Share(std::move(object)));
  return chain;
}

struct KindCase {
  const char *api_version, *kind;
  Yield::By by;
};

TEST(HowToYield, KnowsEachKindsSwitchOrItsAbsence) {
  using By = Yield::By;
  for (const KindCase& one : {KindCase{"batch/v1", "Job", By::kSuspension},
                              {"jobset.x-k8s.io/v1alpha2", "JobSet", By::kSuspension},
                              {"kubeflow.org/v1", "PyTorchJob", By::kSuspension},
                              {"kubeflow.org/v2beta1", "MPIJob", By::kSuspension},
                              {"ray.io/v1", "RayCluster", By::kSuspension},
                              {"apps/v1", "StatefulSet", By::kEviction},
                              {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", By::kEviction},
                              {"scheduling.k8s.io/v1alpha2", "PodGroup", By::kNothing}}) {
    const Yield yield = HowToYield(Chain({Object(one.api_version, one.kind, "a")}), {});
    EXPECT_EQ(yield.by, one.by) << one.kind;
    EXPECT_EQ(yield.why_not.empty(), one.by != By::kNothing) << one.kind << ": " << yield.why_not;
  }
}

TEST(HowToYield, TakesTheOutermostOwner) {
  const Yield train = HowToYield(Chain({Object("jobset.x-k8s.io/v1alpha2", "JobSet", "inner"),
                                        Object("trainer.kubeflow.org/v1alpha1", "TrainJob", "outer")}),
                                 {});
  ASSERT_EQ(train.by, Yield::By::kSuspension);
  EXPECT_EQ(kube::Name(*train.owner), "outer");
  const Yield ray = HowToYield(
      Chain({Object("ray.io/v1", "RayCluster", "inner"), Object("ray.io/v1", "RayJob", "outer")}), {});
  ASSERT_EQ(ray.by, Yield::By::kSuspension);
  EXPECT_EQ(kube::Name(*ray.owner), "outer");
}

TEST(HowToYield, LeavesAloneWhatAnotherControllerMightStartAgain) {
  OwnerChain chain = Chain({Object("batch/v1", "Job", "step")});
  chain.unknown = {"argoproj.io/v1alpha1", "Workflow", "nightly", "u", true};
  const Yield yield = HowToYield(chain, {});
  EXPECT_EQ(yield.by, Yield::By::kNothing);
  EXPECT_THAT(yield.why_not, HasSubstr("belongs to the Workflow nightly"));
  chain.unknown = {"batch/v1", "CronJob", "hourly", "u", true};
  EXPECT_EQ(HowToYield(chain, {}).by, Yield::By::kSuspension)
      << "a CronJob makes Jobs and does not look after them";
}

TEST(HowToYield, LeavesToKueueWhatIsKueues) {
  Json labelled = Object("batch/v1", "Job", "a");
  labelled["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "team"}};
  EXPECT_THAT(HowToYield(Chain({labelled}), {}).why_not, HasSubstr("Job train/a is queued by Kueue"));
  Json managed = Object("jobset.x-k8s.io/v1alpha2", "JobSet", "b");
  managed["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  EXPECT_EQ(HowToYield(Chain({managed}), {}).by, Yield::By::kNothing);
  // The outermost owner carries the label, or its pods do.
  EXPECT_EQ(HowToYield(Chain({Object("jobset.x-k8s.io/v1alpha2", "JobSet", "c"), labelled}), {}).by,
            Yield::By::kNothing);
  Json pod = test::GatedPod(0);
  pod["metadata"]["labels"]["kueue.x-k8s.io/managed"] = "true";
  const Yield of_pods = HowToYield(Chain({Object("batch/v1", "Job", "d")}), {test::Cached(pod)});
  EXPECT_EQ(of_pods.by, Yield::By::kNothing);
  EXPECT_THAT(of_pods.why_not, HasSubstr("Pod train/job-0 is queued by Kueue"));
}

TEST(HowToYield, NeverTouchesWhatAPersonSuspendedResumedOrDeletes) {
  Json suspended = Object("batch/v1", "Job", "a");
  suspended["spec"]["suspend"] = true;
  EXPECT_THAT(HowToYield(Chain({suspended}), {}).why_not, HasSubstr("suspended already"));
  EXPECT_FALSE(SuspendedByUs(suspended));
  Json resumed = Object("batch/v1", "Job", "a");
  resumed["metadata"]["annotations"] = {{keys::kPreemptedBy, "train/urgent"}};
  EXPECT_TRUE(ResumedByHand(resumed));
  EXPECT_THAT(HowToYield(Chain({resumed}), {}).why_not, HasSubstr("resumed Job train/a by hand"));
  Json deleting = Object("batch/v1", "Job", "a");
  deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(HowToYield(Chain({deleting}), {}).why_not, HasSubstr("being deleted"));
  EXPECT_THAT(HowToYield(OwnerChain{}, {}).why_not, HasSubstr("nobody would make its pods again"));
}

TEST(HowToYield, EvictsALonePodThatSomebodyMakesAgainOrNobodyOwns) {
  Json pod = test::GatedPod(0);
  const auto owned_by = [&pod](const char* api_version, const char* kind) {
    pod["metadata"]["ownerReferences"] = Json::array(
        {{{"apiVersion", api_version}, {"kind", kind}, {"name", "a"}, {"uid", "u"}, {"controller", true}}});
    return HowToYield(pod);
  };
  EXPECT_EQ(owned_by("apps/v1", "ReplicaSet").by, Yield::By::kEviction);
  EXPECT_EQ(owned_by("apps/v1", "StatefulSet").by, Yield::By::kEviction);
  EXPECT_EQ(owned_by("apps/v1", "DaemonSet").by, Yield::By::kNothing);
  EXPECT_THAT(owned_by("batch/v1", "Job").why_not, HasSubstr("its Job a is no gang"));
  pod["metadata"].erase("ownerReferences");
  EXPECT_EQ(HowToYield(pod).by, Yield::By::kEviction);
  pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team";
  EXPECT_EQ(HowToYield(pod).by, Yield::By::kNothing);
}

TEST(SuspendPatch, SetsTheKindsSwitchAndSaysForWhomInOnePatch) {
  Json job = Object("batch/v1", "Job", "a");
  const Json patch = SuspendPatch(job, "train/urgent-1", "gang-owner", std::nullopt);
  EXPECT_EQ(patch["metadata"]["resourceVersion"], "5");
  EXPECT_EQ(patch["metadata"]["uid"], "a-uid");
  job.merge_patch(patch);
  EXPECT_TRUE(SuspendedByUs(job));
  EXPECT_EQ(kube::Annotation(job, keys::kPreemptedGang), "gang-owner");
  EXPECT_FALSE(kube::Annotation(job, keys::kRestartedAt));
  job.merge_patch(ResumePatch(job));
  EXPECT_FALSE(IsSuspended(job));
  EXPECT_FALSE(kube::Annotation(job, keys::kPreemptedBy));
  EXPECT_FALSE(kube::Annotation(job, keys::kPreemptedGang));
}

TEST(SuspendPatch, UsesTheRunPolicyOfKubeflowsKindsAndKeepsTheTimeOfARestart) {
  Json job = Object("kubeflow.org/v1", "PyTorchJob", "a");
  job["spec"]["runPolicy"] = {{"cleanPodPolicy", "None"}};
  job.merge_patch(SuspendPatch(job, "train/a", "a-uid", base::ParseTime("2026-01-31T12:00:00Z")));
  EXPECT_EQ(job["spec"]["runPolicy"], Json({{"cleanPodPolicy", "None"}, {"suspend", true}}));
  EXPECT_FALSE(job["spec"].contains("suspend"));
  job.merge_patch(ResumePatch(job));
  EXPECT_EQ(job["spec"]["runPolicy"]["suspend"], false);
  EXPECT_FALSE(job["spec"].contains("suspend"));
  EXPECT_EQ(kube::Annotation(job, keys::kRestartedAt), "2026-01-31T12:00:00Z");
}

TEST(CheckpointOf, IsTheNewestThatAnybodyTellsAndNeverLaterThanNow) {
  const base::WallTime now = *base::ParseTime("2026-01-31T12:00:00Z");
  Json job = Object("batch/v1", "Job", "a"), pod = test::GatedPod(0);
  EXPECT_FALSE(CheckpointOf(Chain({job}), {test::Cached(pod)}, now));
  job["metadata"]["annotations"] = {{keys::kCheckpoint, "2026-01-31T11:00:00Z"}};
  pod["metadata"]["annotations"][keys::kCheckpoint] = "2026-01-31T11:30:00Z";
  EXPECT_EQ(CheckpointOf(Chain({job}), {test::Cached(pod)}, now), base::ParseTime("2026-01-31T11:30:00Z"));
  pod["metadata"]["annotations"][keys::kCheckpoint] = "2027-01-31T11:30:00Z";
  EXPECT_EQ(CheckpointOf(Chain({job}), {test::Cached(pod)}, now), now);
  pod["metadata"]["annotations"][keys::kCheckpoint] = "yesterday";
  EXPECT_EQ(CheckpointOf(Chain({job}), {test::Cached(pod)}, now), base::ParseTime("2026-01-31T11:00:00Z"));
}

}  // namespace
}  // namespace heddle::extender
