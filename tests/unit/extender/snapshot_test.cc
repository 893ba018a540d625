#include "extender/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/builders.h"
#include "tests/unit/extender/snapshot_stage.h"
#include "topology/synthetic.h"

namespace heddle::extender {
namespace {

using test::Stage;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kA = topology::ParseSynthetic("su:1 node:2 gpu:8 nic:8 rail:8")->nodes[0].name;
const std::string kB = topology::ParseSynthetic("su:1 node:2 gpu:8 nic:8 rail:8")->nodes[1].name;

TEST(Snapshot, AssumesTheLowestFreeIndexesForAPodThatNobodyToldUsAbout) {
  Stage stage;
  stage.Bound("a", kA, 2);
  EXPECT_EQ(stage.Free(kA), 0b11111100u);
  EXPECT_EQ(stage.Free(kB), 0xFFu);
  EXPECT_EQ(stage.Take().holds.find(kA)->second[0].source, Hold::Source::kAssumed);
}

TEST(Snapshot, BelievesTheAnnotationOfABoundPodBeforeAnyAssumption) {
  Stage stage;
  stage.Bound("a", kA, 2).plan = PodPlan{.rank = 0, .node = kA, .gpus = 0b11};
  stage.Bound("b", kA, 2);
  EXPECT_EQ(stage.Free(kA), 0b11110000u);
}

TEST(Snapshot, BelievesAGrantBeforeTheAnnotation) {
  Stage stage;
  stage.Bound("a", kA, 2).plan = PodPlan{.rank = 0, .node = kA, .gpus = 0b11};
  crds::Grant grant{.pod_namespace = "other", .pod_name = "a"};
  grant.gpus = {{6, ""}, {7, ""}};
  stage.topologies[0]->status.grants.push_back(grant);
  EXPECT_EQ(stage.Free(kA), 0b00111111u);
  grant.pod_name = "long-gone";
  grant.gpus = {{0, ""}};
  stage.topologies[0]->status.grants.push_back(grant);
  EXPECT_EQ(stage.Free(kA), 0b00111111u) << "a grant of a pod that is gone holds nothing";
}

TEST(Snapshot, CountsATerminatingPodUntilItIsGoneAndAFinishedOneNot) {
  Stage stage;
  stage.Bound("a", kA, 1).terminating = true;
  stage.Bound("b", kA, 1).finished = true;
  EXPECT_EQ(stage.Free(kA), 0b11111110u);
}

TEST(Snapshot, ReservesTheSlotsOfAGangUntilItEnds) {
  Stage stage;
  crds::Gang& gang = stage.Gang("job", {{kA, 0xF0, {}}, {kB, 0, {}}});
  EXPECT_EQ(stage.Free(kA), 0x0Fu);
  EXPECT_EQ(stage.Free(kB), 0u) << "no bits mean the whole node";
  crds::SetCondition(gang.status.conditions,
                     {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue});
  EXPECT_EQ(stage.Free(kA), 0xFFu);
}

TEST(Snapshot, SaysForWhomGpusOfANodeAreReserved) {
  Stage stage;
  EXPECT_FALSE(stage.Take().Reserves());
  stage.Gang("job", {{kA, 0xF0, {}}});
  stage.Bound("lone", kB, 8).terminating = true;
  const Snapshot snapshot = stage.Take();
  EXPECT_TRUE(snapshot.Reserves());
  const extender::Hold* hold = snapshot.Reservation(kA);
  ASSERT_NE(hold, nullptr);
  EXPECT_THAT(hold->name, testing::StartsWith("gang "));
  EXPECT_EQ(snapshot.Reservation(kB), nullptr) << "whoever goes there has no plan";
  EXPECT_EQ(snapshot.Reservation("elsewhere"), nullptr);
}

// kube-scheduler tries who waits in the very moment in which such a pod is gone, and its slot is not reserved before.
TEST(Snapshot, ReservesWhatAPodOfAStandingGangIsAboutToLeave) {
  Stage stage;
  crds::Gang& gang = stage.Gang("job", {{kA, 0xF0, {}}});
  PodFacts& pod = stage.Bound("job-0", kA, 4);
  pod.gang = extender::KeyOfGang(gang);
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0xF0};
  EXPECT_EQ(stage.Take().Reservation(kA), nullptr) << "its pod is there";
  pod.terminating = true;
  const Snapshot leaving = stage.Take();
  const extender::Hold* hold = leaving.Reservation(kA);
  ASSERT_NE(hold, nullptr);
  EXPECT_EQ(hold->pod_uid, pod.uid);
  crds::SetCondition(gang.status.conditions,
                     {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue});
  EXPECT_EQ(stage.Take().Reservation(kA), nullptr) << "nobody comes after it";
}

TEST(Snapshot, ReservesTheSlotOfARankWhosePodHasFailedAndStandsYet) {
  Stage stage;
  crds::Gang& gang = stage.Gang("job", {{kA, 0xF0, {}}});
  PodFacts& pod = stage.Bound("job-0", kA, 4);
  pod.gang = extender::KeyOfGang(gang);
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0xF0};
  pod.finished = true;
  EXPECT_EQ(stage.Free(kA), 0x0Fu);
  const Snapshot snapshot = stage.Take();
  ASSERT_NE(snapshot.Reservation(kA), nullptr);
  EXPECT_EQ(snapshot.Reservation(kA)->source, Hold::Source::kReserved);
  pod.succeeded = true;
  EXPECT_EQ(stage.Take().Reservation(kA), nullptr);
}

