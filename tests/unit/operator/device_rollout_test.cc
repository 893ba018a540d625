#include "operator/device_rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace heddle::operators {
namespace {

using crds::DeviceMode;
using crds::DevicePlugin;
using crds::DeviceState;
using crds::DeviceWish;
using crds::RdmaDevicePolicy;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::NicRole;
using topology::Transport;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

RdmaDevicePolicy PolicyNamed(std::string name, std::vector<crds::RdmaResource> resources) {
  RdmaDevicePolicy policy;
  policy.name = std::move(name);
  policy.generation = 1;
  policy.spec.mode = DeviceMode::kNics;
  policy.spec.resources = std::move(resources);
  return policy;
}

topology::Nic NicNamed(std::string name, topology::Fact<int> rail, NicRole role = NicRole::kCompute,
                       Transport transport = Transport::kRoce) {
  topology::Nic nic;
  nic.name = std::move(name);
  nic.rail = rail;
  nic.role = role;
  nic.transport = transport;
  nic.ports.emplace_back();
  return nic;
}

DeviceNode NodeNamed(std::string name) {
  DeviceNode node;
  node.name = std::move(name);
  node.labels = {{"pool", "gpu"}};
  node.observed = true;
  node.node.nics = {NicNamed("mlx5_0", 0), NicNamed("mlx5_1", 1), NicNamed("mlx5_2", 1, NicRole::kStorage),
                    NicNamed("eth0", 0, NicRole::kCompute, Transport::kEthernet)};
  return node;
}

const DeviceWish* WishOf(const DeviceRollout& rollout, const std::string& node, const std::string& resource) {
  const auto& wishes = rollout.wishes.at(node);
  const auto found =
      std::find_if(wishes.begin(), wishes.end(), [&](const auto& wish) { return wish.resource == resource; });
  return found == wishes.end() ? nullptr : &*found;
}

// The agent has done all that it was told.
void Offer(DeviceNode& node, const DeviceRollout& rollout, DeviceState state = DeviceState::kOffered) {
  node.wishes = rollout.wishes.at(node.name);
  node.reports.clear();
  for (const DeviceWish& wish : node.wishes) {
    const int devices = int(wish.ports.size());
    node.reports.push_back({wish.resource, crds::EditionOf(wish), state,
                            state == DeviceState::kOffered ? "" : "the kubelet is away", devices, devices});
  }
}

std::string ReasonOf(const DeviceRollout& rollout, const std::string& policy) {
  const auto* ready = crds::FindCondition(rollout.statuses.at(policy).conditions, crds::kReady);
  return ready == nullptr ? "" : ready->reason;
}

TEST(DeviceRollout, MakesOneResourceOfAllNicsWithTheRole) {
  const auto rollout =
      DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 4}})}, {}}, {NodeNamed("a")}, {}, kNow);
  const DeviceWish* wish = WishOf(rollout, "a", "heddle.dev/rdma");
  ASSERT_NE(wish, nullptr);
  EXPECT_THAT(wish->ports, ElementsAre("mlx5_0:1", "mlx5_1:1")) << "neither storage nor what has no RDMA";
  EXPECT_THAT(wish->policies, ElementsAre("dgx"));
  EXPECT_EQ(wish->mode, DeviceMode::kNics);
  EXPECT_EQ(wish->slots, 4);
  EXPECT_EQ(wish->reason, "");
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Waiting");
}

TEST(DeviceRollout, WaitsForANodeThatItSelectsAndThatCannotBeRead) {
  RdmaDevicePolicy policy = PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 4}});
  policy.spec.node_selector = {{"pool", "gpu"}};
  std::vector<DeviceNode> nodes{NodeNamed("a")};
  Offer(nodes[0], DecideDevices({{policy}, {}}, nodes, {}, kNow));
  const std::vector<UnreadNode> unread{{"b", {{"pool", "gpu"}}, "status.nics[0].transport: what is this"},
                                       {"c", {{"pool", "cpu"}}, "status.nics[0].transport: what is this"}};
  const auto rollout = DecideDevices({{policy}, {}}, nodes, {}, kNow, unread);
  const auto& status = rollout.statuses.at("dgx");
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Waiting");
  EXPECT_EQ(status.counts.nodes, 2) << "c is not selected";
  EXPECT_EQ(status.counts.ready, 1);
  EXPECT_EQ(status.counts.waiting, 1);
  EXPECT_THAT(status.problems, ElementsAre(HasSubstr("b: cannot be read")));
  EXPECT_FALSE(rollout.wishes.contains("b")) << "it keeps what it was told";
}

