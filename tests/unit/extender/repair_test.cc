// What becomes of gangs whose nodes, GPUs and rails fail, and of the nodes that are kept for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "crds/node_topology.h"
#include "extender/resources.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using test::Cluster;
using test::JobWords;
using test::RunningExtender;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kOneRack = "rack:1 tray:6 gpu:4 nic:4 rail:4 machine:gb200 nvl";
constexpr const char* kTwoRacks = "rack:2 tray:6 gpu:4 nic:4 rail:4 machine:gb200 nvl";

// Gangs of whole trays of one rack.
JobWords InOneRack(int pods, const std::string& name = "train") {
  return {.name = name,
          .pods = pods,
          .gpus = 4,
          .parallelism = "tp=4,dp=" + std::to_string(pods),
          .annotations = {{"heddle.dev/require", "gang=nvlink"}}};
}

// Until every pod there is now has a node: right after a pod was made again the Gang still says that it runs.
bool RunsToTheEnd(Cluster& cluster, RunningExtender& extender, const std::string& job = "train") {
  return extender.Until([&] {
    cluster.BindReleased();
    const auto pods = cluster.Pods(job);
    const bool bound = std::all_of(pods.begin(), pods.end(), [](const kube::Json& pod) {
      return !kube::StringAt(pod, {"spec", "nodeName"}).empty();
    });
    return bound && cluster.Summary(job).starts_with("Running");
  });
}

std::set<std::string> NodesOf(const Cluster& cluster, const std::string& job) {
  std::set<std::string> nodes;
  for (const kube::Json& pod : cluster.Pods(job)) nodes.insert(kube::StringAt(pod, {"spec", "nodeName"}));
  return nodes;
}

std::string RackOf(const std::string& node) {
  return node.substr(0, node.rfind("tray"));
}

std::set<std::string> RacksOf(const std::set<std::string>& nodes) {
  std::set<std::string> racks;
  for (const std::string& node : nodes) racks.insert(RackOf(node));
  return racks;
}

void Lose(Cluster& cluster, const std::string& node) {
  cluster.server.Edit(kube::kNodes, {"", node},
                      [](kube::Json& lost) { lost["status"]["conditions"][0]["status"] = "Unknown"; });
}

void Report(Cluster& cluster, const std::string& node, const std::function<void(topology::Node&)>& change) {
  cluster.server.Edit(kNodeTopologies, {"", node}, [&](kube::Json& object) {
    auto topology = crds::NodeTopologyFromJson(object);
    ASSERT_TRUE(topology);
    change(topology->status.node);
    object["status"] = crds::ToJson(*topology)["status"];
  });
}

TEST(Spares, AreLeftByNewGangsWhichAreToldSo) {
  Cluster cluster(kTwoRacks);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 1);
  cluster.Submit(InOneRack(6));
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Waiting"); }));
  EXPECT_THAT(cluster.GangOf("train")->status.message, HasSubstr("kept as spares"));
  cluster.Submit(InOneRack(5, "smaller"));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "smaller")) << cluster.Summary("smaller");
  EXPECT_THAT(cluster.GangOf("smaller")->status.explanation,
              Contains(HasSubstr("spare nodes that stay free")));
}

TEST(Spares, AreWhereALostRankGoes) {
  Cluster cluster(kTwoRacks);
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 1);
  const std::string uid = cluster.Submit(InOneRack(5));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::set<std::string> before = NodesOf(cluster, "train");
  const std::string lost = ReadPod(cluster.Pod("train-2")).plan->node;
  Lose(cluster, lost);
  cluster.server.Remove(kube::kPods, {"train", "train-2"});
  cluster.PutPod(InOneRack(5), uid, 2, "train-2-again");
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  std::set<std::string> after = NodesOf(cluster, "train");
  EXPECT_EQ(RacksOf(after), RacksOf(before));
  const std::string now = ReadPod(cluster.Pod("train-2-again")).plan->node;
  EXPECT_FALSE(before.contains(now));
  after.erase(now);
  after.insert(lost);
  EXPECT_EQ(after, before) << "nobody else moved";
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// It fills the whole of the other rack, spare and all.
TEST(Spares, AreThereForAGangThatLostEveryRank) {
  Cluster cluster(kTwoRacks);
  std::string uid;
  {
    RunningExtender extender(cluster);
    uid = cluster.Submit(InOneRack(6));
    ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  }
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 1);
  const std::set<std::string> before = NodesOf(cluster, "train");
  for (const std::string& node : before) Lose(cluster, node);
  for (int rank = 0; rank < 6; ++rank) {
    const std::string name = "train-" + std::to_string(rank);
    cluster.server.Remove(kube::kPods, {"train", name});
    cluster.PutPod(InOneRack(6), uid, rank, name + "-again");
  }
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.placement->epoch > 1; }));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  const std::set<std::string> after = NodesOf(cluster, "train");
  EXPECT_EQ(after.size(), 6u);
  EXPECT_EQ(RacksOf(after).size(), 1u);
  EXPECT_NE(RacksOf(after), RacksOf(before));
}

