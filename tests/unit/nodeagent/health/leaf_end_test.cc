// Both ends of a cable: what the leaf counts makes a fault of the port as what the port counts does, and a leaf that
// cannot be asked makes none.
#include "nodeagent/health/leaf_end.h"

#include <gmock/gmock.h>

#include "nodeagent/health/conditions.h"
#include "nodeagent/health/health.h"
#include "nodeagent/health/link_health.h"

namespace heddle::nodeagent {
namespace {

using crds::ConditionStatus;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using topology::LinkFault;
using topology::LinkState;

WatchedPort PortOf(const std::string& device) {
  WatchedPort port;
  port.key = "0000:1b:00.0 0x1/" + device;
  port.nic = port.device = device;
  port.leaf = "su1-r3 port 18";
  port.transport = topology::Transport::kInfiniBand;
  port.role = topology::NicRole::kCompute;
  port.rate_gbps = 400;
  return port;
}

// A cable that is looked at every ten seconds.
class Cable {
 public:
  Cable() {
    leaf.device = "mlx5_3";
    leaf.leaf = "su1-r3";
    leaf.guid = "0xfc6a1c0300ab12cd";
    leaf.leaf_port = 18;
    leaf.lid = 12;
    AtLeaf("link_downed", 0);
    AtHost(0);
  }
  void AtLeaf(std::string_view name, std::uint64_t value) {
    std::erase_if(leaf.counts, [name](const PmaCount& count) { return count.name == name; });
    leaf.counts.push_back({FindPmaCount(name), value});
  }
  void AtHost(std::uint64_t downs) { downs_ = downs; }
  // `asked`: whether the leaf was asked since the last look.
  std::vector<HealthChange> Look(bool asked = true) {
    PortReading reading;
    reading.port = PortOf("mlx5_3");
    reading.state = state;
    reading.samples = {{{Counter::kLinkDowned, -1}, downs_, {8, true}}};
    CounterReadings readings{{reading}};
    if (asked) AddLeafEnds({leaf}, readings);
    now_ += seconds(10);
    wall_ += seconds(10);
    return health.Look(readings, now_, wall_);
  }
  void Wait(minutes time) {
    for (seconds waited{}; waited < time; waited += seconds(10)) Look();
  }
  const PortHealth& Health() const { return health.ports().front(); }

  LeafCounts leaf;
  LinkState state = LinkState::kActive;
  LinkHealth health;

