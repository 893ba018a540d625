#include "formats/sonic_patch.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "formats/sonic_config.h"
#include "formats/sonic_yang.h"
#include "lossless/compare.h"
#include "qos_text.h"
#include "tests/support/seeds.h"

namespace heddle::formats {
namespace {

using Json = nlohmann::json;
using lossless::PortFacing;
using lossless::PortSettings;
using test::LosslessFixture;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

lossless::SwitchRendering Rendered(const lossless::Policy& policy = {}, std::string_view profile = "sonic/v1",
                                   const lossless::SwitchPortFacts& facts = {}) {
  return lossless::RenderSwitchPort(*lossless::Resolve(policy), *lossless::FindSwitchProfile(profile), facts);
}

SonicPatch PatchOf(const std::string& live, const std::vector<SonicWish>& wishes) {
  auto patch = PatchSonic(live, "roce", wishes);
  EXPECT_TRUE(patch) << patch.error().message;
  return patch ? *std::move(patch) : SonicPatch{};
}

const SonicPort* Find(const SonicConfig& config, const std::string& name) {
  for (const SonicPort& port : config.ports) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

// What reads back is what was wanted; headroom may be more.
void ExpectAsWanted(const std::string& config, const std::vector<SonicWish>& wishes,
                    bool sizes_itself = false) {
  const auto read = ParseSonicConfig(config);
  ASSERT_TRUE(read) << read.error().message;
  for (const SonicWish& wish : wishes) {
    const SonicPort* port = Find(*read, wish.port);
    ASSERT_NE(port, nullptr) << wish.port;
    const PortSettings& want = wish.rendering.settings;
    lossless::ForEachSetting([&](lossless::Setting setting, auto member) {
      if (!(want.*member) || setting == lossless::Setting::kBufferBytes) return;
      EXPECT_TRUE(want.*member == port->settings.*member)
          << wish.port << " " << lossless::SettingName(setting) << ": wanted "
          << lossless::SettingText(want, setting) << ", has "
          << lossless::SettingText(port->settings, setting);
    });
    if (!want.buffer_bytes || sizes_itself) continue;
    ASSERT_TRUE(port->settings.buffer_bytes);
    for (std::size_t group = 0; group < want.buffer_bytes->size(); ++group) {
      if ((*want.buffer_bytes)[group] != lossless::kNotSaid) {
        EXPECT_GE((*port->settings.buffer_bytes)[group], (*want.buffer_bytes)[group]);
      }
    }
  }
}

TEST(SonicPatch, MakesTheDefaultSwitchAsThePolicyWantsItAndTouchesNothingElse) {
  const std::string live = LosslessFixture("sonic-default.json");
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}};
  const SonicPatch patch = PatchOf(live, wishes);
  const auto patched = Patched(live, patch);
  ASSERT_TRUE(patched) << patched.error().message;
  ExpectAsWanted(*patched, wishes);
  const Json before = Json::parse(live), after = Json::parse(*patched);
  // Ethernet4 uses AZURE too, and so does the whole switch.
  EXPECT_EQ(after["DSCP_TO_TC_MAP"]["AZURE"], before["DSCP_TO_TC_MAP"]["AZURE"]);
  EXPECT_EQ(after["PORT_QOS_MAP"]["Ethernet4"], before["PORT_QOS_MAP"]["Ethernet4"]);
  EXPECT_EQ(after["PORT_QOS_MAP"]["global"], before["PORT_QOS_MAP"]["global"]);
  EXPECT_EQ(after["QUEUE"]["Ethernet4|3-4"], before["QUEUE"]["Ethernet4|3-4"]);
  EXPECT_EQ(after["DEVICE_METADATA"], before["DEVICE_METADATA"]);
  EXPECT_EQ(after["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_tc_map"], "HEDDLE_ROCE");
  EXPECT_EQ(after["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"], "3");
  EXPECT_EQ(after["PORT"]["Ethernet0"]["mtu"], "9216");
  // Queue 4 no longer marks, so the range is taken apart.
  EXPECT_FALSE(after["QUEUE"].contains("Ethernet0|3-4"));
  EXPECT_EQ(after["QUEUE"]["Ethernet0|3"]["wred_profile"], "AZURE_LOSSLESS")
      << "it marks as the policy wants already";
  EXPECT_FALSE(after["QUEUE"]["Ethernet0|4"].contains("wred_profile"));
  for (const PatchLine& line : patch.lines) {
    EXPECT_FALSE(line.why.empty()) << line.where;
    EXPECT_FALSE(line.source.empty()) << line.where;
    EXPECT_THAT(line.path, testing::StartsWith("/"));
  }
  EXPECT_THAT(patch.lines,
              Contains(testing::AllOf(testing::Field(&PatchLine::where, "PORT_QOS_MAP|Ethernet0 pfc_enable"),
                                      testing::Field(&PatchLine::before, "3,4"),
                                      testing::Field(&PatchLine::value, "\"3\""),
                                      testing::Field(&PatchLine::op, "replace"))));
}

TEST(SonicPatch, IsEmptyTheSecondTime) {
  const std::string live = LosslessFixture("sonic-default.json");
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}, {"Ethernet4", Rendered()}};
  const auto patched = Patched(live, PatchOf(live, wishes));
  ASSERT_TRUE(patched);
  const SonicPatch again = PatchOf(*patched, wishes);
  EXPECT_THAT(again.lines, IsEmpty());
  EXPECT_EQ(PatchJson(again), "[]\n");
  EXPECT_EQ(Json::parse(*Patched(*patched, again)), Json::parse(*patched));
}

