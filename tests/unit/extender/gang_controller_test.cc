#include "extender/gang_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/keys.h"
#include "extender/owner_kinds.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace keys = crds::keys;

constexpr const char* kTwoUnits = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400";

TEST(GangController, PlansCommitsAndReleasesAnIndexedJob) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 8; }));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
  cluster.BindReleased();
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 8/8"; }))
      << cluster.Summary("train");
  const auto gang = cluster.GangOf("train");
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->spec.pods, 8);
  EXPECT_EQ(gang->status.placement->epoch, 1);
  EXPECT_EQ(gang->status.predicted->tp_groups_in_domain, 8);
  EXPECT_EQ(gang->owners.at(0).name, "train");
  for (int rank = 0; rank < 8; ++rank) {
    const PodFacts pod = ReadPod(cluster.Pod("train-" + std::to_string(rank)));
    ASSERT_TRUE(pod.plan);
    EXPECT_EQ(pod.plan->rank, rank);
    EXPECT_EQ(pod.plan->gang_uid, gang->uid);
    EXPECT_EQ(pod.plan->node, crds::ToRows(*gang->status.placement)[std::size_t(rank)].node);
  }
}

// Lets everything run until all pods are bound and the Gang says so.
bool RunsToTheEnd(Cluster& cluster, RunningExtender& extender, const std::string& job = "train") {
  return extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary(job).starts_with("Running");
  });
}

std::vector<std::string> NodesOf(const Cluster& cluster, const std::string& job = "train") {
  std::vector<std::string> nodes;
  const auto gang = cluster.GangOf(job);
  if (!gang || !gang->status.placement) return nodes;
  for (const crds::PlacedPod& row : crds::ToRows(*gang->status.placement)) nodes.push_back(row.node);
  return nodes;
}

int ReleasesOf(const Cluster& cluster, const std::string& pod) {
  int releases = 0;
  for (const auto& write : cluster.server.writes()) {
    if (write.plural == "pods" && write.key.name == pod &&
        write.body.find("schedulingGates") != std::string::npos) {
      ++releases;
    }
  }
  return releases;
}

TEST(GangController, WritesThePlanBeforeAnyPodMoves) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 8; }));
  bool committed = false;
  for (const auto& write : cluster.server.writes()) {
    if (write.plural == "gangs" && write.subresource == "status" &&
        write.body.find("nodeNames") != std::string::npos) {
      EXPECT_EQ(write.method, "PUT");
      EXPECT_THAT(write.body, HasSubstr("resourceVersion"));
      committed = true;
    }
    if (write.plural == "pods") {
      EXPECT_TRUE(committed) << write.Line();
      EXPECT_EQ(write.content_type, "application/json-patch+json");
    }
    EXPECT_NE(write.method, "DELETE") << write.Line();
  }
}

TEST(GangController, SurvivesAKillAfterEverySingleWrite) {
  std::vector<std::string> undisturbed;
  int kills = 0;
  for (int writes = 0; writes < 60; ++writes) {
    Cluster cluster(kTwoUnits);
    cluster.Submit({});
    test::MortalTransport mortal(cluster.server, writes);
    if (writes > 0) {
      RunningExtender doomed(cluster, mortal);
      (void)doomed.Until([&] {
        cluster.BindReleased();
        return mortal.dead() || cluster.Summary("train") == "Running 8/8";
      });
      if (!mortal.dead()) break;
      ++kills;
    }
    RunningExtender extender(cluster);
    ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << writes << ": " << cluster.Summary("train");
    EXPECT_THAT(cluster.Violations(), IsEmpty()) << writes;
    if (undisturbed.empty()) undisturbed = NodesOf(cluster);
    EXPECT_EQ(NodesOf(cluster), undisturbed) << "killed after write " << writes;
    for (int i = 0; i < 8; ++i) EXPECT_EQ(ReleasesOf(cluster, "train-" + std::to_string(i)), 1) << writes;
  }
  EXPECT_GE(kills, 10) << "a Gang, its plan, eight pods";
}

TEST(GangController, SurvivesAConflictAtEveryWrite) {
  for (int nth = 0; nth < 14; ++nth) {
    Cluster cluster(kTwoUnits);
    cluster.Submit({});
    std::atomic<int> seen = 0;
    cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (!request.write() || request.plural == "events" || seen++ != nth) return std::nullopt;
      return kube::HttpResponse{
          409, {}, R"({"kind":"Status","status":"Failure","reason":"Conflict","code":409})"};
    });
    RunningExtender extender(cluster);
    ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << nth << ": " << cluster.Summary("train");
    EXPECT_THAT(cluster.Violations(), IsEmpty()) << nth;
  }
}

