// Ranks that are done when a plan is made: nothing is asked for them, and their rows in it name no node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "extender/gang_decision.h"
#include "extender/gang_status.h"
#include "extender/owner_layout.h"
#include "extender/planning.h"
#include "extender/preempting.h"
#include "extender/resources.h"
#include "extender/slot_faults.h"
#include "tests/unit/extender/cluster.h"
#include "tests/unit/extender/pod_words.h"
#include "tests/unit/extender/snapshot_stage.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cached;
using test::GatedPod;
using test::IndexedJob;
using test::Stage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

std::string Line(int nodes) {
  return "su:1 node:" + std::to_string(nodes) + " gpu:8 nic:8 rail:8";
}

std::vector<std::string> NamesOf(const Stage& stage) {
  std::vector<std::string> names;
  for (const auto& topology : stage.topologies) names.push_back(topology->name);
  return names;
}

// An Indexed Job of four pods, of which those of `indexes` ("0,2-3") have succeeded and are gone.
GangMembers FourOfWhich(const std::string& indexes, const std::set<int>& pods,
                        const std::string& cut = "tp=8,dp=4", int gpus = 8) {
  Json job = IndexedJob(4);
  job["status"]["completedIndexes"] = indexes;
  std::vector<std::shared_ptr<const Json>> shared;
  for (const int index : pods) shared.push_back(Cached(GatedPod(index, cut, gpus)));
  return ReadMembers({"train", "job-uid", 0}, &job, ReadPods(std::move(shared)));
}

GangMembers LastOfAJobSet() {
  const test::JobSetNearItsEnd near;
  return ReadMembers({"train", "set-uid", 0}, &near.set, ReadPods({near.pod}), Mode::kPlace, nullptr,
                     near.jobs);
}

PlannedGang Planned(const PlanAnswer& answer) {
  const auto* plan = std::get_if<PlannedGang>(&answer);
  const auto* refusal = std::get_if<placement::Refusal>(&answer);
  EXPECT_NE(plan, nullptr) << refusal->sentence;
  return plan == nullptr ? PlannedGang{} : *plan;
}

std::vector<bool> Slots(const std::vector<crds::PlacedPod>& rows) {
  std::vector<bool> slots;
  for (const crds::PlacedPod& row : rows) slots.push_back(row.has_slot());
  return slots;
}

std::set<std::string> NodesOf(const std::vector<crds::PlacedPod>& rows) {
  std::set<std::string> nodes;
  for (const crds::PlacedPod& row : rows) {
    if (row.has_slot()) nodes.insert(row.node);
  }
  return nodes;
}

TEST(DoneRank, OfAJobIsAskedNoSlotFor) {
  const PlannedGang plan = Planned(PlanMembers(Stage(Line(3)).Take(), FourOfWhich("1", {0, 2, 3}), {}));
  EXPECT_THAT(Slots(plan.rows), ElementsAre(true, false, true, true));
  EXPECT_THAT(NodesOf(plan.rows), SizeIs(3));
  EXPECT_EQ(plan.rows[1], crds::PlacedPod{});
  EXPECT_EQ(plan.quality.tp_groups, 3);
  EXPECT_THAT(plan.explanation, testing::Contains(HasSubstr("nothing was asked: 1 of 4")));
}

TEST(DoneRank, OfAJobSetIsAskedNoSlotFor) {
  const PlannedGang plan = Planned(PlanMembers(Stage(Line(1)).Take(), LastOfAJobSet(), {}));
  EXPECT_THAT(Slots(plan.rows), ElementsAre(false, false, false, true));
}

TEST(DoneRank, WhoseOwnerIsAheadOfItsPodKeepsItsSlot) {
  const GangMembers members = FourOfWhich("1", {0, 1, 2, 3});
  EXPECT_TRUE(std::holds_alternative<placement::Refusal>(PlanMembers(Stage(Line(3)).Take(), members, {})));
  const PlannedGang plan = Planned(PlanMembers(Stage(Line(4)).Take(), members, {}));
  EXPECT_THAT(Slots(plan.rows), ElementsAre(true, true, true, true));
}

TEST(DoneRank, IsAskedForWhileOthersOfItsTensorGroupAreNotDone) {
  const auto on = [](int trays, const std::string& done, const std::set<int>& pods) {
    const Stage stage("rack:1 tray:" + std::to_string(trays) + " gpu:4 nic:4 rail:4 machine:gb200 nvl");
    return PlanMembers(stage.Take(), FourOfWhich(done, pods, "tp=8,dp=2", 4), {});
  };
  EXPECT_TRUE(std::holds_alternative<placement::Refusal>(on(3, "1", {0, 2, 3})));
  EXPECT_THAT(Slots(Planned(on(4, "1", {0, 2, 3})).rows), ElementsAre(true, true, true, true));
  EXPECT_THAT(Slots(Planned(on(2, "0-1", {2, 3})).rows), ElementsAre(false, false, true, true));
}

