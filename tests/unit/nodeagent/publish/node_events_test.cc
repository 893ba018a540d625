#include "nodeagent/publish/node_events.h"

#include <gmock/gmock.h>

#include <chrono>
#include <utility>
#include <vector>

#include "tests/support/builders.h"

namespace heddle::nodeagent {
namespace {

using kube::Severity;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Sight Seen(const topology::Node& node) {
  Sight sight;
  sight.seen.node = node;
  return sight;
}

HealthChange Change(Verdict before, Verdict after, std::string sentence) {
  HealthChange change;
  change.port.key = "0000:1b:00.0/1";
  change.before = before;
  change.after = after;
  change.sentence = std::move(sentence);
  return change;
}

std::vector<std::string> Reasons(const std::vector<NodeEvent>& events) {
  std::vector<std::string> reasons;
  for (const NodeEvent& event : events) reasons.emplace_back(event.reason);
  return reasons;
}

class NodeEventsTest : public testing::Test {
 protected:
  NodeEventsTest() {
    for (topology::Gpu& gpu : node_.gpus) gpu.pci = "0000:0" + std::to_string(gpu.index) + ":00.0";
  }
  std::vector<NodeEvent> Look(const topology::Node& node) { return events_.Look(Seen(node)); }
  std::vector<NodeEvent> Look(HealthChange change) {
    Sight sight = Seen(node_);
    sight.changes.push_back(std::move(change));
    return events_.Look(sight);
  }

  topology::Node node_ = test::NodeNamed("node-1").Gpus(8).Rails(8, "su0-r");
  NodeEvents events_;
};

TEST_F(NodeEventsTest, SaysNothingOfWhatWasThereBefore) {
  node_.gpus[2].healthy = false;
  EXPECT_THAT(Look(node_), IsEmpty());
  EXPECT_THAT(Look(node_), IsEmpty());
}

TEST_F(NodeEventsTest, SaysEachTransitionOfALinkOnce) {
  EXPECT_THAT(Look(Change(Verdict::kHealthy, Verdict::kFlapping, "mlx5_3 port 1: Flapping")),
              ElementsAre(NodeEvent{Severity::kWarning, kLinkFlapping, "mlx5_3 port 1: Flapping"}));
  EXPECT_THAT(Look(node_), IsEmpty());
  EXPECT_THAT(Look(Change(Verdict::kFlapping, Verdict::kHealthy, "mlx5_3 port 1: Healthy")),
              ElementsAre(NodeEvent{Severity::kNormal, kLinkHealthy, "mlx5_3 port 1: Healthy"}));
}

TEST_F(NodeEventsTest, NamesTheLeafThatTheLabelsOfTheNodeTell) {
  node_.nics[3].transport = topology::Transport::kEfa;
  node_.nics[3].ports[0].leaf_port = topology::Missing::kUnknown;
  events_.Learn({{"topology.k8s.aws/network-node-layer-4", "nn-0123"}});
  HealthChange change = Change(Verdict::kHealthy, Verdict::kDown, "efa port 1: Down");
  change.port.nic = node_.nics[3].name;
  change.port.transport = topology::Transport::kEfa;
  change.what = "Down";
  const auto events = Look(change);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].note, node_.nics[3].name + " port 1 (nn-0123): Down");
  change.port.leaf = "su0-r3";
  change.port.key = "another";
  EXPECT_EQ(Look(change).at(0).note, "efa port 1: Down") << "what the cable says is said already";
}

TEST_F(NodeEventsTest, TakesALinkThatCannotBeReadForNoTransition) {
  (void)Look(Change(Verdict::kHealthy, Verdict::kFlapping, "flaps"));
  EXPECT_THAT(Look(Change(Verdict::kFlapping, Verdict::kUnknown, "cannot be read")), IsEmpty());
  EXPECT_THAT(Look(Change(Verdict::kUnknown, Verdict::kFlapping, "flaps")), IsEmpty());
  EXPECT_THAT(Look(Change(Verdict::kFlapping, Verdict::kUnknown, "cannot be read")), IsEmpty());
  EXPECT_THAT(Reasons(Look(Change(Verdict::kUnknown, Verdict::kHealthy, "healthy"))),
              ElementsAre("LinkHealthy"));
}

