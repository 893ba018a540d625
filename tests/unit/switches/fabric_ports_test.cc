// Which policy ports between switches are to have.
#include "switches/fabric_ports.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace heddle::switches {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

SwitchLink Link(int lower, int upper, const std::string& lower_port, const std::string& upper_port,
                bool both_say_so = true) {
  SwitchLink link;
  link.lower = "switch-" + std::to_string(lower);
  link.upper = "switch-" + std::to_string(upper);
  link.lower_port = lower_port;
  link.upper_port = upper_port;
  link.lower_at = lower;
  link.upper_at = upper;
  link.both_say_so = both_say_so;
  return link;
}
using Policies = std::vector<std::set<std::string>>;

// Leaves 0 and 1, spine 2 and core 3: no host hangs on the last two.
TEST(FabricPorts, HaveThePolicyOfTheHostsBelowThemAtBothEnds) {
  const std::vector<SwitchLink> links{Link(0, 2, "Ethernet256", "Ethernet0"),
                                      Link(1, 2, "Ethernet256", "Ethernet4"),
                                      Link(2, 3, "Ethernet128", "Ethernet0")};
  const auto found = FindFabricPorts(links, Policies{{"roce"}, {"roce"}, {}, {}});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_THAT(found[0].ports, ElementsAre(Pair("roce", ElementsAre("Ethernet256"))));
  EXPECT_THAT(found[1].ports, ElementsAre(Pair("roce", ElementsAre("Ethernet256"))));
  EXPECT_THAT(found[2].ports,
              ElementsAre(Pair("roce", ElementsAre("Ethernet0", "Ethernet128", "Ethernet4"))));
  EXPECT_THAT(found[3].ports, ElementsAre(Pair("roce", ElementsAre("Ethernet0"))));
  for (const FabricPorts& one : found) EXPECT_THAT(one.left_out, IsEmpty());
}

TEST(FabricPorts, OfWhichOneEndAloneSpeaksAreLeftOutAndJoinNothingTogether) {
  const std::vector<SwitchLink> links{Link(0, 2, "Ethernet256", "Ethernet0", false),
                                      Link(1, 2, "Ethernet256", "Ethernet4")};
  const auto found = FindFabricPorts(links, Policies{{"other"}, {"roce"}, {}});
  EXPECT_THAT(found[0].ports, IsEmpty());
  EXPECT_THAT(found[0].left_out,
              ElementsAre(Pair("Ethernet256", HasSubstr("switch-0 Ethernet256 and switch-2 Ethernet0"))));
  EXPECT_THAT(found[2].ports, ElementsAre(Pair("roce", ElementsAre("Ethernet4"))));
  EXPECT_THAT(found[2].left_out, ElementsAre(Pair("Ethernet0", HasSubstr("by LLDP"))));
}

TEST(FabricPorts, AreLeftOutWhereHostsBelowHaveSeveralPoliciesOrNone) {
  const std::vector<SwitchLink> links{Link(0, 2, "Ethernet256", "Ethernet0"),
                                      Link(1, 2, "Ethernet256", "Ethernet4"),
                                      Link(3, 4, "Ethernet256", "Ethernet0")};
  const auto found = FindFabricPorts(links, Policies{{"roce"}, {"storage"}, {}, {}, {}});
  for (const std::size_t at : {0u, 1u, 2u, 3u, 4u}) EXPECT_THAT(found[at].ports, IsEmpty()) << at;
  EXPECT_THAT(found[0].left_out, ElementsAre(Pair("Ethernet256", HasSubstr("(roce, storage)"))));
  EXPECT_THAT(found[3].left_out, ElementsAre(Pair("Ethernet256", HasSubstr("no LosslessPolicy alone"))));
  EXPECT_EQ(found[2].left_out.size(), 2u);
}

TEST(FabricPorts, OfAnotherPartOfTheFabricHaveThatPartsPolicy) {
  const std::vector<SwitchLink> links{Link(0, 1, "Ethernet256", "Ethernet0"),
                                      Link(2, 3, "Ethernet256", "Ethernet0")};
  const auto found = FindFabricPorts(links, Policies{{"roce"}, {}, {"storage"}, {}});
  EXPECT_THAT(found[1].ports, ElementsAre(Pair("roce", ElementsAre("Ethernet0"))));
  EXPECT_THAT(found[3].ports, ElementsAre(Pair("storage", ElementsAre("Ethernet0"))));
}

}  // namespace
}  // namespace heddle::switches
