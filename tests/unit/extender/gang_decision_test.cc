#include "extender/gang_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "extender/gang_status.h"
#include "tests/support/builders.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cached;
using test::GatedPod;
using test::IndexedJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

// A gang of two pods of eight GPUs on a cluster of four nodes, in whatever state a test wants.
class Scene {
 public:
  Scene() : job(IndexedJob(2)), pods{GatedPod(0), GatedPod(1)} {
    auto fabric = std::make_shared<const topology::Fabric>(test::FabricOf("su:1 node:4 gpu:8 nic:8 rail:8"));
    std::vector<placement::NodeState> states(4);
    for (auto& state : states) state.free_gpus = 0xFF;
    for (const auto& node : fabric->nodes) names.push_back(node.node.name);
    snapshot.fabrics.push_back({fabric, placement::ClusterState(fabric, states)});
  }

  crds::Gang& Made() {
    gang.emplace();
    gang->ns = "train";
    gang->name = "job-job-uid-0";
    gang->uid = "gang-uid";
    gang->generation = 1;
    gang->spec = ReadMembers(key, &job, Shared()).spec;
    return *gang;
  }
  crds::Gang& Planned() {
    Made();
    const GangMembers members = ReadMembers(key, &job, Shared());
    gang->status = PlannedStatus({&*gang, members, snapshot, kNow},
                                 {{names[0], 0xFF, {names[2]}}, {names[1], 0xFF, {}}}, {}, {});
    return *gang;
  }
  // As after our release patch.
  void Release(int rank) {
    const auto rows = crds::ToRows(*gang->status.placement);
    auto& pod = pods[std::size_t(rank)];
    pod = pod.patch(*ReleasePatch(pod, SlotOf(*gang, rows[std::size_t(rank)], rank, snapshot)));
  }
  void TakeOut(topology::NodeId node, const std::string& why) {
    placement::ClusterState& cluster = snapshot.fabrics[0].state;
    placement::NodeState state = cluster.node(node);
    state.unusable = why;
    cluster.Set(node, state);
  }
  void Bind(int rank, const std::string& node) { pods[std::size_t(rank)]["spec"]["nodeName"] = node; }

  Action Next() const {
    const GangMembers members = ReadMembers(key, &job, Shared(), Mode::kPlace, gang ? &*gang : nullptr);
    return Decide({gang ? &*gang : nullptr, members, snapshot, now});
  }
  // Since when its ranks are missing.
  std::vector<crds::MissingRank> Missing() const {
    const GangMembers members = ReadMembers(key, &job, Shared(), Mode::kPlace, &*gang);
    return MissingOf({&*gang, members, snapshot, now});
  }
  // Its pod is gone; the pod.
  Json Lose(int rank) {
    const auto pod = std::find_if(pods.begin(), pods.end(), [rank](const Json& one) {
      return kube::Name(one) == "job-" + std::to_string(rank);
    });
    Json lost = *pod;
    pods.erase(pod);
    return lost;
  }
  // Takes the status that was decided, as a write would.
  template <class T>
  T Expect() const {
    const Action action = Next();
    const T* found = std::get_if<T>(&action);
    EXPECT_NE(found, nullptr) << "action " << action.index();
    return found == nullptr ? T{} : *found;
  }

  // As by the Gang before it, which was of another size.
  void TellAnotherRank(int rank) {
    Json& annotations = pods[std::size_t(rank)]["metadata"]["annotations"];
    annotations["heddle.dev/rank"] = "5";
    annotations["heddle.dev/gang-uid"] = "before";
  }

  // Each on the node of its own number.
  void ReleaseAndBindBoth() {
    for (const int rank : {0, 1}) {
      Release(rank);
      Bind(rank, names[std::size_t(rank)]);
    }
  }

  ReadPods Shared() const {
    std::vector<std::shared_ptr<const Json>> shared;
    for (const Json& pod : pods) shared.push_back(Cached(pod));
    return ReadPods(std::move(shared));
  }

  GangKey key{"train", "job-uid", 0};
  Json job;
  std::vector<Json> pods;
  std::optional<crds::Gang> gang;
  Snapshot snapshot;
  std::vector<std::string> names;
  base::WallTime now = kNow;
};

// Four ranks, each on the node of its own number.
Scene FourThatRun() {
  Scene scene;
  scene.job = IndexedJob(4);
  scene.pods.clear();
  std::vector<crds::PlacedPod> rows;
  for (int rank = 0; rank < 4; ++rank) {
    scene.pods.push_back(GatedPod(rank, "tp=8,dp=4"));
    rows.push_back({scene.names[std::size_t(rank)], 0xFF, {}});
  }
  scene.Made();
  const GangMembers members = ReadMembers(scene.key, &scene.job, scene.Shared());
  scene.gang->status = PlannedStatus({&*scene.gang, members, scene.snapshot, kNow}, rows, {}, {});
  for (int rank = 0; rank < 4; ++rank) {
    scene.Release(rank);
    scene.Bind(rank, scene.names[std::size_t(rank)]);
  }
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  return scene;
}

bool Is(const crds::GangStatus& status, std::string_view type) {
  return crds::IsTrue(status.conditions, type);
}

Json Queued(Json pod) {
  pod["spec"]["schedulingGates"].push_back({{"name", "kueue.x-k8s.io/admission"}});
  return pod;
}

TEST(GangDecision, WaitsForQuotaBeforeItPlans) {
  Scene scene;
  scene.Made();
  scene.pods[1] = Queued(scene.pods[1]);
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_FALSE(Is(update.status, crds::kCollected));
  EXPECT_EQ(update.status.reason, "WaitingForQuota");
  EXPECT_THAT(update.status.message, HasSubstr("1 wait for quota behind the gate kueue.x-k8s.io/admission"));
  scene.gang->status = update.status;
  scene.Expect<Nothing>();
  scene.pods[1] = GatedPod(1);
  scene.Expect<NeedsPlan>();
}