TEST(DeviceRollout, MakesOneResourceOfEachRail) {
  DeviceNode node = NodeNamed("a");
  node.node.nics.push_back(NicNamed("mlx5_9", 1));
  const auto rollout =
      DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/rail{rail}", {}, {}, 1}})}, {}}, {node}, {}, kNow);
  ASSERT_EQ(rollout.wishes.at("a").size(), 2u);
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail0")->ports, ElementsAre("mlx5_0:1"));
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail1")->ports, ElementsAre("mlx5_1:1", "mlx5_9:1"));
}

TEST(DeviceRollout, TakesOnlyTheRailsThatAreNamed) {
  const auto rollout = DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {1}, 1}})}, {}},
                                     {NodeNamed("a")}, {}, kNow);
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rdma")->ports, ElementsAre("mlx5_1:1"));
}

TEST(DeviceRollout, ANicWithoutAKnownRailIsInNoResourceByRailAndSaysSo) {
  DeviceNode node = NodeNamed("a");
  node.node.nics[0].rail = topology::Missing::kAmbiguous;
  const auto rollout =
      DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/rail{rail}", {}, {}, 1}})}, {}}, {node}, {}, kNow);
  EXPECT_EQ(rollout.wishes.at("a").size(), 1u);
  const auto& status = rollout.statuses.at("dgx");
  EXPECT_EQ(status.counts.refused, 1);
  EXPECT_THAT(status.problems,
              ElementsAre("a: mlx5_0 is in no heddle.dev/rail{rail}: its rail is Ambiguous"));
}

TEST(DeviceRollout, ANodeWithoutSuchANicSaysSo) {
  const auto rollout =
      DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/mgmt", {NicRole::kManagement}, {}, 1}})}, {}},
                    {NodeNamed("a")}, {}, kNow);
  const DeviceWish* wish = WishOf(rollout, "a", "heddle.dev/mgmt");
  ASSERT_NE(wish, nullptr);
  EXPECT_THAT(wish->ports, IsEmpty());
  EXPECT_THAT(wish->reason, HasSubstr("no RDMA device of this node"));
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Refused");
}

TEST(DeviceRollout, ANicInTwoResourcesIsOfferedByNeither) {
  const auto rollout = DecideDevices({{PolicyNamed("a-rails", {{"heddle.dev/rail{rail}", {}, {}, 1}}),
                                       PolicyNamed("b-all", {{"heddle.dev/rdma", {}, {0}, 1}})},
                                      {}},
                                     {NodeNamed("a")}, {}, kNow);
  const DeviceWish* rail0 = WishOf(rollout, "a", "heddle.dev/rail0");
  EXPECT_THAT(rail0->ports, IsEmpty());
  EXPECT_EQ(
      rail0->reason,
      "mlx5_0 is in several resources, and a NIC can be in one: narrow roles or rails of all but one of "
      "heddle.dev/rail0, heddle.dev/rdma");
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rdma")->ports, IsEmpty());
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail1")->ports, ElementsAre("mlx5_1:1")) << "not concerned";
  EXPECT_EQ(ReasonOf(rollout, "a-rails"), "Conflict");
  EXPECT_EQ(ReasonOf(rollout, "b-all"), "Conflict");
}

