// Cables between switches: joined by whom either sees, and both ends held against each other.
#include "switches/switch_links.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "switches/neighbours.h"
#include "switches/openconfig_ports.h"
#include "tests/unit/switches/sonic_port.h"

namespace heddle::switches {
namespace {

using lossless::LosslessVerdict;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two leaves under two spines: leaf-i's port 4s ends on spine-s's port 4i.
class SwitchLinksTest : public testing::Test {
 protected:
  SwitchLinksTest() {
    for (const char* name : {"leaf-0", "leaf-1", "spine-0", "spine-1"}) {
      configs.push_back({.hostname = name});
      for (int port = 0; port < 4; ++port)
        configs.back().ports.push_back(
            test::LosslessPort("Ethernet" + std::to_string(4 * port), "etp" + std::to_string(port + 1)));
      seen.emplace_back();
    }
    for (std::size_t leaf = 0; leaf < 2; ++leaf) {
      for (std::size_t spine = 0; spine < 2; ++spine) {
        seen[leaf]["Ethernet" + std::to_string(4 * spine)] = {"spine-" + std::to_string(spine), "",
                                                              "etp" + std::to_string(leaf + 1),
                                                              "Ethernet" + std::to_string(4 * leaf)};
        seen[2 + spine]["Ethernet" + std::to_string(4 * leaf)] = {"leaf-" + std::to_string(leaf), "",
                                                                  "etp" + std::to_string(spine + 1),
                                                                  "Ethernet" + std::to_string(4 * spine)};
      }
    }
  }

  std::vector<SwitchLink> Find() const { return FindSwitchLinks(Known()); }
  std::vector<KnownSwitch> Known() const {
    std::vector<KnownSwitch> known;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      known.push_back({.name = configs[i].hostname,
                       .config = i == silent ? nullptr : &configs[i],
                       .neighbours = i == silent ? nullptr : &seen[i],
                       .tier = i < 2 ? 0 : 1,
                       .neighbours_stale = stale.contains(i)});
    }
    return known;
  }
  // Of leaf-0 Ethernet0 and spine-0 Ethernet0.
  lossless::CableOutcome First() const {
    const auto links = Find();
    return links.empty() ? lossless::CableOutcome{} : links.front().outcome;
  }
  // As ReadOpenConfigPorts has one: of settings the MTU alone.
  void SpeakOpenConfig(std::size_t which) {
    formats::SonicConfig& config = configs[which];
    config.bare = std::move(config.ports);
    config.ports.clear();
    for (formats::SonicPort& port : config.bare) {
      const std::optional<int> mtu = port.settings.mtu;
      port.settings = {};
      port.settings.mtu = mtu;
      port.bare = kNoPfcPath;
    }
  }
  // What contradicts on the first link where its ends say these MTUs; empty = nothing.
  std::string RuleOf(std::optional<int> leaf, std::optional<int> spine) {
    for (const auto& [which, mtu] : {std::pair(std::size_t(0), leaf), std::pair(std::size_t(2), spine)}) {
      formats::SonicConfig& config = configs[which];
      (config.ports.empty() ? config.bare : config.ports)[0].settings.mtu = mtu;
    }
    const lossless::CableOutcome outcome = First();
    const bool contradicts = outcome.verdict == LosslessVerdict::kContradiction;
    return contradicts ? outcome.findings.front().rule : "";
  }
  formats::SonicPort& Spine() { return configs[2].ports[0]; }
  formats::SonicPort& Leaf() { return configs[0].ports[0]; }

