#include "topology/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/builders.h"
#include "topology/fabric.h"

namespace heddle::topology {
namespace {

using test::NodeNamed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class Enum, class Name, class Parse>
void ExpectNamesComeBack(int count, Name name, Parse parse) {
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    EXPECT_EQ(parse(name(value)), value) << name(value);
  }
  EXPECT_FALSE(parse("").has_value());
  EXPECT_FALSE(parse("nonsense").has_value());
}

TEST(Names, ComeBackFromParsing) {
  ExpectNamesComeBack<Missing>(4, MissingName, ParseMissing);
  ExpectNamesComeBack<Transport>(4, TransportName, ParseTransport);
  ExpectNamesComeBack<NicRole>(3, NicRoleName, ParseNicRole);
  ExpectNamesComeBack<LinkState>(3, LinkStateName, ParseLinkState);
  ExpectNamesComeBack<LinkFault>(5, LinkFaultName, ParseLinkFault);
  ExpectNamesComeBack<PciDistance>(5, PciDistanceName, ParsePciDistance);
  ExpectNamesComeBack<Shape>(6, ShapeName, ParseShape);
}

TEST(Names, AreThoseOfTheField) {
  EXPECT_EQ(MissingName(Missing::kNotApplicable), "NotApplicable");
  EXPECT_EQ(TransportName(Transport::kRoce), "RoCE");
  EXPECT_EQ(PciDistanceName(PciDistance::kPhb), "PHB");
  EXPECT_EQ(ShapeName(Shape::kTorus3d), "Torus3D");
  EXPECT_FALSE(ParseTransport("infiniband").has_value()) << "names are exact";
}

TEST(Fact, IsUnknownUntilItIsKnown) {
  Fact<int> fact;
  EXPECT_FALSE(fact.known());
  EXPECT_EQ(fact.missing(), Missing::kUnknown);
  fact = 0;
  EXPECT_TRUE(fact.known()) << "zero is a value";
  EXPECT_EQ(*fact, 0);
}

std::vector<std::string> NicsOf(const Node& node, int gpu) {
  std::vector<std::string> names;
  for (const Nic* const nic : node.NicsOfGpu(gpu)) names.push_back(nic->name);
  return names;
}

TEST(NicOfGpu, IsTheNearest) {
  const Node node = NodeNamed("a").Gpus(2).Rail(0, "r0").Rail(1, "r1").Path(0, "mlx5_1", PciDistance::kSys);
  EXPECT_EQ(node.NicOfGpu(0)->name, "mlx5_0");
  EXPECT_EQ(node.NicOfGpu(1)->name, "mlx5_1");
  EXPECT_EQ(node.NicOfGpu(2), nullptr) << "there is no such GPU";
}

// DGX A100: two GPUs and two NICs below one switch, all equally near.
TEST(NicOfGpu, IsADistinctOneWhereSeveralTie) {
  NodeNamed node("a");
  node.Gpus(2).Nic("x").Nic("y");
  for (int gpu = 0; gpu < 2; ++gpu) {
    node.Path(gpu, "mlx5_0", PciDistance::kPix).Path(gpu, "mlx5_1", PciDistance::kPix);
  }
  EXPECT_THAT(NicsOf(node, 0), ElementsAre("mlx5_0"));
  EXPECT_THAT(NicsOf(node, 1), ElementsAre("mlx5_1"));
}

// The greedy choice would give mlx5_0 to GPU 0 and leave GPU 1 without one of its own.
TEST(NicOfGpu, MovesAnEarlierGpuSoThatEachHasItsOwn) {
  NodeNamed node("a");
  node.Gpus(2).Nic("x").Nic("y");
  node.Path(0, "mlx5_0", PciDistance::kPix)
      .Path(0, "mlx5_1", PciDistance::kPix)
      .Path(1, "mlx5_0", PciDistance::kPix);
  EXPECT_THAT(NicsOf(node, 0), ElementsAre("mlx5_1"));
  EXPECT_THAT(NicsOf(node, 1), ElementsAre("mlx5_0"));
}

TEST(NicOfGpu, GivesRailOrderBeforeNameOrder) {
  NodeNamed node("a");
  node.Gpus(2).Rail(5, "r5").Rail(4, "r4");
  for (int gpu = 0; gpu < 2; ++gpu) {
    node.Path(gpu, "mlx5_0", PciDistance::kPhb).Path(gpu, "mlx5_1", PciDistance::kPhb);
  }
  EXPECT_THAT(NicsOf(node, 0), ElementsAre("mlx5_1"));
  EXPECT_THAT(NicsOf(node, 1), ElementsAre("mlx5_0"));
}

TEST(NicOfGpu, IsSharedWhereThereAreFewerNicsThanGpus) {
  NodeNamed node("a");
  node.Gpus(4).Nic("x").Nic("y");
  for (int gpu = 0; gpu < 4; ++gpu) {
    node.Path(gpu, "mlx5_0", PciDistance::kPix).Path(gpu, "mlx5_1", PciDistance::kPix);
  }
  EXPECT_THAT(NicsOf(node, 0), ElementsAre("mlx5_0"));
  EXPECT_THAT(NicsOf(node, 1), ElementsAre("mlx5_1"));
  EXPECT_THAT(NicsOf(node, 2), ElementsAre("mlx5_0"));
  EXPECT_THAT(NicsOf(node, 3), ElementsAre("mlx5_1"));
}

TEST(NicsOfGpu, AreAllFourOfAP5Gpu) {
  NodeNamed node("p5");
  node.Gpus(2);
  for (int i = 0; i < 8; ++i) node.Nic("").Path(i / 4, "mlx5_" + std::to_string(i), PciDistance::kPix);
  EXPECT_THAT(NicsOf(node, 0), ElementsAre("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"));
  EXPECT_THAT(NicsOf(node, 1), ElementsAre("mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"));
}

TEST(NicsOfGpu, AreEqualManyForGpusThatCompete) {
  NodeNamed node("a");
  node.Gpus(2);
  for (int i = 0; i < 5; ++i) {
    node.Nic("");
    for (int gpu = 0; gpu < 2; ++gpu) node.Path(gpu, "mlx5_" + std::to_string(i), PciDistance::kNode);
  }
  EXPECT_EQ(NicsOf(node, 0).size(), 2u);
  EXPECT_EQ(NicsOf(node, 1).size(), 2u) << "the fifth NIC is nobody's, or one GPU were faster";
}

TEST(NicOfGpu, NeverIsAStorageNic) {
  const Node node = NodeNamed("a").Gpus(1).Storage("st").Path(0, "mlx5_0", PciDistance::kPix);
  EXPECT_EQ(node.NicOfGpu(0), nullptr);
}

TEST(NicOfGpu, IsAnyComputeNicWhereNoPathIsKnown) {
  Node node = NodeNamed("vm").Gpus(2).Rail(0, "r0").Rail(1, "r1");
  node.paths.clear();
  EXPECT_EQ(node.NicOfGpu(0)->name, "mlx5_0");
  EXPECT_EQ(node.NicOfGpu(1)->name, "mlx5_1");
}

TEST(NicOfGpu, StaysWhenItsCableIsPulled) {
  const Node node = NodeNamed("a").Gpus(2).Rails(2, "r").Down("mlx5_1");
  ASSERT_NE(node.NicOfGpu(1), nullptr);
  EXPECT_EQ(node.NicOfGpu(1)->name, "mlx5_1");
  EXPECT_FALSE(node.NicOfGpu(1)->up());
}

TEST(Nic, CountsOnlyPortsThatAreNotDown) {
  Nic nic;
  nic.role = NicRole::kCompute;
  nic.ports = {{1, 0, LinkState::kActive, 200, 200, {}},
               {2, 1, LinkState::kDown, 200, 200, {}},
               {3, 0, LinkState::kActive, 200, -7, {}}};
  EXPECT_EQ(nic.usable_gbps(), 200);
  EXPECT_TRUE(nic.up());
  nic.role = NicRole::kStorage;
  EXPECT_FALSE(nic.up());
}

TEST(CheckNode, FindsNothingInASoundNode) {
  const Node node = NodeNamed("a").Gpus(8).Rails(8, "r", "4").Storage("st", "1");
  EXPECT_THAT(Check(node), IsEmpty());
}

TEST(CheckNode, NamesEachContradiction) {
  const Node sound = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  const auto broken = [&](auto change) {
    Node node = sound;
    change(node);
    const auto faults = Check(node);
    return faults.empty() ? std::string("nothing") : faults.front();
  };
  EXPECT_EQ(broken([](Node& n) { n.name.clear(); }), "the node has no name");
  EXPECT_EQ(broken([](Node& n) { n.gpus[1].index = 0; }), "GPU 0 is there twice");
  EXPECT_EQ(broken([](Node& n) { n.gpus[1].uuid = n.gpus[0].uuid; }), "two GPUs have the UUID GPU-a-0");
  EXPECT_EQ(broken([](Node& n) { n.gpus[1].pci = n.gpus[0].pci; }), "two GPUs are at 0000:10:00.0");
  EXPECT_EQ(broken([](Node& n) { std::swap(n.gpus[0], n.gpus[1]); }),
            "GPU 0 stands after GPU 1: must be sorted by index");
  EXPECT_EQ(broken([](Node& n) { n.gpus[0].healthy = false; }), "GPU 0 is unhealthy without a reason");
  EXPECT_EQ(broken([](Node& n) {
              n.gpus[0].nic_gone = LostNic{256, ""};
            }),
            "GPU 0 has lost a NIC on rail 256: rails are 0 to 255");
  EXPECT_EQ(broken([](Node& n) {
              n.nvlink.exceptions = {{7, 3}};
            }),
            "NVLink exception for GPU 7, which is not there");
  EXPECT_EQ(broken([](Node& n) { n.nvlink.exceptions = {{1, 19}}; }), "GPU 1 has 19 of 18 NVLinks");
  EXPECT_EQ(broken([](Node& n) {
              n.nvlink.exceptions = {{1, 18, 3601}};
            }),
            "GPU 1 counts for 3601 of 3600 Gb/s over NVLink");
  EXPECT_EQ(broken([](Node& n) { n.nvlink.exceptions = {{1, 18, 3500}}; }), "nothing");
  EXPECT_EQ(broken([](Node& n) { n.nics[1].name = "mlx5_0"; }), "NIC mlx5_0 is there twice");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].ports.clear(); }), "mlx5_0 has no port");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].rail = -1; }), "mlx5_0 is on rail -1");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].ports[0].rate_gbps = -1; }),
            "mlx5_0 port 1 has a negative rate: -1 Gb/s, usable 400");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].ports[0].usable_gbps = 401; }),
            "mlx5_0 port 1 has 401 Gb/s usable of 400");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].ports[0].state = LinkState::kDown; }),
            "mlx5_0 port 1 is down and has 400 Gb/s usable");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].ports[0].fault = LinkFault::kErrors; }),
            "mlx5_0 port 1 has a fault and no reason");
  EXPECT_EQ(broken([](Node& n) { n.nics[0].ports[0].reason = "it flaps"; }),
            "mlx5_0 port 1 has no fault and a reason");
  EXPECT_EQ(broken([](Node& n) {
              n.nics[1].ports[0].leaf_port = LeafPort{"r0", "4"};
            }),
            "mlx5_0 port 1 and mlx5_1 port 1 are both on r0 port 4");
  EXPECT_EQ(broken([](Node& n) {
              n.nics[1].ports[0].leaf_port = LeafPort{"r0", "4", "04:3f:72:aa:bb:cc"};
            }),
            "mlx5_0 port 1 and mlx5_1 port 1 are both on r0 port 4")
      << "whichever switch of that name it is";
  EXPECT_EQ(broken([](Node& n) { n.paths[0].nic = "mlx5_9"; }),
            "a path leads from GPU 0 to mlx5_9, which is not there");
  EXPECT_EQ(broken([](Node& n) { n.paths[1].gpu = 3; }), "a path leads from GPU 3, which is not there");
  EXPECT_EQ(broken([](Node& n) { n.paths.push_back(n.paths[1]); }), "two paths lead from GPU 1 to mlx5_1");
  EXPECT_EQ(broken([](Node& n) { std::swap(n.paths[0], n.paths[1]); }),
            "the path of GPU 0 to mlx5_0 is out of order");
}

