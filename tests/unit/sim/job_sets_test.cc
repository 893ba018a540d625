// JobSets, queues and disks of the simulated cluster, in good weather but for what each scene is about.
#include "tests/sim/job_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "crds/gang.h"
#include "extender/gang_key.h"
#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;

class Scene : public testing::Test {
 protected:
  Json Set() { return world_.server().Find(JobSetKind(), {kTeam, "train"}).value_or(Json()); }
  // "Running 4/4" of the gang of that attempt.
  std::string Summary(std::int64_t attempt = 0) {
    std::string summary;
    world_.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "owner", "name"}) == "train" &&
          kube::IntAt(gang, {"spec", "attempt"}).value_or(0) == attempt)
        summary = kube::StringAt(gang, {"status", "summary"});
    });
    return summary;
  }
  std::vector<std::string> Broken() {
    std::vector<std::string> broken;
    for (const Violation& violation : world_.checks().violations())
      broken.push_back(violation.rule + ": " + violation.what);
    return broken;
  }

  Simulation simulation_{1};
  World world_{simulation_, {}, {}};
};

TEST_F(Scene, AJobSetOfTwoJobsIsOneGang) {
  world_.job_sets().Submit(
      {.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .runs = seconds(30), .sets = 2});
  EXPECT_TRUE(world_.Until([&] { return Summary() == "Running 4/4"; }, minutes(2))) << Summary();
  EXPECT_EQ(world_.server().All(kube::kJobs).size(), 2u);
  EXPECT_EQ(world_.server().All(extender::kGangs).size(), 1u);
  EXPECT_TRUE(world_.Until([&] { return IsFinishedSet(Set()); }, minutes(2)));
  EXPECT_NE(kube::Condition(Set(), "Completed"), nullptr);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(Scene, AJobSetThatRestartsIsPlannedAnewWhilePodsOfTheAttemptBeforeLeave) {
  world_.job_sets().Submit(
      {.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .backoff_limit = 0, .sets = 2});
  const auto all_run = [&] {
    const auto pods = PodRows(world_.server());
    return pods.size() == 4 &&
           std::all_of(pods.begin(), pods.end(), [](const PodRow& pod) { return pod.phase == "Running"; });
  };
  ASSERT_TRUE(world_.Until(all_run, minutes(2))) << Summary();
  world_.kubelets().Crash(PodRows(world_.server()).front().key);
  bool together = false;
  const auto both = [&] {
    std::set<std::string> leaving, waiting;
    world_.server().Visit(kube::kPods, [&](const Json& pod) {
      const std::string attempt = kube::Label(pod, extender::jobset::kAttempt).value_or("");
      (kube::DeletionTimestamp(pod) ? leaving : waiting).insert(attempt);
    });
    return leaving.contains("0") && waiting.contains("1");
  };
  EXPECT_TRUE(world_.Until(
      [&] {
        together = together || both();
        return Summary(1) == "Running 4/4";
      },
      minutes(3)))
      << Summary(1);
  EXPECT_TRUE(together);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

// The first pod succeeds and goes, and only its Job says so from then on.
void FinishFirst(World& world) {
  // The kubelet starts a pod a while after it was bound, and would write Running over what is written here.
  ASSERT_TRUE(world.Until([&] { return PodRows(world.server()).front().phase == "Running"; }, minutes(1)));
  const PodRow first = PodRows(world.server()).front();
  world.server().Edit(kube::kPods, first.key, [](Json& pod) { pod["status"]["phase"] = "Succeeded"; });
  const auto said = [&] {
    bool found = false;
    world.server().Visit(kube::kJobs, [&](const Json& job) {
      found = found || (kube::Uid(job) == first.owner &&
                        kube::StringAt(job, {"status", "completedIndexes"}) == std::to_string(first.index));
    });
    return found;
  };
  ASSERT_TRUE(world.Until(said, seconds(10)));
  world.jobs().DeletePod(first.key, "somebody tidies up");
}

// Seeds 166 and 186: the gang waited for that pod for ever.
TEST_F(Scene, ARankThatIsDoneIsNotWaitedForWhenItsPodAndThePlanAreGone) {
  world_.job_sets().Submit({.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .sets = 2});
  ASSERT_TRUE(world_.Until([&] { return Summary() == "Running 4/4"; }, minutes(2))) << Summary();
  ASSERT_NO_FATAL_FAILURE(FinishFirst(world_));
  const Json gang = world_.server().All(extender::kGangs).front();
  world_.server().Remove(extender::kGangs, kube::KeyOf(gang));
  EXPECT_TRUE(world_.Until([&] { return Summary() == "Running 4/4"; }, minutes(2))) << Summary();
  EXPECT_NE(kube::Uid(world_.server().All(extender::kGangs).front()), kube::Uid(gang));
  EXPECT_EQ(PodRows(world_.server()).size(), 3u);
  world_.kubelets().LetAllEnd();
  world_.kubelets().Kick();
  EXPECT_TRUE(world_.Until([&] { return IsFinishedSet(Set()); }, minutes(2)));
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST(DoneRank, OfAJobSetGivesItsNodeAwayAlsoWhenItsPodIsDeleted) {
  Simulation simulation(1);
  World world(simulation, {.cluster = "su:1 node:2 gpu:8 nic:8 rail:8 spine:2"}, {});
  const auto summary = [&world](const std::string& job) {
    std::string found;
    world.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "owner", "name"}) == job)
        found = kube::StringAt(gang, {"status", "summary"});
    });
    return found;
  };
  world.job_sets().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2", .sets = 2});
  ASSERT_TRUE(world.Until([&] { return summary("train") == "Running 2/2"; }, minutes(2))) << summary("train");
  ASSERT_NO_FATAL_FAILURE(FinishFirst(world));
  world.jobs().Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  EXPECT_TRUE(world.Until([&] { return summary("next") == "Running 1/1"; }, minutes(2))) << summary("next");
  EXPECT_EQ(summary("train"), "Running 2/2");
  EXPECT_TRUE(world.checks().violations().empty());
}

