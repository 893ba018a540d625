#include "operator/fabric_suspects.h"

#include <gmock/gmock.h>

#include "crds/cable_evidence.h"
#include "crds/fabric.h"
#include "crds/fabric_assembly.h"
#include "crds/node_topology.h"
#include "topology/synthetic.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using topology::LinkFault;
using topology::Missing;
using topology::Symptom;

const topology::Sighting kFlaps{Symptom::kFlap, true, "41 flaps in 10 min"};
const topology::Sighting kBroken{Symptom::kErrors, true, "700 broken packets in 1 min"};

// Three hosts of two rails, all of one rail on one leaf: gpu-002's mlx5_1 on su1-r1 Ethernet8, which is etp3.
class SuspectsOfTest : public testing::Test {
 protected:
  SuspectsOfTest() {
    for (const char* leaf : {"su1-r0", "su1-r1"}) {
      fabric.leaves.emplace_back();
      fabric.leaves.back().name = leaf;
    }
    for (int host = 0; host < 3; ++host) {
      topology::FabricNode member;
      member.node.name = "gpu-00" + std::to_string(host);
      for (int rail = 0; rail < 2; ++rail) {
        topology::Nic nic;
        nic.name = "mlx5_" + std::to_string(rail);
        nic.role = topology::NicRole::kCompute;
        nic.ports.push_back({.number = 1, .leaf_port = LeafPort(host, rail)});
        member.node.nics.push_back(nic);
      }
      fabric.nodes.push_back(member);
    }
  }

  static topology::LeafPort LeafPort(int host, int rail) {
    return {"su1-r" + std::to_string(rail), "etp" + std::to_string(host + 1)};
  }
  topology::NicPort& Port(std::size_t host, std::size_t rail) {
    return fabric.nodes[host].node.nics[rail].ports[0];
  }
  void Say(std::size_t host, std::size_t rail, LinkFault fault, std::string reason) {
    Port(host, rail).fault = fault;
    Port(host, rail).reason = std::move(reason);
  }
  // A switch counts that of a port, by its own name.
  void Count(const std::string& leaf, int port, const topology::Sighting& sighting) {
    seen.sightings[leaf]["Ethernet" + std::to_string(4 * port)] = {"etp" + std::to_string(port + 1),
                                                                   {sighting}};
  }
  void Between(const std::string& leaf, int port, const std::string& spine, int spine_port) {
    links.push_back({leaf,
                     spine,
                     "Ethernet" + std::to_string(4 * port),
                     "Ethernet" + std::to_string(4 * spine_port),
                     0,
                     1,
                     {}});
    seen.between = links;
  }
  std::vector<topology::Suspect> Suspects() const {
    return SuspectsOf(fabric, seen, [] { return std::vector<crds::Gang>{}; });
  }
  std::string First() const {
    const auto suspects = Suspects();
    return suspects.empty() ? "" : topology::SentenceOf(suspects.front());
  }

  topology::Fabric fabric;
  SeenOfCables seen;
  std::vector<switches::SwitchLink> links;
};

TEST_F(SuspectsOfTest, NothingIsSuspectedWhereNothingWasSeen) {
  EXPECT_THAT(Suspects(), IsEmpty());
}

TEST_F(SuspectsOfTest, JoinsWhatTheHostSaysWithWhatItsSwitchCounts) {
  Count("su1-r1", 2, kFlaps);
  Say(2, 1, LinkFault::kFlapping, "82 link changes in 10 min");
  ASSERT_THAT(Suspects(), SizeIs(1));
  EXPECT_EQ(First(),
            "leaf su1-r1 port etp3 <-> gpu-002 mlx5_1:1: 41 flaps in 10 min, seen from both ends (gpu-002 "
            "mlx5_1:1: 82 link changes in 10 min); drain or reseat it");
}