TEST(GangDecision, KeepsTheSlotOfARemadePodThatWaitsForQuota) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.pods[1] = Queued(scene.pods[1]);
  const Action action = scene.Next();
  EXPECT_FALSE(std::holds_alternative<ReleasePods>(action));
  EXPECT_FALSE(std::holds_alternative<RepairRanks>(action));
  scene.pods[1] = GatedPod(1);
  EXPECT_EQ(scene.Expect<ReleasePods>().patches.size(), 1u);
}

TEST(GangDecision, MovesARankThatWaitsForQuotaNowhereUntilItHasSome) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Bind(0, scene.names[0]);
  scene.pods[1] = Queued(scene.pods[1]);
  scene.TakeOut(1, "Cordoned");
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_THAT(update.status.missing, ElementsAre(crds::MissingRank{1, kNow}));
  scene.gang->status = update.status;
  scene.Expect<Nothing>();
  scene.pods[1] = GatedPod(1);
  EXPECT_THAT(scene.Expect<RepairRanks>().lost, ElementsAre(1));
}

TEST(GangDecision, PlansAGangAnewOfWhichAllPodsCameAgainOnlyOnceTheyHaveQuota) {
  Scene scene;
  scene.Planned();
  for (kube::Json& pod : scene.pods) pod = Queued(pod);
  scene.TakeOut(1, "Cordoned");
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_THAT(update.status.missing, ElementsAre(crds::MissingRank{0, kNow}, crds::MissingRank{1, kNow}));
  EXPECT_EQ(
      crds::FindCondition(update.status.conditions, crds::kCollected)->message,
      "rank 0 waits for quota behind the gate kueue.x-k8s.io/admission, and others have no pod or wait for "
      "quota; a slot is kept for five minutes");
  EXPECT_EQ(crds::FindCondition(update.status.conditions, crds::kRunning), nullptr)
      << "no pod was let go, so the next plan is a first one and leaves spares";
  scene.gang->status = update.status;
  scene.pods = {GatedPod(0), GatedPod(1)};
  scene.Expect<NeedsPlan>();
}

TEST(GangDecision, MakesAGangOfTheFirstPodThatItSees) {
  Scene scene;
  scene.pods.resize(1);
  const auto create = scene.Expect<CreateGang>();
  EXPECT_EQ(create.gang.name, "job-job-uid-0");
  EXPECT_EQ(create.gang.spec.pods, 2);
  EXPECT_EQ(create.gang.spec.gpus_per_pod, 8);
  EXPECT_EQ(create.gang.owners.at(0).uid, "job-uid");
}

TEST(GangDecision, DoesNothingForAnOwnerWithoutPods) {
  Scene scene;
  scene.pods.clear();
  scene.Expect<Nothing>();
}

TEST(GangDecision, CollectsUntilAllRanksAreSeen) {
  Scene scene;
  scene.Made();
  scene.pods.resize(1);
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_FALSE(Is(update.status, crds::kCollected));
  EXPECT_EQ(crds::Summarise(scene.gang->spec, update.status), "Collecting 1/2");
  scene.gang->status = update.status;
  EXPECT_TRUE(scene.Expect<Nothing>().look_again);
}

TEST(GangDecision, AsksForAPlanOnceAllRanksAreThere) {
  Scene scene;
  scene.Made();
  EXPECT_EQ(scene.Expect<NeedsPlan>().why, "");
}

TEST(GangDecision, ReleasesEveryGatedPodOfACommittedPlan) {
  Scene scene;
  scene.Planned();
  EXPECT_EQ(scene.Expect<ReleasePods>().patches.size(), 2u);
  scene.Release(0);
  const auto rest = scene.Expect<ReleasePods>();
  ASSERT_EQ(rest.patches.size(), 1u) << "no pod is released twice";
  EXPECT_EQ(rest.patches[0].rank, 1);
}

// Else the next pod could get the seat of one that was told it by the Gang before, of another size.
TEST(GangDecision, TellsBoundPodsTheirNewRanksInOrderAndBeforeItLetsOthersGo) {
  Scene scene;
  scene.Planned();
  scene.Release(1);
  scene.Bind(1, scene.names[1]);
  scene.TellAnotherRank(1);
  const auto release = scene.Expect<ReleasePods>();
  ASSERT_EQ(release.patches.size(), 2u);
  EXPECT_EQ(release.patches[0].rank, 1);
  EXPECT_EQ(release.patches[1].rank, 0);
  EXPECT_EQ(release.in_order, 1u);
}

// Found by the simulation, seed 10.
TEST(GangDecision, HoldsARemadePodBackWhileTheOldOneHasItsPartOfASharedNode) {
  Scene scene;
  scene.Planned();
  auto rows = crds::ToRows(*scene.gang->status.placement);
  rows[0].gpus = 0x0F;
  scene.gang->status.placement = crds::ToColumns(rows, 1);
  scene.Release(0);
  scene.Release(1);
  scene.Bind(0, scene.names[0]);
  scene.Bind(1, scene.names[1]);
  Json leaving = scene.pods[0];
  leaving["metadata"]["name"] = "job-0-old";
  leaving["metadata"]["uid"] = "uid-old";
  leaving["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  scene.pods[0] = GatedPod(0);
  scene.pods.push_back(leaving);
  const Action action = scene.Next();
  EXPECT_FALSE(std::holds_alternative<ReleasePods>(action)) << "action " << action.index();
  scene.pods.pop_back();
  EXPECT_EQ(scene.Expect<ReleasePods>().patches.size(), 1u);
}

TEST(GangDecision, ReportsReleasedAndThenRunning) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  const auto released = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(released.status, crds::kReleased));
  EXPECT_FALSE(Is(released.status, crds::kRunning));
  scene.gang->status = released.status;
  scene.Expect<Nothing>();
  scene.Bind(0, scene.names[0]);
  const auto counted = scene.Expect<UpdateStatus>();
  EXPECT_FALSE(counted.urgent) << "a count may wait for the next one";
  scene.Bind(1, scene.names[1]);
  const auto running = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(running.urgent);
  EXPECT_TRUE(Is(running.status, crds::kRunning));
  EXPECT_EQ(running.note->reason, "Running");
  scene.gang->status = running.status;
  EXPECT_FALSE(scene.Expect<Nothing>().look_again);
}

