#include "switches/counter_window.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>

#include "base/random.h"
#include "lossless/pause.h"
#include "tests/support/seeds.h"

namespace heddle::switches {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using topology::Sighting;
using topology::Symptom;

// A switch with one port, looked at every ten seconds.
struct Bed {
  PortCounters port;
  CounterWindow window;
  base::MonotonicTime now{hours(100)};

  Bed() {
    port.state_changes = port.in_errors = port.uncorrected = port.in_discards = port.in_packets =
        port.out_packets = 0;
    port.pfc_received.fill(0);
    port.pfc_sent.fill(0);
    port.speed_mbps = 400'000;
    Look(seconds(0));
  }

  std::vector<QueueHint> Look(std::chrono::nanoseconds after = seconds(10)) {
    now += after;
    return window.Add({now, {{"Ethernet48", port}}});
  }
  void LookFor(std::chrono::nanoseconds time) {
    for (const auto end = now + time; now < end;) Look();
  }
  std::vector<Sighting> Sightings() const {
    const auto all = window.Sightings(now);
    return all.empty() ? std::vector<Sighting>{} : all[0].sightings;
  }
  std::string Note() const {
    const auto all = window.Sightings(now);
    return all.empty() ? "" : all[0].note;
  }
};

struct Edge {
  std::string name;
  std::function<std::optional<std::uint64_t>&(PortCounters&)> counter;
  std::uint64_t threshold;
  Sighting sighting;  // at the threshold
};

std::vector<Edge> Edges() {
  return {{"flaps", [](auto& p) -> auto& {return p.state_changes;
}
, 3, {
  Symptom::kFlap, true, "2 flaps in 10 min"
}
}  // namespace
, {"errors", [](auto& p) -> auto& {return p.in_errors;
}  // namespace heddle::switches
, 601, {
  Symptom::kErrors, true, "601 broken packets in 1 min"
}
}
, {"fec", [](auto& p) -> auto& {return p.uncorrected;
}
, 121, {
  Symptom::kErrors, true, "121 uncorrected code words in 1 h"
}
}
, {"discards", [](auto& p) -> auto& {return p.in_discards;
}
, 6'001, {
  Symptom::kDrops, true, "6001 packets discarded in 1 min"
}
}
, {"received", [](auto& p) -> auto& {return p.pfc_received[3];
}
, 178'815, {
  Symptom::kPauseStorm, true, "178815 pause frames in 30 s (priority 3)"
}
}
, {
  "sent", [](auto& p) -> auto& {
    return p.pfc_sent[4];
  }
  , 178'815, {
    Symptom::kPauseStorm, false, "178815 pause frames in 30 s (priority 4)"
  }
}
}
;
}

