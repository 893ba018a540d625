// A Job that is scaled in the middle, in good weather.
#include "tests/sim/job_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;

class Scaling : public testing::Test {
 protected:
  std::string Summary(const std::string& job) {
    std::string summary;
    world_.server().Visit(extender::kGangs, [&](const Json& gang) {
      if (kube::StringAt(gang, {"spec", "owner", "name"}) == job)
        summary = kube::StringAt(gang, {"status", "summary"});
    });
    return summary;
  }
  // Of pods that run, by their names.
  std::map<std::string, std::string> Nodes() {
    std::map<std::string, std::string> nodes;
    for (const PodRow& pod : PodRows(world_.server())) {
      if (pod.phase == "Running" && !pod.terminating) nodes.emplace(pod.key.name, pod.node);
    }
    return nodes;
  }
  Json Job(const std::string& name) {
    return world_.server().Find(kube::kJobs, {kTeam, name}).value_or(Json());
  }
  std::vector<std::string> Broken() {
    std::vector<std::string> broken;
    for (const Violation& violation : world_.checks().violations())
      broken.push_back(violation.rule + ": " + violation.what);
    return broken;
  }

  Simulation simulation_{1};
  World world_{simulation_, {.cluster = "su:1 node:4 gpu:8 nic:8 rail:8 spine:2"}, {}};
};

TEST_F(Scaling, AJobThatIsScaledUpKeepsItsPodsAndGetsMoreAndScaledDownGivesNodesAway) {
  world_.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2", .backoff_limit = 0});
  ASSERT_TRUE(
      world_.Until([&] { return Summary("train") == "Running 2/2" && Nodes().size() == 2; }, minutes(2)))
      << Summary("train");
  const auto before = Nodes();
  world_.jobs().Scale("train", 4);
  ASSERT_TRUE(
      world_.Until([&] { return Nodes().size() == 4 && Summary("train") == "Running 4/4"; }, minutes(2)))
      << Summary("train");
  EXPECT_THAT(Nodes(), testing::IsSupersetOf(before));
  world_.jobs().Scale("train", 1);
  world_.jobs().Submit({.name = "next", .pods = 3, .parallelism = "tp=8,dp=3"});
  ASSERT_TRUE(world_.Until(
      [&] { return Summary("train") == "Running 1/1" && Summary("next") == "Running 3/3"; }, minutes(3)))
      << Summary("train") << "; " << Summary("next");
  EXPECT_FALSE(IsFinished(Job("train"))) << "that pods were one too many is no failure";
  world_.kubelets().LetAllEnd();
  world_.kubelets().Kick();
  EXPECT_TRUE(world_.Until([&] { return IsFinished(Job("train")) && IsFinished(Job("next")); }, minutes(2)));
  EXPECT_NE(kube::Condition(Job("train"), "Complete"), nullptr);
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(Scaling, AJobThatIsScaledUpWithoutRoomTrainsOnWithTheRanksThatItHas) {
  world_.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  world_.jobs().Submit({.name = "other", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(world_.Until(
      [&] {
        return Summary("train") == "Running 2/2" && Summary("other") == "Running 2/2" && Nodes().size() == 4;
      },
      minutes(2)))
      << Summary("train") << "; " << Summary("other");
  const auto before = Nodes();
  world_.jobs().Scale("train", 4);
  ASSERT_TRUE(world_.Until([&] { return Summary("train") == "Waiting: NotEnoughFree"; }, minutes(2)))
      << Summary("train");
  (void)world_.Until([] { return false; }, minutes(10));
  EXPECT_EQ(Nodes(), before) << "nothing that runs is touched for ranks that wait";
  world_.server().Remove(kube::kJobs, {kTeam, "other"});
  EXPECT_TRUE(world_.Until([&] { return Summary("train") == "Running 4/4"; }, minutes(5)))
      << Summary("train");
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

}  // namespace
}  // namespace heddle::sim