  std::vector<formats::SonicConfig> configs;
  std::vector<Neighbours> seen;
  std::size_t silent = 99;
  std::set<std::size_t> stale;
};

TEST_F(SwitchLinksTest, ToASwitchThatOnlyHasTheNameOfOneAreNoLinksOfThatOne) {
  std::vector<KnownSwitch> known = Known();
  known[0].own_chassis = "0c:42:a1:00:00:01";
  seen[2]["Ethernet0"].chassis_id = "0C42.A100.0001";
  ASSERT_THAT(FindSwitchLinks(known), SizeIs(4));
  EXPECT_EQ(FindSwitchLinks(known)[0].outcome.verdict, LosslessVerdict::kLossless);
  seen[2]["Ethernet0"].chassis_id = "04:3f:72:00:00:01";
  for (const SwitchLink& link : FindSwitchLinks(known)) {
    if (link.lower == "leaf-0" && link.upper == "spine-0") {
      EXPECT_NE(link.outcome.verdict, LosslessVerdict::kLossless) << "spine-0 sees another leaf-0";
    }
  }
  seen[0].erase("Ethernet0");
  EXPECT_THAT(FindSwitchLinks(known), SizeIs(3)) << "and nobody else speaks of that cable";
  // Kept, it is found once the switch says who it is.
  KeptSwitchLinks kept;
  known[0].own_chassis.clear();
  kept.Begin(known);
  EXPECT_THAT(kept.links(), SizeIs(4));
  known[0].own_chassis = "0c:42:a1:00:00:01";
  EXPECT_FALSE(kept.Again(known, {0}).has_value());
}

TEST_F(SwitchLinksTest, ThatAreKeptAreComparedAgainWhereASwitchSetsItsPortsOtherwise) {
  KeptSwitchLinks kept;
  std::vector<KnownSwitch> known = Known();
  kept.Begin(known);
  EXPECT_EQ(kept.links(), Find());
  formats::SonicConfig other = configs[1];
  other.ports[0].settings.mtu = 1500;
  known[1].config = &other;
  const auto again = kept.Again(known, {1});
  ASSERT_TRUE(again.has_value());
  // leaf-1's two, of four.
  EXPECT_THAT(*again, ElementsAre(2, 3));
  EXPECT_EQ(kept.links(), FindSwitchLinks(known));
  EXPECT_EQ(kept.links()[2].outcome.verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(kept.links()[3].outcome.verdict, LosslessVerdict::kLossless);
  // With other names who is connected with whom may be another.
  formats::SonicConfig renamed = other;
  renamed.ports[0].alias = "etp9";
  known[1].config = &renamed;
  EXPECT_FALSE(kept.Again(known, {1}).has_value());
  kept.Begin(known);
  EXPECT_EQ(kept.links(), FindSwitchLinks(known));
  const Neighbours none;
  known[1].neighbours = &none;
  EXPECT_FALSE(kept.Again(known, {1}).has_value());
}

TEST_F(SwitchLinksTest, AreFoundOnceWithTheLowerEndFirst) {
  const auto links = Find();
  ASSERT_THAT(links, SizeIs(4));
  EXPECT_EQ(links[1].lower + " " + links[1].lower_port + " " + links[1].upper + " " + links[1].upper_port,
            "leaf-0 Ethernet4 spine-1 Ethernet0");
  EXPECT_EQ(links[1].lower_at, 0);
  EXPECT_EQ(links[1].upper_at, 3);
  for (const SwitchLink& link : links) {
    EXPECT_EQ(link.outcome.verdict, LosslessVerdict::kLossless);
    EXPECT_THAT(link.outcome.findings, IsEmpty());
  }
}

TEST_F(SwitchLinksTest, SayWhetherBothEndsSayLatelyThatTheySeeEachOther) {
  for (const SwitchLink& link : Find()) EXPECT_TRUE(link.both_say_so) << link.lower << " " << link.upper;
  const auto first = [this] { return Find().front().both_say_so; };
  stale = {2};
  EXPECT_FALSE(first());
  stale.clear();
  seen[2].erase("Ethernet0");
  EXPECT_FALSE(first()) << "one alone says so";
  seen[2]["Ethernet0"] = {"leaf-1", "", "etp1", "Ethernet0"};
  EXPECT_FALSE(first()) << "the other end says otherwise";
}

TEST_F(SwitchLinksTest, ToAPortIdThatIsTheNameOfAnotherAreFoundByTheDescription) {
  const auto links = Find();
  // Each spine says of itself "Ethernet12" where it means its Ethernet0, whose alias that is.
  for (const std::size_t spine : {2u, 3u}) configs[spine].ports[0].alias = "Ethernet12";
  seen[0]["Ethernet0"].port_id = seen[0]["Ethernet4"].port_id = "Ethernet12";
  EXPECT_EQ(Find(), links);
}

TEST_F(SwitchLinksTest, NeedOneEndThatSaysSoAndBothThatAreAsked) {
  seen[2].clear();
  EXPECT_THAT(Find(), SizeIs(4)) << "the leaves say it";
  silent = 2;
  EXPECT_THAT(Find(), SizeIs(2));
}

TEST_F(SwitchLinksTest, ThatOneSaysNoLongerAndTheOtherDoesNotAreNotProvedAndStillContradicted) {
  stale = {0, 1};
  for (const SwitchLink& link : Find()) EXPECT_EQ(link.outcome.verdict, LosslessVerdict::kLossless);
  seen[2].clear();  // spine-0
  for (const SwitchLink& link : Find()) {
    const bool proved = link.upper == "spine-1";
    EXPECT_EQ(link.outcome.verdict, proved ? LosslessVerdict::kLossless : LosslessVerdict::kUnproved)
        << link.lower << " " << link.upper;
  }
  EXPECT_EQ(First().findings.front().rule, "not-known");
  EXPECT_THAT(First().findings.front().sentence,
              HasSubstr("nobody says any longer that leaf-0 Ethernet0 and spine-0 Ethernet0 are one cable"));
  Spine().settings.pfc = lossless::PrioritySet{4};
  EXPECT_EQ(First().verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(First().findings.front().setting, "pfc");
  EXPECT_EQ(First().findings.back().rule, "not-known");
  Spine() = Leaf();
  seen[2]["Ethernet0"] = {"gpu-017", "", "", "eth0"};
  stale = {2};
  EXPECT_EQ(First().findings.front().rule, "lldp-disagrees") << "what it said last it stands by";
}

TEST_F(SwitchLinksTest, ThatOneEndDeniesProveNothing) {
  seen[2].at("Ethernet0") = {"leaf-1", "", "etp4", ""};
  for (const SwitchLink& link : Find()) {
    const bool there = link.upper == "spine-0" && link.upper_port == "Ethernet0";
    EXPECT_EQ(link.outcome.verdict, there ? LosslessVerdict::kUnproved : LosslessVerdict::kLossless)
        << link.lower << " " << link.lower_port;
  }
  EXPECT_EQ(First().findings.front().rule, "lldp-disagrees");
  seen[2].at("Ethernet0") = {"gpu-017", "", "", "eth0"};
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved);
}

TEST_F(SwitchLinksTest, NameWhatTheEndsHaveNotAlike) {
  Spine().settings.pfc = lossless::PrioritySet{4};
  lossless::CableOutcome outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(outcome.findings.front().setting, "pfc");
  EXPECT_EQ(outcome.findings.front().sentence, "leaf-0 Ethernet0 has pfc 3, and spine-0 Ethernet0 has 4");
  Spine() = Leaf();
  (*Spine().settings.dscp_to_priority)[26] = 4;
  outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(outcome.findings.front().setting, "dscpToPriority");
  EXPECT_THAT(outcome.findings.front().host, HasSubstr("26: 3"));
  EXPECT_THAT(outcome.findings.front().leaf, HasSubstr("26: 4"));
  Spine() = Leaf();
  (*Spine().settings.dscp_to_priority)[8] = 1;
  EXPECT_EQ(First().verdict, LosslessVerdict::kLossless) << "a DSCP that is lossless nowhere";
}

TEST_F(SwitchLinksTest, NameEveryOtherThingThatLosesPackets) {
  const auto with = [&](auto change) {
    Spine() = Leaf();
    change(Spine());
    const lossless::CableOutcome outcome = First();
    return outcome.findings.empty() ? "" : outcome.findings.front().setting;
  };
  EXPECT_EQ(with([](auto& port) { port.settings.mtu = 1500; }), "mtu");
  EXPECT_EQ(with([](auto& port) { port.settings.watchdog_ms = lossless::kWatchdogOff; }), "watchdogMs");
  EXPECT_EQ(with([](auto& port) { port.settings.watched = lossless::PrioritySet{}; }), "watchdogMs");
  EXPECT_EQ(with([](auto& port) { port.settings.watched.reset(); }), "watched");
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(First().findings.at(0).sentence, "nobody says watched of spine-0 Ethernet0");
  EXPECT_EQ(with([](auto& port) { port.speed_mbps = 100'000; }), "speed");
  EXPECT_EQ(with([](auto& port) { port.settings.watchdog_ms = lossless::kWatchdogAlerts; }), "watchdogMs");
  EXPECT_EQ(First().verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(First().findings.at(0).leaf, "alert only");
  EXPECT_EQ(First().findings.at(0).sentence,
            "spine-0 Ethernet0 has PFC and a watchdog that tells of storms and stops none (action alert)");
  Spine() = Leaf();
  Spine().settings.lossy_queues = lossless::PrioritySet{3};
  EXPECT_EQ(First().findings.at(0).rule, "queue-lossy");
  Spine().settings.lossy_queues = lossless::PrioritySet{0, 1, 2, 4, 5, 6, 7};
  EXPECT_EQ(First().verdict, LosslessVerdict::kLossless) << "no lossless DSCP is in these";
  EXPECT_EQ(with([](auto& port) { port.fec = "none"; }), "fec");
  EXPECT_EQ(with([](auto& port) { port.fec = "auto"; }), "") << "the link is up";
  EXPECT_EQ(with([](auto& port) { port.bare = "has no PORT_QOS_MAP"; }), "settings");
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved);
  EXPECT_EQ(with([](auto& port) { port.bare = "cannot be read (PFC_WD)"; }), "settings");
  EXPECT_EQ(First().findings.at(0).next, "put that right, and the rest of its settings is read");
}

// As of a host's port, whose switch has to say them.
TEST_F(SwitchLinksTest, AreUnprovedWhereAnEndThatPausesNamesNoMapOfGroupsOrQueues) {
  const auto without = [&](std::optional<lossless::PriorityTable> lossless::PortSettings::*map) {
    Spine() = Leaf();
    (Spine().settings.*map).reset();
    const lossless::CableOutcome outcome = First();
    EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
    return outcome.findings.empty() ? std::string() : outcome.findings.front().sentence;
  };
  EXPECT_EQ(without(&lossless::PortSettings::priority_to_group),
            "nobody says priorityToGroup of spine-0 Ethernet0");
  EXPECT_EQ(without(&lossless::PortSettings::priority_to_queue),
            "nobody says priorityToQueue of spine-0 Ethernet0");
  EXPECT_EQ(without(&lossless::PortSettings::pause_to_queue),
            "nobody says pauseToQueue of spine-0 Ethernet0");
  for (const auto port : {&Spine(), &Leaf()}) {
    port->settings.pfc = lossless::PrioritySet{};
    port->settings.priority_to_group.reset();
  }
  EXPECT_EQ(First().findings.at(0).rule, "switch-link-lossy") << "without PFC there is nothing to map";
}

// A map that has nothing for the very packets is as good as none, as of a host's port.
TEST_F(SwitchLinksTest, AreUnprovedWhereAMapOfEitherEndHasNothingForWhatIsLossless) {
  const formats::SonicPort whole = Leaf();
  for (formats::SonicPort* const end : {&Leaf(), &Spine()}) {
    const std::string name = end == &Leaf() ? "leaf-0 Ethernet0" : "spine-0 Ethernet0";
    const auto without = [&](auto change) {
      Leaf() = Spine() = whole;
      change(end->settings);
      const lossless::CableOutcome outcome = First();
      EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved) << name;
      return outcome.findings.empty() ? std::string() : outcome.findings.front().sentence;
    };
    EXPECT_EQ(without([](auto& settings) { (*settings.dscp_to_priority)[26] = lossless::kNotSaid; }),
              name + " maps DSCP 26, which is lossless at the other end, to nothing");
    EXPECT_EQ(without([](auto& settings) { (*settings.priority_to_queue)[3] = lossless::kNotSaid; }),
              name + " has no queue for TC 3, of lossless packets");
    EXPECT_EQ(without([](auto& settings) { (*settings.priority_to_group)[3] = lossless::kNotSaid; }),
              name + " has no priority group for TC 3, of lossless packets, or no pause for that group");
    EXPECT_EQ(without([](auto& settings) { (*settings.pause_to_queue)[3] = lossless::kNotSaid; }),
              "at " + name + " a pause for priority 3 stops no queue");
    Leaf() = Spine() = whole;
    (*end->settings.priority_to_queue)[5] = lossless::kNotSaid;
    EXPECT_EQ(First().verdict, LosslessVerdict::kLossless) << "of packets that may be lost";
  }
}

TEST_F(SwitchLinksTest, ContradictWhereTheEndsPauseByDifferentPrioritiesOrHaveNoRoomForWhatArrives) {
  (*Spine().settings.priority_to_group)[3] = 4;
  lossless::CableOutcome outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  ASSERT_FALSE(outcome.findings.empty());
  EXPECT_EQ(outcome.findings.front().rule, "switch-link-priorityToGroup");
  EXPECT_EQ(outcome.findings.front().sentence,
            "leaf-0 Ethernet0 has priorityToGroup priority 3: 3, and spine-0 Ethernet0 has priority 3: 4");
  Spine() = Leaf();
  Spine().settings.buffer_bytes.emplace().fill(lossless::kNotSaid);
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved) << "nobody says how much";
  (*Spine().settings.buffer_bytes)[3] = 0;
  outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  ASSERT_FALSE(outcome.findings.empty());
  EXPECT_EQ(outcome.findings.front().rule, "buffer-empty");
  EXPECT_EQ(outcome.findings.front().leaf, "0");
  EXPECT_THAT(outcome.findings.front().sentence, HasSubstr("spine-0 Ethernet0 has no room"));
}

TEST_F(SwitchLinksTest, AreUnprovedWhereAnEndSaysNothingOfTheBuffersOfWhatIsLossless) {
  const formats::SonicPort whole = Leaf();
  for (formats::SonicPort* const end : {&Leaf(), &Spine()}) {
    const std::string name = end == &Leaf() ? "leaf-0 Ethernet0" : "spine-0 Ethernet0";
    const auto with = [&](auto change) {
      Leaf() = Spine() = whole;
      change(end->settings);
      const lossless::CableOutcome outcome = First();
      EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved) << name;
      EXPECT_THAT(outcome.findings, SizeIs(1)) << name;
      return outcome.findings.empty() ? std::string() : outcome.findings.front().sentence;
    };
    const std::string room = "nobody says how much " + name + " holds after a pause for priority 3";
    EXPECT_EQ(with([](auto& settings) { settings.buffer_bytes.reset(); }), room);
    EXPECT_EQ(with([](auto& settings) {
                (*settings.buffer_bytes)[4] = 165'888;
                (*settings.buffer_bytes)[3] = lossless::kNotSaid;
              }),
              room);
    EXPECT_EQ(with([](auto& settings) { settings.lossless_queues = lossless::PrioritySet{4}; }),
              "nobody says whether the queue by which priority 3 leaves " + name + " has a lossless buffer");
    Leaf() = Spine() = whole;
    end->settings.buffer_bytes.reset();
    end->settings.sized_by_switch = lossless::PrioritySet{3};
    EXPECT_EQ(First().verdict, LosslessVerdict::kLossless) << name << " sizes it itself";
  }
}

TEST_F(SwitchLinksTest, HoldTheRoomOfEachEndAgainstWhatStillArrivesOverTheirCable) {
  for (formats::SonicPort* port : {&Leaf(), &Spine()}) {
    port->settings.mtu = 9100;
    port->settings.cable_metres = 40;
    port->settings.buffer_bytes.emplace().fill(lossless::kNotSaid);
    (*port->settings.buffer_bytes)[3] = 91'136;
  }
  EXPECT_EQ(First().verdict, LosslessVerdict::kLossless);
  (*Spine().settings.buffer_bytes)[3] = 20'000;
  lossless::CableOutcome outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  ASSERT_THAT(outcome.findings, SizeIs(1));
  EXPECT_EQ(outcome.findings.front().rule, "headroom-short");
  EXPECT_EQ(outcome.findings.front().host, "-");
  EXPECT_EQ(outcome.findings.front().leaf, "20000 of 89088 bytes");
  EXPECT_THAT(outcome.findings.front().sentence,
              HasSubstr("spine-0 Ethernet0: after a pause for priority 3"));
  std::swap(Spine(), Leaf());
  outcome = First();
  EXPECT_EQ(outcome.findings.front().host, "20000 of 89088 bytes");
  Spine().negotiates = true;
  EXPECT_EQ(First().verdict, LosslessVerdict::kLossless) << "nobody says what the link runs at";
}

TEST_F(SwitchLinksTest, NameAnEndThatIsLossyByItself) {
  (*Spine().settings.priority_to_queue)[3] = 1;
  lossless::CableOutcome outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(outcome.findings.front().rule, "queue-differs");
  EXPECT_EQ(outcome.findings.front().host, "-");
  EXPECT_THAT(outcome.findings.front().sentence, HasSubstr("spine-0 Ethernet0: "));
  std::swap(Spine(), Leaf());
  outcome = First();
  EXPECT_EQ(outcome.findings.front().leaf, "-");
  EXPECT_THAT(outcome.findings.front().sentence, HasSubstr("leaf-0 Ethernet0: "));
}

TEST_F(SwitchLinksTest, ToASwitchOfOpenConfigAreComparedByTheirLine) {
  formats::SonicConfig& spine = configs[2];
  spine.bare = std::move(spine.ports);
  spine.ports.clear();
  for (formats::SonicPort& port : spine.bare) {
    port.settings = {};
    port.bare = kNoPfcPath;
  }
  lossless::CableOutcome outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kUnproved);
  ASSERT_THAT(outcome.findings, SizeIs(1));
  EXPECT_THAT(outcome.findings[0].sentence, HasSubstr("spine-0 Ethernet0 speaks OpenConfig"));
  EXPECT_THAT(outcome.findings[0].next, HasSubstr("by hand"));
  spine.bare[0].speed_mbps = 100'000;
  outcome = First();
  EXPECT_EQ(outcome.verdict, LosslessVerdict::kContradiction);
  EXPECT_EQ(outcome.findings.front().rule, "link-speed");
}

TEST_F(SwitchLinksTest, HaveOneSpeedWhereAnEndNegotiates) {
  Spine().speed_mbps = 100'000;
  EXPECT_EQ(First().findings.at(0).rule, "link-speed");
  Spine().negotiates = true;
  EXPECT_EQ(First().verdict, LosslessVerdict::kLossless);
}

// Two vendors may count the same frame as 9216, 9230 with Ethernet's header, 9234 or 9238 with a tag or a checksum, too.
TEST_F(SwitchLinksTest, BetweenTwoOfOpenConfigContradictWhereNoReadingMakesTheirMtusOne) {
  SpeakOpenConfig(0);
  SpeakOpenConfig(2);
  for (const int header : {0, 4, 14, 18, 22, 26}) {
    EXPECT_EQ(RuleOf(9216, 9216 + header), "") << header;
    EXPECT_EQ(RuleOf(9216 + header, 9216), "") << header;
  }
  EXPECT_EQ(RuleOf(9216, std::nullopt), "");
  EXPECT_EQ(RuleOf(std::nullopt, 1500), "");
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved) << "whatever the MTU, nobody knows their PFC";
  EXPECT_EQ(RuleOf(9243, 9216), "switch-link-mtu");
  EXPECT_EQ(RuleOf(1500, 9216), "switch-link-mtu");
  const lossless::CableFinding worst = First().findings.front();
  EXPECT_EQ(worst.setting, "mtu");
  EXPECT_EQ(worst.host, "1500");
  EXPECT_EQ(worst.leaf, "9216");
  EXPECT_THAT(worst.sentence, HasSubstr("leaf-0 Ethernet0 has mtu 1500, and spine-0 Ethernet0 has 9216"));
}

