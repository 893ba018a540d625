#include "lossless/cable_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "lossless/switch_render.h"
#include "tests/support/seeds.h"

namespace heddle::lossless {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

PortSettings GoodHost() {
  PortSettings settings = SubjectOf("policy", *Resolve({})).settings;
  settings.marking.reset();
  return settings;
}
// What is rendered, and the buffers that SONiC makes for it: sonic/v1 knows no chip and renders none.
PortSettings GoodLeaf() {
  PortSettings settings = RenderSwitchPort(*Resolve({}), *FindSwitchProfile("sonic/v1"), {}).settings;
  settings.buffer_bytes.emplace().fill(kNotSaid);
  (*settings.buffer_bytes)[3] = 100'000;
  settings.lossy_queues = PrioritySet{0, 1, 2, 4, 5, 6, 7};
  settings.lossless_queues = PrioritySet{3};
  return settings;
}

// A cable whose ends go together, and what a test makes of it.
struct Bench {
  PortSettings host = GoodHost(), leaf = GoodLeaf();
  Cable cable;
  Bench() {
    cable.host.speed_mbps = cable.leaf.speed_mbps = 400'000;
    cable.host.link_up = true;
    cable.leaf.fec = Fec::kReedSolomon;
    cable.host.settings = cable.leaf.settings = 0;
  }
  CableOutcome Outcome() {
    SettingsPool pool;
    if (cable.host.settings.known()) cable.host.settings = pool.Intern(host);
    if (cable.leaf.settings.known()) cable.leaf.settings = pool.Intern(leaf);
    return CompareCable(pool, cable);
  }
};

const CableFinding* FindRule(const CableOutcome& outcome, std::string_view rule) {
  for (const CableFinding& finding : outcome.findings) {
    if (finding.rule == rule) return &finding;
  }
  return nullptr;
}

TEST(CableComparison, CallsLosslessWhatGoesTogether) {
  const CableOutcome outcome = Bench().Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kLossless);
  EXPECT_THAT(outcome.findings, IsEmpty());
}

// One operator's ToS 0 and CNP 4 against the map that SONiC ships.
TEST(CableComparison, ShowsBothEndsOfTheGoldenCase) {
  Bench bench;
  bench.host.tos = bench.host.traffic_class = 0;
  bench.host.cnp_dscp = 4;
  bench.leaf.dscp_to_priority = AllDscps(1);
  for (const auto& [dscp, tc] : {std::pair(3, 3), {4, 4}, {5, 2}, {8, 0}, {46, 5}, {48, 6}})
    (*bench.leaf.dscp_to_priority)[std::size_t(dscp)] = std::int8_t(tc);
  bench.leaf.priority_to_group = PriorityTable{0, 0, 0, 3, 4, 0, 0, 7};
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{3, 4};
  const CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  const CableFinding* data = FindRule(outcome, "switch-data-lossy");
  const CableFinding* cnp = FindRule(outcome, "switch-cnp-lossless");
  ASSERT_TRUE(data != nullptr && cnp != nullptr);
  EXPECT_EQ(data->setting, "dscpToPriority");
  EXPECT_EQ(data->host, "DSCP 0: priority 0, PFC 3");
  EXPECT_EQ(data->leaf, "DSCP 0: priority 0, PFC 3,4");
  EXPECT_EQ(cnp->setting, "cnpDscp");
  EXPECT_EQ(cnp->host, "DSCP 4: priority 0, PFC 3");
  EXPECT_EQ(cnp->leaf, "DSCP 4: priority 4, PFC 3,4");
  EXPECT_THAT(cnp->sentence, HasSubstr("CNPs are sent with DSCP 4"));
  EXPECT_THAT(cnp->next, HasSubstr("send CNPs with DSCP 48"));
}

struct Case {
  std::string rule;
  std::function<void(Bench&)> spoil;
};

