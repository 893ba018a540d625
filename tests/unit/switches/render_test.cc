#include "switches/render.h"

#include <gmock/gmock.h>

namespace heddle::switches {
namespace {

using testing::IsEmpty;

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
