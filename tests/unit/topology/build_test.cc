#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/builders.h"
#include "topology/fabric.h"
#include "topology/synthetic.h"

namespace heddle::topology {
namespace {

using test::FabricOf;
using test::NodeNamed;
using test::Sentences;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(BuildFabric, KeepsALeafForEveryRailOfEveryUnit) {
  const Fabric fabric =
      FabricOf("su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  EXPECT_EQ(fabric.shape, Shape::kRailOptimised);
  EXPECT_EQ(fabric.transport, Transport::kInfiniBand);
  EXPECT_EQ(fabric.rails, 8);
  EXPECT_EQ(fabric.gpu_count(), 256);
  ASSERT_THAT(fabric.leaves, SizeIs(16));
  ASSERT_THAT(fabric.units, SizeIs(2));
  EXPECT_THAT(fabric.units[0].nodes, SizeIs(16));
  EXPECT_THAT(fabric.units[1].leaves, SizeIs(8));
  EXPECT_THAT(fabric.domains, SizeIs(32));
  const Leaf& leaf = fabric.leaves[std::size_t(fabric.FindLeaf("su1-r3"))];
  EXPECT_EQ(leaf.rail, 3);
  EXPECT_EQ(leaf.unit, 1);
  EXPECT_EQ(leaf.down_gbps, 16 * 400);
  EXPECT_EQ(leaf.up_gbps, 16 * 400);
  EXPECT_THAT(leaf.spines, ElementsAre(0, 1));
  const FabricNode& node = fabric.nodes[std::size_t(fabric.FindNode("node-20"))];
  EXPECT_EQ(node.unit, 1);
  EXPECT_EQ(node.uplinks[3], (GpuUplink{3, fabric.FindLeaf("su1-r3"), 400, PciDistance::kPix}));
  EXPECT_THAT(fabric.faults, IsEmpty());
  EXPECT_THAT(fabric.assumptions, IsEmpty());
}

TEST(BuildFabric, CountsHopsOverSpines) {
  const Fabric fabric = FabricOf("su:2 node:2");
  EXPECT_EQ(fabric.Hops(0, 0), 0);
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("su0-r0"), fabric.FindLeaf("su1-r7")), 2);
  EXPECT_EQ(fabric.Hops(0, 99), kNone);
  EXPECT_EQ(fabric.Hops(kNone, 0), kNone);
}

TEST(BuildFabric, CountsHopsOverAnyNumberOfTiers) {
  std::vector<Node> nodes;
  Declaration declaration;
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    nodes.push_back(NodeNamed("n" + number).Gpus(1).Rail(0, "leaf" + number));
    declaration.switches.push_back({"leaf" + number, {"spine" + std::to_string(i / 2)}, 0});
  }
  for (int i = 0; i < 4; ++i) {
    declaration.switches.push_back({"spine" + std::to_string(i), {"core" + std::to_string(i / 2)}, 0});
  }
  for (int i = 0; i < 2; ++i) declaration.switches.push_back({"core" + std::to_string(i), {"top"}, 0});
  const Fabric fabric = BuildFabric(nodes, declaration);
  EXPECT_EQ(fabric.shape, Shape::kFatTree);
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_EQ(fabric.Hops(0, 1), 2);
  EXPECT_EQ(fabric.Hops(0, 2), 4);
  EXPECT_EQ(fabric.Hops(0, 4), 6);
  EXPECT_EQ(fabric.spines.back().name, "top");
  EXPECT_EQ(fabric.spines.back().tier, 4);
}

TEST(BuildFabric, TakesOversubscriptionOrTheDeclaredBandwidth) {
  EXPECT_EQ(FabricOf("su:1 node:4 rate:400 oversub:200").leaves[0].up_gbps, 800);
  auto made = *ParseSynthetic("su:1 node:4 rate:400");
  made.declaration.switches[0].uplink_gbps = 123;
  EXPECT_EQ(BuildFabric(made.nodes, made.declaration).leaves[0].up_gbps, 123);
}

TEST(BuildFabric, CarriesTheBandwidthOfEveryTier) {
  std::vector<Node> nodes;
  Declaration declaration;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    nodes.push_back(NodeNamed("n" + number).Gpus(1).Rail(0, "leaf" + number));
    declaration.switches.push_back({"leaf" + number, {"spine0", "spine1"}, 0});
  }
  declaration.switches.push_back({"spine0", {"core"}, 0});
  declaration.switches.push_back({"spine1", {"core"}, 70});
  declaration.oversubscription_percent = 200;
  const Fabric fabric = BuildFabric(nodes, declaration);
  ASSERT_THAT(fabric.spines, SizeIs(3));
  const int up = fabric.leaves[0].down_gbps / 2;
  EXPECT_EQ(fabric.leaves[0].up_gbps, up);
  EXPECT_EQ(fabric.spines[0].down_gbps, 4 * (up / 2)) << "each leaf shares its way up among two";
  EXPECT_EQ(fabric.spines[0].up_gbps, fabric.spines[0].down_gbps / 2) << "the percent is for every tier";
  EXPECT_EQ(fabric.spines[1].up_gbps, 70) << "as declared";
  EXPECT_EQ(fabric.spines[2].down_gbps, fabric.spines[0].up_gbps + 70);
  EXPECT_EQ(fabric.spines[2].up_gbps, 0) << "nothing is above";
}

