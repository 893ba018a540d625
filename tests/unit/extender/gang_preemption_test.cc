// Preemption and restart of whole gangs by the controller; the Job controller is played.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "crds/keys.h"
#include "extender/gang_controller.h"
#include "extender/resources.h"
#include "extender/yielding.h"
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
namespace keys = crds::keys;

constexpr const char* kFourNodes = "su:1 node:4 gpu:8 nic:8 rail:8";
const JobWords kLow{.name = "low", .pods = 4, .parallelism = "tp=8,dp=4"};
const JobWords kHigh{.name = "high", .pods = 2, .parallelism = "tp=8,dp=2", .priority = 100};

// A cluster whose Jobs are looked after as the Job controller does: a suspended one loses its pods and no failure is
// counted, one without pods gets new ones.
class World : public Cluster {
 public:
  explicit World(const char* line = kFourNodes) : Cluster(line) {}

  void Start(const JobWords& words) {
    words_[words.name] = words;
    Submit(words);
  }
  void Play() {
    for (const Json& job : server.All(kube::kJobs)) {
      const auto words = words_.find(kube::Name(job));
      if (words == words_.end()) continue;
      const auto pods = Pods(kube::Name(job));
      if (IsSuspended(job)) {
        for (const Json& pod : pods) server.Remove(kube::kPods, kube::KeyOf(pod));
      } else if (pods.empty()) {
        for (int i = 0; i < words->second.pods; ++i) PutPod(words->second, kube::Uid(job), i);
      }
    }
    for (const Json& pod : server.All(kube::kPods)) {
      if (kube::StringAt(pod, {"spec", "nodeName"}).empty() ||
          kube::Find(pod, {"status", "startTime"}) != nullptr)
        continue;
      server.Edit(kube::kPods, kube::KeyOf(pod), [this](Json& edited) {
        edited["status"]["startTime"] = base::FormatTime(clock.WallNow());
      });
    }
    BindReleased();
  }
  bool Runs(RunningExtender& extender, const std::string& job,
            std::chrono::seconds limit = std::chrono::seconds(60)) {
    return extender.Until(
        [&] {
          Play();
          return Summary(job).starts_with("Running");
        },
        limit);
  }
  bool Says(RunningExtender& extender, const std::string& job, const std::string& words) {
    return extender.Until([&] {
      Play();
      const auto gang = GangOf(job);
      return gang && gang->status.message.find(words) != std::string::npos;
    });
  }
  void End(const std::string& job) {
    words_.erase(job);
    for (const Json& pod : Pods(job)) server.Remove(kube::kPods, kube::KeyOf(pod));
    server.Remove(kube::kJobs, {"train", job});
  }
  Json Job(const std::string& name) const {
    return server.Find(kube::kJobs, {"train", name}).value_or(Json());
  }
  std::vector<std::string> Events(const std::string& about) const {
    std::vector<std::string> reasons;
    for (const Json& event : server.All(kube::kEvents)) {
      if (kube::StringAt(event, {"involvedObject", "name"}) == about)
        reasons.push_back(kube::StringAt(event, {"reason"}));
    }
    return reasons;
  }
  int Writes(const std::string& line) const {
    int count = 0;
    for (const auto& write : server.writes()) count += write.Line().starts_with(line) ? 1 : 0;
    return count;
  }

 private:
  std::map<std::string, JobWords> words_;
};

TEST(GangPreemption, SuspendsALowerGangAndBringsItBackBehindTheHigherOne) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.Start(kHigh);
  ASSERT_TRUE(world.Runs(extender, "high")) << world.Summary("high") << world.GangOf("high")->status.message;
  EXPECT_THAT(world.Violations(), IsEmpty());
  // It is resumed at once; its pods wait.
  ASSERT_TRUE(extender.Until([&] {
    world.Play();
    return world.Summary("low").starts_with("Waiting");
  })) << world.Summary("low");
  EXPECT_FALSE(IsSuspended(world.Job("low")));
  EXPECT_FALSE(kube::Annotation(world.Job("low"), keys::kPreemptedBy));
  EXPECT_EQ(world.Released("low"), 0);
  EXPECT_TRUE(extender.Until([&] { return !world.Events("low").empty() && !world.Events("high").empty(); }));
  EXPECT_THAT(world.Events("low"), Contains("Preempted"));
  EXPECT_THAT(world.Events("high"), Contains("Preempting"));
  world.End("high");
  EXPECT_TRUE(world.Runs(extender, "low")) << world.Summary("low");
  EXPECT_EQ(world.Writes("PATCH jobs"), 2) << "one to suspend, one to resume";
  EXPECT_EQ(world.Writes("DELETE pods"), 0);
}