// The Gang that says so may be older than its pods.
TEST(Snapshot, KeepsTheSlotOfARankThatHasLapsedOnceALivePodWasToldIt) {
  Stage stage;
  const crds::Gang& gang = stage.Gang("job", {{kA, 0x0F, {}}, {kB, 0x0F, {}}});
  SnapshotInputs inputs = stage.Inputs();
  inputs.lapsed[extender::KeyOfGang(gang)] = {0, 1};
  EXPECT_EQ(extender::TakeSnapshot(inputs).Reservation(kA), nullptr);
  PodFacts& pod = stage.Bound("job-0", "", 4);
  pod.gang = extender::KeyOfGang(gang);
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0x0F};
  inputs.pods = stage.Inputs().pods;
  EXPECT_NE(extender::TakeSnapshot(inputs).Reservation(kA), nullptr);
  EXPECT_EQ(extender::TakeSnapshot(inputs).Reservation(kB), nullptr);
}

TEST(Snapshot, PutsUnknownPodsBesideReservationsWhereThereIsRoom) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  stage.Bound("a", kA, 4);
  EXPECT_EQ(stage.Free(kA), 0u);
  EXPECT_THAT(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "job", 0}), IsEmpty());
  stage.Bound("b", kA, 1);
  EXPECT_THAT(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "job", 0}), SizeIs(1));
}

// As a label may say that anybody can write.
TEST(Snapshot, TakesAPodOfAnotherNamespaceThatSaysTheSameOwnerForAStranger) {
  Stage stage;
  PodFacts& pod = stage.Bound("a", kA, 4);
  pod.gang = {"other", "job", 0};
  EXPECT_THAT(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "job", 0}), SizeIs(1));
  EXPECT_THAT(stage.Take().Conflicts(kA, 0x0F, GangKey{"other", "job", 0}), IsEmpty());
}

TEST(Snapshot, LetsTheBoundNodeOutrankTheGang) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  PodFacts& pod = stage.Bound("a", kB, 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 0, .node = kB, .gpus = 0xF0};
  EXPECT_EQ(stage.Free(kA), 0xFFu);
  EXPECT_EQ(stage.Free(kB), 0x0Fu);
}

// A group of workers before it has grown by one, whose rank is what this pod was told.
TEST(Snapshot, GivesAPodThatAnEarlierGangToldItsRankTheSlotOnWhichItStands) {
  Stage stage("su:1 node:3 gpu:8 nic:8 rail:8");
  const std::string a = stage.nodes[0]->name, b = stage.nodes[1]->name, c = stage.nodes[2]->name;
  const crds::Gang& gang = stage.Gang("ray", {{a, 0x0F, {}}, {b, 0x0F, {}}, {c, 0x0F, {}}});
  PodFacts& pod = stage.Bound("w", c, 4);
  pod.gang = extender::KeyOfGang(gang);
  pod.plan = PodPlan{.rank = 1, .node = c, .gpus = 0x0F, .gang_uid = "before"};
  EXPECT_NE(stage.Take().Reservation(b), nullptr) << "the slot of a pod that is let go next";
  EXPECT_EQ(stage.Take().Reservation(c), nullptr) << "its pod is there";
  pod.plan->rank = 7;
  EXPECT_EQ(stage.Take().Reservation(c), nullptr) << "there were more ranks";
  pod.plan->gpus = 0xF0;
  EXPECT_NE(stage.Take().Reservation(c), nullptr) << "it stands on others of the node's GPUs";
}

