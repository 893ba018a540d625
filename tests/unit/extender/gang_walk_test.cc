// A walk of the queue is a planning for each gang that waits, and the others are not to wait for all of them: it is
// done in slices, and who gets what is as if it had been done in one go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "crds/keys.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Cluster;
using test::JobWords;
using test::PlansRefused;
using test::RunningExtender;
using test::WaitUntilKnown;
using ::testing::IsEmpty;

constexpr const char* kFourNodes = "su:1 node:4 gpu:8 nic:8 rail:8";
const JobWords kLast{.name = "last", .pods = 1, .parallelism = "tp=8"};

class Walk : public testing::Test {
 protected:
  explicit Walk(const char* line = kFourNodes) : cluster(line) {}

  std::string Name(int node) const {
    return kube::Name(cluster.server.All(kube::kNodes).at(std::size_t(node)));
  }
  std::string Message(const std::string& job) const {
    const auto gang = cluster.GangOf(job);
    return gang ? gang->status.message : "";
  }
  static bool IsSlow(const test::ApiRequest& request) {
    return request.Line().starts_with("PUT gangs/status") && request.key.name.starts_with("slow-");
  }
  // Gangs "slow-0" and so on, that lack room and let others pass.
  void SubmitSlow(int count, int pods = 4) {
    for (int i = 0; i < count; ++i) {
      cluster.Submit({.name = "slow-" + std::to_string(i),
                      .pods = pods,
                      .parallelism = "tp=8,dp=" + std::to_string(pods),
                      .priority = 5,
                      .annotations = {{std::string(crds::keys::kWait), "8760h"}}});
    }
  }
  // Until each was told why it waits, and for so long that it is told its newest words at once.
  void Settle(RunningExtender& extender, const std::vector<std::string>& jobs) {
    for (const std::string& job : jobs) {
      ASSERT_TRUE(extender.Until([&] { return cluster.Summary(job) == "Waiting: NotEnoughFree"; }))
          << job << ": " << cluster.Summary(job);
    }
    extender.Pass(seconds(40));
  }
  static std::vector<std::string> Slow(int count) {
    std::vector<std::string> jobs;
    for (int i = 0; i < count; ++i) jobs.push_back("slow-" + std::to_string(i));
    return jobs;
  }
  // From now on each write of what a slow gang is told takes longer than a slice. `meanwhile` is told which it is,
  // from 0.
  void SlowWords(std::function<void(int)> meanwhile = {}) {
    cluster.server.Intercept([this, then = std::move(meanwhile)](
                                 const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (!IsSlow(request)) return std::nullopt;
      if (then) then(told.load());
      cluster.clock.Advance(milliseconds(300));
      ++told;
      return std::nullopt;
    });
  }
  // The walk begins; from there on the writes alone move the time.
  void WalkOn(RunningExtender& extender, int writes) {
    ASSERT_TRUE(extender.Until([&] { return told > 0; }));
    ASSERT_TRUE(cluster.server.WaitUntil([&] { return told >= writes; }, seconds(60))) << told.load();
  }

  Cluster cluster;
  std::atomic<int> told = 0;
};

class LargeWalk : public Walk {
 protected:
  LargeWalk() : Walk("su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400") {}
};