TEST_F(NodeEventsTest, SaysThatAGpuFailedAndThatItIsBack) {
  (void)Look(node_);
  topology::Node broken = node_;
  broken.gpus[3].healthy = false;
  broken.gpus[3].unhealthy_reason = "it fell off the bus: power-cycle the node";
  EXPECT_THAT(Look(broken),
              ElementsAre(NodeEvent{Severity::kWarning, kGpuUnhealthy,
                                    "GPU 3 (0000:03:00.0): it fell off the bus: power-cycle the node"}));
  broken.gpus[3].unhealthy_reason = "another reason";
  EXPECT_THAT(Look(broken), IsEmpty());
  EXPECT_THAT(Reasons(Look(node_)), ElementsAre("GpuHealthy"));
}

TEST_F(NodeEventsTest, MakesOneEventOfADriverThatHangsForAllGpus) {
  (void)Look(node_);
  for (topology::Gpu& gpu : node_.gpus) {
    gpu.healthy = false;
    gpu.unhealthy_reason = "the driver hangs and does not answer for it";
  }
  const auto events = Look(node_);
  ASSERT_THAT(Reasons(events), ElementsAre("GpuUnhealthy"));
  EXPECT_THAT(events[0].note, HasSubstr("GPU 0 (0000:00:00.0), GPU 1"));
}

TEST_F(NodeEventsTest, SaysThatAGpuIsGoneOnlyWhereTheOthersAnswer) {
  (void)Look(node_);
  topology::Node seven = node_;
  seven.gpus.pop_back();
  Sight blind = Seen(seven);
  blind.seen.gpus_unreadable = true;
  EXPECT_THAT(events_.Look(blind), IsEmpty());
  EXPECT_THAT(Reasons(Look(seven)), ElementsAre("GpuGone"));
  EXPECT_THAT(Look(seven), IsEmpty());
}

TEST_F(NodeEventsTest, SaysOnceThatANicIsGone) {
  node_.nics[3].pci = "0000:5e:00.0";
  (void)Look(node_);
  topology::Node seven = node_;
  const std::string name = node_.nics[3].name;
  seven.nics.erase(seven.nics.begin() + 3);
  EXPECT_THAT(Look(seven), ElementsAre(NodeEvent{Severity::kWarning, kNicGone,
                                                 name + " (0000:5e:00.0) on rail 3: it is no longer found"}));
  EXPECT_THAT(Look(seven), IsEmpty());
  EXPECT_THAT(Look(node_), IsEmpty());
  topology::Node renamed = node_;
  renamed.nics[3].name = "mlx5_30";
  EXPECT_THAT(Look(renamed), IsEmpty()) << "it is the same card";
}

TEST_F(NodeEventsTest, SaysThatANicIsGoneSinceBeforeARestart) {
  events_.Restore(node_);
  node_.nics.pop_back();
  EXPECT_THAT(Reasons(Look(node_)), ElementsAre("NicGone"));
}

TEST_F(NodeEventsTest, TakesNicsThatAMachineHasNotYetWhenItHasBootedForNoneThatAreGone) {
  events_.Restore(node_, "the boot before");
  Sight sight = Seen(node_);
  sight.seen.boot_id = "this one";
  sight.seen.node.nics.clear();
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  sight.seen.node = node_;
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  sight.seen.node.nics.pop_back();
  EXPECT_THAT(Reasons(events_.Look(sight)), ElementsAre("NicGone")) << "it was there in this boot";
}

TEST_F(NodeEventsTest, TakesANicThatIsLeftOutForNoneThatIsGone) {
  (void)Look(node_);
  Sight sight = Seen(node_);
  sight.seen.excluded.push_back({node_.nics[3].name, "", "has no cable", true});
  sight.seen.node.nics.erase(sight.seen.node.nics.begin() + 3);
  EXPECT_THAT(events_.Look(sight), IsEmpty());
}

