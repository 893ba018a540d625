// LLDP that lies: cables that two hosts claim, or of which the switch says otherwise than its host, prove nothing.
#include "switches/cables.h"

#include <gmock/gmock.h>

#include "switches/neighbours.h"
#include "switches/openconfig_ports.h"
#include "switches/switch_links.h"
#include "tests/unit/switches/sonic_port.h"

namespace heddle::switches {
namespace {

using lossless::LosslessVerdict;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two hosts of two NICs each, on two leaves, all of it lossless.
class CablesTest : public testing::Test {
 protected:
  CablesTest() {
    for (int host = 0; host < 2; ++host) {
      crds::NodeTopology& node = nodes.emplace_back();
      node.name = host == 0 ? "gpu-017" : "gpu-018";
      for (int rail = 0; rail < 2; ++rail) Cable(node, rail, host);
    }
    for (int rail = 0; rail < 2; ++rail) {
      configs.push_back({.hostname = "leaf-" + std::to_string(rail)});
      for (int port = 0; port < 4; ++port)
        configs.back().ports.push_back(
            test::LosslessPort("Ethernet" + std::to_string(4 * port), "etp" + std::to_string(port + 1)));
    }
  }

  static void Cable(crds::NodeTopology& node, int rail, int host) {
    topology::Nic nic;
    nic.name = "mlx5_" + std::to_string(rail);
    nic.netdev = "eth" + std::to_string(rail);
    nic.transport = topology::Transport::kRoce;
    nic.role = topology::NicRole::kCompute;
    nic.rail = rail;
    nic.mtu = 9000;
    nic.ports.push_back(
        {.number = 1, .state = topology::LinkState::kActive, .rate_gbps = 400, .usable_gbps = 400});
    nic.ports.back().leaf_port =
        topology::LeafPort{"leaf-" + std::to_string(rail), "etp" + std::to_string(host + 1)};
    node.status.node.nics.push_back(nic);
    node.status.lossless.push_back(
        {.ports = {nic.name + ":1"}, .state = crds::LosslessState::kCompliant, .have = test::LosslessHost()});
  }

  ComparedCables Compare() {
    std::vector<const crds::NodeTopology*> pointers;
    for (const crds::NodeTopology& node : nodes) pointers.push_back(&node);
    std::vector<KnownSwitch> known;
    for (std::size_t i = 0; i < configs.size(); ++i)
      known.push_back({.name = configs[i].hostname,
                       .config = &configs[i],
                       .neighbours = i < seen.size() ? &seen[i] : nullptr,
                       .own_chassis = i < chassis.size() ? chassis[i] : ""});
    return CompareBothEnds(pointers, known);
  }
  std::vector<LosslessVerdict> Verdicts() {
    const ComparedCables compared = Compare();
    std::vector<LosslessVerdict> verdicts;
    for (std::size_t i = 0; i < compared.names.size(); ++i)
      verdicts.push_back(compared.comparison.Of(i).verdict);
    return verdicts;
  }
  std::string Why(std::size_t cable) {
    const ComparedCables compared = Compare();
    const lossless::CableFinding* worst = WorstOf(compared.comparison.Of(cable));
    return worst == nullptr ? "" : worst->sentence;
  }
  topology::LeafPort& Leaf(std::size_t host, std::size_t rail, const std::string& port) {
    auto& fact = nodes[host].status.node.nics[rail].ports[0].leaf_port;
    fact = topology::LeafPort{fact->leaf, port};
    return const_cast<topology::LeafPort&>(*fact);
  }

  // That the host's LLDP says.
  void See(std::size_t host, std::size_t rail, const std::string& chassis_id) {
    auto& fact = nodes[host].status.node.nics[rail].ports[0].leaf_port;
    fact = topology::LeafPort{fact->leaf, fact->port, chassis_id};
  }

  static constexpr auto kProved = LosslessVerdict::kLossless;
  static constexpr auto kDoubted = LosslessVerdict::kUnproved;
  std::vector<crds::NodeTopology> nodes;
  std::vector<formats::SonicConfig> configs;
  std::vector<Neighbours> seen;      // by leaf
  std::vector<std::string> chassis;  // likewise
};

TEST_F(CablesTest, AreProvedWhereNobodySaysOtherwise) {
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved)) << Why(0);
}

