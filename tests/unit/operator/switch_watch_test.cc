#include "operator/switch_watch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "operator/switch_endpoint.h"
#include "tests/support/gnmi/fake_dialer.h"
#include "tests/unit/operator/stage.h"
#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kAddress = "leaf-3.example:8080";

class SwitchWatchTest : public Stage {
 protected:
  SwitchWatchTest() { Listen(); }

  void Listen() {
    test::FakeSwitch& there = dialer.switches[kAddress];
    there.tables["CONFIG_DB:/DEVICE_METADATA"] = {
        {"localhost", {{"hostname", "leaf-3"}, {"hwsku", "generic"}}}};
    there.tables["CONFIG_DB:/PORT"] = {
        {"Ethernet0", {{"alias", "etp1"}, {"speed", "400000"}, {"admin_status", "up"}}}};
    there.tables["OTHERS:/osversion/build"] = {{"build_version", "SONiC.202505"}};
    there.tables["COUNTERS_DB:/COUNTERS/Ethernet*/SAI_PORT_STAT_IF_IN_ERRORS"] = {
        {"etp1", {{"SAI_PORT_STAT_IF_IN_ERRORS", "0"}}}};
    Flaps(0);
  }
  void Flaps(int changes) {
    dialer.switches[kAddress].tables["APPL_DB:/PORT_TABLE"] = {
        {"Ethernet0", {{"oper_status", "up"}, {"alias", "etp1"}, {"flap_count", std::to_string(changes)}}}};
  }
  void Make(const std::string& name = "leaf-3", const std::string& address = kAddress,
            crds::SwitchDialect dialect = crds::SwitchDialect::kSonic) {
    crds::FabricSwitch object;
    object.name = name;
    object.spec.address = address;
    object.spec.name = "leaf-3";
    object.spec.dialect = dialect;
    server.Put(kFabricSwitches, crds::ToJson(object));
    watch.Changed(name);
  }
  // Lets time pass, and what is due be done.
  void Pass(std::chrono::milliseconds time) {
    for (std::chrono::milliseconds passed{0}; passed <= time; passed += 100ms) {
      while (watch.RunOnce({})) {
      }
      clock.Advance(100ms);
    }
  }
  SwitchAnswer Answer() { return watch.Answers().at("leaf-3"); }
  test::FakeSwitch& There() { return dialer.switches[kAddress]; }
  void SetMtu(const char* mtu) { There().tables["CONFIG_DB:/PORT"]["Ethernet0"]["mtu"] = mtu; }
  // Until its settings have been read once more.
  void PassUntilRead() {
    const int before = There().asked["CONFIG_DB:/PORT"];
    for (int i = 0; i < 1000 && There().asked["CONFIG_DB:/PORT"] == before; ++i) Pass(0s);
    ASSERT_GT(There().asked["CONFIG_DB:/PORT"], before);
  }
  // As SONiC until 202311 has it of tables without a row.
  void Lack(const std::vector<std::string>& tables) {
    for (const std::string& table : tables) {
      There().troubles.emplace("CONFIG_DB:/" + table,
                               base::Error{base::Code::kNotFound, "leaf-3: no such table", {}});
    }
  }
  // Makes tables of a port channel with an MTU of 1500, whatever the switch lacked.
  void JoinPortChannel() {
    There().troubles.clear();
    There().tables["CONFIG_DB:/PORTCHANNEL"] = {{"PortChannel1", {{"mtu", "1500"}}}};
    There().tables["CONFIG_DB:/PORTCHANNEL_MEMBER"] = {{"PortChannel1|Ethernet0", {{"NULL", "NULL"}}}};
  }
  void ListenAsOpenConfig() {
    There().models = {"openconfig-interfaces"};
    gnmi::Json port = {{"name", "Ethernet0"}};
    port["state"] = {{"oper-status", "UP"}, {"counters", {{"in-errors", "0"}}}};
    There().tables.clear();
    There().tables["/interfaces"]["openconfig-interfaces:interface"] = gnmi::Json::array({port});
    Make("leaf-3", kAddress, crds::SwitchDialect::kOpenConfig);
  }
  void SayLine(const std::string& speed, const std::string& transitions) {
    There().tables["/interfaces"] = gnmi::Json::parse(
        R"({"openconfig-interfaces:interface": [{"name": "Ethernet0",
            "state": {"name": "Ethernet0", "oper-status": "UP",
                      "counters": {"in-errors": "0", "interface-transitions": ")" +
        transitions + R"("}},
            "openconfig-if-ethernet:ethernet": {"state": {"port-speed": ")" +
        speed + R"("}}}]})");
  }
  void SaySystem(const std::string& name) {
    There().tables["/lldp"] = gnmi::Json::parse(
        R"({"openconfig-lldp:state": {"system-name": ")" + name +
        R"("}, "openconfig-lldp:interfaces": {"interface": [{"name": "Ethernet0", "neighbors": {"neighbor": [
            {"id": "1", "state": {"system-name": "gpu-017", "port-id": "eth0"}}]}}]}})");
  }

  test::FakeDialer dialer;
  ServerView objects{server, kFabricSwitches};
  std::atomic<int> answers = 0, sightings = 0;
  std::optional<base::Error> no_endpoint;
  std::function<void(const std::string&, const std::stop_token&)> slow_endpoint;
  SwitchWatch watch{clock,
                    base::Random(7),
                    {.dialer = dialer,
                     .fabric_switches = objects,
                     .endpoint = [this](const crds::FabricSwitch& object,
                                        const std::stop_token& stop) -> base::Result<gnmi::Endpoint> {
                       if (no_endpoint) return base::Fail(*no_endpoint);
                       if (slow_endpoint) slow_endpoint(object.name, stop);
                       return gnmi::Endpoint{.address = object.spec.address};
                     },
                     .on_answers = [this] { ++answers; },
                     .on_sightings = [this] { ++sightings; }}};
};