TEST(SonicPatch, MakesAnotherNameWhereAPortOutsideUsesOurs) {
  const std::string live = LosslessFixture("sonic-default.json");
  const auto both = Patched(live, PatchOf(live, {{"Ethernet0", Rendered()}, {"Ethernet4", Rendered()}}));
  ASSERT_TRUE(both);
  lossless::Policy other;
  other.rdma_dscp = 24;
  const std::vector<SonicWish> one{{"Ethernet0", Rendered(other)}};
  const auto patched = Patched(*both, PatchOf(*both, one));
  ASSERT_TRUE(patched);
  ExpectAsWanted(*patched, one);
  const Json after = Json::parse(*patched);
  EXPECT_EQ(after["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_tc_map"], "HEDDLE_ROCE_2");
  EXPECT_EQ(after["DSCP_TO_TC_MAP"]["HEDDLE_ROCE"], Json::parse(*both)["DSCP_TO_TC_MAP"]["HEDDLE_ROCE"]);
  // With both ports it is nobody else's, and edited: three DSCPs and no more.
  const std::vector<SonicWish> all{{"Ethernet0", Rendered(other)}, {"Ethernet4", Rendered(other)}};
  const SonicPatch patch = PatchOf(*both, all);
  EXPECT_EQ(patch.lines.size(), 2u) << PatchJson(patch);
  EXPECT_EQ(patch.lines.front().path, "/DSCP_TO_TC_MAP/HEDDLE_ROCE/24");
}

// The first port has what it wants already, under the name that the second would have rewritten.
TEST(SonicPatch, LeavesAPortOfThePatchTheMapsItHasRightWhereAnotherWantsOthers) {
  lossless::Policy policy, other;
  policy.marking = lossless::EcnMarking{7, 8, 9};
  other.rdma_dscp = 24;
  other.marking = lossless::EcnMarking{17, 18, 9};
  const std::vector<SonicWish> alike{{"Ethernet0", Rendered(policy)}, {"Ethernet4", Rendered(policy)}};
  const std::string live = LosslessFixture("sonic-default.json");
  const auto both = Patched(live, PatchOf(live, alike));
  ASSERT_TRUE(both) << both.error().message;
  const std::vector<SonicWish> apart{{"Ethernet0", Rendered(policy)}, {"Ethernet4", Rendered(other)}};
  const auto patched = Patched(*both, PatchOf(*both, apart));
  ASSERT_TRUE(patched) << patched.error().message;
  ExpectAsWanted(*patched, apart);
  const Json before = Json::parse(*both), after = Json::parse(*patched);
  for (const char* table : {"DSCP_TO_TC_MAP", "WRED_PROFILE"}) {
    EXPECT_EQ(after[table]["HEDDLE_ROCE"], before[table]["HEDDLE_ROCE"]) << table;
    EXPECT_TRUE(after[table].contains("HEDDLE_ROCE_2")) << table;
  }
  EXPECT_THAT(PatchOf(*patched, apart).lines, IsEmpty());
}