TEST(NvLink, CountsTheShareOfTheLinksThatAreUpUnlessItIsSaidToBeLess) {
  NvLink nvlink{4, 18, 3600, {}};
  EXPECT_EQ(nvlink.usable_gbps(1), 3600);
  nvlink.exceptions = {{1, 17}, {2, 18, 3500}, {4, 17, 0}};
  EXPECT_EQ(nvlink.usable_gbps(0), 3600);
  EXPECT_EQ(nvlink.usable_gbps(1), 3400);
  EXPECT_EQ(nvlink.usable_gbps(2), 3500);
  EXPECT_EQ(nvlink.usable_gbps(4), 0);
  EXPECT_EQ(nvlink.usable_gbps(1, 2400), 3400) << "what is known is not assumed";
  nvlink.gbps_per_gpu = 0;
  EXPECT_EQ(nvlink.usable_gbps(1), 0);
  EXPECT_EQ(nvlink.usable_gbps(0, 1800), 1800);
  EXPECT_EQ(nvlink.usable_gbps(1, 1800), 1700);
}

TEST(ContentHash, IsStable) {
  EXPECT_EQ(ContentHash(Node{}).size(), 16u);
  EXPECT_EQ(ContentHash(Node{}), ContentHash(Node{}));
  // Agents of two versions must not see a change in the same node: a new value here is a change that all
  // would publish.
  EXPECT_EQ(ContentHash(NodeNamed("a").Gpus(2).Rails(2, "r", "4")), "a25eb3e03dfca355");
}

