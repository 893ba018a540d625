// The verdicts of ports by what their counters did: each rule at its edge, counters that wrap, are cleared or stand
// still at their largest number, files that fail, names that change, restarts; and random histories against a slow
// oracle that keeps everything.
#include "nodeagent/health/link_health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkFault;
using topology::LinkState;

constexpr Width kWide{64, false};
constexpr Width k32{32, false};
constexpr Width k16{16, true};
constexpr Width k8{8, true};

// One port, looked at from time to time.
class Port {
 public:
  Port() {
    reading.port.key = "0000:1b:00.0 0x1/1";
    reading.port.nic = "mlx5_3";
    reading.port.leaf = "leaf-4 port 17";
    reading.port.rate_gbps = 400;
    reading.state = LinkState::kActive;
  }

  void Set(Counter counter, std::uint64_t value, Width width, int priority = -1) {
    const CounterId id{counter, priority};
    std::erase_if(reading.samples, [id](const CounterSample& sample) { return sample.id == id; });
    std::erase_if(reading.unread, [id](const UnreadCounter& unread) { return unread.id == id; });
    reading.samples.push_back({id, value, width});
  }
  void Fail(Counter counter, const std::string& reason, int priority = -1) {
    const CounterId id{counter, priority};
    std::erase_if(reading.samples, [id](const CounterSample& sample) { return sample.id == id; });
    reading.unread.push_back({id, reason});
  }
  std::vector<HealthChange> LookAfter(std::chrono::nanoseconds time) {
    now += time;
    wall += std::chrono::duration_cast<std::chrono::microseconds>(time);
    return health.Look({{reading}}, now, wall);
  }
  const PortHealth& Health() const { return health.ports().front(); }
  // Looks every 5 s for that long.
  void Wait(std::chrono::seconds time) {
    for (seconds waited{}; waited < time; waited += seconds(5)) LookAfter(seconds(5));
  }

  LinkHealth health;
  PortReading reading;
  base::MonotonicTime now{hours(1)};
  base::WallTime wall{seconds(1'800'000'000)};
};

// What the agent before this one published of that card, which has another name since the reboot.
topology::Node PublishedWith(topology::NicPort port) {
  topology::Nic nic;
  nic.name = "mlx5_2";
  nic.pci = "0000:1b:00.0";
  nic.guid = "0x1";
  nic.ports = {std::move(port)};
  topology::Node node;
  node.nics = {std::move(nic)};
  return node;
}

TEST(LinkHealth, TakesCountersAsTheyStandAtTheFirstLook) {
  Port port;
  port.Set(Counter::kLinkDowned, 200, k8);
  port.Set(Counter::kSymbolErrors, 65'000, k16);
  EXPECT_THAT(port.LookAfter(seconds(5)), IsEmpty());
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
  EXPECT_EQ(port.Health().unread, "");
}

TEST(LinkHealth, CallsTwoLinkDownsInTenMinutesAFlapAndOneNot) {
  Port port;
  port.Set(Counter::kLinkDowned, 3, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 4, k8);
  EXPECT_THAT(port.LookAfter(seconds(5)), IsEmpty());
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
  port.Set(Counter::kLinkDowned, 5, k8);
  const auto changes = port.LookAfter(seconds(5));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].before, Verdict::kHealthy);
  EXPECT_EQ(changes[0].after, Verdict::kFlapping);
  EXPECT_EQ(changes[0].sentence,
            "mlx5_3 port 1 (leaf-4 port 17): Flapping: 2 link downs in 10 min, since 2027-01-15T08:00:15Z");
  EXPECT_EQ(port.Health().fault, LinkFault::kFlapping);
}

TEST(LinkHealth, ForgetsAFirstLinkDownAfterTenMinutes) {
  Port port;
  port.Set(Counter::kLinkDowned, 3, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 4, k8);
  port.LookAfter(seconds(5));
  port.Wait(minutes(10));
  port.Set(Counter::kLinkDowned, 5, k8);
  EXPECT_THAT(port.LookAfter(seconds(5)), IsEmpty());
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
}

TEST(LinkHealth, SeesAFlapByTheCarrierAlone) {
  Port port;
  port.Set(Counter::kCarrierChanges, 2, k32);
  port.LookAfter(seconds(5));
  port.Set(Counter::kCarrierChanges, 4, k32);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy) << "down and up once, as when a leaf reboots";
  port.Set(Counter::kCarrierChanges, 5, k32);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  EXPECT_THAT(port.Health().evidence, HasSubstr("3 link changes in 10 min"));
}