TEST(SonicPatch, SizesHeadroomByAProfileLikeThePorts) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["BUFFER_POOL"]["ingress_lossless_pool"] = {
      {"type", "ingress"}, {"mode", "dynamic"}, {"size", "30000000"}};
  for (const char* pool : {"egress_lossless_pool", "egress_lossy_pool"})
    config["BUFFER_POOL"][pool] = {{"type", "egress"}, {"mode", "dynamic"}, {"size", "30000000"}};
  config["BUFFER_PROFILE"]["q_lossy_profile"] = {{"pool", "egress_lossy_pool"}, {"size", "0"}};
  config["BUFFER_PROFILE"]["pg_lossless_400000_3m_profile"] = {{"pool", "ingress_lossless_pool"},
                                                               {"size", "60000"},
                                                               {"xon", "18432"},
                                                               {"xoff", "40000"},
                                                               {"dynamic_th", "0"}};
  config["BUFFER_PROFILE"]["egress_lossless_profile"] = {{"pool", "egress_lossless_pool"}, {"size", "0"}};
  config["BUFFER_PG"]["Ethernet0|3-4"] = {{"profile", "pg_lossless_400000_3m_profile"}};
  config["BUFFER_QUEUE"]["Ethernet0|0-7"] = {{"profile", "q_lossy_profile"}};
  const std::vector<SonicWish> wishes{
      {"Ethernet0", Rendered({}, "spectrum/v1", {PortFacing::kHost, 400'000, 40})}};
  const auto patched = Patched(config.dump(), PatchOf(config.dump(), wishes));
  ASSERT_TRUE(patched);
  ExpectAsWanted(*patched, wishes);
  const Json after = Json::parse(*patched);
  const std::string name = after["BUFFER_PG"]["Ethernet0|3"]["profile"];
  const Json& profile = after["BUFFER_PROFILE"][name];
  const auto xoff = wishes[0].rendering.headroom->xoff_bytes;
  EXPECT_EQ(profile["xoff"], std::to_string(xoff));
  EXPECT_EQ(profile["size"], std::to_string(60000 - 40000 + xoff));
  EXPECT_EQ(profile["dynamic_th"], "0");
  EXPECT_EQ(after["BUFFER_PG"]["Ethernet0|4"]["profile"], "pg_lossless_400000_3m_profile");
  EXPECT_EQ(after["BUFFER_POOL"], config["BUFFER_POOL"]) << "pools are all ports'";
  EXPECT_EQ(after["BUFFER_QUEUE"]["Ethernet0|3"]["profile"], "egress_lossless_profile");
  EXPECT_EQ(after["BUFFER_QUEUE"]["Ethernet0|0-2"]["profile"], "q_lossy_profile");
  const auto size_beside = [&](const char* shared_bytes) {
    Json sharing = config;
    sharing["BUFFER_POOL"]["ingress_lossless_pool"]["xoff"] = shared_bytes;
    const auto text = Patched(sharing.dump(), PatchOf(sharing.dump(), wishes));
    EXPECT_TRUE(text);
    const Json shared = Json::parse(text.value_or("{}"));
    return shared["BUFFER_PROFILE"][shared["BUFFER_PG"]["Ethernet0|3"]["profile"].get<std::string>()]["size"];
  };
  EXPECT_EQ(size_beside("4000000"), "60000") << "headroom is shared, and the profile's size its own";
  EXPECT_EQ(size_beside("0"), profile["size"]);
  EXPECT_EQ(after["BUFFER_QUEUE"]["Ethernet0|4-7"]["profile"], "q_lossy_profile");
  EXPECT_EQ(after["CABLE_LENGTH"]["AZURE"]["Ethernet0"], "40m");
  EXPECT_THAT(PatchOf(*patched, wishes).lines, IsEmpty());
  // More than enough stays as it is; and where the switch computes it, it does.
  config["BUFFER_PROFILE"]["pg_lossless_400000_3m_profile"]["xoff"] = "9000000";
  for (const PatchLine& line : PatchOf(config.dump(), wishes).lines)
    EXPECT_THAT(line.where, Not(HasSubstr("BUFFER_P")));
  config["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic";
  EXPECT_THAT(PatchOf(config.dump(), wishes).notes, Contains(HasSubstr("buffer_model dynamic")));
}

// As sonic-swss' buffermgr makes them, which has no row in its table for most lengths of a cable.
TEST(SonicPatch, MakesAProfileForAGroupThatHasNoneWithXoffWhereChipAndCableAreKnown) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["BUFFER_POOL"]["ingress_lossless_pool"] = {
      {"type", "ingress"}, {"mode", "dynamic"}, {"size", "30000000"}};
  config["BUFFER_PROFILE"]["ingress_lossy_profile"] = {
      {"pool", "ingress_lossless_pool"}, {"size", "0"}, {"dynamic_th", "3"}};
  const std::vector<SonicWish> wishes{
      {"Ethernet0", Rendered({}, "spectrum/v1", {PortFacing::kHost, 400'000, 7})}};
  ASSERT_TRUE(wishes[0].rendering.headroom);
  const lossless::Headroom room = *wishes[0].rendering.headroom;
  const auto made = [&wishes](const Json& live) {
    const auto patched = Patched(live.dump(), PatchOf(live.dump(), wishes));
    EXPECT_TRUE(patched) << patched.error().message;
    ExpectAsWanted(*patched, wishes);
    EXPECT_THAT(PatchOf(*patched, wishes).lines, IsEmpty());
    const auto faults = CheckSonic(*patched), before = CheckSonic(live.dump());
    EXPECT_TRUE(faults && before && *faults == *before) << "it makes none";
    const Json after = Json::parse(*patched);
    return after["BUFFER_PROFILE"][after["BUFFER_PG"]["Ethernet0|3"]["profile"].get<std::string>()];
  };
  const Json fresh = made(config);
  EXPECT_EQ(fresh["pool"], "ingress_lossless_pool");
  EXPECT_EQ(fresh["xoff"], std::to_string(room.xoff_bytes));
  EXPECT_EQ(fresh["xon"], std::to_string(room.xon_bytes));
  EXPECT_EQ(fresh["size"], std::to_string(room.size_bytes()));
  EXPECT_EQ(fresh["dynamic_th"], "0");
  config["BUFFER_PG"]["Ethernet0|3-4"]["profile"] = "ingress_lossy_profile";
  EXPECT_EQ(made(config), fresh) << "a lossy profile is none for a lossless group";
  config["BUFFER_POOL"]["ingress_lossless_pool"]["xoff"] = "4000000";
  EXPECT_EQ(made(config)["size"], std::to_string(room.xon_bytes)) << "headroom is shared";
  // A threshold of a static pool depends on the chip's memory.
  config["BUFFER_POOL"]["ingress_lossless_pool"]["mode"] = "static";
  const SonicPatch left = PatchOf(config.dump(), wishes);
  EXPECT_THAT(left.notes, Contains(HasSubstr("Ethernet0 has no buffer profile with xoff on priority group 3, "
                                             "and gets none: BUFFER_POOL has no ingress_lossless_pool")));
  for (const PatchLine& line : left.lines) EXPECT_THAT(line.where, Not(HasSubstr("BUFFER_P")));
}

TEST(SonicPatch, GivesAGroupARowWhereTheSwitchSizesHeadroomItself) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic";
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered({.cable_metres = 5})}};
  const auto patched = Patched(config.dump(), PatchOf(config.dump(), wishes));
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(Json::parse(*patched)["BUFFER_PG"], (Json{{"Ethernet0|3", {{"profile", "NULL"}}}}));
  EXPECT_THAT(PatchOf(*patched, wishes).lines, IsEmpty());
  const auto read = ParseSonicConfig(*patched);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(Find(*read, "Ethernet0")->settings.sized_by_switch, lossless::PrioritySet{3});
  config["BUFFER_PG"]["Ethernet0|3"] = {{"profile", "mine"}};
  for (const PatchLine& line : PatchOf(config.dump(), wishes).lines)
    EXPECT_THAT(line.where, Not(HasSubstr("BUFFER_PG")));
  config["BUFFER_PG"]["Ethernet0|3"] = Json::object();  // which SONiC refuses
  const auto named = Patched(config.dump(), PatchOf(config.dump(), wishes));
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(Json::parse(*named)["BUFFER_PG"]["Ethernet0|3"]["profile"], "NULL");
}

TEST(SonicPatch, NamesTheLosslessProfileOfQueuesWhereThereIsOneAndSaysWhereThereIsNone) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}};
  const auto note = Contains(HasSubstr("BUFFER_PROFILE has no egress_lossless_profile"));
  EXPECT_THAT(PatchOf(config.dump(), wishes).notes, note);
  config["BUFFER_PROFILE"]["egress_lossless_profile"] = {{"pool", "egress_lossless_pool"}, {"size", "0"}};
  const SonicPatch patch = PatchOf(config.dump(), wishes);
  EXPECT_THAT(patch.notes, Not(note));
  const auto patched = Patched(config.dump(), patch);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(Json::parse(*patched)["BUFFER_QUEUE"],
            (Json{{"Ethernet0|3", {{"profile", "egress_lossless_profile"}}}}));
  EXPECT_THAT(PatchOf(*patched, wishes).lines, IsEmpty());
}

TEST(SonicPatch, KeepsOtherPortsOfOneEntry) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["QUEUE"] = {{"Ethernet0,Ethernet4|3-4", {{"wred_profile", "[WRED_PROFILE|AZURE_LOSSLESS]"}}}};
  config["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_tc_map"] = "[DSCP_TO_TC_MAP|AZURE]";
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered({.marking = lossless::EcnMarking{7, 8, 9}})}};
  const auto patched = Patched(config.dump(), PatchOf(config.dump(), wishes));
  ASSERT_TRUE(patched);
  ExpectAsWanted(*patched, wishes);
  const Json after = Json::parse(*patched);
  EXPECT_EQ(after["QUEUE"]["Ethernet4|3-4"], config["QUEUE"]["Ethernet0,Ethernet4|3-4"]);
  EXPECT_EQ(after["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_tc_map"], "[DSCP_TO_TC_MAP|HEDDLE_ROCE]")
      << "as this switch writes it";
}