TEST(CableComparison, FindsEachContradiction) {
  const std::vector<Case> cases{
      {"switch-data-lossy", [](Bench& b) { (*b.leaf.dscp_to_priority)[26] = 0; }},
      {"switch-data-lossy", [](Bench& b) { b.leaf.pfc = PrioritySet{}; }},
      {"switch-cnp-lossless", [](Bench& b) { (*b.leaf.dscp_to_priority)[48] = 3; }},
      {"switch-pauses-other",
       [](Bench& b) {
         (*b.leaf.dscp_to_priority)[26] = 4;
         b.leaf.priority_to_group = Identity();
         b.leaf.pfc = b.leaf.watched = PrioritySet{4};
       }},
      {"mtu-above-switch", [](Bench& b) { b.leaf.mtu = 8999; }},
      {"queue-differs", [](Bench& b) { (*b.leaf.pause_to_queue)[3] = 2; }},
      {"pfc-without-watchdog", [](Bench& b) { b.leaf.watched = PrioritySet{}; }},
      {"pfc-without-watchdog", [](Bench& b) { b.host.watchdog_ms = kWatchdogOff; }},
      {"pfc-without-watchdog", [](Bench& b) { b.leaf.watchdog_ms = kWatchdogAlerts; }},
      {"global-pause", [](Bench& b) { b.host.global_pause = GlobalPause::kBoth; }},
      {"data-lossy", [](Bench& b) { (*b.host.dscp_to_priority)[26] = 0; }},
      {"tos-nccl-differ", [](Bench& b) { b.host.traffic_class = 0; }},
      {"trust-not-dscp", [](Bench& b) { b.host.trust = Trust::kPcp; }},
      // As a policy without PFC leaves a port whose driver keeps the map.
      {"data-lossy",
       [](Bench& b) {
         b.host.trust = Trust::kPcp;
         b.host.pfc = PrioritySet{};
       }},
      {"buffer-empty",
       [](Bench& b) {
         b.leaf.buffer_bytes.emplace().fill(kNotSaid);
         (*b.leaf.buffer_bytes)[3] = 0;
       }},
      {"queue-lossy", [](Bench& b) { b.leaf.lossy_queues = PrioritySet{3}; }},
      {"link-speed", [](Bench& b) { b.cable.leaf.speed_mbps = 200'000; }},
      {"link-fec", [](Bench& b) { b.cable.host.fec = Fec::kNone; }},
      {"link-frame", [](Bench& b) { b.cable.leaf.max_frame_bytes = 9000; }}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.rule);
    Bench bench;
    one.spoil(bench);
    const CableOutcome outcome = bench.Outcome();
    EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
    const CableFinding* finding = FindRule(outcome, one.rule);
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->weight, LosslessVerdict::kContradiction);
    for (const std::string* text :
         {&finding->setting, &finding->host, &finding->leaf, &finding->sentence, &finding->next})
      EXPECT_FALSE(text->empty());
  }
}

TEST(CableComparison, TakesALossyQueueForALossOfItsOwnPriorityOnly) {
  Bench bench;
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{3, 4};
  bench.leaf.lossy_queues = PrioritySet{0, 1, 2, 4};
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  EXPECT_EQ(FindRule(bench.Outcome(), "queue-lossy"), nullptr);
  bench.leaf.lossy_queues = PrioritySet{0, 1, 2, 3};
  const CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  const auto of_rule = [](const CableFinding& finding) { return finding.rule == "queue-lossy"; };
  EXPECT_EQ(std::count_if(outcome.findings.begin(), outcome.findings.end(), of_rule), 1) << "told once";
  EXPECT_EQ(FindRule(outcome, "queue-lossy")->leaf, "0,1,2,3");
}