// SONiC's MTU is of packets: that of OpenConfig may be the same number, or larger by what is around them.
TEST_F(SwitchLinksTest, BetweenSonicAndOpenConfigContradictWhereNoReadingMakesTheirMtusOne) {
  SpeakOpenConfig(2);
  for (const int header : {0, 4, 14, 18, 22, 26}) EXPECT_EQ(RuleOf(9100, 9100 + header), "") << header;
  EXPECT_EQ(RuleOf(9100, std::nullopt), "");
  EXPECT_EQ(RuleOf(std::nullopt, 1500), "");
  EXPECT_EQ(RuleOf(9100, 9127), "switch-link-mtu");
  EXPECT_EQ(RuleOf(1500, 9216), "switch-link-mtu");
  // Even where that is of packets, too, SONiC's frames are longer.
  EXPECT_EQ(RuleOf(9100, 9099), "link-frame");
  EXPECT_EQ(RuleOf(9100, 9086), "link-frame");
  EXPECT_EQ(RuleOf(9100, 1500), "link-frame");
  const lossless::CableFinding worst = First().findings.front();
  EXPECT_EQ(worst.setting, "frame");
  EXPECT_EQ(worst.host, "9118 bytes");
  EXPECT_EQ(worst.leaf, "1518 bytes");
  EXPECT_EQ(worst.sentence, "the MTU of 9100 at leaf-0 Ethernet0 makes frames that spine-0 Ethernet0 drops");
}