// The node of the rank that is done is another gang's by then.
TEST(DoneRank, IsAskedNoNodeForWhenItsGangIsPlannedAnew) {
  Simulation simulation(1);
  World world(simulation, {.cluster = "su:1 node:4 gpu:8 nic:8 rail:8 spine:2"}, {});
  const auto gang_of = [&world](const std::string& job) {
    Json found;
    world.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "owner", "name"}) == job) found = gang;
    });
    return found;
  };
  const auto summary = [&](const std::string& job) {
    return kube::StringAt(gang_of(job), {"status", "summary"});
  };
  world.job_sets().Submit({.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .sets = 2});
  ASSERT_TRUE(world.Until([&] { return summary("train") == "Running 4/4"; }, minutes(2))) << summary("train");
  ASSERT_NO_FATAL_FAILURE(FinishFirst(world));
  world.jobs().Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  ASSERT_TRUE(world.Until([&] { return summary("next") == "Running 1/1"; }, minutes(2))) << summary("next");
  const Json before = gang_of("train");
  world.server().Remove(extender::kGangs, kube::KeyOf(before));
  const auto runs_anew = [&] {
    return kube::Uid(gang_of("train")) != kube::Uid(before) && summary("train") == "Running 4/4";
  };
  EXPECT_TRUE(world.Until(runs_anew, minutes(2))) << summary("train");
  const auto gang = crds::GangFromJson(gang_of("train"));
  ASSERT_TRUE(gang) << gang.error().message;
  ASSERT_TRUE(gang->status.placement);
  std::set<std::string> nodes;
  const auto rows = crds::ToRows(*gang->status.placement);
  ASSERT_EQ(rows.size(), 4u);
  for (const crds::PlacedPod& row : rows) {
    if (row.has_slot()) nodes.insert(row.node);
  }
  EXPECT_EQ(nodes.size(), 3u);
  EXPECT_EQ(summary("next"), "Running 1/1");
  world.kubelets().LetAllEnd();
  world.kubelets().Kick();
  EXPECT_TRUE(world.Until(
      [&] {
        return IsFinishedSet(world.server().Find(JobSetKind(), {kTeam, "train"}).value_or(Json()));
      },
      minutes(2)));
  std::vector<std::string> broken;
  for (const Violation& violation : world.checks().violations())
    broken.push_back(violation.rule + ": " + violation.what);
  EXPECT_THAT(broken, testing::IsEmpty());
}

TEST_F(Scene, APodIsLetGoOnlyWhenItsQueueHasLetItGo) {
  world_.jobs().Submit(
      {.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .runs = seconds(10), .queued = true});
  int held = 0;
  EXPECT_TRUE(world_.Until(
      [&] {
        world_.server().Visit(kube::kPods, [&](const Json& pod) {
          const Json& gates = kube::ArrayAt(pod, {"spec", "schedulingGates"});
          held += gates.size() == 2 ? 1 : 0;
          EXPECT_TRUE(gates.empty() || kube::StringAt(pod, {"spec", "nodeName"}).empty());
        });
        return Summary() == "Running 4/4";
      },
      minutes(3)))
      << Summary();
  EXPECT_GT(held, 0);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(Scene, AWriteToASlowDiskTakesSeconds) {
  world_.network().SlowDown(minutes(2));
  world_.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  const base::MonotonicTime begin = simulation_.now();
  EXPECT_TRUE(world_.Until([&] { return Summary() == "Running 2/2"; }, minutes(4))) << Summary();
  // The Gang, its plan and a pod's patch, one after the other.
  EXPECT_GT(simulation_.now() - begin, seconds(3));
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST(Replayed, AWatchThatGoesOnIsToldAgainWhatItHadBeenTold) {
  Simulation simulation(1);
  World world(simulation, {}, {.replayed = 1});
  std::string told;
  std::string version;
  for (int i = 0; i < 60; ++i) {
    Json pod = kube::NewObject(kube::kPods, {kTeam, "pod-" + std::to_string(i)});
    pod["status"] = {{"phase", "Succeeded"}};  // nobody touches it
    version = kube::ResourceVersion(world.server().Put(kube::kPods, pod));
  }
  simulation.Start("reader", {}, [&](Process& process) {
    Link link(world.network(), process);
    kube::HttpRequest request;
    request.method = "GET";
    request.target = "/api/v1/pods?watch=1&resourceVersion=" + version;
    const auto read = [&told](std::string_view chunk) {
      told += chunk;
      return true;
    };
    (void)link.Stream(request, read, process.stop());
  });
  world.Pass(seconds(30));
  EXPECT_THAT(told, testing::HasSubstr("pod-59"));
  EXPECT_THAT(told, testing::Not(testing::HasSubstr("pod-0\"")));
  world.jobs().Submit({.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .runs = seconds(10)});
  EXPECT_TRUE(world.Until(
      [&] {
        return IsFinished(world.server().Find(kube::kJobs, {kTeam, "train"}).value_or(Json()));
      },
      minutes(5)));
  EXPECT_TRUE(world.checks().violations().empty());
}

}  // namespace
}  // namespace heddle::sim
