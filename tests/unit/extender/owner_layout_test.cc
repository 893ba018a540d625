#include "extender/owner_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/owner_kinds.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::GatedPod;
using testing::HasSubstr;
using testing::IsEmpty;

Json Owner(std::string api_version, std::string kind, Json spec) {
  return {{"apiVersion", std::move(api_version)},
          {"kind", std::move(kind)},
          {"metadata", {{"name", "train"}, {"namespace", "train"}, {"uid", "owner-uid"}}},
          {"spec", std::move(spec)}};
}

Json PodWith(Json labels) {
  Json pod = GatedPod(0);
  pod["metadata"]["labels"] = std::move(labels);
  return pod;
}

Json StatefulSet(Json spec) {
  spec.emplace("podManagementPolicy", "Parallel");
  return Owner("apps/v1", "StatefulSet", std::move(spec));
}

TEST(StatefulSetLayout, RanksAreOrdinals) {
  const OwnerLayout layout = ReadLayout(StatefulSet({{"replicas", 4}}));
  ASSERT_FALSE(layout.refusal) << layout.refusal->sentence;
  EXPECT_EQ(layout.pods, 4);
  EXPECT_EQ(layout.RankOf(PodWith({{"apps.kubernetes.io/pod-index", "3"}})), 3);
  EXPECT_EQ(layout.RankOf(PodWith({{"batch.kubernetes.io/job-completion-index", "3"}})), std::nullopt);
}

TEST(StatefulSetLayout, OrdinalsMayStartElsewhere) {
  const OwnerLayout layout = ReadLayout(StatefulSet({{"replicas", 2}, {"ordinals", {{"start", 5}}}}));
  EXPECT_EQ(layout.RankOf(PodWith({{"apps.kubernetes.io/pod-index", "6"}})), 1);
  EXPECT_EQ(layout.RankOf(PodWith({{"apps.kubernetes.io/pod-index", "4"}})), -1) << "out of range";
}

TEST(StatefulSetLayout, OneThatMakesItsPodsOneByOneIsRefusedWithWhatToSet) {
  const OwnerLayout layout = ReadLayout(Owner("apps/v1", "StatefulSet", {{"replicas", 4}}));
  ASSERT_TRUE(layout.refusal);
  EXPECT_EQ(layout.refusal->reason, "OneByOne");
  EXPECT_THAT(layout.refusal->sentence, HasSubstr("podManagementPolicy: Parallel"));
}

Json PyTorchJob(Json replicas) {
  return Owner("kubeflow.org/v1", "PyTorchJob", {{"pytorchReplicaSpecs", std::move(replicas)}});
}
Json Replica(const std::string& type, int index) {
  return PodWith({{"training.kubeflow.org/replica-type", type},
                  {"training.kubeflow.org/replica-index", std::to_string(index)}});
}

TEST(PyTorchJobLayout, TheMasterIsRankZeroAndWorkersFollow) {
  const OwnerLayout layout =
      ReadLayout(PyTorchJob({{"Master", {{"replicas", 1}}}, {"Worker", {{"replicas", 7}}}}));
  ASSERT_FALSE(layout.refusal);
  EXPECT_EQ(layout.pods, 8);
  EXPECT_EQ(layout.RankOf(Replica("master", 0)), 0);
  EXPECT_EQ(layout.RankOf(Replica("worker", 0)), 1);
  EXPECT_EQ(layout.RankOf(Replica("worker", 6)), 7);
  EXPECT_EQ(layout.RankOf(Replica("worker", 7)), 8) << "out of range, and not another's";
  EXPECT_EQ(layout.RankOf(Replica("evaluator", 0)), std::nullopt);
  EXPECT_THAT(layout.notes, IsEmpty());
}

TEST(PyTorchJobLayout, OneReplicaEachIsTheDefault) {
  EXPECT_EQ(ReadLayout(PyTorchJob({{"Master", Json::object()}, {"Worker", Json::object()}})).pods, 2);
}

TEST(PyTorchJobLayout, WithoutAMasterNobodySaysARank) {
  const OwnerLayout layout = ReadLayout(PyTorchJob({{"Worker", {{"replicas", 4}}}}));
  EXPECT_TRUE(layout.own_ranks);
  EXPECT_FALSE(layout.elastic);
  EXPECT_FALSE(ReadLayout(PyTorchJob({{"Master", Json::object()}, {"Worker", Json::object()}})).own_ranks);
}

Json Replicated(const char* name, bool wants, const char* after = nullptr) {
  Json job{{"name", name}, {"replicas", 2}};
  job["template"]["spec"] = {{"completionMode", "Indexed"}, {"completions", 4}, {"parallelism", 4}};
  if (wants) {
    job["template"]["spec"]["template"]["metadata"]["annotations"] = {
        {"heddle.dev/parallelism", "tp=8,dp=16"}};
  }
  if (after != nullptr) job["dependsOn"] = Json::array({{{"name", after}, {"status", "Ready"}}});
  return job;
}

