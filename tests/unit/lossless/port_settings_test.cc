#include "lossless/port_settings.h"

#include <gtest/gtest.h>

#include <set>

#include "lossless/compare.h"
#include "tests/support/seeds.h"

namespace heddle::lossless {
namespace {

TEST(PrioritySet, HoldsZeroToSevenAndNothingElse) {
  PrioritySet set{3, 0, 3, 8, -1, 64};
  EXPECT_EQ(set.Members(), (std::vector<int>{0, 3}));
  EXPECT_EQ(set.bits(), 0x09);
  EXPECT_FALSE(set.Contains(8));
  EXPECT_FALSE(set.Contains(-1));
  EXPECT_EQ(Text(set), "0,3");
  EXPECT_EQ(Text(PrioritySet{}), "none");
}

TEST(DscpRanges, AreShortAndComeBack) {
  DscpMap map = AllDscps(0);
  map[26] = 3;
  map[48] = 6;
  EXPECT_EQ(DscpRanges(map, 0), "0-25,27-47,49-63");
  EXPECT_EQ(DscpRanges(map, 3), "26");
  EXPECT_EQ(DscpRanges(map, 7), "");
  EXPECT_EQ(ParseDscpRanges("26"), (std::vector<int>{26}));
  EXPECT_EQ(ParseDscpRanges("61-63,2"), (std::vector<int>{2, 61, 62, 63}));
  EXPECT_EQ(ParseDscpRanges(""), std::vector<int>{});
}

TEST(DscpRanges, RefuseWhatIsNoListOfDscps) {
  for (const char* text :
       {"64", "-1", "3-2", "3,", ",3", "3,,4", "a", "3-", "1-3,2", "3 ", "26.0", "99999999999"}) {
    EXPECT_FALSE(ParseDscpRanges(text)) << text;
  }
  EXPECT_FALSE(ParseDscpRanges(std::string(300, '1')));
}

TEST(DscpRanges, OfRandomMapsComeBack) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    DscpMap map;
    for (auto& priority : map) priority = std::int8_t(int(random.Below(3)) - 1);
    DscpMap back = AllDscps(kNotSaid);
    for (const int priority : {0, 1}) {
      const auto dscps = ParseDscpRanges(DscpRanges(map, priority));
      ASSERT_TRUE(dscps);
      for (const int dscp : *dscps) back[std::size_t(dscp)] = std::int8_t(priority);
    }
    EXPECT_EQ(back, map);
  }
}

TEST(Settings, HaveANameEachAndAreVisitedInTheirOrder) {
  std::vector<Setting> visited;
  ForEachSetting([&](Setting setting, auto) { visited.push_back(setting); });
  ASSERT_EQ(visited.size(), std::size_t(kSettings));
  std::set<std::string_view> names;
  for (int i = 0; i < kSettings; ++i) {
    EXPECT_EQ(int(visited[std::size_t(i)]), i);
    const std::string_view name = SettingName(Setting(i));
    EXPECT_FALSE(name.empty());
    names.insert(name);
    EXPECT_EQ(ParseSetting(name), Setting(i));
  }
  EXPECT_EQ(names.size(), std::size_t(kSettings));
  int hosts = 0;
  ForEachHostSetting([&](Setting, auto) { ++hosts; });
  EXPECT_EQ(hosts, kHostSettings);
  EXPECT_EQ(SettingName(Setting::kMarking), "marking");
  EXPECT_EQ(SettingName(Setting::kPriorityToBuffer), "priorityToBuffer");
  EXPECT_FALSE(ParseSetting("speed"));
}

TEST(Settings, WordsComeBack) {
  for (const Trust trust : {Trust::kPcp, Trust::kDscp}) EXPECT_EQ(ParseTrust(TrustName(trust)), trust);
  for (const Dcbx dcbx : {Dcbx::kHost, Dcbx::kFirmware, Dcbx::kHostCee})
    EXPECT_EQ(ParseDcbx(DcbxName(dcbx)), dcbx);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ParseAlgorithm(AlgorithmName(Algorithm(i))), Algorithm(i));
  for (int i = 0; i < kDcqcnParameters; ++i) {
    EXPECT_EQ(ParseDcqcnParameter(DcqcnParameterName(DcqcnParameter(i))), DcqcnParameter(i));
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ParseGlobalPause(GlobalPauseName(GlobalPause(i))), GlobalPause(i));
  EXPECT_FALSE(ParseTrust("dscp"));
}

