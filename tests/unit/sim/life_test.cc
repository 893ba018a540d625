// Scenes of a gang's life in the simulated cluster, in good weather: what a seed once found, told plainly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "extender/resources.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;

std::string SummaryOf(World& world, const std::string& job) {
  std::string summary;
  world.server().Visit(extender::kGangs, [&](const Json& gang) {
    if (kube::StringAt(gang, {"spec", "owner", "name"}) == job)
      summary = kube::StringAt(gang, {"status", "summary"});
  });
  return summary;
}

std::vector<std::string> Broken(World& world) {
  std::vector<std::string> broken;
  for (const Violation& violation : world.checks().violations())
    broken.push_back(violation.rule + ": " + violation.what);
  return broken;
}

TEST(Life, AJobRunsFromItsSubmissionToItsEnd) {
  Simulation simulation(1);
  World world(simulation, {}, {});
  world.jobs().Submit({.name = "train", .pods = 4, .parallelism = "tp=8,dp=4", .runs = seconds(30)});
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 4/4"; }, minutes(2)))
      << SummaryOf(world, "train");
  EXPECT_TRUE(world.Until(
      [&] {
        return IsFinished(world.server().Find(kube::kJobs, {kTeam, "train"}).value_or(Json()));
      },
      minutes(2)));
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

// Seed 18: a gang that had been told of its trouble was looked at again at once, for ever.
TEST(Life, AGangWithoutAPlaceForALostRankWaitsForOne) {
  Simulation simulation(1);
  World world(simulation, {.cluster = "su:1 node:2 gpu:8 nic:8 rail:8 spine:2"}, {});
  world.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 2/2"; }, minutes(2)));
  world.kubelets().KillNode(world.nodes().front());
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train").starts_with("Degraded"); }, minutes(10)))
      << SummaryOf(world, "train");
  world.Pass(minutes(5));
  EXPECT_THAT(Broken(world), testing::IsEmpty());
  world.kubelets().ReviveNode(world.nodes().front());
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 2/2"; }, minutes(5)))
      << SummaryOf(world, "train");
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

// The Job's status.completedIndexes outlive the pods.
TEST(Life, ARankThatIsDoneGivesItsNodeAwayAlsoWhenItsPodIsDeleted) {
  Simulation simulation(1);
  World world(simulation, {.cluster = "su:1 node:2 gpu:8 nic:8 rail:8 spine:2"}, {});
  world.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 2/2"; }, minutes(2)));
  const PodRow first = PodRows(world.server()).front();
  world.server().Edit(kube::kPods, first.key, [](Json& pod) { pod["status"]["phase"] = "Succeeded"; });
  const auto completed = [&] {
    const auto job = world.server().Find(kube::kJobs, {kTeam, "train"});
    return kube::StringAt(*job, {"status", "completedIndexes"});
  };
  ASSERT_TRUE(world.Until([&] { return completed() == "0"; }, seconds(10))) << completed();
  world.jobs().DeletePod(first.key, "somebody tidies up");
  world.jobs().Submit({.name = "next", .pods = 1, .parallelism = "tp=8"});
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "next") == "Running 1/1"; }, minutes(2)))
      << SummaryOf(world, "next");
  EXPECT_EQ(SummaryOf(world, "train"), "Running 2/2");
  world.kubelets().LetAllEnd();
  world.kubelets().Kick();
  EXPECT_TRUE(world.Until(
      [&] {
        return IsFinished(*world.server().Find(kube::kJobs, {kTeam, "train"}));
      },
      minutes(2)));
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