TEST_F(CablesTest, OnAPortThatCannotBeReadAreNotProvedAndSayWhy) {
  formats::SonicConfig& leaf = configs[0];
  leaf.bare.push_back(leaf.ports[0]);
  leaf.ports.erase(leaf.ports.begin());
  leaf.bare[0].settings = {};
  leaf.bare[0].bare = "cannot be read (PORT_QOS_MAP|Ethernet0: pfc_enable \"9\")";
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kProved, kProved));
  EXPECT_EQ(Why(0), "the switch's port cannot be read (PORT_QOS_MAP|Ethernet0: pfc_enable \"9\")");
}

TEST_F(CablesTest, OnWhatIsOnePortByNameAndAnotherByAliasAreJoinedWithNeither) {
  configs[0].ports[3].alias = "Ethernet8";
  Leaf(0, 0, "Ethernet8");
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kProved, kProved));
  EXPECT_EQ(
      Why(0),
      "the switch's port Ethernet8 is one port by its name and another by its alias, and LLDP says either");
}

// A switch that nobody made a FabricSwitch of has the name of one.
TEST_F(CablesTest, ThatEndOnAnotherSwitchOfTheNameAreNotJoinedAndSayBothChassis) {
  chassis = {"0c:42:a1:00:00:01", "0c:42:a1:00:00:02"};
  See(0, 0, "0C-42-A1-00-00-01");
  See(1, 0, "04:3f:72:00:00:01");
  Leaf(1, 0, "etp1").chassis_id = "04:3f:72:00:00:01";  // a port that a host of the FabricSwitch has, too
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kDoubted, kProved)) << Why(0);
  EXPECT_EQ(Why(2),
            "gpu-018 mlx5_0:1 sees a switch called leaf-0 with chassis id 04:3f:72:00:00:01, and the "
            "FabricSwitch of that name has 0c:42:a1:00:00:01");
  const ComparedCables compared = Compare();
  EXPECT_EQ(compared.names[2].at, -1);
  EXPECT_EQ(compared.names[2].twin, 0);
  EXPECT_EQ(compared.names[2].leaf, "leaf-0");
  EXPECT_THAT(compared.without, IsEmpty()) << "something was given of that name";
  const lossless::CableFinding& finding = *WorstOf(compared.comparison.Of(2));
  EXPECT_EQ(finding.rule, "chassis-differs");
  EXPECT_EQ(finding.host, "04:3f:72:00:00:01");
  EXPECT_EQ(finding.leaf, "0c:42:a1:00:00:01");
}

TEST_F(CablesTest, OfWhichEitherEndSaysNoChassisAreJoinedByTheNameAlone) {
  See(0, 0, "04:3f:72:00:00:01");
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved)) << "the switch says none";
  chassis = {"04:3f:72:00:00:01", "04:3f:72:00:00:02"};
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved)) << "the other hosts say none";
}

TEST_F(CablesTest, OfChassisThatAreNoMacAreHeldAgainstEachOtherAsTheyStand) {
  chassis = {"leaf-0.rack-1"};
  See(0, 0, "Leaf-0.rack-1");
  See(1, 0, "leaf-0.rack-2");
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kDoubted, kProved)) << Why(0);
}

TEST_F(CablesTest, ThatTwoHostsClaimAreProvedOfNeither) {
  Leaf(1, 0, "Ethernet0");  // by its name what the other calls by its alias
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kDoubted, kProved));
  for (const std::size_t cable : {0u, 2u}) {
    EXPECT_EQ(Why(cable), "gpu-017 mlx5_0:1 and gpu-018 mlx5_0:1 both say that they end on leaf-0 Ethernet0");
  }
  seen = {{{"Ethernet0", {"gpu-018", "", "eth0", ""}}}};
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kDoubted, kProved))
      << "a witness for one of two liars";
  EXPECT_THAT(Why(0), HasSubstr("where the switch sees gpu-018 eth0"));
}

TEST_F(CablesTest, OfOneCardWithTwoFunctionsAreNoContradiction) {
  auto& nics = nodes[0].status.node.nics;
  nics.push_back(nics[0]);
  nics.back().name = "mlx5_8";
  nodes[0].status.lossless[0].ports.push_back("mlx5_8:1");
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved, kProved));
}

