#include "formats/lldp.h"

#include <gmock/gmock.h>

namespace heddle::formats {
namespace {

using topology::LeafPort;
using topology::Missing;

std::string Neighbour(const std::string& interface, const std::string& chassis, const std::string& port) {
  return R"({"name":")" + interface + R"(","via":"LLDP","chassis":[)" + chassis + R"(],"port":[)" + port +
         "]}";
}
std::string Document(const std::string& interfaces) {
  return R"({"lldp":[{"interface":[)" + interfaces + "]}]}";
}

const std::string kMac = R"({"id":[{"type":"mac","value":"aa:bb:cc:00:00:01"}],"name":[{"value":"tor-1"}]})";
const std::string kNameless = R"({"id":[{"type":"mac","value":"aa:bb:cc:00:00:02"}]})";
const std::string kPort = R"({"id":[{"type":"local","value":"Ethernet12"}],"ttl":[{"value":"120"}]})";

TEST(Lldp, NamesTheLeafAndItsPort) {
  const auto parsed = ParseLldp(Document(Neighbour("eth1", kMac, kPort)));
  ASSERT_TRUE(parsed);
  const LldpNeighbour& neighbour = parsed->at("eth1").at(0);
  EXPECT_EQ(neighbour.chassis_type, "mac");
  EXPECT_EQ(neighbour.port_type, "local");
  EXPECT_EQ(neighbour.ttl, std::chrono::seconds(120));
  EXPECT_EQ(LeafOf(parsed->at("eth1")), (LeafPort{"tor-1", "Ethernet12", "aa:bb:cc:00:00:01"}));
}

TEST(Lldp, UsesTheChassisIdWhereTheSystemNameIsMissing) {
  const auto parsed = ParseLldp(Document(Neighbour("eth1", kNameless, kPort)));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(LeafOf(parsed->at("eth1")), (LeafPort{"aa:bb:cc:00:00:02", "Ethernet12", "aa:bb:cc:00:00:02"}));
}

TEST(Lldp, CallsTwoNeighboursOnOnePortAmbiguousAndKeepsBoth) {
  const auto parsed =
      ParseLldp(Document(Neighbour("eth1", kMac, kPort) + "," + Neighbour("eth1", kNameless, kPort)));
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->at("eth1").size(), 2u);
  EXPECT_EQ(LeafOf(parsed->at("eth1")).missing(), Missing::kAmbiguous);
}

TEST(Lldp, CountsTheSameNeighbourHeardTwiceOnce) {
  const auto parsed =
      ParseLldp(Document(Neighbour("eth1", kMac, kPort) + "," + Neighbour("eth1", kMac, kPort)));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(LeafOf(parsed->at("eth1")).known());
}

// CDP has a name where LLDP has a MAC, and another protocol may have nothing.
TEST(Lldp, SaysTheMacOfANeighbourHeardByTwoProtocols) {
  const auto heard = [](const std::string& type, const std::string& chassis) {
    LldpNeighbour one;
    one.chassis_type = type;
    one.chassis_id = chassis;
    one.system_name = "tor-1";
    one.port_id = "Ethernet4";
    return one;
  };
  const LldpNeighbour lldp = heard("mac", "fc:1"), cdp = heard("local", "tor-1"), none = heard("", "");
  for (const auto& neighbours :
       std::vector<std::vector<LldpNeighbour>>{{lldp, cdp}, {cdp, lldp}, {none, lldp}})
    EXPECT_EQ(LeafOf(neighbours), (LeafPort{"tor-1", "Ethernet4", "fc:1"}));
  EXPECT_EQ(LeafOf({cdp}), (LeafPort{"tor-1", "Ethernet4", "tor-1"}));
  EXPECT_EQ(LeafOf({none}), (LeafPort{"tor-1", "Ethernet4", ""}));
  EXPECT_TRUE(LeafOf({heard("local", "SN123"), cdp}).known()) << "CDP's id is a local one, too";
  EXPECT_EQ(LeafOf({lldp, cdp, heard("mac", "fc:2")}).missing(), Missing::kAmbiguous)
      << "two switches of one name on one cable";
}

TEST(Lldp, TellsTwoSwitchesOfOneNameByAPortThatBothHave) {
  const auto heard = [](const std::string& type, const std::string& chassis, const std::string& port) {
    LldpNeighbour one;
    one.chassis_type = type;
    one.chassis_id = chassis;
    one.system_name = "sonic";
    one.port_id = port;
    return std::vector<LldpNeighbour>{one};
  };
  const auto eth1 = heard("mac", "fc:1", "Ethernet4");
  EXPECT_THAT(
      SharedNames({{"eth1", eth1}, {"eth2", heard("mac", "fc:2", "Ethernet4")}}),
      testing::ElementsAre(testing::Pair("sonic", SharedName{"Ethernet4", "eth1", "fc:1", "eth2", "fc:2"})));
  EXPECT_THAT(SharedNames({{"eth1", eth1}, {"eth2", heard("mac", "fc:2", "Ethernet8")}}), testing::IsEmpty())
      << "a switch that sends the MAC of the port";
  EXPECT_THAT(SharedNames({{"eth1", eth1}, {"eth2", heard("local", "sonic", "Ethernet4")}}),
              testing::IsEmpty())
      << "another protocol";
  EXPECT_THAT(SharedNames({{"bond0", eth1}, {"eth1", eth1}}), testing::IsEmpty());
  auto replaced = eth1;
  replaced.push_back(heard("mac", "fc:2", "Ethernet4").front());
  EXPECT_THAT(SharedNames({{"eth1", replaced}}), testing::IsEmpty()) << "a new switch on the old one's cable";
}

TEST(Lldp, LeavesOutANeighbourThatSaidGoodbye) {
  const std::string leaving = R"({"id":[{"type":"local","value":"Ethernet12"}],"ttl":[{"value":"0"}]})";
  const auto parsed = ParseLldp(Document(Neighbour("eth1", kMac, leaving)));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->empty());
}