TEST(LinkHealth, CallsAPortThatFlapsSoWhileItIsDown) {
  Port port;
  port.Set(Counter::kLinkDowned, 0, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 2, k8);
  port.reading.state = LinkState::kDown;
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  port.reading.state = LinkState::kActive;
  EXPECT_THAT(port.LookAfter(seconds(5)), IsEmpty()) << "one verdict, not one for each change";
}

TEST(LinkHealth, LeavesAFlapOnlyAfterAQuietTime) {
  Port port;
  port.Set(Counter::kLinkDowned, 0, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 2, k8);
  port.LookAfter(seconds(5));
  port.Wait(minutes(10));  // the flaps leave the window
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  port.Wait(minutes(9));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  port.Set(Counter::kLinkDowned, 3, k8);  // one more, and all of it begins again
  port.LookAfter(seconds(5));
  port.Wait(minutes(19));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  port.Wait(minutes(2));
  // Three in twelve hours are errors still.
  EXPECT_EQ(port.Health().verdict, Verdict::kDegraded);
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  EXPECT_THAT(port.Health().evidence, HasSubstr("3 link downs in 12 h"));
}

TEST(LinkHealth, NamesADownPortAtOnceAndForgivesItAtOnce) {
  Port port;
  port.LookAfter(seconds(5));
  port.reading.state = LinkState::kDown;
  const auto down = port.LookAfter(seconds(5));
  ASSERT_EQ(down.size(), 1u);
  EXPECT_EQ(down[0].sentence, "mlx5_3 port 1 (leaf-4 port 17): Down");
  port.reading.state = LinkState::kActive;
  const auto up = port.LookAfter(seconds(5));
  ASSERT_EQ(up.size(), 1u);
  EXPECT_EQ(up[0].after, Verdict::kHealthy);
}

struct Edge {
  Counter counter;
  std::uint64_t threshold;
  seconds window;
  LinkFault fault;
};

class RuleEdge : public testing::TestWithParam<Edge> {};

TEST_P(RuleEdge, OneLessIsHealthyAndTheThresholdIsNot) {
  const Edge& edge = GetParam();
  Port port;
  port.Set(edge.counter, 1'000'000, kWide);
  port.LookAfter(seconds(5));
  port.Set(edge.counter, 1'000'000 + edge.threshold - 1, kWide);
  port.LookAfter(seconds(1));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone) << port.Health().evidence;
  port.Set(edge.counter, 1'000'000 + edge.threshold, kWide);
  port.LookAfter(seconds(1));
  EXPECT_EQ(port.Health().fault, edge.fault);
}

TEST_P(RuleEdge, StaysThroughItsQuietTimeAndEndsWithIt) {
  const Edge& edge = GetParam();
  Port port;
  port.Set(edge.counter, 0, kWide);
  port.LookAfter(seconds(5));
  port.Set(edge.counter, edge.threshold, kWide);
  port.LookAfter(seconds(1));
  port.Wait(kQuiet - seconds(20));
  EXPECT_EQ(port.Health().fault, edge.fault);
  port.Wait(edge.window + seconds(40));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone) << port.Health().evidence;
  EXPECT_EQ(port.Health().evidence, "");
}

TEST_P(RuleEdge, SharesOutWhatHappenedInALongGap) {
  const Edge& edge = GetParam();
  if (edge.threshold < 4) return;  // one event is one event, whenever it was
  Port port;
  port.Set(edge.counter, 0, kWide);
  port.LookAfter(seconds(5));
  port.Set(edge.counter, edge.threshold, kWide);  // within four windows: a quarter of it in the last
  port.LookAfter(4 * edge.window);
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
  port.Set(edge.counter, edge.threshold + 4 * edge.threshold, kWide);
  port.LookAfter(4 * edge.window);
  EXPECT_EQ(port.Health().fault, edge.fault);
}