TEST(BuildFabric, NamesACircleOfDeclaredSwitches) {
  Declaration declaration;
  declaration.switches = {
      {"a", {"s", "a"}, 0}, {"b", {"s"}, 0}, {"s", {"t"}, 0}, {"t", {"u"}, 0}, {"u", {"s", "a"}, 0}};
  const Fabric fabric =
      BuildFabric({NodeNamed("n0").Gpus(1).Rail(0, "a"), NodeNamed("n1").Gpus(1).Rail(0, "b")}, declaration);
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_EQ(fabric.Hops(0, 1), 2);
  EXPECT_THAT(fabric.assumptions,
              ElementsAre("u is declared to lead up to s, which is not one tier above it: not used",
                          "u is declared to lead up to a, which is not one tier above it: not used",
                          "a is declared to lead up to a, which is not one tier above it: not used"));
}

TEST(BuildFabric, KeepsASpineThatAHostIsCabledToAboveItsLeaves) {
  std::vector<Node> nodes;
  Declaration declaration;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i), spine = "spine" + std::to_string(i / 2);
    nodes.push_back(NodeNamed("n" + number).Gpus(1).Rail(0, "leaf" + number));
    declaration.switches.push_back({"leaf" + number, {spine}, 0});
    if (i % 2 == 0) declaration.switches.push_back({spine, {"core"}, 0});
  }
  for (const char* const name : {"spine0", "core"}) {
    const std::string stray = name;
    std::vector<Node> cabled = nodes;
    cabled.push_back(NodeNamed("stray").Gpus(1).Rail(0, stray));
    const Fabric fabric = BuildFabric(cabled, declaration);
    EXPECT_THAT(Check(fabric), IsEmpty()) << stray;
    EXPECT_EQ(fabric.Hops(fabric.FindLeaf("leaf0"), fabric.FindLeaf("leaf1")), 2) << stray;
    EXPECT_EQ(fabric.Hops(fabric.FindLeaf("leaf0"), fabric.FindLeaf("leaf3")), 4) << stray;
    EXPECT_EQ(fabric.Hops(fabric.FindLeaf(stray), fabric.FindLeaf("leaf0")), stray == "core" ? 4 : 2);
    EXPECT_THAT(fabric.spines, SizeIs(3)) << stray;
    EXPECT_THAT(fabric.assumptions, ElementsAre("hosts are cabled to " + stray +
                                                ", which is declared to be above leaves: it stays there"));
  }
}

TEST(BuildFabric, KeepsALeafThatAWrongLinePutsAboveAnother) {
  Declaration declaration;
  declaration.switches = {{"a", {"s", "b"}, 0}, {"b", {"s"}, 0}, {"c", {"s"}, 0}};
  const Fabric fabric =
      BuildFabric({NodeNamed("n0").Gpus(1).Rail(0, "a"), NodeNamed("n1").Gpus(1).Rail(0, "b"),
                   NodeNamed("n2").Gpus(1).Rail(0, "c")},
                  declaration);
  EXPECT_EQ(fabric.Hops(0, 1), 2);
  EXPECT_EQ(fabric.Hops(1, 2), 2);
  EXPECT_THAT(fabric.assumptions,
              ElementsAre("a is declared to lead up to b, which is not one tier above it: not used"));
}

TEST(BuildFabric, NamesWhatIsDeclaredTwice) {
  Declaration declaration;
  declaration.switches = {{"a", {"s"}, 0}, {"b", {"t"}, 0}, {"b", {"s"}, 0}};
  const std::vector<Node> nodes = {NodeNamed("n0").Gpus(1).Rail(0, "a"),
                                   NodeNamed("n1").Gpus(1).Rail(0, "b")};
  const Fabric fabric = BuildFabric(nodes, declaration);
  EXPECT_THAT(fabric.assumptions, ElementsAre("switch b is declared 2 times: the first declaration is used"));
  EXPECT_EQ(fabric.Hops(0, 1), kNone);
  declaration = {};
  declaration.groups = {{"g", {"a", "b"}}, {"h", {"b"}}};
  EXPECT_THAT(BuildFabric(nodes, declaration).assumptions,
              ElementsAre("leaf b is declared in dragonfly group g and again in h: the first is used"));
  declaration = {};
  declaration.torus_size = {2, 1, 1};
  declaration.torus = {{"n0", 0, 0, 0}, {"n0", 1, 0, 0}, {"n0", 0, 0, 0}};
  const Fabric torus = BuildFabric(nodes, declaration);
  EXPECT_THAT(Sentences(torus),
              ElementsAre("n0 is declared at 1,0,0, which is not where it was declared before"));
  EXPECT_EQ(torus.nodes[0].torus, (std::array<int, 3>{0, 0, 0}));
}