// The first one's pods wait at the gate for the second one's, which are never made.
TEST(JobSetLayout, IsRefusedWhereOneOfItsJobsWaitsForAnother) {
  const auto read = [](Json jobs, Json policy = Json::object()) {
    return ReadLayout(Owner("jobset.x-k8s.io/v1alpha2", "JobSet",
                            {{"replicatedJobs", std::move(jobs)}, {"startupPolicy", std::move(policy)}}));
  };
  const Json in_order{{"startupPolicyOrder", "InOrder"}}, any{{"startupPolicyOrder", "AnyOrder"}};
  const Json both = Json::array({Replicated("a", true), Replicated("b", true)});
  EXPECT_FALSE(read(both).refusal);
  EXPECT_FALSE(read(both, any).refusal);
  ASSERT_TRUE(read(both, in_order).refusal);
  EXPECT_EQ(read(both, in_order).refusal->reason, "StartsInOrder");
  EXPECT_THAT(read(both, in_order).refusal->sentence, HasSubstr("startupPolicyOrder: AnyOrder"));
  const auto waits = read(Json::array({Replicated("a", true), Replicated("b", true, "a")}));
  ASSERT_TRUE(waits.refusal);
  EXPECT_THAT(waits.refusal->sentence, HasSubstr("makes replicated job b only after a"));
  // Of the gang only one waits, for somebody else, who starts.
  EXPECT_FALSE(
      read(Json::array({Replicated("data", false), Replicated("train", true, "data")}), in_order).refusal);
  EXPECT_FALSE(read(Json::array({Replicated("a", true), Replicated("check", false, "a")}), in_order).refusal);
}

TEST(PyTorchJobLayout, AnElasticJobRanksItsProcessesItself) {
  Json owner = PyTorchJob({{"Worker", {{"replicas", 4}}}});
  owner["spec"]["elasticPolicy"] = {{"maxReplicas", 8}};
  const OwnerLayout layout = ReadLayout(owner);
  EXPECT_EQ(layout.RankOf(Replica("worker", 3)), 3);
  EXPECT_TRUE(layout.elastic && layout.own_ranks);
}

TEST(MpiJobLayout, WorkersAreTheGangAndTheLauncherIsNot) {
  const OwnerLayout layout =
      ReadLayout(Owner("kubeflow.org/v2beta1", "MPIJob",
                       {{"mpiReplicaSpecs", {{"Launcher", Json::object()}, {"Worker", {{"replicas", 4}}}}}}));
  ASSERT_FALSE(layout.refusal);
  EXPECT_EQ(layout.pods, 4);
  EXPECT_EQ(layout.RankOf(PodWith({{"training.kubeflow.org/job-role", "worker"},
                                   {"training.kubeflow.org/replica-index", "2"}})),
            2);
  EXPECT_EQ(layout.RankOf(PodWith({{"training.kubeflow.org/job-role", "launcher"},
                                   {"training.kubeflow.org/replica-index", "0"}})),
            std::nullopt);
}

Json MpiJob(Json spec, bool launcher_in_gang) {
  const Json said = {{"metadata", {{"annotations", {{"heddle.dev/parallelism", "tp=8,dp=5"}}}}}};
  spec["mpiReplicaSpecs"] = {{"Launcher", {{"template", launcher_in_gang ? said : Json::object()}}},
                             {"Worker", {{"replicas", 4}, {"template", said}}}};
  return Owner("kubeflow.org/v2beta1", "MPIJob", std::move(spec));
}

TEST(MpiJobLayout, ALauncherThatWorksIsRank0AndTheWorkersFollow) {
  const OwnerLayout layout = ReadLayout(MpiJob({{"runLauncherAsWorker", true}}, true));
  ASSERT_FALSE(layout.refusal) << layout.refusal->sentence;
  EXPECT_EQ(layout.pods, 5);
  Json launcher = PodWith({{"training.kubeflow.org/job-role", "launcher"}});
  EXPECT_EQ(layout.RankOf(launcher), 0);
  // By its name: the label replica-index is 3 or 4, by the operator's version.
  Json worker = PodWith({{"training.kubeflow.org/job-role", "worker"}});
  worker["metadata"]["name"] = "mpi-worker-3";
  EXPECT_EQ(layout.RankOf(worker), 4);
  for (const char* name : {"worker", "mpi-worker-", "mpi-worker-x", "mpi-worker-99999999999999999999", ""}) {
    worker["metadata"]["name"] = name;
    EXPECT_EQ(layout.RankOf(worker), std::nullopt) << name;
  }
}