TEST(SonicPatch, KeepsWhatAnotherPortOfASharedEntryHasByItself) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  live["SCHEDULER"]["scheduler.9"] = {{"type", "DWRR"}, {"weight", "9"}};
  live["QUEUE"] = {{"Ethernet0,Ethernet4|3-4", {{"wred_profile", "AZURE_LOSSLESS"}}},
                   {"Ethernet4|3-4", {{"scheduler", "scheduler.9"}}}};
  const auto patched = Patched(live.dump(), PatchOf(live.dump(), {{"Ethernet0", Rendered()}}));
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(Json::parse(*patched)["QUEUE"]["Ethernet4|3-4"],
            (Json{{"scheduler", "scheduler.9"}, {"wred_profile", "AZURE_LOSSLESS"}}));
}

TEST(SonicPatch, KeepsWhatAPortHasInAnEntryOfOneQueueBesideOneOfTwo) {
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered({.marking = lossless::EcnMarking{7, 8, 9}})}};
  const std::string before = LosslessFixture("sonic-default.json");
  const auto wanted = Patched(before, PatchOf(before, wishes));
  ASSERT_TRUE(wanted) << wanted.error().message;
  Json live = Json::parse(*wanted);
  const Json scheduler = live["QUEUE"]["Ethernet0|3"]["scheduler"];
  ASSERT_TRUE(scheduler.is_string());
  live["QUEUE"]["Ethernet0|3"].erase("wred_profile");
  live["QUEUE"]["Ethernet0|3-4"] = {{"wred_profile", "AZURE_LOSSLESS"}};
  const auto patched = Patched(live.dump(), PatchOf(live.dump(), wishes));
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(Json::parse(*patched)["QUEUE"]["Ethernet0|3"]["scheduler"], scheduler);
  ExpectAsWanted(*patched, wishes);
}

