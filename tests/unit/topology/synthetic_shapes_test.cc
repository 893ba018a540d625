#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "base/random.h"
#include "tests/support/builders.h"
#include "tests/support/seeds.h"
#include "topology/fabric.h"
#include "topology/synthetic.h"

// Every shape of fabric as one line, and what BuildFabric makes of it.

namespace heddle::topology {
namespace {

using base::Random;
using test::FabricOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

int HopsBetween(const Fabric& fabric, std::string_view a, std::string_view b) {
  EXPECT_NE(fabric.FindLeaf(a), kNone) << a;
  EXPECT_NE(fabric.FindLeaf(b), kNone) << b;
  return fabric.Hops(fabric.FindLeaf(a), fabric.FindLeaf(b));
}

const Spine& SpineNamed(const Fabric& fabric, std::string_view name) {
  for (const Spine& spine : fabric.spines) {
    if (spine.name == name) return spine;
  }
  ADD_FAILURE() << "no spine " << name;
  static const Spine kNothing;
  return kNothing;
}

void ExpectSound(const Fabric& fabric) {
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_THAT(fabric.faults, IsEmpty());
  EXPECT_THAT(fabric.assumptions, IsEmpty());
}

TEST(SyntheticShapes, ATreeOfTwoTiersMeetsOnItsSpines) {
  const Fabric fabric = FabricOf("su:3 node:2 gpu:4 spine:4");
  ExpectSound(fabric);
  EXPECT_THAT(fabric.leaves, SizeIs(12));
  EXPECT_THAT(fabric.spines, SizeIs(4));
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su2-r3"), 2);
}

TEST(SyntheticShapes, ATreeOfThreeTiersMeetsOnCoresBetweenPods) {
  const Fabric fabric = FabricOf("core:4 pod:2 spine:2 su:2 node:4");
  ExpectSound(fabric);
  EXPECT_EQ(fabric.shape, Shape::kRailOptimised);
  EXPECT_THAT(fabric.units, SizeIs(4));
  EXPECT_THAT(fabric.leaves, SizeIs(32));
  EXPECT_THAT(fabric.spines, SizeIs(2 * 2 + 4));
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su1-r7"), 2);
  EXPECT_EQ(HopsBetween(fabric, "su1-r0", "su2-r0"), 4);
  EXPECT_EQ(SpineNamed(fabric, "spine-2").tier, 2);
  EXPECT_EQ(SpineNamed(fabric, "core-3").tier, 3);
}

TEST(SyntheticShapes, ATreeOfFourTiersMeetsOnSuperspinesInAZone) {
  const Fabric fabric = FabricOf("zone:2 pod:2 su:2 node:1 gpu:2");
  ExpectSound(fabric);
  EXPECT_THAT(fabric.units, SizeIs(8));
  EXPECT_THAT(fabric.spines, SizeIs(4 * 2 + 2 * 2 + 2)) << "spines, superspines, cores";
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su1-r1"), 2);
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su2-r0"), 4);
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su4-r0"), 6);
  EXPECT_EQ(SpineNamed(fabric, "superspine-3").tier, 3);
  EXPECT_EQ(SpineNamed(fabric, "core-1").tier, 4);
}

TEST(SyntheticShapes, TheLineOfTheIssueIsOnePod) {
  const Fabric fabric = FabricOf("site:1 core:1 spine:2 su:4 node:16 gpu:8 rail:8 nvlink:node oversub:su=2");
  ExpectSound(fabric);
  EXPECT_THAT(fabric.nodes, SizeIs(64));
  EXPECT_THAT(fabric.units, SizeIs(4));
  EXPECT_THAT(fabric.spines, SizeIs(3));
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su3-r0"), 2);
  EXPECT_EQ(fabric.leaves[0].down_gbps, 16 * 400);
  EXPECT_EQ(fabric.leaves[0].up_gbps, 8 * 400);
  EXPECT_EQ(SpineNamed(fabric, "spine-0").up_gbps, 32 * 1600) << "half of each of 32 leaves, no less above";
}

TEST(SyntheticShapes, OversubscriptionIsByTier) {
  const Fabric fabric =
      FabricOf("zone:2 pod:2 spine:2 su:2 node:4 gpu:4 oversub:su=2,spine=4,superspine=1.6");
  ExpectSound(fabric);
  const Leaf& leaf = fabric.leaves[0];
  EXPECT_EQ(leaf.down_gbps, 4 * 400);
  EXPECT_EQ(leaf.up_gbps, 800);
  const Spine& spine = SpineNamed(fabric, "spine-0");
  EXPECT_EQ(spine.down_gbps, 8 * 400) << "eight leaves, half of each";
  EXPECT_EQ(spine.up_gbps, 800);
  const Spine& superspine = SpineNamed(fabric, "superspine-0");
  EXPECT_EQ(superspine.down_gbps, 4 * 400) << "four spines of its zone, half of each";
  EXPECT_EQ(superspine.up_gbps, 1000);
  const Spine& core = SpineNamed(fabric, "core-0");
  EXPECT_EQ(core.down_gbps, 4 * 500);
  EXPECT_EQ(core.up_gbps, 0);
}

TEST(SyntheticShapes, PodsWithoutCoresDoNotMeet) {
  const Fabric fabric = FabricOf("pod:2 core:0 node:2");
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su0-r1"), 2);
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su1-r0"), kNone);
}

TEST(SyntheticShapes, SitesDoNotMeetOverSpines) {
  const Fabric fabric = FabricOf("site:2 su:2 node:2");
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su1-r0"), 2);
  EXPECT_EQ(HopsBetween(fabric, "su1-r0", "su2-r0"), kNone) << "beyond a site is WAN";
  EXPECT_EQ(fabric.nodes[3].node.site, "site-0");
  EXPECT_EQ(fabric.nodes[4].node.site, "site-1");
}

TEST(SyntheticShapes, UnitsMayBeUneven) {
  const Fabric fabric = FabricOf("node:16,11,7");
  ExpectSound(fabric);
  ASSERT_THAT(fabric.units, SizeIs(3));
  EXPECT_THAT(fabric.units[0].nodes, SizeIs(16));
  EXPECT_THAT(fabric.units[1].nodes, SizeIs(11));
  EXPECT_THAT(fabric.units[2].nodes, SizeIs(7));
  EXPECT_EQ(fabric.leaves[std::size_t(fabric.FindLeaf("su2-r0"))].down_gbps, 7 * 400);
}

TEST(SyntheticShapes, PodsAndRacksMayBeUneven) {
  const Fabric pods = FabricOf("pod:2 su:3,1 node:2");
  ExpectSound(pods);
  EXPECT_THAT(pods.units, SizeIs(4));
  EXPECT_EQ(HopsBetween(pods, "su0-r0", "su2-r0"), 2);
  EXPECT_EQ(HopsBetween(pods, "su2-r0", "su3-r0"), 4);
  const Fabric racks = FabricOf("su:2 rack:2,1 tray:4,3,2 gpu:4 machine:gb200 nvl");
  ExpectSound(racks);
  ASSERT_THAT(racks.domains, SizeIs(3));
  EXPECT_EQ(racks.domains[1].gpus, 12);
  EXPECT_THAT(racks.units[0].nodes, SizeIs(7));
}

TEST(SyntheticShapes, LevelsLeftOutAreThereOnce) {
  EXPECT_THAT(FabricOf("su:4").nodes, SizeIs(4));
  EXPECT_THAT(FabricOf("node:16").units, SizeIs(1));
  EXPECT_EQ(FabricOf("gpu:8 node:4").gpu_count(), 32);
  EXPECT_EQ(FabricOf("torus:8x8x8").nodes.size(), 512u);
  EXPECT_EQ(FabricOf("dragonfly:groups=9").nodes.size(), 9u);
  EXPECT_EQ(FabricOf("tray:18 gpu:4 nvl").domains.size(), 1u);
}

TEST(SyntheticShapes, NvlinkDomainsSpanNeighbours) {
  const Fabric fabric = FabricOf("su:2 node:20 gpu:4 machine:gb200 nvlink:18");
  ExpectSound(fabric);
  ASSERT_THAT(fabric.domains, SizeIs(4));
  EXPECT_THAT(fabric.domains[0].nodes, SizeIs(18));
  EXPECT_THAT(fabric.domains[1].nodes, SizeIs(2)) << "the last of a unit is smaller";
  EXPECT_THAT(fabric.domains[2].nodes, SizeIs(18));
  const Fabric racks = FabricOf("su:1 rack:8 tray:18 gpu:4 machine:gb200 nvlink:144");
  ASSERT_THAT(racks.domains, SizeIs(1));
  EXPECT_EQ(racks.domains[0].gpus, 576);
  EXPECT_THAT(FabricOf("node:2 nvlink:none").domains, IsEmpty());
  EXPECT_EQ(FabricOf("node:2 nvlink:none").nodes[0].node.nvlink, NvLink{});
}

TEST(SyntheticShapes, DragonflyGroupsMeetInTwo) {
  const Fabric fabric = FabricOf("dragonfly:groups=9 tor:4 node:2 nic:1");
  ExpectSound(fabric);
  EXPECT_EQ(fabric.shape, Shape::kDragonfly);
  EXPECT_THAT(fabric.leaves, SizeIs(36));
  EXPECT_EQ(HopsBetween(fabric, "tor-0", "tor-3"), 2);
  EXPECT_EQ(HopsBetween(fabric, "tor-0", "tor-35"), 4);
  const Fabric uneven = FabricOf("dragonfly:3 tor:2,1,2 nic:1");
  EXPECT_EQ(HopsBetween(uneven, "tor-0", "tor-1"), 2);
  EXPECT_EQ(HopsBetween(uneven, "tor-1", "tor-2"), 4);
  EXPECT_EQ(HopsBetween(uneven, "tor-3", "tor-4"), 2);
}

TEST(SyntheticShapes, ATorusHasPositions) {
  const Fabric fabric = FabricOf("torus:8x4x2 gpu:4");
  ExpectSound(fabric);
  EXPECT_EQ(fabric.shape, Shape::kTorus3d);
  EXPECT_EQ(fabric.nodes.back().torus, (std::array<int, 3>{7, 3, 1}));
  EXPECT_EQ(fabric.TorusHops(0, 63), 1 + 1 + 1);
  EXPECT_EQ(fabric.TorusHops(0, 32), 4);
}

TEST(SyntheticShapes, PlanesAndDualTorsReachUpToTheCore) {
  const Fabric planes = FabricOf("pod:2 node:2 gpu:2 plane:2");
  ExpectSound(planes);
  EXPECT_EQ(HopsBetween(planes, "su0-r0-p1", "su1-r1-p1"), 4);
  EXPECT_EQ(HopsBetween(planes, "su0-r0-p0", "su0-r0-p1"), kNone);
  const Fabric tors = FabricOf("pod:2 tor:2 node:2 nic:2 transport:roce dualtor");
  ExpectSound(tors);
  EXPECT_EQ(tors.shape, Shape::kFatTree);
  EXPECT_EQ(HopsBetween(tors, "tor-0a", "tor-1b"), 2);
  EXPECT_EQ(HopsBetween(tors, "tor-1a", "tor-2a"), 4);
}

TEST(SyntheticShapes, RailsDoNotMeetWithoutSpines) {
  const Fabric fabric = FabricOf("node:4,2 railonly");
  ExpectSound(fabric);
  EXPECT_EQ(fabric.shape, Shape::kRailOnly);
  EXPECT_EQ(HopsBetween(fabric, "su0-r0", "su0-r1"), kNone);
}

TEST(SyntheticShapes, KindsOfNodesGoByUnitInTurn) {
  const Fabric fabric = FabricOf("su:3 node:2 machine:h100,a100 gpu:8,4 nic:8,2 rate:400,200");
  ExpectSound(fabric);
  EXPECT_EQ(fabric.gpu_count(), 2 * (8 + 4 + 8));
  EXPECT_EQ(fabric.nodes[0].node.machine, "HGX H100");
  EXPECT_EQ(fabric.nodes[2].node.machine, "HGX A100");
  EXPECT_EQ(fabric.nodes[2].uplinks[0].gbps, 100) << "two GPUs share 200 Gb/s";
  EXPECT_EQ(fabric.nodes[4].node.machine, "HGX H100");
  EXPECT_THAT(FabricOf("node:2 machine:h100,a100").units, SizeIs(2)) << "one of each";
}

// What a new transport needs is its value and its name: the notation finds it by itself.
TEST(SyntheticShapes, EveryTransportHasAWord) {
  int value = 0;
  for (const std::string_view name : TransportNames()) {
    const Transport transport = static_cast<Transport>(value++);
    EXPECT_EQ(TransportName(transport), name);
    std::string word = transport == Transport::kInfiniBand ? "ib" : std::string(name);
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    const Fabric fabric = FabricOf("su:2 node:2 transport:" + word);
    EXPECT_EQ(fabric.transport, transport);
    EXPECT_THAT(Check(fabric), IsEmpty());
    EXPECT_THAT(*CanonicalSynthetic("node:1 transport:" + word), testing::HasSubstr("transport:" + word));
  }
}

// Any words that go together, with lists, faults and ratios.
class AnyLine {
 public:
  explicit AnyLine(std::uint64_t seed) : random_(seed) {}

