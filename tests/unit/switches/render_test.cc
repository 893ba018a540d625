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

}  // namespace
}  // namespace heddle::switches