TEST(CounterWindows, KnowHowManyFramesStopAPortHalfOfTheTime) {
  EXPECT_EQ(PauseThreshold(400'000, seconds(30)), lossless::FullPausePerSecond(400) * 15);
  EXPECT_EQ(PauseThreshold(std::nullopt, seconds(30)), PauseThreshold(400'000, seconds(30)));
  EXPECT_EQ(PauseThreshold(400'000, seconds(30)), 178'815);
}

TEST(CounterWindows, SeeTroubleFromTheThresholdOn) {
  for (const Edge& edge : Edges()) {
    SCOPED_TRACE(edge.name);
    Bed bed;
    *edge.counter(bed.port) += edge.threshold - 1;
    bed.Look();
    EXPECT_THAT(bed.Sightings(), IsEmpty());
    *edge.counter(bed.port) += 1;
    bed.Look();
    EXPECT_THAT(bed.Sightings(), ElementsAre(edge.sighting));
  }
}

TEST(CounterWindows, LetTroubleGoAfterAQuietTime) {
  for (const Edge& edge : Edges()) {
    SCOPED_TRACE(edge.name);
    Bed bed;
    *edge.counter(bed.port) += edge.threshold;
    bed.Look();
    bed.LookFor(kSwitchQuiet - seconds(10));
    EXPECT_THAT(bed.Sightings(), ElementsAre(edge.sighting)) << "it stays as it was told first";
    bed.LookFor(hours(2));
    EXPECT_THAT(bed.Sightings(), IsEmpty());
  }
}

TEST(CounterWindows, ForgetWhatIsOlderThanTheWindow) {
  for (const Edge& edge : Edges()) {
    SCOPED_TRACE(edge.name);
    Bed bed;
    for (int i = 0; i < 3; ++i) {
      *edge.counter(bed.port) += edge.threshold - 1;
      bed.Look();
      EXPECT_THAT(bed.Sightings(), IsEmpty());
      bed.LookFor(hours(2));
    }
  }
}

TEST(CounterWindows, SayAFlapThatClimbs) {
  Bed bed;
  *bed.port.state_changes += 82;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), ElementsAre(Sighting{Symptom::kFlap, true, "41 flaps in 10 min"}));
  *bed.port.state_changes += 10;
  bed.Look();
  EXPECT_EQ(bed.Sightings()[0].evidence, "41 flaps in 10 min") << "told anew only when it has doubled";
  *bed.port.state_changes += 82;
  bed.Look();
  EXPECT_EQ(bed.Sightings()[0].evidence, "87 flaps in 10 min");
}

// SONiC until 202311 has no flap_count.
TEST(CounterWindows, CountChangesOfTheStateBetweenSamplesWhereNothingCountsThem) {
  Bed bed;
  bed.port.state_changes.reset();
  bed.LookFor(kSwitchQuiet + kSwitchQuiet + minutes(1));  // nobody knows any more that it had a counter
  bed.port.up = false;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "of the first state nobody knows since when";
  for (const bool up : {true, true, false, false}) {
    bed.port.up = up;
    bed.Look();
    EXPECT_THAT(bed.Sightings(), IsEmpty()) << "up and down are two changes, as of a boot";
  }
  bed.port.up.reset();
  bed.Look();
  bed.port.up = false;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "silence is no change";
  bed.port.up = true;
  bed.Look();
  const Sighting flaps{Symptom::kFlap, true, "2 flaps in 10 min"};
  EXPECT_THAT(bed.Sightings(), ElementsAre(flaps));
  bed.LookFor(kSwitchQuiet - seconds(10));
  EXPECT_THAT(bed.Sightings(), ElementsAre(flaps));
  bed.LookFor(kSwitchQuiet + minutes(2));
  EXPECT_THAT(bed.Sightings(), IsEmpty());
}

TEST(CounterWindows, CountNoChangeTwiceWhereACounterSeesItToo) {
  Bed bed;
  bed.port.up = true;
  bed.Look();
  for (int change = 1; change <= 2; ++change) {
    bed.port.up = !*bed.port.up;
    *bed.port.state_changes += 1;
    bed.Look();
  }
  const std::uint64_t counted = *bed.port.state_changes;
  bed.port.state_changes.reset();  // not said this time
  bed.port.up = false;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "the counter tells it when it comes again";
  bed.port.state_changes = counted + 1;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), ElementsAre(Sighting{Symptom::kFlap, true, "2 flaps in 10 min"}));
}

TEST(CounterWindows, TakeNoFirstSampleForEvidence) {
  CounterWindow window;
  PortCounters port;
  port.state_changes = 4000;
  port.in_errors = 1'000'000'000;
  port.storms[3] = 7;
  window.Add({base::MonotonicTime(hours(1)), {{"Ethernet0", port}}});
  EXPECT_THAT(window.Sightings(base::MonotonicTime(hours(1))), IsEmpty());
}

TEST(CounterWindows, TellAStopFromPauseThatComesAndGoes) {
  Bed bed;
  for (int i = 0; i < 30; ++i) {
    *bed.port.pfc_received[3] += 200'000;
    *bed.port.out_packets += 200'000;
    bed.Look();
  }
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "it sends as many packets as it gets pause";
  for (int i = 0; i < 3; ++i) {
    *bed.port.pfc_received[3] += 200'000;
    *bed.port.out_packets += 10;
    bed.Look();
  }
  EXPECT_THAT(bed.Sightings(), SizeIs(1));
  Bed unknown;
  unknown.port.out_packets.reset();
  for (int i = 0; i < 30; ++i) {
    *unknown.port.pfc_received[3] += 200'000;
    unknown.Look();
  }
  EXPECT_THAT(unknown.Sightings(), IsEmpty()) << "what it sends is not known";
}

TEST(CounterWindows, TakeStormsThatTheWatchdogFound) {
  Bed bed;
  bed.port.storms[3] = 0;
  bed.Look();
  bed.port.storms[3] = 1;
  bed.Look();
  const Sighting storm{Symptom::kPauseStorm, true, "1 storm found by the watchdog in 10 min (queue 3)"};
  EXPECT_THAT(bed.Sightings(), ElementsAre(storm));
  bed.port.storming = {3};
  bed.LookFor(hours(1));
  EXPECT_THAT(bed.Sightings(), ElementsAre(storm)) << "it goes on";
  bed.port.storming = {};
  bed.LookFor(minutes(30));
  EXPECT_THAT(bed.Sightings(), IsEmpty());
}

TEST(CounterWindows, CountDropsOfQueuesThatPauseKeeps) {
  Bed bed;
  bed.port.queue_drops = {{0, 0}, {3, 0}, {99, 0}};
  bed.port.pfc_sent[3] = 1;
  bed.Look();
  bed.port.queue_drops = {{0, 5000}, {3, 5}, {99, 7}};
  bed.Look();
  EXPECT_THAT(bed.Sightings(),
              ElementsAre(Sighting{Symptom::kDrops, true, "5 packets dropped in 10 min (queue 3)"}));
}

TEST(CounterWindows, CountNothingWhereACounterWentBack) {
  Bed bed;
  bed.port.in_errors = 1'000'000;
  bed.Look();
  bed.LookFor(hours(2));
  bed.port.in_errors = 900'000;  // cleared, and at once so many
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty());
  EXPECT_EQ(bed.Note(), "in_errors went back from 1000000 to 900000: what it counted meanwhile is not known");
  *bed.port.in_errors += 700;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), SizeIs(1)) << "it counts from there on";
  bed.LookFor(minutes(15));
  EXPECT_EQ(bed.Note(), "");
}