TEST(DeviceRollout, AResourceThatTwoPoliciesNameIsOfferedByNeither) {
  const auto rollout = DecideDevices({{PolicyNamed("two", {{"heddle.dev/rdma", {}, {1}, 1}}),
                                       PolicyNamed("one", {{"heddle.dev/rdma", {}, {0}, 8}})},
                                      {}},
                                     {NodeNamed("a")}, {}, kNow);
  const DeviceWish* wish = WishOf(rollout, "a", "heddle.dev/rdma");
  EXPECT_THAT(wish->policies, ElementsAre("one", "two"));
  EXPECT_THAT(wish->ports, IsEmpty());
  EXPECT_THAT(wish->reason, HasSubstr("of all but one of RdmaDevicePolicies one, two"));
  EXPECT_EQ(rollout.statuses.at("one").counts.conflicting, 1);
  EXPECT_EQ(rollout.statuses.at("two").counts.conflicting, 1);
}

TEST(DeviceRollout, AResourceThatTwoEntriesOfAPolicyComeToIsNotOfferedWhereBothHaveNics) {
  // A storage NIC under the name of a rail, and each rail of the compute NICs; b has no rail 0, and c no storage.
  DeviceNode node = NodeNamed("a"), other = NodeNamed("b"), third = NodeNamed("c");
  other.node.nics.erase(other.node.nics.begin());
  third.node.nics.erase(third.node.nics.begin() + 2);
  const std::vector<crds::RdmaResource> entries{{"heddle.dev/rail0", {NicRole::kStorage}, {}, 4},
                                                {"heddle.dev/rail{rail}", {}, {}, 1}};
  for (const auto& resources : {entries, std::vector<crds::RdmaResource>{entries[1], entries[0]}}) {
    const auto rollout = DecideDevices({{PolicyNamed("dgx", resources)}, {}}, {node, other, third}, {}, kNow);
    const DeviceWish* rail0 = WishOf(rollout, "a", "heddle.dev/rail0");
    ASSERT_NE(rail0, nullptr);
    EXPECT_THAT(rail0->ports, IsEmpty()) << "of neither entry";
    EXPECT_THAT(rail0->policies, ElementsAre("dgx"));
    EXPECT_THAT(rail0->reason, HasSubstr(" of one policy come to this name"));
    for (const char* name : {"a", "b", "c"})
      EXPECT_THAT(WishOf(rollout, name, "heddle.dev/rail1")->ports, ElementsAre("mlx5_1:1"))
          << "not concerned";
    EXPECT_THAT(WishOf(rollout, "b", "heddle.dev/rail0")->ports, ElementsAre("mlx5_2:1"))
        << "the storage NIC alone";
    const DeviceWish* of_compute = WishOf(rollout, "c", "heddle.dev/rail0");
    EXPECT_THAT(of_compute->ports, ElementsAre("mlx5_0:1"));
    EXPECT_EQ(of_compute->reason, "") << "an entry without NICs says nothing of one that has some";
    EXPECT_EQ(ReasonOf(rollout, "dgx"), "Conflict");
    EXPECT_EQ(rollout.statuses.at("dgx").counts.conflicting, 1);
    EXPECT_THAT(rollout.statuses.at("dgx").problems,
                Contains(HasSubstr("a: heddle.dev/rail0: several entries of one policy come to this name")));
  }
}

TEST(DeviceRollout, NoOtherResourceGetsTheNicsOfAnAmbiguousOne) {
  // Without rails the literal has all of them.
  const auto rollout = DecideDevices(
      {{PolicyNamed("dgx", {{"heddle.dev/rail0", {}, {}, 1}, {"heddle.dev/rail{rail}", {}, {}, 1}})}, {}},
      {NodeNamed("a")}, {}, kNow);
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail0")->ports, IsEmpty());
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail0")->reason, HasSubstr("come to this name"));
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail1")->ports, IsEmpty());
  EXPECT_THAT(
      WishOf(rollout, "a", "heddle.dev/rail1")->reason,
      HasSubstr("mlx5_1 is in several resources, and a NIC can be in one: narrow roles or rails of all but "
                "one of heddle.dev/rail0, heddle.dev/rail1"));
}