TEST_F(CablesTest, WhoseSwitchSeesTheSameHostStayProved) {
  seen = {{{"Ethernet0", {"gpu-017.dc1.example", "04:3f:72:aa:bb:cc", "04:3f:72:aa:bb:c0", "eth0"}},
           {"Ethernet4", {"GPU-018", "", "eth0", ""}}},
          {{"Ethernet0", {"", "04:3f:72:aa:bb:cc", "04:3f:72:aa:bb:c1", ""}}}};
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved)) << Why(0) << Why(1) << Why(2);
}

TEST_F(CablesTest, WhoseSwitchSeesAnotherHostProveNothing) {
  seen = {{{"Ethernet0", {"gpu-018.dc1.example", "", "04:3f:72:aa:bb:c0", "eth0"}}}};
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kProved, kProved));
  EXPECT_EQ(Why(0),
            "gpu-017 mlx5_0:1 says that it ends on leaf-0 Ethernet0, and the switch sees "
            "gpu-018.dc1.example eth0 there");
  seen = {{{"Ethernet0", {"leaf-1", "", "etp9", ""}}}};
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kProved, kProved)) << "another switch";
}

TEST_F(CablesTest, WhoseSwitchSeesAnotherPortOfTheHostProveNothing) {
  seen = {{{"Ethernet0", {"gpu-017", "", "04:3f:72:aa:bb:c0", "eth1"}}}};
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kProved, kProved));
  EXPECT_THAT(Why(0), HasSubstr("the switch sees gpu-017 eth1 there"));
  seen[0].at("Ethernet0").port_description = "bond0";
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved)) << "nobody knows that name";
}

TEST_F(CablesTest, OfHostsThatAreCalledOtherwiseThanTheirNodesStayProved) {
  seen = {{{"Ethernet0", {"dgx-a-17", "", "eth0", ""}}}};
  EXPECT_THAT(Verdicts(), ElementsAre(kProved, kProved, kProved, kProved));
  // But one that the other leaf calls by its name is called so.
  seen.push_back({{"Ethernet0", {"gpu-017", "", "eth1", ""}}});
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kProved, kProved));
  EXPECT_THAT(Why(0), HasSubstr("sees dgx-a-17 eth0 there"));
}

TEST(Neighbours, OfASwitchAreReadAndGarbageIsLeftOut) {
  const Neighbours read = ReadNeighbours(crds::Json::parse(R"({
    "Ethernet0": {"lldp_rem_sys_name": "gpu-017", "lldp_rem_chassis_id": "04:3f:72:aa:bb:cc",
                  "lldp_rem_port_id": "04:3f:72:aa:bb:c0", "lldp_rem_port_desc": "eth0", "lldp_rem_index": "7"},
    "Ethernet4": {}, "Ethernet8": 7, "": {"lldp_rem_sys_name": "gpu-018"},
    "Ethernet12": {"lldp_rem_sys_name": ["gpu-018"]}, "Ethernet16": {"lldp_rem_sys_name": "gpu\u0007-019"}})"));
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(read.at("Ethernet0"), (Neighbour{"gpu-017", "04:3f:72:aa:bb:cc", "04:3f:72:aa:bb:c0", "eth0"}));
  EXPECT_THAT(read.at("Ethernet16").system, testing::Not(HasSubstr("\x07")));
  for (const char* garbage : {"[]", "7", "null", "\"Ethernet0\""})
    EXPECT_THAT(ReadNeighbours(crds::Json::parse(garbage)), IsEmpty()) << garbage;
}

TEST(Neighbours, AreCalledByTheirNamesWhateverTheDomain) {
  EXPECT_TRUE(IsCalled("GPU-017.dc1.example", "gpu-017"));
  EXPECT_TRUE(IsCalled("gpu-017", "gpu-017.other.example"));
  EXPECT_FALSE(IsCalled("gpu-0170", "gpu-017"));
  EXPECT_FALSE(IsCalled("10.0.0.17", "10.0.0.18")) << "an address has no domain";
  EXPECT_FALSE(IsCalled("", "gpu-017"));
  ByName names;
  names.Add("leaf-3.a", 3);
  names.Add("leaf-3.b", 4);
  names.Add("leaf-5.a", 5);
  EXPECT_EQ(names.Find("leaf-3.b"), 4);
  EXPECT_EQ(names.Find("leaf-3"), ByName::kSeveral);
  EXPECT_EQ(names.Find("LEAF-5"), 5);
  EXPECT_EQ(names.Find("leaf-6"), ByName::kNobody);
}