TEST_F(SuspectsOfTest, DoesNotBlameACableForWhatAnotherSwitchOfTheNameCounts) {
  Count("su1-r1", 2, kFlaps);
  seen.sightings["su1-r1"]["Ethernet8"].chassis_id = "0c:42:a1:00:00:01";
  topology::LeafPort heard = LeafPort(2, 1);
  heard.chassis_id = "04-3f-72-aa-bb-cc";
  Port(2, 1).leaf_port = heard;
  ASSERT_THAT(Suspects(), SizeIs(1));
  EXPECT_THAT(First(), testing::AllOf(testing::HasSubstr("leaf su1-r1 port"),
                                      testing::Not(testing::HasSubstr("gpu-002"))));
  heard.chassis_id = "0C-42-A1-00-00-01";
  Port(2, 1).leaf_port = heard;
  EXPECT_THAT(First(), testing::HasSubstr("gpu-002 mlx5_1:1"));
}

// Or it would be another suspect at each look.
TEST_F(SuspectsOfTest, OneOfLongNamesIsReadBackFromTheFabricAsItWasNamed) {
  fabric.nodes[2].node.name = std::string(253, 'n');
  fabric.nodes[2].node.nics[1].name = std::string(64, 'm');
  Port(2, 1).leaf_port = topology::LeafPort{std::string(128, 'l'), std::string(64, 'p')};
  Say(2, 1, LinkFault::kFlapping, "82 link changes in 10 min");
  crds::Fabric object;
  object.name = "roce";
  object.status.suspects = Suspects();
  ASSERT_THAT(object.status.suspects, SizeIs(1));
  EXPECT_THAT(object.status.suspects[0].name, EndsWith("…"));
  const auto back = crds::FabricFromJson(crds::ToJson(object));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->status.suspects, object.status.suspects);
}

// Who received the errors says whose transceiver is replaced.
TEST_F(SuspectsOfTest, ErrorsThatTheHostReceivedWereSentByTheLeaf) {
  Say(2, 1, LinkFault::kErrors, "700 symbol errors in 1 h, since 2027-01-15T08:00:20Z");
  EXPECT_THAT(First(), HasSubstr("received by gpu-002 mlx5_1:1 alone"));
  EXPECT_THAT(First(), HasSubstr("replace the transceiver of leaf su1-r1 port etp3"));
}

TEST_F(SuspectsOfTest, ErrorsThatTheLeafReceivedWereSentByTheHost) {
  Say(2, 1, LinkFault::kErrors, crds::SaidByLeaf("su1-r1 port 3", "700 symbol errors in 1 h"));
  EXPECT_EQ(
      First(),
      "leaf su1-r1 port etp3 <-> gpu-002 mlx5_1:1: 700 symbol errors in 1 h, received by leaf su1-r1 port "
      "etp3 alone; clean or reseat it; then replace the transceiver of gpu-002 mlx5_1:1");
}

TEST_F(SuspectsOfTest, ErrorsThatBothReceivedAreTheCables) {
  const std::string leaf = crds::SaidByLeaf("su1-r1 port 3", "900 symbol errors in 1 h");
  Say(2, 1, LinkFault::kErrors, crds::BothEnds("700 symbol errors in 1 h", leaf));
  const std::string by_host = First();
  EXPECT_THAT(by_host, HasSubstr("900 symbol errors in 1 h, seen from both ends"));
  EXPECT_THAT(by_host, HasSubstr("clean, reseat or replace it"));
  Say(2, 1, LinkFault::kErrors, crds::BothEnds(leaf, "700 symbol errors in 1 h"));
  EXPECT_EQ(First(), by_host) << "whichever is worse";
}

TEST_F(SuspectsOfTest, TheOtherEndsFaultIsTheOneThatItsWordsTell) {
  Say(2, 1, LinkFault::kFlapping,
      crds::BothEnds("2 link downs in 10 min",
                     crds::SaidByLeaf("su1-r1 port 3", "700 symbol errors in 1 h")));
  EXPECT_THAT(SightingsOf(Port(2, 1)),
              ElementsAre(topology::Sighting{Symptom::kFlap, false, "2 link downs in 10 min"},
                          topology::Sighting{Symptom::kErrors, true, "700 symbol errors in 1 h"}));
  Say(2, 1, LinkFault::kErrors,
      crds::BothEnds(crds::SaidByLeaf("su1-r1 port 3", "700 symbol errors in 1 h"),
                     "80 packets asked for again in 1 min"));
  EXPECT_THAT(SightingsOf(Port(2, 1)),
              ElementsAre(topology::Sighting{Symptom::kLoss, false, "80 packets asked for again in 1 min"},
                          topology::Sighting{Symptom::kErrors, true, "700 symbol errors in 1 h"}));
  Say(2, 1, LinkFault::kFlapping,
      crds::BothEnds(crds::SaidByLeaf("su1-r1 port 3", "41 link downs in 10 min"), "3 link downs in 12 h"));
  EXPECT_THAT(SightingsOf(Port(2, 1)),
              ElementsAre(topology::Sighting{Symptom::kFlap, false, "3 link downs in 12 h"},
                          topology::Sighting{Symptom::kFlap, true, "41 link downs in 10 min"}));
  Say(2, 1, LinkFault::kPauseStorm, "stops its leaf by sent pause for 80 % of 30 s (priority 3)");
  EXPECT_TRUE(SightingsOf(Port(2, 1)).at(0).by_far_end) << "the leaf was stopped";
  Say(2, 1, LinkFault::kNotLossless, "how it is set");
  EXPECT_THAT(SightingsOf(Port(2, 1)), IsEmpty());
}

