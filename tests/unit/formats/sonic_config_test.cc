#include "formats/sonic_config.h"

#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "qos_text.h"

namespace heddle::formats {
namespace {

using lossless::PrioritySet;
using test::LosslessFixture;
using test::Replaced;
using testing::ElementsAre;
using testing::HasSubstr;

// Of the whole, or of the first port that cannot be read.
std::string Refusal(const std::string& text) {
  const auto read = ParseSonicConfig(text);
  if (!read) return read.error().message;
  for (const SonicPort& port : read->bare) {
    if (port.bare.starts_with(kCannotBeRead)) return port.bare;
  }
  return "was read";
}

TEST(SonicConfig, ReadsTheMapsThatAPortNames) {
  const auto config = ParseSonicConfig(LosslessFixture("sonic-default.json"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->hostname, "leaf-3");
  ASSERT_EQ(config->ports.size(), 2u);
  EXPECT_EQ(config->ports[0].name, "Ethernet0");
  EXPECT_EQ(config->ports[1].name, "Ethernet4");
  EXPECT_THAT(config->notes, ElementsAre("1 port is shut down and left out"));
  const lossless::PortSettings& port = config->ports[0].settings;
  EXPECT_EQ(port.trust, lossless::Trust::kDscp);
  EXPECT_EQ((*port.dscp_to_priority)[26], 1);
  EXPECT_EQ((*port.dscp_to_priority)[4], 4);
  EXPECT_EQ(lossless::PriorityOf(port, 26), 0) << "TC 1 is in priority group 0";
  EXPECT_EQ(port.pfc, (PrioritySet{3, 4}));
  EXPECT_EQ(port.watched, (PrioritySet{3, 4}));
  EXPECT_EQ(port.watchdog_ms, 200);
  EXPECT_EQ(port.mtu, 9100);
  EXPECT_EQ(port.ecn, (PrioritySet{3, 4}));
  EXPECT_EQ(port.marking->at(3), (lossless::EcnMarking{1'048'576, 2'097'152, 5}));
  EXPECT_EQ((*port.pause_to_queue)[3], 3);
}

TEST(SonicConfig, TakesWhatAWholeConfigurationLacksForOff) {
  const auto config = ParseSonicConfig(R"({"PORT": {"Ethernet0": {"mtu": "1500"}}})");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->ports.size(), 1u);
  const lossless::PortSettings& port = config->ports[0].settings;
  EXPECT_EQ(port.pfc, PrioritySet{});
  EXPECT_EQ(port.watched, PrioritySet{});
  EXPECT_EQ(port.ecn, PrioritySet{});
  EXPECT_FALSE(port.dscp_to_priority || port.trust);
}

TEST(SonicConfig, PutsAllInOneClassWhereAPortWithPfcHasNoMap) {
  const auto config = ParseSonicConfig(R"({"PORT": {"Ethernet0": {}, "Ethernet4": {}},
      "DOT1P_TO_TC_MAP": {"M": {"3": "3"}},
      "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}, "Ethernet4": {"pfc_enable": "3", "dot1p_to_tc_map": "M"}}})");
  ASSERT_TRUE(config) << config.error().message;
  const lossless::PortSettings& port = config->ports.at(0).settings;
  EXPECT_EQ(port.dscp_to_priority, lossless::AllDscps(0));
  EXPECT_EQ(lossless::IsLossless(port, 26), std::optional(false));
  EXPECT_EQ(config->ports.at(1).settings.trust, lossless::Trust::kPcp);
  EXPECT_EQ(config->ports.at(1).settings.dscp_to_priority, std::nullopt);
}

TEST(SonicConfig, SaysNothingOfWhatAPartLeavesOut) {
  const auto config = ParseSonicConfig(R"({"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}})");
  ASSERT_TRUE(config);
  const lossless::PortSettings& port = config->ports.at(0).settings;
  EXPECT_EQ(port.pfc, PrioritySet{3});
  EXPECT_FALSE(port.watched || port.watchdog_ms || port.ecn || port.marking || port.mtu);
}