INSTANTIATE_TEST_SUITE_P(
    All, RuleEdge,
    testing::Values(Edge{Counter::kSymbolErrors, 121, hours(1), LinkFault::kErrors},
                    Edge{Counter::kUncorrectedSymbols, 121, hours(1), LinkFault::kErrors},
                    Edge{Counter::kLinkRecovery, 6, minutes(1), LinkFault::kErrors},
                    Edge{Counter::kReceiveErrors, 601, minutes(1), LinkFault::kErrors},
                    Edge{Counter::kCrcErrors, 601, minutes(1), LinkFault::kErrors},
                    Edge{Counter::kLocalIntegrityErrors, 1, minutes(10), LinkFault::kErrors},
                    Edge{Counter::kBufferOverruns, 1, minutes(10), LinkFault::kErrors},
                    Edge{Counter::kPauseStorms, 1, minutes(10), LinkFault::kPauseStorm},
                    Edge{Counter::kPauseReceivedTime, 15'000'000, seconds(30), LinkFault::kPauseStorm},
                    Edge{Counter::kPauseSentTime, 15'000'000, seconds(30), LinkFault::kPauseStorm},
                    Edge{Counter::kAckTimeouts, 61, minutes(1), LinkFault::kPathLoss},
                    Edge{Counter::kSequenceNaks, 61, minutes(1), LinkFault::kPathLoss}),
    [](const auto& test) { return fmt::format("Counter{}", int(test.param.counter)); });

TEST(LinkHealth, EveryRuleIsCalmBelowItsThresholdAndHasAWindowOfBuckets) {
  for (const LinkRule& rule : LinkRules()) {
    EXPECT_LT(rule.calm, rule.threshold) << rule.what;
    EXPECT_EQ(std::chrono::nanoseconds(rule.window).count() % kBuckets, 0) << rule.what;
  }
}

// Wraps at 2^32, and at 2^64.
TEST(LinkHealth, CountsOnWhereACounterBeginsAgain) {
  for (const Width width : {k32, kWide}) {
    Port port;
    port.Set(Counter::kAckTimeouts, width.max() - 30, width);
    port.LookAfter(seconds(5));
    port.Set(Counter::kAckTimeouts, 29, width);
    port.LookAfter(seconds(5));
    EXPECT_EQ(port.Health().totals.at({Counter::kAckTimeouts, -1}), 60u);
    EXPECT_EQ(port.Health().fault, LinkFault::kNone);
    port.Set(Counter::kAckTimeouts, 30, width);
    port.LookAfter(seconds(5));
    EXPECT_EQ(port.Health().fault, LinkFault::kPathLoss);
  }
}