// CNPs are to the host's end what ECN marks are to the switch's.
TEST_F(SuspectsOfTest, CongestionOfTheHostsEndStandsBesideWhatIsSuspectedAndSuspectsNobody) {
  const CongestedPorts congested{
      {"gpu-002", {{"mlx5_0", 1, {}, "of another cable"}, {"mlx5_1", 1, {}, "70000 CNPs handled in 1 min"}}},
      {"nobody", {{"mlx5_1", 1, {}, "of no host"}}}};
  seen.congested = &congested;
  EXPECT_THAT(Suspects(), IsEmpty()) << "incast is normal";
  const topology::Sighting pause{
      Symptom::kPauseStorm, true,
      "900000 pause frames in 30 s (priority 3); 4000 packets marked in 10 min (queue 3)"};
  Count("su1-r1", 2, pause);
  EXPECT_EQ(
      First(),
      "leaf su1-r1 port etp3 <-> gpu-002 mlx5_1:1: 900000 pause frames in 30 s (priority 3); 4000 packets "
      "marked in 10 min (queue 3), sent by gpu-002 mlx5_1:1; gpu-002 mlx5_1:1 is congested: 70000 CNPs "
      "handled in 1 min; drain gpu-002: its NIC takes in less than arrives; look at PCIe width and speed, "
      "IOMMU and firmware");
  // Who is suspected, and how much, is as without it.
  Count("su1-r0", 0, kFlaps);
  std::vector<topology::Suspect> with = Suspects();
  seen.congested = nullptr;
  std::vector<topology::Suspect> without = Suspects();
  ASSERT_THAT(with, SizeIs(2));
  EXPECT_THAT(with[0].evidence, Not(HasSubstr("congested"))) << "that cable is not";
  with[1].evidence = without[1].evidence;
  EXPECT_EQ(with, without);
}

TEST_F(SuspectsOfTest, OfAHostOneCongestedPortStandsForAll) {
  const CongestedPorts congested{
      {"gpu-002",
       {{"mlx5_0", 1, {}, "61000 CNPs sent in 1 min"}, {"mlx5_1", 1, {}, "70000 CNPs handled in 1 min"}}}};
  Count("su1-r0", 2, kFlaps);
  Count("su1-r1", 2, kFlaps);
  const std::string before = First();
  ASSERT_THAT(before, testing::StartsWith("host gpu-002: "));
  seen.congested = &congested;
  EXPECT_THAT(
      First(),
      HasSubstr("; gpu-002 mlx5_0:1 is congested: 61000 CNPs sent in 1 min; so are 1 more of its ports;"));
}

TEST_F(SuspectsOfTest, APortThatNobodyKnowsTheOtherEndOfIsSuspectedAlone) {
  Count("su1-r1", 20, kFlaps);
  Count("elsewhere", 1, kFlaps);
  ASSERT_THAT(Suspects(), SizeIs(1)) << "a switch of another fabric is none of ours";
  EXPECT_EQ(First(), "leaf su1-r1 port Ethernet80: 41 flaps in 10 min; drain or reseat it");
}

