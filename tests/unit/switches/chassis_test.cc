// LLDP's chassis ids, as switches and hosts write them.
#include "switches/chassis.h"

#include <gmock/gmock.h>

#include <string>

namespace heddle::switches {
namespace {

TEST(Chassis, OfAMacAreOneInWhateverNotation) {
  for (const char* other :
       {"04:3f:72:aa:bb:cc", "04:3F:72:AA:BB:CC", "04-3F-72-AA-BB-CC", "043f.72aa.bbcc", "043F72AABBCC"}) {
    EXPECT_TRUE(IsSameChassis("04:3f:72:aa:bb:cc", other)) << other;
    EXPECT_FALSE(IsSameChassis("04:3f:72:aa:bb:cd", other)) << other;
  }
}

TEST(Chassis, ThatAreNoMacAreOneOnlyAsTheyStand) {
  EXPECT_TRUE(IsSameChassis("Leaf-3", "leaf-3")) << "a local one, or an interface's name";
  EXPECT_FALSE(IsSameChassis("leaf-3", "leaf3"));
  EXPECT_FALSE(IsSameChassis("eth0", "04:3f:72:aa:bb:cc"));
  EXPECT_TRUE(IsSameChassis("10.0.0.17", "10.0.0.17"));
  EXPECT_FALSE(IsSameChassis("10.0.0.17", "100.0.17")) << "an address, whose dots count";
  EXPECT_FALSE(IsSameChassis("04:3f:72:aa:bb", "04:3f:72:aa:bb:cc"));
  EXPECT_FALSE(IsSameChassis("", "04:3f:72:aa:bb:cc"));
}

TEST(Chassis, OfASwitchIsReadAndGarbageIsNone) {
  EXPECT_EQ(ChassisIdIn(crds::Json("52:54:00:00:00:03")), "52:54:00:00:00:03");
  EXPECT_EQ(ChassisIdIn(crds::Json("leaf\x07-3")), "leaf?-3");
  EXPECT_EQ(ChassisIdIn(crds::Json(std::string(1000, 'x'))).size(), kMaxChassisId);
  for (const char* garbage : {"{}", "[]", "7", "null", "true", "\"\""})
    EXPECT_EQ(ChassisIdIn(crds::Json::parse(garbage)), "") << garbage;
}

}  // namespace
}  // namespace heddle::switches
