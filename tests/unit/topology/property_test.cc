#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"
#include "tests/support/seeds.h"
#include "topology/fabric.h"
#include "topology/synthetic.h"

// Properties over random clusters. A failure prints its seed; HEDDLE_SEED=<seed> runs only that one.

namespace heddle::topology {
namespace {

using base::Random;
using ::testing::IsEmpty;

int Between(Random& random, int lowest, int highest) {
  return lowest + int(random.Below(std::uint64_t(highest - lowest + 1)));
}

// Any layout, small.
std::string AnyLine(Random& random) {
  const auto n = [&](int lowest, int highest) { return Between(random, lowest, highest); };
  std::string line;
  switch (random.Below(6)) {
    case 0:
      line = fmt::format("su:{} node:{} gpu:8 spine:{}", n(1, 4), n(1, 5), n(0, 3));
      break;
    case 1:
      line = fmt::format("su:{} node:{} gpu:8 plane:{} rail:{}", n(1, 3), n(1, 5), n(1, 3), n(1, 8));
      break;
    case 2:
      line = fmt::format("rack:{} tray:{} gpu:4 machine:gb200 nvl", n(1, 3), n(1, 6));
      break;
    case 3:
      line = fmt::format("tor:{} node:{} gpu:{} nic:2 transport:roce{}", n(1, 4), n(1, 4), n(2, 8),
                         n(0, 1) ? " dualtor" : "");
      break;
    case 4:
      line = fmt::format("torus:{}x{}x{} gpu:4", n(1, 4), n(1, 4), n(1, 4));
      break;
    default:
      line = fmt::format("dragonfly:{} tor:{} node:{} gpu:4 nic:1", n(1, 3), n(1, 3), n(1, 3));
      break;
  }
  if (n(0, 3) == 0) line = fmt::format("site:{} {}", n(1, 3), line);
  return line;
}

// Strings, numbers and facts that no agent would send; it must still be a fabric.
Node Garbage(Random& random) {
  const auto n = [&](int lowest, int highest) { return Between(random, lowest, highest); };
  const auto number = [&] { return n(0, 9) == 0 ? (n(0, 1) ? INT32_MAX : INT32_MIN) : n(-2, 9); };
  const auto fact = [&]() -> Fact<int> {
    return n(0, 3) ? Fact<int>(number()) : Fact<int>(static_cast<Missing>(n(0, 3)));
  };
  Node node;
  node.name = fmt::format("n{}", n(0, 12));
  node.site = n(0, 4) ? "" : "s";
  for (int g = n(0, 5); g > 0; --g) {
    node.gpus.push_back(
        {number(), fmt::format("u{}", n(0, 9)), "m", "p", fact(), n(0, 3) != 0, "", number()});
  }
  node.nvlink = {number(), number(), number(), {{number(), number()}}};
  if (n(0, 2)) {
    node.nvlink_domain = NvlinkMembership{n(0, 5) ? fmt::format("d{}", n(0, 4)) : "", n(0, 1) == 0};
  }
  for (int i = n(0, 6); i > 0; --i) {
    Nic nic;
    nic.name = fmt::format("x{}", n(0, 6));
    nic.transport = static_cast<Transport>(n(0, 3));
    nic.role = static_cast<NicRole>(n(0, 5) ? 0 : n(1, 2));
    nic.rail = fact();
    for (int p = n(0, 3); p > 0; --p) {
      Fact<LeafPort> leaf;
      if (n(0, 5)) {
        leaf = LeafPort{n(0, 9) ? fmt::format("l{}", n(0, 6)) : "", n(0, 1) ? "" : fmt::format("{}", n(1, 4)),
                        n(0, 3) ? "" : fmt::format("c{}", n(1, 2))};
      }
      nic.ports.push_back({number(), number(), static_cast<LinkState>(n(0, 2)), number(), number(), leaf});
    }
    node.nics.push_back(std::move(nic));
  }
  for (int i = n(0, 8); i > 0; --i) {
    node.paths.push_back({number(), fmt::format("x{}", n(0, 7)), static_cast<PciDistance>(n(0, 4))});
  }
  return node;
}

Declaration GarbageDeclaration(Random& random) {
  const auto n = [&](int lowest, int highest) { return Between(random, lowest, highest); };
  Declaration declaration;
  if (n(0, 2) == 0) declaration.shape = static_cast<Shape>(n(0, 5));
  declaration.rails = n(0, 3) ? 0 : n(-5, 400);
  declaration.oversubscription_percent = n(-10, 300);
  for (int i = n(0, 10); i > 0; --i) {
    SwitchDeclaration declared{fmt::format("l{}", n(0, 9)), {}, n(-5, 500)};
    for (int u = n(0, 3); u > 0; --u) declared.uplinks.push_back(fmt::format("l{}", n(0, 14)));  // loops too
    declaration.switches.push_back(std::move(declared));
  }
  for (int i = n(0, 2); i > 0; --i) {
    declaration.groups.push_back({"g", {fmt::format("l{}", n(0, 9)), fmt::format("l{}", n(0, 9))}});
  }
  for (int i = n(0, 3); i > 0; --i) {
    declaration.torus.push_back({fmt::format("n{}", n(0, 12)), n(-1, 3), n(0, 3), n(0, 3)});
  }
  declaration.torus_size = {n(-1, 4), n(0, 4), n(0, 4)};
  return declaration;
}

void Shuffle(std::vector<Node>& nodes, Random& random) {
  for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.Below(i)]);
}