// A gang on five trays of a rack of six has left one spare, which breaks. Then it loses every rank, and before all are
// there again a pod of no gang has one of its trays: it needs all that is left of the rack.
void LoseEveryRank(Cluster& cluster) {
  JobWords words = InOneRack(5);
  words.priority = 100;
  std::string uid;
  {
    RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 1);
    uid = cluster.Submit(words);
    ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  }
  const std::set<std::string> own = NodesOf(cluster, "train");
  for (const kube::Json& node : cluster.server.All(kube::kNodes)) {
    if (!own.contains(kube::Name(node))) Lose(cluster, kube::Name(node));
  }
  for (int rank = 0; rank < 5; ++rank) {
    const std::string name = "train-" + std::to_string(rank);
    cluster.server.Remove(kube::kPods, {"train", name});
    cluster.PutPod(words, uid, rank, name + "-again");
  }
  cluster.PutLonePod("notebook", *own.begin(), 4);
}

TEST(Spares, CountWhereRoomIsMadeForAGangThatLostEveryRank) {
  Cluster cluster(kOneRack);
  ASSERT_NO_FATAL_FAILURE(LoseEveryRank(cluster));
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, true, 1);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.GangOf("train")->status.message;
  EXPECT_FALSE(cluster.server.Find(kube::kPods, {"other", "notebook"}));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(Spares, CountAmongTheNodesThatAGangKeepsThatLostEveryRank) {
  Cluster cluster(kOneRack);
  ASSERT_NO_FATAL_FAILURE(LoseEveryRank(cluster));
  RunningExtender extender(cluster, cluster.server, Mode::kPlace, false, 1);
  ASSERT_TRUE(extender.Until([&] { return !cluster.GangOf("train")->status.placement; }));
  cluster.Submit(InOneRack(1, "late"));
  ASSERT_TRUE(extender.Until([&] {
    const auto late = cluster.GangOf("late");
    return late && late->status.message.find("kept for gangs ahead of it") != std::string::npos;
  })) << cluster.Summary("late");
  cluster.server.Remove(kube::kPods, {"other", "notebook"});
  EXPECT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.GangOf("train")->status.message;
}

TEST(RunningGang, SaysThatAGpuOrARailOfItsIsBrokenAndStaysWhereItIs) {
  Cluster cluster(kTwoRacks);
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 8, .gpus = 4, .parallelism = "tp=4,dp=8"});  // more than a rack has
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string node = ReadPod(cluster.Pod("train-1")).plan->node;
  const auto says = [&](const std::string& reason) {
    return extender.Until([&] { return cluster.GangOf("train")->status.reason == reason; });
  };
  Report(cluster, node, [](topology::Node& broken) {
    broken.nics[2].ports[0].fault = topology::LinkFault::kErrors;
    broken.nics[2].ports[0].usable_gbps /= 2;
  });
  ASSERT_TRUE(says("RailDegraded"));
  EXPECT_THAT(cluster.GangOf("train")->status.message,
              HasSubstr("a rail of " + node + " (rank 1) is degraded"));
  Report(cluster, node, [](topology::Node& broken) { broken.gpus[3].healthy = false; });
  ASSERT_TRUE(says("GpuUnhealthy")) << "the worse of two";
  EXPECT_THAT(cluster.GangOf("train")->status.message,
              HasSubstr("GPU 3 of " + node + " (rank 1) is not healthy"));
  EXPECT_EQ(cluster.Summary("train"), "Running 8/8: GpuUnhealthy");
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 1);
  Report(cluster, node, [](topology::Node& mended) {
    mended.gpus[3].healthy = true;
    mended.nics[2].ports[0].fault = topology::LinkFault::kNone;
    mended.nics[2].ports[0].usable_gbps = mended.nics[2].ports[0].rate_gbps;
  });
  ASSERT_TRUE(says(""));
}

