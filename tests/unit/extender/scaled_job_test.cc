// A Job whose completions and parallelism are changed together while it runs, through the whole controller. What is
// written on its pods stays as it was at first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::IsEmpty;

class ScaledJob : public testing::Test {
 protected:
  // As the Job controller does, which makes pods at once and deletes what is too many a little later.
  void Scale(int pods) {
    const int before = int(cluster.Pods("train").size());
    cluster.server.Edit(kube::kJobs, {"train", "train"}, [pods](Json& job) {
      job["spec"]["completions"] = job["spec"]["parallelism"] = pods;
    });
    for (int index = before; index < pods; ++index) cluster.PutPod(words, uid, index);
  }
  void DeletePodsFrom(int first) {
    for (const Json& pod : cluster.Pods("train")) {
      if (NumberMark(pod, kCompletionIndex) >= first) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
    }
  }
  bool RunsAt(int pods) {
    return extender.Until([&] {
      cluster.BindReleased();
      const auto all = cluster.Pods("train");
      const bool bound = std::all_of(all.begin(), all.end(), [](const Json& pod) {
        return !kube::StringAt(pod, {"spec", "nodeName"}).empty();
      });
      const auto gang = cluster.GangOf("train");
      return bound && gang && gang->spec.pods == pods && gang->spec.parallelism->dp == pods &&
             cluster.Summary("train") == "Running " + std::to_string(pods) + "/" + std::to_string(pods);
    });
  }
  std::map<std::string, std::string> Nodes() const {
    std::map<std::string, std::string> nodes;
    for (const Json& pod : cluster.Pods("train")) {
      nodes.emplace(kube::Name(pod), kube::StringAt(pod, {"spec", "nodeName"}));
    }
    return nodes;
  }
  // The first so many.
  static std::map<std::string, std::string> First(std::map<std::string, std::string> nodes,
                                                  std::size_t count) {
    while (nodes.size() > count) nodes.erase(std::prev(nodes.end()));
    return nodes;
  }
  std::vector<std::string> Warnings() const {
    std::vector<std::string> reasons;
    for (const Json& event : cluster.server.All(kube::kEvents)) {
      if (kube::StringAt(event, {"type"}) == "Warning") reasons.push_back(kube::StringAt(event, {"reason"}));
    }
    return reasons;
  }

  JobWords words{.pods = 4, .parallelism = "tp=8,dp=4"};
  Cluster cluster{"su:1 node:8 gpu:8 nic:8 rail:8"};
  RunningExtender extender{cluster};
  std::string uid = cluster.Submit(words);
};

TEST_F(ScaledJob, IsPlannedAtItsNewSizeAndNobodyMoves) {
  ASSERT_TRUE(RunsAt(4)) << cluster.Summary("train");
  const auto four = Nodes();
  Scale(7);
  ASSERT_TRUE(RunsAt(7)) << cluster.Summary("train");
  const auto seven = Nodes();
  EXPECT_EQ(First(seven, 4), four);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
  Scale(3);
  ASSERT_TRUE(RunsAt(3)) << "before anything was deleted: " << cluster.Summary("train");
  DeletePodsFrom(3);
  ASSERT_TRUE(RunsAt(3)) << cluster.Summary("train");
  EXPECT_EQ(Nodes(), First(seven, 3));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(ScaledJob, LeavesTheSlotsThatItWantsNoMoreAtOnce) {
  ASSERT_TRUE(RunsAt(4));
  cluster.Submit({.name = "next", .pods = 6, .parallelism = "tp=8,dp=6"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("next").starts_with("Waiting"); }));
  Scale(2);
  DeletePodsFrom(2);
  EXPECT_TRUE(extender.Until([&] { return cluster.Released("next") == 6; })) << cluster.Summary("next");
  ASSERT_TRUE(RunsAt(2)) << cluster.Summary("train");
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST_F(ScaledJob, WaitsForRoomWhileItsPodsRunAndTakesTheSizeThatItHadAgain) {
  ASSERT_TRUE(RunsAt(4));
  const auto four = Nodes();
  Scale(9);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Waiting"); }));
  EXPECT_EQ(First(Nodes(), 4), four);
  EXPECT_EQ(cluster.Released("train"), 4) << "all of the new ones or none";
  Scale(5);
  DeletePodsFrom(5);
  ASSERT_TRUE(RunsAt(5)) << cluster.Summary("train");
  EXPECT_EQ(First(Nodes(), 4), four);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// None of its pods is left to say that it has started, and dp=4 is still written on them.
TEST_F(ScaledJob, ComesBackFromSuspensionAndFromARestartOfAllPodsAtItsNewSize) {
  ASSERT_TRUE(RunsAt(4));
  Scale(6);
  ASSERT_TRUE(RunsAt(6));
  const auto suspend = [&](bool on) {
    cluster.server.Edit(kube::kJobs, {"train", "train"}, [on](Json& job) { job["spec"]["suspend"] = on; });
  };
  suspend(true);
  DeletePodsFrom(0);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Ended"); }))
      << cluster.Summary("train");
  suspend(false);
  Scale(6);
  ASSERT_TRUE(RunsAt(6)) << cluster.Summary("train");
  DeletePodsFrom(0);
  Scale(6);
  ASSERT_TRUE(RunsAt(6)) << cluster.Summary("train");
  EXPECT_THAT(Warnings(), IsEmpty());
}

}  // namespace
}  // namespace heddle::extender