// orchagent/qosorch.cpp of sonic-swss: without pfcwd_sw_enable no queue is watched; before 202205 pfc_enable said them.
TEST(SonicConfig, DoesNotKnowWhatIsWatchedWhereAPortWithPfcDoesNotSayIt) {
  const auto watched = [](const std::string& map) {
    const auto config =
        ParseSonicConfig(R"({"PORT": {"Ethernet0": {}}, "PORT_QOS_MAP": {"Ethernet0": {)" + map + R"(}},
            "PFC_WD": {"Ethernet0": {"action": "drop", "detection_time": "200", "restoration_time": "200"}}})");
    EXPECT_TRUE(config);
    EXPECT_EQ(config->ports.at(0).settings.watchdog_ms, 200);
    return config->ports.at(0).settings.watched;
  };
  EXPECT_EQ(watched(R"("pfc_enable": "3,4")"), std::nullopt);
  EXPECT_EQ(watched(R"("pfc_enable": "3,4", "pfcwd_sw_enable": "3")"), PrioritySet{3});
  EXPECT_EQ(watched(R"("pfc_enable": "3,4", "pfcwd_sw_enable": "")"), PrioritySet{});
  EXPECT_EQ(watched(R"("pfc_enable": "")"), PrioritySet{}) << "there is nothing to watch";
}

TEST(SonicConfig, ReadsNamesInBracketsAndQueuesOfAChassis) {
  const auto config = ParseSonicConfig(R"({
    "DSCP_TO_TC_MAP": {"ROCE": {"26": 3}},
    "WRED_PROFILE": {"W": {"ecn": "ecn_green", "green_min_threshold": "1", "green_max_threshold": "2",
                           "green_drop_probability": "3"}, "OFF": {"ecn": "ecn_none"}},
    "QUEUE": {"host|asic0|Ethernet0,Ethernet4|3": {"wred_profile": "[WRED_PROFILE|W]"},
              "Ethernet4|4": {"wred_profile": "OFF"}, "Ethernet4|8-9": {"wred_profile": "W"}},
    "PORT_QOS_MAP": {"global": {"dscp_to_tc_map": "ROCE"}, "Ethernet4": {"pfc_enable": ""},
                     "Ethernet0": {"dscp_to_tc_map": "[DSCP_TO_TC_MAP|ROCE]", "pfc_enable": "3"},
                     "Ethernet12": {"dot1p_to_tc_map": "AZURE"}}})");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->ports.size(), 3u);
  EXPECT_EQ(config->ports[2].name, "Ethernet12") << "in the order of numbers";
  for (std::size_t i : {0, 1}) {
    EXPECT_EQ((*config->ports[i].settings.dscp_to_priority)[26], 3);
    EXPECT_EQ((*config->ports[i].settings.dscp_to_priority)[0], lossless::kNotSaid);
    EXPECT_EQ(config->ports[i].settings.ecn, PrioritySet{3});
  }
  EXPECT_EQ(config->ports[0].settings.marking->at(3), (lossless::EcnMarking{1, 2, 3}));
  EXPECT_EQ(config->ports[2].settings.trust, lossless::Trust::kPcp);
}

// cfgmgr/teammgr.cpp of sonic-swss: "the port's MTU will be inherited from the master's".
TEST(SonicConfig, GivesAPortOfAPortChannelTheMtuOfThePortChannel) {
  const auto config = ParseSonicConfig(R"({
    "PORT": {"Ethernet0": {"mtu": "9216"}, "Ethernet4": {}, "Ethernet8": {"mtu": "9216"},
             "Ethernet12": {"mtu": "9216"}, "Ethernet16": {"mtu": "9216"}, "Ethernet20": {"mtu": "9216"}},
    "PORTCHANNEL": {"PortChannel1": {"mtu": "1500"}, "PortChannel2": {"admin_status": "up"}},
    "PORTCHANNEL_MEMBER": {"PortChannel1|Ethernet0": {}, "PortChannel1|Ethernet4": {},
                           "PortChannel2|Ethernet8": {}, "PortChannel3|Ethernet12": {},
                           "PortChannel1|Ethernet16": {}, "PortChannel2|Ethernet16": {}, "nonsense": []}})");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->ports.size(), 6u);
  EXPECT_EQ(config->ports[0].settings.mtu, 1500);
  EXPECT_EQ(config->ports[1].settings.mtu, 1500);
  EXPECT_EQ(config->ports[2].settings.mtu, std::nullopt) << "the port channel says none";
  EXPECT_EQ(config->ports[3].settings.mtu, std::nullopt) << "there is no such port channel";
  EXPECT_EQ(config->ports[4].settings.mtu, std::nullopt) << "two port channels claim it";
  EXPECT_EQ(config->ports[5].settings.mtu, 9216) << "it is in none";
  EXPECT_THAT(Refusal(R"({"PORT": {"Ethernet0": {"mtu": "9216"}}, "PORTCHANNEL_MEMBER": {"Po1|Ethernet0": {}},
                          "PORTCHANNEL": {"Po1": {"mtu": "large"}}})"),
              HasSubstr("PORTCHANNEL|Po1: mtu \"large\" is not 68 to 65535"));
}

