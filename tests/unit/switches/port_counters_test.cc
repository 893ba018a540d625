#include "switches/port_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::switches {
namespace {

using crds::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const NamesByAlias kNames{{"etp1", "Ethernet0"}, {"etp7", "Ethernet48"}};

CounterSample Sonic(const std::map<Steps, Json>& answers, const NamesByAlias& names = kNames) {
  std::map<Steps, std::string> texts;
  for (const auto& [steps, answer] : answers) texts[steps] = answer.dump();
  return ReadSonicCounters(texts, names, base::MonotonicTime(std::chrono::seconds(5)));
}

std::vector<std::string> Ports(const CounterSample& sample) {
  std::vector<std::string> names;
  for (const auto& [name, port] : sample.ports) names.push_back(name);
  return names;
}

TEST(SonicCounters, AreReadByTheAliasesOfPorts) {
  const CounterSample sample = Sonic({
      {{"COUNTERS", "Ethernet*", "SAI_PORT_STAT_IF_IN_ERRORS"},
       {{"etp1", {{"SAI_PORT_STAT_IF_IN_ERRORS", "17"}}}, {"etp7", {{"SAI_PORT_STAT_IF_IN_ERRORS", "0"}}}}},
      {{"COUNTERS", "Ethernet*", "SAI_PORT_STAT_PFC_3_RX_PKTS"},
       {{"etp7", {{"SAI_PORT_STAT_PFC_3_RX_PKTS", "18446744073709551615"}}}}},
  });
  EXPECT_EQ(sample.at, base::MonotonicTime(std::chrono::seconds(5)));
  ASSERT_THAT(Ports(sample), ElementsAre("Ethernet0", "Ethernet48"));
  EXPECT_EQ(sample.ports.at("Ethernet0").in_errors, 17);
  EXPECT_EQ(sample.ports.at("Ethernet48").in_errors, 0);
  EXPECT_EQ(sample.ports.at("Ethernet48").pfc_received[3], ~std::uint64_t(0));
  EXPECT_EQ(sample.ports.at("Ethernet0").pfc_received[3], std::nullopt) << "what was not said is not zero";
}

TEST(SonicCounters, AreReadOfWholeRowsToo) {
  const Json row{{"SAI_PORT_STAT_IF_IN_FEC_NOT_CORRECTABLE_FRAMES", "1"},
                 {"SAI_PORT_STAT_IF_IN_DISCARDS", "2"},
                 {"SAI_PORT_STAT_IF_OUT_DISCARDS", "3"},
                 {"SAI_PORT_STAT_PFC_7_TX_PKTS", "4"},
                 {"SAI_PORT_STAT_IF_IN_UCAST_PKTS", "5"},
                 {"SAI_PORT_STAT_IF_OUT_UCAST_PKTS", "6"},
                 {"SAI_PORT_STAT_IF_IN_FEC_SYMBOL_ERRORS", "7"},
                 {"SAI_PORT_STAT_PFC_8_TX_PKTS", "9"},
                 {"SAI_PORT_STAT_IF_IN_OCTETS", "9"}};
  PortCounters port;
  port.uncorrected = 1;
  port.in_discards = 2;
  port.out_discards = 3;
  port.pfc_sent[7] = 4;
  port.in_packets = 5;
  port.out_packets = 6;
  port.fec_symbols = 7;
  const std::map<std::string, PortCounters> expected{{"Ethernet48", port}};
  EXPECT_EQ(Sonic({{{"COUNTERS", "Ethernet*"}, {{"etp7", row}}}}).ports, expected);
  EXPECT_EQ(Sonic({{{"COUNTERS", "Ethernet48"}, row}}).ports, expected);
  EXPECT_EQ(Sonic({{{"INTERFACE_COUNTERS"}, {{"Ethernet48", row}}}}).ports, expected);
}

TEST(SonicCounters, HaveEveryPathReadThatIsAskedFor) {
  for (const Steps& steps : SonicCounterPaths({0, 1, 2, 3, 4, 5, 6, 7})) {
    ASSERT_THAT(steps, SizeIs(3));
    const CounterSample sample = Sonic({{steps, {{"etp1", {{steps[2], "7"}}}}}});
    EXPECT_NE(sample.ports.at("Ethernet0"), PortCounters()) << steps[2];
  }
}

TEST(SonicPorts, SayStateFlapsAndSpeed) {
  const Json table{
      {"Ethernet0",
       {{"oper_status", "up"}, {"flap_count", "3"}, {"speed", "400000"}, {"alias", "Ethernet4"}}},
      {"Ethernet4", {{"oper_status", "down"}, {"flap_count", "N/A"}, {"speed", ""}, {"alias", "Ethernet8"}}},
      {"PortConfigDone", {{"count", "64"}}},
      {"PortInitDone", {{"lanes", "0"}}}};
  const CounterSample sample =
      Sonic({{{"PORT_TABLE"}, table},
             {{"COUNTERS", "Ethernet*"}, {{"Ethernet4", {{"SAI_PORT_STAT_IF_IN_ERRORS", "1"}}}}}},
            {});
  ASSERT_THAT(Ports(sample), ElementsAre("Ethernet0", "Ethernet4"));
  const PortCounters& first = sample.ports.at("Ethernet0");
  EXPECT_EQ(first.up, true);
  EXPECT_EQ(first.state_changes, 3);
  EXPECT_EQ(first.speed_mbps, 400'000);
  EXPECT_EQ(first.in_errors, 1) << "an alias may be called as another port is";
  EXPECT_EQ(sample.ports.at("Ethernet4").up, false);
  EXPECT_EQ(sample.ports.at("Ethernet4").state_changes, std::nullopt);
  EXPECT_EQ(sample.ports.at("Ethernet4").speed_mbps, std::nullopt);
  EXPECT_THAT(Ports(Sonic({{{"PORT_TABLE", "Ethernet0"}, {{"oper_status", "up"}}}})),
              ElementsAre("Ethernet0"));
}

TEST(SonicPorts, TellByWhatTheirFlapsAreSeen) {
  const auto by = [](const Json& table) { return FlapsSeenBy(Sonic({{{"PORT_TABLE"}, table}})); };
  const Json up{{"oper_status", "up"}}, down{{"oper_status", "down"}};
  const Json counted{{"oper_status", "up"}, {"flap_count", "1"}};
  EXPECT_EQ(by({{"Ethernet0", up}, {"Ethernet8", down}}), FlapsBy::kState);
  EXPECT_EQ(by({{"Ethernet0", up}, {"Ethernet8", counted}}), FlapsBy::kCounter);
  EXPECT_EQ(by({{"Ethernet0", down}}), FlapsBy::kUnknown)
      << "one that was never up has counted nothing anywhere";
  EXPECT_EQ(FlapsSeenBy({}), FlapsBy::kUnknown);
}

TEST(SonicQueues, CountDropsMarksAndStorms) {
  const Json rows{
      {"etp1:3",
       {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "5"},
        {"SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", "6"},
        {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "2"},
        {"PFC_WD_STATUS", "stormed"}}},
      {"etp1:4", {{"PFC_WD_STATUS", "operational"}, {"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "0"}}},
      {"etp1:3:periodic", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "99"}}},
      {"etp1:12", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "99"}}},
      {"etp1", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "99"}}}};
  for (const char* table : {"Queues", "Pfcwd"}) {
    const CounterSample sample = Sonic({{{"COUNTERS", "Ethernet*", table}, rows}});
    const PortCounters& port = sample.ports.at("Ethernet0");
    EXPECT_THAT(port.queue_drops, ElementsAre(Pair(3, 5)));
    EXPECT_THAT(port.ecn_marked, ElementsAre(Pair(3, 6)));
    EXPECT_THAT(port.storms, ElementsAre(Pair(3, 2), Pair(4, 0)));
    EXPECT_THAT(port.storming, ElementsAre(3));
  }
  const CounterSample one = Sonic({{{"COUNTERS", "Ethernet8", "Queues"}, {{"Ethernet8:0", rows["etp1:3"]}}}});
  EXPECT_THAT(one.ports.at("Ethernet8").queue_drops, ElementsAre(Pair(0, 5))) << "asked for by name";
}

