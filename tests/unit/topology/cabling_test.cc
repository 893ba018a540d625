#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/builders.h"
#include "topology/declared_leaves.h"
#include "topology/synthetic.h"

namespace heddle::topology {
namespace {

using test::NodeNamed;
using test::Sentences;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Fabric Declared(const std::string& line, Declaration declaration) {
  auto made = *ParseSynthetic(line);
  declaration.switches.insert(declaration.switches.end(), made.declaration.switches.begin(),
                              made.declaration.switches.end());
  return BuildFabric(made.nodes, declaration);
}

Declaration NamedBy(std::string pattern) {
  Declaration declaration;
  declaration.leaf_names = {std::move(pattern)};
  return declaration;
}

TEST(DeclaredLeaves, ReadTheRailOutOfAName) {
  const Declaration su = NamedBy("su{unit}-r{rail}");
  EXPECT_EQ(DeclaredRole(su, "su1-r3"), (LeafRole{3, kNone, "1"}));
  EXPECT_EQ(DeclaredRole(su, "su1-rack-r12"), (LeafRole{12, kNone, "1-rack"})) << "{unit} may have -r in it";
  for (const char* other : {"su1-r", "su1-r3b", "xsu1-r3", "su-r3", "", "su1-r99999999999", "su1-r256"}) {
    EXPECT_EQ(DeclaredRole(su, other), LeafRole{}) << other;
  }
  EXPECT_EQ(DeclaredRole(NamedBy("leaf-{rail}"), "leaf-07"), (LeafRole{7, kNone, ""}));
  EXPECT_EQ(DeclaredRole(NamedBy("p{plane}.r{rail}.{unit}"), "p1.r0.rack 7"), (LeafRole{0, 1, "rack 7"}));
}

TEST(DeclaredLeaves, CountRailsFromWherePeopleDo) {
  Declaration declaration = NamedBy("leaf{rail}");
  declaration.first_rail = 1;
  EXPECT_EQ(DeclaredRole(declaration, "leaf1").rail, 0);
  EXPECT_EQ(DeclaredRole(declaration, "leaf0").rail, kNone);
}

TEST(DeclaredLeaves, TakeASwitchsOwnWordBeforeItsName) {
  Declaration declaration = NamedBy("su{unit}-r{rail}");
  declaration.switches = {{"su1-r3", {}, 0, 4}, {"odd", {}, 0, 2}, {"spine", {}, 0}};
  EXPECT_EQ(DeclaredRole(declaration, "su1-r3"), (LeafRole{4, kNone, "1"}));
  EXPECT_EQ(DeclaredRole(declaration, "odd").rail, 2);
  EXPECT_EQ(DeclaredRole(declaration, "spine").rail, kNone);
}

TEST(DeclaredLeaves, SayWhatIsWrongWithAPattern) {
  for (const char* good : {"{rail}", "su{unit}-r{rail}", "p{plane}r{rail}u{unit}", "a}b{rail}"}) {
    EXPECT_EQ(WhyNotLeafPattern(good), "") << good;
  }
  EXPECT_THAT(WhyNotLeafPattern("leaf"), HasSubstr("has {rail} once"));
  EXPECT_THAT(WhyNotLeafPattern("{rail}{rail}"), HasSubstr("has {rail} once"));
  EXPECT_THAT(WhyNotLeafPattern("{rails}"), HasSubstr("all the words in braces"));
  EXPECT_THAT(WhyNotLeafPattern("{rail}{unit}{unit}"), HasSubstr("once at most"));
}

// Legal designs, each as its leaves' names would have it declared: none is an alarm.
TEST(DeclaredRails, RaiseNoAlarmOnDesignsThatAreMeantSo) {
  const std::pair<const char*, const char*> designs[] = {
      {"su:2 node:4 gpu:8 nic:8 rail:8 spine:2", "su{unit}-r{rail}"},
      {"su:2 node:4 gpu:8 nic:8 rail:8 spine:0", "su{unit}-r{rail}"},           // rail-only
      {"tor:4 node:8 gpu:8 nic:2 transport:roce", "rack{unit}-rail{rail}"},     // every rail on one leaf
      {"tor:2 node:4 gpu:8 nic:2 transport:roce dualtor", "tor-{rail}{unit}"},  // numbers that are no rails
      {"rack:2 tray:4 gpu:4 nic:4 rail:4 machine:gb200 nvl", "su{unit}-r{rail}"},
      {"su:1 node:1 gpu:8 nic:8 rail:8", "su{unit}-r{rail}"},
  };
  for (const auto& [line, pattern] : designs) {
    EXPECT_THAT(Sentences(Declared(line, {})), IsEmpty()) << line;
    if (std::string_view(line).find("dualtor") != std::string_view::npos) continue;
    EXPECT_THAT(Sentences(Declared(line, NamedBy(pattern))), IsEmpty()) << line;
  }
}

TEST(DeclaredRails, RaiseNoAlarmOnSeveralPlanesOfARail) {
  std::vector<Node> nodes;
  for (int host = 0; host < 4; ++host) {
    Node node = NodeNamed("n" + std::to_string(host)).Gpus(4).Rails(4, "p0-r");
    for (Nic& nic : node.nics) {
      NicPort second = nic.ports[0];
      second.number = 2;
      second.plane = 1;
      second.leaf_port = LeafPort{"p1-r" + std::to_string(*nic.rail), ""};
      nic.ports.push_back(second);
    }
    nodes.push_back(node);
  }
  EXPECT_THAT(Sentences(BuildFabric(nodes, NamedBy("p{plane}-r{rail}"))), IsEmpty());
}

TEST(DeclaredRails, TellWhichOfTwoHostsIsWrong) {
  const std::string line = "su:1 node:2 swap:node-0/rail-3/rail-4";
  const Fabric undeclared = Declared(line, {});
  EXPECT_THAT(undeclared.faults, AllOf(SizeIs(2), Each(Field(&CablingFault::ambiguous, true))));
  EXPECT_THAT(undeclared.faults[0].sentence, HasSubstr("no majority tells which is right; declare it"));
  const Fabric declared = Declared(line, NamedBy("su{unit}-r{rail}"));
  EXPECT_THAT(
      Sentences(declared),
      ElementsAre("node-00 mlx5_3 is cabled to su0-r4 port 1; its unit's rail 3 is su0-r3, as declared: "
                  "swapped with node-00 mlx5_4 on su0-r3 port 1",
                  "node-00 mlx5_4 is cabled to su0-r3 port 1; its unit's rail 4 is su0-r4, as declared: "
                  "swapped with node-00 mlx5_3 on su0-r4 port 1"));
  EXPECT_THAT(declared.faults, Each(Field(&CablingFault::ambiguous, false)));
}

TEST(DeclaredRails, FindASwapOnAHostThatIsAloneInItsUnit) {
  const Fabric fabric = Declared("su:1 node:1 swap:node-0/rail-3/rail-4", NamedBy("su{unit}-r{rail}"));
  EXPECT_THAT(Sentences(fabric),
              ElementsAre("node-00 mlx5_3 is cabled to su0-r4 port 1, which is declared for rail 4: "
                          "swapped with node-00 mlx5_4 on su0-r3 port 1",
                          "node-00 mlx5_4 is cabled to su0-r3 port 1, which is declared for rail 3: "
                          "swapped with node-00 mlx5_3 on su0-r4 port 1"));
  EXPECT_EQ(fabric.faults[0].expected_leaf, "su0-r3");
}

TEST(DeclaredRails, CallTwoSwitchesWithEachOthersNameOneFaultEach) {
  auto made = *ParseSynthetic("su:1 node:16");
  for (Node& node : made.nodes) {
    for (Nic& nic : node.nics) {
      LeafPort leaf = *nic.ports[0].leaf_port;
      leaf.leaf = leaf.leaf == "su0-r3" ? "su0-r4" : leaf.leaf == "su0-r4" ? "su0-r3" : leaf.leaf;
      nic.ports[0].leaf_port = leaf;
    }
  }
  EXPECT_THAT(BuildFabric(made.nodes, made.declaration).faults, IsEmpty()) << "hosts alone cannot know";
  made.declaration.leaf_names = {"su{unit}-r{rail}"};
  EXPECT_THAT(
      Sentences(BuildFabric(made.nodes, made.declaration)),
      ElementsAre(
          "16 of 16 hosts of a unit have rail 3 on su0-r4, which is declared for rail 4, and rail 4 on "
          "su0-r3 "
          "(the first is node-00 mlx5_3 on su0-r4 port 1): correct the declaration, the switch's name, or "
          "the cables",
          HasSubstr("have rail 4 on su0-r3, which is declared for rail 3, and rail 3 on su0-r4")));
}

TEST(DeclaredRails, SayNothingOfNamesThatFitNoPattern) {
  EXPECT_THAT(Sentences(Declared("su:2 node:4", NamedBy("leaf-{rail}"))), IsEmpty());
}

TEST(DeclaredRails, OutvoteAMajorityThatIsCabledWrong) {
  auto made = *ParseSynthetic("su:1 node:3");
  for (std::size_t host : {0u, 1u}) std::swap(made.nodes[host].nics[3].ports, made.nodes[host].nics[4].ports);
  made.declaration.leaf_names = {"su{unit}-r{rail}"};
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  ASSERT_THAT(fabric.faults, SizeIs(4));
  for (const CablingFault& fault : fabric.faults) {
    EXPECT_NE(fault.node, "node-02") << fault.sentence;
    EXPECT_THAT(fault.sentence, HasSubstr("as declared: swapped with"));
  }
}

TEST(DeclaredRails, NameNoLeafWhereSeveralAreDeclaredAlike) {
  auto made = *ParseSynthetic("su:2 node:1 swap:node-0/rail-3/rail-4");
  made.declaration.switches = {{"su0-r3", {}, 0, 3}, {"su0-r4", {}, 0, 4}, {"su1-r3", {}, 0, 3}};
  const Fabric fabric = BuildFabric(made.nodes, made.declaration);
  std::vector<std::string> wrong;
  for (const CablingFault& fault : fabric.faults) {
    if (fault.sentence.find("which is declared for rail") == std::string::npos) continue;
    EXPECT_EQ(fault.node, "node-00") << fault.sentence;
    wrong.push_back(fault.nic + " belongs on " + (fault.expected_leaf.empty() ? "?" : fault.expected_leaf));
  }
  EXPECT_THAT(wrong, ElementsAre("mlx5_3 belongs on ?", "mlx5_4 belongs on su0-r4"));
}

// Every host a unit of its own, and a pattern that fits none of them: as many faults as cables.
TEST(DeclaredRails, TakeNoLongerForADeclarationThatIsWrongEverywhere) {
  std::vector<Node> nodes;
  for (int i = 0; i < 4000; ++i) {
    nodes.push_back(NodeNamed("n" + std::to_string(i)).Gpus(4).Rails(4, "own" + std::to_string(i) + "-"));
  }
  Declaration declaration = NamedBy("own{unit}-{rail}");
  EXPECT_THAT(BuildFabric(nodes, declaration).faults, IsEmpty());
  declaration.first_rail = 1;  // leaves count from 0 here: of each host three are on the wrong one
  EXPECT_THAT(BuildFabric(nodes, declaration).faults, SizeIs(4000 * 3));
}

TEST(Cabling, NamesThePatchThatWentIntoTheUnitBesideAndWhatIsDeclaredThere) {
  auto made = *ParseSynthetic("su:2 node:4");
  made.nodes[2].nics[5].ports[0].leaf_port = LeafPort{"su1-r6", "40"};
  made.declaration.leaf_names = {"su{unit}-r{rail}"};
  EXPECT_THAT(
      Sentences(BuildFabric(made.nodes, made.declaration)),
      ElementsAre("node-02 mlx5_5 is cabled to su1-r6 port 40; its unit's rail 5 is su0-r5, as declared"));
}

// Two NICs of a rail on leaves of their own: the one that is left is not looked for where the other was.
TEST(Cabling, KeepsThePlaceOfANicBesideOneThatIsGone) {
  std::vector<Node> nodes;
  for (const char* const name : {"n0", "n1", "n2"})
    nodes.push_back(NodeNamed(name).Gpus(1).Rail(0, "a").Rail(0, "b").Rail(0, "c"));
  nodes.push_back(NodeNamed("n3").Gpus(1).Rail(0, "b").Rail(0, "c"));
  EXPECT_THAT(BuildFabric(nodes, {}).faults, SizeIs(2)) << "it has lost nothing that anybody knows of";
  nodes.back().gpus[0].nic_gone = LostNic{0, ""};
  EXPECT_THAT(Sentences(BuildFabric(nodes, {})), IsEmpty());
  nodes.back().nics[0].ports[0].leaf_port = LeafPort{"c", ""};
  nodes.back().nics[1].ports[0].leaf_port = LeafPort{"b", ""};
  EXPECT_THAT(BuildFabric(nodes, {}).faults, testing::Not(IsEmpty())) << "swapped";
}

}  // namespace
}  // namespace heddle::topology