TEST(DeviceRollout, IsReadyOnceAllIsOffered) {
  DeviceNode node = NodeNamed("a"), other = NodeNamed("b");
  other.labels["pool"] = "cpu";
  RdmaDevicePolicy policy = PolicyNamed("dgx", {{"heddle.dev/rail{rail}", {}, {}, 1}});
  policy.spec.node_selector = {{"pool", "gpu"}};
  const DevicePolicies policies{{policy}, {}};
  auto rollout = DecideDevices(policies, {node, other}, {}, kNow);
  EXPECT_THAT(rollout.wishes.at("b"), IsEmpty());
  Offer(node, rollout, DeviceState::kPending);
  rollout = DecideDevices(policies, {node, other}, {}, kNow);
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Waiting");
  EXPECT_THAT(rollout.statuses.at("dgx").problems, ElementsAre("a: heddle.dev/rail0: the kubelet is away"));
  Offer(node, rollout);
  rollout = DecideDevices(policies, {node, other}, {}, kNow);
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Offered");
  EXPECT_EQ(rollout.statuses.at("dgx").counts, (crds::DeviceCounts{1, 1, 0, 0, 0, 2, 0}));
}

TEST(DeviceRollout, IsNoSuccessWhereAnotherPluginOffersTheSameBesideHeddles) {
  DeviceNode node = NodeNamed("a");
  const DevicePolicies policies{{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}})}, {}};
  Offer(node, DecideDevices(policies, {node}, {}, kNow), DeviceState::kElsewhere);
  node.reports[0].reason = "another plugin offers heddle.dev/rdma too";
  const auto rollout = DecideDevices(policies, {node}, {}, kNow);
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Conflict");
  EXPECT_EQ(rollout.statuses.at("dgx").counts, (crds::DeviceCounts{1, 0, 0, 0, 1, 0, 0}));
  EXPECT_THAT(rollout.statuses.at("dgx").problems,
              ElementsAre("a: heddle.dev/rdma: another plugin offers heddle.dev/rdma too"));
}

TEST(DeviceRollout, WaitsForAnotherPluginUntilTheKubeletHasADeviceOfIt) {
  RdmaDevicePolicy policy = PolicyNamed("shared", {{"rdma/hca", {}, {}, 16}});
  policy.spec.plugin = DevicePlugin::kRdmaShared;
  DeviceNode node = NodeNamed("a"), other = NodeNamed("b");
  for (DeviceNode* one : {&node, &other}) {
    for (topology::Nic& nic : one->node.nics) nic.netdev = "eth-" + nic.name;
  }
  const DevicePolicies policies{{policy}, {}};
  const auto decide = [&] {
    return DecideDevices(policies, {node, other}, {DevicePlugin::kRdmaShared}, kNow);
  };
  Offer(node, decide(), DeviceState::kElsewhere);
  auto rollout = decide();
  EXPECT_EQ(rollout.statuses.at("shared").counts.ready, 1);
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Waiting") << "the agent of b has not answered";
  EXPECT_TRUE(rollout.await_plugin.empty());

  Offer(other, rollout, DeviceState::kPending);
  other.reports[0] = {"rdma/hca", {"shared", 1, {}}, DeviceState::kPending, "the kubelet lists none", 0, 0};
  rollout = decide();
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Waiting");
  EXPECT_THAT(rollout.await_plugin.at("shared"), ElementsAre("b"));
  EXPECT_EQ(crds::FindCondition(rollout.statuses.at("shared").conditions, crds::kReady)->message,
            "1 of 2 nodes wait for the plugin; b: rdma/hca: the kubelet lists none");

  // An agent of an older version, which did not look.
  other.reports[0] = {"rdma/hca", {"shared", 1, {}}, DeviceState::kElsewhere, "its plugin is RdmaShared", 0,
                      0};
  rollout = decide();
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Waiting");
  EXPECT_THAT(rollout.statuses.at("shared").problems,
              ElementsAre(HasSubstr("bring agents and operator to one version")));
  EXPECT_TRUE(rollout.await_plugin.empty()) << "nothing is wrong with the plugin's pods";

  other.reports[0].healthy = other.reports[0].total = 16;
  rollout = decide();
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Offered");
  EXPECT_EQ(rollout.statuses.at("shared").counts.devices, 16 + 2);
  EXPECT_TRUE(rollout.await_plugin.empty());
}

