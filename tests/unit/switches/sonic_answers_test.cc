#include "switches/sonic_answers.h"

#include <gtest/gtest.h>

namespace heddle::switches {
namespace {

using base::Code;

std::map<std::string, std::string> Tables(const std::string& port) {
  std::map<std::string, std::string> tables;
  for (const std::string& name : SonicConfigTables()) tables[name] = "{}";
  tables["DEVICE_METADATA"] = R"({"localhost":{"hostname":"leaf-1","hwsku":"Force10-S6000"}})";
  tables["PORT"] = port;
  return tables;
}

const char* const kPorts = R"({"Ethernet0":{"mtu":"9216","speed":"100000","admin_status":"up"}})";

TEST(SonicAnswers, AreOneConfigurationOfAllTables) {
  auto text = SonicConfigText(Tables(kPorts));
  ASSERT_TRUE(text) << text.error().message;
  const auto read = ReadSonicText(*std::move(text));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->config.hostname, "leaf-1");
  EXPECT_EQ(read->model, "Force10-S6000");
  ASSERT_EQ(read->config.ports.size(), 1u);
  EXPECT_EQ(read->config.ports[0].settings.mtu, 9216);
}

TEST(SonicAnswers, TellWhichPortChannelSaysTheMtu) {
  auto tables = Tables(kPorts);
  tables["PORTCHANNEL"] = R"({"PortChannel1":{"mtu":"1500"}})";
  tables["PORTCHANNEL_MEMBER"] = R"({"PortChannel1|Ethernet0":{"NULL":"NULL"}})";
  const auto read = ReadSonicText(*SonicConfigText(tables));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->config.ports.at(0).settings.mtu, 1500);
}

TEST(SonicAnswers, LeaveOutTablesThatAreEmptyHoweverTheyArePrinted) {
  auto tables = Tables(kPorts);
  const std::string tight = *SonicConfigText(tables);
  tables["QUEUE"] = " {\n } ";
  tables["PORT"] = std::string("\n") + kPorts + " ";
  EXPECT_EQ(*SonicConfigText(tables), tight);
  EXPECT_EQ(tight.find("QUEUE\""), std::string::npos);
}

TEST(SonicAnswers, AreRefusedWhereTheyAreNone) {
  auto missing = Tables(kPorts);
  missing.erase("QUEUE");
  EXPECT_EQ(SonicConfigText(missing).error().message, "it did not answer for CONFIG_DB's table QUEUE");
  for (const char* table : {"", "[]", "null", "\"x\"", "{", "}"}) {
    auto tables = Tables(kPorts);
    tables["QUEUE"] = table;
    const auto text = SonicConfigText(tables);
    ASSERT_FALSE(text) << table;
    EXPECT_EQ(text.error().code, Code::kInvalid);
    EXPECT_EQ(text.error().message, "what it says of CONFIG_DB's table QUEUE is no table");
  }
  EXPECT_EQ(SonicConfigText(Tables("{}")).error().code, Code::kInvalid) << "no port";
  // What only looks like a table is found when it is read.
  for (const char* table : {"{]}", "{}}", "{\"a\"}", "{},\"b\":{}}"}) {
    auto tables = Tables(kPorts);
    tables["QUEUE"] = table;
    auto text = SonicConfigText(tables);
    ASSERT_TRUE(text) << table;
    EXPECT_EQ(ReadSonicText(*std::move(text)).error().code, Code::kInvalid) << table;
  }
}

TEST(SonicAnswers, SayTheSameInAnyOrder) {
  const auto text = [](const char* port) { return *SonicConfigText(Tables(port)); };
  auto read = *ReadSonicText(text(kPorts));
  read.text = {};
  EXPECT_TRUE(SaysSame(read, text(kPorts)));
  EXPECT_TRUE(SaysSame(read, text(R"({"Ethernet0":{"speed":"100000","mtu":"9216","admin_status":"up"}})")));
  EXPECT_FALSE(SaysSame(read, text(R"({"Ethernet0":{"mtu":"9100","speed":"100000","admin_status":"up"}})")));
  EXPECT_FALSE(SaysSame(read, "{"));
}

TEST(SonicAnswers, TellWhatIsWorthCounting) {
  const auto config = [](const std::string& maps, const std::string& watchdog) {
    auto tables = Tables(
        R"({"Ethernet0":{"mtu":"9216","admin_status":"up"},"Ethernet8":{"mtu":"9216","admin_status":"up"}})");
    tables["PORT_QOS_MAP"] = maps;
    tables["PFC_WD"] = watchdog;
    return ReadSonicText(*SonicConfigText(tables)).value().config;
  };
  const std::string watches = R"({"pfc_enable":"3,4","pfcwd_sw_enable":"3,4"})";
  const std::string same = "{\"Ethernet0\":" + watches + ",\"Ethernet8\":" + watches + "}";
  const char* const other = R"({"Ethernet0":{"pfc_enable":"3"},"Ethernet8":{"pfc_enable":"3,4"}})";
  const std::string row = R"({"detection_time":"200","restoration_time":"200","action":"drop"})";
  const std::string both = "{\"Ethernet0\":" + row + ",\"Ethernet8\":" + row + "}";
  EXPECT_EQ(LosslessOf(config(other, both)), (lossless::PrioritySet{3, 4}));
  EXPECT_EQ(LosslessOf(config("{}", both)), lossless::PrioritySet{});
  EXPECT_TRUE(WatchesLossless(config(same, both)));
  EXPECT_FALSE(WatchesLossless(config(other, both))) << "the switch says the queues of its first port";
  EXPECT_FALSE(WatchesLossless(config(same, "{\"Ethernet0\":" + row + "}")));
  EXPECT_FALSE(WatchesLossless(config("{}", both)));
  EXPECT_FALSE(
      WatchesLossless(config(R"({"Ethernet0":{"pfc_enable":"3,4"},"Ethernet8":{"pfc_enable":"3,4"}})", both)))
      << "nobody says what is watched";
  const std::string unread = "{\"Ethernet0\":" + watches + R"(,"Ethernet8":{"pfc_enable":"9"}})";
  EXPECT_FALSE(WatchesLossless(config(unread, both))) << "nobody knows what Ethernet8 watches";
}

}  // namespace
}  // namespace heddle::switches