TEST(BuildFabric, HasNoWayBetweenTheRailsOfARailOnlyFabric) {
  const Fabric fabric = FabricOf("su:2 node:4 gpu:8 nic:8 rail:8 railonly");
  EXPECT_EQ(fabric.shape, Shape::kRailOnly);
  EXPECT_EQ(fabric.Hops(0, 1), kNone);
  EXPECT_EQ(fabric.leaves[0].up_gbps, 0);
  EXPECT_THAT(fabric.assumptions, IsEmpty());
}

TEST(BuildFabric, FindsRailOnlyWhereAllLeavesAreDeclaredWithoutUplinks) {
  Declaration declaration;
  for (const char* name : {"r0", "r1"}) declaration.switches.push_back({name, {}, 0});
  const Fabric fabric =
      BuildFabric({NodeNamed("a").Gpus(2).Rails(2, "r"), NodeNamed("b").Gpus(2).Rails(2, "r")}, declaration);
  EXPECT_EQ(fabric.shape, Shape::kRailOnly);
  EXPECT_EQ(fabric.Hops(0, 1), kNone);
}

TEST(BuildFabric, SaysWhatItAssumesWhereNobodyDeclaredSwitches) {
  const Fabric fabric = FabricOf("su:2 node:4 spine:0");
  EXPECT_THAT(fabric.spines, IsEmpty());
  EXPECT_EQ(fabric.Hops(0, 8), 2);
  EXPECT_THAT(fabric.assumptions,
              ElementsAre("no switch above the 16 leaves is declared: they are taken to reach each "
                          "other over one tier of spines"));
}

TEST(BuildFabric, ReportsALeafThatPeopleForgot) {
  auto made = *ParseSynthetic("su:2 node:4");
  std::erase_if(made.declaration.switches, [](const auto& declared) { return declared.name == "su1-r3"; });
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  EXPECT_THAT(Sentences(fabric),
              ElementsAre("node-04 mlx5_3 is cabled to su1-r3, which is not among the declared switches"));
  EXPECT_THAT(fabric.assumptions, ElementsAre(HasSubstr("leaf su1-r3 has no declared uplinks")));
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("su1-r3"), 0), 2);
}

TEST(BuildFabric, KeepsPlanesApart) {
  const Fabric fabric = FabricOf("su:1 node:4 gpu:8 nic:8 rail:8 plane:2");
  ASSERT_THAT(fabric.leaves, SizeIs(16));
  const Leaf& leaf = fabric.leaves[std::size_t(fabric.FindLeaf("su0-r3-p1"))];
  EXPECT_EQ(leaf.plane, 1);
  EXPECT_EQ(leaf.rail, 3);
  EXPECT_THAT(fabric.spines, SizeIs(4));
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("su0-r0-p0"), fabric.FindLeaf("su0-r1-p0")), 2);
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("su0-r0-p0"), fabric.FindLeaf("su0-r0-p1")), kNone);
  EXPECT_EQ(fabric.nodes[0].uplinks[3].gbps, 400) << "both planes together";
}

TEST(BuildFabric, HasNoRailOnAPlainTor) {
  const Fabric fabric = FabricOf("tor:4 node:8 gpu:8 nic:2 rate:100 transport:roce");
  EXPECT_EQ(fabric.shape, Shape::kToR);
  EXPECT_EQ(fabric.transport, Transport::kRoce);
  ASSERT_THAT(fabric.leaves, SizeIs(4));
  EXPECT_EQ(fabric.leaves[0].rail.missing(), Missing::kNotApplicable);
  EXPECT_THAT(fabric.units, SizeIs(4));
  EXPECT_EQ(fabric.nodes[0].uplinks[0].gbps, 25) << "four GPUs share 100 Gb/s";
  EXPECT_THAT(fabric.faults, IsEmpty());
}

TEST(BuildFabric, KeepsBothLeavesOfADualTor) {
  const Fabric fabric = FabricOf("tor:2 node:4 gpu:8 nic:2 rate:200 transport:roce dualtor");
  EXPECT_EQ(fabric.shape, Shape::kToR);
  ASSERT_THAT(fabric.units, SizeIs(2));
  EXPECT_THAT(fabric.units[0].leaves, ElementsAre(fabric.FindLeaf("tor-0a"), fabric.FindLeaf("tor-0b")));
  EXPECT_EQ(fabric.leaves[0].rail.missing(), Missing::kNotApplicable);
  EXPECT_EQ(fabric.nodes[0].uplinks[0].gbps, 50) << "two ports of 100, four GPUs";
  EXPECT_THAT(fabric.faults, IsEmpty());
}