TEST_F(SwitchWatchTest, AsksASwitchWhoseStatusAloneCannotBeRead) {
  Make();
  server.Edit(kFabricSwitches, {"", "leaf-3"},
              [](Json& object) { object["status"]["counts"]["ports"] = "many"; });
  Pass(2s);
  ASSERT_TRUE(watch.Answers().contains("leaf-3"));
  EXPECT_EQ(Answer().version, "SONiC.202505");
}

TEST_F(SwitchWatchTest, ReadsHowASwitchIsSetAndAsksAgainAfterItsPoll) {
  Make();
  Pass(2s);
  EXPECT_FALSE(Answer().trouble) << Answer().trouble->message;
  ASSERT_NE(Answer().config, nullptr);
  EXPECT_EQ(Answer().config->config.hostname, "leaf-3");
  EXPECT_EQ(Answer().version, "SONiC.202505");
  const int told = answers;
  const auto first = Answer().read_at;
  Pass(70s);
  EXPECT_GT(Answer().read_at, first);
  EXPECT_EQ(answers, told);  // the same settings are no news
  dialer.switches[kAddress].tables["CONFIG_DB:/PORT"]["Ethernet0"]["mtu"] = "9216";
  Pass(70s);
  EXPECT_GT(answers, told);
}

TEST_F(SwitchWatchTest, TriesASwitchThatDoesNotAnswerAgainAndRarerAndKeepsWhatItSaid) {
  Make();
  Pass(2s);
  const auto config = Answer().config;
  dialer.switches[kAddress].listens = false;
  Pass(120s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_EQ(Answer().trouble->reason, "Unreachable");
  EXPECT_THAT(Answer().trouble->message, HasSubstr(kAddress));
  EXPECT_EQ(Answer().config, config);
  const int dials = dialer.switches[kAddress].dials;
  Pass(600s);
  EXPECT_LE(dialer.switches[kAddress].dials - dials, 2 * 11);  // each try dials twice, once a minute at most
  dialer.switches[kAddress].listens = true;
  Pass(70s);
  EXPECT_FALSE(Answer().trouble);
}

TEST_F(SwitchWatchTest, HalfAConfigurationIsNeverOne) {
  dialer.switches[kAddress].tables.erase("CONFIG_DB:/DEVICE_METADATA");
  Make();
  Pass(5s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_EQ(Answer().trouble->reason, "Unreadable");
  EXPECT_EQ(Answer().config, nullptr);
}

// Until 202311 a table without a row is NOT_FOUND, and so is then the whole Get.
TEST_F(SwitchWatchTest, AnOldSwitchWithoutPortChannelsIsReadAndThoseThatAreMadeLaterCount) {
  SetMtu("9216");
  Lack({"PORTCHANNEL", "PORTCHANNEL_MEMBER"});
  Make();
  Pass(5s);
  EXPECT_FALSE(Answer().trouble) << Answer().trouble->message;
  ASSERT_NE(Answer().config, nullptr);
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 9216);
  JoinPortChannel();
  Pass(380s);  // five minutes and a poll
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 1500);
  Lack({"PORT"});
  Pass(70s);
  ASSERT_TRUE(Answer().trouble) << "every switch has it, and without nobody knows how it is set";
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 1500) << "as it last said";
}

TEST_F(SwitchWatchTest, AnOldSwitchWithoutBuffersAndWithoutQosIsReadAndNothingOfItIsLossless) {
  for (const std::string& table : switches::SonicConfigTables()) {
    if (!switches::EverySonicHas(table)) Lack({table});
  }
  Make();
  Pass(5s);
  EXPECT_FALSE(Answer().trouble) << Answer().trouble->message;
  ASSERT_NE(Answer().config, nullptr);
  const lossless::PortSettings port = Answer().config->config.ports.at(0).settings;
  EXPECT_EQ(port.pfc, lossless::PrioritySet{});
  EXPECT_EQ(port.watchdog_ms, lossless::kWatchdogOff);
  EXPECT_FALSE(port.dscp_to_priority || port.priority_to_group || port.buffer_bytes || port.lossy_queues);
}

TEST_F(SwitchWatchTest, AnOldSwitchIsAskedForTheTablesThatItHasAloneInOneGo) {
  const std::string absent = "CONFIG_DB:/BUFFER_QUEUE", there = "CONFIG_DB:/PORT_QOS_MAP";
  Lack({"BUFFER_QUEUE", "PORTCHANNEL"});
  Make();
  Pass(5s);
  ASSERT_NE(Answer().config, nullptr);
  // With all others, by itself, and before settings that are new count.
  EXPECT_EQ(There().asked[absent], 3);
  EXPECT_EQ(There().asked[there], 3) << "with all others twice, and once by itself";
  Pass(210s);
  EXPECT_EQ(There().asked[absent], 3);
  const int polls = There().asked[there] - 3;
  EXPECT_GE(polls, 2);
  Pass(600s);
  EXPECT_GT(There().asked[absent], 3);
  EXPECT_LE(There().asked[absent], 3 + 3) << "once in five minutes";
  EXPECT_FALSE(Answer().trouble);
}