TEST(GangPreemption, TellsTheVictimsGangBeforeItSuspendsAndKeepsItsNodesForTheHead) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.Start(kHigh);
  // Nobody plays the Job controller, so the pods stay.
  ASSERT_TRUE(extender.Until([&] { return SuspendedByUs(world.Job("low")); }));
  bool told = false;
  for (const auto& write : world.server.writes()) {
    if (write.plural == "gangs" && write.body.find("\"preemptedBy\"") != std::string::npos) told = true;
    if (write.plural == "jobs") {
      EXPECT_TRUE(told) << write.Line();
    }
  }
  EXPECT_EQ(kube::Annotation(world.Job("low"), keys::kPreemptedBy), "train/" + world.GangOf("high")->name);
  ASSERT_TRUE(extender.Until([&] { return world.Summary("low") == "Ended: Preempted"; }))
      << world.Summary("low");
  extender.Pass(std::chrono::seconds(30));
  EXPECT_TRUE(SuspendedByUs(world.Job("low"))) << "its pods are still there";
  EXPECT_THAT(world.GangOf("high")->status.message, HasSubstr("leaving"));
  EXPECT_EQ(extender.controller().kept_nodes()->size(), 2u);
  ASSERT_TRUE(world.Runs(extender, "high"));
  EXPECT_TRUE(extender.Until([&] { return extender.controller().kept_nodes()->empty(); }));
}

TEST(GangPreemption, SurvivesAKillAfterEverySingleWrite) {
  int kills = 0;
  for (int writes = 1; writes < 60; ++writes) {
    World world;
    {
      RunningExtender first(world);
      world.Start(kLow);
      ASSERT_TRUE(world.Runs(first, "low"));
    }
    world.server.ClearRequests();
    world.Start(kHigh);
    test::MortalTransport mortal(world.server, writes);
    {
      RunningExtender doomed(world, mortal);
      (void)doomed.Until([&] {
        world.Play();
        return mortal.dead() ||
               (world.Summary("high").starts_with("Running") && world.Summary("low").starts_with("Waiting"));
      });
      if (!mortal.dead()) break;
      ++kills;
    }
    RunningExtender extender(world);
    ASSERT_TRUE(world.Runs(extender, "high")) << writes << ": " << world.Summary("high");
    EXPECT_THAT(world.Violations(), IsEmpty()) << writes;
    world.End("high");
    ASSERT_TRUE(world.Runs(extender, "low")) << writes << ": " << world.Summary("low");
    EXPECT_EQ(world.Writes("PATCH jobs"), 2) << "killed after write " << writes;
    EXPECT_FALSE(kube::Annotation(world.Job("low"), keys::kPreemptedBy)) << writes;
  }
  EXPECT_GE(kills, 8) << "the condition, two patches of the Job, Gangs, a plan, two pods";
}

TEST(GangPreemption, PreemptsNobodyOfEqualPriorityNorForThoseWhoNeverDo) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  JobWords equal = kHigh, never = kHigh;
  equal.name = "equal";
  equal.priority = 0;
  never.name = "never";
  never.pod_spec = {{"preemptionPolicy", "Never"}};
  world.Start(equal);
  world.Start(never);
  ASSERT_TRUE(world.Says(extender, "equal", "holds 32 GPUs"));
  ASSERT_TRUE(world.Says(extender, "never", "holds 32 GPUs"));
  extender.Pass(std::chrono::seconds(20));
  EXPECT_EQ(world.Writes("PATCH jobs"), 0);
  EXPECT_TRUE(world.Summary("low").starts_with("Running"));
}