TEST(DoneRank, OfAllThereIsAPlanWithoutASlotAlsoWhereNoNodeIsKnown) {
  const GangMembers members = FourOfWhich("0-3", {});
  const Snapshot four = Stage(Line(4)).Take(), none;
  for (const Snapshot* snapshot : {&four, &none}) {
    EXPECT_THAT(Slots(Planned(PlanMembers(*snapshot, members, {})).rows),
                ElementsAre(false, false, false, false));
  }
}

TEST(DoneRank, IsNotWaitedForByKeepingANodeForIt) {
  Stage stage(Line(4));
  for (const std::string& node : NamesOf(stage)) stage.Bound("on-" + node, node, 8);
  EXPECT_THAT(NodesToKeep(stage.Take(), FourOfWhich("0", {1, 2, 3}), Spares::kLeave), SizeIs(3));
  EXPECT_THAT(NodesToKeep(stage.Take(), FourOfWhich("", {0, 1, 2, 3}), Spares::kLeave), SizeIs(4));
}

TEST(DoneRank, KeepsItsRowInARepairOfTheOthers) {
  Stage stage(Line(4));
  const auto names = NamesOf(stage);
  const std::vector<crds::PlacedPod> rows{
      {names[0], 0xFF, {}}, {}, {names[1], 0xFF, {}}, {names[2], 0xFF, {}}};
  stage.nodes[1]->cordoned = true;
  const GangMembers members = FourOfWhich("1", {0, 2, 3});
  const PlannedGang plan = Planned(RepairMembers(stage.Take(), members, rows, {2}));
  ASSERT_THAT(plan.rows, SizeIs(4));
  EXPECT_EQ(plan.rows[0], rows[0]);
  EXPECT_EQ(plan.rows[1], rows[1]);
  EXPECT_EQ(plan.rows[2].node, names[3]);
  EXPECT_EQ(plan.rows[3], rows[3]);
}

// Its node is gone, too. Nobody misses it.
TEST(DoneRank, ThatHadASlotIsGivenNoOtherInARepair) {
  Stage stage(Line(4));
  const auto names = NamesOf(stage);
  const std::vector<crds::PlacedPod> rows{
      {names[0], 0xFF, {}}, {"gone", 0xFF, {}}, {names[1], 0xFF, {}}, {names[2], 0xFF, {}}};
  stage.nodes[1]->cordoned = true;
  const GangMembers members = FourOfWhich("1", {0, 2, 3});
  const PlannedGang plan = Planned(RepairMembers(stage.Take(), members, rows, {2}));
  ASSERT_THAT(plan.rows, SizeIs(4));
  EXPECT_EQ(plan.rows[1], rows[1]);
  EXPECT_EQ(plan.rows[2].node, names[3]);
}

// Nothing says on which fabric: there is no other rank.
TEST(DoneRank, ThatComesAgainWhereNoRankHasASlotIsToldWhatItWaitsFor) {
  const Snapshot snapshot = Stage(Line(4)).Take();
  const GangMembers members = FourOfWhich("0-1", {2});
  const auto sentence = [&](const std::vector<crds::PlacedPod>& rows) {
    const PlanAnswer answer = RepairMembers(snapshot, members, rows, {2});
    const auto* refusal = std::get_if<placement::Refusal>(&answer);
    return refusal == nullptr ? std::string("planned") : refusal->sentence;
  };
  EXPECT_EQ(sentence(std::vector<crds::PlacedPod>(4)),
            "its ranks were done; it is planned anew when all of those that came again are there");
  EXPECT_THAT(sentence({{}, {}, {"gone", 0xFF, {}}, {}}), testing::Not(HasSubstr("were done")));
}

// A gang of four ranks whose rank 1 was done when its plan was made, for three nodes of four.
struct PlannedScene {
  explicit PlannedScene(const GangMembers& members) {
    gang.ns = "train";
    gang.name = "job";
    gang.uid = "gang-uid";
    gang.generation = 1;
    gang.spec = members.spec;
    gang.status =
        PlannedStatus({&gang, members, snapshot, kNow},
                      {{names[0], 0xFF, {}}, {}, {names[1], 0xFF, {}}, {names[2], 0xFF, {}}}, {}, {});
  }
  Action Next(const GangMembers& members) const { return Decide({&gang, members, snapshot, kNow}); }

  Stage stage{Line(4)};
  std::vector<std::string> names = NamesOf(stage);
  Snapshot snapshot = stage.Take();
  crds::Gang gang;
};

TEST(DoneRank, IsLetGoOfByNobody) {
  const GangMembers members = FourOfWhich("1", {0, 2, 3});
  const PlannedScene scene(members);
  const crds::Condition* planned = crds::FindCondition(scene.gang.status.conditions, crds::kPlanned);
  ASSERT_NE(planned, nullptr);
  EXPECT_EQ(planned->message, "a slot for every rank that is not done is reserved");
  const Action action = scene.Next(members);
  const auto* release = std::get_if<ReleasePods>(&action);
  ASSERT_NE(release, nullptr) << action.index();
  std::vector<int> ranks;
  for (const PodPatch& patch : release->patches) ranks.push_back(patch.rank);
  EXPECT_THAT(ranks, ElementsAre(0, 2, 3));
}

