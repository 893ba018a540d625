#include "formats/sonic_yang.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qos_text.h"

namespace heddle::formats {
namespace {

using Json = nlohmann::json;
using test::LosslessFixture;
using test::Replaced;
using testing::Contains;
using testing::IsEmpty;

std::vector<std::string> Said(const std::string& config) {
  const auto faults = CheckSonic(config);
  EXPECT_TRUE(faults);
  std::vector<std::string> said;
  if (!faults) return said;
  for (const SonicFault& fault : *faults) {
    said.push_back(fault.where + ": " + fault.what);
    EXPECT_TRUE(fault.model.starts_with("sonic-") && fault.model.ends_with(".yang")) << fault.model;
  }
  return said;
}

TEST(SonicYang, HasNothingAgainstAGoodConfiguration) {
  EXPECT_THAT(Said(LosslessFixture("sonic-default.json")), IsEmpty());
  EXPECT_THAT(Said(R"({"PORT": {"Ethernet0": {"mtu": "9216"}}})"), IsEmpty());
}

TEST(SonicYang, NamesWhatTheModelsForbid) {
  const std::string good = LosslessFixture("sonic-default.json");
  const auto said = [&](const char* from, const char* to) { return Said(Replaced(good, from, to)); };
  EXPECT_THAT(said("\"detection_time\": \"200\"", "\"detection_time\": \"50\""),
              Contains("PFC_WD|Ethernet0 detection_time: \"50\" is not 100 to 5000"));
  EXPECT_THAT(said("\"detection_time\": \"200\"", "\"detection_time\": \"150\""),
              Contains("PFC_WD|Ethernet0 detection_time: 150 is less than the POLL_INTERVAL of 200"));
  EXPECT_THAT(said("\"restoration_time\": \"200\"", "\"restoration_time\": \"60001\""),
              Contains("PFC_WD|Ethernet0 restoration_time: \"60001\" is not 100 to 60000"));
  EXPECT_THAT(said("\"POLL_INTERVAL\": \"200\"", "\"POLL_INTERVAL\": \"1001\""),
              Contains("PFC_WD|GLOBAL POLL_INTERVAL: \"1001\" is not 100 to 1000"));
  EXPECT_THAT(said("\"action\": \"drop\"", "\"action\": \"ignore\""),
              Contains("PFC_WD|Ethernet0 action: \"ignore\" is none of drop, forward, alert"));
  EXPECT_THAT(
      said("\"green_max_threshold\": \"2097152\"", "\"green_max_threshold\": \"1\""),
      Contains("WRED_PROFILE|AZURE_LOSSLESS green_max_threshold: 1 is less than where it begins, 1048576"));
  EXPECT_THAT(said("\"green_drop_probability\": \"5\"", "\"green_drop_probability\": \"101\""),
              Contains("WRED_PROFILE|AZURE_LOSSLESS green_drop_probability: \"101\" is not 0 to 100"));
  EXPECT_THAT(said("\"ecn\": \"ecn_all\"", "\"ecn\": \"on\""),
              Contains(testing::HasSubstr("ecn: \"on\" is none of")));
  EXPECT_THAT(said("\"pfc_enable\": \"3,4\"", "\"pfc_enable\": \"3, 4\""),
              Contains("PORT_QOS_MAP|Ethernet0 pfc_enable: \"3, 4\" is no list as 3,4, without spaces"));
  EXPECT_THAT(said("\"tc_to_queue_map\": \"AZURE\"", "\"tc_to_queue_map\": \"BLUE\""),
              Contains("PORT_QOS_MAP|Ethernet0 tc_to_queue_map: \"BLUE\" is not in TC_TO_QUEUE_MAP"));
  EXPECT_THAT(said("\"mtu\": \"9100\"", "\"mtu\": \"9217\""),
              Contains("PORT|Ethernet0 mtu: \"9217\" is not 68 to 9216"));
  EXPECT_THAT(said("\"Ethernet0|3-4\"", "\"Ethernet9|3-4\""),
              Contains("QUEUE|Ethernet9|3-4: there is no port \"Ethernet9\""));
  EXPECT_THAT(said("\"Ethernet0|3-4\"", "\"Ethernet0|4-3\""), Contains(testing::HasSubstr("PORT|FROM-TO")));
}

TEST(SonicYang, LooksAtMapsSchedulersAndBuffers) {
  EXPECT_THAT(
      Said(R"({"PORT": {"Ethernet0": {}},
      "DSCP_TO_TC_MAP": {"-A": {"64": "1", "1": "16"}, "B": 7},
      "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"M": {"8": "1", "3": "8"}},
      "SCHEDULER": {"s": {"type": "FIFO", "weight": "0"}},
      "BUFFER_POOL": {"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "1000000"}},
      "BUFFER_PROFILE": {"p": {"pool": "none", "dynamic_th": "9", "xoff": "many"}},
      "BUFFER_PG": {"Ethernet0|8": {"profile": "p"}, "Ethernet0|3": {"profile": "q"}, "Ethernet0|4": {"profile": "NULL"}},
      "PORT_QOS_MAP": {"Ethernet0": {"scheduler": "t"}}})"),
      testing::UnorderedElementsAre(
          testing::HasSubstr("a name is 1 to 32"), "DSCP_TO_TC_MAP|-A: \"64\" is not 0 to 63",
          "DSCP_TO_TC_MAP|-A 1: \"16\" is not 0 to 15", "DSCP_TO_TC_MAP|B: is no map",
          "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|M: \"8\" is not 0 to 7",
          "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|M 3: \"8\" is not 0 to 7",
          "SCHEDULER|s type: \"FIFO\" is none of DWRR, WRR, STRICT",
          "SCHEDULER|s weight: \"0\" is not 1 to 100",
          "BUFFER_PROFILE|p pool: \"none\" is not in BUFFER_POOL",
          "BUFFER_PROFILE|p dynamic_th: \"9\" is not -8 to 7", "BUFFER_PROFILE|p xoff: \"many\" is no number",
          "BUFFER_PG|Ethernet0|8: is not PORT|N or PORT|FROM-TO with 0 to 7",
          "BUFFER_PG|Ethernet0|3 profile: \"q\" is not in BUFFER_PROFILE",
          "PORT_QOS_MAP|Ethernet0 scheduler: \"t\" is not in SCHEDULER"));
}

TEST(SonicYang, LooksAtSpeedFecAndStateOfPorts) {
  const auto said = [](const char* port) {
    return Said(R"({"PORT": {"Ethernet0": )" + std::string(port) + "}}");
  };
  EXPECT_THAT(said(R"({"speed": "800000", "fec": "rs", "admin_status": "up"})"), IsEmpty());
  EXPECT_THAT(said(R"({"speed": "-3", "fec": "banana"})"),
              testing::UnorderedElementsAre("PORT|Ethernet0 speed: \"-3\" is not 1 to 1600000",
                                            "PORT|Ethernet0 fec: \"banana\" is none of rs, fc, none, auto"));
  EXPECT_THAT(said(R"({"speed": "0"})"), testing::SizeIs(1));
  EXPECT_THAT(said(R"({"speed": "fast", "fec": "", "admin_status": "yes"})"), testing::SizeIs(3));
}

TEST(SonicYang, LooksAtLengthsOfCables) {
  const auto said = [](const char* lengths) {
    return Said(R"({"PORT": {"Ethernet0": {}}, "CABLE_LENGTH": {"AZURE": )" + std::string(lengths) + "}}");
  };
  for (const char* good : {"0m", "5m", "300m", "None"})
    EXPECT_THAT(said((R"({"Ethernet0": ")" + std::string(good) + "\"}").c_str()), IsEmpty()) << good;
  for (const char* bad : {"five", "5", "m", "5 m", "-5m", "5.5m", "5M", ""}) {
    EXPECT_THAT(said((R"({"Ethernet0": ")" + std::string(bad) + "\"}").c_str()),
                testing::ElementsAre("CABLE_LENGTH|AZURE Ethernet0: \"" + std::string(bad) +
                                     "\" is no length as 5m, in metres"));
  }
  EXPECT_THAT(said(R"({"Ethernet7": "5m"})"),
              testing::ElementsAre("CABLE_LENGTH|AZURE Ethernet7: there is no port \"Ethernet7\""));
  EXPECT_THAT(said("7"), testing::ElementsAre("CABLE_LENGTH|AZURE: is no list of ports and lengths"));
}