TEST(GangController, SurvivesALostAnswerAtEveryWrite) {
  for (int nth = 0; nth < 14; ++nth) {
    Cluster cluster(kTwoUnits);
    cluster.Submit({});
    test::Fault fault{.method = "", .after_the_fact = true};
    std::atomic<int> seen = 0;
    cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.write() && request.plural != "events" && seen++ == nth) {
        test::Fault lost = fault;
        lost.method = request.method;
        lost.path_contains = request.path;
        cluster.server.FailNext(lost);
      }
      return std::nullopt;
    });
    RunningExtender extender(cluster);
    ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << nth << ": " << cluster.Summary("train");
    EXPECT_THAT(cluster.Violations(), IsEmpty()) << nth;
  }
}

TEST(GangController, WorksFromWatchesThatRunBehind) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  // From the commit on, the caches show neither the plan nor the pods that were let go.
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.method == "PUT" && request.body.find("nodeNames") != std::string::npos) {
      cluster.server.set_deliver_events(false);
    }
    return std::nullopt;
  });
  cluster.Submit({});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 8; }, std::chrono::seconds(20)))
      << cluster.Summary("train");
  cluster.server.Intercept(nullptr);
  cluster.server.set_deliver_events(true);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(ReleasesOf(cluster, "train-" + std::to_string(i)), 1);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(GangController, WritesNothingWhileItDoesNotLead) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  extender.controller().SetLeading(false);
  cluster.Submit({});
  EXPECT_TRUE(extender.Until([&] { return extender.controller().ready(); })) << "it scores pods all the same";
  extender.Pass(std::chrono::seconds(3));
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  extender.controller().SetLeading(true);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender));
}

TEST(GangController, GivesARemadePodItsRanksSlotAtOnce) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  const std::string uid = cluster.Submit({});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const PodFacts before = ReadPod(cluster.Pod("train-3"));
  cluster.server.Remove(kube::kPods, {"train", "train-3"});
  cluster.PutPod({}, uid, 3, "train-3-again");
  ASSERT_TRUE(extender.Until([&] { return !ReadPod(cluster.Pod("train-3-again")).gated; }));
  const PodFacts after = ReadPod(cluster.Pod("train-3-again"));
  EXPECT_EQ(after.plan->node, before.plan->node);
  EXPECT_EQ(after.plan->gpus, before.plan->gpus);
  EXPECT_EQ(after.plan->rank, 3);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender));
}

TEST(GangController, MovesARemadePodWhoseNodeIsLost) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  const std::string uid = cluster.Submit({});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string lost = ReadPod(cluster.Pod("train-3")).plan->node;
  cluster.server.Edit(kube::kNodes, {"", lost},
                      [](kube::Json& node) { node["status"]["conditions"][0]["status"] = "False"; });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->Unusable(lost) == "NotReady"; }));
  cluster.server.Remove(kube::kPods, {"train", "train-3"});
  cluster.PutPod({}, uid, 3, "train-3-again");
  ASSERT_TRUE(extender.Until([&] { return !ReadPod(cluster.Pod("train-3-again")).gated; }));
  EXPECT_NE(ReadPod(cluster.Pod("train-3-again")).plan->node, lost);
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 2);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(GangController, SaysThatAGangStandsStillWhoseNodeIsNotReadyAndWhenItIsBack) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string lost = ReadPod(cluster.Pod("train-3")).plan->node;
  const auto set_ready = [&](const char* status) {
    cluster.server.Edit(kube::kNodes, {"", lost},
                        [&](kube::Json& node) { node["status"]["conditions"][0]["status"] = status; });
  };
  set_ready("Unknown");
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 8/8: NodeLost"; }))
      << cluster.Summary("train");
  const std::string message = cluster.GangOf("train")->status.message;
  EXPECT_THAT(message, HasSubstr(lost + " is NotReady, and rank 3 (pod train-3) is there"));
  EXPECT_THAT(message, HasSubstr("kubectl taint nodes " + lost));
  ASSERT_TRUE(extender.Until([&] {
    const std::string text = extender.controller().MetricsText();
    return text.find("heddle_extender_gangs{state=\"stalled\"} 1") != std::string::npos &&
           text.find("heddle_extender_unusable_nodes{reason=\"NotReady\"} 1") != std::string::npos;
  })) << extender.controller().MetricsText();
  set_ready("True");
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 8/8"; }))
      << cluster.Summary("train");
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 1) << "nothing moved";
}