TEST(MpiJobLayout, ALauncherThatIsInTheGangAndNoWorkerOrTheOtherWayRoundIsRefusedWithWhatToWrite) {
  const OwnerLayout idle = ReadLayout(MpiJob(Json::object(), true));
  ASSERT_TRUE(idle.refusal);
  EXPECT_EQ(idle.refusal->reason, "LauncherIsNoWorker");
  EXPECT_THAT(idle.refusal->sentence, HasSubstr("runLauncherAsWorker: true"));
  const OwnerLayout outside = ReadLayout(MpiJob({{"runLauncherAsWorker", true}}, false));
  ASSERT_TRUE(outside.refusal);
  EXPECT_EQ(outside.refusal->reason, "LauncherIsWorker");
  EXPECT_THAT(outside.refusal->sentence, HasSubstr("heddle.dev/parallelism"));
  EXPECT_FALSE(ReadLayout(MpiJob(Json::object(), false)).refusal);
}

TEST(MpiJobLayout, ALauncherThatWorksAndWaitsForTheWorkersIsRefusedWithWhatToSet) {
  Json spec = {{"runLauncherAsWorker", true}, {"launcherCreationPolicy", "WaitForWorkersReady"}};
  const OwnerLayout layout = ReadLayout(MpiJob(std::move(spec), true));
  ASSERT_TRUE(layout.refusal);
  EXPECT_THAT(layout.refusal->sentence, HasSubstr("launcherCreationPolicy: AtStartup"));
  EXPECT_FALSE(ReadLayout(MpiJob({{"launcherCreationPolicy", "WaitForWorkersReady"}}, false)).refusal);
}

TEST(MpiJobLayout, NumbersBeyondAllBoundsAreRefusedAndOverflowNothing) {
  Json owner = MpiJob({{"runLauncherAsWorker", true}}, true);
  owner["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = INT64_MAX;
  EXPECT_EQ(ReadLayout(owner).refusal->reason, "TooManyPods");
}

TEST(OwnerLayout, OtherKindsAndVersionsAreRefusedByNameWithThoseThatWork) {
  for (const char* version : {"ray.io/v1", "kubeflow.org/v9"}) {
    const OwnerLayout layout = ReadLayout(Owner(version, "PyTorchJobs", Json::object()));
    ASSERT_TRUE(layout.refusal);
    EXPECT_EQ(layout.refusal->reason, "UnsupportedOwner");
    EXPECT_THAT(layout.refusal->sentence, HasSubstr("MPIJobs"));
  }
}

TEST(OwnerLayout, AnOwnerThatMakesNothingIsRefused) {
  EXPECT_EQ(ReadLayout(StatefulSet({{"replicas", 0}})).refusal->reason, "NoPods");
  EXPECT_EQ(ReadLayout(PyTorchJob(Json::object())).refusal->reason, "NoPods");
  EXPECT_EQ(ReadLayout(PyTorchJob({{"Worker", {{"replicas", -3}}}})).refusal->reason, "NoPods");
}

TEST(OwnerLayout, EveryKindHasItsOwnReader) {
  for (const OwnerKind& kind : OwnerKinds()) {
    EXPECT_EQ(OwnerKindOf(kind.resource.ApiVersion(), kind.resource.kind), &kind);
    EXPECT_THAT(OwnerKindWords(), HasSubstr(kind.resource.kind));
  }
}

TEST(OwnerState, KubeflowJobsEndAndSuspendInTheirOwnWords) {
  const GangKey key{"train", "owner-uid", 0};
  Json owner = PyTorchJob({{"Worker", {{"replicas", 4}}}});
  EXPECT_EQ(ReadOwnerState(owner, key), OwnerState::kActive);
  owner["spec"]["runPolicy"]["suspend"] = true;
  EXPECT_EQ(ReadOwnerState(owner, key), OwnerState::kSuspended);
  owner["status"]["conditions"] = Json::array({{{"type", "Succeeded"}, {"status", "True"}}});
  EXPECT_EQ(ReadOwnerState(owner, key), OwnerState::kFinished);
}

TEST(RanksDone, AreAJobsCompletedIndexes) {
  const auto done = [](const char* words, std::int64_t pods) {
    Json job = test::IndexedJob(int(pods));
    job["apiVersion"] = "batch/v1";
    job["kind"] = "Job";
    job["status"]["completedIndexes"] = words;
    return ReadRanksDone(job, pods);
  };
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(done("0-3,7", 8), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(done("5", 8), ElementsAre(5));
  EXPECT_THAT(done("", 8), IsEmpty());
  EXPECT_THAT(done("6-9223372036854775807", 8), ElementsAre(6, 7)) << "no more ranks than there are pods";
  EXPECT_THAT(done("-1,3-1,x,2-x,99999999999999999999,,4-,1", 8), ElementsAre(1));
  EXPECT_THAT(done("0-3", 0), IsEmpty());
  EXPECT_THAT(ReadRanksDone(test::IndexedJob(2), 2), IsEmpty());
}

// A Job of a JobSet of two kinds of Jobs, "a" of 2 × 3 pods and "b" of 1 × 2, behind one that is no part of the gang.
std::shared_ptr<const Json> JobOf(const char* replicated, const char* number, Json status) {
  Json job = test::IndexedJob(3, std::string("job-") + replicated + number);
  job["metadata"]["labels"] = {{jobset::kReplicatedJob, replicated}, {jobset::kJobIndex, number}};
  job["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", jobset::kApiVersion},
                                                     {"kind", "JobSet"},
                                                     {"name", "train"},
                                                     {"uid", "owner-uid"},
                                                     {"controller", true}}});
  job["status"] = std::move(status);
  return test::Share(std::move(job));
}
std::set<int> DoneOf(const std::vector<std::shared_ptr<const Json>>& jobs, std::int64_t pods = 8) {
  const auto replicated = [](const char* name, int replicas, int size) {
    Json one{{"name", name}, {"replicas", replicas}};
    one["template"]["spec"] = {{"completionMode", "Indexed"}, {"completions", size}, {"parallelism", size}};
    if (std::string_view(name) != "driver") {
      one["template"]["spec"]["template"]["metadata"]["annotations"] = {
          {std::string(crds::keys::kParallelism), "tp=8,dp=8"}};
    }
    return one;
  };
  const Json set =
      Owner("jobset.x-k8s.io/v1alpha2", "JobSet",
            {{"replicatedJobs",
              Json::array({replicated("driver", 1, 1), replicated("a", 2, 3), replicated("b", 1, 2)})}});
  return ReadRanksDone(set, pods, jobs);
}

