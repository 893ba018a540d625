#include "nodeagent/health/conditions.h"

#include <gmock/gmock.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "crds/object_meta.h"

namespace heddle::nodeagent {
namespace {

using topology::PciDistance;

crds::Condition ConditionOf(const Observation& seen, std::string_view type) {
  const auto conditions = ConditionsOf(seen);
  const crds::Condition* found = crds::FindCondition(conditions, type);
  EXPECT_NE(found, nullptr) << type;
  return found == nullptr ? crds::Condition() : *found;
}

// One compute NIC with a rail.
Observation OneRail() {
  Observation seen;
  topology::Nic nic;
  nic.name = "mlx5_0";
  nic.role = topology::NicRole::kCompute;
  nic.transport = topology::Transport::kInfiniBand;
  nic.rail = 0;
  nic.ports.emplace_back();
  seen.node.nics.push_back(nic);
  return seen;
}

TEST(RailsMeasured, SaysFromWhatTheRailsCame) {
  for (const auto& [reach, reason] :
       {std::pair(PciDistance::kPix, "PciSwitches"), std::pair(PciDistance::kPxb, "PciSwitches"),
        std::pair(PciDistance::kPhb, "HostBridges"), std::pair(PciDistance::kNode, "NumaNodes")}) {
    Observation seen = OneRail();
    seen.rail_reach = reach;
    EXPECT_EQ(ConditionOf(seen, kRailsMeasured).reason, reason);
    EXPECT_EQ(ConditionOf(seen, kRailsMeasured).status, crds::ConditionStatus::kTrue);
  }
  Observation seen = OneRail();
  seen.rail_reach = PciDistance::kPhb;
  EXPECT_EQ(ConditionOf(seen, kRailsMeasured).message,
            "from the host bridges that GPUs and NICs share: no PCIe switch is visible");
  seen.lost_gpus = "1 of 8 GPUs are gone from the PCI bus";
  EXPECT_EQ(
      ConditionOf(seen, kRailsMeasured).message,
      "from the host bridges that GPUs and NICs share: no PCIe switch is visible; 1 of 8 GPUs are gone from "
      "the PCI bus");
}

// The schema takes 1024 characters, and API servers no half ones.
TEST(Messages, KeepTheirHeadAndWholeCharactersHoweverLongTheyAre) {
  for (std::size_t blanks = 0; blanks < 3; ++blanks) {
    Observation seen = OneRail();
    std::string told = "the probe said:" + std::string(blanks, ' ');
    for (int i = 0; i < 1000; ++i) told += "…";
    seen.problems = {told, "another", "a third"};
    const std::string message = ConditionOf(seen, kDiscoveryComplete).message;
    EXPECT_LE(message.size(), 1000u);
    EXPECT_THAT(message, testing::StartsWith("the probe said:" + std::string(blanks, ' ') + "……"));
    EXPECT_THAT(message, testing::EndsWith("…; and 2 more"));
    EXPECT_NO_THROW((void)crds::Json(message).dump()) << "strict, as of UTF-8";
    seen.problems = {told};
    EXPECT_THAT(ConditionOf(seen, kDiscoveryComplete).message, testing::EndsWith("…"));
  }
}

// Compute NICs of that transport, each with one port of which nobody told the leaf.
Observation Leafless(std::initializer_list<topology::Transport> transports) {
  Observation seen;
  for (const topology::Transport transport : transports) {
    topology::Nic nic;
    nic.name = "nic" + std::to_string(seen.node.nics.size());
    nic.role = topology::NicRole::kCompute;
    nic.transport = transport;
    nic.ports.emplace_back();
    nic.ports.back().state = topology::LinkState::kActive;
    seen.node.nics.push_back(nic);
  }
  return seen;
}

TEST(LinksUp, SaysWhoseWordItIsOverEfa) {
  for (const auto& [transport, message] :
       {std::pair(topology::Transport::kEfa,
                  "all compute ports run at 400 Gb/s, as EFA's driver says whatever its link does"),
        std::pair(topology::Transport::kInfiniBand, "all compute ports run at 400 Gb/s")}) {
    Observation seen = Leafless({transport});
    seen.node.nics[0].ports[0].rate_gbps = 400;
    EXPECT_EQ(ConditionOf(seen, kLinksUp).status, crds::ConditionStatus::kTrue);
    EXPECT_EQ(ConditionOf(seen, kLinksUp).message, message);
  }
}

TEST(LeavesKnown, IsUnknownWhereEveryPortIsDown) {
  Observation seen = Leafless({topology::Transport::kRoce, topology::Transport::kRoce});
  for (topology::Nic& nic : seen.node.nics) nic.ports.at(0).state = topology::LinkState::kDown;
  const crds::Condition down = ConditionOf(seen, kLeavesKnown);
  EXPECT_EQ(down.status, crds::ConditionStatus::kUnknown);
  EXPECT_EQ(down.reason, "Unread");
  EXPECT_EQ(down.message, "every compute port is down");
}

TEST(LeavesKnown, AsksOfEachTransportWhoCouldTell) {
  using topology::Transport;
  const crds::Condition efa = ConditionOf(Leafless({Transport::kEfa, Transport::kEfa}), kLeavesKnown);
  EXPECT_EQ(efa.status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(efa.reason, "NoPlaceLabel");
  EXPECT_EQ(efa.message,
            "2 of 2 compute ports: no place label on the Node (topology.k8s.aws/network-node-layer-4 or "
            "topology.k8s.aws/network-node-layer-3) (nic0, nic1)");
  const crds::Condition roce = ConditionOf(Leafless({Transport::kRoce}), kLeavesKnown);
  EXPECT_EQ(roce.reason, "LeafUnknown");
  EXPECT_THAT(roce.message, testing::HasSubstr("the NIC's firmware has an LLDP agent of its own"));
  const crds::Condition mixed =
      ConditionOf(Leafless({Transport::kEfa, Transport::kInfiniBand}), kLeavesKnown);
  EXPECT_EQ(mixed.reason, "LeafUnknown");
  EXPECT_THAT(mixed.message,
              testing::AllOf(testing::HasSubstr("1 of 2 compute ports: no neighbour answers (nic1); 1 of 2 "),
                             testing::HasSubstr("no place label")));
}

TEST(NvlinksUp, NamesLinksThatTrainedToLessThanTheOthers) {
  Observation seen;
  seen.node.nvlink = {4, 18, 3600, {}};
  seen.slow_nvlinks = {"GPU 3: links 4, 5 trained to 100 Gb/s, others to 200"};
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).reason, "LinkSlow");
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).message, "GPU 3: links 4, 5 trained to 100 Gb/s, others to 200");
  seen.node.nvlink.exceptions = {{1, 17}, {3, 18, 3400}};
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).reason, "LinkDown");
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).message,
            "GPU 1 has 17 of 18 NVLinks up; GPU 3: links 4, 5 trained to 100 Gb/s, others to 200");
}

