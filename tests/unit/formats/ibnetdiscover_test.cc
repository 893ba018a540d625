#include "formats/ibnetdiscover.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "shared_data.h"

namespace heddle::formats {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

IbNetwork Dump(int number) {
  return ParseIbNetwork(test::SharedData("ibnetdiscover/ibtopotool-" + std::to_string(number) + ".topo"));
}

TEST(IbNetwork, ReadsSwitchesAdaptersAndTheirPorts) {
  const IbNetwork network = Dump(2);
  ASSERT_EQ(network.nodes.size(), 3u);
  const IbNode* leaf = network.Find("S-000b8cffff0053ee");
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(leaf->kind, IbNodeKind::kSwitch);
  EXPECT_EQ(leaf->guid, "0x000b8cffff0053ee");
  EXPECT_EQ(leaf->port_count, 8);
  EXPECT_EQ(leaf->lid, 3);
  ASSERT_EQ(leaf->links.size(), 2u);
  EXPECT_EQ(leaf->links[1], (IbLink{2, "H-0002c9030002847c", 2, 4, "SDR"}));
  EXPECT_EQ(network.Find("H-0002c9030002847c")->description, "compute-00-00 HCA-1");
  EXPECT_THAT(network.problems, IsEmpty());
}

TEST(IbNetwork, SaysWhatALinkCarries) {
  EXPECT_EQ(IbLinkGbps({1, "S-1", 1, 4, "NDR"}), 400);
  EXPECT_EQ(IbLinkGbps({1, "S-1", 1, 2, "HDR"}), 100);
  EXPECT_EQ(IbLinkGbps({1, "S-1", 1, 4, "FDR"}), 56);
  EXPECT_EQ(IbLinkGbps({1, "S-1", 1, 1, "SDR"}), 2);
  EXPECT_EQ(IbLinkGbps({1, "S-1", 1, 4, "ZDR"}), 0);
}

TEST(IbNetwork, TellsHostsFromAggregationNodesAndFromAdaptersWithoutAName) {
  const IbAdapterName host = ParseIbAdapterName("gpu-017 mlx5_3");
  EXPECT_EQ(host.kind, IbAdapterKind::kHost);
  EXPECT_EQ(host.host, "gpu-017");
  EXPECT_EQ(host.device, "mlx5_3");
  EXPECT_EQ(ParseIbAdapterName("gpu-017").device, "HCA-1");
  EXPECT_EQ(ParseIbAdapterName("Mellanox Technologies Aggregation Node").kind, IbAdapterKind::kAggregation);
  EXPECT_EQ(ParseIbAdapterName("MT4123 ConnectX6   Mellanox Technologies").kind, IbAdapterKind::kNameless);
  EXPECT_EQ(ParseIbAdapterName("").kind, IbAdapterKind::kNameless);
}

TEST(IbNetwork, NamesTheLineOfANodeThatIsListedTwice) {
  const IbNetwork network = ParseIbNetwork("Switch 4 \"S-0001\" # \"a\"\n\nSwitch 4 \"S-0001\" # \"a\"\n");
  EXPECT_THAT(network.problems, Contains(HasSubstr("line 3: S-0001 \"a\" is listed in line 1 already")));
}

TEST(IbNetwork, TellsAdaptersOfOneNameApartByGuid) {
  const IbNetwork network = Dump(1);
  EXPECT_EQ(std::count_if(network.nodes.begin(), network.nodes.end(),
                          [](const IbNode& node) {
                            return node.description == "MT23108 InfiniHost Mellanox Technologies";
                          }),
            4);
  EXPECT_EQ(network.nodes.size(), 6u);
}

TEST(IbNetwork, ReportsAToolsErrorLineAndReadsOn) {
  const IbNetwork network = Dump(3);
  EXPECT_THAT(network.problems, Contains(HasSubstr("line 1 is not ibnetdiscover's: `src/query_smp.c")));
  EXPECT_NE(network.Find("S-e41d2d030003e470"), nullptr);
}

TEST(IbNetwork, SeesLoopbackCables) {
  const IbNetwork network = Dump(3);
  const IbNode* node = network.Find("S-e41d2d030003e470");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(std::count_if(node->links.begin(), node->links.end(),
                          [&](const IbLink& link) { return IsLoopback(*node, link); }),
            6);
}

TEST(IbNetwork, ReadsALidOfAnEnhancedPort) {
  const IbNetwork network = Dump(4);
  ASSERT_EQ(network.nodes.size(), 2u);
  EXPECT_EQ(network.nodes[0].lid, 15);
  EXPECT_EQ(network.nodes[0].links.at(0).speed, "QDR");
}

// As rdma-core's ibnetdiscover -g writes them.
TEST(IbNetwork, ReadsPortsOfAChassisWithTheirNumbersOutside) {
  const IbNetwork network = ParseIbNetwork(
      "Switch\t24 \"S-0001\"\t\t# \"ISR9024\" base port 0 lid 6 lmc 0\n"
      "[1][ext 22]\t\"H-0002\"[1](3) \t\t# \"a HCA-1\" lid 14 4xDDR\n"
      "[2][ext 7]\t\"S-0004\"[9][ext 12]\t\t# \"ISR9024 b\" lid 8 4xQDR\n"
      "Switch\t24 \"S-0004\"\t\t# \"ISR9024 b\" base port 0 lid 8 lmc 0\n"
      "[9][ext 12]\t\"S-0001\"[2][ext 7]\t\t# \"ISR9024\" lid 6 4xQDR\n"
      "Ca\t1 \"H-0002\"\t\t# \"a HCA-1\"\n"
      "[1](3) \t\"S-0001\"[1][ext 22]\t\t# lid 14 lmc 0 \"ISR9024\" lid 6 4xDDR\n");
  EXPECT_THAT(network.problems, IsEmpty());
  ASSERT_EQ(network.nodes.size(), 3u);
  ASSERT_EQ(network.nodes[0].links.size(), 2u);
  EXPECT_EQ(network.nodes[0].links[0], (IbLink{1, "H-0002", 1, 4, "DDR"}));
  EXPECT_EQ(network.nodes[0].links[1], (IbLink{2, "S-0004", 9, 4, "QDR"}));
  ASSERT_EQ(network.nodes[2].links.size(), 1u);
  EXPECT_EQ(network.nodes[2].links[0], (IbLink{1, "S-0001", 1, 4, "DDR"}));
}

TEST(IbNetwork, ReadsTheSpeedBetweenAdaptersAndBeforeWhatFollowsIt) {
  const IbNetwork network = ParseIbNetwork(
      "Ca\t1 \"H-0001\"\t\t# \"a 4xSDR\"\n"
      "[1](2) \t\"H-0003\"[1] (4) \t\t# lid 1 lmc 0 \"b 1xSDR\" lid 2 4xEDR s=4 w=2 v=4 e=2\n"
      "Ca\t1 \"H-0003\"\t\t# \"b 1xSDR\"\n"
      "[1](4) \t\"H-0001\"[1] (2) \t\t# lid 2 lmc 0 \"a 4xSDR\" lid 1 4xEDR slot 3\n");
  EXPECT_THAT(network.problems, IsEmpty());
  ASSERT_EQ(network.nodes.size(), 2u);
  ASSERT_EQ(network.nodes[0].links.size(), 1u);
  EXPECT_EQ(network.nodes[0].links[0], (IbLink{1, "H-0003", 1, 4, "EDR"}));
  ASSERT_EQ(network.nodes[1].links.size(), 1u);
  EXPECT_EQ(network.nodes[1].links[0], (IbLink{1, "H-0001", 1, 4, "EDR"}));
}

TEST(IbNetwork, ReportsACableThatOneEndDenies) {
  const IbNetwork network = ParseIbNetwork(
      "Switch 4 \"S-0001\" # \"a\" base port 0 lid 1 lmc 0\n"
      "[1] \"S-0002\"[1] # \"b\" lid 2 4xNDR\n"
      "[2] \"S-0009\"[1] # \"c\" lid 3 4xNDR\n"
      "Switch 4 \"S-0002\" # \"a\" base port 0 lid 2 lmc 0\n"
      "[1] \"S-0001\"[3] # \"a\" lid 1 4xNDR\n");
  EXPECT_THAT(network.problems,
              Contains(HasSubstr("S-0001 port 1 to S-0002 port 1: the other end does not say so")));
  EXPECT_THAT(network.problems, Contains(HasSubstr("S-0009 port 1: the other end is not in the dump")));
  EXPECT_THAT(network.problems, Contains(HasSubstr("2 switches are called \"a\"")));
}

}  // namespace
}  // namespace heddle::formats