  std::string Write() {
    switch (random_.Below(5)) {
      case 0:
        Levels({"site", "zone", "pod", "su", "node"});
        Switches();
        break;
      case 1:
        Levels({"site", "zone", "pod", "su", "rack", "tray"});
        Switches();
        break;
      case 2:
        Levels({"site", "pod", "tor", "node"});
        if (Coin()) line_ += " dualtor";
        break;
      case 3:
        Levels({"site", "dragonfly", "tor", "node"});
        break;
      default:
        line_ = fmt::format("torus:{}x{}x{}", N(1, 3), N(1, 3), N(1, 3));
        break;
    }
    Maybe("gpu", 0, 4);
    if (Coin()) Word("nic", "1"), line_ += " rail:1";
    Maybe("rate", 100, 104);
    if (Coin()) Word("machine", Coin() ? "h100" : "h100,a100");
    if (Coin()) Word("transport", Coin() ? "roce" : "ethernet");
    if (Coin()) Word("nvlink", Coin() ? "none" : fmt::format("{}", N(1, 4)));
    if (Coin()) Word("oversub", Coin() ? "150" : fmt::format("su={}.{}", N(1, 4), N(0, 99)));
    if (random_.Below(4) == 0) line_ += " down:node-00/rail-0";
    return line_;
  }