TEST(SonicPatch, GivesEachPortOfASharedRowOfMapsOneOfItsOwn) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  const Json row = live["PORT_QOS_MAP"]["Ethernet4"];
  live["PORT_QOS_MAP"].erase("Ethernet0");
  live["PORT_QOS_MAP"].erase("Ethernet4");
  live["PORT_QOS_MAP"]["Ethernet0,Ethernet4"] = row;
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}};
  const auto patched = Patched(live.dump(), PatchOf(live.dump(), wishes));
  ASSERT_TRUE(patched) << patched.error().message;
  ExpectAsWanted(*patched, wishes);
  const Json after = Json::parse(*patched);
  EXPECT_FALSE(after["PORT_QOS_MAP"].contains("Ethernet0,Ethernet4"));
  EXPECT_EQ(after["PORT_QOS_MAP"]["Ethernet4"], row);
  EXPECT_THAT(PatchOf(*patched, wishes).lines, IsEmpty());
}

// `pfcwd start_default` on a switch of 64 ports.
TEST(SonicPatch, NeverDetectsFasterThanTheSwitchLooks) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  live["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = "400";
  const SonicPatch patch = PatchOf(live.dump(), {{"Ethernet0", Rendered()}});
  EXPECT_THAT(patch.notes, Contains(HasSubstr("POLL_INTERVAL is 400 ms, so the watchdog of Ethernet0")));
  const auto patched = Patched(live.dump(), patch);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(Json::parse(*patched)["PFC_WD"]["Ethernet0"]["detection_time"], "400");
  EXPECT_THAT(PatchOf(*patched, {{"Ethernet0", Rendered()}}).lines, IsEmpty());
}

TEST(SonicPatch, HasAWatchdogThatOnlyTellsStopStormsAndLeavesOneThatForwards) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  live["PFC_WD"]["Ethernet0"]["action"] = "alert";
  live["PFC_WD"]["Ethernet4"]["action"] = "forward";
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}, {"Ethernet4", Rendered()}};
  const auto patched = Patched(live.dump(), PatchOf(live.dump(), wishes));
  ASSERT_TRUE(patched) << patched.error().message;
  ExpectAsWanted(*patched, wishes);
  EXPECT_EQ(Json::parse(*patched)["PFC_WD"]["Ethernet0"]["action"], "drop");
  EXPECT_EQ(Json::parse(*patched)["PFC_WD"]["Ethernet4"]["action"], "forward");
}

TEST(SonicPatch, IsMadeWhereAnotherPortCannotBeRead) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  live["SCHEDULER"]["mine"] = {{"type", "FIFO"}};
  live["QUEUE"]["Ethernet4|0"]["scheduler"] = "mine";
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}};
  const auto patched = Patched(live.dump(), PatchOf(live.dump(), wishes));
  ASSERT_TRUE(patched) << patched.error().message;
  ExpectAsWanted(*patched, wishes);
}

// 64 ports with PFC, of which PFC_WD knows none.
Json ManyPorts() {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  for (int i = 0; i < 64; ++i) {
    const std::string port = "Ethernet" + std::to_string(i * 4);
    live["PORT"][port] = {{"admin_status", "up"}, {"mtu", "9216"}, {"speed", "400000"}};
    live["PORT_QOS_MAP"][port] = live["PORT_QOS_MAP"]["Ethernet0"];
  }
  live.erase("PFC_WD");
  return live;
}

