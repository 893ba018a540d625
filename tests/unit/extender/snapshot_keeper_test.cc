#include "extender/snapshot_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/builders.h"
#include "tests/unit/extender/snapshot_stage.h"

namespace heddle::extender {
namespace {

using test::Stage;

const std::string kA = topology::ParseSynthetic("su:1 node:2 gpu:8 nic:8 rail:8")->nodes[0].name;
const std::string kB = topology::ParseSynthetic("su:1 node:2 gpu:8 nic:8 rail:8")->nodes[1].name;

struct Change {
  std::string name;
  std::function<void(Stage&)> make;
};
void PrintTo(const Change& change, std::ostream* out) {
  *out << change.name;
}

// A lone pod on the first node, a gang with a slot on each, one pod of it bound and the other gated.
Stage Scene() {
  Stage stage;
  stage.Bound("a-lone", kA, 2);
  stage.Gang("train", {{kA, 0xF0, {}}, {kB, 0xF0, {}}});
  PodFacts& bound = stage.Bound("b-0", kA, 4);
  bound.gang = {"train", "train", 0};
  bound.plan = PodPlan{.rank = 0, .node = kA, .gpus = 0xF0};
  PodFacts& gated = stage.Bound("b-1", "", 4);
  gated.gang = {"train", "train", 0};
  gated.gated = true;
  return stage;
}

class NothingNew : public ::testing::TestWithParam<Change> {};
class SomethingNew : public ::testing::TestWithParam<Change> {};

// The fabrics are the caches': the same ones until a topology changes.
bool SameAfter(const Change& change) {
  Stage stage = Scene();
  const SnapshotInputs before = stage.Inputs();
  change.make(stage);
  SnapshotInputs after = stage.Inputs();
  after.fabrics = before.fabrics;
  return SameSnapshot(before, after);
}

TEST_P(NothingNew, IsTheSameSnapshot) {
  EXPECT_TRUE(SameAfter(GetParam()));
}
TEST_P(SomethingNew, IsAnotherSnapshot) {
  EXPECT_FALSE(SameAfter(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    SnapshotKeeper, NothingNew,
    ::testing::Values(Change{"nothing", [](Stage&) {}},
                      Change{"a gang counts its pods",
                             [](Stage& stage) { stage.gangs[0]->status.progress.bound = 1; }},
                      Change{"a gang is told a reason",
                             [](Stage& stage) { stage.gangs[0]->status.reason = "Unschedulable"; }},
                      Change{"a gang without slots comes",
                             [](Stage& stage) {
                               stage.Gang("waiting", {{kA, 1, {}}}).status.placement.reset();
                             }},
                      Change{"a pod waits for the scheduler",
                             [](Stage& stage) {
                               stage.pods[2]->unschedulable_since = base::WallTime(std::chrono::seconds(9));
                             }},
                      Change{"a gated pod of no gang with slots comes",
                             [](Stage& stage) { stage.Bound("c-gated", "", 8).gated = true; }},
                      Change{"an agent looks again", [](Stage& stage) {
                               stage.topologies[0]->status.observed_at =
                                   base::WallTime(std::chrono::seconds(2));
                             }}));

INSTANTIATE_TEST_SUITE_P(
    SnapshotKeeper, SomethingNew,
    ::testing::Values(
        Change{"a pod is bound", [](Stage& stage) { stage.pods[2]->node = kB; }},
        Change{"a pod ends", [](Stage& stage) { stage.pods[0]->finished = true; }},
        Change{"a pod is made anew", [](Stage& stage) { stage.pods[1]->uid = "another"; }},
        Change{"a pod is gone", [](Stage& stage) { stage.pods.erase(stage.pods.begin()); }},
        Change{"a pod comes", [](Stage& stage) { stage.Bound("c-new", kB, 1); }},
        Change{"the first pod of a gang with slots is gone, and says what each asks for",
               [](Stage& stage) { stage.pods.pop_back(); }},
        Change{"a pod is told another plan", [](Stage& stage) { stage.pods[1]->plan->gpus = 0x0F; }},
        Change{"a pod asks for more", [](Stage& stage) { stage.pods[0]->demand.gpus = 3; }},
        Change{"a gang moves",
               [](Stage& stage) {
                 stage.gangs[0]->status.placement = crds::ToColumns({{kB, 0, {}}, {kA, 0, {}}}, 2);
               }},
        Change{"a gang ends",
               [](Stage& stage) {
                 crds::SetCondition(
                     stage.gangs[0]->status.conditions,
                     {.type = std::string(crds::kEnded), .status = crds::ConditionStatus::kTrue});
               }},
        Change{"a gang is gone", [](Stage& stage) { stage.gangs.clear(); }},
        Change{"a node is cordoned", [](Stage& stage) { stage.nodes[0]->cordoned = true; }},
        Change{"a node gets a taint",
               [](Stage& stage) {
                 stage.nodes[0]->taints.push_back({"drain", "", "NoSchedule"});
               }},
        Change{"a node is gone", [](Stage& stage) { stage.nodes.pop_back(); }},
        Change{"an agent falls silent", [](Stage& stage) { stage.stale.insert(kA); }},
        Change{"the kubelet grants", [](Stage& stage) {
                 crds::Grant grant{.pod_namespace = "other", .pod_name = "a-lone"};
                 grant.gpus = {{0, ""}, {1, ""}};
                 stage.topologies[0]->status.grants.push_back(grant);
               }}));

TEST(SnapshotKeeper, TakesANewSnapshotOnlyWhenSomeClaimIsNew) {
  Stage stage = Scene();
  SnapshotInputs inputs = stage.Inputs();
  const auto fabrics = inputs.fabrics;
  const auto next = [&stage, &fabrics] {
    SnapshotInputs again = stage.Inputs();
    again.fabrics = fabrics;
    return again;
  };
  SnapshotKeeper keeper;
  const Shared<Snapshot> first = keeper.Of(std::move(inputs));
  stage.gangs[0]->status.progress.bound = 1;
  EXPECT_EQ(keeper.Of(next()), first);
  stage.pods[2]->node = kB;
  const Shared<Snapshot> second = keeper.Of(next());
  EXPECT_NE(second, first);
  EXPECT_EQ(second->holds, TakeSnapshot(next()).holds);
  SnapshotInputs built = next();
  built.fabrics = std::make_shared<const FabricSet>(*fabrics);
  EXPECT_NE(keeper.Of(std::move(built)), second) << "the fabrics were assembled anew";
}

// 4 : 1 above the leaves, so that loads are shared.
TEST(KnownLoads, PricesAGangAgainOnlyWhenItMovesOrTheFabricIsAnother) {
  Stage stage("su:2 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib");
  crds::Fabric declared;
  declared.name = "infiniband";
  declared.spec.oversubscription_percent = 400;
  stage.declared.push_back(std::make_shared<const crds::Fabric>(declared));
  const auto name = [&stage](std::size_t node) { return stage.nodes[node]->name; };
  crds::Gang& gang = stage.Gang("train", {{name(0), 0, {}}, {name(2), 0, {}}});
  gang.spec.gpus_per_pod = 8;
  gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 2};
  const auto loads = [](const Snapshot& snapshot) {
    std::int64_t sum = 0;
    for (const auto& [uid, load] : snapshot.fabrics.at(0).loads) {
      for (const auto& one : load) sum += one.mbps;
    }
    return sum;
  };
  const SnapshotInputs apart = stage.Inputs();
  KnownLoads known;
  const std::int64_t far = loads(TakeSnapshot(apart, &known));
  ASSERT_GT(far, 0) << "its two pods lie under different leaves";
  EXPECT_EQ(loads(TakeSnapshot(apart, &known)), far);
  gang.status.placement = crds::ToColumns({{name(0), 0, {}}, {name(1), 0, {}}}, 2);
  SnapshotInputs together = stage.Inputs();
  together.fabrics = apart.fabrics;
  EXPECT_EQ(loads(TakeSnapshot(together, &known)), 0) << "it moved under one leaf";
  EXPECT_EQ(loads(TakeSnapshot(apart, &known)), far);
  stage.gangs.clear();
  SnapshotInputs empty = stage.Inputs();
  empty.fabrics = apart.fabrics;
  EXPECT_EQ(loads(TakeSnapshot(empty, &known)), 0);
}

}  // namespace
}  // namespace heddle::extender
