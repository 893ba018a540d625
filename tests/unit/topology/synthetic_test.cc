#include "topology/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "topology/fabric.h"

namespace heddle::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Synthetic Parsed(std::string_view line) {
  auto made = ParseSynthetic(line);
  EXPECT_TRUE(made.has_value()) << line << ": " << made.error().message;
  return made ? *std::move(made) : Synthetic{};
}

std::string Refusal(std::string_view line) {
  const auto made = ParseSynthetic(line);
  EXPECT_FALSE(made.has_value()) << line;
  const auto canonical = CanonicalSynthetic(line);
  EXPECT_FALSE(canonical.has_value()) << line;
  return made ? "" : made.error().message;
}

// One of each kind that the header names; also where each fault word is tried.
const std::vector<std::string> kLines = {
    "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100",
    "rack:2 tray:18 gpu:4 nic:4 rail:4 rate:400 nvl",
    "su:2 rack:2 tray:3 gpu:4 machine:gb200 nvl",
    "tor:4 node:8 gpu:8 nic:2 rate:100 transport:roce",
    "tor:2 node:4 gpu:8 nic:2 rate:200 transport:roce dualtor",
    "su:2 node:4 gpu:8 nic:8 rail:8 railonly",
    "su:1 node:4 gpu:8 nic:8 rail:8 plane:2",
    "su:2 node:4 gpu:8 rail:4 oversub:200",
    "su:2 node:2 spine:0",
    "torus:4x4x4 gpu:4 nic:4",
    "dragonfly:4 tor:4 node:2 gpu:8 nic:1",
    "site:2 su:1 node:4",
    "su:1 node:2 gpu:8 nic:32 rail:8 rate:100 transport:efa",
    "su:1 node:3 gpu:0 nic:0 transport:ethernet",
    "su:1 node:2 gpu:4 nic:2 transport:ethernet machine:l40s",
    "su:2 node:4 down:node-3/rail-2 half:node-1/rail-0 swap:node-0/rail-1/rail-2 "
    "swap:node-1/rail-4/node-6/rail-4 badgpu:node-3/5",
};

TEST(Synthetic, MakesSoundNodesForEveryKindOfLine) {
  for (const std::string& line : kLines) {
    const Synthetic made = Parsed(line);
    EXPECT_FALSE(made.nodes.empty()) << line;
    for (const Node& node : made.nodes) EXPECT_THAT(Check(node), IsEmpty()) << line << ": " << node.name;
  }
}

TEST(Synthetic, IsEqualToItsCanonicalLine) {
  for (const std::string& line : kLines) {
    const auto canonical = CanonicalSynthetic(line);
    ASSERT_TRUE(canonical.has_value()) << line << ": " << canonical.error().message;
    EXPECT_EQ(Parsed(*canonical), Parsed(line)) << line << "\n" << *canonical;
    EXPECT_EQ(CanonicalSynthetic(*canonical), *canonical);
  }
}

TEST(Synthetic, HasOneCanonicalLineForAnyOrderOfWords) {
  EXPECT_EQ(*CanonicalSynthetic("node:4 su:2"), *CanonicalSynthetic("  su:2   node:4 gpu:8 "));
  EXPECT_EQ(*CanonicalSynthetic("su:2 node:4"),
            "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  EXPECT_EQ(*CanonicalSynthetic("su:2 node:4 swap:node-1/rail-2/rail-1"),
            *CanonicalSynthetic("su:2 node:4 swap:node-01/rail-1/rail-2"));
}

TEST(Synthetic, NamesNodesAndLeavesAsTheHeaderSays) {
  const Synthetic units = Parsed("su:2 node:16");
  ASSERT_EQ(units.nodes.size(), 32u);
  EXPECT_EQ(units.nodes[17].name, "node-17");
  EXPECT_EQ(units.nodes[17].nics[3].ports[0].leaf_port->leaf, "su1-r3");
  EXPECT_EQ(units.nodes[17].nics[3].ports[0].leaf_port->port, "2");
  const Synthetic racks = Parsed("rack:2 tray:18 gpu:4 nvl");
  EXPECT_EQ(racks.nodes[20].name, "rack-1-tray-02");
  EXPECT_EQ(racks.nodes[20].nvlink_domain, racks.nodes[35].nvlink_domain);
  EXPECT_FALSE(racks.nodes[20].nvlink_domain == racks.nodes[17].nvlink_domain);
  EXPECT_TRUE(racks.nodes[20].nvlink_domain->spans_nodes);
  EXPECT_EQ(Parsed("su:1 node:120").nodes[3].name, "node-003") << "names sort as numbers do";
}

TEST(Synthetic, GoesOnCountingOverSites) {
  const Synthetic made = Parsed("site:2 su:1 node:4");
  ASSERT_EQ(made.nodes.size(), 8u);
  EXPECT_EQ(made.nodes[3].site, "site-0");
  EXPECT_EQ(made.nodes[4].site, "site-1");
  EXPECT_EQ(made.nodes[4].name, "node-04");
  EXPECT_EQ(made.nodes[4].nics[0].ports[0].leaf_port->leaf, "su1-r0");
}

