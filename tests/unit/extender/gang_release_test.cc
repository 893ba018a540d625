// A release is a request a pod, and the others are not to wait for all of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using std::chrono::milliseconds;
using test::Cluster;
using test::JobWords;
using test::PlansRefused;
using test::RunningExtender;
using ::testing::AnyOfArray;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTwoUnits = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400";
const JobWords kBig{.name = "big", .pods = 8, .parallelism = "tp=8,dp=8"};

bool IsRelease(const test::ApiRequest& request, std::string_view job) {
  return request.plural == "pods" && request.method == "PATCH" &&
         request.key.name.starts_with(std::string(job) + "-");
}

int ListsOfGangs(Cluster& cluster) {
  const std::vector<std::string> lines = cluster.server.lines();
  return int(std::count(lines.begin(), lines.end(), "LIST gangs"));
}

// Each patch of a pod takes longer than a slice.
void SlowPatches(Cluster& cluster, std::function<void()> before_the_first = {}) {
  auto first = std::make_shared<std::atomic<bool>>(true);
  cluster.server.Intercept([&cluster, first, before = std::move(before_the_first)](
                               const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!IsRelease(request, "big")) return std::nullopt;
    if (first->exchange(false) && before) before();
    cluster.clock.Advance(milliseconds(300));
    return std::nullopt;
  });
}

TEST(Release, LetsTheRepairOfAnotherGangBePlannedBetweenTwoSlices) {
  Cluster cluster(kTwoUnits);
  std::atomic<bool> begun = false;
  RunningExtender extender(cluster);
  test::RepairAmidst repair(cluster, extender);
  ASSERT_FALSE(testing::Test::HasFailure());
  cluster.server.ClearRequests();
  SlowPatches(cluster, [&] {
    begun = true;
    repair.Begin();
  });
  cluster.Submit(kBig);
  ASSERT_TRUE(extender.Until([&] { return begun.load(); })) << cluster.Summary("big");
  // From here on the patches alone move the time.
  ASSERT_TRUE(
      cluster.server.WaitUntil([&] { return cluster.Released("big") == 8; }, std::chrono::seconds(60)))
      << cluster.Summary("big");

  const auto of_big = [](const test::ApiRequest& request) { return IsRelease(request, "big"); };
  repair.ExpectPlannedBeforeTheLast(of_big);
  const auto requests = cluster.server.requests();
  EXPECT_EQ(std::count_if(requests.begin(), requests.end(), of_big), 8);
  EXPECT_LE(ListsOfGangs(cluster), 3)
      << "one for each release, one for what has another plan beside it now, and none for a slice";
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// Each costs the API server as much as all Gangs are, and the worker waits for it.
TEST(Release, OfGangsThatWerePlannedOneAfterTheOtherNeedsOneRead) {
  Cluster cluster(kTwoUnits);
  const auto holder = [](int node) { return "holder-" + std::to_string(node); };
  for (int i = 0; i < 16; ++i) cluster.PutLonePod(holder(i), fmt::format("node-{:02}", i), 8);
  RunningExtender extender(cluster);
  const std::vector<std::string> jobs{"one", "two", "three"};
  for (const std::string& job : jobs) cluster.Submit({.name = job, .pods = 4, .parallelism = "tp=8,dp=4"});
  const auto all = [&jobs](const auto& is) { return std::all_of(jobs.begin(), jobs.end(), is); };
  ASSERT_TRUE(extender.Until([&] {
    return all([&](const auto& job) { return cluster.Summary(job) == "Waiting: NotEnoughFree"; });
  }));
  extender.Pass(std::chrono::seconds(5));  // until no walk is under way
  cluster.server.ClearRequests();
  for (int i = 0; i < 16; ++i) cluster.server.Remove(kube::kPods, {"other", holder(i)});
  const JobWords part{.name = "part", .pods = 2, .parallelism = "tp=8,dp=2"};
  cluster.PutPod(part, cluster.PutJob(part), 0);
  WaitUntilKnown(cluster, extender, "part-0");  // so that all three find room at once
  // And in one walk through the queue, since time stands from then on.
  cluster.clock.Advance(ControllerOptions().settle);
  ASSERT_TRUE(cluster.server.WaitUntil(
      [&] { return all([&](const auto& job) { return cluster.Released(job) == 4; }); },
      std::chrono::seconds(60)));
  EXPECT_EQ(ListsOfGangs(cluster), 1);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// What people do to a node, and back once the extender's cache has it. Time stands meanwhile.
void EditNode(Cluster& cluster, RunningExtender& extender, const std::string& node,
              const std::function<void(kube::Json&)>& change) {
  const auto heard = [&] {
    return extender.controller().MetricsText().find(
               "heddle_extender_watch_age_seconds{resource=\"nodes\"} 0\n") != std::string::npos;
  };
  // The second is heard once the first was taken in.
  for (const char* edit : {"first", "second"}) {
    cluster.clock.Advance(milliseconds(10));
    cluster.server.Edit(kube::kNodes, {"", node}, [&](kube::Json& object) {
      change(object);
      object["metadata"]["labels"]["edit"] = edit;
    });
    for (int i = 0; i < 5000 && !heard(); ++i) {
      (void)cluster.server.WaitUntil([] { return false; }, milliseconds(2));
    }
  }
}

// How many requests of a release are under way together, at most.
class Meeting {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}
  // Until so many are here.
  void Attend() {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++here_);
    come_.notify_all();
    come_.wait_for(lock, std::chrono::seconds(2), [&] { return most_ >= wanted_; });
    --here_;
  }
  int most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  const int wanted_;
  mutable std::mutex mutex_;
  std::condition_variable come_;
  int here_ = 0, most_ = 0;
};