TEST(DeviceRollout, AGenerationThatChangesNothingKeepsTheNumber) {
  DeviceNode node = NodeNamed("a");
  DevicePolicies policies{{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}})}, {}};
  Offer(node, DecideDevices(policies, {node}, {}, kNow));
  policies.read[0].generation = 2;
  auto rollout = DecideDevices(policies, {node}, {}, kNow);
  EXPECT_EQ(rollout.wishes.at("a"), node.wishes);
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Offered");
  EXPECT_EQ(rollout.statuses.at("dgx").observed_generation, 2);
  policies.read[0].spec.resources[0].slots = 2;
  rollout = DecideDevices(policies, {node}, {}, kNow);
  EXPECT_EQ(WishOf(rollout, "a", "heddle.dev/rdma")->generation, 2);
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Waiting") << "the report speaks of the old one";
}

TEST(DeviceRollout, APolicyMadeAnewUnderItsNameIsNotAnsweredByWhatIsReportedOfTheOldOne) {
  DeviceNode node = NodeNamed("a");
  DevicePolicies policies{{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}})}, {}};
  policies.read[0].uid = "old";
  Offer(node, DecideDevices(policies, {node}, {}, kNow));
  policies.read[0].uid = "new";
  EXPECT_EQ(DecideDevices(policies, {node}, {}, kNow).wishes.at("a"), node.wishes) << "it says the same";
  policies.read[0].spec.resources[0].slots = 2;
  auto rollout = DecideDevices(policies, {node}, {}, kNow);
  EXPECT_EQ(WishOf(rollout, "a", "heddle.dev/rdma")->generation, 1);
  EXPECT_EQ(WishOf(rollout, "a", "heddle.dev/rdma")->policy_uid, "new");
  EXPECT_EQ(ReasonOf(rollout, "dgx"), "Waiting") << "the report speaks of the old one";
  Offer(node, rollout);
  EXPECT_EQ(ReasonOf(DecideDevices(policies, {node}, {}, kNow), "dgx"), "Offered");
}

TEST(DeviceRollout, ANodeThatHasNotPublishedKeepsWhatItWasTold) {
  DeviceNode node = NodeNamed("a");
  const DevicePolicies policies{{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}})}, {}};
  Offer(node, DecideDevices(policies, {node}, {}, kNow));
  node.observed = false;
  node.node.nics.clear();
  const auto rollout = DecideDevices(policies, {node}, {}, kNow);
  EXPECT_EQ(rollout.wishes.at("a"), node.wishes);
  EXPECT_EQ(rollout.statuses.at("dgx").counts.waiting, 1);
}

TEST(DeviceRollout, WhatAnUnreadablePolicyToldIsKept) {
  DeviceNode node = NodeNamed("a");
  Offer(node, DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}})}, {}}, {node}, {}, kNow));
  const auto kept = DecideDevices({{}, {{"dgx", {}}}}, {node}, {}, kNow);
  EXPECT_EQ(kept.wishes.at("a"), node.wishes);
  const auto gone = DecideDevices({{}, {}}, {node}, {}, kNow);
  EXPECT_THAT(gone.wishes.at("a"), IsEmpty());
}