// As some makes write a MAC.
TEST(Neighbours, OfOneMakeAreToldApartByTheirChassis) {
  ByName switches;
  switches.AddChassis("043f.72aa.bbcc", 1);
  switches.AddChassis("043f.7200.0001", 2);
  switches.AddChassis("", 3);
  EXPECT_EQ(switches.Find("043F.72AA.BBCC"), 1);
  EXPECT_EQ(switches.Find("043f.7200.0001"), 2);
  EXPECT_EQ(switches.Find("043f.7299.9999"), ByName::kNobody) << "of the same make, and not asked";
}

// The agent's own reading of the link's coding, held against the switch's.
TEST_F(CablesTest, ContradictWhereTheEndsCodeDifferently) {
  for (auto& port : configs[1].ports) port.fec = "rs";
  nodes[0].status.lossless[1].fec = lossless::Fec::kReedSolomon;
  EXPECT_EQ(Verdicts()[1], kProved);
  nodes[0].status.lossless[1].fec = lossless::Fec::kFireCode;
  const ComparedCables compared = Compare();
  const lossless::CableFinding* worst = WorstOf(compared.comparison.Of(1));
  ASSERT_NE(worst, nullptr);
  EXPECT_EQ(worst->rule, "link-fec");
  EXPECT_EQ(worst->host, "fc");
  EXPECT_EQ(worst->leaf, "rs");
}

TEST_F(CablesTest, HaveOneSpeedWhereTheSwitchNegotiates) {
  for (auto& port : configs[1].ports) port.speed_mbps = 800'000;
  EXPECT_EQ(Verdicts()[1], LosslessVerdict::kContradiction);
  for (auto& port : configs[1].ports) port.negotiates = true;
  EXPECT_EQ(Verdicts()[1], kProved);
}

// A leaf of OpenConfig says speed, FEC and MTU and nothing of PFC: its cables are never proved, and may be proved wrong.
TEST_F(CablesTest, OnALeafOfOpenConfigAreUnprovedOrContradictByTheirLine) {
  formats::SonicConfig& leaf = configs[0];
  leaf.bare = std::move(leaf.ports);
  leaf.ports.clear();
  for (formats::SonicPort& port : leaf.bare) {
    port.settings = {};
    port.settings.mtu = 9000;  // whether or not Ethernet's header is in it
    port.bare = kNoPfcPath;
  }
  EXPECT_THAT(Verdicts(), ElementsAre(kDoubted, kProved, kDoubted, kProved));
  const auto rule = [&](auto change) {
    const formats::SonicPort before = leaf.bare[0];
    change(leaf.bare[0]);
    const ComparedCables compared = Compare();
    leaf.bare[0] = before;
    const lossless::CableFinding* worst = WorstOf(compared.comparison.Of(0));
    return worst == nullptr || worst->weight != LosslessVerdict::kContradiction ? "" : worst->rule;
  };
  EXPECT_EQ(rule([](auto&) {}), "");
  EXPECT_EQ(rule([](auto& port) { port.speed_mbps = 200'000; }), "link-speed");
  EXPECT_EQ(rule([](auto& port) { port.settings.mtu = 1514; }), "link-frame");
  nodes[0].status.lossless[0].fec = lossless::Fec::kReedSolomon;
  EXPECT_EQ(rule([](auto& port) { port.fec = "none"; }), "link-fec");
  // And its own LLDP is a witness as good as any.
  seen = {{{"Ethernet0", {"gpu-018", "", "eth0", ""}}}};
  EXPECT_THAT(Why(0), HasSubstr("the switch sees gpu-018 eth0 there"));
}

TEST_F(CablesTest, AskNoCodingOfALinkThatIsDown) {
  for (auto& port : configs[1].ports) port.fec = "rs";
  nodes[0].status.lossless[1].fec = lossless::Fec::kNone;
  nodes[0].status.node.nics[1].ports[0].state = topology::LinkState::kDown;
  EXPECT_EQ(Verdicts()[1], kDoubted);
}

}  // namespace
}  // namespace heddle::switches