TEST(NvlinksUp, NamesLinksThatAreDownWhereTheDriverTellsWhich) {
  Observation seen;
  seen.node.nvlink = {4, 18, 3600, {{1, 17}, {2, 16}, {3, 17}, {5, 0}}};
  seen.inactive_nvlinks = {{1, {4}}, {2, {0, 17}}, {3, {6, 7}}, {5, {0}}};
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).message,
            "GPU 1 has 17 of 18 NVLinks up: link 4 is down; GPU 2 has 16 of 18 NVLinks up: links 0, 17 are "
            "down; GPU 3 has 17 of 18 NVLinks up; GPU 5 has 0 of 18 NVLinks up");
}

TEST(NvlinksUp, SaysWhatStandsForASpeedThatTheDriverDoesNotTell) {
  Observation seen;
  seen.node.nvlink = {4, 18, 3600, {}};
  seen.assumed_nvlink_speed = true;
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).message,
            "18 NVLinks of every GPU are up; the driver does not say how fast: 200 Gb/s a link is what "
            "generation 4 has");
  seen.node.nvlink = {0, 18, 0, {}};
  EXPECT_EQ(ConditionOf(seen, kNvlinksUp).message,
            "18 NVLinks of every GPU are up; the driver does not say how fast");
}

}  // namespace
}  // namespace heddle::nodeagent