// A GPU whose NIC is gone borrows one that is sound.
TEST(RunningGang, SaysThatANicOfItsIsGone) {
  Cluster cluster(kTwoRacks);
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 8, .gpus = 4, .parallelism = "tp=4,dp=8"});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string node = ReadPod(cluster.Pod("train-1")).plan->node;
  Report(cluster, node, [](topology::Node& broken) {
    const std::string lost = broken.NicOfGpu(2)->name;
    std::erase_if(broken.nics, [&lost](const topology::Nic& nic) { return nic.name == lost; });
    std::erase_if(broken.paths, [](const topology::GpuNicPath& path) { return path.gpu == 2; });
    broken.gpus[2].nic_gone = topology::LostNic{2, "0000:5e:00.0"};
  });
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason == "RailDegraded"; }));
  EXPECT_THAT(cluster.GangOf("train")->status.message,
              HasSubstr("a rail of " + node +
                        " (rank 1) is degraded: GPU 2 lost its NIC on rail 2 (0000:5e:00.0) and borrows "));
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 1) << "nothing is moved while it runs";
  Report(cluster, node, [](topology::Node& mended) { mended.gpus[2].nic_gone.reset(); });
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason.empty(); }));
}

TEST(RunningGang, SaysNothingOfRailsWhereItUsesNvlinkAlone) {
  Cluster cluster(kTwoRacks);
  RunningExtender extender(cluster);
  cluster.Submit(InOneRack(4));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string node = ReadPod(cluster.Pod("train-1")).plan->node;
  Report(cluster, node, [](topology::Node& broken) {
    broken.nics[2].ports[0].state = topology::LinkState::kDown;
    broken.nics[2].ports[0].usable_gbps = 0;
  });
  const auto seen = [&] {
    const auto snapshot = extender.controller().current();
    return !snapshot->Topology(node)->nics[2].up();
  };
  ASSERT_TRUE(extender.Until(seen));
  extender.Pass(std::chrono::seconds(2));
  EXPECT_EQ(cluster.GangOf("train")->status.reason, "");
}

void Halve(topology::Node& node) {
  for (topology::NicPort& port : node.nics[2].ports) {
    port.fault = topology::LinkFault::kErrors;
    port.usable_gbps /= 2;
  }
}

// Whole servers of one unit, whose gradients go over rails.
class SlowRail : public ::testing::Test {
 protected:
  static JobWords Words(int pods) {
    return {.pods = pods, .gpus = 8, .parallelism = "tp=8,dp=" + std::to_string(pods)};
  }
  void Start(Cluster& cluster, RunningExtender& extender, int pods) {
    uid_ = cluster.Submit(Words(pods));
    ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  }
  // The rail of the rank's node breaks, and then the rank's pod is made again.
  void BreakUnder(Cluster& cluster, RunningExtender& extender, const std::vector<int>& ranks) {
    for (const int rank : ranks) Report(cluster, NodeOf(cluster, rank), Halve);
    ASSERT_TRUE(extender.Until([&] {
      const auto snapshot = extender.controller().current();
      return std::all_of(ranks.begin(), ranks.end(),
                         [&](int rank) { return snapshot->faulty.contains(NodeOf(cluster, rank)); });
    }));
  }
  void MakeAgain(Cluster& cluster, int pods, const std::vector<int>& ranks) {
    for (const int rank : ranks) cluster.server.Remove(kube::kPods, {"train", Name(rank)});
    for (const int rank : ranks) cluster.PutPod(Words(pods), uid_, rank, Name(rank));
  }
  static std::string Name(int rank) { return "train-" + std::to_string(rank); }
  static std::string NodeOf(const Cluster& cluster, int rank) {
    return ReadPod(cluster.Pod(Name(rank))).plan->node;
  }
  std::string uid_;
};