TEST(Release, HasAsManyRequestsUnderWayTogetherAsItMay) {
  Cluster cluster(kTwoUnits);
  Meeting meeting(3);
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (IsRelease(request, "big")) meeting.Attend();
    return std::nullopt;
  });
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 0, 3);
  cluster.Submit(kBig);
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("big") == 8; })) << cluster.Summary("big");
  EXPECT_EQ(meeting.most(), 3);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// What was begun is answered before it gives up, and what was let go stays so.
TEST(Release, ThatTheServerRefusesSideBySideIsTriedAgainForThePodsThatAreLeft) {
  Cluster cluster(kTwoUnits);
  std::atomic<int> patches = 0;
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!IsRelease(request, "big") || ++patches % 3 != 0) return std::nullopt;
    return kube::HttpResponse{503, {}, R"({"kind":"Status","status":"Failure","code":503})"};
  });
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 0, 4);
  cluster.Submit(kBig);
  ASSERT_TRUE(extender.Until([&] { return cluster.Released("big") == 8; })) << cluster.Summary("big");
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// A pod of no gang may be scheduled at any moment.
TEST(Release, BeginsOnceTheVerbsKnowWhatIsReservedForThePods) {
  Cluster cluster(kTwoUnits);
  std::atomic<int> reserving = -1;
  RunningExtender extender(cluster);
  SlowPatches(cluster, [&] {
    int nodes = 0;
    const std::shared_ptr<const Snapshot> snapshot = extender.controller().current();
    for (const crds::PlacedPod& row : crds::ToRows(*cluster.GangOf("big")->status.placement))
      nodes += snapshot->Reservation(row.node) != nullptr ? 1 : 0;
    reserving = nodes;
  });
  cluster.Submit(kBig);
  ASSERT_TRUE(extender.Until([&] { return reserving.load() >= 0; })) << cluster.Summary("big");
  EXPECT_EQ(reserving.load(), 8);
}