TEST(GangDecision, SaysOfEachRankSinceWhenItHasNoPod) {
  using crds::MissingRank;
  using std::chrono::seconds;
  Scene scene = FourThatRun();
  ASSERT_TRUE(Is(scene.gang->status, crds::kRunning));
  EXPECT_THAT(scene.gang->status.missing, IsEmpty());
  const Json first = scene.Lose(1);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  EXPECT_THAT(scene.gang->status.missing, ElementsAre(MissingRank{1, kNow}));
  scene.now += seconds(1);
  scene.Expect<Nothing>();
  scene.now = kNow + seconds(290);
  scene.Lose(3);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  EXPECT_THAT(scene.gang->status.missing, ElementsAre(MissingRank{1, kNow}, MissingRank{3, scene.now}));
  scene.now = kNow + seconds(295);
  scene.Lose(2);
  const auto third = scene.Expect<UpdateStatus>();
  EXPECT_FALSE(third.urgent) << "a gang whose pods all go has no write for each of them";
  EXPECT_THAT(third.status.missing, ElementsAre(MissingRank{1, kNow}, MissingRank{2, scene.now},
                                                MissingRank{3, kNow + seconds(290)}));
  EXPECT_EQ(scene.Missing(), third.status.missing);
  scene.gang->status = third.status;
  scene.pods.push_back(first);
  EXPECT_THAT(scene.Expect<UpdateStatus>().status.missing,
              ElementsAre(MissingRank{2, scene.now}, MissingRank{3, kNow + seconds(290)}));
}

// A version that wrote no list, or a schema on the server that has none.
TEST(GangDecision, TakesFromTheConditionSinceWhenRanksAreMissingOfWhichTheGangSaysNothing) {
  using crds::MissingRank;
  using std::chrono::seconds;
  Scene scene = FourThatRun();
  const Json first = scene.Lose(1);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  scene.gang->status.missing.clear();
  scene.now = kNow + seconds(200);
  scene.Expect<Nothing>();  // a list that the server drops is not written again and again
  EXPECT_THAT(scene.Missing(), ElementsAre(MissingRank{1, kNow}));
  const Json second = scene.Lose(3);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  EXPECT_THAT(scene.gang->status.missing, IsEmpty());
  EXPECT_THAT(scene.Missing(), ElementsAre(MissingRank{1, kNow}, MissingRank{3, kNow}));
  scene.pods.push_back(first);
  scene.pods.push_back(second);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  scene.Lose(3);
  EXPECT_THAT(scene.Expect<UpdateStatus>().status.missing, ElementsAre(MissingRank{3, scene.now}));
}

TEST(GangDecision, NamesNoRankWithoutAPodOnceItHoldsNoSlots) {
  Scene scene = FourThatRun();
  scene.Lose(1);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  ASSERT_EQ(scene.gang->status.missing.size(), 1u);
  const GangMembers members = ReadMembers(scene.key, &scene.job, scene.Shared());
  EXPECT_THAT(
      RefusedStatus({&*scene.gang, members, scene.snapshot, kNow}, "NotEnoughFree", "no room").missing,
      IsEmpty());
  scene.job["spec"]["suspend"] = true;
  const auto ended = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(ended.status, crds::kEnded));
  EXPECT_THAT(ended.status.missing, IsEmpty());
}

TEST(GangDecision, PlansAnewWhenTheSnapshotChangedBeforeTheRelease) {
  Scene scene;
  scene.Planned();
  scene.TakeOut(1, "Cordoned");
  EXPECT_THAT(scene.Expect<NeedsPlan>().why, HasSubstr("Cordoned"));
}

TEST(GangDecision, MakesAPlanThatSomebodyEditedToAnotherLengthAnew) {
  for (const std::size_t rows : {1u, 3u}) {
    Scene scene;
    scene.Planned();
    scene.Release(0);
    scene.Bind(0, scene.names[0]);
    std::vector<crds::PlacedPod> edited(rows, crds::PlacedPod{scene.names[2], 0xFF, {}});
    scene.gang->status.placement = crds::ToColumns(edited, 2);
    EXPECT_THAT(scene.Expect<NeedsPlan>().why, HasSubstr("for 2 ranks"));
    scene.pods.pop_back();
    EXPECT_TRUE(scene.Expect<Nothing>().look_again) << "a plan is made of pods";
  }
}

// While a pod is gated, people may narrow where it runs; the plan is older than that.
TEST(GangDecision, FindsAnotherPlaceForAGatedPodThatMayNotRunOnItsNodeAnyMore) {
  Scene scene;
  for (const std::string& name : scene.names) {
    NodeFacts facts;
    facts.name = name;
    facts.labels["kubernetes.io/hostname"] = name;
    scene.snapshot.nodes.Set(name, std::make_shared<const NodeFacts>(facts));
  }
  scene.Planned();
  scene.Expect<ReleasePods>();
  scene.pods[1]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = scene.names[3];
  EXPECT_THAT(scene.Expect<NeedsPlan>().why, HasSubstr("job-1 may not run on " + scene.names[1]));
  scene.Release(0);
  EXPECT_THAT(scene.Expect<RepairRanks>().lost, testing::ElementsAre(1));
  scene.pods[1]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = scene.names[1];
  EXPECT_EQ(scene.Expect<ReleasePods>().patches.size(), 1u);
}