TEST(Settings, SayWhetherADscpIsLosslessOnlyWhereBothFactsAreKnown) {
  PortSettings port;
  EXPECT_EQ(IsLossless(port, 26), std::nullopt);
  port.pfc = PrioritySet{3};
  EXPECT_EQ(IsLossless(port, 26), std::nullopt);
  port.dscp_to_priority = AllDscps(kNotSaid);
  EXPECT_EQ(IsLossless(port, 26), std::nullopt);
  (*port.dscp_to_priority)[26] = 3;
  EXPECT_EQ(IsLossless(port, 26), true);
  EXPECT_EQ(IsLossless(port, 27), std::nullopt);
  port.priority_to_group = Identity();
  (*port.priority_to_group)[3] = 0;
  EXPECT_EQ(IsLossless(port, 26), false);
  EXPECT_EQ(IsLossless(port, 64), std::nullopt);
  port = {};
  port.pfc = PrioritySet{};
  EXPECT_EQ(IsLossless(port, 26), false) << "PFC is off altogether";
}

TEST(Settings, TakeTheDscpOfDataFromEitherByte) {
  PortSettings port;
  EXPECT_EQ(DataDscp(port), std::nullopt);
  port.traffic_class = 104;
  EXPECT_EQ(DataDscp(port), 26);
  port.tos = 0;
  EXPECT_EQ(DataDscp(port), 0);
}

TEST(Compare, SaysEachSettingAloneAndOnlyWhatDiffers) {
  PortSettings want, have;
  want.trust = Trust::kDscp;
  want.pfc = PrioritySet{3};
  want.mtu = 9000;
  want.dscp_to_priority = AllDscps(0);
  (*want.dscp_to_priority)[26] = 3;
  have = want;
  have.cnp_dscp = 48;  // nobody asked
  EXPECT_TRUE(Compare(want, have).compliant());
  have.trust = Trust::kPcp;
  have.pfc = PrioritySet{3, 4};
  (*have.dscp_to_priority)[26] = 0;
  (*have.dscp_to_priority)[24] = (*have.dscp_to_priority)[25] = 3;
  have.mtu.reset();
  const Comparison comparison = Compare(want, have);
  EXPECT_EQ(comparison.drifts, (std::vector<Drift>{{Setting::kTrust, "DSCP", "PCP"},
                                                   {Setting::kDscpToPriority, "DSCP 24-25: 0, DSCP 26: 3",
                                                    "DSCP 24-25: 3, DSCP 26: 0"},
                                                   {Setting::kPfc, "3", "3,4"}}));
  EXPECT_EQ(comparison.unknown, (std::vector<Setting>{Setting::kMtu}));
}

TEST(Compare, WantsNoGlobalPauseBesidePfcAndAsksNothingElsewhere) {
  PortSettings want, have;
  EXPECT_EQ(WithWhatFollows(want), want);
  want.pfc = PrioritySet{};
  EXPECT_EQ(WithWhatFollows(want), want);
  want.pfc = have.pfc = PrioritySet{3};
  have.global_pause = GlobalPause::kBoth;
  EXPECT_EQ(Compare(WithWhatFollows(want), have).drifts,
            (std::vector<Drift>{{Setting::kGlobalPause, "None", "RXTX"}}));
  want.global_pause = GlobalPause::kBoth;
  EXPECT_EQ(WithWhatFollows(want), want) << "what is said counts";
}

TEST(Compare, AsksNothingOfDscpsWhereTheTagIsTrusted) {
  PortSettings want, have;
  want.trust = have.trust = Trust::kPcp;
  want.dscp_to_priority = AllDscps(0);
  have.dscp_to_priority = AllDscps(3);
  EXPECT_TRUE(Compare(WithWhatFollows(want), have).compliant()) << "what is left of a map is not in force";
  have.dscp_to_priority.reset();
  EXPECT_TRUE(Compare(WithWhatFollows(want), have).compliant()) << "nor need anybody read one";
  want.trust = Trust::kDscp;
  EXPECT_EQ(WithWhatFollows(want), want);
}