// Nobody knows which priority data of a host is in that says nothing; but of one that is in none it is lost anyway.
TEST(CableComparison, TellsOfAHostThatSaysNothingWhatLosesDataInEveryLosslessPriority) {
  const auto verdict = [](const PrioritySet& lossy, const Numbers& bytes) {
    PortSettings leaf;
    leaf.pfc = PrioritySet{3, 4};
    leaf.lossy_queues = lossy;
    leaf.buffer_bytes = bytes;
    SettingsPool pool;
    Cable cable;
    cable.leaf.settings = pool.Intern(leaf);
    return CompareCable(pool, cable).verdict;
  };
  const Numbers room{0, 0, 0, 100'000, 100'000, 0, 0, 0};
  EXPECT_EQ(verdict({0, 4}, room), LosslessVerdict::kUnproved);
  EXPECT_EQ(verdict({0, 3, 4}, room), LosslessVerdict::kContradiction);
  EXPECT_EQ(verdict({0}, {0, 0, 0, 100'000, 0, 0, 0, 0}), LosslessVerdict::kUnproved);
  EXPECT_EQ(verdict({0}, {0, 0, 0, 0, 0, 0, 0, 0}), LosslessVerdict::kContradiction);
}

TEST(CableComparison, AsksNoRoomOfGroupsThatDataIsNotIn) {
  Bench bench;
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{3, 4};
  bench.leaf.priority_to_group = PriorityTable{0, 0, 0, 3, 4, 0, 0, 0};
  bench.leaf.priority_to_queue = Identity();
  bench.leaf.buffer_bytes = Numbers{0, 0, 0, 100'000, 0, 0, 0, 0};
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  (*bench.leaf.buffer_bytes)[3] = 0;
  const CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  const auto of_rule = [](const CableFinding& finding) { return finding.rule == "buffer-empty"; };
  EXPECT_EQ(std::count_if(outcome.findings.begin(), outcome.findings.end(), of_rule), 1) << "told once";
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{4};
  EXPECT_EQ(FindRule(bench.Outcome(), "buffer-empty"), nullptr) << "what has no PFC sends no pause";
}

TEST(CableComparison, HoldsTheRoomOfTheGroupThatDataIsInAgainstWhatStillArrives) {
  Bench bench;
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{3, 4};
  bench.leaf.cable_metres = 5;
  bench.leaf.mtu = 9100;
  bench.leaf.buffer_bytes = Numbers{0, 0, 0, 70'656, 1'000, 0, 0, 0};
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless) << "data is in priority 3";
  (*bench.leaf.buffer_bytes)[3] = 20'000;
  const CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  const CableFinding* finding = FindRule(outcome, "headroom-short");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->setting, "bufferBytes");
  EXPECT_EQ(finding->host, "-");
  EXPECT_EQ(finding->leaf, "20000 of 70656 bytes");
  EXPECT_THAT(finding->sentence, HasSubstr("on the switch after a pause for priority 3"));
  EXPECT_THAT(finding->next, HasSubstr("larger xoff"));
  (*bench.leaf.buffer_bytes)[3] = 40'000;
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kUnproved);
  bench.leaf.cable_metres.reset();
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless) << "nobody says how long the cable is";
}

TEST(CableComparison, HoldsRoomAgainstTheSpeedThatALinkHasAgreedOn) {
  Bench bench;
  bench.leaf.cable_metres = 5;
  bench.leaf.buffer_bytes.emplace().fill(kNotSaid);
  (*bench.leaf.buffer_bytes)[3] = 40'000;  // enough for 100 Gb/s
  bench.cable.leaf.negotiates = true;
  bench.cable.leaf.fec.reset();
  bench.cable.host.speed_mbps = 100'000;
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  bench.cable.host.speed_mbps = 400'000;
  EXPECT_NE(FindRule(bench.Outcome(), "headroom-short"), nullptr);
  bench.cable.host.link_up = false;
  EXPECT_EQ(FindRule(bench.Outcome(), "headroom-short"), nullptr) << "nobody knows what it will run at";
}

// Which priority data is in nobody says then, so that one with room enough may be it.
TEST(CableComparison, TellsOfAHostThatSaysNothingWhereNoLosslessPriorityHasRoomEnough) {
  PortSettings leaf;
  leaf.pfc = PrioritySet{3, 4};
  leaf.mtu = 9100;
  leaf.cable_metres = 5;
  const auto verdict = [&leaf](const Numbers& bytes) {
    leaf.buffer_bytes = bytes;
    SettingsPool pool;
    Cable cable;
    cable.leaf.settings = pool.Intern(leaf);
    cable.leaf.speed_mbps = 400'000;
    return CompareCable(pool, cable).verdict;
  };
  EXPECT_EQ(verdict({0, 0, 0, 20'000, 100'000, 0, 0, 0}), LosslessVerdict::kUnproved);
  EXPECT_EQ(verdict({0, 0, 0, 20'000, 20'000, 0, 0, 0}), LosslessVerdict::kContradiction);
}