// Found by the simulation, seed 85: there was no pod to read the parallelism from.
TEST(GangDecision, MakesNoNewPlanBeforeItsPodsAreThereAgain) {
  Scene scene;
  scene.Planned();
  scene.TakeOut(0, "Cordoned");
  scene.Expect<NeedsPlan>();
  const std::vector<Json> pods = std::exchange(scene.pods, {});
  const Action action = scene.Next();
  EXPECT_FALSE(std::holds_alternative<NeedsPlan>(action));
  EXPECT_FALSE(std::holds_alternative<RepairRanks>(action));
  scene.pods = pods;
  scene.Expect<NeedsPlan>();
}

TEST(GangDecision, GivesWayToAnOlderPlanAndToBoundPodsButNotToALaterPlan) {
  Scene scene;
  scene.Planned();
  Hold hold{.gpus = 1,
            .owner_uid = "other",
            .name = "gang train/other",
            .planned_at = kNow + std::chrono::seconds(1)};
  scene.snapshot.holds.Set(scene.names[0], {hold});
  scene.Expect<ReleasePods>();
  hold.planned_at = kNow - std::chrono::seconds(1);
  scene.snapshot.holds.Set(scene.names[0], {hold});
  EXPECT_THAT(scene.Expect<NeedsPlan>().why, HasSubstr("gang train/other"));
  hold.planned_at = kNow;
  scene.snapshot.holds.Set(scene.names[0], {hold});
  scene.Expect<ReleasePods>();
  hold.source = Hold::Source::kAssumed;
  scene.snapshot.holds.Set(scene.names[0], {hold});
  scene.Expect<NeedsPlan>();
}

// Both gangs have begun, and the plan of the one that lost the slot is the older one: that must not win it back.
TEST(GangDecision, ARankWhoseSlotLapsedDoesNotTakeItFromWhoWasGivenIt) {
  Scene scene;
  scene.Planned();
  scene.ReleaseAndBindBoth();
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  scene.Lose(0);
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  scene.pods.push_back(GatedPod(0));
  scene.snapshot.holds.Set(scene.names[0], {{.gpus = 1,
                                             .owner_uid = "other",
                                             .name = "gang train/other",
                                             .planned_at = kNow + std::chrono::seconds(400),
                                             .begun = true}});
  scene.now = kNow + std::chrono::seconds(299);
  EXPECT_FALSE(std::holds_alternative<RepairRanks>(scene.Next()));
  scene.now = kNow + std::chrono::seconds(300);
  const auto repair = scene.Expect<RepairRanks>();
  EXPECT_THAT(repair.lost, ElementsAre(0));
  EXPECT_EQ(repair.why, "rank 0: its slot on " + scene.names[0] +
                            " was given to gang train/other after five minutes without a pod");
}

// Found by the simulation: rank 1 had succeeded, its slot was given away, and then it came again.
TEST(GangDecision, ARankThatComesAgainGivesWayToAPodThatWasToldItsSlotAlthoughItsPlanIsOlder) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  Hold hold{.gpus = 1,
            .owner_uid = "other",
            .name = "gang train/other",
            .planned_at = kNow + std::chrono::seconds(1)};
  scene.snapshot.holds.Set(scene.names[1], {hold});
  scene.Expect<ReleasePods>();
  hold.told = true;
  scene.snapshot.holds.Set(scene.names[1], {hold});
  EXPECT_THAT(scene.Expect<RepairRanks>().lost, testing::ElementsAre(1));
}

// An older plan that lands late: whichever has begun goes on, or both would be in halves for good.
TEST(GangDecision, OfTwoPlansTheOneGoesOnOfWhichAPodWasLetGoWhicheverIsOlder) {
  Scene scene;
  scene.Planned();
  Hold older{.gpus = 1,
             .owner_uid = "other",
             .name = "gang train/other",
             .planned_at = kNow - std::chrono::minutes(1)};
  scene.snapshot.holds.Set(scene.names[1], {older});
  EXPECT_THAT(scene.Expect<NeedsPlan>().why, HasSubstr("gang train/other"));
  scene.Release(0);
  scene.Expect<ReleasePods>();
  older.begun = true;
  scene.snapshot.holds.Set(scene.names[1], {older});
  EXPECT_THAT(scene.Expect<RepairRanks>().lost, testing::ElementsAre(1)) << "both have begun";

  Scene at_the_gate;
  at_the_gate.Planned();
  Hold younger = older;
  younger.planned_at = kNow + std::chrono::minutes(1);
  at_the_gate.snapshot.holds.Set(at_the_gate.names[1], {younger});
  at_the_gate.Expect<NeedsPlan>();
  younger.begun = false;
  at_the_gate.snapshot.holds.Set(at_the_gate.names[1], {younger});
  at_the_gate.Expect<ReleasePods>();
}

TEST(GangDecision, PlansAnewWhenAllThatIsLeftOfItWaitsAtTheGate) {
  Scene scene;
  scene.Planned();
  scene.job["status"]["completedIndexes"] = "0";
  scene.pods.erase(scene.pods.begin());
  scene.TakeOut(1, "Cordoned");
  EXPECT_THAT(scene.Expect<NeedsPlan>().why, HasSubstr("Cordoned"));
}

TEST(GangDecision, RepairsOnlyTheRankWhoseSlotIsLostOnceOthersAreReleased) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.TakeOut(1, "NotReady");
  const auto repair = scene.Expect<RepairRanks>();
  EXPECT_THAT(repair.lost, testing::ElementsAre(1));
  EXPECT_THAT(repair.why, HasSubstr(scene.names[1] + " is NotReady"));
}

TEST(GangDecision, RepairsAStuckPodOnlyAfterSomePatience) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.TakeOut(0, "Cordoned");
  const auto stuck_for = [&](int seconds) {
    scene.pods[0]["status"]["conditions"] =
        Json::array({{{"type", "PodScheduled"},
                      {"status", "False"},
                      {"reason", "Unschedulable"},
                      {"lastTransitionTime", base::FormatTime(kNow - std::chrono::seconds(seconds))}}});
  };
  stuck_for(5);
  scene.Expect<UpdateStatus>();
  stuck_for(60);
  EXPECT_THAT(scene.Expect<RepairRanks>().lost, testing::ElementsAre(0));
}