TEST(GangController, CountsWhatAGangsLifeDoes) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  const auto says = [&](const std::string& line) {
    return extender.Until(
        [&] { return extender.controller().MetricsText().find(line + "\n") != std::string::npos; });
  };
  EXPECT_TRUE(says("heddle_extender_gpus{state=\"free\"} 128")) << extender.controller().MetricsText();
  EXPECT_TRUE(says("heddle_extender_gangs_that_fit{nodes=\"8\"} 2"));
  cluster.Submit({});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 8; }));
  EXPECT_TRUE(says("heddle_extender_gpus{state=\"reserved\"} 64")) << extender.controller().MetricsText();
  EXPECT_TRUE(says("heddle_extender_gang_plan_wait_seconds_count{at_once=\"true\"} 1"));
  EXPECT_TRUE(says("heddle_extender_planned_step_seconds_count{for=\"start\"} 1"));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  EXPECT_TRUE(says("heddle_extender_gpus{state=\"bound\"} 64")) << extender.controller().MetricsText();
  EXPECT_TRUE(says("heddle_extender_gpus{state=\"reserved\"} 0"));
  EXPECT_TRUE(says("heddle_extender_gangs{state=\"running\"} 1"));
  EXPECT_TRUE(says("heddle_extender_gangs_that_fit{nodes=\"8\"} 1"));
  EXPECT_TRUE(says("heddle_extender_gang_start_seconds_count{at_once=\"true\"} 1"));
  EXPECT_THAT(extender.controller().MetricsText(),
              HasSubstr("heddle_extender_watch_age_seconds{resource=\"pods\"}"));
}

TEST(GangController, SaysWhenALostRankHasNowhereToGo) {
  Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  const JobWords words{.pods = 2, .parallelism = "tp=8,dp=2"};
  const std::string uid = cluster.Submit(words);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string lost = ReadPod(cluster.Pod("train-1")).plan->node;
  cluster.server.Edit(kube::kNodes, {"", lost},
                      [](kube::Json& node) { node["spec"]["unschedulable"] = true; });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->Unusable(lost) == "Cordoned"; }));
  cluster.server.Remove(kube::kPods, {"train", "train-1"});
  cluster.PutPod(words, uid, 1, "train-1-again");
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Degraded"); }))
      << cluster.Summary("train");
  EXPECT_THAT(cluster.GangOf("train")->status.message,
              HasSubstr("1 rank lost its slot (rank 1: " + lost + " is Cordoned)"));
  EXPECT_THAT(cluster.GangOf("train")->status.message,
              HasSubstr("; out of use beside its other ranks: " + lost + " Cordoned"));
  EXPECT_TRUE(ReadPod(cluster.Pod("train-1-again")).gated);
  cluster.server.Edit(kube::kNodes, {"", lost},
                      [](kube::Json& node) { node["spec"]["unschedulable"] = false; });
  EXPECT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
}

TEST(GangController, MovesAStuckRankToASubstitute) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 2; }));
  const PodFacts first = ReadPod(cluster.Pod("train-0"));
  ASSERT_THAT(first.plan->substitutes, testing::Not(IsEmpty()));
  cluster.PutLonePod("thief", first.plan->node, 8);
  cluster.server.Edit(kube::kPods, {"train", "train-0"}, [&](kube::Json& pod) {
    pod["status"]["conditions"] =
        kube::Json::array({{{"type", "PodScheduled"},
                            {"status", "False"},
                            {"reason", "Unschedulable"},
                            {"lastTransitionTime", base::FormatTime(cluster.clock.WallNow())}}});
  });
  ASSERT_TRUE(extender.Until([&] { return ReadPod(cluster.Pod("train-0")).plan->node != first.plan->node; },
                             std::chrono::minutes(2)))
      << cluster.Summary("train");
  const PodFacts moved = ReadPod(cluster.Pod("train-0"));
  EXPECT_THAT(first.plan->substitutes, testing::Contains(moved.plan->node));
  EXPECT_EQ(moved.plan->epoch, 2);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(GangController, EndsTheGangOfASuspendedJobAndPlansItAnewWhenItResumes) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  const JobWords all{.pods = 16, .parallelism = "tp=8,dp=16"};
  const std::string uid = cluster.Submit(all);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](kube::Json& job) { job["spec"]["suspend"] = true; });
  for (const kube::Json& pod : cluster.Pods("train")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Ended: OwnerSuspended"; }));
  JobWords other = all;
  other.name = "other";
  cluster.Submit(other);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender, "other")) << "its slots are free";
  for (const kube::Json& pod : cluster.Pods("other")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
  cluster.server.Remove(kube::kJobs, {"train", "other"});

  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](kube::Json& job) { job["spec"]["suspend"] = false; });
  for (int i = 0; i < all.pods; ++i) cluster.PutPod(all, uid, i);
  EXPECT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
}