TEST(GangPreemption, LeavesAloneWhatIsKueuesOrAPersonsAndSaysSo) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.server.Edit(kube::kJobs, {"train", "low"}, [](Json& job) {
    job["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "team"}};
  });
  world.Start(kHigh);
  ASSERT_TRUE(
      world.Says(extender, "high", "Job train/low is queued by Kueue, and preemption there is Kueue's"))
      << world.GangOf("high")->status.message;
  extender.Pass(std::chrono::seconds(20));
  EXPECT_EQ(world.Writes("PATCH jobs"), 0);
}

// Nothing else happens meanwhile.
TEST(GangPreemption, BeginsByItselfWhenTheWaitIsOver) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  JobWords patient = kHigh;
  patient.annotations = {{"heddle.dev/wait", "20m"}};
  world.Start(patient);
  ASSERT_TRUE(extender.Until([&] { return world.Summary("high") == "Waiting: NotEnoughFree"; }))
      << world.Summary("high");
  extender.Pass(std::chrono::minutes(19));
  EXPECT_TRUE(world.Summary("low").starts_with("Running")) << world.Summary("low");
  EXPECT_TRUE(world.Runs(extender, "high", std::chrono::minutes(3))) << world.Summary("high");
}

TEST(GangPreemption, GoesByPriorityToTheLastInteger) {
  World world;
  RunningExtender extender(world);
  JobWords least = kLow;
  least.priority = std::numeric_limits<std::int32_t>::min();
  world.Start(least);
  world.Start(kHigh);
  ASSERT_TRUE(world.Runs(extender, "high"));
  EXPECT_FALSE(world.Summary("low").starts_with("Running")) << world.Summary("low");
}

TEST(GangPreemption, IsOffWhereItIsTurnedOff) {
  World world;
  RunningExtender extender(world, world.server, Mode::kPlace, false);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.Start(kHigh);
  ASSERT_TRUE(world.Says(extender, "high", "holds 32 GPUs"));
  extender.Pass(std::chrono::seconds(20));
  EXPECT_EQ(world.Writes("PATCH jobs"), 0);
}

TEST(GangPreemption, GivesWayToAPersonWhoResumesTheVictim) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.Start(kHigh);
  ASSERT_TRUE(extender.Until([&] { return SuspendedByUs(world.Job("low")); }));
  world.server.Edit(kube::kJobs, {"train", "low"}, [](Json& job) { job["spec"]["suspend"] = false; });
  ASSERT_TRUE(world.Says(extender, "high", "somebody resumed Job train/low by hand"))
      << world.GangOf("high")->status.message;
  extender.Pass(std::chrono::seconds(20));
  EXPECT_EQ(world.Writes("PATCH jobs"), 1) << "nobody fights a person";
  world.server.Edit(kube::kJobs, {"train", "low"},
                    [](Json& job) { job["metadata"]["annotations"].erase(std::string(keys::kPreemptedBy)); });
  EXPECT_TRUE(world.Runs(extender, "high")) << "the annotation was what kept it";
}

TEST(GangPreemption, LeavesTheVictimSuspendedToAPersonWhoTookTheAnnotationAway) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.Start(kHigh);
  ASSERT_TRUE(extender.Until([&] { return SuspendedByUs(world.Job("low")); }));
  world.server.Edit(kube::kJobs, {"train", "low"}, [](Json& job) { job["metadata"].erase("annotations"); });
  ASSERT_TRUE(world.Runs(extender, "high"));
  extender.Pass(std::chrono::seconds(20));
  EXPECT_TRUE(IsSuspended(world.Job("low")));
}

TEST(GangPreemption, GoesOnWhenTheVictimsOwnerIsDeletedInTheMiddle) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.Start(kHigh);
  ASSERT_TRUE(extender.Until([&] { return SuspendedByUs(world.Job("low")); }));
  world.End("low");
  EXPECT_TRUE(world.Runs(extender, "high"));
}