TEST(CounterWindows, CountNothingThatAPortCountedWhileItsSwitchBooted) {
  Bed bed;
  bed.port.in_packets = 5'000'000;
  bed.Look();
  // Links come up: these had counted nothing, and so did not go back.
  bed.port.in_packets = 1'000;
  bed.port.state_changes = 5;
  bed.port.uncorrected = bed.port.in_errors = 5'000;
  bed.Look(minutes(5));
  EXPECT_THAT(bed.Sightings(), IsEmpty());
  EXPECT_THAT(bed.Note(), HasSubstr("packets in went back from 5000000 to 1000"));
  *bed.port.uncorrected += 200;
  bed.Look();
  EXPECT_THAT(bed.Sightings(),
              ElementsAre(Sighting{Symptom::kErrors, true, "200 uncorrected code words in 1 h"}));

  Bed queues;  // which are asked for rarer
  queues.port.in_packets = 5'000'000;
  queues.port.pfc_received[3] = 10;
  queues.port.queue_drops[3] = 0;
  queues.Look();
  queues.port.queue_drops.clear();
  queues.port.in_packets = 1'000;
  queues.Look();
  queues.port.queue_drops[3] = 100;
  queues.Look();
  EXPECT_THAT(queues.Sightings(), IsEmpty());
  queues.port.queue_drops[3] = 101;
  queues.Look();
  EXPECT_THAT(queues.Sightings(), SizeIs(1));
}

TEST(CounterWindows, CountOnWhereACounterWraps) {
  Bed bed;
  bed.port.in_errors = std::numeric_limits<std::uint64_t>::max() - 300;
  bed.Look();
  bed.LookFor(hours(1));
  bed.port.in_errors = 399;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), ElementsAre(Sighting{Symptom::kErrors, true, "700 broken packets in 1 min"}));
  EXPECT_EQ(bed.Note(), "");
}

TEST(CounterWindows, TakeAMissingCounterForNoZero) {
  Bed bed;
  *bed.port.state_changes = 100;
  bed.LookFor(hours(1));
  bed.port.state_changes.reset();
  bed.Look();
  bed.port.state_changes = 104;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), ElementsAre(Sighting{Symptom::kFlap, true, "2 flaps in 10 min"}));
  bed.port.state_changes.reset();
  bed.LookFor(minutes(15));
  EXPECT_THAT(bed.Sightings(), SizeIs(1)) << "silence takes nothing back";
  bed.LookFor(minutes(15));
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "but a counter that is gone does not hold it for ever";
}

