#include "switches/openconfig_ports.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::switches {
namespace {

using crds::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

std::vector<formats::SonicPort> PortsIn(const Steps& steps, const Json& json) {
  std::map<Steps, Json> answers;
  answers[steps] = json;
  return ReadOpenConfigPorts(answers);
}

OpenConfigLldp LldpIn(const Steps& steps, const Json& json) {
  std::vector<std::pair<Steps, Json>> answers;
  answers.emplace_back(steps, json);
  return ReadOpenConfigLldp(answers);
}

// As RFC 7951 writes it: a name bears its model where that is another than above it.
Json Interfaces(const std::string& ethernet) {
  return Json::parse(R"({"openconfig-interfaces:interface": [
    {"name": "Ethernet0", "state": {"name": "Ethernet0", "mtu": 9216, "oper-status": "UP"},
     "openconfig-if-ethernet:ethernet": {"state": )" +
                     ethernet + "}}]}");
}

formats::SonicPort Port(const std::string& ethernet) {
  const auto ports = PortsIn({"interfaces"}, Interfaces(ethernet));
  EXPECT_THAT(ports, SizeIs(1));
  return ports.empty() ? formats::SonicPort{} : ports.front();
}

TEST(OpenConfigPorts, HaveSpeedFecAndMtuAndAreBareOfAllElse) {
  const formats::SonicPort port = Port(
      R"({"port-speed": "openconfig-if-ethernet:SPEED_400GB",
          "fec-mode": "openconfig-if-ethernet:FEC_RS544_2X_INTERLEAVE"})");
  EXPECT_EQ(port.name, "Ethernet0");
  EXPECT_EQ(port.speed_mbps, 400'000);
  EXPECT_EQ(port.fec, "rs");
  EXPECT_EQ(port.bare, kNoPfcPath);
  lossless::PortSettings mtu;
  mtu.mtu = 9216;
  EXPECT_EQ(port.settings, mtu);
}

TEST(OpenConfigPorts, RunWithWhatWasNegotiatedWhereThatIsSaid) {
  EXPECT_EQ(Port(R"({"port-speed": "SPEED_400GB", "negotiated-port-speed": "SPEED_200GB"})").speed_mbps,
            200'000);
  EXPECT_EQ(Port(R"({"port-speed": "SPEED_400GB", "negotiated-port-speed": "SPEED_UNKNOWN"})").speed_mbps,
            400'000);
}

TEST(OpenConfigPorts, OfAnAggregateHaveItsMtuOrNone) {
  Json said = Json::parse(R"({"interface": [
    {"name": "Ethernet0", "state": {"name": "Ethernet0", "mtu": 1500},
     "ethernet": {"state": {"port-speed": "SPEED_400GB", "openconfig-if-aggregate:aggregate-id": "Port-Channel1"}}},
    {"name": "Port-Channel1", "state": {"name": "Port-Channel1", "mtu": 9216}}]})");
  auto ports = PortsIn({"interfaces"}, said);
  ASSERT_THAT(ports, SizeIs(2));
  EXPECT_EQ(ports[0].settings.mtu, 9216);
  EXPECT_EQ(ports[1].settings.mtu, 9216);
  said["interface"].erase(std::size_t(1));
  ports = PortsIn({"interfaces"}, said);
  ASSERT_THAT(ports, SizeIs(1));
  EXPECT_EQ(ports[0].settings.mtu, std::nullopt);
  EXPECT_EQ(ports[0].speed_mbps, 400'000);
}

TEST(OpenConfigPorts, CodeAsTheirModelSaysItOrNobodyKnows) {
  const std::vector<std::pair<std::string, std::string>> modes{{"FEC_RS528", "rs"}, {"FEC_RS544", "rs"},
                                                               {"FEC_FC", "fc"},    {"FEC_DISABLED", "none"},
                                                               {"FEC_AUTO", ""},    {"banana", ""}};
  for (const auto& [mode, fec] : modes) EXPECT_EQ(Port("{\"fec-mode\": \"" + mode + "\"}").fec, fec) << mode;
}

TEST(OpenConfigPorts, OfWhichNothingCanBeReadAreLeftOut) {
  for (const char* said : {R"({"interface": [{"name": "Ethernet8", "state": {"name": "Ethernet8", "mtu": -1},
            "subinterfaces": {"subinterface": [{"index": 0, "state": {"name": "Ethernet8.0", "mtu": 1500}}]}}]})",
                           R"({"interface": [{"state": {"mtu": 9216}}]})", R"({"interface": {"state": [7]}})",
                           "[]", "7", "null", "\"up\"", "[[]]"})
    EXPECT_THAT(PortsIn({"interfaces"}, Json::parse(said)), IsEmpty()) << said;
}