TEST(CableComparison, TakesAnUpLinkForTheProofOfOneSpeedWhereTheSwitchNegotiates) {
  Bench bench;
  bench.cable.leaf.negotiates = true;
  bench.cable.leaf.fec.reset();
  bench.cable.leaf.speed_mbps = 800'000;  // that it is set to
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  bench.cable.host.link_up = false;
  const CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(FindRule(outcome, "link-speed"), nullptr);
  SettingsPool pool;
  Cable fixed = bench.cable, negotiated = bench.cable;
  fixed.leaf.negotiates = false;
  fixed.host.settings = negotiated.host.settings = pool.Intern(bench.host);
  fixed.leaf.settings = negotiated.leaf.settings = pool.Intern(bench.leaf);
  const std::vector<Cable> cables{fixed, negotiated};
  EXPECT_EQ(CompareCables(pool, cables).outcomes.size(), 2u) << "they are not alike";
}

TEST(CableComparison, ProvesNothingWhereALinkNegotiatedMoreThanItsHeadroomIsFor) {
  Bench bench;
  bench.cable.leaf.negotiates = true;
  bench.cable.leaf.speed_mbps = 200'000;
  bench.leaf.buffer_bytes.reset();
  bench.leaf.sized_by_switch = PrioritySet{3};
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless)
      << "a switch that sizes it as it runs says none";
  bench.leaf.buffer_bytes.emplace().fill(kNotSaid);
  for (const int priority : bench.leaf.pfc->Members())
    (*bench.leaf.buffer_bytes)[std::size_t(priority)] = 100'000;
  const CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
  const CableFinding* finding = FindRule(outcome, "link-speed");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->host, "400 Gb/s");
  EXPECT_EQ(finding->leaf, "200 Gb/s");
  bench.cable.leaf.speed_mbps = 400'000;
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  bench.cable.leaf.speed_mbps.reset();
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless) << "nobody says what it is for";
}

TEST(CableComparison, TellsOtherThingsWithoutBlamingTheCable) {
  Bench several;
  several.leaf.pfc = several.leaf.watched = PrioritySet{3, 4};
  several.leaf.priority_to_group = PriorityTable{0, 0, 0, 3, 4, 0, 0, 0};
  several.leaf.priority_to_queue = Identity();
  const CableOutcome outcome = several.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kLossless);
  ASSERT_NE(FindRule(outcome, "pfc-several-classes"), nullptr);
  Bench waits;
  (*waits.leaf.class_algorithm)[6] = Algorithm::kEts;
  const CableOutcome late = waits.Outcome();
  EXPECT_EQ(late.verdict, LosslessVerdict::kLossless);
  ASSERT_NE(FindRule(late, "switch-cnp-waits"), nullptr);
  EXPECT_EQ(FindRule(late, "switch-cnp-waits")->leaf, "DSCP 48: queue 6, ETS");
}

TEST(CableComparison, TellsOfMarksAndOfNcclWithoutBlamingTheCable) {
  Bench marks;
  marks.leaf.marking = EcnMarkings{{3, {9, 9, 5}}};
  const CableOutcome marked = marks.Outcome();
  EXPECT_EQ(marked.verdict, LosslessVerdict::kLossless);
  EXPECT_NE(FindRule(marked, "ecn-thresholds"), nullptr);
  Bench nccl;
  nccl.host.traffic_class.reset();
  const CableOutcome unmarked = nccl.Outcome();
  EXPECT_EQ(unmarked.verdict, LosslessVerdict::kLossless);
  ASSERT_NE(FindRule(unmarked, "nccl-not-known"), nullptr);
  EXPECT_EQ(FindRule(Bench().Outcome(), "nccl-not-known"), nullptr);
}

