#include "switches/render.h"

#include <gmock/gmock.h>

#include <string>

#include "formats/sonic_config.h"
#include "lossless/short_room.h"

namespace heddle::switches {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(SwitchRender, TellsFaultsThatAPatchMakesFromThoseThatWereThere) {
  const std::string config = R"({"PORT": {"Ethernet0": {"mtu": "9100"}},
      "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"},
                 "Ethernet0": {"action": "ignore", "detection_time": "200", "restoration_time": "200"}}})";
  formats::SonicPatch patch;
  const auto faults = FaultsOf(config, patch);
  ASSERT_TRUE(faults) << faults.error().message;
  ASSERT_EQ(faults->before.size(), 1u);
  EXPECT_EQ(faults->before[0].where, "PFC_WD|Ethernet0 action");
  EXPECT_THAT(faults->made, IsEmpty());
  EXPECT_FALSE(faults->empty());
  patch.lines.push_back({"replace", "/PORT/Ethernet0/mtu", "\"9300\"", "PORT|Ethernet0 mtu", "9100", "", ""});
  const auto more = FaultsOf(config, patch);
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->before.size(), 1u);
  ASSERT_EQ(more->made.size(), 1u);
  EXPECT_EQ(more->made[0].where, "PORT|Ethernet0 mtu");
  patch.lines.push_back({"remove", "/PORT/Ethernet4", "", "PORT|Ethernet4", "", "", ""});
  EXPECT_FALSE(FaultsOf(config, patch)) << "it has no such port";
}