 private:
  int N(int lowest, int highest) { return lowest + int(random_.Below(std::uint64_t(highest - lowest + 1))); }
  bool Coin() { return random_.Below(2) == 0; }
  void Word(std::string_view word, std::string_view value) {
    line_ += fmt::format("{}{}:{}", line_.empty() ? "" : " ", word, value);
  }
  void Maybe(std::string_view word, int lowest, int highest) {
    if (!Coin()) return;
    std::string value = fmt::format("{}", N(lowest, highest));
    while (random_.Below(3) == 0) value += fmt::format(",{}", N(lowest, highest));
    Word(word, value);
  }
  void Levels(const std::vector<std::string_view>& words) {
    for (const std::string_view word : words) {
      if (word == "site") {
        if (Coin()) Word(word, fmt::format("{}", N(1, 2)));
      } else if (word == words.back() || word == "tor" || word == "dragonfly") {
        Word(word, fmt::format("{}", N(1, 3)));
        if (word != "dragonfly" && random_.Below(3) == 0) line_ += fmt::format(",{}", N(1, 3));
      } else {
        Maybe(word, 1, 3);
      }
    }
  }
  void Switches() {
    if (random_.Below(6) == 0) {
      line_ += " railonly";
      return;
    }
    Maybe("plane", 1, 2);
    if (Coin()) Word("spine", fmt::format("{}", N(0, 2)));
    if (Coin()) Word("superspine", fmt::format("{}", N(0, 2)));
    if (Coin()) Word("core", fmt::format("{}", N(0, 2)));
  }