TEST(LinkHealth, TakesASmallerValueForANewBeginning) {
  Port port;
  port.Set(Counter::kSymbolErrors, 60'000, k16);
  port.Set(Counter::kAckTimeouts, 3'000'000'000, k32);
  port.LookAfter(seconds(5));
  port.Set(Counter::kSymbolErrors, 119, k16);
  port.Set(Counter::kAckTimeouts, 2'999'999'999, k32);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
  EXPECT_EQ(port.Health().totals.at({Counter::kSymbolErrors, -1}), 0u);
  port.Set(Counter::kSymbolErrors, 119 + 121, k16);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  EXPECT_THAT(port.Health().evidence, HasSubstr("121 symbol errors in 1 h"));
}

TEST(LinkHealth, SaysAtLeastWhereACounterCameToItsEnd) {
  Port port;
  port.Set(Counter::kSymbolErrors, 65'000, k16);
  port.LookAfter(seconds(5));
  port.Set(Counter::kSymbolErrors, 65'535, k16);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  EXPECT_THAT(port.Health().evidence, HasSubstr("at least 535 symbol errors in 1 h"));
}

TEST(LinkHealth, KnowsNothingFromACounterThatStandsAtItsEnd) {
  Port port;
  port.Set(Counter::kLinkDowned, 255, k8);
  for (int i = 0; i < 3; ++i) port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
  EXPECT_EQ(port.Health().unread,
            "link_downed stands at 255 and counts no further: clear it with perfquery -R");
  port.Set(Counter::kLinkDowned, 0, k8);  // cleared
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().unread, "");
}

TEST(LinkHealth, NeverCallsTheTimeQuietInWhichACounterStoodAtItsEnd) {
  Port port;
  port.Set(Counter::kSymbolErrors, 0, k16);
  port.LookAfter(seconds(5));
  port.Set(Counter::kSymbolErrors, 65'535, k16);
  port.LookAfter(seconds(5));
  port.Wait(hours(2));
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  port.Set(Counter::kSymbolErrors, 0, k16);
  port.Wait(minutes(11));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
}

// Kernels with the extended port counters have them under the names of the old, which ended at 255.
TEST(LinkHealth, TakesAValueBeyondItsWidthForAWiderCounter) {
  Port port;
  port.Set(Counter::kLinkDowned, 300, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 302, k8);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  EXPECT_EQ(port.Health().unread, "");
}

TEST(LinkHealth, IsUnknownWhileTheStateCannotBeReadAndThenAsBefore) {
  Port port;
  port.Set(Counter::kLinkDowned, 0, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 2, k8);
  port.LookAfter(seconds(5));
  const std::string evidence = port.Health().evidence;
  port.reading.state_unread = "sys/class/infiniband/mlx5_3/ports/1/state: Input/output error";
  port.Fail(Counter::kLinkDowned, "sys/…/link_downed: Input/output error");
  const auto changes = port.LookAfter(seconds(5));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].after, Verdict::kUnknown);
  EXPECT_THAT(changes[0].sentence, HasSubstr("Input/output error"));
  EXPECT_EQ(port.Health().fault, LinkFault::kFlapping) << "nothing was seen that would take it back";
  EXPECT_EQ(port.Health().evidence, evidence);
  port.reading.state_unread.clear();
  port.Set(Counter::kLinkDowned, 2, k8);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
}

TEST(LinkHealth, NeverCallsTheTimeQuietInWhichACounterCouldNotBeRead) {
  Port port;
  port.Set(Counter::kLocalIntegrityErrors, 0, kWide);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLocalIntegrityErrors, 1, kWide);
  port.LookAfter(seconds(5));
  port.Fail(Counter::kLocalIntegrityErrors, "EIO");
  port.Wait(hours(1));
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  EXPECT_EQ(port.Health().unread, "EIO");
  port.Set(Counter::kLocalIntegrityErrors, 1, kWide);
  port.LookAfter(seconds(5));
  port.Wait(minutes(9));
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  port.Wait(minutes(2));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
}

TEST(LinkHealth, SaysThatAPortIsNeitherUpNorDown) {
  Port port;
  port.LookAfter(seconds(5));
  port.reading.state = LinkState::kUnknown;  // INIT: no subnet manager
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kUnknown);
  EXPECT_THAT(port.Health().unread, HasSubstr("waits for a subnet manager"));
}

TEST(LinkHealth, SaysTheEvidenceAnewOnlyWhenItIsTwiceAsBad) {
  Port port;
  std::uint64_t errors = 0;
  port.Set(Counter::kSymbolErrors, errors, kWide);
  port.LookAfter(seconds(5));
  std::set<std::string> said;
  for (int i = 0; i < 1000; ++i) {
    port.Set(Counter::kSymbolErrors, errors += 10, kWide);
    port.LookAfter(seconds(5));
    said.insert(port.Health().evidence);
  }
  EXPECT_LE(said.size(), 8u) << "a thousand looks, and a write for each of these";
}

TEST(LinkHealth, FollowsACardThatIsCalledOtherwise) {
  Port port;
  port.Set(Counter::kLinkDowned, 7, k8);
  port.LookAfter(seconds(5));
  port.reading.port.nic = "mlx5_4";
  port.Set(Counter::kLinkDowned, 9, k8);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().port.nic, "mlx5_4");
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
}