std::string Heard(const std::string& id, const std::string& system) {
  return "{\"id\": \"" + id + "\", \"state\": {\"id\": \"" + id + "\", \"system-name\": \"" + system +
         "\", \"chassis-id\": \"94:6d:ae:00:00:17\", \"port-id\": \"enp1s0np0\", "
         "\"port-description\": \"mlx5_0\"}}";
}

Json Lldp(const std::string& neighbours) {
  return Json::parse(R"({
    "openconfig-lldp:state": {"system-name": "leaf-3", "chassis-id": "52:54:00:00:00:09"},
    "openconfig-lldp:interfaces": {"interface": [
      {"name": "Ethernet0", "state": {"name": "Ethernet0", "system-name": "liar"},
       "neighbors": {"neighbor": [)" +
                     neighbours + "]}}]}}");
}

TEST(OpenConfigLldp, HasTheSwitchsOwnNameAndWhoIsAtItsPorts) {
  const Json tree = Lldp(Heard("1", "gpu-017"));
  const OpenConfigLldp lldp = LldpIn({"lldp"}, tree);
  EXPECT_EQ(lldp.system_name, "leaf-3");
  const Neighbour gpu{"gpu-017", "94:6d:ae:00:00:17", "enp1s0np0", "mlx5_0"};
  EXPECT_THAT(lldp.neighbours, ElementsAre(Pair("Ethernet0", gpu)));
  Json above = Json::object();
  above["openconfig-lldp:lldp"] = tree;
  EXPECT_EQ(LldpIn({}, above), lldp);
  // In parts, as some servers answer.
  std::vector<std::pair<Steps, Json>> parts;
  parts.emplace_back(Steps{"lldp", "state"}, tree.at("openconfig-lldp:state"));
  parts.emplace_back(Steps{"lldp", "interfaces"}, tree.at("openconfig-lldp:interfaces"));
  EXPECT_EQ(ReadOpenConfigLldp(parts), lldp);
  const Steps deep{"lldp", "interfaces", "interface", "neighbors", "neighbor", "state"};
  EXPECT_EQ(LldpIn(deep, Json::parse(Heard("1", "gpu-017")).at("state")), OpenConfigLldp{})
      << "whose neighbour it is is not said";
}

TEST(OpenConfigLldp, OfAPortThatHearsSeveralSaysNothing) {
  EXPECT_THAT(LldpIn({"lldp"}, Lldp(Heard("1", "gpu-017") + "," + Heard("2", "gpu-018"))).neighbours,
              IsEmpty());
  EXPECT_THAT(LldpIn({"lldp"}, Lldp(Heard("1", "gpu-017") + "," + Heard("2", "gpu-017"))).neighbours,
              SizeIs(1));
}

TEST(OpenConfigReaders, TakeAnything) {
  Json tree = Json::object();
  tree["lldp"] = Lldp(Heard("1", "gpu\\u0007-017"));
  tree["interfaces"] = Interfaces(R"({"fec-mode": "FEC_FC", "port-speed": "SPEED_400GB"})");
  EXPECT_THAT(LldpIn({}, tree).neighbours.at("Ethernet0").system, Not(HasSubstr("\x07")));
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Json json = Json::parse(test::Damage(tree.dump(), random), nullptr, false);
    if (json.is_discarded()) continue;
    EXPECT_LE(PortsIn({}, json).size(), kMaxCountedPorts);
    EXPECT_LE(LldpIn({}, json).neighbours.size(), kMaxCountedPorts);
  }
  Json deep = Json::object();
  for (int i = 0; i < 500; ++i) {
    Json above = Json::object();
    above["state"] = std::move(deep);
    above["name"] = "Ethernet0";
    deep = std::move(above);
  }
  EXPECT_THAT(PortsIn({"interfaces"}, deep), IsEmpty());
}

}  // namespace
}  // namespace heddle::switches