TEST(BuildFabric, SeesASwapBehindADualTor) {
  auto made = *ParseSynthetic("tor:2 node:4 gpu:8 nic:2 rate:200 transport:roce dualtor");
  auto& ports = made.nodes[1].nics[0].ports;
  std::swap(ports[0].leaf_port, ports[1].leaf_port);
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  EXPECT_THAT(
      Sentences(fabric),
      ElementsAre(
          "node-01 mlx5_0 port 1 is cabled to tor-0b port 3; its unit's rail 0 is tor-0a: swapped with "
          "node-01 mlx5_0 port 2 on tor-0a port 3",
          "node-01 mlx5_0 port 2 is cabled to tor-0a port 3; its unit's rail 0 is tor-0b: swapped with "
          "node-01 mlx5_0 port 1 on tor-0b port 3"));
}

TEST(BuildFabric, JoinsTheTraysOfARackToOneNvlinkDomain) {
  const Fabric fabric = FabricOf("rack:2 tray:18 gpu:4 nic:4 rail:4 rate:400 machine:gb200 nvl");
  ASSERT_THAT(fabric.domains, SizeIs(2));
  EXPECT_EQ(fabric.domains[0].gpus, 72);
  EXPECT_TRUE(fabric.domains[0].spans_nodes);
  EXPECT_THAT(fabric.domains[1].nodes, SizeIs(18));
  EXPECT_THAT(fabric.units, SizeIs(2));
  EXPECT_THAT(FabricOf("su:1 rack:4 tray:18 gpu:4 nvl").units, SizeIs(1)) << "racks that share leaves";
}

TEST(BuildFabric, NeverJoinsDomainsThatDoNotSpanNodes) {
  Node a = NodeNamed("a").Gpus(8), b = NodeNamed("b").Gpus(8);
  a.nvlink_domain = b.nvlink_domain = NvlinkMembership{"same", false};
  const Fabric fabric = BuildFabric({a, b}, {});
  EXPECT_THAT(fabric.domains, SizeIs(2));
  EXPECT_THAT(Check(fabric), IsEmpty());
}

TEST(BuildFabric, MeasuresATorusAroundItsEnds) {
  const Fabric fabric = FabricOf("torus:4x4x4 gpu:4 nic:4");
  EXPECT_EQ(fabric.shape, Shape::kTorus3d);
  EXPECT_THAT(fabric.leaves, IsEmpty());
  EXPECT_EQ(fabric.nodes[27].torus, (std::array<int, 3>{1, 2, 3}));
  EXPECT_EQ(fabric.TorusHops(0, 27), 1 + 2 + 1);
  EXPECT_EQ(fabric.TorusHops(0, 0), 0);
  EXPECT_EQ(fabric.TorusHops(0, 64), kNone);
  EXPECT_EQ(fabric.nodes[0].uplinks[0].gbps, 400) << "bandwidth without a leaf";
  EXPECT_EQ(fabric.nodes[0].uplinks[0].leaf, kNone);
}

TEST(BuildFabric, ReportsTorusPositionsThatCannotBe) {
  Declaration declaration;
  declaration.torus_size = {2, 2, 2};
  declaration.torus = {{"a", 0, 0, 0}, {"b", 0, 0, 0}, {"c", 2, 0, 0}, {"absent", 1, 1, 1}};
  const Fabric fabric = BuildFabric({NodeNamed("a"), NodeNamed("b"), NodeNamed("c")}, declaration);
  EXPECT_THAT(Sentences(fabric), ElementsAre("b is declared at 0,0,0, which is taken by another node",
                                             "c is declared at 2,0,0, which is outside of the torus"));
  EXPECT_EQ(fabric.TorusHops(0, 1), kNone);
}

TEST(BuildFabric, TellsDragonflyGroupsApart) {
  const Fabric fabric = FabricOf("dragonfly:4 tor:4 node:2 gpu:8 nic:1");
  EXPECT_EQ(fabric.shape, Shape::kDragonfly);
  ASSERT_THAT(fabric.leaves, SizeIs(16));
  const LeafId first = fabric.FindLeaf("tor-0");
  EXPECT_EQ(fabric.Hops(first, fabric.FindLeaf("tor-3")), 2);
  EXPECT_EQ(fabric.Hops(first, fabric.FindLeaf("tor-4")), 4);
  EXPECT_GT(fabric.leaves[0].up_gbps, 0);
  EXPECT_THAT(fabric.assumptions, IsEmpty());
}