// Rank 0 has been refused by the scheduler for a minute, in a slot that looks sound to us. `terms`: of its own.
Scene StuckScene(const Json& terms = Json()) {
  Scene scene;
  if (!terms.is_null()) {
    scene.pods[0]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", terms}};
  }
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.gang->status.planned_at = kNow - std::chrono::minutes(2);
  scene.pods[0]["status"]["conditions"] =
      Json::array({{{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "Unschedulable"},
                    {"message", "0/4 nodes are available: 1 Insufficient ephemeral-storage"},
                    {"lastTransitionTime", base::FormatTime(kNow - std::chrono::seconds(60))}}});
  return scene;
}

TEST(GangDecision, SaysThatARankThatItsJobHasGivenUpIsMissingForGood) {
  Scene scene;
  scene.Made();
  scene.Lose(1);
  scene.job["kind"] = "Job";
  scene.job["apiVersion"] = "batch/v1";
  scene.job["status"]["failedIndexes"] = "0";
  EXPECT_NE(scene.Expect<UpdateStatus>().status.reason, "IndexFailed") << "rank 0 still has a pod";
  scene.job["status"]["failedIndexes"] = "1";
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_EQ(update.status.reason, "IndexFailed");
  EXPECT_THAT(update.status.message, HasSubstr("rank 1 has failed for good"));
}

TEST(GangDecision, TriesASubstituteWhereTheSchedulerRefusesASoundSlot) {
  Scene scene = StuckScene();
  const auto update = scene.Expect<UpdateStatus>();
  const auto rows = crds::ToRows(*update.status.placement);
  EXPECT_EQ(rows[0].node, scene.names[2]);
  EXPECT_THAT(rows[0].substitutes, testing::IsEmpty()) << "each is tried once";
  EXPECT_EQ(rows[1].node, scene.names[1]);
  EXPECT_EQ(update.status.placement->epoch, 2);
  EXPECT_TRUE(Is(update.status, crds::kRepairing));
  EXPECT_THAT(update.note->text, HasSubstr("Insufficient ephemeral-storage"));
  scene.gang->status = update.status;
  EXPECT_EQ(scene.Expect<ReleasePods>().patches.size(), 1u) << "the pod is told";
}

TEST(GangDecision, GivesTheSchedulerTimeForEachSubstitute) {
  Scene scene = StuckScene();
  scene.gang->status.planned_at = kNow - std::chrono::seconds(5);
  const Action action = scene.Next();
  const auto* update = std::get_if<UpdateStatus>(&action);
  EXPECT_TRUE(update == nullptr || update->status.placement->epoch == 1);
}

TEST(GangDecision, IsDegradedWithTheSchedulersWordsWhenNoSubstituteIsLeft) {
  Scene scene = StuckScene();
  Hold hold;
  hold.gpus = 1;
  hold.source = Hold::Source::kGrant;
  hold.owner_uid = "somebody";
  scene.snapshot.holds.Set(scene.names[2], {hold});
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(update.status, crds::kDegraded));
  EXPECT_EQ(update.status.reason, "Unschedulable");
  EXPECT_THAT(update.status.message, HasSubstr("Insufficient ephemeral-storage"));
  EXPECT_EQ(crds::ToRows(*update.status.placement)[0].node, scene.names[0]) << "it stays where it is";
  ASSERT_TRUE(update.note);
  scene.gang->status = update.status;
  scene.Expect<Nothing>();
}

TEST(GangDecision, TriesTheSubstituteOfALaterRankWhereTheFirstStuckOneHasNone) {
  Scene scene = StuckScene();
  scene.pods[1]["status"] = scene.pods[0]["status"];
  scene.gang->status.placement =
      crds::ToColumns({{scene.names[0], 0xFF, {}}, {scene.names[1], 0xFF, {scene.names[2]}}}, 1);
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(update.status, crds::kRepairing));
  const auto rows = crds::ToRows(*update.status.placement);
  EXPECT_EQ(rows[0].node, scene.names[0]);
  EXPECT_EQ(rows[1].node, scene.names[2]);
  scene.gang->status.placement = crds::ToColumns({{scene.names[0], 0xFF, {}}, {scene.names[1], 0xFF, {}}}, 1);
  EXPECT_THAT(scene.Expect<UpdateStatus>().status.message, HasSubstr("rank 0 (pod job-0) cannot start"));
}

// Its failed pods still stand. They are of a time when the rank's slot was there.
TEST(GangDecision, TriesNoSubstituteWhoseKubeletRefusedPodsOfTheRank) {
  Scene scene = StuckScene();
  for (const char* name : {"first", "second"}) {
    Json pod = scene.pods[0];
    pod["metadata"]["name"] = name;
    pod["metadata"]["uid"] = name;
    pod["metadata"]["annotations"]["heddle.dev/node"] = scene.names[2];
    pod["spec"]["nodeName"] = scene.names[2];
    pod["status"] = {{"phase", "Failed"},
                     {"reason", "OutOfpods"},
                     {"startTime", base::FormatTime(kNow - std::chrono::minutes(1))}};
    scene.pods.push_back(std::move(pod));
  }
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(update.status, crds::kDegraded));
  EXPECT_EQ(crds::ToRows(*update.status.placement)[0].node, scene.names[0]);
}

