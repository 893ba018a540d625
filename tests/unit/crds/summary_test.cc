#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/unit/crds/samples.h"

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using topology::Missing;

TEST(NodeSummary, AnswersForAWholeMachine) {
  EXPECT_EQ(Summarise(samples::DgxH100().status.node),
            (NodeSummary{"NVIDIA DGX H100", "8", "node", "8/8", "leaf-su03-rail0-ib-switch…rail7-ib-switch",
                         "InfiniBand"}));
}

TEST(NodeSummary, CountsWhatIsNotThere) {
  topology::Node node = samples::DgxH100().status.node;
  node.gpus[2].healthy = false;
  node.nics[5].ports[0].state = topology::LinkState::kDown;
  node.nics[5].ports[0].usable_gbps = 0;
  node.nvlink_domain = topology::NvlinkMembership{"3f2a91c0-1111-2222-3333-444455556666.32766", true};
  const NodeSummary summary = Summarise(node);
  EXPECT_EQ(summary.gpus, "7/8");
  EXPECT_EQ(summary.rails, "7/8");
  EXPECT_EQ(summary.nvlink_domain, "3f2a91c0.32766");
  node.nics[5].rail = Missing::kAmbiguous;
  EXPECT_EQ(Summarise(node).rails, "7/7?");
}

TEST(NodeSummary, CountsARailWhoseNicIsGone) {
  topology::Node node = samples::DgxH100().status.node;
  node.nics.erase(node.nics.begin() + 5);
  EXPECT_EQ(Summarise(node).rails, "7/7") << "an agent that does not say so";
  node.gpus[5].nic_gone = topology::LostNic{5, ""};
  EXPECT_EQ(Summarise(node).rails, "7/8");
  node.gpus[4].nic_gone = topology::LostNic{4, "0000:9b:00.0"};
  EXPECT_EQ(Summarise(node).rails, "7/8") << "another one of rail 4 is left";
}

TEST(NodeSummary, TellsUnknownFromNotApplicable) {
  EXPECT_EQ(Summarise(topology::Node{}), (NodeSummary{"?", "?", "?", "-", "-", "-"}));
  topology::Node node;
  topology::Nic nic;
  nic.role = topology::NicRole::kCompute;
  nic.transport = topology::Transport::kRoce;
  nic.ports = {topology::NicPort{}};
  node.nics = {nic};
  node.nvlink_domain = Missing::kNotApplicable;
  EXPECT_EQ(Summarise(node), (NodeSummary{"?", "0", "-", "?", "?", "RoCE"}));
  node.nics[0].rail = Missing::kNotApplicable;
  node.nics[0].ports[0].leaf_port = Missing::kNotApplicable;
  node.nics.push_back(node.nics[0]);
  node.nics[1].transport = topology::Transport::kEfa;
  EXPECT_EQ(Summarise(node), (NodeSummary{"?", "0", "-", "-", "-", "Mixed"}));
}

TEST(NodeSummary, CountsAsOfferedWhatPodsCanGet) {
  EXPECT_EQ(DevicesSummary({}), "?");
  EXPECT_EQ(
      DevicesSummary(
          {{"heddle.dev/a", {"dgx", 1, {}}, DeviceState::kOffered, "", 8, 8},
           {"heddle.dev/b", {"dgx", 1, {}}, DeviceState::kPending, "the kubelet is away", 8, 8},
           {"heddle.dev/c", {"dgx", 1, {}}, DeviceState::kRefused, "no NIC", 0, 0},
           {"rdma/hca", {"shared", 1, {}}, DeviceState::kElsewhere, "its plugin is RdmaShared", 63, 63}}),
      "2/4");
  EXPECT_EQ(
      DevicesSummary(
          {{"heddle.dev/a", {"dgx", 1, {}}, DeviceState::kElsewhere, "another plugin offers it", 0, 8}}),
      "0/1");
}

TEST(NodeSummary, ShortensLeafNames) {
  const auto leaf = [](const std::vector<std::string>& leaves) {
    topology::Node node;
    for (const std::string& name : leaves) {
      topology::Nic nic;
      nic.role = topology::NicRole::kCompute;
      nic.ports = {topology::NicPort{}};
      nic.ports[0].leaf_port = topology::LeafPort{name, "1"};
      node.nics.push_back(nic);
    }
    return Summarise(node).leaf;
  };
  EXPECT_EQ(leaf({"tor-1", "tor-1"}), "tor-1");
  EXPECT_EQ(leaf({"tor-b", "tor-a"}), "tor-a,tor-b");
  EXPECT_EQ(leaf({"tor-ä", "tor-z"}), "tor-z,tor-ä");  // by bytes, on every processor
  EXPECT_EQ(leaf({"su0-r1", "su0-r10", "su0-r2", "su0-r0"}), "su0-r0…r10");
  EXPECT_EQ(leaf({"a", "b", "c"}), "a…c");
  EXPECT_EQ(leaf({"leaf.rack-17.site-berlin", "leaf.rack-18.site-berlin"}),
            "leaf.rack-17.site-berlin…18.site-berlin");
}

