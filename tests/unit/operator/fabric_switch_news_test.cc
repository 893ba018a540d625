#include <gmock/gmock.h>

#include "operator/fabric_reconciler.h"
#include "operator/fabric_status.h"
#include "operator/kept_suspects.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using topology::Symptom;

// What switches say, in the status of the Fabric: how soon, and over a restart of the operator.
class FabricSwitchNewsTest : public Stage {
 protected:
  FabricSwitchNewsTest() {
    for (const char* name : {"gpu-001", "gpu-002", "gpu-003"}) {
      AddNode(name);
      topology::Node node;
      node.name = name;
      topology::Nic nic;
      nic.name = "mlx5_3";
      nic.transport = topology::Transport::kRoce;
      nic.role = topology::NicRole::kCompute;
      nic.rail = 0;
      nic.ports.push_back(
          {.number = 1, .leaf_port = topology::LeafPort{"su1-r3", std::string("Ethernet") + name[6]}});
      node.nics.push_back(nic);
      Report(node);
    }
  }

  Outcome Reconcile() {
    const auto outcome = reconciler->Reconcile({});
    EXPECT_TRUE(outcome) << (outcome ? "" : base::ToString(outcome.error()));
    return outcome ? *outcome : Outcome{};
  }
  void See(const std::string& port, Symptom symptom = Symptom::kFlap) {
    sightings["su1-r3"][port] = {.alias = "", .sightings = {{symptom, true, "41 flaps in 10 min"}}};
  }
  void StartAnew() {
    sightings.clear();
    verdicts = std::make_unique<CurrentVerdicts>();
    reconciler = Make();
  }
  std::unique_ptr<FabricReconciler> Make() {
    return std::make_unique<FabricReconciler>(
        client, clock,
        FabricReconciler::Reads{.nodes = nodes,
                                .topologies = topologies,
                                .fabrics = fabrics,
                                .heartbeats = heartbeats,
                                .verdicts = verdicts.get(),
                                .sightings = [this] { return sightings; },
                                .unprimed = [this] { return unprimed; }},
        assembly, events);
  }
  std::vector<std::string> Suspected() const {
    std::vector<std::string> ports;
    for (const topology::Suspect& one : FabricNamed("roce").status.suspects) ports.push_back(one.leaf_port);
    return ports;
  }
  std::string Lossless() const {
    const crds::Fabric fabric = FabricNamed("roce");
    const crds::Condition* condition = crds::FindCondition(fabric.status.conditions, kConditionLossless);
    return condition == nullptr ? "" : condition->reason;
  }
  void Compare(int contradicting) {
    auto compared = std::make_shared<SwitchVerdicts>();
    NodeVerdict verdict;
    verdict.counts = {.cables = 1, .lossless = 1 - contradicting, .contradicting = contradicting};
    if (contradicting > 0) verdict.worst = "DSCP 26";
    compared->nodes["gpu-001"] = std::make_shared<const NodeVerdict>(verdict);
    verdicts->Set(compared);
  }

  SwitchSightings sightings;
  std::set<std::string> unprimed;
  kube::Heartbeats heartbeats{{.prefix = "heddle-node-"}};
  CurrentAssembly assembly;
  kube::EventRecorder events{
      client, clock, base::Random(1), {.component = "heddle-operator", .instance = "test"}};
  std::unique_ptr<CurrentVerdicts> verdicts = std::make_unique<CurrentVerdicts>();
  std::unique_ptr<FabricReconciler> reconciler = Make();
};

TEST_F(FabricSwitchNewsTest, ANewSuspectDoesNotWaitForTheNextStatusAndTheNextOneDoes) {
  Reconcile();
  See("Ethernet2");
  EXPECT_EQ(Reconcile().writes, 1);
  EXPECT_THAT(Suspected(), ElementsAre("Ethernet2"));
  // One that comes and goes is not written each time.
  sightings.clear();
  EXPECT_EQ(Reconcile().writes, 0);
  See("Ethernet3");
  const Outcome waits = Reconcile();
  EXPECT_EQ(waits.writes, 0);
  ASSERT_TRUE(waits.again);
  EXPECT_LE(*waits.again, 10s);
  clock.Advance(*waits.again);
  Reconcile();
  EXPECT_THAT(Suspected(), ElementsAre("Ethernet3"));
}