// Whose own node affinity says only which GPUs it wants. Sent elsewhere it would start nowhere, ever: the scheduler goes
// by its spec, which nobody can change past the gate, and filter by what it was told.
TEST(GangDecision, TriesNoSubstituteWhereThePodItselfMayNotRun) {
  const Json h100 = Json::array(
      {{{"matchExpressions",
         Json::array({{{"key", "gpu"}, {"operator", "In"}, {"values", Json::array({"h100"})}}})}}});
  Scene own = StuckScene(h100), without = StuckScene();
  for (Scene* scene : {&own, &without}) {
    auto facts = std::make_shared<NodeFacts>();
    facts->name = scene->names[2];
    facts->ready = true;
    facts->labels = {{"gpu", "h100"}};
    scene->snapshot.nodes.Set(facts->name, facts);
  }
  const auto update = own.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(update.status, crds::kDegraded));
  EXPECT_EQ(crds::ToRows(*update.status.placement)[0].node, own.names[0]);
  EXPECT_EQ(crds::ToRows(*without.Expect<UpdateStatus>().status.placement)[0].node, without.names[2]);
  auto tainted = std::make_shared<NodeFacts>(*without.snapshot.nodes.find(without.names[2])->second);
  tainted->taints = {{"burn-in", "", "NoSchedule"}};
  without.snapshot.nodes.Set(tainted->name, tainted);
  EXPECT_EQ(crds::ToRows(*without.Expect<UpdateStatus>().status.placement)[0].node, without.names[0]);
}

TEST(GangDecision, SaysWhichRankHasNoPodAlsoWhileAnotherHasNoPlace) {
  Scene scene = StuckScene();
  scene.gang->status.placement->substitutes.clear();
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  ASSERT_TRUE(Is(scene.gang->status, crds::kDegraded));
  scene.now += std::chrono::seconds(20);
  scene.Lose(1);
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_TRUE(Is(update.status, crds::kDegraded));
  EXPECT_THAT(update.status.missing, ElementsAre(crds::MissingRank{1, scene.now}));
  scene.gang->status = update.status;
  scene.now += std::chrono::seconds(20);
  scene.Expect<Nothing>();
}

TEST(GangDecision, MovesAPodThatWasToldAnOlderSlotThanTheGangHasNow) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.gang->status.placement = crds::ToColumns({{scene.names[2], 0xFF, {}}, {scene.names[1], 0xFF, {}}}, 2);
  const auto move = scene.Expect<ReleasePods>();
  ASSERT_EQ(move.patches.size(), 1u);
  EXPECT_EQ(kube::Annotation(scene.pods[0].patch(move.patches[0].patch), "heddle.dev/node"), scene.names[2]);
}

// A row of 0 is the node's whole set, and which GPUs those are stands in its NodeTopology alone.
TEST(GangDecision, TellsAPodOnItsWayNothingWhileNobodyKnowsItsMachine) {
  Scene scene;
  scene.Made();
  const GangMembers members = ReadMembers(scene.key, &scene.job, scene.Shared());
  scene.gang->status = PlannedStatus({&*scene.gang, members, scene.snapshot, kNow},
                                     {{scene.names[0], 0U, {}}, {scene.names[1], 0U, {}}}, {}, {});
  scene.Release(0);
  scene.Release(1);
  ASSERT_EQ(kube::Annotation(scene.pods[0], "heddle.dev/gpus"), "0,1,2,3,4,5,6,7");
  scene.snapshot.fabrics.clear();
  EXPECT_FALSE(std::holds_alternative<ReleasePods>(scene.Next())) << "they would be told no GPUs and no NICs";
}

TEST(GangDecision, FollowsAPodThatWasBoundElsewhere) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.Bind(0, scene.names[3]);
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_EQ(crds::ToRows(*update.status.placement)[0].node, scene.names[3]);
  EXPECT_EQ(update.status.placement->epoch, 2);
}

TEST(GangDecision, EndsWithItsOwner) {
  for (const auto& [change, reason] : std::vector<std::pair<const char*, const char*>>{
           {R"({"spec":{"suspend":true}})", "OwnerSuspended"},
           {R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})", "OwnerDeleted"},
           {R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})", "OwnerFinished"}}) {
    Scene scene;
    scene.Planned();
    scene.job.merge_patch(Json::parse(change));
    const auto update = scene.Expect<UpdateStatus>();
    EXPECT_TRUE(Is(update.status, crds::kEnded));
    EXPECT_EQ(update.status.reason, reason);
    scene.gang->status = update.status;
    EXPECT_FALSE(HoldsSlots(*scene.gang));
    scene.Expect<Nothing>();
  }
}

TEST(GangDecision, StartsAgainWithAnotherGangWhenTheOwnerResumesOrChangesItsSize) {
  Scene scene;
  scene.Planned();
  crds::SetCondition(scene.gang->status.conditions,
                     {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue});
  scene.Expect<DeleteGang>();
  Scene grown;
  grown.Planned();
  grown.job = IndexedJob(3);
  grown.pods = {GatedPod(0, "tp=8,dp=3"), GatedPod(1, "tp=8,dp=3"), GatedPod(2, "tp=8,dp=3")};
  grown.Expect<DeleteGang>();
}

TEST(GangDecision, NeverDeletesAGangWhosePodsWereReleasedBecauseOfItsSize) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  GangMembers members = ReadMembers(scene.key, &scene.job, scene.Shared());
  members.elastic = false;  // as of any owner but those that can be scaled
  members.spec.pods = 3;
  members.ranks.resize(3);
  members.done.resize(3);
  const Action action = Decide({&*scene.gang, members, scene.snapshot, kNow});
  ASSERT_TRUE(std::holds_alternative<UpdateStatus>(action));
  const crds::GangStatus& status = std::get<UpdateStatus>(action).status;
  EXPECT_TRUE(Is(status, crds::kDegraded));
  EXPECT_EQ(status.reason, "SizeChanged");
  EXPECT_TRUE(status.placement);
  scene.gang->status = status;
  EXPECT_TRUE(std::holds_alternative<Nothing>(Decide({&*scene.gang, members, scene.snapshot, kNow})));
}