TEST(SwitchRender, GivesAPortWithTooLittleHeadroomEnough) {
  const auto answer = ReadSonicText(
      R"({"DEVICE_METADATA": {"localhost": {"hostname": "leaf-3", "platform": "x86_64-nvidia_sn5600-r0"}},
          "PORT": {"Ethernet0": {"speed": "400000", "mtu": "9100"}},
          "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m"}},
          "BUFFER_POOL": {"ingress_lossless_pool": {"mode": "dynamic", "size": "1000000", "type": "ingress"}},
          "BUFFER_PROFILE": {"small": {"pool": "ingress_lossless_pool", "size": "0", "dynamic_th": "0",
                                       "xoff": "20000"}},
          "BUFFER_PG": {"Ethernet0|3": {"profile": "small"}}})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(FindShortRoom(answer->config.ports.at(0).settings, 3, 400'000));
  const auto patch =
      RenderPorts(*answer, {"roce", *lossless::Resolve({.cable_metres = 40}), {"Ethernet0"}, {}});
  ASSERT_TRUE(patch) << patch.error().message;
  const auto patched = formats::Patched(answer->text, *patch);
  ASSERT_TRUE(patched) << patched.error().message;
  const auto after = formats::ParseSonicConfig(*patched);
  ASSERT_TRUE(after) << after.error().message;
  const lossless::PortSettings& port = after->ports.at(0).settings;
  EXPECT_EQ(port.cable_metres, 40);
  EXPECT_EQ(port.buffer_bytes->at(3), 274'432) << "by headroom_test.cc";
  EXPECT_FALSE(FindShortRoom(port, 3, 400'000));
}

TEST(SwitchRender, SaysThatHeadroomHasNoRoomOfASwitchWhoseChipItKnows) {
  const auto notes = [](const std::string& platform) {
    const auto answer = ReadSonicText(
        R"({"DEVICE_METADATA": {"localhost": {"hostname": "leaf-3", "platform": ")" + platform + R"("}},
            "PORT": {"Ethernet0": {"speed": "400000", "mtu": "9100"}},
            "BUFFER_POOL": {
              "ingress_lossless_pool": {"mode": "dynamic", "size": "1000000", "type": "ingress"},
              "egress_lossless_pool": {"mode": "dynamic", "size": "1200000", "type": "egress"}},
            "BUFFER_PROFILE": {"small": {"pool": "ingress_lossless_pool", "size": "40000", "dynamic_th": "0",
                                         "xoff": "20000"}},
            "BUFFER_PG": {"Ethernet0|3": {"profile": "small"}}})");
    EXPECT_TRUE(answer) << answer.error().message;
    const auto patch =
        RenderPorts(*answer, {"roce", *lossless::Resolve({.cable_metres = 40}), {"Ethernet0"}, {}});
    EXPECT_TRUE(patch) << patch.error().message;
    return patch->notes;
  };
  EXPECT_THAT(
      notes("x86_64-nvidia_sn5600-r0"),
      Contains(HasSubstr("1 port x 1 group x 294432 bytes = 294432 bytes, and BUFFER_POOL leaves 200000 "
                         "of 1200000")));
  EXPECT_THAT(notes("x86_64-generic-r0"), Not(Contains(HasSubstr("headroom of all ports"))));
}

// The policy says how long hosts' cables are, and nobody how long those between switches.
TEST(SwitchRender, SetsPortsToOtherSwitchesAsThoseToHostsButForTheLengthOfTheirCables) {
  const auto answer = ReadSonicText(
      R"({"DEVICE_METADATA": {"localhost": {"hostname": "leaf-3", "platform": "x86_64-nvidia_sn5600-r0"}},
          "PORT": {"Ethernet0": {"speed": "400000", "mtu": "9100"},
                   "Ethernet256": {"speed": "400000", "mtu": "9100"}},
          "CABLE_LENGTH": {"AZURE": {"Ethernet0": "5m", "Ethernet256": "40m"}}})");
  ASSERT_TRUE(answer) << answer.error().message;
  const auto patch =
      RenderPorts(*answer, {"roce", *lossless::Resolve({.cable_metres = 3}), {"Ethernet0"}, {"Ethernet256"}});
  ASSERT_TRUE(patch) << patch.error().message;
  const auto patched = formats::Patched(answer->text, *patch);
  ASSERT_TRUE(patched) << patched.error().message;
  const auto after = formats::ParseSonicConfig(*patched);
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(after->ports.size(), 2u);
  lossless::PortSettings host = after->ports[0].settings, fabric = after->ports[1].settings;
  EXPECT_EQ(fabric.pfc, lossless::PrioritySet{3});
  EXPECT_EQ(host.cable_metres, 3);
  EXPECT_EQ(fabric.cable_metres, 40);
  host.cable_metres = fabric.cable_metres;
  EXPECT_EQ(host, fabric);
}

std::string ProfileNamed(const std::string& platform, const std::string& hwsku) {
  SonicAnswer answer;
  answer.platform = platform;
  answer.model = hwsku;
  return ProfileOf(answer).name;
}

TEST(SwitchRender, TakesTheProfileOfTheChipByThePlatformElseByTheHwsku) {
  EXPECT_EQ(ProfileNamed("x86_64-mlnx_msn2700-r0", "ACS-MSN2700"), "spectrum/v1");
  EXPECT_EQ(ProfileNamed("x86_64-mlnx_lssn2700-r0", ""), "spectrum/v1");
  EXPECT_EQ(ProfileNamed("x86_64-mlnx_msn4700-r0", "Mellanox-SN4700-O128"), "spectrum/v1");
  EXPECT_EQ(ProfileNamed("x86_64-nvidia_sn5600-r0", "Mellanox-SN5600-O128"), "spectrum4/v1");
  EXPECT_EQ(ProfileNamed("x86_64-nvidia_sn5610n-r0", "our-own-name"), "spectrum4/v1");
  EXPECT_EQ(ProfileNamed("x86_64-nvidia_sn5640_simx-r0", ""), "spectrum4/v1");
  EXPECT_EQ(ProfileNamed("", "Mellanox-SN5640-C512S2"), "spectrum4/v1");
  EXPECT_EQ(ProfileNamed("", "ACS-SN5400"), "spectrum4/v1");
  EXPECT_EQ(ProfileNamed("", "ACS-MSN3800"), "spectrum/v1");
  // Larger cells than any that is known here, and makers whose numbers mean something else.
  EXPECT_EQ(ProfileNamed("x86_64-nvidia_sn6600_simx-r0", ""), "sonic/v1");
  EXPECT_EQ(ProfileNamed("", "Arista-7060CX-32S-C32"), "sonic/v1");
  EXPECT_EQ(ProfileNamed("x86_64-other_sn5600-r0", ""), "sonic/v1");
  EXPECT_EQ(ProfileNamed("", ""), "sonic/v1");
}

}  // namespace
}  // namespace heddle::switches