// One refusal may be of another kind; and until it is seen again the table that was there counts.
TEST_F(SwitchWatchTest, ATableThatIsRefusedOnlyOnceIsStillThere) {
  SetMtu("9216");
  JoinPortChannel();
  Make();
  Pass(5s);
  ASSERT_NE(Answer().config, nullptr);
  const auto config = Answer().config;
  ASSERT_EQ(config->config.ports.at(0).settings.mtu, 1500);
  Lack({"PORTCHANNEL", "PORTCHANNEL_MEMBER"});
  PassUntilRead();
  There().troubles.clear();
  Pass(10s);
  EXPECT_EQ(Answer().config, config);
  Lack({"PORTCHANNEL", "PORTCHANNEL_MEMBER"});
  Pass(80s);
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 9216) << "it was refused again, so it is gone";
}

TEST_F(SwitchWatchTest, AnOldSwitchThatFailsAtOneOfItsTablesIsNotRead) {
  Lack({"PORTCHANNEL"});
  There().troubles.emplace("CONFIG_DB:/BUFFER_QUEUE",
                           base::Error{base::Code::kInternal, "leaf-3: redis is gone", {}});
  Make();
  Pass(5s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_THAT(Answer().trouble->message, HasSubstr("redis is gone"));
  EXPECT_EQ(Answer().config, nullptr);
}

TEST_F(SwitchWatchTest, AnOldSwitchIsFollowedInTheTablesThatItHasAndInThoseThatAreMadeLater) {
  const std::string first = "CONFIG_DB:/" + switches::SonicConfigTables().front();
  SetMtu("9216");
  There().streams = true;
  Lack({"PORTCHANNEL", "PORTCHANNEL_MEMBER", "BUFFER_PG", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"});
  Make();
  Pass(5s);
  ASSERT_TRUE(There().open.contains(first));
  EXPECT_EQ(There().subscribed["CONFIG_DB:/PORT_QOS_MAP"], 1);
  EXPECT_EQ(There().subscribed["CONFIG_DB:/PORTCHANNEL"], 0);
  SetMtu("9100");
  There().open.at(first).notice({});
  Pass(10s);  // well within a poll
  ASSERT_NE(Answer().config, nullptr);
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 9100);
  // What is made with something else that changes is seen with it, and followed from then on.
  There().troubles.erase("CONFIG_DB:/PORTCHANNEL");
  There().troubles.erase("CONFIG_DB:/PORTCHANNEL_MEMBER");
  There().tables["CONFIG_DB:/PORTCHANNEL"] = {{"PortChannel1", {{"mtu", "1500"}}}};
  There().tables["CONFIG_DB:/PORTCHANNEL_MEMBER"] = {{"PortChannel1|Ethernet0", {{"NULL", "NULL"}}}};
  There().open.at(first).notice({});
  Pass(10s);
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 1500);
  EXPECT_EQ(There().subscribed["CONFIG_DB:/PORTCHANNEL"], 1);
  EXPECT_EQ(There().subscribed["CONFIG_DB:/BUFFER_PG"], 0);
  EXPECT_TRUE(There().open.contains(first));
}

TEST_F(SwitchWatchTest, ASwitchOfAnotherMakeIsToldToHaveAnotherDialect) {
  dialer.switches[kAddress].models = {"openconfig-interfaces"};
  Make();
  Pass(2s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_THAT(Answer().trouble->message, HasSubstr("set dialect to OpenConfig"));
}

TEST_F(SwitchWatchTest, ASecretThatIsMissingIsSaidAndNothingIsDialled) {
  no_endpoint = base::Error{base::Code::kNotFound, "there is no Secret leaf-login in namespace heddle-system",
                            std::nullopt};
  Make();
  Pass(10s);
  EXPECT_EQ(Answer().trouble->reason, "NotFound");
  EXPECT_EQ(dialer.switches[kAddress].dials, 0);
}

TEST_F(SwitchWatchTest, FlapsAreSeenByNameWithTheAliasOnceTheyAreCounted) {
  Make();
  Pass(15s);
  EXPECT_THAT(watch.Sightings()["leaf-3"], IsEmpty());
  Flaps(82);
  Pass(15s);
  const SwitchSightings seen = watch.Sightings();
  ASSERT_TRUE(seen.contains("leaf-3"));
  ASSERT_EQ(seen.at("leaf-3").size(), 1u) << "a port is one, whatever it is called";
  const SwitchPortSeen& port = seen.at("leaf-3").at("Ethernet0");
  EXPECT_EQ(port.alias, "etp1");
  EXPECT_EQ(port.sightings.at(0).symptom, topology::Symptom::kFlap);
  EXPECT_THAT(port.sightings.at(0).evidence, HasSubstr("41 flaps"));
  EXPECT_GE(sightings, 1);
}

TEST_F(SwitchWatchTest, WhatIsReadOnlyOnceDoesNotCount) {
  Make();
  Pass(2s);
  const auto config = Answer().config;
  ASSERT_NE(config, nullptr);
  SetMtu("1500");  // as half of a table would read
  PassUntilRead();
  SetMtu("9216");
  PassUntilRead();
  EXPECT_EQ(Answer().config, config) << "1500 was read once, and so was 9216";
  PassUntilRead();
  ASSERT_NE(Answer().config, config);
  EXPECT_EQ(Answer().config->config.ports.at(0).settings.mtu, 9216);
  EXPECT_EQ(Answer().config->text, "") << "which only a patch is made against";
}

TEST_F(SwitchWatchTest, SettingsThatNeverStandStillAreNotAskedForAllTheTime) {
  Make();
  Pass(2s);
  const auto config = Answer().config;
  int mtu = 1500;
  const int before = There().asked["CONFIG_DB:/PORT"];
  for (int second = 0; second < 300; ++second) {
    SetMtu(std::to_string(++mtu).c_str());
    Pass(900ms);
  }
  EXPECT_EQ(Answer().config, config);
  EXPECT_LE(There().asked["CONFIG_DB:/PORT"] - before, 12);
}

TEST_F(SwitchWatchTest, OpenConfigHasAnsweredOnlyWhenItDidAndFailsOnceItHangs) {
  ListenAsOpenConfig();
  There().troubles.emplace("/interfaces", base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Pass(5s);
  EXPECT_TRUE(Answer().connecting);
  EXPECT_FALSE(Answer().read_at);
  There().troubles.clear();
  Pass(10s);
  EXPECT_FALSE(Answer().connecting);
  EXPECT_FALSE(Answer().trouble);
  ASSERT_TRUE(Answer().read_at);
  EXPECT_EQ(Answer().counting.ports, 1);
  There().troubles.emplace("/interfaces", base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  const auto last = Answer().read_at;
  Pass(19s);
  EXPECT_FALSE(Answer().trouble) << "two answers may be late";
  EXPECT_EQ(Answer().counting.trouble->reason, "TooSlow");
  Pass(15s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_EQ(Answer().trouble->reason, "TooSlow");
  EXPECT_EQ(Answer().read_at, last);
  There().troubles.clear();
  Pass(120s);
  EXPECT_FALSE(Answer().trouble);
  EXPECT_FALSE(Answer().counting.trouble);
}

TEST_F(SwitchWatchTest, OfOpenConfigNeighboursAreReadAndLinesTwiceBeforeTheyCount) {
  ListenAsOpenConfig();
  SayLine("SPEED_400GB", "0");
  SaySystem("leaf-3");
  Pass(2s);
  ASSERT_NE(Answer().neighbours, nullptr);
  EXPECT_EQ(Answer().neighbours->at("Ethernet0").system, "gpu-017");
  EXPECT_EQ(Answer().config, nullptr);
  Pass(10s);
  ASSERT_NE(Answer().config, nullptr);
  EXPECT_EQ(Answer().config->config.hostname, "leaf-3");
  ASSERT_EQ(Answer().config->config.bare.size(), 1u);
  EXPECT_EQ(Answer().config->config.bare[0].speed_mbps, 400'000);
  SayLine("SPEED_200GB", "0");
  Pass(10s);
  EXPECT_EQ(Answer().config->config.bare[0].speed_mbps, 400'000) << "read once";
  Pass(10s);
  EXPECT_EQ(Answer().config->config.bare[0].speed_mbps, 200'000);
  // What it does not answer takes nothing back.
  There().troubles.emplace("/interfaces", base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Pass(60s);
  ASSERT_EQ(Answer().config->config.bare.size(), 1u);
  EXPECT_EQ(There().asked["CONFIG_DB:/PORT"], 0);
}

TEST_F(SwitchWatchTest, OfOpenConfigInterfacesThatComeOneByOneAreAllRead) {
  ListenAsOpenConfig();
  auto& parts = There().parts["/interfaces"];
  for (const char* name : {"Ethernet0", "Ethernet8"}) {
    gnmi::Path path;
    path.elems.push_back({"interfaces", {}});
    path.elems.push_back({"interface", {{"name", name}}});
    gnmi::Json state = gnmi::Json::object();
    state["name"] = name;
    state["oper-status"] = "UP";
    state["mtu"] = 9216;
    parts[path]["name"] = name;
    parts[path]["state"] = state;
  }
  Pass(12s);
  EXPECT_EQ(Answer().counting.ports, 2);
  ASSERT_NE(Answer().config, nullptr);
  EXPECT_EQ(Answer().config->config.bare.size(), 2u);
}

TEST_F(SwitchWatchTest, OfOpenConfigThatCallsItselfOtherwiseNothingIsSeen) {
  ListenAsOpenConfig();
  SayLine("SPEED_400GB", "0");
  SaySystem("leaf-9");
  Pass(15s);
  SayLine("SPEED_400GB", "82");
  Pass(15s);
  EXPECT_THAT(watch.Sightings()["leaf-3"], IsEmpty());
  SaySystem("leaf-3");
  Pass(90s);  // a poll, and two samples
  EXPECT_EQ(watch.Sightings()["leaf-3"].count("Ethernet0"), 1u);
}

TEST_F(SwitchWatchTest, OpenConfigThatRefusesIsToldAtOnce) {
  ListenAsOpenConfig();
  There().troubles.emplace("/interfaces", base::Error{base::Code::kForbidden, "leaf-3: not allowed", {}});
  Pass(2s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_EQ(Answer().trouble->reason, "NotAllowed");
}

TEST_F(SwitchWatchTest, OpenConfigThatRefusesALoginIsDialledAnewWithWhatItsSecretSaysThen) {
  ListenAsOpenConfig();
  Pass(12s);
  ASSERT_FALSE(Answer().trouble);
  ASSERT_TRUE(Answer().read_at);
  const int dials = There().dials;
  There().troubles.emplace("/interfaces", base::Error{base::Code::kUnauthorized, "leaf-3: who is that", {}});
  Pass(30s);
  ASSERT_TRUE(Answer().trouble);
  EXPECT_EQ(Answer().trouble->reason, "PasswordRefused");
  EXPECT_GT(There().dials, dials);
  There().troubles.clear();
  Pass(120s);
  EXPECT_FALSE(Answer().trouble);
  EXPECT_FALSE(Answer().counting.trouble);
}

TEST_F(SwitchWatchTest, CountersThatCannotBeReadAreToldAndTheSettingsStand) {
  const std::string queues = "COUNTERS_DB:/COUNTERS/Ethernet*/Queues";
  There().troubles.emplace(queues, base::Error{base::Code::kForbidden, "leaf-3: not allowed", {}});
  Make();
  Pass(12s);
  ASSERT_TRUE(Answer().counting.trouble);
  EXPECT_EQ(Answer().counting.trouble->reason, "NotAllowed");
  EXPECT_THAT(Answer().counting.trouble->message, HasSubstr("counters of queues"));
  EXPECT_TRUE(Answer().counting.counted_at) << "those of ports came";
  EXPECT_FALSE(Answer().trouble);
  There().troubles.clear();
  Pass(15s);
  EXPECT_FALSE(Answer().counting.trouble);
  There().tables["APPL_DB:/PORT_TABLE"] = "banana";
  Pass(15s);
  ASSERT_TRUE(Answer().counting.trouble);
  EXPECT_EQ(Answer().counting.trouble->reason, "Unreadable");
  There().listens = false;
  Pass(15s);
  EXPECT_EQ(Answer().counting.trouble->reason, "NotAsked");
}

TEST_F(SwitchWatchTest, ACounterThatWentBackIsNotedAndNoEvidence) {
  Flaps(120);
  Make();
  Pass(5s);
  EXPECT_EQ(Answer().counting.noted, 0);
  const int told = answers;
  Flaps(4);
  Pass(15s);
  EXPECT_EQ(Answer().counting.noted, 1);
  ASSERT_EQ(Answer().counting.notes.size(), 1u);
  EXPECT_THAT(Answer().counting.notes[0], HasSubstr("Ethernet0: state changes went back from 120 to 4"));
  EXPECT_GT(answers, told);
  EXPECT_THAT(watch.Sightings(), IsEmpty());
  Pass(620s);
  EXPECT_EQ(Answer().counting.noted, 0);
}

TEST_F(SwitchWatchTest, WhatOneCountsThatIsNotWhoItShouldBeSpeaksAgainstNobody) {
  There().tables["CONFIG_DB:/DEVICE_METADATA"]["localhost"]["hostname"] = "leaf-9";
  Make();
  Pass(15s);
  Flaps(82);
  Pass(15s);
  EXPECT_THAT(watch.Sightings(), IsEmpty());
  There().tables["CONFIG_DB:/DEVICE_METADATA"]["localhost"]["hostname"] = "leaf-3";
  Pass(70s);
  EXPECT_TRUE(watch.Sightings().contains("leaf-3"));
  // Another has its name too, though it answers nothing.
  dialer.switches["other:1"].listens = false;
  Make("other", "other:1");
  Pass(1s);
  EXPECT_THAT(watch.Sightings(), IsEmpty());
  server.Remove(kFabricSwitches, {"", "other"});
  watch.Changed("other");
  Pass(1s);
  EXPECT_TRUE(watch.Sightings().contains("leaf-3"));
}

TEST_F(SwitchWatchTest, QueuesOfFewSwitchesAreAskedForAsOftenAsPorts) {
  Make();
  Pass(70s);
  EXPECT_GE(There().asked["COUNTERS_DB:/COUNTERS/Ethernet*/Queues"], 6);
}

TEST_F(SwitchWatchTest, OnlyPauseAndQueuesOfWhatIsLosslessAreAskedFor) {
  for (const auto& [table, rows] : SonicTables("leaf-3", true)) There().tables["CONFIG_DB:/" + table] = rows;
  const std::string counters = "COUNTERS_DB:/COUNTERS/Ethernet*/";
  There().tables[counters + "Pfcwd"] = {{"etp1:3", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "0"}}}};
  Make();
  Pass(60s);
  EXPECT_GE(There().asked[counters + "SAI_PORT_STAT_PFC_3_RX_PKTS"], 5);
  EXPECT_GE(There().asked[counters + "SAI_PORT_STAT_PFC_3_TX_PKTS"], 5);
  EXPECT_EQ(There().asked[counters + "SAI_PORT_STAT_PFC_4_RX_PKTS"], 0);
  EXPECT_GE(There().asked[counters + "Pfcwd"], 5);
  EXPECT_EQ(There().asked[counters + "Queues"], 0);
  There().tables["CONFIG_DB:/PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "4";
  There().tables["CONFIG_DB:/PORT_QOS_MAP"]["Ethernet0"]["pfcwd_sw_enable"] = "4";
  Pass(90s);
  EXPECT_GE(There().asked[counters + "SAI_PORT_STAT_PFC_4_RX_PKTS"], 2);
}

TEST_F(SwitchWatchTest, AllQueuesAreAskedForWhereItSaysNothingOfWatchedOnes) {
  for (const auto& [table, rows] : SonicTables("leaf-3", true)) There().tables["CONFIG_DB:/" + table] = rows;
  const std::string counters = "COUNTERS_DB:/COUNTERS/Ethernet*/";
  Make();
  Pass(60s);
  EXPECT_EQ(There().asked[counters + "Pfcwd"], 1);
  EXPECT_GE(There().asked[counters + "Queues"], 4);
  EXPECT_FALSE(Answer().counting.trouble);
}

TEST_F(SwitchWatchTest, AllQueuesThatCameTooLateAreNoTroubleOnceWatchedOnesAreCounted) {
  for (const auto& [table, rows] : SonicTables("leaf-3", true)) There().tables["CONFIG_DB:/" + table] = rows;
  const gnmi::Json metadata = There().tables["CONFIG_DB:/DEVICE_METADATA"];
  There().tables.erase("CONFIG_DB:/DEVICE_METADATA");  // so nobody knows which are watched
  const std::string counters = "COUNTERS_DB:/COUNTERS/Ethernet*/";
  There().tables[counters + "Pfcwd"] = {{"etp1:3", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "0"}}}};
  There().troubles.emplace(counters + "Queues", base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Make();
  Pass(30s);
  ASSERT_TRUE(Answer().counting.trouble);
  EXPECT_THAT(Answer().counting.trouble->message, HasSubstr("counters of queues"));
  There().tables["CONFIG_DB:/DEVICE_METADATA"] = metadata;
  Pass(150s);
  ASSERT_TRUE(Answer().config);
  EXPECT_GE(There().asked[counters + "Pfcwd"], 2);
  EXPECT_FALSE(Answer().counting.trouble);
}

TEST_F(SwitchWatchTest, WatchedQueuesThatComeTooLateOnceAreAskedForAgainAndNotAllInTheirPlace) {
  for (const auto& [table, rows] : SonicTables("leaf-3", true)) There().tables["CONFIG_DB:/" + table] = rows;
  const std::string counters = "COUNTERS_DB:/COUNTERS/Ethernet*/";
  There().tables[counters + "Pfcwd"] = {{"etp1:3", {{"SAI_QUEUE_STAT_DROPPED_PACKETS", "0"}}}};
  Make();
  Pass(30s);
  There().troubles.emplace(counters + "Pfcwd", base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Pass(15s);
  ASSERT_TRUE(Answer().counting.trouble);
  EXPECT_THAT(Answer().counting.trouble->message, HasSubstr("counters of watched queues"));
  There().troubles.clear();
  const int before = There().asked[counters + "Pfcwd"];
  Pass(30s);
  EXPECT_GT(There().asked[counters + "Pfcwd"], before);
  EXPECT_EQ(There().asked[counters + "Queues"], 0);
  EXPECT_FALSE(Answer().counting.trouble);
}

TEST_F(SwitchWatchTest, PauseOfEveryPriorityIsCountedWhereSettingsCannotBeRead) {
  There().tables.erase("CONFIG_DB:/DEVICE_METADATA");
  Make();
  Pass(30s);
  for (const char* priority : {"0", "3", "7"}) {
    const auto path =
        std::string("COUNTERS_DB:/COUNTERS/Ethernet*/SAI_PORT_STAT_PFC_") + priority + "_RX_PKTS";
    EXPECT_GE(There().asked[path], 2) << path;
  }
}

TEST_F(SwitchWatchTest, OfMoreSwitchesThanAreFollowedChangesAreReadWithTheNextPoll) {
  SwitchWatch few(clock, base::Random(7),
                  {.dialer = dialer,
                   .fabric_switches = objects,
                   .endpoint = [](const crds::FabricSwitch& object,
                                  const std::stop_token&) -> base::Result<gnmi::Endpoint> {
                     return gnmi::Endpoint{.address = object.spec.address};
                   },
                   .on_answers = [] {},
                   .on_sightings = [] {}},
                  {.most_followed = 0});
  Make();
  few.Changed("leaf-3");
  const auto pass = [&](int tenths) {
    for (int i = 0; i < tenths; ++i, clock.Advance(100ms)) {
      while (few.RunOnce({})) {
      }
    }
  };
  pass(50);
  EXPECT_EQ(There().dials, 1);
  const auto before = few.Answers().at("leaf-3").config;
  ASSERT_NE(before, nullptr);
  SetMtu("9000");
  pass(700);
  EXPECT_NE(few.Answers().at("leaf-3").config, before);
  EXPECT_EQ(There().dials, 1);
}

TEST_F(SwitchWatchTest, IsPrimedOnceItHasCountedForTheQuietTime) {
  Make();
  EXPECT_THAT(watch.Unprimed(), testing::ElementsAre("leaf-3")) << "before anybody has looked at it";
  Pass(300s);
  EXPECT_THAT(watch.Unprimed(), testing::ElementsAre("leaf-3"));
  Pass(305s);
  EXPECT_THAT(watch.Unprimed(), IsEmpty());
}

TEST_F(SwitchWatchTest, OneThatNeverCountsIsWaitedForTwiceAsLong) {
  There().listens = false;
  Make();
  Pass(1190s);
  EXPECT_THAT(watch.Unprimed(), testing::ElementsAre("leaf-3"));
  Pass(20s);
  EXPECT_THAT(watch.Unprimed(), IsEmpty());
}

TEST_F(SwitchWatchTest, AServerThatKeepsASecretWaitingHoldsUpNoOtherSwitch) {
  std::atomic<bool> asked = false;
  slow_endpoint = [&](const std::string& name, const std::stop_token& stop) {
    if (name != "other") return;
    asked = true;
    while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
  };
  Make("other", "other:1");
  Make();
  std::jthread running([this](const std::stop_token& stop) { watch.Run(stop); });
  const auto read = [&] {
    const SwitchAnswers all = watch.Answers();
    return all.contains("leaf-3") && all.at("leaf-3").config != nullptr;
  };
  for (int i = 0; i < 2000 && !(asked && read()); ++i) {
    clock.Advance(100ms);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(asked && read());
}

TEST_F(SwitchWatchTest, WhomASwitchSeesIsReadWithItsSettings) {
  Make();
  Pass(5s);
  EXPECT_EQ(Answer().neighbours, nullptr) << "it has no such table";
  dialer.switches[kAddress].tables["APPL_DB:/LLDP_ENTRY_TABLE"] = {
      {"Ethernet0", {{"lldp_rem_sys_name", "gpu-017"}, {"lldp_rem_port_desc", "eth0"}}}};
  const int told = answers;
  Pass(70s);
  ASSERT_NE(Answer().neighbours, nullptr);
  EXPECT_EQ(Answer().neighbours->at("Ethernet0"), (switches::Neighbour{"gpu-017", "", "", "eth0"}));
  EXPECT_GT(answers, told);
  const auto known = Answer().neighbours;
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, known) << "the same is no news";
  dialer.switches[kAddress].tables.erase("APPL_DB:/LLDP_ENTRY_TABLE");
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, nullptr) << "what it no longer says contradicts nobody";
  EXPECT_FALSE(Answer().trouble);
}

TEST_F(SwitchWatchTest, WhichChassisASwitchIsItsOwnLldpSaysAndNotItsMetadata) {
  const std::string field = "APPL_DB:/LLDP_LOC_CHASSIS/lldp_loc_chassis_id";
  There().tables["CONFIG_DB:/DEVICE_METADATA"]["localhost"]["mac"] = "0c:42:a1:00:00:02";
  Make();
  Pass(75s);
  ASSERT_NE(Answer().config, nullptr);
  EXPECT_EQ(Answer().chassis_id, "") << "it says none, and the mac is not always it";
  There().tables[field] = "0c:42:a1:00:00:01";
  const int told = answers;
  Pass(70s);
  EXPECT_EQ(Answer().chassis_id, "0c:42:a1:00:00:01");
  EXPECT_EQ(answers, told + 1) << "said once";
  // The row is written again, or its LLDP is down; or it answers garbage.
  There().troubles.emplace(field, base::Error{base::Code::kNotFound, "leaf-3: redis: nil", {}});
  Pass(70s);
  EXPECT_EQ(Answer().chassis_id, "0c:42:a1:00:00:01");
  EXPECT_FALSE(Answer().trouble);
  There().troubles.clear();
  There().tables[field] = {{"lldp_loc_chassis_id", 7}};
  Pass(70s);
  There().unreadable.insert(field);
  Pass(70s);
  EXPECT_EQ(Answer().chassis_id, "0c:42:a1:00:00:01");
  There().unreadable.clear();
  There().tables[field] = "0c:42:a1:00:00:09";
  Pass(70s);
  EXPECT_EQ(Answer().chassis_id, "0c:42:a1:00:00:09") << "another switch in its place";
}

// Else a cable to another switch of its name would be proved for a moment.
TEST_F(SwitchWatchTest, WhichChassisASwitchIsIsKnownBeforeItsSettingsCount) {
  There().tables["APPL_DB:/LLDP_LOC_CHASSIS/lldp_loc_chassis_id"] = "0c:42:a1:00:00:01";
  Make();
  bool read = false;
  for (int i = 0; i < 100 && !read; ++i) {
    Pass(0s);
    const SwitchAnswers all = watch.Answers();
    const auto found = all.find("leaf-3");
    read = found != all.end() && found->second.config != nullptr;
    if (read) {
      EXPECT_EQ(found->second.chassis_id, "0c:42:a1:00:00:01");
    }
  }
  EXPECT_TRUE(read);
}

// A Nexus has another one at each port, and hosts hear those.
TEST_F(SwitchWatchTest, WhichChassisASwitchOfOpenConfigIsIsNotTakenFromIt) {
  ListenAsOpenConfig();
  SaySystem("leaf-3");
  There().tables["/lldp"]["openconfig-lldp:state"]["chassis-id"] = "0c:42:a1:00:00:01";
  Pass(15s);
  EXPECT_EQ(Answer().chassis_id, "");
}

// Else a cable that it contradicts would be proved whenever it is slow.
TEST_F(SwitchWatchTest, WhomASwitchSawStandsWhileItCannotBeHeardOrRead) {
  const std::string table = "APPL_DB:/LLDP_ENTRY_TABLE";
  There().tables[table] = {{"Ethernet0", {{"lldp_rem_sys_name", "gpu-018"}}}};
  Make();
  Pass(5s);
  const auto known = Answer().neighbours;
  ASSERT_NE(known, nullptr);
  There().troubles.emplace(table, base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Pass(70s);
  EXPECT_GE(There().asked[table], 2);
  EXPECT_EQ(Answer().neighbours, known) << "it is slow";
  There().troubles.clear();
  There().tables[table] = "banana";
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, known) << "it answers garbage";
  There().unreadable.insert(table);
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, known) << "it answers without a value";
  There().unreadable.clear();
  There().troubles.emplace(table, base::Error{base::Code::kNotFound, "leaf-3: no such path", {}});
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, nullptr) << "it has none";
}

// By then a cable that it alone spoke of is proved no longer, and nothing else would say that it is again.
TEST_F(SwitchWatchTest, WhomASwitchSeesIsNewsAgainAfterItCouldNotBeReadForThreePolls) {
  const std::string table = "APPL_DB:/LLDP_ENTRY_TABLE";
  There().tables[table] = {{"Ethernet0", {{"lldp_rem_sys_name", "spine-1"}}}};
  Make();
  Pass(5s);
  const auto first = Answer().saw_at;
  ASSERT_TRUE(first);
  Pass(70s);
  const auto second = Answer().saw_at;
  EXPECT_GT(second, first) << "it says the same, and lately";
  There().troubles.emplace(table, base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Pass(300s);
  EXPECT_EQ(Answer().saw_at, second);
  const int told = answers;
  There().troubles.clear();
  Pass(75s);
  EXPECT_GT(Answer().saw_at, second);
  EXPECT_EQ(answers, told + 1);
}

TEST_F(SwitchWatchTest, WhomASwitchOfOpenConfigSawStandsWhileItCannotBeHeardOrRead) {
  ListenAsOpenConfig();
  SaySystem("leaf-3");
  Pass(2s);
  const auto known = Answer().neighbours;
  ASSERT_NE(known, nullptr);
  There().troubles.emplace("/lldp", base::Error{base::Code::kTimeout, "leaf-3: no answer", {}});
  Pass(70s);
  EXPECT_GE(There().asked["/lldp"], 2);
  EXPECT_EQ(Answer().neighbours, known);
  There().troubles.clear();
  There().tables["/lldp"] = "banana";
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, known) << "it answers garbage";
  There().unreadable.insert("/lldp");
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, known) << "it answers without a value";
  There().unreadable.clear();
  There().tables.erase("/lldp");
  Pass(70s);
  EXPECT_EQ(Answer().neighbours, nullptr) << "it has none";
}

TEST_F(SwitchWatchTest, ASwitchThatIsGoneIsForgotten) {
  Make();
  Pass(2s);
  server.Remove(kFabricSwitches, {"", "leaf-3"});
  watch.Changed("leaf-3");
  Pass(1s);
  EXPECT_THAT(watch.Answers(), IsEmpty());
}

TEST_F(SwitchWatchTest, WhatASwitchSaidAtAnotherAddressIsForgottenAtOnce) {
  Make();
  Pass(30s);
  ASSERT_NE(Answer().config, nullptr);
  dialer.switches["other:1"].listens = false;
  server.Edit(kFabricSwitches, {"", "leaf-3"}, [](Json& object) { object["spec"]["address"] = "other:1"; });
  watch.Changed("leaf-3");
  const int before = answers;
  Pass(5s);
  EXPECT_GT(answers, before);
  EXPECT_EQ(Answer().config, nullptr);
  EXPECT_FALSE(Answer().read_at);
  EXPECT_TRUE(Answer().trouble);
}

TEST_F(SwitchWatchTest, OneThatDoesNotAnswerHoldsUpNoOther) {
  dialer.switches["other:1"].listens = false;
  Make("other", "other:1");
  Make();
  Pass(2s);
  EXPECT_TRUE(watch.Answers().at("other").trouble);
  EXPECT_FALSE(Answer().trouble);
}

TEST(TroubleOf, TellsACertificateFromAPortThatNobodyListensOn) {
  const auto reason = [](base::Code code, const char* message) {
    return TroubleOf({code, message, std::nullopt}).reason;
  };
  EXPECT_EQ(reason(base::Code::kUnavailable, "leaf-3:8080: nobody listens there"), "Unreachable");
  EXPECT_EQ(reason(base::Code::kUnavailable, "leaf-3:8080: its certificate has expired"),
            "CertificateRefused");
  EXPECT_EQ(reason(base::Code::kUnauthorized, "leaf-3:8080: user name and password are refused"),
            "PasswordRefused");
}

// The certificate that it is told of would be the switch's own, and this one is ours.
TEST(TroubleOf, NamesAClientCertificateWhereASwitchHangsUp) {
  for (const char* message : {"leaf-3:8080 fails the TLS handshake (alert bad certificate)",
                              "leaf-3:8080 cannot be reached, or ended the connection: Unwrap failed"}) {
    const SwitchTrouble trouble = TroubleOf({base::Code::kUnavailable, message, std::nullopt});
    EXPECT_EQ(trouble.reason, "Unreachable");
    EXPECT_THAT(trouble.message, HasSubstr("client certificate"));
  }
  const SwitchTrouble nobody =
      TroubleOf({base::Code::kUnavailable, "leaf-3:8080 refuses the connection", {}});
  EXPECT_THAT(nobody.message, Not(HasSubstr("client certificate")));
}

}  // namespace
}  // namespace heddle::operators