// The number of pods was written on the template, and that does not change with the size.
TEST(GangDecision, PlansAJobThatIsScaledAnewWithAnotherDp) {
  Scene scene;
  scene.Planned();
  scene.ReleaseAndBindBoth();
  scene.job = IndexedJob(3);
  scene.Expect<DeleteGang>();
  scene.gang.reset();
  const auto up = scene.Expect<CreateGang>();
  EXPECT_EQ(up.gang.spec.pods, 3);
  EXPECT_EQ(up.gang.spec.parallelism->dp, 3);
  scene.job = IndexedJob(1);
  EXPECT_EQ(scene.Expect<CreateGang>().gang.spec.parallelism->dp, 1) << "rank 1 is about to be removed";
}

TEST(GangDecision, LetsARunningJobGoOnAtASizeThatNoDpFits) {
  Scene scene;
  scene.pods = {GatedPod(0, "tp=16"), GatedPod(1, "tp=16")};
  scene.Planned();
  scene.ReleaseAndBindBoth();
  scene.gang->status = scene.Expect<UpdateStatus>().status;  // Running
  scene.job = IndexedJob(3);
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_EQ(update.status.reason, "WorldMismatch");
  EXPECT_THAT(update.status.message, HasSubstr("each replica of the model takes 16"));
  EXPECT_THAT(update.status.message, HasSubstr("scale to a multiple of 2 pods"));
  EXPECT_TRUE(update.status.placement) << "its slots are in use";
  scene.gang->status = update.status;
  scene.Expect<Nothing>();
  scene.job = IndexedJob(2);
  const auto back = scene.Expect<UpdateStatus>();
  EXPECT_EQ(back.status.reason, "");
  EXPECT_FALSE(Is(back.status, crds::kDegraded));
}

// Nothing but its Gang knows by then that the number of pods is no mistake.
TEST(GangDecision, TakesAScaledJobThatResumesForWhatItIs) {
  Scene scene;
  scene.Planned();
  scene.ReleaseAndBindBoth();
  scene.job = IndexedJob(3);
  scene.gang.reset();
  scene.gang = scene.Expect<CreateGang>().gang;
  scene.gang->uid = "gang-uid";
  for (const bool ended : {true, false}) {
    scene.pods = {GatedPod(0), GatedPod(1), GatedPod(2)};
    scene.gang->status = {};
    if (!ended) {
      scene.Expect<NeedsPlan>();  // all made again at once
      continue;
    }
    crds::SetCondition(scene.gang->status.conditions,
                       {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue});
    const auto again = scene.Expect<UpdateStatus>();
    EXPECT_TRUE(again.status.conditions.empty());
  }
  scene.gang.reset();
  const auto refused = scene.Expect<CreateGang>();
  EXPECT_FALSE(refused.gang.spec.parallelism) << "what never started has to multiply";
}

TEST(GangDecision, SaysARefusalOnce) {
  Scene scene;
  scene.pods[0]["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=x";
  scene.pods[1] = scene.pods[1];
  scene.Made();
  scene.gang->spec.parallelism.reset();
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_FALSE(Is(update.status, crds::kPlanned));
  ASSERT_TRUE(update.note);
  EXPECT_TRUE(update.note->warning);
  EXPECT_EQ(crds::Summarise(scene.gang->spec, update.status), "Waiting: BadAnnotation");
  scene.gang->status = update.status;
  scene.Expect<Nothing>();
}

TEST(GangDecision, KeepsTheSlotsOfARunningGangWhileTwoPodsFightOverARank) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.pods.push_back(GatedPod(1));
  scene.pods.back()["metadata"]["name"] = "twin";
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_EQ(update.status.reason, "RankDoubled");
  EXPECT_TRUE(update.status.placement);
}

// A leader that is made anew has workers of its own; the old ones are on their way out.
TEST(GangDecision, PlansAnotherAttemptOfAGroupAnew) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.gang->spec.group = "LeaderWorkerSet/serve/0";
  scene.gang->spec.leader = "old-leader";
  const auto decide = [&scene](const std::string& leader, const std::string& owner_uid) {
    GangMembers members = ReadMembers(scene.key, &scene.job, scene.Shared());
    members.spec.group = scene.gang->spec.group;
    members.spec.leader = leader;
    members.spec.owner.uid = owner_uid;
    return std::holds_alternative<DeleteGang>(Decide({&*scene.gang, members, scene.snapshot, kNow}));
  };
  EXPECT_FALSE(decide("old-leader", "job-uid"));
  EXPECT_FALSE(decide("", "job-uid")) << "the leader is being made anew";
  EXPECT_TRUE(decide("new-leader", "job-uid"));
  EXPECT_TRUE(decide("old-leader", "another-uid")) << "the owner's name was used again";
}

TEST(GangDecision, PlansAnElasticGangAnewOnceNobodyIsOnTheWay) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.Bind(0, scene.names[0]);
  const auto decide = [&scene](bool elastic) {
    GangMembers members = ReadMembers(scene.key, &scene.job, scene.Shared());
    members.elastic = elastic;
    members.spec.pods = 3;
    members.ranks.resize(3);
    members.done.resize(3);
    return Decide({&*scene.gang, members, scene.snapshot, kNow});
  };
  const Action early = decide(true);
  ASSERT_TRUE(std::holds_alternative<UpdateStatus>(early)) << "rank 1 is not bound yet";
  const crds::GangStatus& waits = std::get<UpdateStatus>(early).status;
  EXPECT_EQ(waits.reason, "SizeChanged");
  EXPECT_THAT(waits.message, HasSubstr("when 1 pod that the scheduler has not bound yet is on a node"));
  EXPECT_FALSE(Is(waits, crds::kDegraded));
  scene.Bind(1, scene.names[1]);
  EXPECT_TRUE(std::holds_alternative<DeleteGang>(decide(true)));
  const Action rigid = decide(false);
  ASSERT_TRUE(std::holds_alternative<UpdateStatus>(rigid));
  EXPECT_EQ(std::get<UpdateStatus>(rigid).status.reason, "SizeChanged");
}

