// What is told of faults and suspects where there are more of them than a Fabric's status keeps.
#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "operator/fabric_reconciler.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class FabricLongListsTest : public Stage {
 protected:
  const crds::FabricStatus& Reconcile() {
    clock.Advance(1min);
    EXPECT_TRUE(reconciler.Reconcile(never));
    status = FabricNamed("infiniband").status;
    return status;
  }
  std::vector<std::string> EventNotes() {
    events.Flush(never);
    std::vector<std::string> notes;
    for (const Json& event : server.All(kube::kEvents))
      notes.push_back(kube::StringAt(event, {"reason"}) + ": " + kube::StringAt(event, {"message"}));
    return notes;
  }
  // The cables of two rails, or back again.
  void Swap(topology::Node& node) {
    std::swap(node.nics[0].ports[0].leaf_port, node.nics[1].ports[0].leaf_port);
    Report(node);
  }
  void Say(topology::Node& node, std::size_t nic, topology::LinkFault fault, const std::string& reason) {
    node.nics[nic].ports[0].fault = fault;
    node.nics[nic].ports[0].reason = reason;
    Report(node);
  }

  crds::FabricStatus status;
  kube::Heartbeats heartbeats{{.prefix = "heddle-node-"}};
  CurrentAssembly assembly;
  kube::EventRecorder events{
      client, clock, base::Random(1), {.component = "heddle-operator", .instance = "test"}};
  FabricReconciler reconciler{client, clock, FabricReconciler::Reads{nodes, topologies, fabrics, heartbeats},
                              assembly, events};
};

TEST_F(FabricLongListsTest, AFaultThatANewOnePushesOffTheListIsNotRepaired) {
  auto cluster = ReportCluster("su:1 node:110 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  ASSERT_THAT(cluster, SizeIs(110));
  for (std::size_t i = 1; i < 37; ++i) Swap(cluster[i]);  // two faults each
  ASSERT_THAT(Reconcile().faults, SizeIs(64));
  Swap(cluster[0]);
  ASSERT_THAT(Reconcile().faults, SizeIs(64));
  ASSERT_THAT(EventNotes(), Contains(HasSubstr("CablingFault: " + cluster[0].name + " ")));
  EXPECT_THAT(EventNotes(), Not(Contains(HasSubstr("CablingRepaired"))));
  Swap(cluster[0]);
  Reconcile();
  EXPECT_THAT(EventNotes(), Contains(HasSubstr("CablingRepaired: No longer so: " + cluster[0].name + " ")));
}

TEST_F(FabricLongListsTest, ASuspectThatAWorseOnePushesOffTheListHasNotRecovered) {
  auto cluster = ReportCluster("su:3 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  ASSERT_THAT(cluster, SizeIs(24));
  for (std::size_t i = 8; i < 24; ++i)
    Say(cluster[i], i % 8, topology::LinkFault::kErrors, "5000 symbol errors in 10 min");
  ASSERT_THAT(Reconcile().suspects, SizeIs(topology::kMaxSuspects));
  Say(cluster[0], 0, topology::LinkFault::kFlapping, "41 link downs in 10 min");
  const auto& full = Reconcile().suspects;
  ASSERT_THAT(full, SizeIs(topology::kMaxSuspects));
  ASSERT_TRUE(std::any_of(full.begin(), full.end(),
                          [](const auto& one) { return one.symptom == topology::Symptom::kFlap; }));
  EXPECT_THAT(EventNotes(), Not(Contains(HasSubstr("LinkRecovered"))));
  for (std::size_t i = 8; i < 11; ++i) Say(cluster[i], i % 8, topology::LinkFault::kNone, "");
  EXPECT_LT(Reconcile().suspects.size(), topology::kMaxSuspects);
  EXPECT_THAT(EventNotes(), Contains(HasSubstr("LinkRecovered: Nothing stands against it any longer: ")));
}

}  // namespace
}  // namespace heddle::operators