TEST(GangPreemption, SparesAVictimThatIsNotNeededAnyMore) {
  World world;
  {
    RunningExtender extender(world);
    world.Start(kLow);
    ASSERT_TRUE(world.Runs(extender, "low"));
    // Told to leave, and then the extender dies before it suspends; meanwhile the other Job is deleted.
    world.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.write() && request.plural == "jobs") return test::StatusResponse(503, "", "away");
      return std::nullopt;
    });
    world.Start(kHigh);
    ASSERT_TRUE(extender.Until([&] { return world.Summary("low") == "Preempted"; })) << world.Summary("low");
  }
  world.End("high");
  world.server.Intercept(nullptr);
  RunningExtender extender(world);
  ASSERT_TRUE(world.Runs(extender, "low")) << world.Summary("low");
  EXPECT_EQ(world.GangOf("low")->status.preempted_by, "");
  EXPECT_FALSE(IsSuspended(world.Job("low")));
}

TEST(GangPreemption, SparesAVictimThatBecameKueuesAfterItWasTold) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.write() && request.plural == "jobs") return test::StatusResponse(503, "", "away");
    return std::nullopt;
  });
  world.Start(kHigh);
  ASSERT_TRUE(extender.Until([&] { return world.Summary("low") == "Preempted"; })) << world.Summary("low");
  world.server.Edit(kube::kJobs, {"train", "low"}, [](Json& job) {
    job["metadata"]["labels"] = {{"kueue.x-k8s.io/queue-name", "team"}};
  });
  world.server.Intercept(nullptr);
  ASSERT_TRUE(world.Says(extender, "high", "is queued by Kueue")) << world.GangOf("high")->status.message;
  EXPECT_TRUE(world.Summary("low").starts_with("Running")) << world.Summary("low");
  EXPECT_FALSE(IsSuspended(world.Job("low")));
}

TEST(GangPreemption, NeedsNoPeaceBetweenTwoLeaders) {
  World world;
  RunningExtender one(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(one, "low"));
  RunningExtender other(world);
  world.Start(kHigh);
  ASSERT_TRUE(world.Runs(one, "high", std::chrono::minutes(3))) << world.Summary("high");
  ASSERT_TRUE(one.Until([&] {
    world.Play();
    return world.Summary("low").starts_with("Waiting");
  })) << world.Summary("low");
  EXPECT_THAT(world.Violations(), IsEmpty());
  EXPECT_FALSE(IsSuspended(world.Job("low")));
  other.controller().SetLeading(false);
  world.End("high");
  EXPECT_TRUE(world.Runs(one, "low", std::chrono::minutes(3))) << world.Summary("low");
  EXPECT_FALSE(IsSuspended(world.Job("low")));
}

TEST(GangPreemption, TakesAnotherWhereTheOwnerRefusesToBeSuspended) {
  World world;
  RunningExtender extender(world);
  world.Start(kLow);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.write() && request.plural == "jobs")
      return test::StatusResponse(422, "", "a webhook says no");
    return std::nullopt;
  });
  world.Start(kHigh);
  ASSERT_TRUE(extender.Until([&] { return world.Summary("low") == "Preempted"; }));
  ASSERT_TRUE(extender.Until(
      [&] {
        const auto gang = world.GangOf("high");
        return gang && gang->status.message.find("a webhook says no") != std::string::npos;
      },
      std::chrono::minutes(5)))
      << world.GangOf("high")->status.message;
  EXPECT_TRUE(world.Summary("low").starts_with("Running")) << world.Summary("low");
}

TEST(GangPreemption, EvictsALonePodAndWaitsOutItsDisruptionBudget) {
  World world("su:1 node:2 gpu:8 nic:8 rail:8");
  world.PutLonePod("notebook", kube::Name(world.server.All(kube::kNodes).front()), 8);
  RunningExtender extender(world);
  world.server.FailNext({.method = "POST", .path_contains = "eviction", .status = 429}, 2);
  world.Start(kHigh);
  ASSERT_TRUE(world.Runs(extender, "high", std::chrono::minutes(5))) << world.GangOf("high")->status.message;
  EXPECT_EQ(world.Writes("POST pods/eviction"), 3);
  EXPECT_THAT(world.server.Find(kube::kPods, {"other", "notebook"}), testing::Eq(std::nullopt));
}