TEST(Compare, LeavesOpenWhatATableLeavesOpen) {
  PortSettings want, have;
  want.priority_to_class = Identity();
  (*want.priority_to_class)[5] = kNotSaid;
  have.priority_to_class = Identity();
  (*have.priority_to_class)[5] = 0;
  want.dcqcn = Dcqcn{{DcqcnParameter::kRpAiRate, 5}};
  have.dcqcn = Dcqcn{{DcqcnParameter::kRpAiRate, 5}, {DcqcnParameter::kRpGd, 11}};
  want.class_algorithm.emplace().fill(Algorithm::kAny);
  have.class_algorithm.emplace().fill(Algorithm::kVendor);
  EXPECT_TRUE(Compare(want, have).compliant());
  (*have.priority_to_class)[3] = kNotSaid;
  have.dcqcn = Dcqcn{};
  EXPECT_EQ(Compare(want, have).drifts,
            (std::vector<Drift>{{Setting::kPriorityToClass, "priority 3: 3", "priority 3: nothing"},
                                {Setting::kDcqcn, "rpAiRate: 5", "rpAiRate: not known"}}));
}

TEST(Compare, KnowsEverySetting) {
  PortSettings want, have;
  want.dcbx = Dcbx::kHost, have.dcbx = Dcbx::kFirmware;
  want.trust = Trust::kDscp, have.trust = Trust::kPcp;
  want.global_pause = GlobalPause::kNone, have.global_pause = GlobalPause::kBoth;
  want.dscp_to_priority = AllDscps(0), have.dscp_to_priority = AllDscps(1);
  want.pfc = want.ecn = want.watched = PrioritySet{3};
  want.lossy_queues = want.lossless_queues = want.sized_by_switch = PrioritySet{3};
  have.pfc = have.ecn = have.watched = PrioritySet{};
  have.lossy_queues = have.lossless_queues = have.sized_by_switch = PrioritySet{};
  for (auto member :
       {&PortSettings::watchdog_ms, &PortSettings::cable_metres, &PortSettings::mtu, &PortSettings::cnp_dscp,
        &PortSettings::cnp_priority, &PortSettings::tos, &PortSettings::traffic_class}) {
    want.*member = 1, have.*member = 2;
  }
  PriorityTable zero{};
  for (auto member :
       {&PortSettings::priority_to_class, &PortSettings::priority_to_buffer, &PortSettings::priority_to_group,
        &PortSettings::priority_to_queue, &PortSettings::pause_to_queue}) {
    want.*member = Identity(), have.*member = zero;
  }
  want.class_algorithm.emplace().fill(Algorithm::kEts);
  have.class_algorithm.emplace().fill(Algorithm::kVendor);
  want.class_percent.emplace().fill(10), have.class_percent.emplace().fill(20);
  want.buffer_bytes.emplace().fill(10), have.buffer_bytes.emplace().fill(20);
  want.dcqcn = Dcqcn{{DcqcnParameter::kRpGd, 11}}, have.dcqcn = Dcqcn{};
  want.marking = EcnMarkings{{3, {1, 2, 3}}}, have.marking = EcnMarkings{};
  EXPECT_EQ(Compare(want, have).drifts.size(), std::size_t(kSettings));
  EXPECT_EQ(Compare(want, {}).unknown.size(), std::size_t(kSettings));
  EXPECT_TRUE(Compare(want, want).compliant());
  for (int i = 0; i < kSettings; ++i) {
    EXPECT_NE(SettingText(want, Setting(i)), "") << SettingName(Setting(i));
    EXPECT_EQ(SettingText({}, Setting(i)), "");
  }
  EXPECT_EQ(SettingText(want, Setting::kDscpToPriority), "DSCP 0-63: 0");
  have.watchdog_ms = kWatchdogAlerts;
  EXPECT_EQ(SettingText(have, Setting::kWatchdogMs), "alert only");
  EXPECT_EQ(SettingText(want, Setting::kMarking), "priority 3: 1 to 2 bytes, 3 %");
}

}  // namespace
}  // namespace heddle::lossless