TEST(GangController, EndsTheGangOfADeletedJob) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  cluster.server.Remove(kube::kJobs, {"train", "train"});
  EXPECT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Ended: OwnerGone"; }))
      << cluster.Summary("train");
}

TEST(GangController, KeepsTheHeadsNodesFromThoseBehindAndLetsThemHaveTheRest) {
  Cluster cluster(kTwoUnits);
  for (int i = 0; i < 4; ++i)
    cluster.PutLonePod("holder-" + std::to_string(i), "node-0" + std::to_string(i), 8);
  for (int i = 8; i < 10; ++i) {
    cluster.PutLonePod("holder-" + std::to_string(i),
                       "node-" + std::string(i < 10 ? "0" : "") + std::to_string(i), 8);
  }
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  // Eight whole nodes of one unit: the second unit has six free, the first four.
  kube::Json one_unit = {{std::string(keys::kRequire), "tp=nvlink,dp=su"}};
  cluster.Submit(
      {.name = "head", .pods = 8, .parallelism = "tp=8,dp=8", .priority = 5, .annotations = one_unit});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("head").starts_with("Waiting"); }))
      << cluster.Summary("head");
  cluster.Submit({.name = "small", .pods = 4, .parallelism = "tp=8,dp=4"});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "small")) << cluster.Summary("small");
  for (const std::string& node : NodesOf(cluster, "small")) EXPECT_LT(node, "node-08");
  cluster.Submit({.name = "late", .pods = 1, .parallelism = "tp=8"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("late") == "Waiting: NotEnoughFree"; }))
      << cluster.Summary("late");
  EXPECT_EQ(cluster.Released("late"), 0) << "what is free is the head's";
  EXPECT_THAT(cluster.GangOf("late")->status.message, HasSubstr("kept for gangs ahead of it in the queue"));
  cluster.Submit({.name = "large", .pods = 12, .parallelism = "tp=8,dp=12"});
  EXPECT_TRUE(extender.Until([&] { return cluster.Summary("large") == "Waiting: NotEnoughFree"; }))
      << "it would fit if others left, whatever is kept: " << cluster.Summary("large");
  cluster.server.Remove(kube::kJobs, {"train", "large"});
  for (int i = 8; i < 10; ++i) cluster.server.Remove(kube::kPods, {"other", "holder-" + std::to_string(i)});
  EXPECT_TRUE(RunsToTheEnd(cluster, extender, "head")) << cluster.Summary("head");
}

// Found by the simulation, seed 12.
TEST(GangController, PlansWhatHasBegunBeforeTheHeadThatWaitsForItsNodes) {
  Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  cluster.server.FailNext({.method = "PATCH", .path_contains = "pods/half-1", .status = 403}, 1'000'000);
  cluster.Submit({.name = "half", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("half") == 1; }));
  cluster.BindReleased();
  cluster.Submit({.name = "head", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("head") == "Waiting: NotEnoughFree"; }))
      << cluster.Summary("head");
  const auto gang = cluster.GangOf("half");
  ASSERT_TRUE(gang);
  cluster.server.Remove(kGangs, {"train", gang->name});
  cluster.server.ClearFaults();
  EXPECT_TRUE(RunsToTheEnd(cluster, extender, "half")) << cluster.Summary("half");
  EXPECT_EQ(cluster.Summary("head"), "Waiting: NotEnoughFree");
}

// As an admission policy of somebody else would.
TEST(GangController, LetsAGangWhoseStatusTheServerDoesNotTakeHoldUpNobodyBehindIt) {
  Cluster cluster("su:1 node:4 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  cluster.server.FailNext({.method = "PUT", .path_contains = "gangs/cursed", .status = 422}, 1'000'000);
  cluster.Submit({.name = "cursed", .pods = 2, .parallelism = "tp=8,dp=2", .priority = 9});
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("cursed").has_value(); }));
  cluster.Submit({.name = "next", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "next")) << cluster.Summary("next");
  cluster.server.ClearFaults();
  EXPECT_TRUE(RunsToTheEnd(cluster, extender, "cursed")) << cluster.Summary("cursed");
}