TEST(SonicPatch, GivesTheWatchdogOfManyPortsAsMuchTimeAsSonicDoes) {
  Json live = ManyPorts();
  const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}};
  const SonicPatch patch = PatchOf(live.dump(), wishes);
  const auto patched = Patched(live.dump(), patch);
  ASSERT_TRUE(patched) << patched.error().message;
  const Json watchdog = Json::parse(*patched)["PFC_WD"];
  EXPECT_EQ(watchdog["Ethernet0"],
            (Json{{"action", "drop"}, {"detection_time", "400"}, {"restoration_time", "400"}}));
  EXPECT_EQ(watchdog["GLOBAL"]["POLL_INTERVAL"], "400");
  EXPECT_THAT(PatchJson(PatchOf(*patched, wishes)), Not(HasSubstr("PFC_WD"))) << "and so it stays";
  std::string sources;
  for (const PatchLine& line : patch.lines) {
    if (line.where.starts_with("PFC_WD")) sources += line.source + "\n";
  }
  EXPECT_THAT(sources, HasSubstr("200 ms for each 32 ports with PFC, and 64 have it"));
  // 32 ports take one step, and ports without PFC do not count.
  int left = 0;
  for (auto& [port, map] : live["PORT_QOS_MAP"].items()) {
    if (port != "Ethernet0" && ++left > 31) map["pfc_enable"] = "";
  }
  const auto fewer = Patched(live.dump(), PatchOf(live.dump(), wishes));
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_EQ(Json::parse(*fewer)["PFC_WD"]["Ethernet0"]["detection_time"], "200");
}

TEST(SonicPatch, LooksAsOftenAsTheShortestTimeThatStands) {
  Json live = ManyPorts();
  live["PFC_WD"]["Ethernet4"] = {{"action", "drop"}, {"detection_time", "300"}, {"restoration_time", "250"}};
  const auto patched = Patched(live.dump(), PatchOf(live.dump(), {{"Ethernet0", Rendered()}}));
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(Json::parse(*patched)["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"], "250");
  const auto faults = CheckSonic(*patched);
  ASSERT_TRUE(faults);
  EXPECT_THAT(*faults, IsEmpty());
}

TEST(SonicPatch, ReadsACableOfNoLength) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  live["CABLE_LENGTH"]["AZURE"] = {{"Ethernet0", "None"}, {"Ethernet4", "5m"}};
  const auto read = ParseSonicConfig(live.dump());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(Find(*read, "Ethernet0")->settings.cable_metres, std::nullopt);
  EXPECT_EQ(Find(*read, "Ethernet4")->settings.cable_metres, 5);
}

TEST(SonicPatch, StopsTheWatchdogWithPfc) {
  const std::string live = LosslessFixture("sonic-default.json");
  const std::vector<SonicWish> wishes{
      {"Ethernet0", Rendered({.pfc = lossless::PrioritySet{}, .watchdog_ms = lossless::kWatchdogOff})}};
  const auto patched = Patched(live, PatchOf(live, wishes));
  ASSERT_TRUE(patched);
  ExpectAsWanted(*patched, wishes);
  EXPECT_FALSE(Json::parse(*patched)["PFC_WD"].contains("Ethernet0"));
  EXPECT_TRUE(Json::parse(*patched)["PFC_WD"].contains("Ethernet4"));
}

TEST(SonicPatch, RefusesWhatItCannotRender) {
  const std::string live = LosslessFixture("sonic-default.json");
  const auto refusal = [](const std::string& text, const std::string& port) {
    const auto patch = PatchSonic(text, "roce", {{port, Rendered()}});
    return patch ? std::string("was made") : patch.error().message;
  };
  EXPECT_EQ(refusal(live, "Ethernet99"),
            "the switch's table PORT has no Ethernet99; it has 3 ports, such as Ethernet0");
  EXPECT_EQ(refusal(live, "Eternet4"),
            "the switch's table PORT has no Eternet4; it has 3 ports, such as Ethernet4");
  EXPECT_EQ(refusal(live, "etp2"), "etp2 is the alias of port Ethernet4: write that");
  EXPECT_THAT(refusal("{}", "Ethernet0"), HasSubstr("neither PORT nor PORT_QOS_MAP"));
  Json config = Json::parse(live);
  config["DEVICE_METADATA"]["localhost"]["switch_type"] = "voq";
  EXPECT_THAT(refusal(config.dump(), "Ethernet0"), HasSubstr("VOQ chassis"));
  config = Json::parse(live);
  config["QUEUE"] = Json::array();
  EXPECT_THAT(refusal(config.dump(), "Ethernet0"), HasSubstr("QUEUE is no table"));
  config = Json::parse(live);
  config["PORTCHANNEL_MEMBER"] = {{"PortChannel1|Ethernet0", Json::object()}};
  EXPECT_THAT(PatchOf(config.dump(), {{"Ethernet0", Rendered()}}).notes,
              Contains(HasSubstr("in a port channel")));
}