 private:
  std::uint64_t downs_ = 0;
  base::MonotonicTime now_{hours(1)};
  base::WallTime wall_{seconds(1'800'000'000)};
};

TEST(LeafEnd, CountsAsTheHostWouldInTheWidthsOfTheSpecification) {
  Cable cable;
  cable.AtLeaf("symbol_error", 65'535);
  const LeafEnd end = LeafEndOf(cable.leaf);
  EXPECT_EQ(end.name, "su1-r3 port 18");
  EXPECT_THAT(end.samples, ElementsAre(CounterSample{{Counter::kLinkDowned, -1}, 0, {8, true}},
                                       CounterSample{{Counter::kSymbolErrors, -1}, 65'535, {16, true}}));
  EXPECT_EQ(WhyLeafUnread(end),
            "at su1-r3 port 18 symbol_errors stands at 65535 and counts no further: clear it with "
            "perfquery -R 12 18");
  cable.leaf.extended = true;
  EXPECT_EQ(WhyLeafUnread(LeafEndOf(cable.leaf)), "") << "of 64 bits there is no end";
}

TEST(LeafEnd, MakesAFlapOfWhatOnlyTheLeafCounts) {
  Cable cable;
  cable.AtLeaf("link_downed", 3);
  EXPECT_THAT(cable.Look(), IsEmpty()) << "what it stood at is no evidence";
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
  cable.AtLeaf("link_downed", 44);
  const auto changes = cable.Look();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].after, Verdict::kFlapping);
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  EXPECT_EQ(cable.Health().evidence,
            "at su1-r3 port 18: 41 link downs in 10 min, since 2027-01-15T08:00:20Z");
  EXPECT_EQ(cable.Health().leaf_totals.at({Counter::kLinkDowned, -1}), 41u);
  EXPECT_EQ(cable.Health().totals.at({Counter::kLinkDowned, -1}), 0u);
}

TEST(LeafEnd, MakesOneFaultOfWhatBothEndsCountAndNamesBoth) {
  Cable cable;
  cable.Look();
  cable.AtHost(2);
  cable.AtLeaf("link_downed", 3);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  EXPECT_EQ(cable.Health().evidence,
            "2 link downs in 10 min, since 2027-01-15T08:00:20Z, and at su1-r3 port 18: 3 link downs in 10 "
            "min, since 2027-01-15T08:00:20Z");
  EXPECT_LE(cable.Health().evidence.size(), 256u) << "what the object takes";
}

TEST(LeafEnd, CallsThePortByTheWorseEnd) {
  Cable cable;
  cable.AtLeaf("symbol_error", 0);
  cable.Look();
  cable.AtLeaf("symbol_error", 500);
  cable.Look();
  EXPECT_EQ(cable.Health().verdict, Verdict::kDegraded);
  EXPECT_THAT(cable.Health().evidence, HasSubstr("at su1-r3 port 18: 500 symbol errors in 1 h"));
  cable.AtHost(2);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  EXPECT_THAT(cable.Health().evidence, testing::StartsWith("2 link downs in 10 min"));
  EXPECT_THAT(cable.Health().evidence, HasSubstr(", and at su1-r3 port 18: 500 symbol errors"));
  Cable other;
  other.AtLeaf("link_downed", 0);
  other.Look();
  other.AtHost(1);
  other.AtLeaf("link_downed", 2);
  other.Look();
  EXPECT_EQ(other.Health().fault, LinkFault::kFlapping);
  EXPECT_THAT(other.Health().evidence, testing::StartsWith("at su1-r3 port 18: 2 link downs"));
}

TEST(LeafEnd, IsQuietAgainAfterTheSameTimeAsThePort) {
  Cable cable;
  cable.Look();
  cable.AtLeaf("link_downed", 2);
  cable.Look();
  cable.Wait(minutes(19));
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  cable.Wait(minutes(2));
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
}

TEST(LeafEnd, SaysAtLeastWhereItsCounterCameToItsEnd) {
  Cable cable;
  cable.AtLeaf("link_downed", 250);
  cable.Look();
  cable.AtLeaf("link_downed", 255);
  cable.Look();
  EXPECT_THAT(cable.Health().evidence, testing::StartsWith("at su1-r3 port 18: at least 5 link downs"));
  cable.Look();
  EXPECT_THAT(*cable.Health().leaf_unread, HasSubstr("perfquery -R 12 18"));
  EXPECT_EQ(cable.Health().verdict, Verdict::kFlapping);
}

TEST(LeafEnd, MakesNoFaultOfCountersThatSomebodyCleared) {
  Cable cable;
  cable.AtLeaf("link_downed", 200);
  cable.Look();
  cable.AtLeaf("link_downed", 0);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
  cable.AtLeaf("link_downed", 2);
  cable.Look();
  EXPECT_THAT(cable.Health().evidence, HasSubstr("2 link downs"));
}

TEST(LeafEnd, BeginsAnewAtAnotherPortAndWithOtherCounters) {
  Cable cable;
  cable.Look();
  cable.AtLeaf("link_downed", 9);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  cable.leaf.leaf_port = 19;
  cable.AtLeaf("link_downed", 200);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone) << "the other port is sound, for all that is known";
  cable.leaf.extended = true;
  cable.AtLeaf("link_downed", 3'000);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
}

TEST(LeafEnd, KeepsItsVerdictBetweenTwoQuestions) {
  Cable cable;
  cable.Look();
  cable.AtLeaf("link_downed", 2);
  cable.Look();
  for (int i = 0; i < 5; ++i) cable.Look(false);
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  EXPECT_EQ(cable.Health().leaf_unread, "");
  cable.leaf.counts.clear();
  cable.Look();
  EXPECT_EQ(cable.Health().leaf_unread, "") << "an answer was lost: what came before stands";
}

TEST(LeafEnd, OfALeafThatDoesNotAnswerIsUnknownAndNoFault) {
  Cable cable;
  cable.leaf.counts.clear();
  cable.leaf.unread = "su1-r3 port 18 does not tell what it has counted (LID 12): no answer within 50 ms";
  for (int i = 0; i < 100; ++i) EXPECT_THAT(cable.Look(), IsEmpty());
  EXPECT_EQ(cable.Health().verdict, Verdict::kHealthy);
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
  EXPECT_EQ(cable.Health().unread, "");
  EXPECT_EQ(cable.Health().leaf_unread, cable.leaf.unread);
}

TEST(LeafEnd, ThatFallsSilentHoldsItsFaultForTwentyMinutesAndNotForEver) {
  Cable cable;
  cable.Look();
  cable.AtLeaf("link_downed", 2);
  cable.Look();
  cable.leaf.counts.clear();
  cable.leaf.unread = "su1-r3 port 18 does not tell what it has counted (LID 12): no answer within 50 ms";
  cable.Wait(minutes(19));
  EXPECT_EQ(cable.Health().fault, LinkFault::kFlapping);
  cable.Wait(minutes(3));
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
}

TEST(LeafEnd, ThatCannotBeAskedHoldsNoFaultOfAnAgentBefore) {
  Cable cable;
  cable.leaf.counts.clear();
  cable.leaf.unread = "no permission for /dev/infiniband/umad0";
  topology::Node published;
  topology::Nic& nic = published.nics.emplace_back();
  nic.pci = "0000:1b:00.0";
  nic.guid = "0x1";
  nic.name = "mlx5_3";
  nic.ports.emplace_back().fault = LinkFault::kFlapping;
  nic.ports[0].reason = "at su1-r3 port 18: 41 link downs in 10 min, since 2027-01-15T07:00:00Z";
  cable.health.Restore(published);
  cable.Wait(minutes(11));
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
}

TEST(LeafEnd, NamesCongestionAtTheLeafAndMakesNoFaultOfIt) {
  Cable cable;
  cable.AtLeaf("port_xmit_discards", 0);
  cable.Look();
  cable.AtLeaf("port_xmit_discards", 9'000);
  cable.Look();
  EXPECT_EQ(cable.Health().fault, LinkFault::kNone);
  ASSERT_TRUE(cable.Health().congestion);
  EXPECT_EQ(cable.Health().congestion->evidence, "at su1-r3 port 18: 9000 transmit discards in 1 min");
}

TEST(LeafEnds, AreAskedForInfiniBandPortsOfRdmaDevicesOnly) {
  WatchedPort roce = PortOf("mlx5_1"), bare = PortOf("mlx5_2");
  roce.transport = topology::Transport::kRoce;
  bare.device.clear();
  EXPECT_THAT(PortsWithLeaves({PortOf("mlx5_0"), roce, bare}), ElementsAre(RdmaPortName{"mlx5_0", 1}));
}

class LeavesCountedTest : public testing::Test {
 protected:
  LeavesCountedTest() {
    for (const char* name : {"mlx5_0", "mlx5_1"}) {
      topology::Nic& nic = seen_.node.nics.emplace_back();
      nic.name = name;
      nic.role = topology::NicRole::kCompute;
      nic.transport = topology::Transport::kInfiniBand;
      nic.rail = int(seen_.node.nics.size()) - 1;
      nic.ports.emplace_back().state = LinkState::kActive;
      nic.ports[0].rate_gbps = nic.ports[0].usable_gbps = 400;
      watched_.push_back(PortOf(name));
      watched_.back().key = PortKey(nic, 1);
      LeafCounts leaf{name, 1, "su1-r" + std::to_string(*nic.rail), "0x1", 18, 12, false, {}, ""};
      leaf.counts = {{"link_downed", 7}};
      leaves_.push_back(std::move(leaf));
    }
  }
  crds::Condition Condition() {
    const auto conditions = ConditionsOf(seen_);
    const crds::Condition* found = crds::FindCondition(conditions, kLeavesCounted);
    return found == nullptr ? crds::Condition() : *found;
  }

  Observation seen_;
  std::vector<WatchedPort> watched_;
  std::vector<LeafCounts> leaves_;
};

TEST_F(LeavesCountedTest, IsLeftOutWhereNoLeafIsAsked) {
  EXPECT_EQ(Condition().type, "");
  SayLeafEnds({}, watched_, seen_);
  EXPECT_EQ(Condition().type, "");
}

TEST_F(LeavesCountedTest, IsTrueWhereEachTells) {
  SayLeafEnds(leaves_, watched_, seen_);
  EXPECT_EQ(Condition().status, ConditionStatus::kTrue);
  EXPECT_EQ(Condition().reason, "AllCounted");
  EXPECT_EQ(Condition().message, "the leaf of each of 2 InfiniBand ports tells what its end has counted");
}

TEST_F(LeavesCountedTest, IsUnknownWithEachReasonOnceAndTakesNoRailAlong) {
  for (LeafCounts& leaf : leaves_) {
    leaf.counts.clear();
    leaf.unread = "the kernel module ib_umad is not loaded (modprobe ib_umad)";
  }
  SayLeafEnds(leaves_, watched_, seen_);
  EXPECT_EQ(Condition().status, ConditionStatus::kUnknown);
  EXPECT_EQ(Condition().reason, "Unread");
  EXPECT_EQ(Condition().message,
            "mlx5_0, mlx5_1: the kernel module ib_umad is not loaded (modprobe ib_umad)");
  const auto conditions = ConditionsOf(seen_);
  const crds::Condition* rail = crds::FindCondition(conditions, RailHealthy(0));
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->status, ConditionStatus::kTrue);
}

TEST_F(LeavesCountedTest, PassesOverPortsThatAreDown) {
  leaves_[1].unread = "su1-r1 port 18 does not tell";
  SayLeafEnds(leaves_, watched_, seen_);
  seen_.node.nics[1].ports[0].state = LinkState::kDown;
  EXPECT_EQ(Condition().status, ConditionStatus::kTrue);
  EXPECT_THAT(Condition().message, HasSubstr("each of 1 "));
}

TEST_F(LeavesCountedTest, ComesWithTheRailsFaultOutOfTheCounters) {
  LinkHealth health;
  CounterReadings readings;
  for (const WatchedPort& port : watched_) {
    PortReading reading;
    reading.port = port;
    reading.state = LinkState::kActive;
    readings.ports.push_back(std::move(reading));
  }
  base::MonotonicTime now{hours(1)};
  for (const int downs : {7, 48}) {
    leaves_[1].counts = {{"link_downed", std::uint64_t(downs)}};
    AddLeafEnds(leaves_, readings);
    health.Look(readings, now += seconds(10), base::WallTime{seconds(1'800'000'000)});
  }
  ApplyHealth(health.ports(), nullptr, seen_);
  EXPECT_EQ(seen_.node.nics[1].ports[0].fault, LinkFault::kFlapping);
  EXPECT_EQ(seen_.node.nics[1].ports[0].usable_gbps, 0);
  EXPECT_EQ(seen_.node.nics[0].ports[0].fault, LinkFault::kNone);
  const auto conditions = ConditionsOf(seen_);
  const crds::Condition* rail = crds::FindCondition(conditions, RailHealthy(1));
  ASSERT_NE(rail, nullptr);
  EXPECT_EQ(rail->reason, "Flapping");
  EXPECT_THAT(rail->message, HasSubstr("at su1-r1 port 18: 41 link downs in 10 min"));
  EXPECT_EQ(Condition().reason, "AllCounted");
}

}  // namespace
}  // namespace heddle::nodeagent