TEST_F(SuspectsOfTest, ALinkThatIsDownKeepsItsNameForAnHour) {
  CableMemory memory;
  seen.memory = &memory;
  Count("su1-r1", 2, kFlaps);
  Say(2, 1, LinkFault::kFlapping, "82 link changes in 10 min");
  base::MonotonicTime now(1h);
  memory.Look(fabric, now);
  const std::string before = First();
  Port(2, 1).leaf_port = Missing::kStale;
  memory.Look(fabric, now += 59min);
  EXPECT_EQ(First(), before);
  Port(2, 1).leaf_port = Missing::kUnknown;  // its agent has started anew
  memory.Look(fabric, now += 1min);
  EXPECT_EQ(First(), before);
  memory.Look(fabric, now += 1s);
  const auto suspects = Suspects();
  ASSERT_THAT(suspects, SizeIs(2)) << "nobody knows that they are one";
  EXPECT_THAT(suspects[0].name + suspects[1].name, HasSubstr("gpu-002 mlx5_1:1"));
}

TEST_F(SuspectsOfTest, AfterARestartPublishedSuspectsTellWhereTheirCablesEnded) {
  Count("su1-r1", 2, kFlaps);
  const auto published = Suspects();
  Port(2, 1).leaf_port = Missing::kStale;
  CableMemory memory;
  memory.Restore(published, base::MonotonicTime(1h));
  memory.Look(fabric, base::MonotonicTime(1h));
  seen.memory = &memory;
  ASSERT_THAT(Suspects(), SizeIs(1));
  EXPECT_EQ(Suspects()[0].name, published[0].name);
}

TEST_F(SuspectsOfTest, WhatIsRememberedGoesWhereSomebodyKnowsBetter) {
  CableMemory memory;
  memory.Look(fabric, base::MonotonicTime(1h));
  Port(2, 1).leaf_port = Missing::kStale;
  Port(0, 1).leaf_port = LeafPort(2, 1);  // moved there
  memory.Look(fabric, base::MonotonicTime(1h + 1min));
  EXPECT_EQ(memory.Of("gpu-002", "mlx5_1:1"), nullptr);
  Port(1, 1).leaf_port = Missing::kAmbiguous;
  memory.Look(fabric, base::MonotonicTime(1h + 2min));
  EXPECT_EQ(memory.Of("gpu-001", "mlx5_1:1"), nullptr);
  ASSERT_NE(memory.Of("gpu-001", "mlx5_0:1"), nullptr);
}

// Two sites may name their leaves alike.
TEST_F(SuspectsOfTest, ACableOfAnotherFabricTakesNoLeafPortAway) {
  CableMemory memory;
  memory.Look(fabric, base::MonotonicTime(1h));
  topology::Fabric other = fabric;
  for (topology::FabricNode& member : other.nodes) member.node.name = "far-" + member.node.name;
  memory.Look(other, base::MonotonicTime(1h + 1ms));
  Port(2, 1).leaf_port = Missing::kStale;
  memory.Look(fabric, base::MonotonicTime(1h + 1min));
  ASSERT_NE(memory.Of("gpu-002", "mlx5_1:1"), nullptr);
  EXPECT_EQ(memory.Of("gpu-002", "mlx5_1:1")->leaf, "su1-r1");
}

TEST_F(SuspectsOfTest, ACableOfASpineIsSuspectedByWhatItsTwoSwitchesCount) {
  Between("su1-r0", 8, "spine-1", 0);
  Between("su1-r1", 8, "spine-1", 1);
  Count("su1-r1", 8, kBroken);
  EXPECT_EQ(
      First(),
      "spine spine-1 port Ethernet4 <-> leaf su1-r1 port Ethernet32: 700 broken packets in 1 min, received "
      "by leaf su1-r1 port Ethernet32 alone; clean or reseat it; then replace the transceiver of spine "
      "spine-1 port Ethernet4");
  Count("spine-1", 1, kBroken);
  EXPECT_THAT(First(), HasSubstr("seen from both ends"));
}

TEST_F(SuspectsOfTest, ASpineIsSuspectedWhereItsCablesFlapTogether) {
  for (int leaf = 0; leaf < 4; ++leaf) {
    const std::string name = "su1-r" + std::to_string(leaf);
    if (leaf > 1) fabric.leaves.emplace_back().name = name;
    Between(name, 8, "spine-0", leaf);
    Between(name, 9, "spine-1", leaf);
    Count("spine-1", leaf, kFlaps);
  }
  ASSERT_THAT(Suspects(), SizeIs(1));
  EXPECT_EQ(Suspects()[0].name, "spine spine-1");
  EXPECT_EQ(Suspects()[0].links, 4);
}