TEST(GangController, PlansTheHigherPriorityFirst) {
  Cluster cluster("su:1 node:4 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  ASSERT_TRUE(extender.Until([&] { return extender.controller().ready(); }));
  extender.controller().SetLeading(false);
  cluster.Submit({.name = "low", .pods = 3, .parallelism = "tp=8,dp=3", .priority = 1});
  cluster.Submit({.name = "high", .pods = 3, .parallelism = "tp=8,dp=3", .priority = 9});
  extender.Pass(std::chrono::seconds(1));
  extender.controller().SetLeading(true);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "high")) << cluster.Summary("high");
  EXPECT_EQ(cluster.Summary("low"), "Waiting: NotEnoughFree");
  EXPECT_THAT(cluster.GangOf("low")->status.message, HasSubstr("1 gang holds 24 GPUs (train/high)"));
}

TEST(GangController, RevokesTheLaterOfTwoOverlappingPlans) {
  Cluster cluster(kTwoUnits);
  // Two leaders planned at once: both plans are committed, nothing is released.
  std::vector<crds::Gang> gangs;
  for (const std::string name : {"early", "later"}) {
    const JobWords words{.name = name, .pods = 2, .parallelism = "tp=8,dp=2"};
    const std::string uid = cluster.Submit(words);
    crds::Gang gang;
    gang.ns = "train";
    gang.spec.owner = {"batch/v1", "Job", name, uid};
    gang.spec.pods = 2;
    gang.spec.gpus_per_pod = 8;
    gang.spec.gpu_resource = "nvidia.com/gpu";
    gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 2};
    gang.name = crds::GangName(gang.spec);
    gang.status.placement = crds::ToColumns({{"node-00", 255, {}}, {"node-01", 255, {}}}, 1);
    gang.status.planned_at = base::WallTime(std::chrono::seconds(1'799'999'000 + (name == "later" ? 1 : 0)));
    cluster.server.Put(kGangs, crds::ToJson(gang));
  }
  RunningExtender extender(cluster);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "early")) << cluster.Summary("early");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "later")) << cluster.Summary("later");
  EXPECT_THAT(NodesOf(cluster, "early"), testing::ElementsAre("node-00", "node-01"));
  EXPECT_EQ(cluster.GangOf("later")->status.placement->epoch, 2);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(GangController, PlansAnewWhenSomebodyTookTheNodeBeforeTheRelease) {
  Cluster cluster(kTwoUnits);
  std::atomic<bool> refusing = true;
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!refusing || request.plural != "pods" || !request.write()) return std::nullopt;
    return kube::HttpResponse{
        422, {}, R"({"kind":"Status","status":"Failure","reason":"Invalid","code":422})"};
  });
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(extender.Until([&] { return !NodesOf(cluster).empty(); }));
  const std::string node = NodesOf(cluster).front();
  cluster.PutLonePod("thief", node, 4);
  ASSERT_TRUE(extender.Until([&] {
    const auto snapshot = extender.controller().current();
    const auto holds = snapshot->holds.find(node);
    return holds != snapshot->holds.end() &&
           std::any_of(holds->second.begin(), holds->second.end(),
                       [](const Hold& hold) { return hold.name == "pod other/thief"; });
  }));
  refusing = false;
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_THAT(NodesOf(cluster), testing::Not(testing::Contains(node)));
}

TEST(GangController, NeverDeletesAPodOfAJobWhateverGoesWrong) {
  Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  cluster.Submit({.name = "fits", .pods = 2, .parallelism = "tp=8,dp=2"});
  cluster.Submit({.name = "waits", .pods = 2, .parallelism = "tp=8,dp=2"});
  cluster.Submit({.name = "wrong", .pods = 2, .parallelism = "tp=7"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("fits") == 2; }));
  cluster.server.Edit(kube::kNodes, {"", "node-0"},
                      [](kube::Json& node) { node["spec"]["unschedulable"] = true; });
  extender.Pass(std::chrono::seconds(120));
  for (const auto& write : cluster.server.writes()) {
    EXPECT_FALSE(write.plural == "pods" && write.method != "PATCH") << write.Line();
  }
  EXPECT_EQ(cluster.Pods("waits").size(), 2u);
}