TEST(FabricSummary, CountsAreWholeAndListsHoldNoHosts) {
  topology::Fabric fabric;
  fabric.transport = topology::Transport::kInfiniBand;
  fabric.rails = 8;
  fabric.leaves = {{"su0-r0", 0, 0, 0, {0}, 400, 400},
                   {"su0-r1", Missing::kAmbiguous, 0, topology::kNone, {}, 400, 0}};
  fabric.spines = {{"spine-0", 2, {}}};
  fabric.units = {{"su-0", {0}, {0}}};
  fabric.domains = {{"gpu-0", {0}, 8, false}, {"rack.1", {0, 1}, 72, true}};
  topology::FabricNode node;
  node.node = samples::DgxH100().status.node;
  node.node.nics.resize(2);
  node.node.nics[0].ports[0].leaf_port = topology::LeafPort{"su0-r0", "1"};
  node.node.nics[1].ports[0].leaf_port = topology::LeafPort{"su0-r0", "2"};
  fabric.nodes = {node};
  for (int i = 0; i < 100; ++i) fabric.faults.push_back({"gpu-0", "mlx5_0", 1, {"a", "1"}, "b", "wrong"});
  const FabricStatus status = Summarise(fabric);
  EXPECT_EQ(status.counts, (FabricCounts{1, 8, 1, 2, 1, 2, 100}));
  EXPECT_THAT(status.units, ElementsAre(UnitSummary{"su-0", 1, {"su0-r0"}}));
  EXPECT_THAT(status.leaves, ElementsAre(LeafSummary{"su0-r0", 0, 0, "su-0", 400, 400, 1},
                                         LeafSummary{"su0-r1", Missing::kAmbiguous, 0, "", 400, 0, 0}));
  EXPECT_THAT(status.nvlink_domains, ElementsAre(NvlinkDomainSummary{"rack.1", 2, 72}));
  EXPECT_EQ(status.faults.size(), 64U);
}

TEST(FabricSummary, OfAFaultThatNamesMuchIsReadBackAsItWasMade) {
  topology::Fabric fabric;
  fabric.faults.push_back({"gpu-0", "mlx5_0", 1, {"a", "1"}, "b", std::string(600, 'x')});
  Fabric object;
  object.name = "roce";
  object.status = Summarise(fabric);
  const auto back = FabricFromJson(ToJson(object));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->status.faults, object.status.faults);
}

TEST(GangSummary, SaysTheFurthestState) {
  GangSpec spec;
  spec.pods = 32;
  GangStatus status;
  status.progress = {3, 17, 31};
  const auto summary_with = [&](std::string_view type) {
    SetCondition(status.conditions, {std::string(type), ConditionStatus::kTrue, "Because", "", 0, {}});
    return Summarise(spec, status);
  };
  EXPECT_EQ(Summarise(spec, status), "Collecting 3/32");
  EXPECT_EQ(summary_with(kCollected), "Planning");
  status.reason = "NotEnoughFree";
  EXPECT_EQ(Summarise(spec, status), "Waiting: NotEnoughFree");
  status.reason.clear();
  EXPECT_EQ(summary_with(kPlanned), "Releasing 17/32");
  EXPECT_EQ(summary_with(kReleased), "Starting 31/32");
  EXPECT_EQ(summary_with(kRunning), "Running 31/32");
  status.reason = "NodeLost";
  EXPECT_EQ(Summarise(spec, status), "Running 31/32: NodeLost");
  status.reason = "NotEnoughFree";
  EXPECT_EQ(summary_with(kRepairing), "Repairing 31/32");
  EXPECT_EQ(summary_with(kDegraded), "Degraded: NotEnoughFree");
  EXPECT_EQ(summary_with(kEnded), "Ended: NotEnoughFree");
}

TEST(GangName, IsAlwaysADnsLabel) {
  EXPECT_EQ(GangName({.owner = {"batch/v1", "Job", "llama", "2f0e6a3c-5b0d-4c58"}, .attempt = 3}),
            "llama-2f0e6a3c-3");
  EXPECT_EQ(GangName({}), "gang--0");
  const std::string name =
      GangName({.owner = {"batch/v1", "Job", std::string(300, 'a'), "2f0e6a3c-5b0d-4c58"}, .attempt = 12});
  EXPECT_EQ(name.size(), 63U);
  EXPECT_TRUE(name.ends_with("a-2f0e6a3c-12"));
  EXPECT_EQ(GangName({.owner = {"", "", "My.Job", "2F0E6A3C-5"}}), "my-job-2f0e6a3c-0");
}