TEST(Life, AGangGoesOnWhenADeletedNodeComesBackUnderAnotherUid) {
  Simulation simulation(1);
  World world(simulation, {.cluster = "su:1 node:2 gpu:8 nic:8 rail:8 spine:2"}, {});
  world.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 2/2"; }, minutes(2)));
  const std::string& node = world.nodes().front();
  const auto uids = [&] {
    std::vector<std::string> found;
    for (const auto& resource : {kube::kNodes, extender::kNodeTopologies}) {
      const auto object = world.server().Find(resource, {"", node});
      found.push_back(object ? kube::Uid(*object) : "none");
    }
    return found;
  };
  const auto before = uids();
  world.kubelets().RemoveNode(node);
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train").starts_with("Degraded"); }, minutes(10)))
      << SummaryOf(world, "train");
  EXPECT_THAT(uids(), testing::ElementsAre("none", "none"));
  world.kubelets().ReviveNode(node);
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 2/2"; }, minutes(5)))
      << SummaryOf(world, "train");
  EXPECT_NE(uids()[0], before[0]);
  EXPECT_NE(uids()[1], before[1]);
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

// The operator's part in planning: the spec of a Fabric, which people write.
TEST(Life, ANodeThatItsFabricExcludesKeepsWhoRunsThereAndGetsNobodyNew) {
  Simulation simulation(1);
  World world(simulation, {.cluster = "su:1 node:3 gpu:8 nic:8 rail:8 spine:2"}, {});
  world.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 2/2"; }, minutes(2)));
  const PodRow first = PodRows(world.server()).front();
  ASSERT_EQ(world.fabrics().size(), 1u);
  world.server().Edit(extender::kFabrics, {"", world.fabrics().front()},
                      [&](Json& fabric) { fabric["spec"]["excludedNodes"] = Json::array({first.node}); });
  world.Pass(minutes(1));
  EXPECT_EQ(SummaryOf(world, "train"), "Running 2/2");
  world.jobs().DeletePod(first.key, "a person wants it");
  const auto elsewhere = [&] {
    const std::vector<PodRow> pods = PodRows(world.server());
    return pods.size() == 2 && std::none_of(pods.begin(), pods.end(), [&first](const PodRow& pod) {
             return pod.node == first.node || pod.node.empty();
           });
  };
  EXPECT_TRUE(
      world.Until([&] { return elsewhere() && SummaryOf(world, "train") == "Running 2/2"; }, minutes(3)))
      << SummaryOf(world, "train");
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

TEST(Life, AWatchThatIsToldThatItsVersionIsGoneIsBegunAnew) {
  Simulation simulation(1);
  int told = 0;
  simulation.SetSink([&told](const std::string& line) {
    told += line.find(" pods watch is told 410") != std::string::npos ? 1 : 0;
  });
  World world(simulation, {}, {.gone = 1});
  world.Pass(minutes(5));
  EXPECT_GE(told, 3);
  world.jobs().Submit({.name = "train", .pods = 4, .parallelism = "tp=8,dp=4"});
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 4/4"; }, minutes(2)))
      << SummaryOf(world, "train");
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

TEST(Life, TheClockOfOneMachineMayDriftAway) {
  Simulation simulation(1);
  World world(simulation, {.own_lease = true, .drift = std::chrono::milliseconds(50)}, {});
  world.Pass(minutes(2));
  Process& second = *world.machines()[1].process;
  EXPECT_GE(second.WallNow() - simulation.wall(), seconds(5));
  world.jobs().Submit({.name = "train", .pods = 4, .parallelism = "tp=8,dp=4"});
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "train") == "Running 4/4"; }, minutes(2)));
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

TEST(Life, GoesOnAfterTheLeaderWasKilled) {
  Simulation simulation(1);
  World world(simulation, {.own_lease = true}, {});
  world.jobs().Submit({.name = "first", .pods = 2, .parallelism = "tp=8,dp=2"});
  ASSERT_TRUE(world.Until([&] { return SummaryOf(world, "first") == "Running 2/2"; }, minutes(2)));
  for (Machine& machine : world.machines()) simulation.Kill(*machine.process);
  world.jobs().Submit({.name = "second", .pods = 4, .parallelism = "tp=8,dp=4"});
  EXPECT_TRUE(world.Until([&] { return SummaryOf(world, "second") == "Running 4/4"; }, minutes(3)))
      << SummaryOf(world, "second");
  EXPECT_EQ(SummaryOf(world, "first"), "Running 2/2");
  EXPECT_THAT(Broken(world), testing::IsEmpty());
}

}  // namespace
}  // namespace heddle::sim