// buffers_config.j2 of sonic-buildimage; of a group without xoff nothing arrives whole after a pause.
TEST(SonicConfig, GivesAGroupWithALossyProfileNoRoomUnlessTheSwitchSizesHeadroomItself) {
  const auto port = [](const std::string& model, const std::string& profile) {
    const auto config =
        ParseSonicConfig(R"({"DEVICE_METADATA": {"localhost": {"buffer_model": ")" + model + R"("}},
            "BUFFER_PROFILE": {
              "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "3"},
              "pg_lossless_400000_3m_profile": {"pool": "ingress_lossless_pool", "size": "1", "xoff": "40000"},
              "sized_later": {"pool": "ingress_lossless_pool", "headroom_type": "dynamic"},
              "sized_anyway": {"pool": "ingress_lossless_pool", "headroom_type": "dynamic", "xoff": "40000"}},
            "BUFFER_PG": {"Ethernet0|0": {"profile": "[BUFFER_PROFILE|ingress_lossy_profile]"},
                          "Ethernet0|3-4": {"profile": ")" +
                         profile + R"("}},
            "PORT": {"Ethernet0": {}}})");
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings;
  };
  constexpr int kNothing = lossless::kNotSaid;
  using lossless::Numbers;
  EXPECT_EQ(port("traditional", "pg_lossless_400000_3m_profile").buffer_bytes,
            (Numbers{0, kNothing, kNothing, 40'000, 40'000, kNothing, kNothing, kNothing}));
  EXPECT_EQ(port("traditional", "ingress_lossy_profile").buffer_bytes,
            (Numbers{0, kNothing, kNothing, 0, 0, kNothing, kNothing, kNothing}));
  EXPECT_EQ(port("traditional", "sized_later").buffer_bytes,
            (Numbers{0, kNothing, kNothing, kNothing, kNothing, kNothing, kNothing, kNothing}));
  EXPECT_EQ(port("dynamic", "sized_anyway").buffer_bytes, std::nullopt) << "its xoff counts for nothing";
  EXPECT_EQ(port("dynamic", "ingress_lossy_profile").buffer_bytes, std::nullopt);
  EXPECT_EQ(port("dynamic", "pg_lossless_400000_3m_profile").buffer_bytes->at(3), 40'000);
}