TEST(RanksDone, OfAJobSetAreThoseThatItsJobsSay) {
  using testing::ElementsAre;
  const Json complete{{"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}};
  EXPECT_THAT(DoneOf({}), IsEmpty());
  EXPECT_THAT(
      DoneOf({JobOf("a", "0", {{"completedIndexes", "1"}}), JobOf("a", "1", {{"completedIndexes", "0-1"}})}),
      ElementsAre(1, 3, 4));
  EXPECT_THAT(DoneOf({JobOf("b", "0", complete)}), ElementsAre(6, 7))
      << "its successPolicy asked for no more";
  EXPECT_THAT(DoneOf({JobOf("b", "0", complete)}, 7), ElementsAre(6));
  for (const auto& other :
       {JobOf("driver", "0", complete), JobOf("c", "0", complete), JobOf("a", "2", complete),
        JobOf("a", "x", complete), JobOf("a", "0", {{"completedIndexes", "3-5"}})}) {
    EXPECT_THAT(DoneOf({other}), IsEmpty()) << *other;
  }
  Json leaving = *JobOf("a", "0", complete);
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_THAT(DoneOf({test::Share(leaving)}), IsEmpty()) << "it is made anew, with all its pods";
}

TEST(GangOfChildJob, IsOfTheJobSetsAttemptThatTheJobWasMadeIn) {
  Json job = *JobOf("a", "0", Json::object());
  EXPECT_EQ(GangOfChildJob(job), (GangKey{"train", "owner-uid", 0}));
  job["metadata"]["labels"][std::string(jobset::kAttempt)] = "2";
  EXPECT_EQ(GangOfChildJob(job), (GangKey{"train", "owner-uid", 2}));
  job["metadata"]["ownerReferences"][0]["kind"] = "CronJob";
  EXPECT_EQ(GangOfChildJob(job), std::nullopt);
  job["metadata"].erase("ownerReferences");
  EXPECT_EQ(GangOfChildJob(job), std::nullopt) << "people can write any label";
}

TEST(GangOfOwner, WhatAnotherOwnerMadeIsNoGangAlone) {
  Json launcher = Owner("batch/v1", "Job", Json::object());
  EXPECT_TRUE(GangOfOwner(launcher));
  launcher["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "kubeflow.org/v2beta1"},
                                                          {"kind", "MPIJob"},
                                                          {"name", "train"},
                                                          {"uid", "mpi-uid"},
                                                          {"controller", true}}});
  EXPECT_FALSE(GangOfOwner(launcher));
  launcher["metadata"]["ownerReferences"][0]["kind"] = "CronJob";
  launcher["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1";
  EXPECT_TRUE(GangOfOwner(launcher)) << "a CronJob makes one gang after the other";
}

}  // namespace
}  // namespace heddle::extender