TEST(Snapshot, HoldsBothSlotsWhileAMoveIsOnItsWay) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 0, .node = kB, .gpus = 0xF0};
  EXPECT_EQ(stage.Free(kA), 0xF0u);
  EXPECT_EQ(stage.Free(kB), 0x0Fu);
}

TEST(Snapshot, FreesTheSlotOfARankThatHasSucceeded) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  PodFacts& pod = stage.Bound("a", kA, 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0x0F};
  pod.finished = true;
  EXPECT_EQ(stage.Free(kA), 0xF0u) << "a failed one may come again";
  pod.succeeded = true;
  EXPECT_EQ(stage.Free(kA), 0xFFu);
}

TEST(Snapshot, FreesTheSlotOfARankThatItsOwnerCallsDoneUnlessItsPodIsSeenToLive) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  stage.done[{"train", "job", 0}] = {0};
  EXPECT_EQ(stage.Free(kA), 0xFFu);
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0x0F};
  EXPECT_EQ(stage.Free(kA), 0xF0u) << "the owner may be ahead of the pods";
}

TEST(Snapshot, HoldsNothingForARankWithoutASlotButWhatItsPodWasTold) {
  Stage stage;
  stage.Gang("job", {{}, {kA, 0x0F, {}}, {}});
  EXPECT_EQ(stage.Free(kA), 0xF0u);
  EXPECT_EQ(stage.Free(kB), 0xFFu);
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 2, .node = kB, .gpus = 0xF0};
  EXPECT_EQ(stage.Free(kB), 0x0Fu) << "the scheduler may bind it any moment";
  EXPECT_TRUE(stage.Take().Conflicts(kB, 0xF0, GangKey{"train", "other", 0})[0].told);
}

TEST(Snapshot, TellsAReservationWhosePodIsOnItsWayFromOneThatNobodyWasTold) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  ASSERT_THAT(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "other", 0}), SizeIs(1));
  EXPECT_FALSE(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "other", 0})[0].told);
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0x0F};
  EXPECT_TRUE(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "other", 0})[0].told);
}

TEST(Snapshot, TellsReservationsOfAGangOfWhichAnyPodWasLetGoFromThoseOfOneAtTheGate) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}, {kB, 0x0F, {}}});
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.gang = {"train", "job", 0};
  pod.gated = true;
  EXPECT_FALSE(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "other", 0})[0].begun);
  pod.gated = false;
  pod.plan = PodPlan{.rank = 0, .node = kB, .gpus = 0x0F};
  const std::vector<Hold> second = stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "other", 0});
  ASSERT_THAT(second, SizeIs(1)) << "its rank 0 was told another node than its slot";
  EXPECT_TRUE(second[0].begun);
}

// Found by the simulation, seed 268: the Job was deleted before the extender saw that its pods were bound.
TEST(Snapshot, HoldsWhatALivePodWasToldAlsoWhenItsGangHasEnded) {
  Stage stage;
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0x0F};
  EXPECT_EQ(stage.Free(kA), 0xF0u);
  EXPECT_TRUE(stage.Take().Conflicts(kA, 0x0F, GangKey{"train", "other", 0})[0].told);
  EXPECT_THAT(stage.Take().Conflicts(kA, 0x0F, pod.gang), IsEmpty());
  pod.terminating = true;
  EXPECT_EQ(stage.Free(kA), 0xFFu) << "what is deleted before it is bound never is";
}

TEST(Snapshot, HoldsWhatALivePodWasToldAlsoWhenItsGangHasFewerRanksNow) {
  Stage stage;
  stage.Gang("job", {{kA, 0x0F, {}}});
  PodFacts& pod = stage.Bound("a", "", 4);
  pod.gang = {"train", "job", 0};
  pod.plan = PodPlan{.rank = 1, .node = kB, .gpus = 0x0F, .gang_uid = "before"};
  EXPECT_EQ(stage.Free(kA), 0xF0u);
  EXPECT_EQ(stage.Free(kB), 0xF0u);
  EXPECT_TRUE(stage.Take().Conflicts(kB, 0x0F, GangKey{"train", "other", 0})[0].told);
  const Snapshot snapshot = stage.Take();
  topology::NodeId id = topology::kNone;
  const FabricView* view = snapshot.FindNode(kB, id);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view->state.node(id).free_milli_cpu, 63'000) << "and what goes with the GPUs";
}