// A pause says its priority, and which group asks for it a map says, of Mellanox's and Barefoot's chips.
TEST(SonicConfig, KnowsAGroupByThePauseThatAsksForIt) {
  const auto port = [](const std::string& map, const std::string& pfc) {
    const auto config = ParseSonicConfig(
        R"({"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "M", "tc_to_pg_map": "M", "pfc_enable": ")" +
        pfc +
        R"(", "pfc_to_pg_map": "M"}},
            "DSCP_TO_TC_MAP": {"M": {"26": "3", "46": "5", "0": "0"}},
            "TC_TO_PRIORITY_GROUP_MAP": {"M": {"0": "0", "3": "3", "5": "5"}},
            "BUFFER_PROFILE": {"p": {"xoff": "40000"}}, "BUFFER_PG": {"Ethernet0|3": {"profile": "p"}},
            "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"M": )" +
        map + "}}");
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings;
  };
  const lossless::PortSettings other = port(R"({"5": "3"})", "3");
  EXPECT_EQ(lossless::PriorityOf(other, 26), 5);
  EXPECT_EQ(lossless::IsLossless(other, 26), false) << "the pause of its group is not on";
  EXPECT_EQ(lossless::PriorityOf(other, 46), lossless::kNotSaid) << "priority 5 pauses for group 3";
  EXPECT_EQ(other.buffer_bytes->at(5), 40'000);
  EXPECT_EQ(other.buffer_bytes->at(3), lossless::kNotSaid);
  const lossless::PortSettings template_map = port(R"({"3": "3", "4": "4"})", "3,4");
  EXPECT_EQ(lossless::PriorityOf(template_map, 26), 3);
  EXPECT_EQ(lossless::PriorityOf(template_map, 0), 0) << "what it leaves out stays as it is";
  EXPECT_EQ(template_map.buffer_bytes->at(3), 40'000);
  EXPECT_EQ(lossless::PriorityOf(port(R"({"2": "3", "3": "3"})", "3"), 26), 3) << "of several one with PFC";
  EXPECT_EQ(lossless::PriorityOf(port(R"({"2": "3", "3": "3"})", "2"), 26), 2);
  EXPECT_EQ(lossless::PriorityOf(port(R"({"2": "3", "3": "3"})", "2,3"), 26), 3) << "of those its own";
}

TEST(SonicConfig, TakesAWatchdogForOneUnlessItOnlyTells) {
  const std::string live = LosslessFixture("sonic-default.json");
  const auto time = [&](const std::string& action) {
    const auto config = ParseSonicConfig(Replaced(live, "\"action\": \"drop\"", action));
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings.watchdog_ms;
  };
  EXPECT_EQ(time("\"action\": \"alert\""), lossless::kWatchdogAlerts);
  EXPECT_EQ(time("\"action\": \"forward\""), 200);
  EXPECT_EQ(time("\"is\": \"of no matter\""), 200) << "without one it is drop";
}

TEST(SonicConfig, TellsWhichPausesStopAQueueWithALossyBuffer) {
  const auto config = ParseSonicConfig(R"({
    "BUFFER_PROFILE": {"egress_lossless_profile": {"pool": "egress_lossless_pool", "static_th": "32740352"},
                       "q_lossy_profile": {"pool": "egress_lossy_pool", "dynamic_th": "3"},
                       "mine": {"pool": "[BUFFER_POOL|egress_lossy_pool]"},
                       "yours": {"pool": "egress_lossless_pool"}, "theirs": {"pool": "egress_pool"}},
    "BUFFER_QUEUE": {"Ethernet0|0-2": {"profile": "q_lossy_profile"},
                     "Ethernet0|3": {"profile": "egress_lossless_profile"}, "Ethernet0|4": {"profile": "mine"},
                     "Ethernet0|5": {"profile": "NULL"}, "Ethernet0|6": {"profile": "theirs"},
                     "Ethernet0|7": {"profile": "yours"}},
    "MAP_PFC_PRIORITY_TO_QUEUE": {"M": {"1": "6", "2": "7", "3": "3", "4": "4", "6": "0"}},
    "PORT_QOS_MAP": {"Ethernet0": {"pfc_to_queue_map": "M"}, "Ethernet4": {"pfc_enable": ""}},
    "PORT": {"Ethernet0": {}, "Ethernet4": {}}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ports.at(0).settings.lossy_queues, (PrioritySet{4, 6}));
  EXPECT_EQ(config->ports.at(0).settings.lossless_queues, (PrioritySet{2, 3}))
      << "of the queues 5 and 6 nobody says anything";
  EXPECT_EQ(config->ports.at(1).settings.lossy_queues, std::nullopt) << "it has no BUFFER_QUEUE";
  EXPECT_EQ(config->ports.at(1).settings.lossless_queues, std::nullopt);
}

// cfgmgr/buffermgrdyn.cpp of sonic-swss; 0m is SONiC's length of an unused port.
TEST(SonicConfig, TellsForWhichGroupsTheSwitchReckonsHeadroomItself) {
  const auto sized = [](const std::string& model, const std::string& row, const std::string& length) {
    const auto config =
        ParseSonicConfig(R"({"DEVICE_METADATA": {"localhost": {"buffer_model": ")" + model + R"("}},
            "BUFFER_PROFILE": {"mine": {"headroom_type": "dynamic", "dynamic_th": "0"},
                               "fixed": {"xoff": "40000"}, "lossy": {"dynamic_th": "3"}},
            "BUFFER_PG": {"Ethernet0|3": )" +
                         row + R"(}, "CABLE_LENGTH": {"AZURE": {"Ethernet0": ")" + length + R"("}},
            "PORT": {"Ethernet0": {}}})");
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings.sized_by_switch;
  };
  const std::string null = R"({"profile": "NULL"})";
  EXPECT_EQ(sized("dynamic", null, "5m"), PrioritySet{3});
  EXPECT_EQ(sized("dynamic", R"({"profile": "mine"})", "5m"), PrioritySet{3});
  EXPECT_EQ(sized("dynamic", R"({"profile": "fixed"})", "5m"), std::nullopt);
  EXPECT_EQ(sized("dynamic", R"({"profile": "lossy"})", "5m"), std::nullopt);
  EXPECT_EQ(sized("dynamic", "{}", "5m"), std::nullopt);
  EXPECT_EQ(sized("dynamic", R"({"NULL": "NULL"})", "5m"), std::nullopt)
      << "SONiC takes no field but profile";
  EXPECT_EQ(sized("dynamic", R"({"NULL": "NULL", "profile": "NULL"})", "5m"), std::nullopt);
  EXPECT_EQ(sized("dynamic", R"("NULL")", "5m"), std::nullopt) << "it is no row";
  EXPECT_EQ(sized("dynamic", null, "0m"), std::nullopt);
  EXPECT_EQ(sized("dynamic", null, "None"), std::nullopt);
  EXPECT_EQ(sized("traditional", null, "5m"), std::nullopt);
  EXPECT_EQ(sized("traditional", R"({"profile": "mine"})", "5m"), std::nullopt);
}