  Random random_;
  std::string line_;
};

TEST(SyntheticShapes, EveryLineHasACanonicalFormThatMakesTheSame) {
  int made = 0, seeds = 0;
  for (const std::uint64_t seed : test::Seeds(2000)) {
    const std::string line = AnyLine(seed).Write();
    SCOPED_TRACE(fmt::format("{} \"{}\"", test::Replay(seed), line));
    ++seeds;
    const auto cluster = ParseSynthetic(line);
    const auto canonical = CanonicalSynthetic(line);
    ASSERT_EQ(cluster.has_value(), canonical.has_value());
    if (!cluster) {
      EXPECT_EQ(cluster.error().message, canonical.error().message);
      continue;
    }
    ++made;
    const auto again = ParseSynthetic(*canonical);
    ASSERT_TRUE(again.has_value()) << *canonical << ": " << again.error().message;
    ASSERT_EQ(*again, *cluster) << *canonical;
    ASSERT_EQ(*CanonicalSynthetic(*canonical), *canonical);
    for (const Node& node : cluster->nodes) ASSERT_THAT(Check(node), IsEmpty()) << node.name;
    const Fabric fabric = BuildFabric(cluster->nodes, cluster->declaration);
    ASSERT_THAT(Check(fabric), IsEmpty()) << *canonical;
  }
  // One seed alone, as HEDDLE_SEED gives it, may be a refusal.
  EXPECT_GE(made * 5, seeds > 1 ? seeds : 0) << "most lines were refused";
}

TEST(SyntheticShapes, NoDamagedLineIsMoreThanRefused) {
  for (const std::uint64_t seed : test::Seeds(2000)) {
    Random random(seed);
    const std::string line = test::Damage(AnyLine(seed).Write(), random);
    SCOPED_TRACE(fmt::format("{} \"{}\"", test::Replay(seed), line));
    const auto canonical = CanonicalSynthetic(line);
    if (!canonical) {
      EXPECT_LT(canonical.error().message.size(), 400u) << canonical.error().message;
    } else {
      ASSERT_EQ(*CanonicalSynthetic(*canonical), *canonical);
    }
  }
}

}  // namespace
}  // namespace heddle::topology
