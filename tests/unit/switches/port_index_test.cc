#include "switches/port_index.h"

#include <gtest/gtest.h>

#include <utility>

#include "switches/cables.h"

namespace heddle::switches {
namespace {

TEST(PortIndex, FindsAsOneLooksByHand) {
  formats::SonicConfig config;
  for (const auto& [name, alias] : {std::pair("Ethernet8", "etp2"), std::pair("Ethernet0", "etp1"),
                                    std::pair("Ethernet16", ""), std::pair("etp1", "Ethernet8")})
    config.ports.push_back({.name = name, .alias = alias});
  config.bare.push_back({.name = "Ethernet24", .alias = "etp2", .bare = "is shut down"});
  const PortIndex index(config);
  ASSERT_EQ(index.size(), 5u);
  for (const char* name :
       {"Ethernet0", "Ethernet8", "Ethernet16", "Ethernet24", "etp1", "etp2", "etp3", "", "Ethernet"})
    EXPECT_EQ(index.Find(name), PortOf(config, name)) << name;
  EXPECT_EQ(index[index.NumberOf("Ethernet24")].bare, "is shut down");
  EXPECT_EQ(index.NumberOf("etp2"), 0) << "the first of two";
  EXPECT_EQ(index.NumberOf("nowhere"), PortIndex::kNone);
  int rank = 0;
  for (const char* name : {"Ethernet0", "Ethernet16", "Ethernet24", "Ethernet8", "etp1"})
    EXPECT_EQ(index.RankOf(index.NumberOf(name)), rank++) << name;
}

TEST(PortIndex, KnowsWhatIsOnePortByNameAndAnotherByAlias) {
  formats::SonicConfig config;
  for (const auto& [name, alias] : {std::pair("Ethernet0", "Ethernet4"), std::pair("Ethernet4", "Ethernet8"),
                                    std::pair("Ethernet12", "Ethernet12"), std::pair("Ethernet16", "")})
    config.ports.push_back({.name = name, .alias = alias});
  const PortIndex index(config);
  EXPECT_TRUE(index.IsAmbiguous("Ethernet4"));
  for (const char* name : {"Ethernet0", "Ethernet8", "Ethernet12", "Ethernet16", "", "Ethernet"})
    EXPECT_FALSE(index.IsAmbiguous(name)) << name;
}

TEST(PortIndex, OfNoPortsHasNone) {
  const formats::SonicConfig config{};
  EXPECT_EQ(PortIndex(config).Find("Ethernet0"), nullptr);
}

}  // namespace
}  // namespace heddle::switches