// The leader before may have planned the gang anew, and that write may still be on its way: it was made from the version
// that the next leader reads, and would tell of other slots once the pods have gone by these.
TEST(Release, IsBegunByAWriteAfterWhichNoneOfTheLeaderBeforeLands) {
  Cluster cluster(kTwoUnits);
  cluster.server.Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!IsRelease(request, "big")) return std::nullopt;
    return kube::HttpResponse{500, {}, R"({"kind":"Status","status":"Failure","code":500})"};
  });
  {
    RunningExtender first(cluster);
    cluster.Submit(kBig);
    ASSERT_TRUE(first.Until([&] {
      const auto gang = cluster.GangOf("big");
      return gang && gang->status.placement;
    })) << cluster.Summary("big");
  }
  const crds::Gang before = *cluster.GangOf("big");
  cluster.server.Intercept(nullptr);
  cluster.server.ClearRequests();
  RunningExtender second(cluster);
  ASSERT_TRUE(second.Until([&] { return cluster.Released("big") == 8; })) << cluster.Summary("big");
  bool written = false;
  for (const test::ApiRequest& request : cluster.server.requests()) {
    if (IsRelease(request, "big")) {
      EXPECT_TRUE(written);
      break;
    }
    written = written || (request.plural == "gangs" && request.method == "PUT");
  }
  const crds::Gang after = *cluster.GangOf("big");
  EXPECT_EQ(after.status.placement->epoch, before.status.placement->epoch + 1);
  EXPECT_EQ(crds::ToRows(*after.status.placement), crds::ToRows(*before.status.placement));
  EXPECT_EQ(after.status.planned_at, before.status.planned_at);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(Release, SendsNoPodToANodeThatIsLostBetweenTwoSlices) {
  Cluster cluster(kTwoUnits);
  std::string lost;
  std::atomic<bool> begun = false;
  RunningExtender extender(cluster);
  SlowPatches(cluster, [&] {
    begun = true;
    lost = crds::ToRows(*cluster.GangOf("big")->status.placement)[7].node;
    EditNode(cluster, extender, lost,
             [](kube::Json& node) { node["status"]["conditions"][0]["status"] = "False"; });
  });
  cluster.Submit(kBig);
  ASSERT_TRUE(extender.Until([&] { return begun.load(); })) << cluster.Summary("big");
  // From here on the patches alone move the time.
  ASSERT_TRUE(
      cluster.server.WaitUntil([&] { return cluster.Released("big") == 8; }, std::chrono::seconds(60)))
      << cluster.Summary("big");
  for (const kube::Json& pod : cluster.Pods("big"))
    EXPECT_NE(ReadPod(pod).plan->node, lost) << kube::Name(pod);
  EXPECT_EQ(cluster.GangOf("big")->status.placement->epoch, 2);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// Two plans over the same GPUs: "big" is being let go when an older plan of "late" lands, as the last leader's may, or
// one that was sent long ago. Whatever patch it lands at, one of both is whole on those nodes and the other goes
// elsewhere; half of each would be there for good. Found on a real API server, which refused the first patches.
void LandALatePlan(int at_patch, int refused_before) {
  SCOPED_TRACE(std::to_string(at_patch) + ", refused before: " + std::to_string(refused_before));
  Cluster cluster(kTwoUnits);
  std::atomic<bool> held = true;
  std::atomic<int> patch = 0;
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    const auto late = held ? cluster.GangOf("late") : std::nullopt;
    if (late && request.plural == "gangs" && request.write() && request.key.name == late->name)
      return test::StatusResponse(422, "Invalid", "the test refuses");
    if (!IsRelease(request, "big")) return std::nullopt;
    cluster.clock.Advance(milliseconds(300));
    const int number = patch++;
    if (number == at_patch) {
      const kube::Json status = crds::ToJson(*cluster.GangOf("big"))["status"];
      held = false;
      cluster.server.Edit(kGangs, {"train", late->name}, [&status](kube::Json& gang) {
        gang["status"]["placement"] = status["placement"];
        gang["status"]["plannedAt"] = "2020-01-01T00:00:00Z";
      });
    }
    if (number < refused_before) return test::StatusResponse(422, "Invalid", "the test refuses");
    return std::nullopt;
  });
  RunningExtender extender(cluster);
  JobWords late = kBig;
  late.name = "late";
  cluster.Submit(late);
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("late").has_value(); }));
  JobWords big = kBig;
  big.priority = 1;  // its turn is first
  cluster.Submit(big);
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("big") == "Running 8/8" && cluster.Summary("late") == "Running 8/8";
  })) << cluster.Summary("big")
      << "; " << cluster.Summary("late");
  EXPECT_FALSE(held);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
  const auto nodes = [&cluster](const std::string& job) {
    std::set<std::string> names;  // without those of substitutes
    for (const crds::PlacedPod& row : crds::ToRows(*cluster.GangOf(job)->status.placement))
      names.insert(row.node);
    return names;
  };
  EXPECT_THAT(nodes("big"), Each(Not(AnyOfArray(nodes("late")))));
  if (at_patch >= refused_before) {
    EXPECT_EQ(cluster.GangOf("big")->status.placement->epoch, 1) << "of what was let go nothing moves";
  }
}