TEST(BuildFabrics, MakesOneForEachSiteAndTransport) {
  auto made = *ParseSynthetic("site:2 su:1 node:4");
  made.nodes.push_back(NodeNamed("cpu").Site("site-1"));
  Node roce = NodeNamed("roce").Site("site-1").Gpus(1).Rail(0, "tor");
  roce.nics[0].transport = Transport::kRoce;
  made.nodes.push_back(roce);
  const std::vector<Fabric> fabrics = BuildFabrics(made.nodes, {{"site-0", made.declaration}});
  ASSERT_THAT(fabrics, SizeIs(3));
  EXPECT_EQ(fabrics[0].site, "site-0");
  EXPECT_THAT(fabrics[0].assumptions, IsEmpty());
  EXPECT_EQ(fabrics[1].site, "site-1");
  EXPECT_EQ(fabrics[1].transport, Transport::kInfiniBand);
  EXPECT_NE(fabrics[1].FindNode("cpu"), kNone) << "a node without NICs belongs to the largest";
  EXPECT_THAT(fabrics[1].assumptions, SizeIs(1)) << "nobody declared site-1";
  EXPECT_EQ(fabrics[2].transport, Transport::kRoce);
  EXPECT_THAT(fabrics[2].nodes, SizeIs(1));
}

TEST(BuildFabric, TakesNodesWithoutAnyFact) {
  const Fabric fabric =
      BuildFabric({NodeNamed("b").Gpus(8).Rails(8, "r"), NodeNamed("plain"), NodeNamed("a")}, {});
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_EQ(fabric.nodes[std::size_t(fabric.FindNode("plain"))].unit, kNone);
  EXPECT_EQ(fabric.nodes[std::size_t(fabric.FindNode("plain"))].domain, kNone);
  EXPECT_EQ(fabric.FindNode("c"), kNone);
  EXPECT_EQ(BuildFabric({}, {}), Fabric{});
}

TEST(BuildFabric, LeavesOutExcludedNodes) {
  auto made = *ParseSynthetic("su:1 node:4");
  made.declaration.excluded_nodes = {"node-02", "nobody"};
  EXPECT_EQ(BuildFabric(made.nodes, made.declaration).FindNode("node-02"), kNone);
}

TEST(BuildFabric, ReportsTwoNodesOfOneName) {
  const Node a = NodeNamed("a").Gpus(8), other = NodeNamed("a").Gpus(4);
  EXPECT_THAT(Sentences(BuildFabric({a, other}, {})), ElementsAre("two different nodes are called a"));
  EXPECT_THAT(BuildFabric({a, a}, {}).faults, IsEmpty());
}

TEST(Uplinks, CountARailAtHalfRateAsHalfARail) {
  const Fabric fabric = FabricOf("su:1 node:4 half:node-1/rail-3 down:node-1/rail-4");
  const auto& uplinks = fabric.nodes[1].uplinks;
  EXPECT_EQ(uplinks[3].gbps, 200);
  EXPECT_EQ(uplinks[3].leaf, fabric.FindLeaf("su0-r3"));
  EXPECT_EQ(uplinks[4], (GpuUplink{4, kNone, 0, PciDistance::kPix})) << "a rail that is down is still rail 4";
  EXPECT_EQ(fabric.nodes[1].unit, 0) << "a host that misses a rail stays in its unit";
  EXPECT_THAT(fabric.faults, IsEmpty());
}

TEST(Uplinks, StayOnTheLeafOfTheirPeersWhereOneOfTwoPlanesIsDown) {
  for (const char* const line : {"su:1 node:4 gpu:8 nic:8 rail:8 plane:2 railonly", "su:1 node:4 plane:2"}) {
    auto made = *ParseSynthetic(line);
    Nic& nic = made.nodes[1].nics[3];
    ASSERT_EQ(nic.ports.size(), 2u);
    NicPort& port = nic.ports[0].plane == 0 ? nic.ports[0] : nic.ports[1];
    port.state = LinkState::kDown;
    port.rate_gbps = port.usable_gbps = 0;
    port.leaf_port = Missing::kUnknown;
    const Fabric fabric = BuildFabric(made.nodes, made.declaration);
    EXPECT_EQ(fabric.nodes[1].uplinks[3].leaf, fabric.nodes[0].uplinks[3].leaf) << line;
    EXPECT_EQ(fabric.nodes[1].uplinks[3].gbps, 200);
    EXPECT_EQ(fabric.nodes[0].uplinks[3].gbps, 400);
    EXPECT_THAT(Check(fabric), IsEmpty());
  }
}

// What it borrows is the neighbour's: the neighbour keeps the whole of it, as beside a rail that is down.
TEST(Uplinks, CountAGpuWhoseNicIsGoneAsOneWhoseRailIsDown) {
  const auto fabric_of = [](bool told) {
    Node node = NodeNamed("a").Gpus(4).Rails(3, "r");
    node.paths.push_back({3, "mlx5_0", PciDistance::kSys});
    if (told) node.gpus[3].nic_gone = LostNic{3, "0000:5e:00.0"};
    return BuildFabric({node, NodeNamed("b").Gpus(4).Rails(3, "r")}, {});
  };
  const Fabric before = fabric_of(false);
  EXPECT_EQ(before.nodes[0].uplinks[3].gbps, 200) << "an agent that does not say so";
  const Fabric fabric = fabric_of(true);
  EXPECT_EQ(fabric.nodes[0].uplinks[3], (GpuUplink{3, kNone, 0, PciDistance::kSys}));
  EXPECT_EQ(fabric.nodes[0].uplinks[0].gbps, 400);
  EXPECT_EQ(fabric.rails, 4);
  EXPECT_THAT(Check(fabric), IsEmpty());
}