TEST_F(NodeEventsTest, TakesANicThatAVirtualMachineHasForNoneThatIsGoneAlsoAfterARestart) {
  node_.nics[3].pci = "0000:5e:00.0";
  Sight sight = Seen(node_);
  sight.seen.node.nics.erase(sight.seen.node.nics.begin() + 3);
  sight.seen.excluded.push_back({"0000:5e:00.0", "0000:5e:00.0", "is a NIC that vfio-pci keeps", true});
  events_.Restore(node_);
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  EXPECT_THAT(Look(node_), IsEmpty()) << "it came back";
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  sight.seen.excluded.clear();
  (void)Look(node_);
  EXPECT_THAT(Reasons(events_.Look(sight)), ElementsAre("NicGone")) << "now nobody has it";
}

TEST_F(NodeEventsTest, TakesPortsThatBecomeOneBondForNoneThatIsGone) {
  for (int i : {0, 1}) {
    node_.nics[std::size_t(i)].pci = "0000:5e:00." + std::to_string(i);
    node_.nics[std::size_t(i)].transport = topology::Transport::kRoce;
  }
  (void)Look(node_);
  node_.nics.erase(node_.nics.begin() + 1);
  node_.nics[0].ports.push_back(node_.nics[0].ports[0]);
  EXPECT_THAT(Look(node_), IsEmpty());
}

TEST_F(NodeEventsTest, SaysThatACableWasMoved) {
  (void)Look(node_);
  topology::NicPort& port = node_.nics[1].ports[0];
  const topology::LeafPort before = *port.leaf_port;
  port.leaf_port = topology::Missing::kStale;
  EXPECT_THAT(Look(node_), IsEmpty());
  port.leaf_port = before;
  EXPECT_THAT(Look(node_), IsEmpty());
  port.leaf_port = topology::LeafPort{"su0-r7", "12"};
  const auto events = Look(node_);
  ASSERT_THAT(Reasons(events), ElementsAre("LeafChanged"));
  EXPECT_THAT(events[0].note, HasSubstr("ends at su0-r7 port 12; it was " + before.leaf));
}

// An agent from before the field was there has published none.
TEST_F(NodeEventsTest, SaysNothingOfACableWhoseChassisIdAloneIsNew) {
  events_.Restore(node_);
  const topology::LeafPort before = *node_.nics[1].ports[0].leaf_port;
  node_.nics[1].ports[0].leaf_port = topology::LeafPort{before.leaf, before.port, "04:3f:72:aa:bb:cc"};
  EXPECT_THAT(Look(node_), IsEmpty());
}

TEST_F(NodeEventsTest, ComparesWithWhatWasPublishedBeforeARestart) {
  events_.Restore(node_);
  node_.nics[1].ports[0].leaf_port = topology::LeafPort{"su0-r7", "12"};
  node_.gpus[0].healthy = false;
  EXPECT_THAT(Reasons(Look(node_)), ElementsAre("LeafChanged", "GpuUnhealthy"));
}

TEST_F(NodeEventsTest, SaysAnXidOnceAndWhetherItEndsTheUseOfTheGpu) {
  GpuReading gpu;
  gpu.pci = "0000:03:00.0";
  gpu.index = 3;
  Sight sight = Seen(node_);
  sight.gpus = {gpu};
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  sight.gpus[0].last_xid = 79;
  EXPECT_THAT(events_.Look(sight),
              ElementsAre(NodeEvent{
                  Severity::kWarning, kGpuXid,
                  "GPU 3 (0000:03:00.0): the driver reports XID 79, which ends the use of the GPU"}));
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  sight.gpus[0].last_xid = 0;  // a new child of the driver
  EXPECT_THAT(events_.Look(sight), IsEmpty());
  sight.gpus[0].last_xid = 79;
  EXPECT_THAT(events_.Look(sight), IsEmpty());
}