TEST(GangPreemption, RestartsADegradedGangWholeWhereItAsksForThatAndOnceInTenMinutesOnly) {
  World world("su:2 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(world);
  JobWords words{.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"};
  words.annotations = {{keys::kRequire, "tp=nvlink,dp=su"}, {keys::kOnDegraded, "restart"}};
  world.Start(words);
  ASSERT_TRUE(world.Runs(extender, "low"));
  const auto lose = [&](int rank) {
    const std::string pod = "low-" + std::to_string(rank);
    const std::string node = kube::StringAt(world.Pod(pod), {"spec", "nodeName"});
    world.server.Edit(kube::kNodes, {"", node}, [](Json& object) { object["spec"]["unschedulable"] = true; });
    EXPECT_TRUE(
        extender.Until([&] { return extender.controller().current()->Unusable(node) == "Cordoned"; }));
    world.server.Remove(kube::kPods, {"train", pod});
    world.PutPod(words, kube::Uid(world.Job("low")), rank);
    return node;
  };
  const std::string first = lose(1);
  ASSERT_TRUE(extender.Until([&] {
    world.Play();
    return kube::Annotation(world.Job("low"), keys::kRestartedAt) &&
           world.Summary("low").starts_with("Running");
  })) << world.Summary("low");
  EXPECT_FALSE(IsSuspended(world.Job("low")));
  EXPECT_EQ(world.Writes("PATCH jobs"), 2);
  EXPECT_TRUE(extender.Until([&] { return !world.Events("low").empty(); }));
  EXPECT_THAT(world.Events("low"), Contains("Restarting"));
  world.server.Edit(kube::kNodes, {"", first}, [](Json& object) { object["spec"]["unschedulable"] = false; });
  (void)lose(0);
  ASSERT_TRUE(world.Says(extender, "low", "once in ten minutes")) << world.GangOf("low")->status.message;
  EXPECT_EQ(world.Writes("PATCH jobs"), 2);
  extender.Pass(std::chrono::minutes(9));
  EXPECT_TRUE(world.Runs(extender, "low", std::chrono::minutes(6))) << "ten minutes later it may again";
  EXPECT_EQ(world.Writes("PATCH jobs"), 4);
}

TEST(GangPreemption, CallsARestartOffWhereTheNodeIsBackBeforeTheOwnerIsSuspended) {
  World world("su:2 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(world);
  JobWords words{.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"};
  words.annotations = {{keys::kRequire, "tp=nvlink,dp=su"}, {keys::kOnDegraded, "restart"}};
  world.Start(words);
  ASSERT_TRUE(world.Runs(extender, "low"));
  world.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.write() && request.plural == "jobs") return test::StatusResponse(503, "", "away");
    return std::nullopt;
  });
  const std::string node = kube::StringAt(world.Pod("low-1"), {"spec", "nodeName"});
  const auto cordon = [&](bool on, const std::string& word) {
    world.server.Edit(kube::kNodes, {"", node}, [on](Json& object) { object["spec"]["unschedulable"] = on; });
    return extender.Until([&] { return extender.controller().current()->Unusable(node) == word; });
  };
  const auto restarting = [&world] {
    const auto gang = world.GangOf("low");
    return gang && crds::IsTrue(gang->status.conditions, crds::kPreempted);
  };
  ASSERT_TRUE(cordon(true, "Cordoned"));
  world.server.Remove(kube::kPods, {"train", "low-1"});
  world.PutPod(words, kube::Uid(world.Job("low")), 1);
  ASSERT_TRUE(extender.Until(restarting)) << world.Summary("low");
  ASSERT_TRUE(cordon(false, ""));
  world.server.Intercept(nullptr);
  ASSERT_TRUE(extender.Until([&] {
    world.Play();
    return !restarting() && world.Summary("low").starts_with("Running");
  })) << world.Summary("low");
  EXPECT_FALSE(IsSuspended(world.Job("low")));
  EXPECT_FALSE(kube::Annotation(world.Job("low"), keys::kRestartedAt)) << "nobody was stopped";
}

// Its leader's clock ran ahead when it was restarted last, and was set back since.
TEST(GangPreemption, RestartsAGangWhoseLastRestartIsInAFarFuture) {
  World world("su:2 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(world);
  JobWords words{.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"};
  words.annotations = {{keys::kRequire, "tp=nvlink,dp=su"}, {keys::kOnDegraded, "restart"}};
  world.Start(words);
  const std::string future = base::FormatTime(world.clock.WallNow() + std::chrono::hours(24 * 365));
  world.server.Edit(kube::kJobs, {"train", "low"}, [&future](Json& job) {
    job["metadata"]["annotations"][std::string(keys::kRestartedAt)] = future;
  });
  ASSERT_TRUE(world.Runs(extender, "low"));
  const std::string node = kube::StringAt(world.Pod("low-1"), {"spec", "nodeName"});
  world.server.Edit(kube::kNodes, {"", node}, [](Json& object) { object["spec"]["unschedulable"] = true; });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->Unusable(node) == "Cordoned"; }));
  world.server.Remove(kube::kPods, {"train", "low-1"});
  world.PutPod(words, kube::Uid(world.Job("low")), 1);
  ASSERT_TRUE(extender.Until([&] {
    world.Play();
    return kube::Annotation(world.Job("low"), keys::kRestartedAt) != future &&
           world.Summary("low").starts_with("Running");
  })) << world.GangOf("low")->status.message;
}