TEST(CounterWindows, TakeSamplesOfAPartOfTheCounters) {
  Bed bed;
  PortCounters whole = bed.port;
  whole.in_errors = 700;
  whole.state_changes = 4;
  PortCounters errors, changes;
  errors.in_errors = whole.in_errors;
  changes.state_changes = whole.state_changes;
  bed.port = errors;
  bed.Look(seconds(3));
  bed.port = changes;
  bed.Look(seconds(3));
  EXPECT_THAT(bed.Sightings(), SizeIs(2));
}

TEST(CounterWindows, TakeTimeThatStandsStillOrJumps) {
  Bed bed;
  *bed.port.in_errors += 700;
  bed.Look(seconds(0));
  EXPECT_THAT(bed.Sightings(), SizeIs(1)) << "no time passed, and it is no more than so many";
  Bed late;
  *late.port.in_errors += 60'000;
  late.Look(hours(3));
  EXPECT_THAT(late.Sightings(), IsEmpty()) << "over three hours that is little for a minute";
  Bed back;
  back.port.in_errors = 10'000;
  back.window.Add({back.now - minutes(1), {{"Ethernet48", back.port}}});
  EXPECT_THAT(back.Sightings(), IsEmpty()) << "a sample of the past is none";
  EXPECT_THAT(back.window.Sightings(base::MonotonicTime(-hours(1))), IsEmpty());
}

TEST(CounterWindows, CountAWindowsShareOfALongGap) {
  Bed bed;
  *bed.port.in_errors += 601 * 10 - 10;
  bed.Look(minutes(10));
  EXPECT_THAT(bed.Sightings(), IsEmpty());
  *bed.port.in_errors += 601 * 10 + 10;
  bed.Look(minutes(10));
  EXPECT_THAT(bed.Sightings(), SizeIs(1));
}

TEST(CounterWindows, LeaveSoundPortsOutAndSortTheOthers) {
  CounterWindow window;
  const auto at = [](int n) { return base::MonotonicTime(seconds(10 * n)); };
  PortCounters sound, bad;
  sound.state_changes = bad.state_changes = 0;
  window.Add({at(1), {{"Ethernet8", bad}, {"Ethernet4", sound}, {"Ethernet0", bad}}});
  bad.state_changes = 4;
  window.Add({at(2), {{"Ethernet8", bad}, {"Ethernet4", sound}, {"Ethernet0", bad}}});
  const auto all = window.Sightings(at(2));
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].port, "Ethernet0");
  EXPECT_EQ(all[1].port, "Ethernet8");
}

// As long as the milliseconds that a counter is stamped with take to come round, and ten seconds.
TEST(CounterWindows, ForgetWhatWasCountedBeforeALongSilence) {
  Bed bed;
  bed.port.state_changes = 1;
  bed.Look();
  bed.port.state_changes = 100;
  bed.Look(std::chrono::milliseconds((1LL << 32) + 10'000));
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "nobody knows when these 99 were";
  bed.port.state_changes = 103;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), SizeIs(1));
}

// Everything on a port moves at once, all the time: the most that it takes. 500 switches of 64 ports: under 100 MB.
TEST(CounterWindows, TakeLittleMemory) {
  CounterWindow window;
  base::Random random(1);
  std::map<std::string, PortCounters> ports;
  for (int look = 0; look < 40; ++look) {
    for (int i = 0; i < 64; ++i) {
      PortCounters& port = ports[fmt::format("Ethernet{}", 8 * i)];
      const auto add = [&](auto& counter) { counter = counter.value_or(0) + 1'000'000 + random.Below(1000); };
      for (auto* counter : {&port.state_changes, &port.in_errors, &port.uncorrected, &port.in_discards})
        add(*counter);
      for (int p = 0; p < kCountedPriorities; ++p) {
        add(port.pfc_received[std::size_t(p)]);
        add(port.pfc_sent[std::size_t(p)]);
        port.queue_drops[p] += 1'000;
        port.storms[p] += 1;
      }
      port.in_packets = port.out_packets = 0;
    }
    window.Add({base::MonotonicTime(seconds(10 * look)), ports});
  }
  RecordProperty("bytes_of_64_ports", int(window.bytes()));
  EXPECT_LT(window.bytes() * 500, 100'000'000);
  window.Add({base::MonotonicTime(hours(9)), {{"Ethernet0", {}}}});
  EXPECT_LT(window.bytes(), 5'000) << "what no sample has had for an hour is forgotten";
}

// Whatever is missing, goes back or jumps: nothing stands against a port that counted less than the least threshold.
TEST(CounterWindows, AccuseNobodyOutOfSilence) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Bed bed;
    bed.window = {};
    std::uint64_t changes = 0;  // at most two in all
    for (int look = 0; look < 200; ++look) {
      const auto maybe = [&](std::optional<std::uint64_t>& counter, std::uint64_t value) {
        counter = random.Below(4) == 0 ? std::nullopt : std::optional(value);
      };
      if (random.Below(100) == 0 && changes < 2) ++changes;
      maybe(bed.port.state_changes, 1000 + changes);
      maybe(bed.port.in_errors, (std::uint64_t(1) << 62) - std::uint64_t(look) * 1000);  // backwards, always
      maybe(bed.port.pfc_received[3], random.Below(100));
      maybe(bed.port.out_packets, random.Below(100));
      maybe(bed.port.uncorrected, 5);
      bed.Look(random.Below(10) == 0 ? minutes(random.Below(90)) : seconds(random.Below(20)));
      if (random.Below(10) == 0) bed.window.Add({bed.now - seconds(30), {{"Ethernet48", {}}}});
      EXPECT_THAT(bed.Sightings(), IsEmpty());
    }
  }
}