TEST_F(SuspectsOfTest, OfAStormBetweenSwitchesTheOneThatStopsIsTheSource) {
  Between("su1-r1", 8, "spine-1", 1);
  // The leaf says that it was stopped there.
  Count("su1-r1", 8, {Symptom::kPauseStorm, true, "900000 pause frames in 30 s (priority 3)"});
  EXPECT_THAT(First(), HasSubstr("sent by spine spine-1 port Ethernet4"));
  // Or that it stops the spine.
  Count("su1-r1", 8, {Symptom::kPauseStorm, false, "900000 pause frames in 30 s (priority 3)"});
  EXPECT_THAT(First(), HasSubstr("sent by leaf su1-r1 port Ethernet32"));
}

// What an agent in an ibsim fabric publishes when the leaf of its rail 3 counts link downs (tests/lab/test_pma.py): the
// port's fault, and its reason word for word. It goes as it came, as an object.
TEST(SuspectsOfAFabric, AFlapThatOnlyTheLeafCountsClimbsToTheTop) {
  auto synthetic =
      topology::ParseSynthetic("su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  ASSERT_TRUE(synthetic);
  const auto say = [&](std::size_t node, std::size_t nic, LinkFault fault, std::string reason) {
    topology::NicPort& port = synthetic->nodes[node].nics[nic].ports[0];
    port.fault = fault;
    port.reason = std::move(reason);
  };
  say(0, 1, LinkFault::kErrors, "1900 symbol errors in 1 h, since 2027-01-15T07:00:00Z");
  say(2, 5, LinkFault::kErrors, "1700 symbol errors in 1 h, since 2027-01-15T07:00:00Z");
  for (const std::size_t node : {4u, 5u, 6u})
    say(node, 2, LinkFault::kPathLoss, "900 packets asked for again in 1 min, since 2027-01-15T07:00:00Z");
  say(1, 3, LinkFault::kFlapping,
      "at " + synthetic->nodes[1].nics[3].ports[0].leaf_port->leaf +
          " port 2: 41 link downs in 10 min, since 2027-01-15T08:00:20Z");
  std::vector<topology::Node> nodes;
  for (const topology::Node& node : synthetic->nodes) {
    crds::NodeTopology object;
    object.name = node.name;
    object.status.node = node;
    const auto read = crds::NodeTopologyFromJson(crds::ToJson(object));
    ASSERT_TRUE(read) << read.error().message;
    nodes.push_back(read->status.node);
  }
  const auto fabrics = crds::AssembleFabrics(nodes, {});
  ASSERT_EQ(fabrics.size(), 1u);
  crds::Gang gang;
  gang.ns = "team";
  gang.name = "llama";
  gang.spec.pods = 2;
  gang.status.placement = crds::ToColumns({{.node = nodes[0].name}, {.node = nodes[1].name}}, 1);
  const auto suspects =
      SuspectsOf(fabrics.begin()->second, {}, [&] { return std::vector<crds::Gang>{gang}; });
  ASSERT_GE(suspects.size(), 3u);
  crds::Gang done = gang;  // its middle rank, which has no slot
  done.status.placement = crds::ToColumns({{.node = nodes[0].name}, {}, {.node = nodes[1].name}}, 1);
  const auto others = SuspectsOf(fabrics.begin()->second, {}, [&] { return std::vector<crds::Gang>{done}; });
  ASSERT_EQ(others.size(), suspects.size());
  EXPECT_EQ(topology::SentenceOf(others.front()), topology::SentenceOf(suspects.front()));
  const topology::LeafPort& leaf = *nodes[1].nics[3].ports[0].leaf_port;
  EXPECT_EQ(
      topology::SentenceOf(suspects.front()),
      "leaf " + leaf.leaf + " port " + leaf.port + " <-> " + nodes[1].name + " " + nodes[1].nics[3].name +
          ":1: 41 link downs in 10 min, since 2027-01-15T08:00:20Z, 1 gang crosses it; drain or reseat it");
}

}  // namespace
}  // namespace heddle::operators