TEST(ContentHash, ChangesWithEveryPart) {
  const Node node = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  const std::string before = ContentHash(node);
  const auto differs = [&](auto change) {
    Node other = node;
    change(other);
    return ContentHash(other) != before;
  };
  EXPECT_TRUE(differs([](Node& n) { n.site = "x"; }));
  EXPECT_TRUE(differs([](Node& n) { n.gpus[0].healthy = false; }));
  EXPECT_TRUE(differs([](Node& n) { n.gpus[0].numa = Missing::kStale; }));
  EXPECT_TRUE(differs([](Node& n) { n.gpus.pop_back(); }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].rail = Missing::kUnknown; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].ports[0].leaf_port = LeafPort{"r0", "5"}; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].ports[0].leaf_port = LeafPort{"r0", "4", "fc:1"}; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].ports[0].fault = LinkFault::kErrors; }));
  EXPECT_TRUE(differs([](Node& n) { n.gpus[0].mig = true; }));
  EXPECT_TRUE(differs([](Node& n) { n.gpus[0].nic_gone = LostNic{0, ""}; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].driver = "mlx5_core"; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].pci_id = "15b3:1021"; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].ports[0].rdma_mtu = 4096; }));
  EXPECT_TRUE(differs([](Node& n) { n.nics[0].ports[0].gid_index = 0; }));
  EXPECT_TRUE(differs([](Node& n) { n.paths[0].distance = PciDistance::kSys; }));
  EXPECT_TRUE(differs([](Node& n) { n.nvlink_domain = NvlinkMembership{"a", true}; }));
  Node odd = node;
  odd.nvlink.exceptions = {{1, 18}};
  Node slow = odd;
  slow.nvlink.exceptions[0].usable_gbps = 3500;
  EXPECT_NE(ContentHash(odd), before);
  EXPECT_NE(ContentHash(slow), ContentHash(odd));
  EXPECT_TRUE(differs([](Node& n) { std::swap(n.machine, n.name); })) << "the same bytes in other places";
}