TEST(DeviceRollout, WhatAnUnreadablePolicyToldIsToldInNoOtherName) {
  DeviceNode node = NodeNamed("a");
  Offer(node, DecideDevices({{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {0}, 1}})}, {}}, {node}, {}, kNow));
  // Its NIC in another resource, and its resource with another NIC.
  const auto rollout = DecideDevices({{PolicyNamed("nic", {{"heddle.dev/rail{rail}", {}, {}, 1}}),
                                       PolicyNamed("name", {{"heddle.dev/rdma", {}, {1}, 8}})},
                                      {{"dgx", {}}}},
                                     {node}, {}, kNow);
  EXPECT_EQ(*WishOf(rollout, "a", "heddle.dev/rdma"), node.wishes[0]);
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail0")->ports, IsEmpty());
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail0")->reason,
              EndsWith("of all but one of heddle.dev/rail0, heddle.dev/rdma"));
  EXPECT_THAT(WishOf(rollout, "a", "heddle.dev/rail1")->ports, ElementsAre("mlx5_1:1")) << "not concerned";
  EXPECT_EQ(ReasonOf(rollout, "nic"), "Conflict");
  EXPECT_EQ(ReasonOf(rollout, "name"), "Conflict");
  EXPECT_THAT(
      rollout.statuses.at("name").problems,
      ElementsAre("a: heddle.dev/rdma: it stays as a policy had it that cannot be read: narrow nodeSelector "
                  "of one of both, or correct RdmaDevicePolicy dgx"));
}

TEST(DeviceRollout, AConflictWithAPolicyThatCannotBeReadAnyMoreStays) {
  DeviceNode node = NodeNamed("a");
  const RdmaDevicePolicy one = PolicyNamed("one", {{"heddle.dev/rdma", {}, {0}, 8}}),
                         two = PolicyNamed("two", {{"heddle.dev/rdma", {}, {1}, 1}});
  Offer(node, DecideDevices({{one, two}, {}}, {node}, {}, kNow), DeviceState::kRefused);
  const auto rollout = DecideDevices({{one}, {{"two", {}}}}, {node}, {}, kNow);
  EXPECT_EQ(rollout.wishes.at("a"), node.wishes);
  EXPECT_EQ(ReasonOf(rollout, "one"), "Conflict");
}

TEST(DeviceRollout, TheOtherPluginOfAnUnreadablePolicyStaysAlone) {
  RdmaDevicePolicy shared = PolicyNamed("shared", {{"rdma/hca", {}, {0}, 16}});
  shared.spec.plugin = DevicePlugin::kRdmaShared;
  RdmaDevicePolicy sriov = PolicyNamed("sriov", {{"rdma/vf", {}, {1}, 1}});
  sriov.spec.plugin = DevicePlugin::kSriov;
  const std::set<DevicePlugin> both{DevicePlugin::kRdmaShared, DevicePlugin::kSriov};
  DeviceNode node = NodeNamed("a");
  for (topology::Nic& nic : node.node.nics) nic.netdev = "eth-" + nic.name;
  Offer(node, DecideDevices({{sriov}, {}}, {node}, both, kNow));
  const auto rollout = DecideDevices({{shared}, {{"sriov", {}}}}, {node}, both, kNow);
  EXPECT_EQ(*WishOf(rollout, "a", "rdma/vf"), node.wishes[0]);
  EXPECT_THAT(WishOf(rollout, "a", "rdma/hca")->reason,
              HasSubstr("another policy runs sriov-network-device-plugin on this node"));
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Conflict");
}

TEST(DeviceRollout, CountsWhatIsUnhealthy) {
  DeviceNode node = NodeNamed("a");
  const DevicePolicies policies{{PolicyNamed("dgx", {{"heddle.dev/rdma", {}, {}, 1}})}, {}};
  Offer(node, DecideDevices(policies, {node}, {}, kNow));
  node.reports[0].healthy = 1;
  const auto rollout = DecideDevices(policies, {node}, {}, kNow);
  EXPECT_EQ(rollout.statuses.at("dgx").counts.devices, 1);
  EXPECT_EQ(rollout.statuses.at("dgx").counts.unhealthy, 1);
}

