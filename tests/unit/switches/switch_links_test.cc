// Cables between switches: joined by whom either sees, and both ends held against each other.
#include "switches/switch_links.h"

#include <gmock/gmock.h>

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

  std::vector<SwitchLink> Find() const {
    std::vector<KnownSwitch> known;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      known.push_back({.name = configs[i].hostname,
                       .config = i == silent ? nullptr : &configs[i],
                       .neighbours = i == silent ? nullptr : &seen[i],
                       .tier = i < 2 ? 0 : 1});
    }
    return FindSwitchLinks(known);
  }
  // Of leaf-0 Ethernet0 and spine-0 Ethernet0.
  lossless::CableOutcome First() const {
    const auto links = Find();
    return links.empty() ? lossless::CableOutcome{} : links.front().outcome;
  }
  formats::SonicPort& Spine() { return configs[2].ports[0]; }
  formats::SonicPort& Leaf() { return configs[0].ports[0]; }

  std::vector<formats::SonicConfig> configs;
  std::vector<Neighbours> seen;
  std::size_t silent = 99;
};

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

TEST_F(SwitchLinksTest, NeedOneEndThatSaysSoAndBothThatAreAsked) {
  seen[2].clear();
  EXPECT_THAT(Find(), SizeIs(4)) << "the leaves say it";
  silent = 2;
  EXPECT_THAT(Find(), SizeIs(2));
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
  EXPECT_EQ(with([](auto& port) { port.speed_mbps = 100'000; }), "speed");
  EXPECT_EQ(with([](auto& port) { port.fec = "none"; }), "fec");
  EXPECT_EQ(with([](auto& port) { port.fec = "auto"; }), "") << "the link is up";
  EXPECT_EQ(with([](auto& port) { port.bare = "has no PORT_QOS_MAP"; }), "settings");
  EXPECT_EQ(First().verdict, LosslessVerdict::kUnproved);
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