TEST(SonicConfig, SaysNothingOfAGroupOrAQueueOfWhichTwoRowsDoNotAgree) {
  const auto port = [](const std::string& group, const std::string& queue) {
    const auto config = ParseSonicConfig(R"({
        "BUFFER_PROFILE": {"lossless": {"xoff": "40000"}, "lossy": {"dynamic_th": "3"}},
        "BUFFER_PG": {"Ethernet0|3-4": {"profile": "lossless"}, "Ethernet0|3": {"profile": ")" +
                                         group + R"("}},
        "BUFFER_QUEUE": {"Ethernet0|3-4": {"profile": "lossless"}, "Ethernet0|3": {"profile": ")" +
                                         queue + R"("}},
        "PORT": {"Ethernet0": {}}})");
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings;
  };
  const lossless::PortSettings one = port("lossless", "lossless");
  EXPECT_EQ(one.buffer_bytes->at(3), 40'000);
  EXPECT_EQ(one.lossless_queues, (PrioritySet{3, 4}));
  const lossless::PortSettings two = port("lossy", "lossy");
  EXPECT_EQ(two.buffer_bytes->at(3), lossless::kNotSaid);
  EXPECT_EQ(two.buffer_bytes->at(4), 40'000);
  EXPECT_EQ(two.lossless_queues, PrioritySet{4});
  EXPECT_EQ(two.lossy_queues, PrioritySet{});
}

TEST(SonicConfig, SaysNotFromWhereAQueueMarksOfWhichTwoRowsDoNotAgree) {
  const auto port = [](const std::string& profile) {
    const auto config = ParseSonicConfig(R"({
        "WRED_PROFILE": {"early": {"ecn": "ecn_all", "green_min_threshold": "1000",
                                   "green_max_threshold": "2000", "green_drop_probability": "5"},
                         "late": {"ecn": "ecn_all", "green_min_threshold": "5000",
                                  "green_max_threshold": "9000", "green_drop_probability": "5"}},
        "QUEUE": {"Ethernet0|3-4": {"wred_profile": "early"}, "Ethernet0|3": {"wred_profile": ")" +
                                         profile + R"("}},
        "PORT": {"Ethernet0": {}}})");
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings;
  };
  EXPECT_EQ(port("early").marking->at(3).min_bytes, 1000);
  const lossless::PortSettings two = port("late");
  EXPECT_EQ(two.ecn, (PrioritySet{3, 4}));
  EXPECT_EQ(two.marking->count(3), 0u);
  EXPECT_EQ(two.marking->at(4).min_bytes, 1000);
}