TEST(GangController, FreesTheSlotOfARankThatStaysWithoutAPod) {
  Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  cluster.server.Remove(kube::kPods, {"train", "train-1"});
  cluster.Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  extender.Pass(std::chrono::minutes(4));
  EXPECT_EQ(cluster.Released("next"), 0);
  EXPECT_TRUE(extender.Until([&] { return cluster.Released("next") == 1; }, std::chrono::minutes(3)))
      << cluster.Summary("next");
}

TEST(GangController, AdoptsPodsWhoseGangSomebodyDeleted) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const auto nodes = NodesOf(cluster);
  cluster.server.Remove(kGangs, {"train", cluster.GangOf("train")->name});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 8/8"; }))
      << cluster.Summary("train");
  EXPECT_EQ(NodesOf(cluster), nodes);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(GangController, MakesAPlanThatSomebodyEditedIntoNonsenseAnewWithoutMovingWhoRuns) {
  for (const char* nonsense :
       {R"({"nodes": [0, 1]})", R"({"nodes": "?"})", R"({"nodeNames": []})", R"({"gpus": [1]})"}) {
    Cluster cluster(kTwoUnits);
    RunningExtender extender(cluster);
    cluster.Submit({});
    ASSERT_TRUE(RunsToTheEnd(cluster, extender));
    const auto nodes = NodesOf(cluster);
    const kube::ObjectKey gang{"train", cluster.GangOf("train")->name};
    cluster.server.ClearRequests();
    cluster.server.Edit(kGangs, gang, [nonsense](kube::Json& object) {
      object["status"]["placement"].update(kube::Json::parse(nonsense));
    });
    ASSERT_TRUE(extender.Until([&] {
      const auto object = cluster.server.Find(kGangs, gang);
      return object && kube::IntAt(*object, {"status", "placement", "epoch"}) == 2;
    })) << nonsense;
    EXPECT_EQ(NodesOf(cluster), nodes) << nonsense;
    ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Running 8/8"; }))
        << nonsense << cluster.Summary("train");
    extender.Pass(std::chrono::seconds(5));
    EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 2);
    EXPECT_LT(cluster.server.writes().size(), 12u) << nonsense;
    EXPECT_THAT(cluster.Violations(), IsEmpty());
  }
}

// What a later version wrote, for example.
TEST(GangController, TriesAGangThatItCannotReadSeldomAndGoesOnWithTheOthers) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const kube::ObjectKey gang{"train", cluster.GangOf("train")->name};
  cluster.server.Edit(kGangs, gang, [](kube::Json& object) { object["spec"]["pods"] = "many"; });
  cluster.server.ClearRequests();
  extender.Pass(std::chrono::seconds(60));
  EXPECT_LT(cluster.server.writes().size(), 30u);
  cluster.Submit({.name = "next", .pods = 2, .parallelism = "tp=8,dp=2"});
  EXPECT_TRUE(RunsToTheEnd(cluster, extender, "next")) << cluster.Summary("next");
}

// Found by the simulation, seed 51.
TEST(GangController, TriesAgainWhereAGangIsThereAndItsReadingFails) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.server.FailNext({.method = "POST", .path_contains = "/gangs", .status = 409}, 2);
  cluster.server.FailNext({.method = "GET", .path_contains = "/namespaces/train/gangs/", .status = 503}, 3);
  cluster.Submit({});
  EXPECT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
}