TEST_F(FabricSwitchNewsTest, WhatAnAgentSaysOfCongestionStandsBesideWhatTheSwitchCountsAtItsEnd) {
  const auto congest = [this](const std::string& node) {
    crds::NodeTopology object = NodeOf(node);
    object.status.congestion = {
        {"mlx5_3", 1, object.status.observed_at.value(), "70000 CNPs handled in 1 min"}};
    server.Put(kNodeTopologies, crds::ToJson(object));
  };
  Reconcile();
  congest("gpu-002");
  congest("gpu-003");
  clock.Advance(10s);
  EXPECT_EQ(Reconcile().writes, 0) << "nobody is suspected for it, and no status says it";
  See("Ethernet2", Symptom::kPauseStorm);
  Reconcile();
  ASSERT_THAT(Suspected(), ElementsAre("Ethernet2"));
  EXPECT_THAT(FabricNamed("roce").status.suspects[0].evidence,
              testing::EndsWith("; gpu-002 mlx5_3:1 is congested: 70000 CNPs handled in 1 min"));
}

TEST_F(FabricSwitchNewsTest, CablesThatComeToContradictDoNotWaitEither) {
  Compare(0);
  Reconcile();
  EXPECT_EQ(Lossless(), "Lossless");
  Compare(1);
  Reconcile();
  EXPECT_EQ(Lossless(), "Contradiction");
  Compare(0);
  EXPECT_EQ(Reconcile().writes, 0) << "good news may wait";
}

TEST_F(FabricSwitchNewsTest, SuspectsStayUntilANewOperatorHasCountedForLongEnough) {
  Compare(1);
  See("Ethernet2");
  Reconcile();
  clock.Advance(1min);
  StartAnew();
  unprimed = {"su1-r3"};
  server.ClearRequests();
  const Outcome outcome = Reconcile();
  EXPECT_THAT(WriteLines(), IsEmpty());
  ASSERT_TRUE(outcome.again) << "or nobody would look when they are primed";
  EXPECT_EQ(Lossless(), "Contradiction") << "nobody has compared anything yet";
  EXPECT_THAT(Suspected(), ElementsAre("Ethernet2"));
  // What is seen anew goes first, and twice nowhere.
  See("Ethernet3");
  Reconcile();
  EXPECT_THAT(Suspected(), ElementsAre("Ethernet3", "Ethernet2"));
  unprimed.clear();
  clock.Advance(10s);
  Reconcile();
  EXPECT_THAT(Suspected(), ElementsAre("Ethernet3"));
}

TEST(WithKept, KeepsOnlyWhatAnUnprimedSwitchMayHaveSeen) {
  topology::Fabric fabric;
  topology::FabricNode member;
  member.node.name = "gpu-001";
  topology::Nic nic;
  nic.ports.push_back({.number = 1, .leaf_port = topology::LeafPort{"su1-r3", "Ethernet1"}});
  member.node.nics.push_back(nic);
  fabric.nodes.push_back(member);
  const topology::Suspect cable{.name = "cable", .node = "gpu-001", .leaf = "su1-r3"};
  const topology::Suspect other{.name = "other", .node = "gpu-001", .leaf = "su1-r4"};
  const topology::Suspect host{
      .kind = topology::SuspectKind::kHost, .name = "host gpu-001", .node = "gpu-001"};
  const topology::Suspect stranger{
      .kind = topology::SuspectKind::kHost, .name = "host gpu-009", .node = "gpu-009"};
  const std::vector<topology::Suspect> before{cable, other, host, stranger};
  EXPECT_THAT(WithKept({}, before, fabric, {"su1-r3"}), ElementsAre(cable, host));
  EXPECT_THAT(WithKept({cable}, before, fabric, {"su1-r3"}), ElementsAre(cable, host));
  EXPECT_THAT(WithKept({}, before, fabric, {}), IsEmpty());
  std::vector<topology::Suspect> many(topology::kMaxSuspects, other);
  EXPECT_THAT(WithKept(many, before, fabric, {"su1-r3"}), testing::SizeIs(topology::kMaxSuspects));
}

}  // namespace
}  // namespace heddle::operators
