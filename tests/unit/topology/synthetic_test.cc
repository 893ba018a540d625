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
    "site:1 core:1 spine:2 su:4 node:16 gpu:8 rail:8 nvlink:node oversub:su=2",
    "core:4 pod:2 spine:2 su:2 node:4 oversub:su=1.5,spine=4",
    "zone:2 pod:2 su:2 node:2 gpu:2",
    "site:2 zone:2 core:3 superspine:2 pod:2,1,1,2 spine:1 su:1 node:1 plane:2 gpu:2 "
    "oversub:superspine=3,spine=1.25",
    "pod:2 tor:2 node:4 nic:2 transport:roce dualtor",
    "node:16,11,7",
    "su:2 rack:2,1 tray:3,2,4 gpu:4 machine:gb200 nvl",
    "tray:18,17 gpu:4 machine:gb200 nvl",
    "su:2 node:36 gpu:4 machine:gb200 nvlink:18",
    "node:5 gpu:2 nvlink:2",
    "tor:2 node:4 nic:1 nvlink:2",
    "su:2 node:2 nvlink:none",
    "dragonfly:groups=9",
    "site:2 dragonfly:3,2 tor:2 node:1 gpu:1",
    "torus:2x3x4",
    "su:4",
    "node:16",
    "gpu:8 node:4",
    "su:3 node:2 machine:h100,a100 gpu:8,4 nic:8,4 rate:400,200",
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

TEST(Synthetic, HasOneCanonicalLineForAllLinesOfACluster) {
  const auto same = [](std::string_view a, std::string_view b) {
    EXPECT_EQ(*CanonicalSynthetic(a), *CanonicalSynthetic(b)) << a;
    EXPECT_EQ(Parsed(a), Parsed(b)) << a << " | " << b;
  };
  same("node:4,4", "su:2 node:4");
  same("pod:2 node:3,2", "pod:2 su:2 node:3,2,3,2");
  same("su:4", "su:4 node:1");
  same("dragonfly:groups=9", "dragonfly:9 tor:1 node:1");
  same("su:2 node:4 oversub:su=2", "su:2 node:4 oversub:200");
  same("su:2 node:4 nvlink:node", "su:2 node:4 nvlink:1");
  same("su:2 node:4 nvlink:4", "su:2 node:4 nvl");
  same("su:1 rack:2 tray:4 gpu:4 nvlink:4", "su:1 rack:2 tray:4 gpu:4 nvl");
  same("su:3 rack:1 tray:4 gpu:4", "rack:3 tray:4 gpu:4");
  same("zone:2 pod:2 superspine:0", "pod:4 core:2");
  same("pod:2 su:2 node:2 spine:0", "su:4 node:2 spine:0");
  same("su:4 gpu:8,4,8,4", "su:4 gpu:8,4");
  same("gpu:8,8", "su:2");
  same("pod:2 oversub:spine=1", "pod:2 core:2");
  same("su:5 gpu:8,4,8", "su:5 gpu:8,4,8,8,4");
  EXPECT_EQ(*CanonicalSynthetic("su:5 gpu:1,2,1,2,1 nic:1"), *CanonicalSynthetic("su:5 gpu:1,2 nic:1"));
}