// Whatever is taken away, of either end: never Lossless.
TEST(CableComparison, NeverCallsLosslessWhatIsNotKnown) {
  for (const topology::Missing missing :
       {topology::Missing::kUnknown, topology::Missing::kStale, topology::Missing::kAmbiguous}) {
    Bench host, leaf;
    host.cable.host.settings = missing;
    leaf.cable.leaf.settings = missing;
    for (Bench* bench : {&host, &leaf}) {
      const CableOutcome outcome = bench->Outcome();
      EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
      ASSERT_NE(FindRule(outcome, "not-known"), nullptr);
    }
  }
  using P = PortSettings;
  const auto without = [](const std::function<void(Bench&)>& take) {
    Bench bench;
    take(bench);
    return bench.Outcome().verdict;
  };
  EXPECT_EQ(without([](Bench& b) { b.host.trust.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.dscp_to_priority.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.pfc.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.mtu.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.watchdog_ms.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.ecn.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.cnp_dscp.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.host.tos.reset(); }), LosslessVerdict::kUnproved);
  for (auto member : {&P::priority_to_group, &P::priority_to_queue, &P::pause_to_queue})
    EXPECT_EQ(without([&](Bench& b) { (b.leaf.*member).reset(); }), LosslessVerdict::kUnproved);
  for (auto member : {&P::pfc, &P::watched, &P::ecn})
    EXPECT_EQ(without([&](Bench& b) { (b.leaf.*member).reset(); }), LosslessVerdict::kUnproved);
  for (auto member : {&P::watchdog_ms, &P::mtu})
    EXPECT_EQ(without([&](Bench& b) { (b.leaf.*member).reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.leaf.marking.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.leaf.trust.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.leaf.dscp_to_priority.reset(); }), LosslessVerdict::kUnproved);
  for (const std::size_t dscp : {26, 48})
    EXPECT_EQ(without([dscp](Bench& b) { (*b.leaf.dscp_to_priority)[dscp] = kNotSaid; }),
              LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { (*b.leaf.priority_to_queue)[3] = kNotSaid; }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { (*b.leaf.pause_to_queue)[3] = kNotSaid; }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.leaf.buffer_bytes.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { (*b.leaf.buffer_bytes)[3] = kNotSaid; }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.leaf.lossless_queues.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) {
              b.leaf.lossless_queues = PrioritySet{0, 4};
            }),
            LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) {
              b.leaf.lossy_queues.reset();
              b.leaf.lossless_queues.reset();
              b.leaf.buffer_bytes.reset();
            }),
            LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.cable.host.speed_mbps.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.cable.leaf.speed_mbps.reset(); }), LosslessVerdict::kUnproved);
  EXPECT_EQ(without([](Bench& b) { b.cable.host.link_up = false; }), LosslessVerdict::kUnproved);
  Bench no_pause;
  (*no_pause.leaf.priority_to_group)[3] = kNotSaid;
  const CableOutcome unpaused = no_pause.Outcome();
  EXPECT_EQ(unpaused.verdict, LosslessVerdict::kUnproved);
  ASSERT_NE(FindRule(unpaused, "not-known"), nullptr);
  EXPECT_EQ(FindRule(unpaused, "not-known")->sentence,
            "the switch has no priority group for TC 3, of data, or no pause for that group");
  // Even where both ends contradict each other, what is not known is told too.
  Bench both;
  both.leaf.mtu = 1500;
  both.host.ecn.reset();
  const CableOutcome outcome = both.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(outcome.findings.front().weight, LosslessVerdict::kContradiction);
  EXPECT_NE(FindRule(outcome, "not-known"), nullptr);
}

// A lossless profile on another group, or on another queue, is none for data.
TEST(CableComparison, AsksForRoomOfTheVeryGroupAndAProfileOfTheVeryQueueOfData) {
  Bench bench;
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{3, 4};
  bench.leaf.priority_to_group = PriorityTable{0, 0, 0, 3, 4, 0, 0, 0};
  bench.leaf.priority_to_queue = Identity();
  bench.leaf.buffer_bytes = Numbers{0, kNotSaid, kNotSaid, kNotSaid, 100'000, kNotSaid, kNotSaid, kNotSaid};
  CableOutcome outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
  const CableFinding* finding = FindRule(outcome, "not-known");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->setting, "bufferBytes");
  EXPECT_EQ(finding->host, "-");
  EXPECT_EQ(finding->leaf, "not known");
  EXPECT_EQ(finding->sentence, "nobody says how much the switch holds after a pause for priority 3");
  EXPECT_THAT(finding->next, HasSubstr("BUFFER_PG"));
  bench.leaf.sized_by_switch = PrioritySet{4};
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kUnproved);
  bench.leaf.sized_by_switch = PrioritySet{3};
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  bench.leaf.lossy_queues = PrioritySet{0};
  bench.leaf.lossless_queues = PrioritySet{4};
  outcome = bench.Outcome();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
  finding = FindRule(outcome, "not-known");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->setting, "lossyQueues");
  EXPECT_EQ(finding->sentence,
            "nobody says whether the queue by which priority 3 leaves the switch has a lossless buffer");
  EXPECT_THAT(finding->next, HasSubstr("BUFFER_QUEUE"));
  // What has no PFC is lost whatever room it has, and that is told.
  bench.leaf.pfc = bench.leaf.watched = PrioritySet{4};
  EXPECT_EQ(FindRule(bench.Outcome(), "not-known"), nullptr);
}