TEST(GangPreemption, NamesTheRestartWhereNobodyAskedForItAndRefusesBadWords) {
  World world("su:2 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(world);
  JobWords words{.name = "low", .pods = 2, .parallelism = "tp=8,dp=2"};
  words.annotations = {{keys::kRequire, "tp=nvlink,dp=su"}};
  world.Start(words);
  ASSERT_TRUE(world.Runs(extender, "low"));
  const std::string node = kube::StringAt(world.Pod("low-1"), {"spec", "nodeName"});
  world.server.Edit(kube::kNodes, {"", node}, [](Json& object) { object["spec"]["unschedulable"] = true; });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->Unusable(node) == "Cordoned"; }));
  world.server.Remove(kube::kPods, {"train", "low-1"});
  world.PutPod(words, kube::Uid(world.Job("low")), 1);
  EXPECT_TRUE(world.Says(extender, "low", "heddle.dev/on-degraded: restart"));
  EXPECT_EQ(world.Writes("PATCH jobs"), 0);
  JobWords bad{.name = "bad", .pods = 1, .parallelism = "tp=8"};
  bad.annotations = {{keys::kOnDegraded, "maybe"}};
  world.Start(bad);
  EXPECT_TRUE(world.Says(extender, "bad", "write wait (the default), or restart"));
}