// As long as the line may be, and it differs only at its end.
TEST(Synthetic, ReadsAListOfEveryUnit) {
  std::string list = "1";
  for (int i = 0; i < 99'998; ++i) list += ",1";
  const auto canonical = CanonicalSynthetic("su:100000 nic:0 gpu:" + list + ",2");
  ASSERT_TRUE(canonical.has_value());
  EXPECT_THAT(*canonical, HasSubstr(list + ",2 nic:0"));
  EXPECT_THAT(*CanonicalSynthetic("su:100000 nic:0 gpu:" + list + ",1"), HasSubstr(" gpu:1 nic:0"));
  EXPECT_THAT(*CanonicalSynthetic("nic:0 gpu:1 node:" + list + ",2"), HasSubstr("su:100000 node:1,1,1"));
}

TEST(Synthetic, WritesWhatWasLeftOut) {
  EXPECT_EQ(*CanonicalSynthetic("node:16,11,7"),
            "su:3 node:16,11,7 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  EXPECT_EQ(*CanonicalSynthetic("pod:2 su:4,3 oversub:spine=1.5"),
            "pod:2 su:4,3 node:1 gpu:8 nic:8 rail:8 spine:2 core:2 rate:400 oversub:spine=1.5 transport:ib "
            "machine:h100");
  EXPECT_EQ(*CanonicalSynthetic("dragonfly:groups=9"),
            "dragonfly:9 tor:1 node:1 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
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
  EXPECT_THAT(
      Refusal("su:2 nodes:4"),
      StartsWith("synthetic cluster: nodes: unknown word; did you mean node? The words are badgpu, core"));
  EXPECT_THAT(Refusal("su:2 colour:4"),
              StartsWith("synthetic cluster: colour: unknown word; the words are badgpu"));
  EXPECT_THAT(Refusal("su:2 node:4 su:3"),
              StartsWith("synthetic cluster: su: said twice; the words are badgpu"));
  EXPECT_THAT(Refusal("su:2 node:4 nvl nvl"), HasSubstr("nvl: said twice"));
}

TEST(Synthetic, RefusesWhatDoesNotMakeACluster) {
  const auto refused = [](std::string_view line, std::string_view sentence) {
    EXPECT_EQ(Refusal(line), "synthetic cluster: " + std::string(sentence)) << line;
  };
  refused("", "what shape? Say su and node, rack and tray, tor and node, dragonfly, or torus");
  refused("rate:400", "what shape? Say su and node, rack and tray, tor and node, dragonfly, or torus");
  refused("rack:2 node:4", "node: does not go with rack");
  refused("tor:2 node:4 su:1", "su: does not go with tor");
  refused("torus:2x2x2 node:1", "node: does not go with torus");
  refused("su:2 node", "node: needs a value, as in node:2");
  refused("su:2 node:4 nvl:1", "nvl:1: takes no value");
  refused("su:0 node:4", "su:0: must be a whole number from 1 to 131072");
  refused("su:-1 node:4", "su:-1: must be a whole number from 1 to 131072");
  refused("su:2 node:4x", "node:4x: must be a whole number from 1 to 131072");
  refused("su:2 node:99999999999999", "node:99999999999999: must be a whole number from 1 to 131072");
  refused("su:4096 node:16384", "node:16384: makes more than 131072 nodes");
  refused("su:2 node:4 nic:4 rail:8", "rail:8: more than nic:4");
  refused("su:2 node:4 gpu:8 nic:12", "nic:12: more than gpu:8 and no multiple of it");
  refused("su:2 node:4 transport:rdma", "transport:rdma: must be one of ib, roce, efa, ethernet");
  refused("su:2 node:4 machine:v100",
          "machine:v100: must be one of a100, b200, b300, gb200, h100, h200, l40s, mi300x");
  refused("rack:1 tray:2 machine:l40s nvl", "nvl: machine:l40s has no NVLink");
  refused("su:2 node:4 oversub:50", "oversub:50: must be a whole number from 100 to 100000");
  refused("su:2 node:4 railonly spine:2", "spine:2: does not go with railonly");
  refused("torus:4x4", "torus:4x4: want three sides from 1 to 1024, as torus:4x4x4");
  refused("torus:4x4x4x4", "torus:4x4x4x4: want three sides from 1 to 1024, as torus:4x4x4");
  refused("torus:1024x1024x1024", "torus:1024x1024x1024: makes more than 131072 nodes");
  refused("torus:4x0x4", "torus:4x0x4: want three sides from 1 to 1024, as torus:4x4x4");
}

TEST(Synthetic, RefusesListsThatDisagree) {
  const auto refused = [](std::string_view line, std::string_view sentence) {
    EXPECT_EQ(Refusal(line), "synthetic cluster: " + std::string(sentence)) << line;
  };
  refused("su:4 node:16,11,7", "node:16,11,7: has 3 numbers, and su:4 makes 4");
  refused("pod:2 su:2 node:1,2,3", "node:1,2,3: has 3 numbers, and su:2 makes 4");
  refused("su:4,3", "su:4,3: has 2 numbers, and pod:1 makes 1");
  refused("node:16,,7", "node:16,,7: must be whole numbers from 1 to 131072");
  refused("node:16,0", "node:16,0: must be whole numbers from 1 to 131072");
  refused("node:1,2,3,4,5,6,7,8,9,10 su:9", "node:1,2,3,4,5,6,7,8,…: has 10 numbers, and su:9 makes 9");
  refused("site:2,1", "site:2,1: must be one number");
  refused("su:2 machine:h100,a100,b200",
          "machine:h100,a100,b200: names 3 kinds of nodes, and there are 2 units");
  refused("su:2 gpu:8,4 nic:8 rail:8,9", "rail:9: more than nic:8");
  refused("su:2 gpu:8,5 nic:8", "nic:8: more than gpu:5 and no multiple of it");
  refused("machine:h100,v100 su:2",
          "machine:v100: must be one of a100, b200, b300, gb200, h100, h200, l40s, mi300x");
}

TEST(Synthetic, RefusesSwitchesThatCannotBe) {
  const auto refused = [](std::string_view line, std::string_view sentence) {
    EXPECT_EQ(Refusal(line), "synthetic cluster: " + std::string(sentence)) << line;
  };
  refused("su:2 core:1 spine:0", "core:1: needs spines below it, not spine:0");
  refused("torus:2x2x2 core:1", "core: does not go with torus");
  refused("dragonfly:2 pod:2", "pod: does not go with dragonfly");
  refused("su:2 oversub:spine=2", "oversub:spine=2: nothing is above the spines; say core");
  refused("core:1 oversub:superspine=2", "oversub:superspine=2: needs superspine and core");
  for (const char* said : {"su=0.5", "su=nan", "su=-2", "su=1.", "su=1.234", "su=1001", "gpu=2", "su=2,"}) {
    EXPECT_EQ(Refusal("core:1 oversub:" + std::string(said)),
              "synthetic cluster: oversub:" + std::string(said) +
                  ": want su, spine or superspine with a ratio from 1 to 1000, as oversub:su=2,spine=1.5");
  }
  refused("core:1 oversub:su=2,leaf=3", "oversub:su=2,leaf=3: leaf said twice");
  refused("su:2 nvlink:rack", "nvlink:rack: must be node, none, or the nodes of a domain, 1 to 131072");
  refused("su:2 nvlink:0", "nvlink:0: must be node, none, or the nodes of a domain, 1 to 131072");
  refused("su:2 nvl nvlink:node", "nvl: does not go with nvlink");
  refused("torus:2x2x2 nvlink:4", "nvlink:4: does not go with torus");
  refused("su:2 machine:h100,l40s nvlink:2", "nvlink:2: machine:l40s has no NVLink");
  refused("dragonfly:groups=0", "dragonfly:0: must be a whole number from 1 to 131072");
}

// Each of these would take gigabytes if it were made before it is refused.
TEST(Synthetic, RefusesWhatIsTooLargeByItsWord) {
  const auto refused = [](std::string_view line, std::string_view sentence) {
    EXPECT_EQ(Refusal(line), "synthetic cluster: " + std::string(sentence)) << line;
  };
  refused("su:131072 node:2", "node:2: makes more than 131072 nodes");
  refused("site:64 su:131072", "su:131072: makes more than 131072 nodes");
  refused("node:131072 gpu:9 nic:1", "gpu:9: makes more than 1048576 GPUs");
  refused("node:131072 gpu:1 nic:16", "nic:16: makes more than 1048576 NICs");
  refused("node:131072 gpu:8 plane:3", "plane:3: makes more than 2097152 ports");
  refused("su:131072 spine:4096", "spine:4096: makes more than 4194304 cables between switches");
  refused("pod:4096 gpu:1 spine:16 core:4096", "core:4096: makes more than 4194304 cables between switches");
  refused("zone:8 pod:512 gpu:1 spine:16 superspine:4096",
          "superspine:4096: makes more than 4194304 cables between switches");
  EXPECT_THAT(Refusal("node:" + std::string(100'000, '1')), testing::SizeIs(testing::Lt(200u)));
  EXPECT_THAT(Refusal(std::string(100'000, 'x') + ":1"), testing::SizeIs(testing::Lt(400u)));
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
  refused("down:node-003/rail-1", "down:node-003: there is no such node; they are node-00 to node-07");
  refused("down:node--1/rail-1", "down:node--1: there is no such node; they are node-00 to node-07");
  refused("down:node-99999999999/rail-1",
          "down:node-99999999999: there is no such node; they are node-00 to node-07");
  refused("down:node-1/rail-1 down:node-01/rail-1", "down:node-01/1: said twice");
}

}  // namespace
}  // namespace heddle::topology
