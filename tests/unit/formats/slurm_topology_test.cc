#include "formats/slurm_topology.h"

#include <gmock/gmock.h>

namespace heddle::formats {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SlurmTopology Conf(std::string_view text) {
  auto topology = ParseSlurmConf(text);
  EXPECT_TRUE(topology) << topology.error().message;
  return topology.value_or(SlurmTopology());
}

std::string ConfRefusal(std::string_view text) {
  const auto topology = ParseSlurmConf(text);
  EXPECT_FALSE(topology);
  return topology ? "" : topology.error().message;
}

std::string YamlRefusal(const std::string& text) {
  const auto topology = ParseSlurmYaml(text);
  EXPECT_FALSE(topology);
  return topology ? "" : topology.error().message;
}

TEST(Slurm, ReadsNestedSwitchRanges) {
  const SlurmTopology topology = Conf(
      "# two leaves\n"
      "SwitchName=leaf1 Nodes=node[001-003] LinkSpeed=400  # the first\n"
      "switchname = leaf2   NODES=node[004,006]\r\n"
      "\n"
      "SwitchName=spine Switches=leaf[1-2]\n");
  ASSERT_EQ(topology.switches.size(), 3u);
  EXPECT_EQ(topology.switches[0], (SlurmSwitch{"leaf1", {}, {"node001", "node002", "node003"}, 400, 2}));
  EXPECT_EQ(topology.switches[1], (SlurmSwitch{"leaf2", {}, {"node004", "node006"}, 0, 3}));
  EXPECT_THAT(topology.switches[2].switches, ElementsAre("leaf1", "leaf2"));
  EXPECT_THAT(topology.notes, IsEmpty());
}

TEST(Slurm, JoinsContinuedLinesAndKnowsTheFirst) {
  const SlurmTopology topology = Conf("\nSwitchName=s \\\n  Nodes=a,b \\\n\nSwitchName=t Nodes=\"c\"");
  ASSERT_EQ(topology.switches.size(), 2u);
  EXPECT_THAT(topology.switches[0].nodes, ElementsAre("a", "b"));
  EXPECT_EQ(topology.switches[0].line, 2);
  EXPECT_THAT(topology.switches[1].nodes, ElementsAre("c"));
}

TEST(Slurm, ReadsBlocksAndTheirSizes) {
  const SlurmTopology topology =
      Conf("BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18,36\n");
  ASSERT_EQ(topology.blocks.size(), 2u);
  EXPECT_EQ(topology.blocks[1].nodes.size(), 18u);
  EXPECT_THAT(topology.block_sizes, ElementsAre(18, 36));
}

TEST(Slurm, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(ConfRefusal("SwitchName=s Nodes=n[0-999999999]\n"),
              HasSubstr("line 1: nodes: `n[0-999999999]`"));
  EXPECT_THAT(ConfRefusal("SwitchName=s Nodes=a\n\nSwitchName=s Nodes=b\n"),
              HasSubstr("line 3: switch s stands in line 1 already"));
  EXPECT_THAT(ConfRefusal("SwitchName=s Switches=t\n"),
              HasSubstr("line 1: switch t is below s and has no line"));
  EXPECT_THAT(ConfRefusal("SwitchName=s\n"), HasSubstr("neither hosts nor switches"));
  EXPECT_THAT(ConfRefusal("SwitchName=s Nodes=a Switches=s\n"), HasSubstr("both hosts and switches"));
  EXPECT_THAT(ConfRefusal("SwitchName=s Nodes=a LinkSpeed=fast\n"),
              HasSubstr("linkspeed: `fast` is no number"));
  EXPECT_THAT(ConfRefusal("ClusterName=x\n"), HasSubstr("line 1: clustername is no word of topology.conf"));
  EXPECT_THAT(ConfRefusal("SwitchName=s Nodes=a Colour=red\n"), HasSubstr("colour does not belong here"));
  EXPECT_THAT(ConfRefusal("Include other.conf\n"), HasSubstr("line 1: Include is not followed"));
  EXPECT_THAT(ConfRefusal("SwitchName=s Nodes\n"), HasSubstr("`Nodes` is no Key=value"));
  EXPECT_THAT(ConfRefusal("BlockSizes=0\n"), HasSubstr("blocksizes: `0`"));
  EXPECT_THAT(ConfRefusal(""), HasSubstr("names no switch and no block"));
}

TEST(Slurm, RefusesSwitchesInACircle) {
  EXPECT_THAT(ConfRefusal("SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=l Nodes=n\n"),
              HasSubstr("line 1: switch a is above itself"));
}

TEST(Slurm, NotesAHostOnTwoLeavesAndKeepsTheFirst) {
  const SlurmTopology topology = Conf("SwitchName=a Nodes=n[1-2],n1\nSwitchName=b Nodes=n[2-3]\n");
  EXPECT_THAT(topology.switches[0].nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(topology.switches[1].nodes, ElementsAre("n3"));
  EXPECT_THAT(topology.notes, Contains(HasSubstr("line 1: host n1 stands twice in a")));
  EXPECT_THAT(topology.notes,
              Contains(HasSubstr("line 2: host n2 is in switch a and in b: the first counts")));
}

TEST(Slurm, ReadsTheTreeOfTopologyYaml) {
  const auto topology = ParseSlurmYaml(
      "---\n"
      "- topology: flat\n"
      "  flat: true\n"
      "- topology: main\n"
      "  cluster_default: true\n"
      "  tree:\n"
      "    switches:\n"
      "      - switch: root\n"
      "        children: s[1-2]\n"
      "      - switch: s1\n"
      "        nodes: n[1-2]\n"
      "      - switch: s2\n"
      "        nodes: [n3, 'n[4-5]']\n");
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->switches.size(), 3u);
  EXPECT_THAT(topology->switches[0].switches, ElementsAre("s1", "s2"));
  EXPECT_THAT(topology->switches[2].nodes, ElementsAre("n3", "n4", "n5"));
  EXPECT_EQ(topology->switches[2].line, 12);
  EXPECT_THAT(topology->notes, Contains(HasSubstr("line 2: topology flat is left out: main is")));
}

// Writers of YAML 1.1 have several words for it.
TEST(Slurm, TakesTheClustersDefaultHoweverYamlSaysTrue) {
  const auto notes_of = [](const std::string& word) {
    const auto topology = ParseSlurmYaml(
        "- topology: first\n  tree:\n    switches:\n      - {switch: a, nodes: n1}\n"
        "- topology: second\n  cluster_default: " +
        word + "\n  tree:\n    switches:\n      - {switch: b, nodes: n1}\n");
    EXPECT_TRUE(topology) << word << ": " << topology.error().message;
    return topology ? topology->notes : std::vector<std::string>();
  };
  for (const char* word : {"true", "True", "TRUE", "yes", "on"})
    EXPECT_THAT(notes_of(word), Contains(HasSubstr("topology first is left out: second is"))) << word;
  for (const char* word : {"false", "False", "no", "~", "[true]", "maybe"})
    EXPECT_THAT(notes_of(word), Contains(HasSubstr("topology second is left out: first is"))) << word;
}

TEST(Slurm, ReadsTheBlocksOfTopologyYaml) {
  const auto topology = ParseSlurmYaml(
      "- topology: b\n  block:\n    block_sizes: [2, 4]\n    blocks:\n"
      "      - {block: b1, nodes: 'n[1-2]'}\n      - {block: b2, nodes: 'n[3-4]'}\n");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->blocks.size(), 2u);
  EXPECT_THAT(topology->block_sizes, ElementsAre(2, 4));
}

TEST(Slurm, NamesTheLineOfWhatIsWrongInYaml) {
  EXPECT_THAT(YamlRefusal("switches: {}"), HasSubstr("no list of topologies"));
  EXPECT_THAT(YamlRefusal("- topology: r\n  ring: {}\n"),
              HasSubstr("line 1: topology r has neither `tree` nor"));
  EXPECT_THAT(YamlRefusal("- tree:\n    switches:\n      - {switch: s, nodes: 'n[0-999999999]'}\n"),
              HasSubstr("line 3: nodes: `n[0-999999999]`"));
  EXPECT_THAT(YamlRefusal("- tree:\n    switches:\n      - nodes: a\n"),
              HasSubstr("line 3: `switch` is missing"));
  EXPECT_THAT(YamlRefusal("- [\n"), HasSubstr("line "));
  EXPECT_THAT(YamlRefusal(std::string(100'000, '[')), HasSubstr("line "));
}

}  // namespace
}  // namespace heddle::formats