TEST(Uplinks, CountWhatIsLeftOfAGpuThatLostOneOfSeveralNics) {
  Node node = NodeNamed("a").Gpus(2).Rail(0, "r0").Rail(0, "r1").Rail(1, "r2");
  node.gpus[1].nic_gone = LostNic{1, ""};
  EXPECT_FALSE(BorrowsNics(node, node.gpus[1], DealNics(node)[1]));
  const Fabric fabric = BuildFabric({node}, {});
  EXPECT_EQ(fabric.nodes[0].uplinks[0].gbps, 800);
  EXPECT_EQ(fabric.nodes[0].uplinks[1].gbps, 400);
}

TEST(Uplinks, AddTheFourEfaOfAGpu) {
  const Fabric fabric = FabricOf("su:1 node:2 gpu:8 nic:32 rail:8 rate:100 transport:efa");
  EXPECT_EQ(fabric.transport, Transport::kEfa);
  EXPECT_EQ(fabric.nodes[0].uplinks[5], (GpuUplink{5, kNone, 400, PciDistance::kPix}));
}

TEST(Units, ShareNothingOverTheStorageLeaf) {
  std::vector<Node> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(
        NodeNamed("n" + std::to_string(i)).Gpus(2).Rails(2, i < 2 ? "a" : "b").Storage("storage"));
  }
  const Fabric fabric = BuildFabric(nodes, {});
  EXPECT_THAT(fabric.units, SizeIs(2));
  EXPECT_EQ(fabric.FindLeaf("storage"), kNone);
}

TEST(Units, AreNumberedByTheirSmallestNode) {
  const Fabric fabric =
      BuildFabric({NodeNamed("z").Gpus(2).Rails(2, "a"), NodeNamed("b").Gpus(2).Rails(2, "y")}, {});
  EXPECT_EQ(fabric.nodes[0].unit, 0);
  EXPECT_EQ(fabric.units[0].name, "su-0");
  EXPECT_THAT(fabric.units[0].leaves, ElementsAre(fabric.FindLeaf("y0"), fabric.FindLeaf("y1")));
}

// A rail whose leaf is full goes on on a second one: normal, if more than one host says so.
TEST(Units, MayHaveUnevenLeaves) {
  std::vector<Node> nodes;
  for (int i = 0; i < 12; ++i) {
    NodeNamed node("n" + std::to_string(10 + i));
    node.Gpus(4).Rails(3, "r").Rail(3, i < 9 ? "r3" : "r3b");
    nodes.push_back(node);
  }
  const Fabric fabric = BuildFabric(nodes, {});
  EXPECT_THAT(fabric.units, SizeIs(1));
  EXPECT_THAT(fabric.units[0].leaves, SizeIs(5));
  EXPECT_EQ(fabric.leaves[std::size_t(fabric.FindLeaf("r3b"))].rail, 3);
  EXPECT_THAT(fabric.faults, IsEmpty());
}

TEST(Units, HoldAHostThatMissesMostRailsWhateverItIsCalled) {
  for (const char* const full : {"a", "z"}) {
    const Node whole = NodeNamed(full).Gpus(8).Rails(8, "r"), part = NodeNamed("m").Gpus(8).Rails(2, "r");
    EXPECT_THAT(BuildFabric({part, whole}, {}).units, SizeIs(1)) << full;
  }
}

TEST(Units, MayShareHalfOfTheirLeaves) {
  std::vector<Node> nodes;
  for (int i = 0; i < 8; ++i) {
    const std::string own = i < 4 ? "x" : "y";
    nodes.push_back(
        NodeNamed("n" + std::to_string(i)).Gpus(4).Rails(2, "s").Rail(2, own + "2").Rail(3, own + "3"));
  }
  const Fabric fabric = BuildFabric(nodes, {});
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_THAT(fabric.units, SizeIs(2));
  EXPECT_THAT(fabric.faults, IsEmpty());
}

TEST(Units, WithoutKnownRailsStillHaveLeaves) {
  const Fabric fabric = BuildFabric({NodeNamed("a").Nic("x").Nic("y"), NodeNamed("b").Nic("x").Nic("y")}, {});
  ASSERT_THAT(fabric.units, SizeIs(1));
  EXPECT_THAT(fabric.units[0].leaves, SizeIs(2));
  EXPECT_EQ(fabric.leaves[0].rail.missing(), Missing::kUnknown);
  EXPECT_EQ(fabric.leaves[0].unit, 0);
}