struct BadJob {
  const char* reason;
  const char* sentence;
  JobWords words;
};
class RefusedJob : public testing::TestWithParam<BadJob> {};
TEST_P(RefusedJob, IsToldWhyOnItsGangAndByAnEventAndKeepsWaiting) {
  Cluster cluster("su:1 node:4 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  cluster.Submit(GetParam().words);
  ASSERT_TRUE(extender.Until([&] {
    const auto gang = cluster.GangOf("train");
    return gang && gang->status.reason == GetParam().reason;
  })) << (cluster.GangOf("train")
              ? cluster.GangOf("train")->status.reason + cluster.GangOf("train")->status.message
              : "");
  EXPECT_THAT(cluster.GangOf("train")->status.message, HasSubstr(GetParam().sentence));
  EXPECT_TRUE(extender.Until([&] { return !cluster.server.All(kube::kEvents).empty(); }));
  const kube::Json event = cluster.server.All(kube::kEvents).back();
  EXPECT_EQ(kube::StringAt(event, {"reason"}), GetParam().reason);
  EXPECT_EQ(kube::StringAt(event, {"involvedObject", "kind"}), "Job");
  const std::size_t writes = cluster.server.writes().size();
  extender.Pass(std::chrono::seconds(40));
  EXPECT_EQ(cluster.Released("train"), 0);
  EXPECT_EQ(cluster.server.writes().size(), writes) << "what is said once is not said again";
}
const kube::Json kAntiAffinity = kube::Json::parse(R"({"affinity":{"podAntiAffinity":{
    "requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]}}})");
INSTANTIATE_TEST_SUITE_P(
    Table, RefusedJob,
    testing::Values(
        BadJob{"BadAnnotation", "heddle.dev/parallelism", {.parallelism = "tp=eight"}},
        BadJob{"BadAnnotation", "zz", {.parallelism = "tp=8,zz=4"}},
        BadJob{"BadAnnotation",
               "heddle.dev/require",
               {.pods = 4, .parallelism = "tp=8,dp=4", .annotations = {{"heddle.dev/require", "tp=moon"}}}},
        BadJob{"WorldMismatch", "24", {.pods = 4, .parallelism = "tp=8,dp=3"}},
        BadJob{"UnknownAnnotation",
               "heddle.dev/paralelism is none of Heddle's; is heddle.dev/parallelism meant?",
               {.pods = 4, .parallelism = "tp=8,dp=4", .annotations = {{"heddle.dev/paralelism", "x"}}}},
        BadJob{"NoParallelism", "heddle.dev/parallelism", {.pods = 4, .parallelism = ""}},
        BadJob{"NotModelled",
               "podAntiAffinity",
               {.pods = 4, .parallelism = "tp=8,dp=4", .pod_spec = kAntiAffinity}},
        BadJob{
            "NotModelled",
            "hostPort 80",
            {.pods = 4,
             .parallelism = "tp=8,dp=4",
             .pod_spec = kube::Json::parse(
                 R"({"containers":[{"name":"m","ports":[{"hostPort":80}],"resources":{"limits":{"nvidia.com/gpu":"8"}}}]})")}},
        BadJob{"NotModelled",
               "does not exist",
               {.pods = 4,
                .parallelism = "tp=8,dp=4",
                .pod_spec = kube::Json::parse(
                    R"({"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}]})")}},
        BadJob{"NoGpus", "ask for no GPUs", {.pods = 4, .gpus = 0, .parallelism = "tp=8,dp=4"}},
        BadJob{"TooLargeForDomain", "NVLink domain", {.pods = 4, .parallelism = "tp=32"}},
        BadJob{"NoAllowedNode",
               "",
               {.pods = 4, .parallelism = "tp=8,dp=4", .pod_spec = {{"nodeSelector", {{"disk", "ssd"}}}}}}),
    [](const auto& one) { return std::string(one.param.reason) + std::to_string(one.index); });

TEST(GangController, RefusesAJobWhoseCompletionsAreNotItsParallelism) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  cluster.Submit({});
  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](kube::Json& job) { job["spec"]["completions"] = 20; });
  Cluster other(kTwoUnits);
  const std::string uid = other.PutJob({});
  other.server.Edit(kube::kJobs, {"train", "train"}, [](kube::Json& job) { job["spec"]["parallelism"] = 4; });
  for (int i = 0; i < 4; ++i) other.PutPod({}, uid, i);
  RunningExtender second(other);
  ASSERT_TRUE(second.Until([&] { return other.Summary("train") == "Waiting: CompletionsNotParallelism"; }));
  // Its owner repairs it.
  other.server.Edit(kube::kJobs, {"train", "train"}, [](kube::Json& job) { job["spec"]["parallelism"] = 8; });
  for (int i = 4; i < 8; ++i) other.PutPod({}, uid, i);
  EXPECT_TRUE(RunsToTheEnd(other, second)) << other.Summary("train");
}