TEST(SonicConfig, SaysNothingOfHowAQueueIsSentOfWhichTwoRowsDoNotAgree) {
  const auto port = [](const std::string& scheduler) {
    const auto config = ParseSonicConfig(R"({
        "SCHEDULER": {"strict": {"type": "STRICT"}, "shared": {"type": "DWRR", "weight": "20"}},
        "QUEUE": {"Ethernet0|3-4": {"scheduler": "shared"}, "Ethernet0|3": {"scheduler": ")" +
                                         scheduler + R"("}},
        "PORT": {"Ethernet0": {}}})");
    EXPECT_TRUE(config) << config.error().message;
    return config->ports.at(0).settings;
  };
  EXPECT_EQ(port("shared").class_algorithm->at(3), lossless::Algorithm::kEts);
  const lossless::PortSettings two = port("strict");
  EXPECT_EQ(two.class_algorithm->at(3), lossless::Algorithm::kAny);
  EXPECT_EQ(two.class_algorithm->at(4), lossless::Algorithm::kEts);
}

TEST(SonicConfig, NamesTheBufferThatIsNotThereOrCannotBeRead) {
  const auto why = [](const std::string& rows) {
    return Refusal(R"({"BUFFER_POOL": {"pool": {}}, "BUFFER_PROFILE": {
        "nowhere": {"pool": "gone"}, "garbage": {"pool": "pool", "xoff": "many"}}, )" +
                   rows + R"(, "PORT": {"Ethernet0": {}}})");
  };
  EXPECT_THAT(why(R"("BUFFER_PG": {"Ethernet0|3-4": {"profile": "none"}})"),
              HasSubstr("BUFFER_PG|Ethernet0|3-4: profile names none, which is not in BUFFER_PROFILE"));
  EXPECT_THAT(why(R"("BUFFER_PG": {"Ethernet0|3": {"profile": "nowhere"}})"),
              HasSubstr("BUFFER_PROFILE|nowhere: pool names gone, which is not in BUFFER_POOL"));
  EXPECT_THAT(why(R"("BUFFER_PG": {"Ethernet0|3": {"profile": "[BUFFER_PROFILE|garbage]"}})"),
              HasSubstr("BUFFER_PROFILE|garbage: xoff \"many\" is not 0 to 1073741824"));
  EXPECT_THAT(why(R"("BUFFER_QUEUE": {"Ethernet0|3": {"profile": "none"}})"),
              HasSubstr("BUFFER_QUEUE|Ethernet0|3: profile names none, which is not in BUFFER_PROFILE"));
  EXPECT_THAT(why(R"("BUFFER_QUEUE": {"Ethernet0|3": {"profile": "nowhere"}})"),
              HasSubstr("BUFFER_PROFILE|nowhere: pool names gone, which is not in BUFFER_POOL"));
}

TEST(SonicConfig, TellsPortsThatNegotiate) {
  const auto config = ParseSonicConfig(R"({"PORT": {
    "Ethernet0": {"autoneg": "on", "speed": "400000", "fec": "rs"}, "Ethernet4": {"autoneg": "1"},
    "Ethernet8": {"autoneg": "off", "fec": "rs"}, "Ethernet12": {"fec": "rs"}}})");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->ports.size(), 4u);
  EXPECT_TRUE(config->ports[0].negotiates && config->ports[1].negotiates);
  EXPECT_EQ(config->ports[0].fec, "auto") << "it is agreed on, too";
  EXPECT_EQ(config->ports[0].speed_mbps, 400'000);
  EXPECT_FALSE(config->ports[2].negotiates || config->ports[3].negotiates);
  EXPECT_EQ(config->ports[2].fec, "rs");
}

