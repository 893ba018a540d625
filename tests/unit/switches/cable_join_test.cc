// The join of cables that is kept: what it joins again, and when only a whole one will do. That it says what a whole one
// says, whatever changes, is walked in tests/unit/operator/kept_verdicts_test.cc.
#include "switches/cable_join.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/switches/sonic_port.h"

namespace heddle::switches {
namespace {

using lossless::LosslessVerdict;
using testing::ElementsAre;
using testing::IsEmpty;

// Three hosts of one NIC each on a leaf of their own.
class CableJoinTest : public testing::Test {
 protected:
  CableJoinTest() {
    for (int host = 0; host < 3; ++host) {
      const std::string leaf = "leaf-" + std::to_string(host);
      crds::NodeTopology& node = nodes.emplace_back();
      node.name = "gpu-" + std::to_string(host);
      topology::Nic nic;
      nic.name = "mlx5_0";
      nic.netdev = "eth0";
      nic.transport = topology::Transport::kRoce;
      nic.role = topology::NicRole::kCompute;
      nic.mtu = 9000;
      nic.ports.push_back(
          {.number = 1, .state = topology::LinkState::kActive, .rate_gbps = 400, .usable_gbps = 400});
      nic.ports.back().leaf_port = topology::LeafPort{leaf, "etp1"};
      node.status.node.nics.push_back(nic);
      node.status.lossless.push_back(
          {.ports = {"mlx5_0:1"}, .state = crds::LosslessState::kCompliant, .have = test::LosslessHost()});
      configs.push_back({.hostname = leaf, .ports = {test::LosslessPort("Ethernet0", "etp1")}});
    }
    join.Begin(Nodes(), Switches(), {});
  }

  std::vector<const crds::NodeTopology*> Nodes() const {
    std::vector<const crds::NodeTopology*> pointers;
    for (const crds::NodeTopology& node : nodes) pointers.push_back(&node);
    return pointers;
  }
  std::vector<KnownSwitch> Switches() const {
    std::vector<KnownSwitch> known;
    for (const formats::SonicConfig& config : configs)
      known.push_back({.name = config.hostname, .config = &config});
    return known;
  }
  LosslessVerdict Verdict(std::size_t cable) const { return join.compared().comparison.Of(cable).verdict; }

  std::vector<crds::NodeTopology> nodes;
  std::vector<formats::SonicConfig> configs;
  CableJoin join;
};

TEST_F(CableJoinTest, JoinsAgainWhatHasAChangedEndAndNamesTheNodesOfIt) {
  for (std::size_t cable = 0; cable < 3; ++cable) EXPECT_EQ(Verdict(cable), LosslessVerdict::kLossless);
  EXPECT_THAT(*join.Again(Nodes(), Switches(), {}, {}), IsEmpty());
  nodes[0].status.node.nics[0].ports[0].rate_gbps = 200;
  std::vector<formats::SonicConfig> now = configs;
  now[2].ports[0].settings.pfc = lossless::PrioritySet{};
  std::vector<KnownSwitch> known = Switches();
  known[2].config = &now[2];
  EXPECT_THAT(*join.Again(Nodes(), known, {}, {.nodes = {0}, .switches = {2}}), ElementsAre(0, 2));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kContradiction);
  EXPECT_EQ(Verdict(1), LosslessVerdict::kLossless);
  EXPECT_EQ(Verdict(2), LosslessVerdict::kContradiction);
  EXPECT_EQ(join.PortAt(2), &now[2].ports[0]) << "and no port of a configuration that may be gone";
  // Its agent falls silent.
  EXPECT_THAT(*join.Again(Nodes(), known, {"gpu-1"}, {.nodes = {1}}), ElementsAre(1));
  EXPECT_EQ(Verdict(1), LosslessVerdict::kUnproved);
}

TEST_F(CableJoinTest, NamesTheNodesThatAnotherBringsIntoDoubt) {
  topology::Fact<topology::LeafPort>& end = nodes[1].status.node.nics[0].ports[0].leaf_port;
  end = topology::LeafPort{"leaf-0", "etp1"};
  EXPECT_THAT(*join.Again(Nodes(), Switches(), {}, {.nodes = {1}}), ElementsAre(0, 1));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kUnproved);
  EXPECT_EQ(join.compared().cables[0].leaf.settings.missing(), topology::Missing::kAmbiguous);
  end = topology::LeafPort{"leaf-1", "etp1"};
  EXPECT_THAT(*join.Again(Nodes(), Switches(), {}, {.nodes = {1}}), ElementsAre(0, 1));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kLossless);
  EXPECT_TRUE(join.compared().cables[0].leaf.settings.known());
}

