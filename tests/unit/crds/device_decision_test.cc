#include "crds/device_decision.h"

#include <gmock/gmock.h>

#include "crds/kept_text.h"
#include "crds/node_topology.h"

namespace heddle::crds {
namespace {

using testing::EndsWith;
using testing::SizeIs;

RdmaDevicePolicy PolicyNamed(std::string name, std::vector<RdmaResource> resources) {
  RdmaDevicePolicy policy;
  policy.name = std::move(name);
  policy.generation = 1;
  policy.spec.mode = DeviceMode::kNics;
  policy.spec.resources = std::move(resources);
  return policy;
}

topology::Node NodeOfTwoRails() {
  topology::Node node;
  for (int rail = 0; rail < 2; ++rail) {
    topology::Nic nic;
    nic.name = "mlx5_" + std::to_string(rail);
    nic.transport = topology::Transport::kRoce;
    nic.role = topology::NicRole::kCompute;
    nic.rail = rail;
    nic.ports.emplace_back();
    node.nics.push_back(std::move(nic));
  }
  return node;
}

std::vector<DeviceWish> WishesOf(const topology::Node& node, const std::vector<RdmaDevicePolicy>& policies,
                                 const std::vector<DeviceWish>& told = {}) {
  std::vector<const RdmaDevicePolicy*> selecting;
  for (const RdmaDevicePolicy& policy : policies) selecting.push_back(&policy);
  const std::set<std::string> unreadable;
  const std::set<DevicePlugin> others;
  return DeviceDecision(node, told, selecting, unreadable, others).wishes();
}

// What the server has of them once they were written.
std::vector<DeviceWish> ReadBack(const std::vector<DeviceWish>& wishes) {
  NodeTopology object;
  object.name = "a";
  object.spec.devices = wishes;
  const auto back = NodeTopologyFromJson(ToJson(object));
  EXPECT_TRUE(back) << (back ? "" : back.error().message);
  return back ? back->spec.devices : std::vector<DeviceWish>{};
}

// Written and read, the same is decided: also by a generation that says nothing new, whose number is not told then.
void ExpectNothingMoreToTell(std::vector<RdmaDevicePolicy> policies) {
  const topology::Node node = NodeOfTwoRails();
  const std::vector<DeviceWish> decided = WishesOf(node, policies), told = ReadBack(decided);
  ASSERT_THAT(decided, SizeIs(2));
  EXPECT_THAT(decided[0].reason, EndsWith("…"));
  EXPECT_EQ(decided, told);
  for (RdmaDevicePolicy& policy : policies) policy.generation = 2;
  EXPECT_EQ(WishesOf(node, policies, told), told);
}

TEST(DeviceDecision, OfANicInTwoResourcesWithLongNamesIsReadBackAsItWasDecided) {
  const std::string name(246, 'r');
  ExpectNothingMoreToTell({PolicyNamed("dgx", {{"a.dev/" + name, {}, {}, 1}, {"b.dev/" + name, {}, {}, 1}})});
}

TEST(DeviceDecision, OfTwoEntriesWithLongNamesIsReadBackAsItWasDecided) {
  const std::string stem = "a.dev/" + std::string(240, 'r');
  ExpectNothingMoreToTell({PolicyNamed("dgx", {{stem + "0", {}, {0}, 1}, {stem + "{rail}", {}, {}, 1}})});
}

TEST(DeviceDecision, OfPoliciesWithLongNamesIsReadBackAsItWasDecided) {
  std::vector<RdmaDevicePolicy> policies;
  for (const char letter : {'a', 'b', 'c'})
    policies.push_back(PolicyNamed(std::string(250, letter), {{"heddle.dev/rail{rail}", {}, {}, 1}}));
  ExpectNothingMoreToTell(std::move(policies));
}

TEST(DeviceDecision, LeavesAShortReasonAsItIs) {
  const auto wishes = WishesOf(NodeOfTwoRails(), {PolicyNamed("one", {{"heddle.dev/rdma", {}, {}, 1}}),
                                                  PolicyNamed("two", {{"heddle.dev/rdma", {}, {}, 1}})});
  ASSERT_THAT(wishes, SizeIs(1));
  EXPECT_EQ(wishes[0].reason,
            "RdmaDevicePolicies one, two both name this resource: narrow nodeSelector of all but one");
}

}  // namespace
}  // namespace heddle::crds
