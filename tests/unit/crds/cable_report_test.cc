#include "crds/cable_report.h"

#include <gtest/gtest.h>

#include "crds/node_topology.h"
#include "tests/support/builders.h"

namespace heddle::crds {
namespace {

using lossless::LosslessVerdict;

TEST(CountedPercent, IsLeftToThePolicy) {
  EXPECT_EQ(CountedPercent(CountedCables::kAll, LosslessVerdict::kContradiction), 100);
  EXPECT_EQ(CountedPercent(CountedCables::kPreferLossless, LosslessVerdict::kContradiction), 50);
  EXPECT_EQ(CountedPercent(CountedCables::kPreferLossless, LosslessVerdict::kUnproved), 100);
  EXPECT_EQ(CountedPercent(CountedCables::kNotContradicting, LosslessVerdict::kContradiction), 0);
  EXPECT_EQ(CountedPercent(CountedCables::kNotContradicting, LosslessVerdict::kUnproved), 100);
  EXPECT_EQ(CountedPercent(CountedCables::kLosslessOnly, LosslessVerdict::kUnproved), 0);
  for (const auto counted : {CountedCables::kAll, CountedCables::kPreferLossless,
                             CountedCables::kNotContradicting, CountedCables::kLosslessOnly}) {
    EXPECT_EQ(CountedPercent(counted, LosslessVerdict::kLossless), 100) << CountedCablesName(counted);
    EXPECT_EQ(ParseCountedCables(CountedCablesName(counted)), counted);
  }
}

NodeTopology WithTwoNics() {
  NodeTopology object;
  object.name = "gpu-017";
  object.status.node.name = "gpu-017";
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    topology::Nic nic;
    nic.name = name;
    nic.transport = topology::Transport::kRoce;
    nic.role = topology::NicRole::kCompute;
    nic.ports.push_back(
        {.number = 1, .state = topology::LinkState::kActive, .rate_gbps = 400, .usable_gbps = 400});
    object.status.node.nics.push_back(nic);
  }
  object.status.hash = topology::ContentHash(object.status.node);
  return object;
}

TEST(CountCables, TakesBandwidthFromThePortsThatCountLess) {
  NodeTopology object = WithTwoNics();
  object.spec.cables = {{{"mlx5_1:1"}, LosslessVerdict::kContradiction, 50, "the switch has no PFC on 3"}};
  const std::string before = object.status.hash;
  CountCables(object);
  const auto& nics = object.status.node.nics;
  EXPECT_EQ(nics[0].ports[0].usable_gbps, 400);
  EXPECT_EQ(nics[0].ports[0].fault, topology::LinkFault::kNone);
  EXPECT_EQ(nics[1].ports[0].usable_gbps, 200);
  EXPECT_EQ(nics[1].ports[0].fault, topology::LinkFault::kNotLossless);
  EXPECT_EQ(nics[1].ports[0].reason, "the switch has no PFC on 3");
  EXPECT_NE(object.status.hash, before);
  EXPECT_EQ(object.status.hash, topology::ContentHash(object.status.node));
  EXPECT_EQ(topology::Check(object.status.node), std::vector<std::string>{});
}

TEST(CountCables, LeavesTheFaultThatTheAgentSaw) {
  NodeTopology object = WithTwoNics();
  topology::NicPort& port = object.status.node.nics[0].ports[0];
  port.fault = topology::LinkFault::kErrors;
  port.reason = "130 symbol errors in an hour";
  port.usable_gbps = 200;
  object.spec.cables = {{{"mlx5_0:1"}, LosslessVerdict::kUnproved, 0, ""}};
  CountCables(object);
  EXPECT_EQ(port.usable_gbps, 0);
  EXPECT_EQ(port.fault, topology::LinkFault::kErrors);
  EXPECT_EQ(port.reason, "130 symbol errors in an hour");
}

TEST(CountCables, ChangesNothingWhereAllCountWhole) {
  NodeTopology object = WithTwoNics();
  object.spec.cables = {{{"mlx5_0:1", "mlx5_1:1"}, LosslessVerdict::kLossless, 100, ""},
                        {{"mlx5_9:1"}, LosslessVerdict::kContradiction, 0, "of a NIC that is gone"}};
  NodeTopology same = object;
  CountCables(same);
  EXPECT_EQ(same, object);
}

TEST(CableReports, AreReadAsTheyWereWritten) {
  NodeTopology object = WithTwoNics();
  object.spec.cables = {{{"mlx5_0:1"}, LosslessVerdict::kLossless, 100, ""},
                        {{"mlx5_1:1"}, LosslessVerdict::kContradiction, 0, "host 26, switch 0"}};
  const auto read = NodeTopologyFromJson(ToJson(object));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spec.cables, object.spec.cables);
  const auto own = OwnNodeTopologyFromJson(ToJson(object));
  ASSERT_TRUE(own);
  EXPECT_EQ(own->object.spec.cables, object.spec.cables);
  EXPECT_EQ(own->not_understood, std::vector<std::string>{});
}

TEST(CableReports, OfANewerOperatorAreNamedByTheAgent) {
  NodeTopology object = WithTwoNics();
  Json json = ToJson(object);
  json["spec"]["cables"] = Json::array({{{"ports", {"mlx5_0:1"}}, {"verdict", "Perhaps"}}});
  const auto own = OwnNodeTopologyFromJson(json);
  ASSERT_TRUE(own);
  ASSERT_EQ(own->not_understood.size(), 1u);
  EXPECT_EQ(own->not_understood[0].rfind("spec.cables[0].verdict", 0), 0u) << own->not_understood[0];
}

}  // namespace
}  // namespace heddle::crds