TEST_F(CableJoinTest, JoinsAgainWhoseSwitchOrHostComesToSayAnotherChassis) {
  std::vector<KnownSwitch> known = Switches();
  const auto again = [&](const CableJoin::Changed& changed) {
    const auto touched = join.Again(Nodes(), known, {}, changed);
    return touched.value_or(std::vector<std::size_t>{99});
  };
  const auto why = [&] { return join.compared().comparison.Of(0).findings.at(0).sentence; };
  topology::Fact<topology::LeafPort>& end = nodes[0].status.node.nics[0].ports[0].leaf_port;
  end = topology::LeafPort{"leaf-0", "etp1", "04:3f:72:00:00:01"};
  EXPECT_THAT(again({.nodes = {0}}), ElementsAre(0));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kLossless) << "the switch has said none yet";
  known[0].own_chassis = "0c:42:a1:00:00:01";
  EXPECT_THAT(again({.switches = {0}}), ElementsAre(0));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kUnproved);
  EXPECT_THAT(why(), testing::HasSubstr("has 0c:42:a1:00:00:01"));
  EXPECT_EQ(join.PortAt(0), nullptr);
  // Neither is the host's, and what is said of it is what is so now.
  known[0].own_chassis = "0c:42:a1:00:00:02";
  EXPECT_THAT(again({.switches = {0}}), ElementsAre(0));
  EXPECT_THAT(why(), testing::HasSubstr("has 0c:42:a1:00:00:02"));
  end = topology::LeafPort{"leaf-0", "etp1", "04:3f:72:00:00:09"};
  EXPECT_THAT(again({.nodes = {0}}), ElementsAre(0));
  EXPECT_THAT(why(), testing::HasSubstr("04:3f:72:00:00:09"));
  // Another node changes, and it stays so.
  nodes[1].status.node.nics[0].ports[0].rate_gbps = 200;
  EXPECT_THAT(again({.nodes = {1}}), ElementsAre(1));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kUnproved);
  end = topology::LeafPort{"leaf-0", "etp1", "0c:42:a1:00:00:02"};
  EXPECT_THAT(again({.nodes = {0}}), ElementsAre(0));
  EXPECT_EQ(Verdict(0), LosslessVerdict::kLossless);
}

// It has no name of its own to go by, or a person knows better.
TEST_F(CableJoinTest, TheChassisThatAPersonSaysCountsBeforeTheSwitchsOwn) {
  std::vector<KnownSwitch> known = Switches();
  known[0].chassis_id = "04:3f:72:00:00:01";
  known[0].own_chassis = "0c:42:a1:00:00:01";
  nodes[0].status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf-0", "etp1", "043f.7200.0001"};
  join.Begin(Nodes(), known, {});
  EXPECT_EQ(Verdict(0), LosslessVerdict::kLossless);
  nodes[0].status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf-0", "etp1", "0c:42:a1:00:00:01"};
  join.Begin(Nodes(), known, {});
  EXPECT_EQ(Verdict(0), LosslessVerdict::kUnproved);
}

TEST_F(CableJoinTest, OfANodeWithAnotherNumberOfCablesAllIsJoinedAnew) {
  nodes[1].status.node.nics.push_back(nodes[1].status.node.nics[0]);
  EXPECT_FALSE(join.Again(Nodes(), Switches(), {}, {.nodes = {1}}).has_value());
}

// An operator lives for months, and a fabric's settings change with every rollout.
TEST_F(CableJoinTest, SettingsThatNobodyHasAnyLongerAreNotKeptForGood) {
  bool refused = false;
  for (int mtu = 1000; mtu < 2000 && !refused; ++mtu) {
    nodes[0].status.lossless[0].have->mtu = mtu;
    refused = !join.Again(Nodes(), Switches(), {}, {.nodes = {0}}).has_value();
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace heddle::switches