TEST(SonicConfig, ReadsAllOtherPortsWhereOneCannotBeRead) {
  using Json = nlohmann::json;
  const auto why = [](const std::function<void(Json&)>& spoil) {
    Json live = Json::parse(LosslessFixture("sonic-default.json"));
    spoil(live);
    const auto config = ParseSonicConfig(live.dump());
    EXPECT_TRUE(config) << config.error().message;
    if (!config || config->ports.size() != 1 || config->bare.empty()) return std::string("not one port");
    EXPECT_EQ(config->ports[0].name, "Ethernet4");
    EXPECT_EQ(config->ports[0].settings.pfc, (PrioritySet{3, 4}));
    EXPECT_EQ(config->bare[0].name, "Ethernet0");
    EXPECT_EQ(config->bare[0].speed_mbps, 400'000) << "that much is known of it";
    EXPECT_THAT(config->notes, testing::Contains(HasSubstr("1 port cannot be read and is left out: ")));
    return config->bare[0].bare;
  };
  EXPECT_EQ(why([](Json& live) { live["PORT_QOS_MAP"]["Ethernet0"]["tc_to_pg_map"] = "ROCE"; }),
            "cannot be read (PORT_QOS_MAP|Ethernet0: tc_to_pg_map names ROCE, which is not in "
            "TC_TO_PRIORITY_GROUP_MAP)");
  EXPECT_EQ(why([](Json& live) { live["QUEUE"]["Ethernet0|1"]["wred_profile"] = "GONE"; }),
            "cannot be read (QUEUE|Ethernet0|1: wred_profile names GONE, which is not in WRED_PROFILE)");
  EXPECT_EQ(why([](Json& live) {
              live["SCHEDULER"]["mine"] = {{"type", "DWRR"}, {"weight", "0"}};
              live["QUEUE"]["Ethernet0|1"]["scheduler"] = "mine";
            }),
            "cannot be read (SCHEDULER|mine: weight \"0\" is not 1 to 100)");
  EXPECT_EQ(why([](Json& live) { live["PFC_WD"]["Ethernet0"]["action"] = "ignore"; }),
            "cannot be read (PFC_WD|Ethernet0: action \"ignore\" is none of drop, forward and alert)");
}

// sonic-types.yang, tc_type: 0 to 15. None of those from 8 on is a priority of the other end.
TEST(SonicConfig, TakesAsManyTrafficClassesAsThereAre) {
  std::string text = Replaced(LosslessFixture("sonic-default.json"), "\"46\": \"5\"", "\"46\": \"15\"");
  nlohmann::json live = nlohmann::json::parse(text);
  live["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"]["15"] = "0";
  live["TC_TO_QUEUE_MAP"]["AZURE"]["15"] = "9";
  live["TC_TO_QUEUE_MAP"]["AZURE"]["6"] = "8";
  const auto config = ParseSonicConfig(live.dump());
  ASSERT_TRUE(config) << config.error().message;
  const lossless::PortSettings& port = config->ports.at(0).settings;
  EXPECT_EQ((*port.dscp_to_priority)[46], lossless::kNotSaid);
  EXPECT_EQ((*port.dscp_to_priority)[4], 4);
  EXPECT_EQ(port.priority_to_group, (lossless::PriorityTable{0, 0, 0, 3, 4, 0, 0, 7}));
  EXPECT_EQ(port.priority_to_queue, (lossless::PriorityTable{0, 1, 2, 3, 4, 5, lossless::kNotSaid, 7}));
}

// orchagent/qosorch.cpp of sonic-swss takes such a row apart.
TEST(SonicConfig, ReadsARowOfSeveralPortsAsOneOfEach) {
  const auto config = ParseSonicConfig(R"({"PORT": {"Ethernet0": {}, "Ethernet4": {}, "Ethernet8": {}},
      "PORT_QOS_MAP": {"Ethernet0,Ethernet4": {"pfc_enable": "3"}, "Ethernet4": {"pfcwd_sw_enable": "3"},
                       "Ethernet4,Ethernet8": {"pfc_enable": "3,4"}}})");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->ports.size(), 2u);
  EXPECT_EQ(config->ports[0].name, "Ethernet0");
  EXPECT_EQ(config->ports[0].settings.pfc, PrioritySet{3});
  EXPECT_EQ(config->ports[1].name, "Ethernet8");
  EXPECT_EQ(config->ports[1].settings.pfc, (PrioritySet{3, 4}));
  ASSERT_EQ(config->bare.size(), 1u);
  EXPECT_EQ(config->bare[0].name, "Ethernet4");
  EXPECT_THAT(config->bare[0].bare, HasSubstr("two rows have this port, and pfc_enable differs: leave one"));
}

