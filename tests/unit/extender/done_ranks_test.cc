// Ranks that are done ask for no room when the others get new slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/keys.h"
#include "extender/done_seats.h"
#include "extender/owner_kinds.h"
#include "extender/resources.h"
#include "tests/support/builders.h"
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

constexpr const char* kTwoNodes = "su:1 node:2 gpu:8 nic:8 rail:8";
const JobWords kPair{.pods = 2, .parallelism = "tp=8,dp=2"};

std::vector<std::string> NodesOf(const Cluster& cluster) {
  std::vector<std::string> nodes;
  for (const Json& node : cluster.server.All(kube::kNodes)) nodes.push_back(kube::Name(node));
  return nodes;
}

bool RunsToTheEnd(Cluster& cluster, RunningExtender& extender, const std::string& owner,
                  const std::string& summary) {
  return extender.Until(
      [&] {
        cluster.BindReleased();
        return cluster.Summary(owner) == summary;
      },
      std::chrono::seconds(120));
}

// Of two ranks the first is done, and one of two nodes is somebody else's.
void ExpectTheOtherNode(const Cluster& cluster, const std::string& owner, const std::string& pod) {
  const std::vector<std::string> nodes = NodesOf(cluster);
  const auto plan = ReadPod(cluster.Pod(pod)).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rank, 1);
  EXPECT_EQ(plan->node, nodes[1]);
  const auto gang = cluster.GangOf(owner);
  ASSERT_TRUE(gang && gang->status.placement);
  const auto rows = crds::ToRows(*gang->status.placement);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].node, nodes[0]) << "a row that costs nobody a GPU";
  EXPECT_THAT(gang->status.explanation, Contains(HasSubstr("1 rank is done")));
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

TEST(DoneRanks, OfAJobAskForNoSlotInAPlanThatIsMadeAnew) {
  Cluster cluster(kTwoNodes);
  const std::string uid = cluster.PutJob(kPair);
  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](Json& job) { job["status"]["completedIndexes"] = "0"; });
  cluster.PutLonePod("notebook", NodesOf(cluster)[0], 8);
  cluster.PutPod(kPair, uid, 1);
  RunningExtender extender(cluster);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "train", "Running 2/2")) << cluster.Summary("train");
  ExpectTheOtherNode(cluster, "train", "train-1");
}

TEST(DoneRanks, OfAJobSetAskForNoSlotInAPlanThatIsMadeAnew) {
  Cluster cluster(kTwoNodes);
  const kube::Resource job_sets = OwnerKindOf(jobset::kApiVersion, "JobSet")->resource;
  cluster.server.Serve(job_sets);
  Json replicated{{"name", "workers"}, {"replicas", 2}};
  replicated["template"]["spec"] = {{"completionMode", "Indexed"}, {"completions", 1}, {"parallelism", 1}};
  replicated["template"]["spec"]["template"]["metadata"]["annotations"] = {
      {std::string(crds::keys::kParallelism), kPair.parallelism}};
  Json set = kube::NewObject(job_sets, {"train", "set"});
  set["spec"]["replicatedJobs"] = Json::array({replicated});
  const std::string uid = kube::Uid(cluster.server.Put(job_sets, set));
  const auto mark = [&uid](Json& object, const char* number) {
    auto& labels = object["metadata"]["labels"];
    labels[std::string(jobset::kUid)] = uid;
    labels[std::string(jobset::kName)] = "set";
    labels[std::string(jobset::kReplicatedJob)] = "workers";
    labels[std::string(jobset::kJobIndex)] = number;
    labels[std::string(jobset::kAttempt)] = "0";
  };
  cluster.PutJob({.name = "set-workers-0", .pods = 1});
  cluster.server.Edit(kube::kJobs, {"train", "set-workers-0"}, [&](Json& job) {
    mark(job, "0");
    job["metadata"]["ownerReferences"] =
        Json::array({kube::ToJson({std::string(jobset::kApiVersion), "JobSet", "set", uid, true})});
    job["status"]["completedIndexes"] = "0";
  });
  cluster.PutLonePod("notebook", NodesOf(cluster)[0], 8);
  cluster.PutPod(kPair, "uid-of-set-workers-1", 0, "set-workers-1-0");
  cluster.server.Edit(kube::kPods, {"train", "set-workers-1-0"}, [&](Json& pod) { mark(pod, "1"); });
  RunningExtender extender(cluster);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "set", "Running 2/2")) << cluster.Summary("set");
  ExpectTheOtherNode(cluster, "set", "set-workers-1-0");
}

