#include "nodeagent/health/conditions.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace heddle::nodeagent