TEST(SonicYang, LooksAtPoolsOfBuffers) {
  const auto said = [](const char* pool, const char* model = "traditional") {
    return Said(R"({"DEVICE_METADATA": {"localhost": {"buffer_model": ")" + std::string(model) +
                R"("}}, "PORT": {}, "BUFFER_POOL": {"p": )" + std::string(pool) + "}}");
  };
  EXPECT_THAT(said(R"({"type": "both", "mode": "static", "size": "26284032", "xoff": "7827456"})"),
              IsEmpty());
  EXPECT_THAT(said(R"({"type": "egress", "mode": "dynamic"})"), IsEmpty()) << "the switch may size it";
  EXPECT_THAT(said("{}"), testing::ElementsAre("BUFFER_POOL|p type: is missing, and a pool must have it",
                                               "BUFFER_POOL|p mode: is missing, and a pool must have it"));
  EXPECT_THAT(said(R"({"type": "in", "mode": "quick", "size": "-1", "xoff": "many"})"),
              testing::ElementsAre("BUFFER_POOL|p type: \"in\" is none of ingress, egress, both",
                                   "BUFFER_POOL|p mode: \"quick\" is none of static, dynamic",
                                   "BUFFER_POOL|p size: \"-1\" is no number",
                                   "BUFFER_POOL|p xoff: \"many\" is no number"));
  const char* shared = R"({"type": "ingress", "mode": "dynamic", "percentage": "50"})";
  EXPECT_THAT(said(shared, "dynamic"), IsEmpty());
  EXPECT_THAT(said(shared), testing::SizeIs(1));
  EXPECT_THAT(said(R"({"type": "ingress", "mode": "dynamic", "percentage": "50", "size": "1"})", "dynamic"),
              testing::SizeIs(1));
}

TEST(SonicYang, LooksForAReferenceToATableOfOthersOnlyWhereThatTableIsThere) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["PORT_QOS_MAP"]["Ethernet0"]["dot1p_to_tc_map"] = "AZURE";
  config["PORT_QOS_MAP"]["Ethernet0"]["pfc_to_pg_map"] = "AZURE";
  EXPECT_THAT(Said(config.dump()), IsEmpty()) << "as of a switch that was asked for what Heddle compares";
  config["DOT1P_TO_TC_MAP"]["OTHER"] = {{"3", "3"}};
  EXPECT_THAT(
      Said(config.dump()),
      testing::ElementsAre("PORT_QOS_MAP|Ethernet0 dot1p_to_tc_map: \"AZURE\" is not in DOT1P_TO_TC_MAP"));
}

}  // namespace
}  // namespace heddle::formats