TEST(Release, GoesOnBesideAnOlderPlanOverItsGpusThatLandsOnceSomeOfItWasLetGo) {
  for (const int at_patch : {1, 4, 7}) LandALatePlan(at_patch, 0);
}

TEST(Release, GivesWayToAnOlderPlanOverItsGpusThatLandsBeforeAnyOfItWasLetGo) {
  LandALatePlan(0, 1);
  LandALatePlan(1, 3);
}

TEST(Release, DoesNotWaitForAWalkOfTheQueueAfterEachSlice) {
  Cluster cluster(kTwoUnits);
  cluster.PutLonePod("holder", "node-00", 8);
  std::atomic<bool> begun = false;
  std::atomic<int> before = 0, seen = 0;
  RunningExtender extender(cluster);
  cluster.Submit({.name = "waits", .pods = 16, .parallelism = "tp=8,dp=16"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("waits") == "Waiting: NotEnoughFree"; }))
      << cluster.Summary("waits");
  cluster.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!IsRelease(request, "big")) return std::nullopt;
    if (!begun.exchange(true)) before = PlansRefused(extender);
    cluster.PutLonePod("more-" + std::to_string(seen++), "node-00", 0);
    cluster.clock.Advance(milliseconds(300));
    return std::nullopt;
  });
  JobWords first = kBig;
  first.priority = 9;  // or all nodes would be kept for the other
  cluster.Submit(first);
  ASSERT_TRUE(extender.Until([&] { return begun.load(); })) << cluster.Summary("big");
  ASSERT_TRUE(
      cluster.server.WaitUntil([&] { return cluster.Released("big") == 8; }, std::chrono::seconds(60)))
      << cluster.Summary("big");
  EXPECT_LE(PlansRefused(extender) - before, 3) << "eight slices in 2.4 s";
}

TEST(Release, GoesOnWhereItWasAfterAKillBetweenTwoSlices) {
  for (int writes = 1; writes < 12; ++writes) {
    Cluster cluster(kTwoUnits);
    SlowPatches(cluster);
    cluster.Submit(kBig);
    test::MortalTransport mortal(cluster.server, writes);
    {
      RunningExtender doomed(cluster, mortal);
      (void)doomed.Until([&] { return mortal.dead() || cluster.Released("big") == 8; });
    }
    RunningExtender extender(cluster);
    ASSERT_TRUE(extender.Until([&] {
      cluster.BindReleased();
      return cluster.Summary("big") == "Running 8/8";
    })) << writes
        << ": " << cluster.Summary("big");
    EXPECT_THAT(cluster.Violations(), IsEmpty()) << writes;
    int patches = 0;
    for (const test::ApiRequest& request : cluster.server.writes())
      patches += IsRelease(request, "big") ? 1 : 0;
    EXPECT_EQ(patches, 8) << "each pod once, killed after write " << writes;
  }
}

}  // namespace
}  // namespace heddle::extender