TEST_F(LargeWalk, LetsARepairBePlannedBetweenTwoSlices) {
  cluster.PutLonePod("holder", "node-15", 4);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  test::RepairAmidst repair(cluster, extender);
  ASSERT_FALSE(HasFailure());
  SubmitSlow(6, 14);
  Settle(extender, Slow(6));
  cluster.server.ClearRequests();
  SlowWords([&](int write) {
    if (write == 0) repair.Begin();
  });
  cluster.PutLonePod("more", "node-15", 1);  // another reason to walk, and other words
  WalkOn(extender, 6);
  repair.ExpectPlannedBeforeTheLast(IsSlow);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST_F(Walk, DoesNotPassByAGangOfHigherPriorityThatComesInItsMiddle) {
  for (int i = 0; i < 4; ++i) cluster.PutLonePod("holder-" + std::to_string(i), Name(i), 8);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  SubmitSlow(12);
  cluster.Submit(kLast);
  Settle(extender, Slow(12));
  Settle(extender, {"last"});
  SlowWords([&](int write) {
    if (write != 0) return;
    cluster.Submit({.name = "first", .pods = 1, .parallelism = "tp=8", .priority = 9});
    WaitUntilKnown(cluster, extender, "first-0");
  });
  cluster.server.Remove(kube::kPods, {"other", "holder-3"});
  WalkOn(extender, 12);
  EXPECT_TRUE(extender.Until([&] { return cluster.Released("first") == 1; })) << cluster.Summary("first");
  EXPECT_EQ(cluster.Released("last"), 0);
  EXPECT_EQ(cluster.Summary("last"), "Waiting: NotEnoughFree");
}

TEST_F(Walk, KeepsTheHeadsNodesThroughAllItsSlices) {
  for (int i = 0; i < 4; ++i) cluster.PutLonePod("holder-" + std::to_string(i), Name(i), 8);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  cluster.Submit({.name = "head", .pods = 4, .parallelism = "tp=8,dp=4", .priority = 9});
  SubmitSlow(4);
  cluster.Submit(kLast);
  Settle(extender, Slow(4));
  Settle(extender, {"head", "last"});
  SlowWords();
  cluster.server.Remove(kube::kPods, {"other", "holder-3"});
  WalkOn(extender, 4);
  EXPECT_TRUE(extender.Until([&] {
    return Message("last").find("kept for gangs ahead of it in the queue") != std::string::npos;
  })) << cluster.Summary("last")
      << Message("last");
  EXPECT_EQ(cluster.Released("last"), 0);
}

// The first has been asked already, and lacks no more. It keeps no node, so nothing but its turn holds the last back.
TEST_F(Walk, OffersWhatComesFreeInItsMiddleToThoseAheadFirst) {
  cluster.PutLonePod("half", Name(0), 4);
  cluster.PutLonePod("rest", Name(0), 4);
  for (int i = 1; i < 4; ++i) cluster.PutLonePod("holder-" + std::to_string(i), Name(i), 8);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  cluster.Submit({.name = "first",
                  .pods = 3,
                  .parallelism = "tp=8,dp=3",
                  .priority = 9,
                  .annotations = {{std::string(crds::keys::kWait), "8760h"}}});
  SubmitSlow(4);
  cluster.Submit(kLast);
  Settle(extender, Slow(4));
  Settle(extender, {"first", "last"});
  cluster.server.ClearRequests();
  SlowWords([&](int write) {
    if (write != 0) return;
    for (int i = 1; i < 4; ++i) cluster.server.Remove(kube::kPods, {"other", "holder-" + std::to_string(i)});
    const JobWords marker{.name = "marker", .pods = 2, .parallelism = "tp=8,dp=2"};
    cluster.PutPod(marker, cluster.PutJob(marker), 0);
    WaitUntilKnown(cluster, extender, "marker-0");
  });
  cluster.server.Remove(kube::kPods, {"other", "half"});
  WalkOn(extender, 4);
  EXPECT_TRUE(extender.Until([&] { return cluster.Released("first") == 3; })) << cluster.Summary("first");
  EXPECT_EQ(cluster.Released("last"), 0);
  const std::string gang = cluster.GangOf("last")->name;
  for (const test::ApiRequest& write : cluster.server.writes()) {
    const bool of_last = write.plural == "gangs" && write.key.name == gang;
    EXPECT_FALSE(of_last && write.body.find("there is room for it") != std::string::npos)
        << "nobody keeps it: " << write.body;
  }
  cluster.server.Remove(kube::kPods, {"other", "rest"});
  EXPECT_TRUE(extender.Until([&] { return cluster.Released("last") == 1; })) << cluster.Summary("last");
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST_F(Walk, WritesNothingMoreOnceItsExtenderDoesNotLead) {
  for (int i = 0; i < 4; ++i) cluster.PutLonePod("holder-" + std::to_string(i), Name(i), 8);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  SubmitSlow(4);
  Settle(extender, Slow(4));
  SlowWords([&](int write) {
    if (write == 0) extender.controller().SetLeading(false);
  });
  cluster.server.Remove(kube::kPods, {"other", "holder-3"});
  WalkOn(extender, 1);
  extender.Pass(seconds(60));
  EXPECT_EQ(told.load(), 1);
  extender.controller().SetLeading(true);
  EXPECT_TRUE(extender.Until([&] { return told >= 4; })) << told.load();
}

TEST_F(Walk, ReachesItsEndAlthoughPodsComeAllTheTimeAndAnotherFollows) {
  for (int i = 0; i < 4; ++i) cluster.PutLonePod("holder-" + std::to_string(i), Name(i), 8);
  std::atomic<int> first = 0, last = 0;
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false);
  SubmitSlow(8);
  Settle(extender, Slow(8));
  SlowWords([&](int write) {
    if (write == 0) first = PlansRefused(extender);
    if (write == 7) last = PlansRefused(extender);
    cluster.PutLonePod("more-" + std::to_string(write), Name(0), 0);
  });
  cluster.server.Remove(kube::kPods, {"other", "holder-3"});
  WalkOn(extender, 8);
  EXPECT_EQ(last - first, 7) << "each of eight was asked once";
  EXPECT_TRUE(extender.Until([&] { return PlansRefused(extender) - first >= 7 + 8; }));
}

}  // namespace
}  // namespace heddle::extender