TEST(DeviceRollout, AnotherPluginThatCannotRunIsRefusedWithWhatToSet) {
  RdmaDevicePolicy policy = PolicyNamed("shared", {{"rdma/hca", {}, {}, 16}});
  policy.spec.plugin = DevicePlugin::kRdmaShared;
  DeviceNode node = NodeNamed("a");
  for (topology::Nic& nic : node.node.nics) nic.netdev = "eth-" + nic.name;
  auto rollout = DecideDevices({{policy}, {}}, {node}, {}, kNow);
  EXPECT_THAT(WishOf(rollout, "a", "rdma/hca")->reason, HasSubstr("set otherPlugins.rdmaShared.image"));
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Refused");
  rollout = DecideDevices({{policy}, {}}, {node}, {DevicePlugin::kRdmaShared}, kNow);
  EXPECT_EQ(WishOf(rollout, "a", "rdma/hca")->reason, "");
}

TEST(DeviceRollout, OnOneNodeOneOtherPluginRuns) {
  RdmaDevicePolicy shared = PolicyNamed("shared", {{"rdma/hca", {}, {0}, 16}});
  shared.spec.plugin = DevicePlugin::kRdmaShared;
  RdmaDevicePolicy sriov = PolicyNamed("sriov", {{"rdma/vf", {}, {1}, 1}});
  sriov.spec.plugin = DevicePlugin::kSriov;
  DeviceNode node = NodeNamed("a");
  for (topology::Nic& nic : node.node.nics) nic.netdev = "eth-" + nic.name;
  const auto rollout =
      DecideDevices({{shared, sriov}, {}}, {node}, {DevicePlugin::kRdmaShared, DevicePlugin::kSriov}, kNow);
  EXPECT_EQ(WishOf(rollout, "a", "rdma/hca")->reason, "");
  EXPECT_THAT(WishOf(rollout, "a", "rdma/vf")->reason, HasSubstr("one plugin for each node"));
  EXPECT_EQ(ReasonOf(rollout, "sriov"), "Conflict");
}

// tests/cluster/plugin_config asks the plugin itself.
TEST(DeviceRollout, TheSharedPluginGetsNoTwoResourcesOfOneName) {
  RdmaDevicePolicy policy = PolicyNamed("shared", {{"a.dev/hca", {}, {0}, 16}, {"b.dev/hca", {}, {1}, 16}});
  policy.spec.plugin = DevicePlugin::kRdmaShared;
  DeviceNode node = NodeNamed("a");
  for (topology::Nic& nic : node.node.nics) nic.netdev = "eth-" + nic.name;
  auto rollout = DecideDevices({{policy}, {}}, {node}, {DevicePlugin::kRdmaShared}, kNow);
  for (const char* name : {"a.dev/hca", "b.dev/hca"})
    EXPECT_THAT(
        WishOf(rollout, "a", name)->reason,
        EndsWith("by their domains only: give another name after the slash to all but one of a.dev/hca, "
                 "b.dev/hca"));
  EXPECT_EQ(ReasonOf(rollout, "shared"), "Conflict");
  policy.spec.plugin = DevicePlugin::kSriov;
  rollout = DecideDevices({{policy}, {}}, {node}, {DevicePlugin::kSriov}, kNow);
  EXPECT_EQ(WishOf(rollout, "a", "a.dev/hca")->reason, "");
}

TEST(DeviceRollout, ANicThatAnotherPluginCannotFindIsLeftOutAndSaysSo) {
  RdmaDevicePolicy policy = PolicyNamed("shared", {{"rdma/hca", {}, {}, 16}});
  policy.spec.plugin = DevicePlugin::kRdmaShared;
  DeviceNode node = NodeNamed("a");
  node.node.nics[0].netdev = "eth0";
  const auto rollout = DecideDevices({{policy}, {}}, {node}, {DevicePlugin::kRdmaShared}, kNow);
  EXPECT_THAT(WishOf(rollout, "a", "rdma/hca")->ports, ElementsAre("mlx5_0:1"));
  EXPECT_THAT(rollout.statuses.at("shared").problems,
              ElementsAre(HasSubstr("mlx5_1 has no interface, by which k8s-rdma-shared-dev-plugin")));
}

}  // namespace
}  // namespace heddle::operators
