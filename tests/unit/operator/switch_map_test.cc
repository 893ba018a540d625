#include "operator/switch_map.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SwitchMapTest : public testing::Test {
 protected:
  SwitchMapTest() {
    std::map<std::string, crds::Json> tables = SonicTables("leaf-3", false);
    for (const char* port : {"Ethernet4", "Ethernet8"}) {
      tables["PORT"][port] = tables["PORT"]["Ethernet0"];
      tables["PORT"][port]["alias"] = port;
      tables["PORT_QOS_MAP"][port] = tables["PORT_QOS_MAP"]["Ethernet0"];
    }
    std::map<std::string, std::string> texts;
    for (const auto& [name, table] : tables) texts[name] = table.dump();
    auto read = switches::ReadSonicText(switches::SonicConfigText(texts).value());
    EXPECT_TRUE(read) << read.error().message;
    answer = *std::move(read);
    crds::LosslessPolicy policy;
    policy.name = "roce";
    policies.read = {policy};
  }

  switches::SonicAnswer answer;
  Policies<crds::LosslessPolicy> policies;
};

TEST_F(SwitchMapTest, HasPortsToHostsAndToOtherSwitchesAndSaysWhichAreLeftOut) {
  HostCables cables;
  cables.cables = 1;
  cables.ports["roce"] = {"Ethernet0"};
  cables.fabric.ports["roce"] = {"Ethernet4"};
  cables.fabric.left_out["Ethernet8"] = "one of both does not see the other";
  const SwitchMap map = MapOf(cables, answer, policies);
  EXPECT_TRUE(map.good) << map.message;
  EXPECT_THAT(map.data.at("roce.txt"),
              AllOf(HasSubstr("on 2 ports (1 to other switches), profile"),
                    HasSubstr("Left out: Ethernet8: one of both does not see the other")));
  EXPECT_THAT(map.data.at("roce.patch.json"),
              AllOf(HasSubstr("/PORT_QOS_MAP/Ethernet0"), HasSubstr("/PORT_QOS_MAP/Ethernet4"),
                    Not(HasSubstr("/PORT_QOS_MAP/Ethernet8"))));
}

TEST_F(SwitchMapTest, AConditionThatIsTooLongIsCutBetweenCharacters) {
  SwitchMap map;
  map.reason = "NothingToRender";
  map.message = std::string(1020, 'x') + "µ of many more";
  crds::FabricSwitchStatus status;
  SetRendered(crds::FabricSwitch(), map, Outcome(), base::WallTime(), status);
  ASSERT_EQ(status.conditions.size(), 1U);
  EXPECT_EQ(status.conditions[0].message, std::string(1020, 'x') + "...");
}

TEST_F(SwitchMapTest, OfASpineHasWhatItsPortsToOtherSwitchesAreToHave) {
  HostCables cables;
  cables.fabric.ports["roce"] = {"Ethernet0", "Ethernet4"};
  const SwitchMap map = MapOf(cables, answer, policies);
  EXPECT_TRUE(map.good) << map.message;
  EXPECT_THAT(map.data.at("roce.txt"), HasSubstr("on 2 ports (2 to other switches)"));
}

TEST_F(SwitchMapTest, OfASpineWhosePortsAreAllLeftOutSaysWhy) {
  HostCables cables;
  cables.fabric.left_out["Ethernet8"] = "one of both does not see the other";
  const SwitchMap map = MapOf(cables, answer, policies);
  EXPECT_EQ(map.reason, "NothingToRender");
  EXPECT_THAT(map.message,
              AllOf(HasSubstr("of 1 port to other switches none is rendered: Ethernet8: one of both"),
                    HasSubstr("--fabric-port")));
  EXPECT_TRUE(map.data.contains("NOT-RENDERED.txt"));
}

}  // namespace
}  // namespace heddle::operators