TEST(Lldp, UnderstandsTheShapeWithoutArraysToo) {
  const auto parsed =
      ParseLldp(R"({"lldp":{"interface":{"name":"eth1","chassis":{"id":{"type":"mac","value":"aa:bb"},
      "name":"tor-1"},"port":{"id":{"type":"ifname","value":"swp7"},"ttl":"120"}}}})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(LeafOf(parsed->at("eth1")), (LeafPort{"tor-1", "swp7", "aa:bb"}));
}

// `lldpcli -f json show neighbors` of lldpd 1.0: of one interface, of two, and of a switch that sends no name.
TEST(Lldp, UnderstandsTheShapeWhoseKeysAreNames) {
  const std::string eth1 = R"({"eth1":{"via":"LLDP","rid":"1","chassis":{"tor-1":{"id":{"type":"mac",
      "value":"aa:bb"},"descr":"x","mgmt-ip":"10.0.0.1"}},"port":{"id":{"type":"ifname","value":"swp7"},
      "descr":"swp7","ttl":"60"}}})";
  const std::string eth2 = R"({"eth2":{"via":"LLDP","chassis":{"id":{"type":"mac","value":"aa:cc"}},
      "port":{"id":{"type":"ifname","value":"swp8"}}}})";
  const auto one = ParseLldp(R"({"lldp":{"interface":)" + eth1 + "}}");
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_THAT(*one, testing::ElementsAre(testing::Key("eth1")));
  EXPECT_EQ(LeafOf(one->at("eth1")), (LeafPort{"tor-1", "swp7", "aa:bb"}));
  EXPECT_EQ(one->at("eth1").at(0).ttl, std::chrono::seconds(60));
  const auto two = ParseLldp(R"({"lldp":{"interface":[)" + eth1 + "," + eth2 + "," + eth1 + "]}}");
  ASSERT_TRUE(two) << two.error().message;
  ASSERT_THAT(*two, testing::ElementsAre(testing::Key("eth1"), testing::Key("eth2")));
  EXPECT_EQ(two->at("eth1").size(), 2u);
  EXPECT_EQ(LeafOf(two->at("eth2")), (LeafPort{"aa:cc", "swp8", "aa:cc"}));
}