TEST(LinkHealth, BeginsAnewWithAnotherCardInTheSamePlace) {
  Port port;
  port.Set(Counter::kLinkDowned, 7, k8);
  port.LookAfter(seconds(5));
  port.reading.port.key = "0000:1b:00.0 0x2/1";
  port.Set(Counter::kLinkDowned, 90, k8);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
}

TEST(LinkHealth, RemembersAPortThatALookMissed) {
  Port port;
  port.Set(Counter::kLinkDowned, 0, k8);
  port.LookAfter(seconds(5));
  port.Set(Counter::kLinkDowned, 2, k8);
  port.LookAfter(seconds(5));
  port.now += minutes(1);
  port.health.Look({}, port.now, port.wall);
  EXPECT_THAT(port.health.ports(), IsEmpty());
  port.LookAfter(minutes(1));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  port.now += hours(2);
  port.health.Look({}, port.now, port.wall);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy) << "after an hour it is another story";
}

TEST(LinkHealth, NamesCongestionAndBreaksNoLinkForIt) {
  Port port;
  port.Set(Counter::kCnpHandled, 0, kWide);
  port.Set(Counter::kPauseReceived, 0, kWide, 3);
  port.LookAfter(seconds(5));
  port.Set(Counter::kCnpHandled, 70'000, kWide);
  port.Set(Counter::kPauseReceived, 100'000, kWide, 3);
  port.LookAfter(seconds(5));
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
  EXPECT_EQ(port.Health().evidence, "");
  ASSERT_TRUE(port.Health().congestion);
  EXPECT_EQ(port.Health().congestion->evidence,
            "70000 CNPs handled in 1 min; 100000 pause frames received in 1 min (priority 3)");
  EXPECT_EQ(port.Health().congestion->since, base::WallTime(seconds(1'800'000'010)));
}

// Each change of it is a write to the API server.
TEST(LinkHealth, TellsOfCongestionWhenItBeginsAndWhenItHasBeenCalmForTenMinutes) {
  Port port;
  std::uint64_t count = 0;
  port.Set(Counter::kCnpSent, count, kWide);
  port.LookAfter(seconds(5));
  EXPECT_FALSE(port.Health().congestion);
  port.Set(Counter::kCnpSent, count += 60'000, kWide);
  port.LookAfter(seconds(5));
  const std::optional<Congestion> first = port.Health().congestion;
  ASSERT_TRUE(first);
  EXPECT_EQ(first->evidence, "60000 CNPs sent in 1 min");
  // Ten times as many, and bursts at each checkpoint of a job.
  for (int burst = 0; burst < 6; ++burst) {
    port.Set(Counter::kCnpSent, count += 600'000, kWide);
    port.LookAfter(seconds(5));
    EXPECT_EQ(port.Health().congestion, first);
    port.Wait(minutes(9));
    EXPECT_EQ(port.Health().congestion, first);
  }
  port.Wait(minutes(3));
  EXPECT_FALSE(port.Health().congestion);
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
}

TEST(LinkHealth, KeepsPublishedCongestionThroughARestartAndAQuietTime) {
  const topology::Node published = PublishedWith({1, 0, LinkState::kActive, 400, 400, {}});
  const base::WallTime then(seconds(1'700'000'000));
  std::vector<crds::CongestedPort> congestion(10'000, {"nobody", 1, then, "of no port of this node"});
  congestion.push_back({"mlx5_2", 7, then, "of no port of this NIC"});
  congestion.push_back({"mlx5_2", 1, then, "70000 CNPs handled in 1 min"});
  Port port;
  port.health.Restore(published, congestion);
  port.Set(Counter::kCnpHandled, 0, kWide);
  port.LookAfter(seconds(5));
  const Congestion before{then, "70000 CNPs handled in 1 min"};
  EXPECT_EQ(port.Health().congestion, before);
  port.Wait(minutes(9));
  port.Set(Counter::kCnpHandled, 90'000, kWide);
  port.LookAfter(seconds(5));
  port.Wait(minutes(9));
  EXPECT_EQ(port.Health().congestion, before) << "it goes on";
  port.Wait(minutes(3));
  EXPECT_FALSE(port.Health().congestion);
}

TEST(LinkHealth, TellsWhichPriorityAStormStops) {
  Port port;
  port.Set(Counter::kPauseReceivedTime, 0, kWide, 3);
  port.Set(Counter::kPauseReceivedTime, 0, kWide, 4);
  port.LookAfter(seconds(10));
  port.Set(Counter::kPauseReceivedTime, 9'000'000, kWide, 3);
  port.Set(Counter::kPauseReceivedTime, 9'000'000, kWide, 4);
  port.LookAfter(seconds(10));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone) << "each priority for itself";
  port.Set(Counter::kPauseReceivedTime, 18'000'000, kWide, 3);
  port.LookAfter(seconds(10));
  EXPECT_EQ(port.Health().fault, LinkFault::kPauseStorm);
  EXPECT_THAT(port.Health().evidence, HasSubstr("stopped by received pause for 60 % of 30 s (priority 3)"));
}

TEST(LinkHealth, EndsAStormWhoseCountersWentWithPfc) {
  Port port;
  port.Set(Counter::kPauseReceivedTime, 0, kWide, 3);
  port.LookAfter(seconds(10));
  port.Set(Counter::kPauseReceivedTime, 20'000'000, kWide, 3);
  port.LookAfter(seconds(10));
  EXPECT_EQ(port.Health().fault, LinkFault::kPauseStorm);
  port.reading.samples.clear();
  port.Wait(minutes(19));
  EXPECT_EQ(port.Health().fault, LinkFault::kPauseStorm) << "not asked is not gone";
  port.Wait(minutes(2));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
}

// bnxt_re and ionic count pause frames and not the time.
TEST(LinkHealth, CallsFramesAStormWhenTheyStopThePortAndOnlyThen) {
  const std::uint64_t full = FullPausePerSecond(400) * 30;
  Port busy, stopped;
  for (Port* port : {&busy, &stopped}) {
    port->Set(Counter::kPauseReceived, 0, kWide, 3);
    port->Set(Counter::kPacketsSent, 0, kWide);
    port->LookAfter(seconds(10));
    port->Set(Counter::kPauseReceived, full, kWide, 3);
  }
  busy.Set(Counter::kPacketsSent, full + 1, kWide);
  busy.LookAfter(seconds(10));
  EXPECT_EQ(busy.Health().fault, LinkFault::kNone);
  stopped.Set(Counter::kPacketsSent, 100, kWide);
  stopped.LookAfter(seconds(10));
  EXPECT_EQ(stopped.Health().fault, LinkFault::kPauseStorm);
  EXPECT_THAT(stopped.Health().evidence, HasSubstr("next to no packet sent in 30 s (priority 3)"));
}

TEST(LinkHealth, CallsFramesNoStormWhereNothingTellsWhetherItSends) {
  Port port;
  port.Set(Counter::kPauseReceived, 0, kWide, 3);
  port.LookAfter(seconds(10));
  port.Set(Counter::kPauseReceived, FullPausePerSecond(400) * 60, kWide, 3);
  port.LookAfter(seconds(10));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
}

TEST(LinkHealth, KeepsAPublishedFaultThroughARestartAndAQuietTime) {
  const topology::Node published = PublishedWith(
      {1, 0, LinkState::kActive, 400, 0, {}, LinkFault::kFlapping, "4 link downs in 10 min, since T"});
  Port port;
  port.health.Restore(published);
  port.Set(Counter::kLinkDowned, 4, k8);
  EXPECT_THAT(port.LookAfter(seconds(5)), IsEmpty()) << "nothing that was not published";
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  EXPECT_EQ(port.Health().evidence, "4 link downs in 10 min, since T");
  port.Wait(minutes(9));
  EXPECT_EQ(port.Health().verdict, Verdict::kFlapping);
  port.Wait(minutes(2));
  EXPECT_EQ(port.Health().verdict, Verdict::kHealthy);
}

TEST(LinkHealth, BeginsTheQuietTimeOfAPublishedFaultAnewWithEachEvidence) {
  const topology::Node published =
      PublishedWith({1, 0, LinkState::kActive, 400, 200, {}, LinkFault::kErrors, "old"});
  Port port;
  port.health.Restore(published);
  port.Set(Counter::kReceiveErrors, 0, kWide);
  port.LookAfter(seconds(5));
  port.Wait(minutes(9));
  port.Set(Counter::kReceiveErrors, 400, kWide);  // not enough for trouble, and not calm
  port.LookAfter(seconds(5));
  port.Wait(minutes(9));
  EXPECT_EQ(port.Health().fault, LinkFault::kErrors);
  port.Wait(minutes(3));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
}

TEST(LinkHealth, EndsNoPublishedFaultWhileItsCounterTellsNothing) {
  const topology::Node published =
      PublishedWith({1, 0, LinkState::kActive, 400, 0, {}, LinkFault::kFlapping, "old"});
  Port port;
  port.health.Restore(published);
  port.Set(Counter::kLinkDowned, 255, k8);
  port.LookAfter(seconds(5));
  port.Wait(hours(1));
  EXPECT_EQ(port.Health().fault, LinkFault::kFlapping);
  port.Set(Counter::kLinkDowned, 0, k8);
  port.Wait(minutes(11));
  EXPECT_EQ(port.Health().fault, LinkFault::kNone);
}

TEST(LinkHealth, SaysWhatChangedWhileTheAgentWasAway) {
  const topology::Node published = PublishedWith({1, 0, LinkState::kActive, 400, 400, {}});
  Port port;
  port.health.Restore(published);
  port.reading.state = LinkState::kDown;
  const auto changes = port.LookAfter(seconds(5));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].before, Verdict::kHealthy);
  EXPECT_EQ(changes[0].after, Verdict::kDown);
}

TEST(LinkHealth, CountsOnASoundLinkMoreThanOnABrokenOne) {
  EXPECT_EQ(UsableGbps(400, LinkFault::kNone), 400);
  EXPECT_EQ(UsableGbps(400, LinkFault::kFlapping), 0);
  EXPECT_EQ(UsableGbps(400, LinkFault::kPauseStorm), 0);
  EXPECT_EQ(UsableGbps(400, LinkFault::kErrors), 200);
  EXPECT_EQ(UsableGbps(400, LinkFault::kPathLoss), 400);
  EXPECT_EQ(UsableGbps(0, LinkFault::kErrors), 0);
}

// Keeps every delta of one counter and adds up those of the window each time.
class Oracle {
 public:
  explicit Oracle(const LinkRule& rule) : rule_(rule) {}

  // `value`: nothing = could not be read.
  bool Look(std::int64_t now_ns, std::optional<std::uint64_t> value, Width width) {
    if (!value) {
      quiet_since_.reset();
      return in_trouble_;
    }
    std::uint64_t delta = 0;
    bool stuck = width.saturates && *value == width.max();
    if (last_) {
      if (*value >= *last_) {
        delta = *value - *last_;
      } else if (!width.saturates && *last_ > width.max() - width.max() / 4 && *value < width.max() / 4) {
        delta = width.max() - *last_ + *value + 1;
      }
      stuck = width.saturates && *value == width.max() && delta == 0;
      const std::int64_t window_ms = std::int64_t(rule_.window.count()) * 1000;
      const std::int64_t gap_ms = (now_ns - last_ns_) / 1'000'000;
      if (now_ns - last_ns_ > window_ms * 1'000'000)
        delta = std::uint64_t(static_cast<long double>(delta) * window_ms / gap_ms);
    }
    last_ = value;
    last_ns_ = now_ns;
    const std::int64_t bucket_ns = std::int64_t(rule_.window.count()) * 1'000'000'000 / kBuckets;
    deltas_.emplace_back(now_ns / bucket_ns, delta);
    std::uint64_t sum = 0;
    for (const auto& [bucket, count] : deltas_) {
      if (bucket > now_ns / bucket_ns - kBuckets) sum += count;
    }
    if (sum >= rule_.threshold) in_trouble_ = true;
    if (!in_trouble_) return false;
    if (sum > rule_.calm || stuck) {
      quiet_since_.reset();
    } else if (!quiet_since_) {
      quiet_since_ = now_ns;
    } else if (now_ns - *quiet_since_ >= std::int64_t(rule_.quiet.count()) * 1'000'000'000) {
      in_trouble_ = false;
      quiet_since_.reset();
    }
    return in_trouble_;
  }

 private:
  const LinkRule& rule_;
  std::optional<std::uint64_t> last_;
  std::int64_t last_ns_ = 0;
  std::deque<std::pair<std::int64_t, std::uint64_t>> deltas_;
  std::optional<std::int64_t> quiet_since_;
  bool in_trouble_ = false;
};

// Looks at times that are sometimes seconds, sometimes hours apart; counters that grow, wrap, stop at their end, are
// cleared, cannot be read.
TEST(LinkHealth, AgreesWithASlowOracleOnRandomHistories) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Width width = std::array{kWide, k32, k16, k8}[random.Below(4)];
    const auto& rule = LinkRules()[random.Below(LinkRules().size())];
    std::vector<Oracle> oracles;
    for (const LinkRule& other : LinkRules()) oracles.emplace_back(other);
    Port port;
    std::uint64_t value = random.Below(2) == 0 ? 0 : width.max() - random.Below(50);
    const std::uint64_t burst = std::max<std::uint64_t>(rule.threshold / (1 + random.Below(6)), 1);
    for (int look = 0; look < 400; ++look) {
      port.now += random.Below(30) == 0
                      ? std::chrono::nanoseconds(seconds(random.Below(20'000)))
                      : std::chrono::nanoseconds(std::chrono::milliseconds(random.Below(30'000)));
      if (random.Below(3) == 0) {
        const std::uint64_t grow = random.Below(burst + 1);
        const bool ends = grow > width.max() - value;
        value = !ends ? value + grow : width.saturates ? width.max() : value + grow - width.max() - 1;
      }
      if (random.Below(60) == 0) value = random.Below(2) == 0 ? 0 : value / 2;
      const bool read = random.Below(20) != 0;
      if (read) {
        port.Set(rule.counter, value, width);
      } else {
        port.Fail(rule.counter, "EIO");
      }
      port.health.Look({{port.reading}}, port.now, port.wall);
      std::set<LinkFault> faults;
      for (std::size_t i = 0; i < oracles.size(); ++i) {
        if (LinkRules()[i].counter != rule.counter) continue;
        const bool trouble = oracles[i].Look(port.now.time_since_epoch().count(),
                                             read ? std::optional(value) : std::nullopt, width);
        if (trouble && LinkRules()[i].fault != LinkFault::kNone) faults.insert(LinkRules()[i].fault);
      }
      const LinkFault expected =
          faults.empty() ? LinkFault::kNone : *faults.begin();  // flapping before errors
      ASSERT_EQ(port.Health().fault, expected) << rule.what << ", look " << look;
      ASSERT_EQ(port.Health().evidence.empty(), expected == LinkFault::kNone);
      ASSERT_NE(port.Health().verdict, Verdict::kUnknown);
    }
  }
}

// Whatever a driver says, no alarm without a counter that grew and no crash.
TEST(LinkHealth, TakesAnyNumbersFromAnyDriver) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Port port;
    for (int look = 0; look < 50; ++look) {
      port.reading.samples.clear();
      port.reading.unread.clear();
      for (std::size_t i = 0; i < kCounters; ++i) {
        const int priority = int(random.Below(10)) - 1;
        const Width width{int(random.Below(65)), random.Below(2) == 0};
        if (random.Below(3) != 0) port.Set(Counter(i), random.Next() >> random.Below(64), width, priority);
        if (random.Below(9) == 0) port.Fail(Counter(i), "EIO", priority);
      }
      port.reading.state = LinkState(random.Below(3));
      port.reading.port.rate_gbps = int(random.Below(2000)) - 500;
      port.LookAfter(std::chrono::nanoseconds(random.Below(10'000'000'000)));
      ASSERT_EQ(port.Health().evidence.empty(), port.Health().fault == LinkFault::kNone);
      ASSERT_LE(port.Health().evidence.size(), 256u) << "the schema's limit";
    }
  }
}

}  // namespace
}  // namespace heddle::nodeagent