TEST(SonicCounters, LeaveOutWhatTheyCannotRead) {
  for (const Json& value :
       {Json(""), Json("N/A"), Json("-1"), Json(-1), Json(1.5), Json("1e3"), Json("0x1"), Json(" 1"),
        Json("18446744073709551616"), Json(nullptr), Json(true), Json::array({"1"}), Json::object()}) {
    const CounterSample sample = Sonic(
        {{{"COUNTERS", "Ethernet*"}, {{"etp1", {{"SAI_PORT_STAT_IF_IN_ERRORS", value}}}}},
         {{"COUNTERS", "Ethernet*", "Queues"}, {{"etp1:3", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", value}}}}},
         {{"PORT_TABLE"},
          {{"Ethernet0", {{"flap_count", value}, {"oper_status", value}, {"speed", value}}}}}});
    EXPECT_EQ(sample.ports.at("Ethernet0"), PortCounters()) << value.dump();
  }
  EXPECT_EQ(Sonic({{{"COUNTERS", "Ethernet*"}, {{"etp1", {{"SAI_PORT_STAT_IF_IN_ERRORS", 12}}}}}})
                .ports.at("Ethernet0")
                .in_errors,
            12)
      << "a number instead of a string";
  for (const Json& table :
       {Json(), Json("text"), Json::array({1}), Json::object(), Json{{"etp1", "row"}},
        Json{{"etp1", Json::array()}}, Json{{"etp99", {{"SAI_PORT_STAT_IF_IN_ERRORS", "1"}}}},
        Json{{"", Json::object()}}}) {
    EXPECT_THAT(
        Sonic(
            {{{"COUNTERS", "Ethernet*"}, table}, {{"PORT_TABLE"}, table}, {{}, table}, {{"COUNTERS"}, table}})
            .ports,
        IsEmpty())
        << table.dump();
  }
  EXPECT_THAT(Ports(Sonic({{{"COUNTERS", "Ethernet*"}, {{std::string(80, 'x'), Json::object()}}}})),
              IsEmpty());
}

TEST(SonicCounters, AreOfAsManyPortsAsASwitchHas) {
  Json table = Json::object();
  for (int i = 0; i < 10'000; ++i) table["Ethernet" + std::to_string(i)] = {{"oper_status", "up"}};
  EXPECT_THAT(Sonic({{{"PORT_TABLE"}, table}}).ports, SizeIs(kMaxCountedPorts));
}

Json OpenConfigInterface(const std::string& name) {
  return {{"name", name},
          {"state",
           {{"name", name},
            {"oper-status", "UP"},
            {"counters",
             {{"interface-transitions", "6"},
              {"carrier-transitions", "4"},
              {"in-errors", "7"},
              {"in-discards", 8},
              {"out-discards", "9"},
              {"in-unicast-pkts", "10"},
              {"out-unicast-pkts", "11"}}}}},
          {"openconfig-if-ethernet:ethernet",
           {{"state",
             {{"port-speed", "openconfig-if-ethernet:SPEED_400GB"},
              {"counters", {{"fec-uncorrectable-blocks", "12"}}}}}}},
          {"subinterfaces",
           {{"subinterface", {{{"index", 0}, {"state", {{"counters", {{"in-errors", "99"}}}}}}}}}}};
}

TEST(OpenConfigCounters, AreReadOfAnyBranchThatNamesItsInterface) {
  PortCounters state;
  state.up = true;
  state.state_changes = 6;
  state.in_errors = 7;
  state.in_discards = 8;
  state.out_discards = 9;
  state.in_packets = 10;
  state.out_packets = 11;
  PortCounters whole = state;
  whole.speed_mbps = 400'000;
  whole.uncorrected = 12;
  const Json one = OpenConfigInterface("Ethernet48");
  const auto ports = [](const Steps& steps, const Json& json) {
    return ReadOpenConfigCounters({{steps, json}}, base::MonotonicTime()).ports;
  };
  const std::map<std::string, PortCounters> expected{{"Ethernet48", whole}};
  EXPECT_EQ(ports({"interfaces"}, {{"openconfig-interfaces:interface", {one}}}), expected);
  EXPECT_EQ(ports({}, {{"openconfig-interfaces:interfaces", {{"interface", {one}}}}}), expected);
  EXPECT_EQ(ports({"interfaces", "interface"}, one), expected);
  EXPECT_EQ(ports({"interfaces", "interface", "state"}, one["state"]),
            (std::map<std::string, PortCounters>{{"Ethernet48", state}}));
  EXPECT_THAT(ports({"interfaces", "interface", "state", "counters"}, one["state"]["counters"]), IsEmpty())
      << "whose they are is not said";
}

TEST(OpenConfigCounters, OfQueuesAreReadByNumber) {
  const Json queues{
      {"queue",
       {{{"name", "3"}, {"state", {{"name", "3"}, {"dropped-pkts", "5"}, {"ecn-marked-pkts", "6"}}}},
        {{"name", "control"}, {"state", {{"dropped-pkts", "7"}}}}}}};
  const Json interface {
    {"interface-id", "Ethernet0"}, {
      "output", {
        { "queues", queues }
      }
    }
  };
  const auto sample = ReadOpenConfigCounters(
      {{{"qos"}, {{"openconfig-qos:interfaces", {{"interface", {interface}}}}}}}, base::MonotonicTime());
  ASSERT_THAT(Ports(sample), ElementsAre("Ethernet0"));
  EXPECT_THAT(sample.ports.at("Ethernet0").queue_drops, ElementsAre(Pair(3, 5)));
  EXPECT_THAT(sample.ports.at("Ethernet0").ecn_marked, ElementsAre(Pair(3, 6)));
}

TEST(OpenConfigCounters, EndInNoDepth) {
  Json deep = Json::object();
  for (int i = 0; i < 500; ++i) deep = {{"state", deep}, {"name", "Ethernet0"}};
  ReadOpenConfigCounters({{{"interfaces"}, deep}}, base::MonotonicTime());
}

// Answers with accidents in them are read, or left out, and never more.
TEST(CounterReaders, TakeAnything) {
  const Json tables{
      {"etp1", {{"SAI_PORT_STAT_IF_IN_ERRORS", "17"}, {"oper_status", "up"}, {"alias", "etp1"}}},
      {"etp1:3", {{"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "1"}}},
      {"interfaces", {{"interface", {OpenConfigInterface("e1")}}}}};
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Json json = Json::parse(test::Damage(tables.dump(), random), nullptr, false);
    if (json.is_discarded()) continue;
    std::map<Steps, Json> answers;
    for (const Steps& steps :
         {Steps{"PORT_TABLE"}, Steps{"COUNTERS", "Ethernet*"}, Steps{"COUNTERS", "Ethernet*", "Queues"},
          Steps{"INTERFACE_COUNTERS"}, Steps{"interfaces"}, Steps{}}) {
      answers[steps] = json;
    }
    EXPECT_LE(Sonic(answers).ports.size(), kMaxCountedPorts);
    EXPECT_LE(ReadOpenConfigCounters(answers, base::MonotonicTime()).ports.size(), kMaxCountedPorts);
  }
}

}  // namespace
}  // namespace heddle::switches