TEST(CableComparison, AsksNoWatchdogOfANicThatHasNone) {
  Bench thor;
  thor.host.watchdog_ms.reset();
  thor.cable.host.has_no_watchdog = true;
  EXPECT_EQ(thor.Outcome().verdict, LosslessVerdict::kLossless);
}

TEST(CableComparison, TakesALinkThatIsUpForProofOfOneCoding) {
  Bench bench;
  bench.cable.leaf.fec.reset();
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  bench.cable.host.link_up.reset();
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kUnproved);
  bench.cable.host.fec = bench.cable.leaf.fec = Fec::kReedSolomon;
  EXPECT_EQ(bench.Outcome().verdict, LosslessVerdict::kLossless);
  EXPECT_EQ(ParseFec("baser"), Fec::kFireCode);
  EXPECT_EQ(ParseFec("auto"), std::nullopt);
}

TEST(SettingsPool, KeepsEqualSettingsOnce) {
  SettingsPool pool;
  const int host = pool.Intern(GoodHost()), leaf = pool.Intern(GoodLeaf());
  EXPECT_NE(host, leaf);
  EXPECT_EQ(pool.Intern(GoodHost()), host);
  EXPECT_EQ(pool.size(), 2u);
  EXPECT_EQ(pool[leaf], GoodLeaf());
  // Each setting tells two apart.
  ForEachSetting([&](Setting setting, auto member) {
    PortSettings settings = GoodHost();
    if (settings.*member) {
      (settings.*member).reset();
    } else {
      (settings.*member).emplace();
    }
    EXPECT_NE(pool.Intern(settings), host) << SettingName(setting);
  });
}

// Many cables at once say the same as each by itself.
TEST(CableComparison, OfManyIsThatOfEach) {
  for (const std::uint64_t seed : test::Seeds(20)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    SettingsPool pool;
    std::vector<Cable> cables;
    for (int i = 0; i < 100; ++i) {
      Bench bench;
      if (random.Below(3) == 0) bench.leaf.mtu = random.Below(2) == 0 ? 1500 : 9100;
      if (random.Below(3) == 0) bench.host.tos = 0;
      bench.cable.host.settings = pool.Intern(bench.host);
      bench.cable.leaf.settings = pool.Intern(bench.leaf);
      if (random.Below(4) == 0) bench.cable.leaf.settings = topology::Missing(random.Below(4));
      if (random.Below(4) == 0) bench.cable.host.speed_mbps = 200'000;
      if (random.Below(4) == 0) bench.cable.host.link_up.reset();
      bench.cable.rail = int(random.Below(4)) - 1;
      cables.push_back(bench.cable);
    }
    const CableComparison comparison = CompareCables(pool, cables);
    std::map<int, LosslessVerdict> rails;
    for (std::size_t i = 0; i < cables.size(); ++i) {
      const CableOutcome alone = CompareCable(pool, cables[i]);
      EXPECT_EQ(comparison.Of(i), alone);
      if (cables[i].rail == kNotSaid) continue;
      const auto at = rails.emplace(cables[i].rail, alone.verdict).first;
      at->second = Worst(at->second, alone.verdict);
    }
    EXPECT_LT(comparison.outcomes.size(), cables.size());
    EXPECT_EQ(VerdictByRail(cables, comparison), rails);
  }
}

}  // namespace
}  // namespace heddle::lossless