// A node may have been lost under it, and the gang is scaled for just that.
TEST(GangDecision, AwaitsNoPodThatTheSchedulerRefusesToPlanAScaledGangAnew) {
  Scene scene;
  scene.Planned();
  scene.Release(0);
  scene.Release(1);
  scene.Bind(1, scene.names[1]);
  scene.job = IndexedJob(3);
  const auto refused_for = [&scene](int seconds) {
    scene.pods[0]["status"]["conditions"] =
        Json::array({{{"type", "PodScheduled"},
                      {"status", "False"},
                      {"reason", "Unschedulable"},
                      {"lastTransitionTime", base::FormatTime(kNow - std::chrono::seconds(seconds))}}});
  };
  refused_for(5);
  EXPECT_EQ(scene.Expect<UpdateStatus>().status.reason, "SizeChanged");
  refused_for(60);
  scene.Expect<DeleteGang>();
}

TEST(GangDecision, TellsABoundPodItsRankWhereAGangOfAnotherSizeToldItAnother) {
  Scene scene;
  scene.Planned();
  scene.ReleaseAndBindBoth();
  scene.TellAnotherRank(1);
  const auto release = scene.Expect<ReleasePods>();
  ASSERT_EQ(release.patches.size(), 1u);
  EXPECT_EQ(release.patches[0].rank, 1);
  scene.pods[1] = scene.pods[1].patch(release.patches[0].patch);
  EXPECT_EQ(kube::Annotation(scene.pods[1], crds::keys::kRank), "1");
  EXPECT_EQ(kube::Annotation(scene.pods[1], crds::keys::kNode), scene.names[1]);
  EXPECT_TRUE(Is(scene.Expect<UpdateStatus>().status, crds::kRunning)) << "once";
}

TEST(GangDecision, ReservesNothingForAGangThatWasOnlyObserved) {
  Scene scene;
  scene.Made().status.observed = crds::Observed{};
  scene.Expect<DeleteGang>();  // its pods wait at the gate now
  scene.pods.clear();
  scene.Expect<Nothing>();
}

TEST(GangDecision, MakesAGangAnewThatWasMadeWhileItsPodsWereRefused) {
  Scene scene;
  scene.Planned();
  scene.ReleaseAndBindBoth();
  scene.Made().spec.parallelism.reset();  // somebody deleted the one before it
  scene.Expect<DeleteGang>();
  scene.gang.reset();
  EXPECT_TRUE(scene.Expect<CreateGang>().gang.spec.parallelism);
}

TEST(GangDecision, ReachesTheSameDecisionFromTheSameObjects) {
  Scene scene;
  scene.Planned();
  const auto first = scene.Expect<ReleasePods>(), second = scene.Expect<ReleasePods>();
  ASSERT_EQ(first.patches.size(), second.patches.size());
  for (std::size_t i = 0; i < first.patches.size(); ++i)
    EXPECT_EQ(first.patches[i].patch, second.patches[i].patch);
}

Json Tolerating(Json pod, std::optional<int> seconds) {
  Json toleration = {
      {"key", "node.kubernetes.io/unreachable"}, {"operator", "Exists"}, {"effect", "NoExecute"}};
  if (seconds) toleration["tolerationSeconds"] = *seconds;
  pod["spec"]["tolerations"] = Json::array({std::move(toleration)});
  return pod;
}

TEST(GangDecision, SaysWhenThePodOnALostNodeIsEvicted) {
  for (const auto& [seconds, words] :
       std::map<std::optional<int>, std::string>{{300, "evicts the pod 300 s after that"},
                                                 {std::nullopt, "evicts the pod never, as it tolerates"}}) {
    Scene scene;
    for (Json& pod : scene.pods) pod = Tolerating(pod, seconds);
    scene.Planned();
    for (int rank : {0, 1}) {
      scene.Release(rank);
      scene.Bind(rank, scene.names[std::size_t(rank)]);
    }
    scene.gang->status = scene.Expect<UpdateStatus>().status;
    ASSERT_TRUE(Is(scene.gang->status, crds::kRunning));
    auto facts = std::make_shared<NodeFacts>();
    facts->name = scene.names[1];
    facts->ready = false;
    scene.snapshot.nodes.Set(scene.names[1], facts);
    const auto update = scene.Expect<UpdateStatus>();
    EXPECT_EQ(update.status.reason, "NodeLost");
    EXPECT_THAT(update.status.message, HasSubstr(words));
    ASSERT_TRUE(update.note);
    EXPECT_TRUE(update.note->warning);
    scene.gang->status = update.status;
    scene.Expect<Nothing>();
    scene.snapshot.nodes = {};
    const auto back = scene.Expect<UpdateStatus>();
    EXPECT_EQ(back.status.reason, "");
    EXPECT_EQ(back.note->reason, "NodeBack");
  }
}

TEST(GangDecision, SaysThatAnEvictedPodOnALostNodeDoesNotEnd) {
  Scene scene;
  scene.Planned();
  for (int rank : {0, 1}) {
    scene.Release(rank);
    scene.Bind(rank, scene.names[std::size_t(rank)]);
  }
  scene.gang->status = scene.Expect<UpdateStatus>().status;
  auto facts = std::make_shared<NodeFacts>();
  facts->name = scene.names[1];
  facts->ready = false;
  scene.snapshot.nodes.Set(scene.names[1], facts);
  scene.pods[1]["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  const auto update = scene.Expect<UpdateStatus>();
  EXPECT_EQ(update.status.reason, "NodeLost");
  EXPECT_THAT(update.status.message, HasSubstr("rank 1 has no pod"));
  EXPECT_THAT(update.status.message, HasSubstr("delete its Node"));
  EXPECT_THAT(crds::Summarise(scene.gang->spec, update.status), HasSubstr("1/2: NodeLost"));
  scene.pods[1] = GatedPod(1);  // another one was made
  EXPECT_TRUE(std::holds_alternative<RepairRanks>(scene.Next()) ||
              std::holds_alternative<ReleasePods>(scene.Next()));
}

}  // namespace
}  // namespace heddle::extender
