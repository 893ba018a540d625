#include "operator/ufm_seen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/fabric_suspects.h"

namespace heddle::operators {
namespace {

using switches::UfmPort;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using topology::Sighting;
using topology::Symptom;

constexpr const char* kLeafGuid = "1c34da0300728606";
constexpr const char* kOtherGuid = "1c34da0300728607";
constexpr const char* kSpineGuid = "1c34da03000000ff";
constexpr const char* kLeafName = "MF0;su1-r3:MQM9700/U1";
const Sighting kFlaps{Symptom::kFlap, true, "41 link downs in 10 min"};

// gpu-017's mlx5_3 on port 18 of a leaf that its agent calls by its description, under one spine.
class UfmSeenTest : public testing::Test {
 protected:
  UfmSeenTest() {
    fabric.leaves.emplace_back();
    fabric.leaves.back().name = kLeafName;
    AddHost("gpu-017", "mlx5_3", {kLeafName, "18"});
    Add(kLeafGuid, 18, "su1-r3", "0c42a103001b8256_1", "gpu-017 mlx5_3");
    Add(kLeafGuid, 40, "su1-r3", std::string(kSpineGuid) + "_3", "spine-0:3");
    Add(kSpineGuid, 3, "spine-0", std::string(kLeafGuid) + "_40", "su1-r3:40");
  }
  void AddHost(const std::string& node, const std::string& device, const topology::LeafPort& leaf) {
    topology::FabricNode member;
    member.node.name = node;
    topology::Nic nic;
    nic.name = device;
    nic.role = topology::NicRole::kCompute;
    nic.ports.push_back({.number = 1, .leaf_port = leaf});
    member.node.nics.push_back(nic);
    fabric.nodes.push_back(member);
  }
  void Add(const std::string& guid, int number, const std::string& system, const std::string& peer,
           const std::string& description) {
    ports.push_back({guid + "_" + std::to_string(number), guid, system, number, peer, "", description});
  }
  UfmSeen Seen() {
    answer.ports = std::make_shared<const std::vector<UfmPort>>(ports);
    return SeenByUfm(answer, fabric);
  }
  // "lower port -> upper port" of each cable between switches.
  std::vector<std::string> Between() {
    std::vector<std::string> all;
    for (const auto& link : Seen().between)
      all.push_back(link.lower + " " + link.lower_port + " -> " + link.upper + " " + link.upper_port);
    return all;
  }

  topology::Fabric fabric;
  std::vector<UfmPort> ports;
  UfmAnswer answer;
};

TEST_F(UfmSeenTest, GivesASwitchTheNameThatAgentsKnowItByWhereBothSeeOneCable) {
  EXPECT_THAT(Between(), ElementsAre(std::string(kLeafName) + " 40 -> spine-0 3"));
  answer.sightings[kLeafGuid] = {{"18", {kFlaps}, ""}, {"19", {}, "went back"}};
  EXPECT_THAT(Seen().sightings,
              ElementsAre(Pair(kLeafName, ElementsAre(Pair("18", SwitchPortSeen{"", {kFlaps}})))));
}

TEST_F(UfmSeenTest, GoesByUfmsNameWhereNoCableIsSeenByBoth) {
  fabric.nodes.clear();
  EXPECT_THAT(Between(), ElementsAre("su1-r3 40 -> spine-0 3"));
}

TEST_F(UfmSeenTest, BelievesNoNameThatItsCablesDoNotAgreeOn) {
  AddHost("gpu-018", "mlx5_3", {"MF0;su1-r4:MQM9700/U1", "19"});
  Add(kLeafGuid, 19, "su1-r3", "0c42a103001b8257_1", "gpu-018 mlx5_3");
  EXPECT_THAT(Between(), ElementsAre("su1-r3 40 -> spine-0 3"));
}

TEST_F(UfmSeenTest, OfTwoSwitchesWithOneNameNeitherHasIt) {
  Add(kOtherGuid, 40, "su1-r3", std::string(kSpineGuid) + "_4", "spine-0:4");
  Add(kSpineGuid, 4, "spine-0", std::string(kOtherGuid) + "_40", "su1-r3:40");
  fabric.nodes.clear();
  EXPECT_THAT(Between(), testing::UnorderedElementsAre("0x1c34da0300728606 40 -> spine-0 3",
                                                       "0x1c34da0300728607 40 -> spine-0 4"));
}

TEST_F(UfmSeenTest, IsNotMisledByAnAgentThatSeesAnotherPort) {
  fabric.nodes[0].node.nics[0].ports[0].leaf_port = topology::LeafPort{kLeafName, "17"};
  EXPECT_THAT(Between(), ElementsAre("su1-r3 40 -> spine-0 3"));
}

TEST_F(UfmSeenTest, TakesACableThatItsEndsSpeakOfDifferentlyForNone) {
  ports[2].peer = std::string(kOtherGuid) + "_1";
  EXPECT_THAT(Between(), IsEmpty());
  ports[2].peer = "";  // one that says nothing contradicts nobody
  EXPECT_THAT(Between(), SizeIs(1));
}

// What no host can see: the cable above the leaf.
TEST_F(UfmSeenTest, MakesTheCableBetweenLeafAndSpineASuspect) {
  answer.sightings[kSpineGuid] = {{"3", {kFlaps}, ""}};
  const UfmSeen seen = Seen();
  SeenOfCables cables{.sightings = seen.sightings, .between = seen.between};
  const auto suspects = SuspectsOf(fabric, cables, [] { return std::vector<crds::Gang>{}; });
  ASSERT_THAT(suspects, SizeIs(1));
  EXPECT_EQ(suspects[0].symptom, Symptom::kFlap);
  EXPECT_THAT(topology::SentenceOf(suspects[0]),
              testing::AllOf(HasSubstr("spine-0 port 3"), HasSubstr(std::string(kLeafName) + " port 40"),
                             HasSubstr("41 link downs in 10 min")));
}

TEST_F(UfmSeenTest, OfAUfmThatHasSaidNothingIsNothing) {
  EXPECT_THAT(SeenByUfm({}, fabric).between, IsEmpty());
}

}  // namespace
}  // namespace heddle::operators