TEST_F(SlowRail, IsLeftByAPodThatIsMadeAgainWhereAStepTakesLessTime) {
  Cluster cluster("su:1 node:5 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 4);
  const std::set<std::string> before = NodesOf(cluster, "train");
  const std::string slow = NodeOf(cluster, 1);
  BreakUnder(cluster, extender, {1});
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason == "RailDegraded"; }));
  EXPECT_EQ(NodesOf(cluster, "train"), before) << "nothing is moved while it runs";
  MakeAgain(cluster, 4, {1});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  std::set<std::string> after = NodesOf(cluster, "train");
  EXPECT_FALSE(before.contains(NodeOf(cluster, 1)));
  after.erase(NodeOf(cluster, 1));
  after.insert(slow);
  EXPECT_EQ(after, before) << "nobody else moved";
  ASSERT_TRUE(extender.Until([&] { return cluster.GangOf("train")->status.reason.empty(); }));
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 2);
  std::string told;
  for (const kube::Json& event : cluster.server.All(kube::kEvents)) {
    if (kube::StringAt(event, {"reason"}) == "Repairing") told = kube::StringAt(event, {"message"});
  }
  EXPECT_THAT(told,
              HasSubstr("1 rank made again gets another slot (a rail of " + slow + " (rank 1) is degraded"));
  EXPECT_THAT(told, HasSubstr("ms less"));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST_F(SlowRail, KeepsItsPodWhereNoNodeIsFree) {
  Cluster cluster("su:1 node:4 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 4);
  const std::string slow = NodeOf(cluster, 1);
  BreakUnder(cluster, extender, {1});
  MakeAgain(cluster, 4, {1});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodeOf(cluster, 1), slow);
  EXPECT_EQ(cluster.GangOf("train")->status.placement->epoch, 1);
}

// The slowest rank is what all wait for.
TEST_F(SlowRail, KeepsBothOfTwoWhereOnlyOneOfThemCouldGo) {
  Cluster cluster("su:1 node:5 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 4);
  const std::set<std::string> before = NodesOf(cluster, "train");
  BreakUnder(cluster, extender, {1, 2});
  MakeAgain(cluster, 4, {1, 2});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodesOf(cluster, "train"), before);
}

TEST_F(SlowRail, IsLeftByTwoTogetherWhereTwoNodesAreFree) {
  Cluster cluster("su:1 node:6 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  Start(cluster, extender, 4);
  const std::set<std::string> slow{NodeOf(cluster, 1), NodeOf(cluster, 2)};
  BreakUnder(cluster, extender, {1, 2});
  MakeAgain(cluster, 4, {1, 2});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  for (const std::string& node : NodesOf(cluster, "train")) EXPECT_FALSE(slow.contains(node)) << node;
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// Inside of a rack its rings go over NVLink, and between two racks over the rails of two trays.
TEST_F(SlowRail, KeepsItsPodWhereNothingOfTheGangsGoesOverIt) {
  Cluster cluster(kTwoRacks);
  RunningExtender extender(cluster);
  const JobWords words{.pods = 8, .gpus = 4, .parallelism = "tp=4,dp=8"};
  uid_ = cluster.Submit(words);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const std::string slow = NodeOf(cluster, 1);
  BreakUnder(cluster, extender, {1});
  cluster.server.Remove(kube::kPods, {"train", Name(1)});
  cluster.PutPod(words, uid_, 1, Name(1));
  ASSERT_TRUE(RunsToTheEnd(cluster, extender)) << cluster.Summary("train");
  EXPECT_EQ(NodeOf(cluster, 1), slow);
}

TEST(RunningGang, SaysNothingOfGpusThatAreNotItsOwn) {
  Cluster cluster("su:1 node:2 gpu:8 nic:8 rail:8");
  RunningExtender extender(cluster);
  cluster.Submit({.pods = 1, .gpus = 4, .parallelism = "tp=4"});
  ASSERT_TRUE(RunsToTheEnd(cluster, extender));
  const auto plan = ReadPod(cluster.Pod("train-0")).plan;
  Report(cluster, plan->node, [&](topology::Node& broken) {
    for (topology::Gpu& gpu : broken.gpus) gpu.healthy = (plan->gpus >> unsigned(gpu.index) & 1u) != 0;
  });
  ASSERT_TRUE(extender.Until([&] { return extender.controller().current()->Unhealthy(plan->node, 0) != 0; }));
  extender.Pass(std::chrono::seconds(2));
  EXPECT_EQ(cluster.GangOf("train")->status.reason, "");
}

}  // namespace
}  // namespace heddle::extender
