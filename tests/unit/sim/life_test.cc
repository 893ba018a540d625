// Scenes of a gang's life in the simulated cluster, in good weather: what a seed once found, told plainly.
#include <fmt/format.h>
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

// What of a gang's life did not come, empty: nothing; and the writes that it took.
struct Lived {
  std::string wrong;
  std::uint64_t writes = 0;
};

// No write while nothing happens.
bool ComesToRest(World& world) {
  for (int look = 0; look < 5; ++look) {
    const std::uint64_t before = world.checks().writes();
    world.Pass(minutes(1));
    if (world.checks().writes() == before) return true;
  }
  return false;
}

// One gang from its submission to the empty cluster, on three nodes of which it loses one; then a Job over all of them,
// which a slot that leaked would be missing for.
Lived WholeLife(World& world) {
  const auto runs = [&world](const std::string& without) {
    const std::vector<PodRow> pods = PodRows(world.server());
    const auto sound = std::count_if(pods.begin(), pods.end(), [&without](const PodRow& pod) {
      return !pod.terminating && !pod.finished() && !pod.node.empty() && pod.node != without;
    });
    return sound == 2 && SummaryOf(world, "train") == "Running 2/2";
  };
  const auto finished = [&world](const std::string& job) {
    return IsFinished(world.server().Find(kube::kJobs, {kTeam, job}).value_or(Json()));
  };
  world.jobs().Submit({.name = "train", .pods = 2, .parallelism = "tp=8,dp=2"});
  if (!world.Until([&] { return runs(""); }, minutes(5)))
    return {"it does not start: " + SummaryOf(world, "train")};
  const std::string lost = PodRows(world.server()).front().node;
  world.kubelets().KillNode(lost);
  if (!world.Until([&] { return runs(lost); }, minutes(20)))
    return {"it is not repaired: " + SummaryOf(world, "train")};
  world.kubelets().ReviveNode(lost);
  if (!ComesToRest(world)) return {"it is written about for ever: " + world.checks().last_write()};
  world.kubelets().LetAllEnd();
  world.kubelets().Kick();
  if (!world.Until([&] { return finished("train"); }, minutes(10)))
    return {"it does not end: " + SummaryOf(world, "train")};
  world.server().Remove(kube::kJobs, {kTeam, "train"});
  const auto empty = [&world] {
    return world.server().All(kube::kPods).empty() && world.server().All(extender::kGangs).empty();
  };
  if (!world.Until(empty, minutes(5))) return {"its pods or its Gang are left"};
  const std::uint64_t writes = world.network().writes();
  world.jobs().Submit({.name = "whole", .pods = 3, .parallelism = "tp=8,dp=3", .runs = seconds(5)});
  if (!world.Until([&] { return finished("whole"); }, minutes(5)))
    return {"a slot of it is left: " + SummaryOf(world, "whole")};
  return {"", writes};
}

// The same life again and again, each time with the extender killed at the next of its writes.
void DieAtEveryWrite(bool carried_out) {
  const Setting setting{.cluster = "su:1 node:3 gpu:8 nic:8 rail:8 spine:2"};
  std::uint64_t writes = 0;
  {
    Simulation simulation(1);
    World world(simulation, setting, {});
    const Lived lived = WholeLife(world);
    ASSERT_EQ(lived.wrong, "");
    ASSERT_THAT(Broken(world), testing::IsEmpty());
    writes = lived.writes;
  }
  // The Gang, its plan, two pods let go, a status that runs, and for the repair a plan, a pod and a status again.
  ASSERT_GE(writes, 8u);
  testing::Test::RecordProperty("writes", std::to_string(writes));
  for (std::uint64_t number = 1; number <= writes; ++number) {
    std::vector<std::string> deaths;
    Simulation simulation(1);
    simulation.SetSink([&deaths](const std::string& line) {
      if (line.find(" dies before ") != std::string::npos || line.find(" dies after ") != std::string::npos)
        deaths.push_back(line);
    });
    World world(simulation, setting, {});
    world.network().CrashAtWrite(number, carried_out);
    const Lived lived = WholeLife(world);
    SCOPED_TRACE(fmt::format("write {} of {}: {}", number, writes, deaths.empty() ? "" : deaths.front()));
    EXPECT_EQ(deaths.size(), 1u);
    EXPECT_EQ(lived.wrong, "");
    EXPECT_THAT(Broken(world), testing::IsEmpty());
  }
}

TEST(Life, OutlivesAnExtenderThatDiesBeforeAnyOfItsWrites) {
  DieAtEveryWrite(false);
}

TEST(Life, OutlivesAnExtenderThatDiesAfterAnyOfItsWrites) {
  DieAtEveryWrite(true);
}

}  // namespace
}  // namespace heddle::sim