TEST(Property, EverySyntheticClusterIsSound) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    Random random(seed);
    const std::string line = AnyLine(random);
    SCOPED_TRACE(fmt::format("{} \"{}\"", test::Replay(seed), line));
    const auto made = ParseSynthetic(line);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(*ParseSynthetic(*CanonicalSynthetic(line)), *made);
    for (const Node& node : made->nodes) ASSERT_THAT(Check(node), IsEmpty());
    std::map<std::string, Declaration> by_site;
    for (const char* const site : {"", "site-0", "site-1", "site-2"}) by_site[site] = made->declaration;
    for (const Fabric& fabric : BuildFabrics(made->nodes, by_site)) {
      ASSERT_THAT(Check(fabric), IsEmpty());
      ASSERT_TRUE(fabric.faults.empty()) << fabric.faults.front().sentence;
    }
    for (const Fabric& fabric : BuildFabrics(made->nodes, {})) ASSERT_THAT(Check(fabric), IsEmpty());
  }
}

TEST(Property, TheOrderOfNodesDoesNotMatter) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    Random random(seed);
    std::vector<Node> nodes;
    Declaration declaration;
    if (seed % 2 == 0) {
      auto made = *ParseSynthetic(AnyLine(random));
      nodes = std::move(made.nodes);
      declaration = std::move(made.declaration);
    } else {
      for (int i = 0; i < 12; ++i) nodes.push_back(Garbage(random));
      declaration = GarbageDeclaration(random);
    }
    const Fabric fabric = BuildFabric(nodes, declaration);
    Shuffle(nodes, random);
    ASSERT_TRUE(BuildFabric(nodes, declaration) == fabric) << test::Replay(seed);
  }
}

TEST(Property, GarbageStillMakesASoundFabric) {
  for (const std::uint64_t seed : test::Seeds(2000)) {
    Random random(seed);
    SCOPED_TRACE(test::Replay(seed));
    std::vector<Node> nodes;
    for (int i = Between(random, 0, 14); i > 0; --i) nodes.push_back(Garbage(random));
    const Fabric fabric = BuildFabric(nodes, GarbageDeclaration(random));
    ASSERT_THAT(Check(fabric), IsEmpty());
    for (LeafId a = -1; a <= LeafId(fabric.leaves.size()); ++a) {
      for (LeafId b = -1; b <= LeafId(fabric.leaves.size()); ++b) {
        ASSERT_EQ(fabric.Hops(a, b), fabric.Hops(b, a));
      }
    }
    for (NodeId a = 0; a < NodeId(fabric.nodes.size()); ++a) ASSERT_GE(fabric.TorusHops(0, a), kNone);
    if (nodes.size() < 2) continue;
    ASSERT_EQ(Diff(nodes[0], nodes[1]).empty(), nodes[0] == nodes[1]);
    ASSERT_EQ(ContentHash(nodes[0]) == ContentHash(nodes[1]), nodes[0] == nodes[1]);
    const Fabric other = BuildFabric({nodes[0], nodes[1]}, {});
    ASSERT_EQ(Diff(fabric, other).empty(), fabric == other);
  }
}

