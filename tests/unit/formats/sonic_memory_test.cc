#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/sonic_patch.h"

namespace heddle::formats {
namespace {

using Json = nlohmann::json;
using lossless::PortFacing;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kHeadroom = "headroom of all ports";

// sonic-buildimage, ACS-MSN2700: buffers_defaults_t1.j2, whose pools are for 16 ports of 100 Gb/s over 40 m and 16 over
// 300 m, and what pg_profile_lookup.ini has for both.
Json Leaf() {
  Json config = Json::parse(R"({
    "BUFFER_POOL": {
      "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "3302912"},
      "ingress_lossy_pool": {"type": "ingress", "mode": "dynamic", "size": "3302912"},
      "egress_lossless_pool": {"type": "egress", "mode": "dynamic", "size": "13945824"},
      "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "3302912"}},
    "BUFFER_PROFILE": {
      "ingress_lossy_profile": {"pool": "ingress_lossy_pool", "size": "0", "dynamic_th": "3"},
      "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"},
      "pg_lossless_100000_40m_profile": {"pool": "ingress_lossless_pool", "size": "58368", "xon": "19456",
                                         "xoff": "38912", "dynamic_th": "0"},
      "pg_lossless_100000_300m_profile": {"pool": "ingress_lossless_pool", "size": "123904", "xon": "19456",
                                          "xoff": "104448", "dynamic_th": "0"}}})");
  for (int i = 0; i < 32; ++i) {
    const std::string port = "Ethernet" + std::to_string(4 * i);
    config["PORT"][port] = {{"speed", "100000"}, {"mtu", "9100"}, {"admin_status", "up"}};
    config["BUFFER_PG"][port + "|0"]["profile"] = "ingress_lossy_profile";
    config["BUFFER_PG"][port + "|3-4"]["profile"] =
        i < 16 ? "pg_lossless_100000_40m_profile" : "pg_lossless_100000_300m_profile";
  }
  return config;
}

// Of 4 of its ports, which get more headroom than they have.
std::vector<SonicWish> Wishes(std::string_view profile = "spectrum/v1", int metres = 40) {
  const auto rendering = lossless::RenderSwitchPort(
      *lossless::Resolve({}), *lossless::FindSwitchProfile(profile), {PortFacing::kHost, 100'000, metres});
  std::vector<SonicWish> wishes;
  for (const char* port : {"Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12"})
    wishes.push_back({port, rendering});
  return wishes;
}

// What is said of memory; empty where nothing is.
std::string Said(const Json& config, const std::vector<SonicWish>& wishes = Wishes()) {
  const auto patch = PatchSonic(config.dump(), "roce", wishes);
  EXPECT_TRUE(patch) << patch.error().message;
  std::string said;
  if (!patch) return said;
  for (const std::string& note : patch->notes) {
    if (note.starts_with(kHeadroom)) said += note;
  }
  return said;
}

std::string SaidOf(const std::function<void(Json&)>& change) {
  Json config = Leaf();
  change(config);
  return Said(config);
}

// 5,832,704 bytes of headroom beside an ingress_lossless_pool of 3,302,912: it is not taken from that.
TEST(SonicMemory, HasRoomForWhatSonicItselfReservesOnALeaf) {
  EXPECT_EQ(Said(Leaf()), "");
}

TEST(SonicMemory, SaysByNumbersThatWhatIsRenderedHasNoRoom) {
  Json config = Leaf();
  // 13,945,824 - 2 x 4,000,000 are left: 113,120 more than is reserved.
  for (const char* pool : {"ingress_lossless_pool", "ingress_lossy_pool"})
    config["BUFFER_POOL"][pool]["size"] = "4000000";
  const auto wishes = Wishes();
  const std::int64_t size = 58'368 - 38'912 + wishes[0].rendering.headroom->xoff_bytes;
  ASSERT_GT(4 * (size - 58'368), 113'120) << "of 4 ports, whose group 3 grows";
  const std::int64_t sum = 5'832'704 + 4 * (size - 58'368);
  const std::string said = Said(config, wishes);
  EXPECT_THAT(said, HasSubstr("16 ports x 2 groups x 123904 bytes + 12 ports x 2 groups x 58368 bytes"));
  EXPECT_THAT(said, HasSubstr("4 ports x 1 group x " + std::to_string(size) + " bytes"));
  EXPECT_THAT(said, HasSubstr("4 ports x 1 group x 58368 bytes")) << "group 4 stays as it is";
  EXPECT_THAT(said,
              HasSubstr(" = " + std::to_string(sum) + " bytes, and BUFFER_POOL leaves 5945824 of 13945824"));
  EXPECT_THAT(said, HasSubstr("as it is, 5832704 bytes are reserved, which have room"));
  EXPECT_THAT(said, HasSubstr("let groups share headroom"));
  EXPECT_THAT(said,
              HasSubstr("make the ingress pools " + std::to_string(sum - 5'945'824) + " bytes smaller"));
}

TEST(SonicMemory, SaysSoOfWhatTheConfigurationReservesAlready) {
  Json config = Leaf();
  config["BUFFER_POOL"]["ingress_lossless_pool"]["size"] = "5000000";
  EXPECT_THAT(Said(config), HasSubstr("as it is, 5832704 bytes are reserved, which have no room either"));
  const auto patch = PatchSonic(config.dump(), "roce", Wishes());
  ASSERT_TRUE(patch);
  const auto patched = Patched(config.dump(), *patch);
  ASSERT_TRUE(patched);
  EXPECT_THAT(Said(Json::parse(*patched)), HasSubstr("; so it is already. Say how long"));
}

TEST(SonicMemory, CountsASharedHeadroomPoolAndAdvisesNoSecondOne) {
  Json config = Leaf();
  config["BUFFER_POOL"]["ingress_lossless_pool"]["xoff"] = "2000000";
  const std::string said = Said(config);
  EXPECT_THAT(said, HasSubstr("leaves 5340000 of 13945824"));
  EXPECT_THAT(said, Not(HasSubstr("share headroom")));
}

TEST(SonicMemory, LeavesOutWhatReservesNothing) {
  // No room for 32 ports, and room for those that are up.
  const auto tight = [](Json& config) { config["BUFFER_POOL"]["ingress_lossless_pool"]["size"] = "7000000"; };
  EXPECT_NE(SaidOf(tight), "");
  EXPECT_EQ(SaidOf([&](Json& config) {
              tight(config);
              for (int i = 16; i < 32; ++i)
                config["PORT"]["Ethernet" + std::to_string(4 * i)]["admin_status"] = "down";
            }),
            "");
  EXPECT_EQ(SaidOf([&](Json& config) {
              tight(config);
              config["BUFFER_PROFILE"]["pg_lossless_100000_300m_profile"].erase("xoff");
            }),
            "")
      << "a profile without xoff is a lossy one";
  EXPECT_EQ(SaidOf([&](Json& config) {
              tight(config);
              for (int i = 16; i < 32; ++i)
                config["PORT"]["Ethernet" + std::to_string(4 * i)].erase("admin_status");
            }),
            "")
      << "down where nothing is said";
  EXPECT_EQ(
      SaidOf([&](Json& config) {
        tight(config);
        config["BUFFER_PROFILE"]["less"] = {{"pool", "ingress_lossless_pool"}, {"size", "1"}, {"xoff", "1"}};
        for (int i = 16; i < 32; ++i) {
          for (const char* group : {"|3", "|4"})
            config["BUFFER_PG"]["Ethernet" + std::to_string(4 * i) + group]["profile"] = "less";
        }
      }),
      "")
      << "of two rows that do not agree the lesser counts";
}

TEST(SonicMemory, CountsOfPortsThatAreDownWhatSonicDoesNotTakeBack) {
  const auto down = [](Json& config) {
    config["BUFFER_POOL"]["ingress_lossless_pool"]["size"] = "7000000";
    config["BUFFER_PROFILE"]["heddle_lossless_104448"] =
        config["BUFFER_PROFILE"]["pg_lossless_100000_300m_profile"];
    for (int i = 16; i < 32; ++i) {
      const std::string port = "Ethernet" + std::to_string(4 * i);
      config["PORT"][port]["admin_status"] = "down";
      config["BUFFER_PG"][port + "|3-4"]["profile"] = "heddle_lossless_104448";
    }
  };
  EXPECT_NE(SaidOf(down), "");
}

TEST(SonicMemory, SaysNothingOfAChipThatIsNotKnownAndWhereTheSwitchSizesItself) {
  const auto tight = [](Json& config) { config["BUFFER_POOL"]["ingress_lossless_pool"]["size"] = "7000000"; };
  Json config = Leaf();
  tight(config);
  EXPECT_NE(Said(config), "");
  EXPECT_EQ(Said(config, Wishes("sonic/v1")), "") << "no chip is known";
  config["DEVICE_METADATA"]["localhost"]["buffer_model"] = "dynamic";
  EXPECT_EQ(Said(config), "");
}

TEST(SonicMemory, SaysNothingWhereAPoolDoesNotSayWhatThisTakes) {
  const auto pool = [](const char* name, const char* field, const Json& value) {
    return SaidOf([=](Json& config) {
      config["BUFFER_POOL"]["ingress_lossless_pool"]["size"] = "7000000";
      if (value.is_null()) {
        config["BUFFER_POOL"][name].erase(field);
      } else {
        config["BUFFER_POOL"][name][field] = value;
      }
    });
  };
  EXPECT_NE(pool("egress_lossy_pool", "size", "1"), "") << "it is no ingress pool";
  EXPECT_EQ(pool("ingress_lossless_pool", "size", nullptr), "");
  EXPECT_EQ(pool("ingress_lossy_pool", "size", "many"), "");
  EXPECT_EQ(pool("ingress_lossy_pool", "size", "-1"), "");
  EXPECT_EQ(pool("ingress_lossy_pool", "type", "both"), "");
  EXPECT_EQ(pool("ingress_lossless_pool", "xoff", "99999999999999999999"), "");
  EXPECT_EQ(pool("egress_lossless_pool", "size", nullptr), "");
  EXPECT_EQ(pool("egress_lossless_pool", "mode", "static"), "")
      << "of Broadcom's chips it is no measure of memory";
  EXPECT_EQ(pool("egress_lossless_pool", "size", "10302912"), "")
      << "nor where the ingress pools are as large";
  EXPECT_EQ(SaidOf([](Json& config) { config.erase("BUFFER_POOL"); }), "");
}

}  // namespace
}  // namespace heddle::formats