TEST(Lldp, HasNoNeighboursWhereLldpdHearsNobody) {
  const auto parsed = ParseLldp(R"({"lldp":[{}]})");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->empty());
  EXPECT_EQ(LeafOf({}).missing(), Missing::kUnknown);
}

TEST(Lldp, SkipsEntriesThatProveNothing) {
  const auto parsed =
      ParseLldp(Document(R"({"name":"eth0"},{"name":7},42,null,)" + Neighbour("eth1", kMac, "{}") + "," +
                         Neighbour(" ", kMac, kPort) + "," + Neighbour("eth2", kMac, kPort)));
  ASSERT_TRUE(parsed);
  EXPECT_THAT(*parsed, testing::ElementsAre(testing::Key("eth2")));
}

TEST(Lldp, RefusesWhatIsNoLldpJson) {
  EXPECT_FALSE(ParseLldp(""));
  EXPECT_FALSE(ParseLldp("[]"));
  EXPECT_FALSE(ParseLldp("{\"lldp\":"));
  EXPECT_FALSE(ParseLldp("{\"lldp\":[]}"));
}

TEST(Lldp, RefusesMoreThanAnyLldpdSays) {
  const auto refused = [](const std::string& text) {
    const auto parsed = ParseLldp(text);
    return !parsed && parsed.error().code == base::Code::kTooLarge;
  };
  EXPECT_TRUE(refused(std::string(4'000'000, '[')));
  std::string wide = "{\"lldp\":[";
  for (int i = 0; i < 300'000; ++i) wide += "0,";
  EXPECT_TRUE(refused(wide + "0]}"));
  EXPECT_FALSE(refused("{\"lldp\": \"" + std::string(100, '[') + "\\\"" + std::string(100, '[') + "\"}"));
}

TEST(Lldp, ReadsAHostWhoseEveryInterfaceHearsAsManyAsLldpdKeeps) {
  std::string text = "{\"lldp\":[{\"interface\":[";
  for (int i = 0; i < 64 * 32; ++i) {
    text +=
        (i > 0 ? "," : "") + std::string("{\"name\":\"eth") + std::to_string(i / 32) +
        "\",\"via\":\"LLDP\",\"rid\":\"1\",\"age\":\"0 "
        "day\",\"chassis\":[{\"id\":[{\"type\":\"mac\",\"value\":\"0c:" +
        std::to_string(i) +
        "\"}],\"name\":[{\"value\":\"tor\"}],\"descr\":[{\"value\":\"x\"}],\"mgmt-ip\":[{\"value\":\"10.0.0."
        "1\"}],"
        "\"capability\":[{\"type\":\"Bridge\",\"enabled\":true},{\"type\":\"Router\",\"enabled\":true}]}],"
        "\"port\":[{\"id\":[{\"type\":\"ifname\",\"value\":\"swp1\"}],\"descr\":[{\"value\":\"swp1\"}],"
        "\"ttl\":[{\"value\":\"120\"}],\"mfs\":[{\"value\":\"9216\"}]}]}";
  }
  const auto parsed = ParseLldp(text + "]}]}");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->size(), 64U);
}

TEST(Lldp, MakesNamesPrintable) {
  const auto parsed = ParseLldp(Document(Neighbour(
      "eth1", R"({"id":[{"type":"mac","value":"a"}],"name":[{"value":"t\u0007or\u00e9"}]})", kPort)));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(LeafOf(parsed->at("eth1"))->leaf, "t?or??");
}

TEST(Lldp, ReadsWhatItWrites) {
  const LldpNeighbours heard{
      {"eth1",
       {{"mac", "fc:6a:1c:01:02:03", "leaf-1", "local", "Ethernet4", "to gpu-17", std::chrono::seconds(60)},
        {"local", "x\"y", "", "ifname", "swp7", "", std::chrono::seconds(120)}}},
      {"eth2",
       {{"mac", "fc:6a:1c:01:02:04", "leaf-2", "mac", "fc:6a:1c:01:02:05", "", std::chrono::seconds(120)}}}};
  const auto again = ParseLldp(FormatLldp(heard));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, heard);
  EXPECT_TRUE(ParseLldp(FormatLldp({})));
}

}  // namespace
}  // namespace heddle::formats