TEST(Property, ARandomSwapIsFoundAndNamed) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    Random random(seed);
    const int units = Between(random, 2, 4), each = Between(random, 3, 6), rails = Between(random, 4, 8);
    const int a = int(random.Below(std::uint64_t(units * each))),
              rail_a = int(random.Below(std::uint64_t(rails)));
    int b = a, rail_b = (rail_a + Between(random, 1, rails - 1)) % rails;
    if (random.Below(2) == 0) {  // of two nodes of different units
      b = (a + each * Between(random, 1, units - 1)) % (units * each);
      rail_b = int(random.Below(std::uint64_t(rails)));
    }
    const std::string line =
        fmt::format("su:{} node:{} gpu:8 nic:{} swap:node-{:02}/rail-{}/node-{:02}/rail-{}", units, each,
                    rails, a, rail_a, b, rail_b);
    SCOPED_TRACE(fmt::format("{} \"{}\"", test::Replay(seed), line));
    const auto made = ParseSynthetic(line);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const Fabric fabric = BuildFabric(made->nodes, made->declaration);
    ASSERT_EQ(int(fabric.units.size()), units);
    ASSERT_EQ(fabric.faults.size(), 2u);
    const std::string end_a = fmt::format("node-{:02} mlx5_{}", a, rail_a),
                      end_b = fmt::format("node-{:02} mlx5_{}", b, rail_b);
    for (const CablingFault& fault : fabric.faults) {
      EXPECT_THAT(fault.sentence, testing::HasSubstr("swapped with"));
      EXPECT_THAT(fault.sentence, testing::HasSubstr(end_a));
      EXPECT_THAT(fault.sentence, testing::HasSubstr(end_b));
    }
  }
}

// Rails lost and one cable wrong here and there, never on most hosts of a unit: units and rails stay what
// they were.
TEST(Property, UnitsSurviveLostRailsAndScatteredWrongCables) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    Random random(seed);
    const int units = Between(random, 2, 5), each = Between(random, 4, 8);
    auto made = *ParseSynthetic(fmt::format("su:{} node:{} gpu:8", units, each));
    std::size_t wrong = 0;
    for (int unit = 0; unit < units; ++unit) {
      const int hit = unit * each + int(random.Below(std::uint64_t(each)));
      const int other = (unit + 1) % units, rail = int(random.Below(8));
      made.nodes[std::size_t(hit)].nics[std::size_t(rail)].ports[0].leaf_port =
          LeafPort{fmt::format("su{}-r{}", other, rail), ""};
      ++wrong;
      Node& lost = made.nodes[std::size_t(unit * each) + random.Below(std::uint64_t(each))];
      for (int i = Between(random, 0, 3); i > 0; --i) {
        NicPort& port = lost.nics[random.Below(8)].ports[0];
        if (port.leaf_port && port.leaf_port->port.empty()) --wrong;
        port.leaf_port = Missing::kUnknown;
      }
    }
    SCOPED_TRACE(test::Replay(seed));
    const Fabric fabric = BuildFabric(made.nodes, made.declaration);
    ASSERT_THAT(Check(fabric), IsEmpty());
    ASSERT_EQ(int(fabric.units.size()), units);
    for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
      ASSERT_EQ(fabric.nodes[n].unit, UnitId(int(n) / each));
    }
    for (const Leaf& leaf : fabric.leaves) ASSERT_TRUE(leaf.rail.known()) << leaf.name;
    ASSERT_EQ(fabric.faults.size(), wrong);
  }
}

}  // namespace
}  // namespace heddle::topology