TEST_F(NodeEventsTest, SaysOnceThatAGpuFlaps) {
  (void)Look(node_);
  topology::Gpu& gpu = node_.gpus[3];
  gpu.healthy = false;
  gpu.unhealthy_reason = "the driver has lost it";
  EXPECT_THAT(Reasons(Look(node_)), ElementsAre("GpuUnhealthy"));
  gpu.unhealthy_reason = "the driver has lost it (no fault since 2027-01-15T08:03:00Z)";
  EXPECT_THAT(Look(node_), IsEmpty());
  gpu.unhealthy_reason = "it flaps, 3 failures in 1 h, since 2027-01-15T08:06:00Z, the last: it is lost";
  const auto events = Look(node_);
  ASSERT_THAT(Reasons(events), ElementsAre("GpuUnhealthy"));
  EXPECT_THAT(events[0].note, HasSubstr("it flaps, 3 failures"));
  gpu.unhealthy_reason = "it flaps, 6 failures in 1 h, since 2027-01-15T08:06:00Z, the last: it is lost";
  EXPECT_THAT(Look(node_), IsEmpty());
}

// As where the driver lists it at one look and not at the next.
TEST_F(NodeEventsTest, LeavesOutWhatOneGpuSaysTooOftenAndCountsIt) {
  topology::Node seven = node_;
  seven.gpus.erase(seven.gpus.begin() + 3);
  Sight there = Seen(node_), gone = Seen(seven);
  (void)events_.Look(there);
  std::vector<NodeEvent> told;
  for (int look = 0; look < 60; ++look) {
    gone.at += std::chrono::seconds(30);
    for (NodeEvent& event : events_.Look(gone)) told.push_back(std::move(event));
    there.at = gone.at;
    EXPECT_THAT(events_.Look(there), IsEmpty());
  }
  ASSERT_EQ(told.size(), 6U + 2U) << "six in a row, and one in each ten of the thirty minutes that are over";
  EXPECT_EQ(told[5].note, "GPU 3 (0000:03:00.0): it is no longer found");
  EXPECT_THAT(told[6].note,
              HasSubstr("GPU 3 (0000:03:00.0) [14 more events about it were left out]: it is no"));
  there.seen.node.gpus.pop_back();
  EXPECT_THAT(Reasons(events_.Look(there)), ElementsAre("GpuGone")) << "another GPU has its own";
}

TEST_F(NodeEventsTest, AlwaysSaysAnXidThatEndsTheUseOfAGpu) {
  Sight sight = Seen(node_);
  GpuReading& gpu = sight.gpus.emplace_back();
  gpu.pci = "0000:03:00.0";
  gpu.index = 3;
  (void)events_.Look(sight);
  std::size_t told = 0;
  for (int i = 0; i < 20; ++i) {
    sight.gpus[0].last_xid = i % 2 == 0 ? 31 : 43;  // a program's own fault
    told += events_.Look(sight).size();
  }
  EXPECT_EQ(told, 6U);
  sight.gpus[0].last_xid = 79;
  EXPECT_THAT(Reasons(events_.Look(sight)), ElementsAre("GpuXid"));
}

TEST_F(NodeEventsTest, PassesOnWhatNvlinkSays) {
  Sight sight = Seen(node_);
  sight.nvlink_changes = {{false, "GPU 3 has 17 of 18 NVLinks up, since now"},
                          {true, "GPU 2 counts 9 CRC errors"}};
  const auto events = events_.Look(sight);
  EXPECT_THAT(Reasons(events), ElementsAre("NvlinkFault", "NvlinkRecovered"));
  EXPECT_EQ(events.at(1).note, "over: GPU 2 counts 9 CRC errors");
}

TEST(NodeReference, NamesTheNodeAsTheKubeletDoes) {
  const kube::ObjectReference node = NodeReference("gpu-17");
  EXPECT_EQ(node.kind, "Node");
  EXPECT_EQ(node.ns, "");
  EXPECT_EQ(node.uid, "gpu-17");
}

}  // namespace
}  // namespace heddle::nodeagent