TEST(SonicPatch, NotesAMapOfPausesToGroupsWhereItIsNotAsRendered) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["PORT_QOS_MAP"]["Ethernet0"]["pfc_to_pg_map"] = "AZURE";
  config["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"]["AZURE"] = {{"3", "3"}, {"4", "4"}};
  const auto note = Contains(HasSubstr("pfc_to_pg_map"));
  EXPECT_THAT(PatchOf(config.dump(), {{"Ethernet0", Rendered()}}).notes, Not(note));
  config["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"]["AZURE"]["3"] = "4";
  EXPECT_THAT(PatchOf(config.dump(), {{"Ethernet0", Rendered()}}).notes, note);
}

TEST(SonicPatch, LeavesTheMtuOfAPortChannelAloneWhereItIsRight) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  config["PORTCHANNEL_MEMBER"] = {{"PortChannel1|Ethernet0", Json::object()}};
  config["PORTCHANNEL"] = {{"PortChannel1", {{"mtu", "1500"}}}};
  const std::string note = "Ethernet0 is in a port channel, whose MTU is set there: set it to 9216";
  EXPECT_THAT(PatchOf(config.dump(), {{"Ethernet0", Rendered()}}).notes, Contains(note));
  config["PORTCHANNEL"]["PortChannel1"]["mtu"] = "9216";
  const SonicPatch patch = PatchOf(config.dump(), {{"Ethernet0", Rendered()}});
  EXPECT_THAT(patch.notes, Not(Contains(note)));
  EXPECT_THAT(PatchJson(patch), Not(HasSubstr("/PORT/Ethernet0"))) << "what stands there counts for nothing";
}

// Switches of all kinds: other maps, ranges, queues without entries, ports of others, tables that are not there.
Json RandomConfig(base::Random& random) {
  Json config = Json::parse(LosslessFixture("sonic-default.json"));
  const auto one_in = [&](std::uint64_t n) { return random.Below(n) == 0; };
  const bool brackets = one_in(4);
  for (int i = 3; i < 8; ++i) {
    const std::string port = "Ethernet" + std::to_string(i * 4);
    config["PORT"][port] = {
        {"admin_status", "up"}, {"mtu", one_in(2) ? "9100" : "9216"}, {"speed", "400000"}};
    config["PORT_QOS_MAP"][port] = config["PORT_QOS_MAP"]["Ethernet0"];
    if (one_in(3)) config["PORT_QOS_MAP"][port].erase("dscp_to_tc_map");
    if (one_in(3)) config["PORT_QOS_MAP"][port].erase("pfcwd_sw_enable");
    if (one_in(3)) config["PORT_QOS_MAP"][port]["pfc_enable"] = one_in(2) ? "" : "4,3";
    if (one_in(2))
      config["PFC_WD"][port] = {{"action", "alert"}, {"detection_time", "400"}, {"restoration_time", "400"}};
    if (one_in(3)) config["CABLE_LENGTH"]["AZURE"][port] = std::to_string(1 + random.Below(300)) + "m";
    for (int queue = 0; queue < 8; ++queue) {
      const int last = std::min(7, queue + int(random.Below(4)));
      Json value = Json::object();
      if (one_in(2)) value["scheduler"] = one_in(2) ? "scheduler.0" : "scheduler.1";
      if (one_in(2)) value["wred_profile"] = one_in(2) ? "AZURE_LOSSLESS" : "OTHER";
      if (!value.empty() && !one_in(4))
        config["QUEUE"]
              [port + "|" +
               (last == queue ? std::to_string(queue) : std::to_string(queue) + "-" + std::to_string(last))] =
                  value;
      queue = last;
    }
  }
  config["SCHEDULER"] = {{"scheduler.0", {{"type", "DWRR"}, {"weight", "14"}}},
                         {"scheduler.1", {{"type", one_in(2) ? "DWRR" : "STRICT"}, {"weight", "15"}}}};
  config["WRED_PROFILE"]["OTHER"] = {{"ecn", one_in(2) ? "ecn_none" : "ecn_all"},
                                     {"green_min_threshold", "1000"},
                                     {"green_max_threshold", "2000"},
                                     {"green_drop_probability", "10"}};
  config["VLAN"] = {{"Vlan100", {{"vlanid", "100"}}}};
  config["BGP_NEIGHBOR"] = {{"10.0.0.1", {{"asn", "65001"}}}};
  if (one_in(3)) config.erase("PFC_WD");
  if (one_in(4)) config.erase("QUEUE");
  if (one_in(4)) config["DSCP_TO_TC_MAP"]["HEDDLE_ROCE"] = {{"1", "1"}};
  if (one_in(4)) config["SCHEDULER"]["heddle.strict"] = {{"type", "DWRR"}, {"weight", "3"}};
  if (brackets) {
    for (auto& [port, map] : config["PORT_QOS_MAP"].items()) {
      if (map.contains("dscp_to_tc_map")) map["dscp_to_tc_map"] = "[DSCP_TO_TC_MAP|AZURE]";
    }
  }
  return config;
}