// What the controllers of other kinds do is not played: it is the object that is patched that matters here.
TEST(GangPreemption, SuspendsTheTrainJobOfAJobSet) {
  World world;
  const auto custom = [](const char* group, const char* version, const char* plural, const char* kind) {
    return kube::CustomResource(group, version, plural, kind, true);
  };
  const kube::Resource jobsets = custom("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet");
  const kube::Resource trainjobs = custom("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob");
  world.server.Serve(jobsets);
  world.server.Serve(trainjobs);
  const Json outer = world.server.Put(trainjobs, kube::NewObject(trainjobs, {"train", "tune"}));
  Json inner = kube::NewObject(jobsets, {"train", "tune"});
  inner["metadata"]["ownerReferences"] = Json::array({kube::ToJson(
      kube::OwnerReference{"trainer.kubeflow.org/v1alpha1", "TrainJob", "tune", kube::Uid(outer), true})});
  inner["spec"]["replicatedJobs"] = Json::array({{{"name", "node"}, {"replicas", 1}}});
  inner["spec"]["replicatedJobs"][0]["template"]["spec"] = {
      {"completionMode", "Indexed"},
      {"completions", 4},
      {"parallelism", 4},
      {"template", {{"metadata", {{"annotations", {{keys::kParallelism, "tp=8,dp=4"}}}}}}}};
  inner = world.server.Put(jobsets, inner);
  for (int i = 0; i < 4; ++i) {
    world.PutPod({.name = "tune", .parallelism = "tp=8,dp=4"}, "a-job", i);
    world.server.Edit(kube::kPods, {"train", "tune-" + std::to_string(i)}, [&](Json& pod) {
      auto& labels = pod["metadata"]["labels"];
      labels[std::string(jobset::kUid)] = kube::Uid(inner);
      labels[std::string(jobset::kName)] = "tune";
      labels[std::string(jobset::kReplicatedJob)] = "node";
      labels[std::string(jobset::kJobIndex)] = "0";
      labels[std::string(jobset::kAttempt)] = "0";
    });
  }
  RunningExtender extender(world);
  ASSERT_TRUE(world.Runs(extender, "tune")) << world.Summary("tune");
  world.Start(kHigh);
  const auto train = [&] { return *world.server.Find(trainjobs, {"train", "tune"}); };
  ASSERT_TRUE(extender.Until([&] { return SuspendedByUs(train()); })) << world.Summary("tune");
  EXPECT_EQ(kube::Annotation(train(), keys::kPreemptedGang), kube::Uid(inner));
  EXPECT_FALSE(IsSuspended(*world.server.Find(jobsets, {"train", "tune"})))
      << "that is its controller's to do";
  world.server.Edit(jobsets, {"train", "tune"}, [](Json& set) { set["spec"]["suspend"] = true; });
  for (const Json& pod : world.Pods("tune")) world.server.Remove(kube::kPods, kube::KeyOf(pod));
  EXPECT_TRUE(world.Runs(extender, "high"));
  EXPECT_TRUE(extender.Until(
      [&] { return !IsSuspended(train()) && !kube::Annotation(train(), keys::kPreemptedBy); }));
}

TEST(GangPreemption, EvictsTheGangOfAStatefulSetWhosePodsComeBackBehindTheGate) {
  World world;
  const kube::Resource sets{"apps", "v1", "statefulsets", "StatefulSet", true};
  Json set = kube::NewObject(sets, {"train", "serve"});
  set["spec"] = {{"replicas", 4}, {"podManagementPolicy", "Parallel"}};
  set = world.server.Put(sets, set);
  const auto put = [&](int i) {
    world.PutPod({.name = "serve", .parallelism = "tp=8,dp=4"}, kube::Uid(set), i);
    world.server.Edit(kube::kPods, {"train", "serve-" + std::to_string(i)}, [&](Json& pod) {
      pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = std::to_string(i);
      pod["metadata"]["ownerReferences"][0]["apiVersion"] = "apps/v1";
      pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet";
    });
  };
  const auto play = [&] {
    for (int i = 0; i < 4; ++i) {
      if (world.Pod("serve-" + std::to_string(i)).is_null()) put(i);
    }
    world.Play();
  };
  RunningExtender extender(world);
  const auto runs = [&](const char* job) {
    return extender.Until([&] {
      play();
      return world.Summary(job).starts_with("Running");
    });
  };
  ASSERT_TRUE(runs("serve")) << world.Summary("serve");
  world.Start(kHigh);
  ASSERT_TRUE(runs("high")) << world.Summary("high") << " " << world.Summary("serve");
  EXPECT_EQ(world.Writes("POST pods/eviction"), 4);
  EXPECT_THAT(world.Violations(), IsEmpty());
  EXPECT_TRUE(extender.Until([&] { return world.Summary("serve").starts_with("Waiting"); }))
      << world.Summary("serve");
  world.End("high");
  EXPECT_TRUE(runs("serve")) << world.Summary("serve");
}

}  // namespace
}  // namespace heddle::extender