TEST(DoneRank, ThatComesAgainIsPlannedOrGetsASlotOfItsOwn) {
  const PlannedScene scene(FourOfWhich("1", {0, 2, 3}));
  GangMembers members = FourOfWhich("", {0, 1, 2, 3});
  const Action anew = scene.Next(members);
  const auto* plan = std::get_if<NeedsPlan>(&anew);
  ASSERT_NE(plan, nullptr) << anew.index();
  EXPECT_THAT(plan->why, HasSubstr("was done when the plan was made has come again"));

  PodFacts& first = members.ranks[0]->OwnFacts();  // let go meanwhile
  first.gated = false;
  first.node = scene.names[0];
  first.plan = PodPlan{.rank = 0, .node = scene.names[0], .gpus = 0xFF};
  const Action action = scene.Next(members);
  const auto* repair = std::get_if<RepairRanks>(&action);
  ASSERT_NE(repair, nullptr) << action.index();
  EXPECT_THAT(repair->lost, ElementsAre(1));
  EXPECT_THAT(repair->why, HasSubstr("rank 1: a rank that was done"));
  const PlannedGang repaired = Planned(
      RepairMembers(scene.snapshot, members, crds::ToRows(*scene.gang.status.placement), repair->lost));
  ASSERT_THAT(repaired.rows, SizeIs(4));
  EXPECT_EQ(repaired.rows[1].node, scene.names[3]);
}

// The slot is where the pod is.
TEST(DoneRank, ThatRunsAllTheSameIsFollowed) {
  const PlannedScene scene(FourOfWhich("1", {0, 2, 3}));
  GangMembers members = FourOfWhich("", {0, 1, 2, 3});
  PodFacts& pod = members.ranks[1]->OwnFacts();
  pod.gated = false;
  pod.node = scene.names[3];
  pod.plan = PodPlan{.rank = 1, .node = scene.names[3], .gpus = 0xFF};
  const Action action = scene.Next(members);
  const auto* update = std::get_if<UpdateStatus>(&action);
  ASSERT_NE(update, nullptr) << action.index();
  EXPECT_EQ(crds::ToRows(*update->status.placement)[1], (crds::PlacedPod{scene.names[3], 0xFF, {}}));
}

TEST(DoneRank, MakesNoGangLeaveItsNvlinkDomain) {
  Stage stage("rack:1 tray:4 gpu:4 nic:4 rail:4 machine:gb200 nvl");
  const auto names = NamesOf(stage);
  topology::NicPort& port = stage.topologies[0]->status.node.nics[2].ports[0];
  port.fault = topology::LinkFault::kErrors;
  port.usable_gbps /= 2;
  crds::Gang& gang = stage.Gang("job", {{}, {names[0], 0, {}}, {names[1], 0, {}}});
  const Snapshot snapshot = stage.Take();
  ASSERT_THAT(snapshot.faulty, SizeIs(1));
  EXPECT_THAT(RanksOnDegradedRails(gang, snapshot), IsEmpty()) << "nothing of it goes over rails";
  gang.status.placement = crds::ToColumns({{}, {names[0], 0, {}}, {"elsewhere", 0, {}}}, 2);
  EXPECT_THAT(RanksOnDegradedRails(gang, snapshot), SizeIs(1));
}

TEST(DoneRank, LeavesItsGangAPlaceOnTheNodesThatTheOthersNeed) {
  test::Cluster cluster(Line(3));
  test::RunningExtender extender(cluster);
  const test::JobWords words{.pods = 4, .gpus = 8, .parallelism = "tp=8,dp=4"};
  const std::string uid = cluster.PutJob(words);
  cluster.server.Edit(kube::kJobs, {"train", "train"},
                      [](Json& job) { job["status"]["completedIndexes"] = "1"; });
  for (const int index : {0, 2, 3}) cluster.PutPod(words, uid, index);
  ASSERT_TRUE(extender.Until([&] {
    cluster.BindReleased();
    return cluster.Summary("train") == "Running 4/4";
  })) << cluster.Summary("train");
  EXPECT_THAT(Slots(crds::ToRows(*cluster.GangOf("train")->status.placement)),
              ElementsAre(true, false, true, true));
  std::string told;
  for (const Json& event : cluster.server.All(kube::kEvents)) {
    if (kube::StringAt(event, {"reason"}) == "Planned") told = kube::StringAt(event, {"message"});
  }
  EXPECT_EQ(told, "3 pods on 3 nodes");
  EXPECT_THAT(cluster.Violations(), IsEmpty());
}

}  // namespace
}  // namespace heddle::extender