TEST(Synthetic, AppliesEachFaultWord) {
  const Synthetic made = Parsed(kLines.back());
  const Nic& down = *made.nodes[3].FindNic("mlx5_2");
  EXPECT_EQ(down.ports[0].state, LinkState::kDown);
  EXPECT_EQ(down.usable_gbps(), 0);
  EXPECT_FALSE(down.ports[0].leaf_port.known());
  EXPECT_EQ(*down.rail, 2) << "a NIC that is down keeps its rail";
  EXPECT_EQ(made.nodes[1].FindNic("mlx5_0")->usable_gbps(), 200);
  EXPECT_EQ(made.nodes[0].FindNic("mlx5_1")->ports[0].leaf_port->leaf, "su0-r2");
  EXPECT_EQ(made.nodes[0].FindNic("mlx5_2")->ports[0].leaf_port->leaf, "su0-r1");
  EXPECT_EQ(made.nodes[1].FindNic("mlx5_4")->ports[0].leaf_port->leaf, "su1-r4");
  EXPECT_EQ(made.nodes[6].FindNic("mlx5_4")->ports[0].leaf_port->leaf, "su0-r4");
  EXPECT_FALSE(made.nodes[3].gpus[5].healthy);
  EXPECT_FALSE(made.nodes[3].gpus[5].unhealthy_reason.empty());
}

TEST(Synthetic, RefusesUnknownAndDoubledWordsWithTheList) {
  EXPECT_THAT(Refusal("su:2 nodes:4"),
              StartsWith("synthetic cluster: nodes: unknown word; the words are badgpu, down, dragonfly"));
  EXPECT_THAT(Refusal("su:2 node:4 su:3"),
              StartsWith("synthetic cluster: su: said twice; the words are badgpu"));
  EXPECT_THAT(Refusal("su:2 node:4 nvl nvl"), HasSubstr("nvl: said twice"));
}

TEST(Synthetic, RefusesWhatDoesNotMakeACluster) {
  const auto refused = [](std::string_view line, std::string_view sentence) {
    EXPECT_EQ(Refusal(line), "synthetic cluster: " + std::string(sentence)) << line;
  };
  refused("", "what shape? Say su and node, rack and tray, tor and node, dragonfly, or torus");
  refused("node:4", "what shape? Say su and node, rack and tray, tor and node, dragonfly, or torus");
  refused("su:2", "su: needs node beside it");
  refused("rack:2 node:4", "rack: needs tray beside it");
  refused("tor:2 node:4 su:1", "su: does not go with tor");
  refused("torus:2x2x2 node:1", "node: does not go with torus");
  refused("su:2 node", "node: needs a value, as in node:2");
  refused("su:2 node:4 nvl:1", "nvl:1: takes no value");
  refused("su:0 node:4", "su:0: must be a whole number from 1 to 4096");
  refused("su:-1 node:4", "su:-1: must be a whole number from 1 to 4096");
  refused("su:2 node:4x", "node:4x: must be a whole number from 1 to 16384");
  refused("su:2 node:99999999999999", "node:99999999999999: must be a whole number from 1 to 16384");
  refused("su:4096 node:16384", "more than 65536 nodes or 524288 GPUs or NICs");
  refused("su:2 node:4 nic:4 rail:8", "rail:8: more than nic:4");
  refused("su:2 node:4 gpu:8 nic:12", "nic:12: more than gpu:8 and no multiple of it");
  refused("su:2 node:4 transport:rdma", "transport:rdma: must be ib, roce, efa or ethernet");
  refused("su:2 node:4 machine:v100", "machine:v100: must be a100, b200, gb200, h100, h200 or l40s");
  refused("rack:1 tray:2 machine:l40s nvl", "nvl: machine:l40s has no NVLink");
  refused("su:2 node:4 oversub:50", "oversub:50: must be a whole number from 100 to 100000");
  refused("su:2 node:4 railonly spine:2", "spine:2: must be a whole number from 0 to 0");
  refused("torus:4x4", "torus:4x4: want three sides from 1 to 1024, as torus:4x4x4");
  refused("torus:4x0x4", "torus:4x0x4: want three sides from 1 to 1024, as torus:4x4x4");
}

TEST(Synthetic, RefusesFaultsThatHitNothing) {
  const auto refused = [](std::string_view fault, std::string_view sentence) {
    EXPECT_EQ(Refusal("su:2 node:4 " + std::string(fault)), "synthetic cluster: " + std::string(sentence))
        << fault;
  };
  refused("down:node-9/rail-1", "down:node-9: there is no such node; they are node-00 to node-07");
  refused("down:node-1/rail-8", "down:node-01: rails are 0 to 7");
  refused("badgpu:node-1/8", "badgpu:node-01: GPUs are 0 to 7");
  refused("down:node-1", "down:node-1: want down:node-3/rail-2");
  refused("half:node-1/2", "half:node-1/2: want half:node-3/rail-2");
  refused("swap:node-1/rail-2",
          "swap:node-1/rail-2: want swap:node-3/rail-1/rail-2 or node-3/rail-1/node-9/rail-1");
  refused("swap:node-1/rail-2/rail-2", "swap:node-01: rail 2 with itself");
  refused("badgpu:node-1/x", "badgpu:node-1/x: want badgpu:node-3/5");
  refused("down:node-1/rail-1 down:node-01/rail-1", "down:node-01/1: said twice");
}

}  // namespace
}  // namespace heddle::topology