// Each would take minutes if every host were compared with every other.
TEST(Units, OfOneHostEachMayBeMany) {
  std::vector<Node> nodes;
  for (int i = 0; i < 4000; ++i) {
    NodeNamed node("n" + std::to_string(i));
    const std::string own = "own" + std::to_string(i) + "-";
    if (i % 3 == 0) {
      node.Gpus(4).Rails(3, own).Rail(3, own + "2");  // two rails on one leaf
    } else {
      node.Gpus(4).Rails(3, own).Rail(3, i % 3 == 1 ? "shared" : own + "3");
    }
    nodes.push_back(node);
  }
  const Fabric fabric = BuildFabric(nodes, {});
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_THAT(fabric.units, SizeIs(4000));
  EXPECT_THAT(fabric.faults, SizeIs(1334)) << "the shared leaf is no fault, one leaf for two rails is";
}

TEST(CablingFaults, NameBothEndsOfASwap) {
  const Fabric fabric = FabricOf("su:2 node:4 swap:node-1/rail-3/rail-4");
  ASSERT_THAT(fabric.faults, SizeIs(2));
  const CablingFault& fault = fabric.faults[0];
  EXPECT_EQ(fault.node, "node-01");
  EXPECT_EQ(fault.nic, "mlx5_3");
  EXPECT_EQ(fault.seen, (LeafPort{"su0-r4", "2"}));
  EXPECT_EQ(fault.expected_leaf, "su0-r3");
  EXPECT_EQ(
      fault.sentence,
      "node-01 mlx5_3 is cabled to su0-r4 port 2; its unit's rail 3 is su0-r3: swapped with node-01 mlx5_4 "
      "on su0-r3 port 2");
  EXPECT_EQ(fabric.leaves[std::size_t(fabric.FindLeaf("su0-r3"))].rail, 3)
      << "one wrong cable does not blur a leaf";
  EXPECT_EQ(fabric.nodes[1].uplinks[3].leaf, fabric.FindLeaf("su0-r4"))
      << "traffic goes where the cable goes";
}

TEST(CablingFaults, DoNotJoinTheUnitsOfACrossedPair) {
  const Fabric fabric = FabricOf("su:2 node:4 swap:node-1/rail-3/node-6/rail-3");
  EXPECT_THAT(fabric.units, SizeIs(2));
  EXPECT_THAT(Sentences(fabric), ElementsAre("node-01 mlx5_3 is cabled to su1-r3 port 3; its unit's rail 3 "
                                             "is su0-r3: swapped with node-06 mlx5_3 on su0-r3 port 2",
                                             "node-06 mlx5_3 is cabled to su0-r3 port 2; its unit's rail 3 "
                                             "is su1-r3: swapped with node-01 mlx5_3 on su1-r3 port 3"));
}

TEST(CablingFaults, NameOneWrongCable) {
  auto made = *ParseSynthetic("su:2 node:4");
  made.nodes[2].nics[5].ports[0].leaf_port = LeafPort{"su1-r5", "40"};
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  EXPECT_THAT(Sentences(fabric),
              ElementsAre("node-02 mlx5_5 is cabled to su1-r5 port 40; its unit's rail 5 is su0-r5"));
  EXPECT_EQ(fabric.nodes[2].unit, 0);
}

TEST(CablingFaults, NameACableIntoAnUnrelatedSwitch) {
  auto made = *ParseSynthetic("su:1 node:4 spine:0");
  made.nodes[2].nics[5].ports[0].leaf_port = LeafPort{"office-switch", "7"};
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  EXPECT_THAT(Sentences(fabric),
              ElementsAre("node-02 mlx5_5 is cabled to office-switch port 7; its unit's rail 5 is su0-r5"));
  EXPECT_EQ(fabric.leaves[std::size_t(fabric.FindLeaf("office-switch"))].unit, kNone);
  EXPECT_THAT(Check(fabric), IsEmpty());
}

TEST(CablingFaults, AdmitThatTwoHostsAreNoMajority) {
  const Fabric fabric = FabricOf("su:1 node:2 swap:node-1/rail-3/rail-4");
  EXPECT_THAT(Sentences(fabric), ElementsAre(HasSubstr("node-01 mlx5_3"), HasSubstr("node-01 mlx5_4")))
      << "a tie goes to the order of the leaves' names";
  const Node a = NodeNamed("a").Rail(0, "x").Rail(1, "y").Rail(2, "w");
  const Node b = NodeNamed("b").Rail(0, "x").Rail(1, "z").Rail(2, "w");
  EXPECT_THAT(
      Sentences(BuildFabric({a, b}, {})),
      ElementsAre("b mlx5_1 is cabled to z; its unit's rail 1 is y, by 1 of 2 hosts only: no majority tells "
                  "which is right; declare it in spec.leafNames or spec.switches"));
}