lossless::Policy RandomPolicy(base::Random& random) {
  lossless::Policy policy;
  if (random.Below(2) == 0) policy.rdma_priority = int(random.Below(6));
  if (random.Below(2) == 0) policy.rdma_dscp = 1 + int(random.Below(40));
  if (random.Below(2) == 0) policy.rdma_percent = 1 + int(random.Below(99));
  if (random.Below(3) == 0)
    policy.marking = lossless::EcnMarking{1000, 1 + int(random.Below(2'000'000)) + 1000, 7};
  if (random.Below(4) == 0) policy.pfc = lossless::PrioritySet{};
  if (random.Below(3) == 0) policy.classes = {{"nvme", lossless::ClassUse::kStorage, {50, 51}, 1}};
  if (random.Below(2) == 0) policy.cable_metres = 1 + int(random.Below(50));
  return policy;
}

// Everything that is no lossless setting of these ports.
Json Foreign(Json config, const std::set<std::string>& ports) {
  for (const char* table : {"DSCP_TO_TC_MAP", "TC_TO_PRIORITY_GROUP_MAP", "TC_TO_QUEUE_MAP",
                            "MAP_PFC_PRIORITY_TO_QUEUE", "SCHEDULER", "WRED_PROFILE"}) {
    if (!config.contains(table)) continue;
    for (const std::string& name : std::vector<std::string>{"HEDDLE_ROCE", "heddle.strict"})
      config[table].erase(name);
    std::vector<std::string> ours;
    for (const auto& [name, value] : config[table].items()) {
      if (name.starts_with("HEDDLE_") || name.starts_with("heddle.")) ours.push_back(name);
    }
    for (const std::string& name : ours) config[table].erase(name);
  }
  if (config.contains("CABLE_LENGTH")) {
    for (auto& [name, lengths] : config["CABLE_LENGTH"].items()) {
      for (const std::string& port : ports) lengths.erase(port);
    }
    config["CABLE_LENGTH"].erase("AZURE");
    if (config["CABLE_LENGTH"].empty()) config.erase("CABLE_LENGTH");
  }
  for (const char* table : {"PORT", "PORT_QOS_MAP", "PFC_WD", "QUEUE"}) {
    if (!config.contains(table)) continue;
    std::vector<std::string> keys;
    for (const auto& [key, value] : config[table].items()) {
      if (ports.contains(key.substr(0, key.find('|'))) || key == "GLOBAL") keys.push_back(key);
    }
    for (const std::string& key : keys) config[table].erase(key);
    if (config[table].empty()) config.erase(table);
  }
  return config;
}

TEST(SonicPatch, MakesAnySwitchAsWantedTouchesNobodyElseAndIsEmptyTheSecondTime) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::string live = RandomConfig(random).dump();
    const lossless::SwitchRendering rendering = Rendered(RandomPolicy(random));
    std::vector<SonicWish> wishes;
    std::set<std::string> ports;
    for (const char* port : {"Ethernet0", "Ethernet12", "Ethernet16", "Ethernet20"}) {
      if (random.Below(2) == 0) continue;
      wishes.push_back({port, rendering});
      ports.insert(port);
    }
    const SonicPatch patch = PatchOf(live, wishes);
    for (const PatchLine& line : patch.lines) {
      EXPECT_NE(line.why, "") << line.where;
      EXPECT_NE(line.source, "") << line.where;
    }
    const auto patched = Patched(live, patch);
    ASSERT_TRUE(patched) << patched.error().message;
    ExpectAsWanted(*patched, wishes);
    EXPECT_THAT(PatchOf(*patched, wishes).lines, IsEmpty());
    EXPECT_EQ(Foreign(Json::parse(live), ports), Foreign(Json::parse(*patched), ports));
    // The other ports read as they did.
    const auto before = ParseSonicConfig(live), after = ParseSonicConfig(*patched);
    ASSERT_TRUE(before && after);
    for (const SonicPort& port : before->ports) {
      if (!ports.contains(port.name)) {
        EXPECT_EQ(*Find(*after, port.name), port) << port.name;
      }
    }
    const auto faults = CheckSonic(*patched), faults_before = CheckSonic(live);
    ASSERT_TRUE(faults && faults_before);
    for (const SonicFault& fault : *faults)
      EXPECT_THAT(*faults_before, Contains(fault)) << fault.where << " " << fault.what;
    if (HasFailure()) return;
  }
}

TEST(SonicPatch, SurvivesAnyDamage) {
  const std::string live = LosslessFixture("sonic-default.json");
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::string damaged = test::Damage(live, random);
    const std::vector<SonicWish> wishes{{"Ethernet0", Rendered()}};
    const auto patch = PatchSonic(damaged, "roce", wishes);
    if (patch) {
      EXPECT_TRUE(Patched(damaged, *patch));
    }
    (void)CheckSonic(damaged);
  }
}

}  // namespace
}  // namespace heddle::formats