TEST(DiffNode, SaysWhatChanged) {
  const Node before = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  Node after = before;
  EXPECT_THAT(Diff(before, after), IsEmpty());
  after.nics[1].ports[0].state = LinkState::kDown;
  after.nics[1].ports[0].usable_gbps = 0;
  after.nics[0].ports[0].leaf_port = LeafPort{"r7", "9"};
  after.gpus[0].healthy = false;
  after.gpus[0].unhealthy_reason = "XID 79";
  after.nvlink.exceptions = {{1, 17}};
  EXPECT_THAT(Diff(before, after),
              ElementsAre("GPU 0: unhealthy: XID 79", "GPU 1 NVLinks up: 18 -> 17",
                          "mlx5_0 port 1 leaf: r0 port 4 -> r7 port 9", "mlx5_1 port 1: Active -> Down",
                          "mlx5_1 port 1 usable Gb/s: 400 -> 0"));
  EXPECT_THAT(Diff(after, before), testing::Contains("GPU 0: healthy again"));
  Node twin = before;
  twin.nics[0].ports[0].leaf_port = LeafPort{"r0", "4", "fc:1"};
  EXPECT_THAT(Diff(before, twin), ElementsAre("mlx5_0 port 1 leaf: r0 port 4 -> r0 port 4 of chassis fc:1"));
  Node slow = before;
  slow.nvlink.exceptions = {{1, 18, 3500}};
  EXPECT_THAT(Diff(before, slow), ElementsAre("GPU 1 NVLink usable Gb/s: 3600 -> 3500"));
  EXPECT_THAT(Diff(slow, before), ElementsAre("GPU 1 NVLink usable Gb/s: 3500 -> 3600"));
}

