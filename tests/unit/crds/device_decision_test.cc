#include "crds/device_decision.h"

#include <gmock/gmock.h>

#include "crds/kept_text.h"
#include "crds/node_topology.h"

namespace heddle::crds {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
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
// However long the names are, `what_to_do` is among what is kept.
void ExpectNothingMoreToTell(std::vector<RdmaDevicePolicy> policies, const char* what_to_do) {
  const topology::Node node = NodeOfTwoRails();
  const std::vector<DeviceWish> decided = WishesOf(node, policies), told = ReadBack(decided);
  ASSERT_THAT(decided, SizeIs(2));
  EXPECT_THAT(decided[0].reason, EndsWith("…"));
  EXPECT_THAT(decided[0].reason, HasSubstr(what_to_do));
  EXPECT_EQ(decided, told);
  for (RdmaDevicePolicy& policy : policies) policy.generation = 2;
  EXPECT_EQ(WishesOf(node, policies, told), told);
}

TEST(DeviceDecision, OfANicInTwoResourcesWithLongNamesIsReadBackAsItWasDecided) {
  const std::string name(246, 'r');
  ExpectNothingMoreToTell({PolicyNamed("dgx", {{"a.dev/" + name, {}, {}, 1}, {"b.dev/" + name, {}, {}, 1}})},
                          "narrow roles or rails");
}

TEST(DeviceDecision, OfTwoEntriesWithLongNamesIsReadBackAsItWasDecided) {
  const std::string stem = "a.dev/" + std::string(240, 'r');
  ExpectNothingMoreToTell({PolicyNamed("dgx", {{stem + "0", {}, {0}, 1}, {stem + "{rail}", {}, {}, 1}})},
                          "give one with {rail} a list of rails that leaves this name out");
}

TEST(DeviceDecision, OfPoliciesWithLongNamesIsReadBackAsItWasDecided) {
  std::vector<RdmaDevicePolicy> policies;
  for (const char letter : {'a', 'b', 'c'})
    policies.push_back(PolicyNamed(std::string(250, letter), {{"heddle.dev/rail{rail}", {}, {}, 1}}));
  ExpectNothingMoreToTell(std::move(policies), "narrow nodeSelector of all but one");
}

TEST(DeviceDecision, OfLongNamesThatDifferByTheirDomainsStillSaysWhatToDo) {
  topology::Node node = NodeOfTwoRails();
  for (topology::Nic& nic : node.nics) nic.netdev = "eth-" + nic.name;
  const std::string name(246, 'r');
  RdmaDevicePolicy policy =
      PolicyNamed("dgx", {{"a.dev/" + name, {}, {0}, 1}, {"b.dev/" + name, {}, {1}, 1}});
  policy.spec.plugin = DevicePlugin::kRdmaShared;
  const std::vector<const RdmaDevicePolicy*> selecting{&policy};
  const std::vector<DeviceWish> told;
  const std::set<std::string> unreadable;
  const std::set<DevicePlugin> others{DevicePlugin::kRdmaShared};
  const auto wishes = DeviceDecision(node, told, selecting, unreadable, others).wishes();
  ASSERT_THAT(wishes, SizeIs(2));
  EXPECT_THAT(wishes[0].reason, EndsWith("…"));
  EXPECT_THAT(wishes[0].reason, HasSubstr("give another name after the slash"));
}

TEST(DeviceDecision, LeavesAShortReasonAsItIs) {
  const auto wishes = WishesOf(NodeOfTwoRails(), {PolicyNamed("one", {{"heddle.dev/rdma", {}, {}, 1}}),
                                                  PolicyNamed("two", {{"heddle.dev/rdma", {}, {}, 1}})});
  ASSERT_THAT(wishes, SizeIs(1));
  EXPECT_EQ(
      wishes[0].reason,
      "several policies name this resource: narrow nodeSelector of all but one of RdmaDevicePolicies one, "
      "two");
}

TEST(DeviceDecision, AWholeNodeThatLostANicIsNotTheNicsThatAreLeft) {
  topology::Node node = NodeOfTwoRails();
  node.gpus.emplace_back();
  RdmaDevicePolicy policy = PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}});
  policy.spec.mode = DeviceMode::kWholeNode;
  const std::vector<DeviceWish> told = WishesOf(node, {policy});
  ASSERT_THAT(told, SizeIs(1));
  const std::string lost = node.nics[1].name + ":1";
  ASSERT_THAT(told[0].ports, Contains(lost));
  topology::Node less = node;
  less.nics.pop_back();
  less.gpus[0].nic_gone = topology::LostNic{1, ""};
  EXPECT_EQ(WishesOf(less, {policy}, told), told);
  EXPECT_EQ(WishesOf(node, {policy}, told), told) << "it is back";
  // Nobody misses it: the machine has one less for good.
  less.gpus[0].nic_gone.reset();
  EXPECT_THAT(WishesOf(less, {policy}, told)[0].ports, Not(Contains(lost)));
  // The policy asks for it no more, or gives out NICs one by one.
  less.gpus[0].nic_gone = topology::LostNic{1, ""};
  policy.spec.resources[0].rails = {0};
  EXPECT_THAT(WishesOf(less, {policy}, told)[0].ports, Not(Contains(lost)));
  policy.spec.resources[0].rails.clear();
  policy.spec.mode = DeviceMode::kNics;
  EXPECT_THAT(WishesOf(less, {policy}, told)[0].ports, Not(Contains(lost)));
}

}  // namespace
}  // namespace heddle::crds
