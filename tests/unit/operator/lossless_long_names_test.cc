// What DecideRollout says where names are longer than what the object keeps of a sentence.
#include <gmock/gmock.h>

#include "crds/node_topology.h"
#include "operator/lossless_rollout.h"

namespace heddle::operators {
namespace {

TEST(LosslessRollout, TellsOfPoliciesWithLongNamesWhatIsReadBack) {
  LosslessPolicies policies;
  for (const char letter : {'a', 'b', 'c'}) {
    crds::LosslessPolicy policy;
    policy.name = std::string(250, letter);
    policies.read.push_back(std::move(policy));
  }
  topology::Nic nic;
  nic.name = "mlx5_0";
  nic.rail = 0;
  nic.transport = topology::Transport::kRoce;
  nic.role = topology::NicRole::kCompute;
  nic.ports.emplace_back();
  LosslessNode node;
  node.name = "a";
  node.node.nics = {nic};
  crds::NodeTopology object;
  object.name = node.name;
  object.spec.lossless = DecideRollout(policies, {node}, base::WallTime{}).wishes.at("a");
  ASSERT_EQ(object.spec.lossless.size(), 1u);
  EXPECT_THAT(object.spec.lossless[0].reason, testing::EndsWith("…"));
  const auto back = crds::NodeTopologyFromJson(crds::ToJson(object));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->spec.lossless, object.spec.lossless);
}

}  // namespace
}  // namespace heddle::operators