TEST(GangName, TellsTheGroupsOfOneOwnerApart) {
  GangSpec spec{.owner = {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve", "2f0e6a3c-5b0d"},
                .group = "LeaderWorkerSet/serve/1"};
  EXPECT_EQ(GangName(spec), "serve-1-2f0e6a3c-0");
  EXPECT_EQ(GangTitle(spec), "serve/1");
  spec = {.owner = {"v1", "Pod", "any-of-them", "9a0e6a3c-5b0d"}, .group = "Pods/train"};
  EXPECT_EQ(GangName(spec), "train-pods-0") << "whichever pod stands for them";
  EXPECT_EQ(GangTitle({.owner = {"batch/v1", "Job", "llama", "u"}}), "llama");
}

TEST(GangName, TellsGroupsApartWhoseTitlesDifferInWhatNoNameCanHold) {
  const std::string cut(58, 'a');
  const std::vector<std::string> titles{"train-a", "train_a", "train.a", "Train-A", cut + "1", cut + "2"};
  std::set<std::string> names;
  for (const std::string& title : titles) {
    const std::string name = GangName({.owner = {"v1", "Pod", "p", "u"}, .group = "Pods/" + title});
    EXPECT_LE(name.size(), 63U);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), titles.size());
  EXPECT_TRUE(names.contains("train-a-pods-0")) << "what fits is as it was";
  const std::string set(50, 's');
  const auto of_set = [&set](const char* index) {
    return GangName({.owner = {"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", set, "2f0e6a3c-5b0d"},
                     .group = "LeaderWorkerSet/" + set + "/" + index});
  };
  EXPECT_NE(of_set("1"), of_set("10"));
  EXPECT_NE(of_set("10"), of_set("11"));
}

TEST(Placement, ColumnsAndRowsSayTheSame) {
  const std::vector<PlacedPod> rows{{"b", 0x0f, {"c", "d"}}, {"a", 0xf0, {}}, {"b", 0xf0, {"c", "d"}}};
  const Placement columns = ToColumns(rows, 9);
  EXPECT_EQ(columns.epoch, 9);
  EXPECT_THAT(columns.node_names, ElementsAre("b", "a", "c", "d"));
  EXPECT_THAT(columns.nodes, ElementsAre(0, 1, 0));
  EXPECT_THAT(columns.substitutes, ElementsAre(0, -1, 0));
  EXPECT_EQ(ToRows(columns), rows);
  const Placement whole = ToColumns({{"a", 0, {}}, {"b", 0, {}}}, 1);
  EXPECT_TRUE(whole.gpus.empty());
  EXPECT_TRUE(whole.substitutes.empty());
  EXPECT_EQ(ToRows(whole).size(), 2U);
}

TEST(Placement, ARankWithoutASlotIsUnderANameThatNoNodeHas) {
  const std::vector<PlacedPod> rows{{"a", 0x0f, {"c"}}, {}, {"b", 0xf0, {}}};
  EXPECT_FALSE(rows[1].has_slot());
  const Placement columns = ToColumns(rows, 1);
  EXPECT_THAT(columns.node_names, ElementsAre("a", "-", "b", "c"));
  EXPECT_THAT(columns.nodes, ElementsAre(0, 1, 2));
  EXPECT_THAT(columns.gpus, ElementsAre(0x0fu, 0u, 0xf0u));
  EXPECT_EQ(ToRows(columns), rows);
  const Placement nobody = ToColumns({{}, {}}, 1);
  EXPECT_THAT(nobody.nodes, ElementsAre(0, 0));
  EXPECT_THAT(nobody.node_names, ElementsAre("-"));
  EXPECT_EQ(ToRows(nobody), std::vector<PlacedPod>(2));
}

TEST(Placement, ManyDifferentSubstitutesStayWithinTheLimit) {
  std::vector<PlacedPod> rows;
  for (int i = 0; i < 5000; ++i) rows.push_back({"n" + std::to_string(i), 1, {"n" + std::to_string(i + 1)}});
  const Placement placement = ToColumns(rows, 1);
  EXPECT_EQ(placement.substitute_sets.size(), 4096U);
  EXPECT_EQ(placement.substitutes[4999], -1);
  EXPECT_EQ(ToRows(placement)[4095].substitutes.size(), 1U);
}

TEST(Conditions, TimeMovesOnlyWithTheStatus) {
  std::vector<Condition> conditions;
  const Condition ready{"Ready", ConditionStatus::kTrue, "Observed", "all well", 1, samples::At(10)};
  EXPECT_TRUE(SetCondition(conditions, ready));
  Condition again = ready;
  again.last_transition = samples::At(20);
  EXPECT_FALSE(SetCondition(conditions, again));
  again.message = "still well";
  EXPECT_TRUE(SetCondition(conditions, again));
  EXPECT_EQ(conditions[0].last_transition, samples::At(10));
  again.status = ConditionStatus::kFalse;
  EXPECT_TRUE(SetCondition(conditions, again));
  EXPECT_EQ(conditions[0].last_transition, samples::At(20));
  EXPECT_TRUE(SetCondition(conditions, {"Cabled", ConditionStatus::kUnknown, "X", "", 0, {}}));
  EXPECT_EQ(conditions[0].type, "Cabled");
  EXPECT_FALSE(IsTrue(conditions, "Ready"));
  EXPECT_EQ(FindCondition(conditions, "Gone"), nullptr);
}

}  // namespace
}  // namespace heddle::crds