TEST(Snapshot, CountsCpuMemoryPodsAndExtendedResources) {
  Stage stage;
  stage.Bound("a", kA, 1).demand.resources = {
      .milli_cpu = 4000, .memory_bytes = 1 << 20, .extended = {{"heddle.dev/fabric", 1}}};
  const Snapshot snapshot = stage.Take();
  const placement::NodeState& node = snapshot.fabrics[0].state.node(0);
  EXPECT_EQ(node.free_milli_cpu, 60'000);
  EXPECT_EQ(node.free_memory_bytes, (1LL << 40) - (1 << 20));
  EXPECT_EQ(node.free_pods, 109);
  EXPECT_EQ(node.free_extended[0].second, 7);
}

struct Unusable {
  const char* word;
  std::function<void(Stage& stage)> change;
};
class UnusableNode : public testing::TestWithParam<Unusable> {};
TEST_P(UnusableNode, IsLeftOutByName) {
  Stage stage;
  GetParam().change(stage);
  EXPECT_EQ(stage.Take().Unusable(kA), GetParam().word);
  EXPECT_EQ(stage.Take().Unusable(kB), "");
}
INSTANTIATE_TEST_SUITE_P(
    Table, UnusableNode,
    testing::Values(Unusable{"Cordoned", [](Stage& stage) { stage.nodes[0]->cordoned = true; }},
                    Unusable{"NotReady", [](Stage& stage) { stage.nodes[0]->ready = false; }},
                    Unusable{"NodeGone", [](Stage& stage) { stage.nodes.erase(stage.nodes.begin()); }},
                    Unusable{"GpuCountMismatch", [](Stage& stage) { stage.nodes[0]->gpus = 7; }},
                    Unusable{"TopologyStale", [](Stage& stage) { stage.stale.insert(kA); }},
                    Unusable{"TopologyContradictory",
                             [](Stage& stage) { stage.topologies[0]->status.node.gpus[1].index = 0; }},
                    Unusable{"GpusUnread",
                             [](Stage& stage) {
                               topology::Node& node = stage.topologies[0]->status.node;
                               node.gpus.clear();
                               node.paths.clear();
                               node.nvlink = {};
                               node.nvlink_domain = topology::Missing::kUnknown;
                             }},
                    Unusable{"Excluded",
                             [](Stage& stage) {
                               crds::Fabric fabric;
                               fabric.name = "default";
                               fabric.spec.excluded_nodes = {kA};
                               stage.declared.push_back(std::make_shared<const crds::Fabric>(fabric));
                             }},
                    Unusable{"NoTopology",
                             [](Stage& stage) { stage.topologies[0]->status.observed_at.reset(); }}),
    [](const auto& one) { return one.param.word; });

TEST(Snapshot, AcceptsAnyGpuCountBetweenTheHealthyAndAll) {
  Stage stage;
  stage.topologies[0]->status.node.gpus[3].healthy = false;
  stage.topologies[0]->status.node.gpus[3].unhealthy_reason = "XID 79";
  for (int gpus : {7, 8}) {
    stage.nodes[0]->gpus = gpus;
    EXPECT_EQ(stage.Take().Unusable(kA), "") << gpus;
  }
  EXPECT_EQ(stage.Free(kA), 0b11110111u);
  EXPECT_EQ(stage.Take().Unhealthy(kA, 0x0F), 0b1000u);
}

TEST(Snapshot, NamesNodesOutsideOfEveryFabric) {
  Stage stage;
  stage.topologies[0]->status.observed_at.reset();
  EXPECT_EQ(stage.Take().left_out, (std::map<std::string, int>{{"NoTopology", 1}}));
}

TEST(Snapshot, KnowsWhichNodesPeopleExcludedWhateverTheirAgentsSay) {
  Stage stage;
  crds::Fabric fabric;
  fabric.name = "default";
  fabric.spec.excluded_nodes = {kA, "spare"};
  stage.declared.push_back(std::make_shared<const crds::Fabric>(fabric));
  stage.topologies[0]->status.observed_at.reset();
  const Snapshot snapshot = stage.Take();
  EXPECT_EQ(snapshot.excluded, (std::set<std::string>{kA, "spare"}));
  EXPECT_EQ(snapshot.Unusable(kA), "Excluded");
  EXPECT_EQ(snapshot.left_out, (std::map<std::string, int>{{"Excluded", 1}}));
}

TEST(Snapshot, IsEmptyForAnEmptyCluster) {
  Stage stage;
  stage.topologies.clear();
  stage.nodes.clear();
  EXPECT_THAT(stage.Take().fabrics, IsEmpty());
}

}  // namespace
}  // namespace heddle::extender