TEST_F(SwitchLinksTest, FromALeafOfOpenConfigAreComparedTheOtherWayRound) {
  SpeakOpenConfig(0);
  EXPECT_EQ(RuleOf(9118, 9100), "");
  EXPECT_EQ(RuleOf(9127, 9100), "switch-link-mtu");
  EXPECT_EQ(RuleOf(1500, 9100), "link-frame");
  const lossless::CableFinding worst = First().findings.front();
  EXPECT_EQ(worst.host, "1518 bytes");
  EXPECT_EQ(worst.leaf, "9118 bytes");
  EXPECT_EQ(worst.sentence, "the MTU of 9100 at spine-0 Ethernet0 makes frames that leaf-0 Ethernet0 drops");
}

TEST_F(SwitchLinksTest, OfSonicsPortThatIsBareHaveNoMtuToCompare) {
  SpeakOpenConfig(2);
  formats::SonicConfig& leaf = configs[0];
  leaf.bare.push_back({.name = "Ethernet0", .alias = "etp1", .bare = "is shut down"});
  leaf.ports.erase(leaf.ports.begin());
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved);
  EXPECT_THAT(First().findings, SizeIs(1)) << "not-known";
}

TEST_F(SwitchLinksTest, WithTheSameFaultNameTheirOwnEnds) {
  for (formats::SonicConfig& config : configs) {
    if (config.hostname.starts_with("leaf")) continue;
    for (formats::SonicPort& port : config.ports) port.settings.mtu = 1500;
  }
  const auto links = Find();
  ASSERT_THAT(links, SizeIs(4));
  for (const SwitchLink& link : links) {
    ASSERT_FALSE(link.outcome.findings.empty());
    EXPECT_EQ(link.outcome.findings.front().sentence, link.lower + " " + link.lower_port +
                                                          " has mtu 9216, and " + link.upper + " " +
                                                          link.upper_port + " has 1500");
  }
  // One that is set otherwise is told otherwise, whichever is looked at first.
  Leaf().settings.mtu = 1500;
  EXPECT_EQ(First().verdict, LosslessVerdict::kLossless);
  EXPECT_EQ(Find()[1].outcome.verdict, LosslessVerdict::kContradiction);
}

TEST_F(SwitchLinksTest, AreOneWhetherTheirRowsGoByNameOrByAlias) {
  auto row = seen[2].extract("Ethernet0");
  row.key() = "etp1";
  seen[2].insert(std::move(row));
  const auto links = Find();
  ASSERT_THAT(links, SizeIs(4));
  EXPECT_EQ(links[0].upper_port, "Ethernet0");
  EXPECT_EQ(links[0].outcome.verdict, LosslessVerdict::kLossless);
}

TEST_F(SwitchLinksTest, OfTwoSwitchesWithOneNameBelongToNeither) {
  configs[3].hostname = "spine-0";
  EXPECT_THAT(Find(), IsEmpty());
}

}  // namespace
}  // namespace heddle::switches