TEST(DiffNode, SaysThatANicIsGone) {
  const Node before = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  Node after = before;
  after.gpus[1].nic_gone = LostNic{1, "0000:5e:00.0"};
  EXPECT_THAT(Diff(before, after), ElementsAre("GPU 1 lost NIC: none -> 0000:5e:00.0 on rail 1"));
}

TEST(DiffNode, SaysWhatNcclNeedsToKnow) {
  const Node before = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  Node after = before;
  after.gpus[1].mig = true;
  after.nics[0].driver = "mlx5_core";
  after.nics[0].pci_id = "15b3:1021";
  after.nics[0].ports[0].rdma_mtu = 4096;
  after.nics[0].ports[0].gid_index = 3;
  EXPECT_THAT(Diff(before, after),
              ElementsAre("GPU 1 MIG: off -> on", "mlx5_0 driver: none -> mlx5_core",
                          "mlx5_0 PCI id: none -> 15b3:1021", "mlx5_0 port 1 RDMA MTU: 0 -> 4096",
                          "mlx5_0 port 1 RoCE v2 GID index: none -> 3"));
}

TEST(DiffNode, SaysWhatStandsAgainstAPort) {
  const Node before = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  Node after = before;
  after.nics[1].ports[0].fault = LinkFault::kFlapping;
  after.nics[1].ports[0].reason = "4 link downs in 10 min";
  EXPECT_THAT(Diff(before, after), ElementsAre("mlx5_1 port 1 fault: None -> Flapping"));
  Node worse = after;
  worse.nics[1].ports[0].reason = "8 link downs in 10 min";
  EXPECT_THAT(Diff(after, worse),
              ElementsAre("mlx5_1 port 1 evidence: 4 link downs in 10 min -> 8 link downs in 10 min"));
}

TEST(DiffNode, MatchesPartsByNameNotByPosition) {
  const Node before = NodeNamed("a").Gpus(2).Rails(2, "r", "4");
  Node after = before;
  after.nics.erase(after.nics.begin());
  after.paths.erase(after.paths.begin());
  EXPECT_THAT(Diff(before, after), ElementsAre("mlx5_0: is gone", "GPU 0 to mlx5_0: PIX -> none"));
}

TEST(DiffNode, IsNeverEmptyForDifferentNodes) {
  const Node before = NodeNamed("a").Gpus(2).Rails(2, "r");
  Node after = before;
  std::swap(after.gpus[0], after.gpus[1]);
  EXPECT_THAT(Diff(before, after), ElementsAre(HasSubstr("order")));
}

}  // namespace
}  // namespace heddle::topology