TEST(CablingFaults, FindTwoRailsOnOneLeafWhereOthersHaveTheirOwn) {
  auto made = *ParseSynthetic("su:2 node:2");
  made.nodes.resize(3);  // node-02 is alone in its unit
  made.nodes[2].nics[3].ports[0].leaf_port = LeafPort{"su1-r4", "9"};
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  EXPECT_THAT(
      Sentences(fabric),
      ElementsAre(
          "node-02 mlx5_4 is cabled to su1-r4 port 1, where rail 3 of its unit ends too; in other units "
          "rails 3 and 4 have leaves of their own"));
  EXPECT_EQ(fabric.leaves[std::size_t(fabric.FindLeaf("su1-r4"))].rail.missing(), Missing::kAmbiguous);
}

TEST(CablingFaults, AcceptTwoRailsOnEachLeafAsADesign) {
  std::vector<Node> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(
        NodeNamed("n" + std::to_string(i)).Gpus(4).Rail(0, "x").Rail(1, "x").Rail(2, "y").Rail(3, "y"));
  }
  const Fabric fabric = BuildFabric(nodes, {});
  EXPECT_THAT(fabric.faults, IsEmpty());
  EXPECT_EQ(fabric.leaves[0].rail.missing(), Missing::kAmbiguous);
  EXPECT_EQ(fabric.shape, Shape::kRailOptimised);
}

TEST(CablingFaults, FindALeafPortThatTwoHostsClaim) {
  auto made = *ParseSynthetic("su:1 node:4");
  made.nodes[2].nics[5].ports[0].leaf_port = made.nodes[0].nics[5].ports[0].leaf_port;
  EXPECT_THAT(
      Sentences(BuildFabric(made.nodes, made.declaration)),
      ElementsAre(
          "node-00 mlx5_5 and node-02 mlx5_5 both say that they are cabled to su0-r5 port 1: one of them "
          "is out of date"));
}

TEST(CablingFaults, FindRailsBeyondTheDeclared) {
  auto made = *ParseSynthetic("su:1 node:1");
  made.declaration.rails = 7;
  EXPECT_THAT(Sentences(BuildFabric(made.nodes, made.declaration)),
              ElementsAre("node-00 mlx5_7 is on rail 7, and 7 rails are declared, counted from 0"));
}

TEST(DiffFabric, SaysWhatChanged) {
  const Fabric before = FabricOf("su:2 node:4");
  EXPECT_THAT(Diff(before, before), IsEmpty());
  const Fabric after = FabricOf("su:2 node:4 swap:node-1/rail-3/rail-4");
  EXPECT_THAT(Diff(before, after),
              ElementsAre("node-01 mlx5_3 port 1 leaf: su0-r3 port 2 -> su0-r4 port 2",
                          "node-01 mlx5_4 port 1 leaf: su0-r4 port 2 -> su0-r3 port 2",
                          AllOf(HasSubstr("new fault: node-01 mlx5_3"), HasSubstr("swapped")),
                          HasSubstr("new fault: node-01 mlx5_4")));
  auto made = *ParseSynthetic("su:2 node:4");
  made.nodes.pop_back();
  EXPECT_THAT(Diff(before, BuildFabric(made.nodes, made.declaration)),
              testing::IsSupersetOf(
                  {"node node-07: is gone", "su-1 nodes: 4 -> 3", "leaf su1-r0 Gb/s down: 1600 -> 1200"}));
}

TEST(CheckFabric, FindsBrokenInvariants) {
  const Fabric sound = FabricOf("su:2 node:2");
  const auto broken = [&](auto change) {
    Fabric fabric = sound;
    change(fabric);
    return !Check(fabric).empty();
  };
  EXPECT_FALSE(broken([](Fabric&) {}));
  EXPECT_TRUE(broken([](Fabric& f) { std::swap(f.nodes[0], f.nodes[1]); }));
  EXPECT_TRUE(broken([](Fabric& f) { f.nodes[0].uplinks.pop_back(); }));
  EXPECT_TRUE(broken([](Fabric& f) { f.nodes[0].uplinks[0].rail = 8; }));
  EXPECT_TRUE(broken([](Fabric& f) { f.nodes[0].uplinks[0].leaf = 99; }));
  EXPECT_TRUE(broken([](Fabric& f) { f.nodes[0].unit = 1; }));
  EXPECT_TRUE(broken([](Fabric& f) { f.leaves[0].spines = {1, 0}; }));
  EXPECT_TRUE(broken([](Fabric& f) { f.leaves[0].unit = 5; }));
  EXPECT_TRUE(broken([](Fabric& f) { f.spines[0].tier = 3; }));
  EXPECT_TRUE(broken([](Fabric& f) { f.units[0].nodes.clear(); }));
  EXPECT_TRUE(broken([](Fabric& f) { f.domains[0].gpus = 7; }));
}

}  // namespace
}  // namespace heddle::topology