TEST(DoneRanks, KeepNoSlotFromOneThatHasLostItsOwn) {
  Cluster cluster("su:1 node:3 gpu:8 nic:8 rail:8");
  const JobWords words{.pods = 3, .parallelism = "tp=8,dp=3"};
  RunningExtender extender(cluster);
  const std::string uid = cluster.Submit(words);
  ASSERT_TRUE(RunsToTheEnd(cluster, extender, "train", "Running 3/3")) << cluster.Summary("train");
  const auto node_of = [&cluster](const std::string& pod) {
    return kube::StringAt(cluster.Pod(pod), {"spec", "nodeName"});
  };
  const std::string done = node_of("train-0"), runs = node_of("train-1"), lost = node_of("train-2");
  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](Json& job) { job["status"]["completedIndexes"] = "0"; });
  cluster.server.Remove(kube::kPods, {"train", "train-0"});
  cluster.server.Edit(kube::kNodes, {"", lost},
                      [](Json& node) { node["status"]["conditions"][0]["status"] = "Unknown"; });
  cluster.server.Remove(kube::kPods, {"train", "train-2"});
  cluster.PutPod(words, uid, 2, "train-2-again");
  ASSERT_TRUE(extender.Until(
      [&] {
        cluster.BindReleased();
        return node_of("train-2-again") == done;
      },
      std::chrono::seconds(120)))
      << cluster.Summary("train");
  EXPECT_EQ(ReadPod(cluster.Pod("train-2-again")).plan->rank, 2);
  EXPECT_EQ(node_of("train-1"), runs);
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

// Four nodes: a free one, one of the gang's own, one that cannot be used, and one half of which is taken.
class Seats : public testing::Test {
 protected:
  Seats() {
    members.spec.pods = 2;
    members.ranks.resize(2);
    members.done = {true, false};
    auto fabric = std::make_shared<const topology::Fabric>(test::FabricOf("su:1 node:4 gpu:8 nic:8 rail:8"));
    std::vector<placement::NodeState> states(4);
    for (auto& state : states) state.free_gpus = 0xFF;
    states[1].free_gpus = 0;
    states[2].unusable = "Cordoned";
    states[3].free_gpus = 0x0F;
    snapshot.fabrics.push_back({fabric, placement::ClusterState(fabric, states)});
  }
  bool Seat(int gpus) {
    members.spec.gpus_per_pod = gpus;
    places = {{}, {1, 0xFF}};
    return SeatDone(snapshot.fabrics[0], members, places);
  }

  GangMembers members;
  Snapshot snapshot;
  std::vector<placement::PodPlacement> places;
};

TEST_F(Seats, AreOnGpusThatNobodyGetsNow) {
  ASSERT_TRUE(Seat(8));
  EXPECT_EQ(places[0], (placement::PodPlacement{2, 0xFF}));
  EXPECT_EQ(places[1], (placement::PodPlacement{1, 0xFF}));
  ASSERT_TRUE(Seat(4));
  EXPECT_EQ(places[0], (placement::PodPlacement{3, 0xF0})) << "rather where others run than where nobody can";
}

TEST_F(Seats, AreOnNodesWithoutAFaultWhereThereAreSome) {
  topology::Fabric faulty = *snapshot.fabrics[0].fabric;
  faulty.nodes[0].node.gpus[7].healthy = false;
  std::vector<placement::NodeState> states = snapshot.fabrics[0].state.nodes();
  states[0].free_gpus = 0x0F;
  const auto fabric = std::make_shared<const topology::Fabric>(std::move(faulty));
  snapshot.fabrics.clear();
  snapshot.fabrics.push_back({fabric, placement::ClusterState(fabric, states)});
  ASSERT_TRUE(Seat(2));
  EXPECT_EQ(places[0], (placement::PodPlacement{3, 0x30}));
}

TEST_F(Seats, AreNowhereWhereEveryOtherGpuIsFree) {
  placement::NodeState usable = snapshot.fabrics[0].state.node(2);
  usable.unusable.clear();
  snapshot.fabrics[0].state.Set(2, usable);
  EXPECT_FALSE(Seat(8));
}

TEST_F(Seats, AreForRanksWithoutAPodOnly) {
  members.done = {false, false};
  EXPECT_FALSE(Seat(4));
  members.done = {true, false};
  members.ranks[0].emplace();
  EXPECT_FALSE(Seat(4));
}

}  // namespace
}  // namespace heddle::extender