TEST(GangController, QuotesTheControllerThatCannotMakeThePods) {
  Cluster cluster(kTwoUnits);
  RunningExtender extender(cluster);
  const std::string uid = cluster.PutJob({});
  cluster.PutPod({}, uid, 0);
  kube::Json event = kube::NewObject(kube::kEvents, {"train", "train.1"});
  event["reason"] = "FailedCreate";
  event["message"] = "exceeded quota: gpus";
  event["involvedObject"] = {{"kind", "Job"}, {"name", "train"}, {"namespace", "train"}, {"uid", uid}};
  cluster.server.Put(kube::kEvents, event);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Waiting: FailedCreate"; },
                             std::chrono::minutes(2)))
      << cluster.Summary("train");
  EXPECT_THAT(cluster.GangOf("train")->status.message, HasSubstr("exceeded quota: gpus"));

  // Not once for each pod that comes.
  const auto asked = [&cluster] {
    const auto requests = cluster.server.requests();
    return std::count_if(requests.begin(), requests.end(),
                         [](const auto& one) { return one.method == "GET" && one.plural == "events"; });
  };
  const auto before = asked();
  for (int i = 1; i < 7; ++i) {
    cluster.PutPod({}, uid, i);
    extender.Pass(std::chrono::seconds(1));
  }
  EXPECT_LE(asked() - before, 1);
}

TEST(GangController, PlansAJobSetAcrossItsReplicatedJobs) {
  Cluster cluster(kTwoUnits);
  const kube::Resource kJobSets = OwnerKindOf("jobset.x-k8s.io/v1alpha2", "JobSet")->resource;
  cluster.server.Serve(kJobSets);
  kube::Json set = kube::NewObject(kJobSets, {"train", "set"});
  const auto replicated = [](const char* name, int replicas, int pods) {
    kube::Json job = {{"name", name}, {"replicas", replicas}};
    job["template"]["spec"] = {{"completionMode", "Indexed"}, {"completions", pods}, {"parallelism", pods}};
    job["template"]["spec"]["template"]["metadata"]["annotations"] = {
        {std::string(keys::kParallelism), "tp=8,dp=8"}};
    return job;
  };
  kube::Json driver = replicated("driver", 1, 1);
  driver["template"]["spec"].erase("template");
  set["spec"]["replicatedJobs"] = {driver, replicated("first", 2, 3), replicated("second", 1, 2)};
  const std::string uid = kube::Uid(cluster.server.Put(kJobSets, set));
  const auto put = [&](const std::string& job, int job_index, int index) {
    const std::string name = job + "-" + std::to_string(job_index) + "-" + std::to_string(index);
    cluster.PutPod({}, "job-" + job + std::to_string(job_index), index, name);
    cluster.server.Edit(kube::kPods, {"train", name}, [&](kube::Json& pod) {
      auto& labels = pod["metadata"]["labels"];
      labels["jobset.sigs.k8s.io/jobset-uid"] = uid;
      labels["jobset.sigs.k8s.io/jobset-name"] = "set";
      labels["jobset.sigs.k8s.io/replicatedjob-name"] = job;
      labels["jobset.sigs.k8s.io/job-index"] = std::to_string(job_index);
      labels["jobset.sigs.k8s.io/restart-attempt"] = "0";
    });
  };
  for (int i = 0; i < 2; ++i) put("second", 0, i);
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 3; ++i) put("first", j, i);
  }
  RunningExtender extender(cluster);
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("set") == "Running 8/8";
  })) << cluster.Summary("set");
  EXPECT_EQ(ReadPod(cluster.Pod("first-1-2")).plan->rank, 5);
  EXPECT_EQ(ReadPod(cluster.Pod("second-0-1")).plan->rank, 7);
}

TEST(GangController, KeepsForeignGatesAndThePodsOwnAffinity) {
  Cluster cluster(kTwoUnits);
  for (int i = 0; i < 8; ++i) {
    cluster.server.Edit(kube::kNodes, {"", "node-0" + std::to_string(i)},
                        [](kube::Json& node) { node["metadata"]["labels"]["zone"] = "a"; });
  }
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 2, .parallelism = "tp=8,dp=2", .pod_spec = kube::Json::parse(R"({
      "schedulingGates":[{"name":"example.com/inspection"},{"name":"heddle.dev/gang"}],
      "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
        {"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]}]}}}})")});
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("train") == 2; })) << cluster.Summary("train");
  const kube::Json pod = cluster.Pod("train-0");
  EXPECT_EQ(pod["spec"]["schedulingGates"], kube::Json::parse(R"([{"name":"example.com/inspection"}])"));
  const kube::Json& terms = pod["spec"]["affinity"]["nodeAffinity"]
                               ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 1u);
  EXPECT_EQ(terms[0]["matchExpressions"][0]["key"], "zone");
  EXPECT_EQ(terms[0]["matchFields"][0]["values"][0], pod["metadata"]["annotations"]["heddle.dev/node"]);
}

}  // namespace
}  // namespace heddle::extender