TEST(SonicConfig, LeavesOutPortsWithoutQosWhereOthersHaveIt) {
  const auto config = ParseSonicConfig(
      R"({"PORT": {"Ethernet0": {}, "Ethernet4": {}}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}})");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->ports.size(), 1u);
  EXPECT_THAT(config->notes, ElementsAre("1 port has no PORT_QOS_MAP and is left out"));
}

TEST(SonicConfig, NamesTheFieldOrTheLineThatIsWrong) {
  const std::string good = LosslessFixture("sonic-default.json");
  EXPECT_THAT(Refusal(Replaced(good, "\"46\": \"5\"", "\"64\": \"5\"")),
              HasSubstr("DSCP_TO_TC_MAP: \"64\": \"5\" is not 0 to 63 with a value of 0 to 15"));
  EXPECT_THAT(Refusal(Replaced(good, "\"46\": \"5\"", "\"46\": \"16\"")), HasSubstr("\"46\": \"16\""));
  EXPECT_THAT(Refusal(Replaced(good, "\"pfc_enable\": \"3,4\"", "\"pfc_enable\": \"3,9\"")),
              HasSubstr("PORT_QOS_MAP|Ethernet0: pfc_enable \"3,9\" is no list of priorities"));
  EXPECT_THAT(
      Refusal(Replaced(good, "\"tc_to_pg_map\": \"AZURE\"", "\"tc_to_pg_map\": \"ROCE\"")),
      HasSubstr("PORT_QOS_MAP|Ethernet0: tc_to_pg_map names ROCE, which is not in TC_TO_PRIORITY_GROUP_MAP"));
  EXPECT_THAT(Refusal(Replaced(good, "\"mtu\": \"9100\"", "\"mtu\": \"-1\"")),
              HasSubstr("PORT|Ethernet0: mtu"));
  EXPECT_THAT(Refusal(Replaced(good, "\"detection_time\": \"200\"", "\"detection_time\": \"soon\"")),
              HasSubstr("PFC_WD|Ethernet0: detection_time \"soon\""));
  EXPECT_THAT(Refusal(Replaced(good, "\"action\": \"drop\"", "\"action\": \"ignore\"")),
              HasSubstr("PFC_WD|Ethernet0: action \"ignore\" is none of drop, forward and alert"));
  EXPECT_THAT(Refusal(Replaced(good, "\"1048576\"", "\"many\"")), HasSubstr("WRED_PROFILE|AZURE_LOSSLESS"));
  EXPECT_THAT(Refusal(Replaced(good, "Ethernet0|3-4", "Ethernet0|x")), HasSubstr("QUEUE|Ethernet0|x"));
  EXPECT_THAT(Refusal(Replaced(good, "\"leaf-3\",", "\"leaf-3\"")), HasSubstr("line 5: this is no JSON"));
  EXPECT_THAT(Refusal("{}"), HasSubstr("neither PORT nor PORT_QOS_MAP"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("neither"));
  EXPECT_THAT(Refusal("nonsense"), HasSubstr("line 1"));
  EXPECT_THAT(Refusal(std::string(1'000'000, '[')), HasSubstr("levels"));
  EXPECT_THAT(Refusal("{\"PORT\": {\"a\": {\"mtu\": 1e999}}}"), HasSubstr("no JSON"));
}

}  // namespace
}  // namespace heddle::formats