// 544/514 x 257/256 x 2.4e-4 of the bits: 400 Gb/s have 425 Gb/s on the line.
TEST(CounterWindows, KnowHowManySymbolsAreWrongOnALineThatIsOutOfItsStandard) {
  EXPECT_EQ(FecSymbolThreshold(400'000, seconds(1)), 102'000'000u);
  EXPECT_EQ(FecSymbolThreshold(100'000, minutes(1)), 1'530'000'000u);
  EXPECT_EQ(FecSymbolThreshold(std::nullopt, seconds(1)), FecSymbolThreshold(800'000, seconds(1)));
}

TEST(CounterWindows, TakeFecSymbolsForEverydayUpToWhatTheStandardAllows) {
  Bed bed;
  bed.port.fec_symbols = 0;
  bed.Look();
  // 6,120,000,000 in a minute at 400 Gb/s. All of an hour just below that, as no line has it that works.
  for (int look = 0; look < 360; ++look) {
    *bed.port.fec_symbols += 1'019'000'000;
    bed.Look();
    ASSERT_THAT(bed.Sightings(), IsEmpty()) << look;
  }
  for (int look = 0; look < 6; ++look) {
    *bed.port.fec_symbols += 1'021'000'000;
    bed.Look();
  }
  ASSERT_THAT(bed.Sightings(), SizeIs(1));
  EXPECT_EQ(bed.Sightings()[0].symptom, Symptom::kErrors);
  EXPECT_TRUE(bed.Sightings()[0].by_far_end);
  EXPECT_THAT(bed.Sightings()[0].evidence,
              HasSubstr("FEC symbol errors in 1 min, more than IEEE 802.3 allows"));
  bed.LookFor(minutes(12));
  EXPECT_THAT(bed.Sightings(), IsEmpty());
}

// 32 bits of a bucket hold what ten seconds of 800 Gb/s count.
TEST(CounterWindows, SeeWrongSymbolsAtTheHighestSpeed) {
  Bed bed;
  bed.port.speed_mbps = 800'000;
  bed.port.fec_symbols = 0;
  bed.Look();
  for (int look = 0; look < 6; ++look) {
    *bed.port.fec_symbols += 2'041'000'000;
    bed.Look();
  }
  EXPECT_THAT(bed.Sightings(), SizeIs(1));
}

TEST(CounterWindows, TellWhatALosslessQueueMarkedBesideItsPauseAndDrops) {
  Bed bed;
  bed.port.pfc_received[3] = 1;  // priority 3 is a lossless class
  bed.port.ecn_marked = {{3, 0}, {0, 0}};
  bed.port.queue_drops = {{3, 0}};
  bed.Look();
  bed.port.ecn_marked = {{3, 5'200}, {0, 90'000}};
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "marks are no fault";
  bed.port.queue_drops = {{3, 7}};
  bed.port.state_changes = 4;
  bed.Look();
  EXPECT_THAT(
      bed.Sightings(),
      ElementsAre(
          Sighting{Symptom::kFlap, true, "2 flaps in 10 min"},
          Sighting{Symptom::kDrops, true,
                   "7 packets dropped in 10 min (queue 3); 5200 packets marked in 10 min (queue 3)"}));
}

TEST(CounterWindows, JudgeWhatAPortDiscardsOnTheWayOutWhereItsLosslessQueuesDoNotCount) {
  Bed bed;
  bed.port.out_discards = 0;
  bed.Look();
  bed.port.out_discards = 6'001;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "no class of it was ever paused";
  bed.LookFor(minutes(2));
  bed.port.pfc_sent[3] = 1;
  bed.Look();
  bed.port.out_discards = 6'001 + 6'000;
  bed.Look();
  EXPECT_THAT(bed.Sightings(), IsEmpty()) << "a few are everyday";
  bed.port.out_discards = 6'001 + 6'001;
  bed.Look();
  const Sighting seen{Symptom::kDrops, true, "6001 packets discarded on the way out in 1 min"};
  EXPECT_THAT(bed.Sightings(), ElementsAre(seen));
  Bed counted;
  counted.port.out_discards = 0;
  counted.port.pfc_sent[3] = 1;
  counted.port.queue_drops = {{3, 0}};
  counted.Look();
  counted.port.out_discards = 9'000;
  counted.Look();
  EXPECT_THAT(counted.Sightings(), IsEmpty()) << "its queue says that it was another";
}

TEST(CounterWindows, HintAtTheQueuesOfAPortThatDiscardsOnTheWayOutAndHasAClassThatWasPaused) {
  Bed bed;
  bed.port.out_discards = 5;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "of the first look nobody knows since when";
  bed.port.out_discards = 6;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "no class of it was ever paused";
  bed.port.pfc_sent[3] = 1;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "nothing was discarded";
  bed.port.out_discards = 8;
  EXPECT_THAT(bed.Look(), ElementsAre(QueueHint{"Ethernet48", 2, 0}));
  EXPECT_THAT(bed.Look(), IsEmpty());
  bed.port.out_discards = 3;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "it was reset";
  bed.port.out_discards = std::nullopt;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "it was not said";
  bed.port.out_discards = 4;
  EXPECT_THAT(bed.Look(), ElementsAre(QueueHint{"Ethernet48", 1, 0})) << "since it was last said";
}

TEST(CounterWindows, HintAtTheQueuesOfAPortThatWasPausedForAsLongAsAStormTakes) {
  EXPECT_EQ(LeastPauseOfAStorm(400'000), lossless::FullPausePerSecond(400) / 10);
  EXPECT_EQ(LeastPauseOfAStorm(std::nullopt), LeastPauseOfAStorm(400'000));
  EXPECT_GE(LeastPauseOfAStorm(1), 1u);
  const std::uint64_t least = LeastPauseOfAStorm(400'000);
  Bed bed;
  bed.port.pfc_received[3] = least - 1;
  EXPECT_THAT(bed.Look(), IsEmpty());
  *bed.port.pfc_received[3] += least;
  bed.port.out_packets = 9'000'000;  // a port that sends the rest of the time was stopped all the same
  EXPECT_THAT(bed.Look(), ElementsAre(QueueHint{"Ethernet48", 0, least}));
  *bed.port.pfc_sent[3] += 100 * least;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "what it sends stops others";
  *bed.port.pfc_received[3] += least;
  *bed.port.pfc_received[4] += 2 * least;
  EXPECT_THAT(bed.Look(), ElementsAre(QueueHint{"Ethernet48", 0, 2 * least})) << "of one priority";
  bed.port.pfc_received[4] = 0;
  EXPECT_THAT(bed.Look(), IsEmpty()) << "it was reset";
}

TEST(CounterWindows, HintAtNothingByASampleOfQueuesAlone) {
  Bed bed;
  bed.port.pfc_sent[3] = 1;
  bed.port.out_discards = 0;
  bed.Look();
  const PortCounters ports = std::exchange(bed.port, {});
  bed.port.queue_drops = {{3, 7}};
  EXPECT_THAT(bed.Look(seconds(1)), IsEmpty());
  bed.port = ports;
  bed.port.out_discards = 2;
  EXPECT_THAT(bed.Look(seconds(9)), ElementsAre(QueueHint{"Ethernet48", 2, 0}));
}

}  // namespace
}  // namespace heddle::switches
