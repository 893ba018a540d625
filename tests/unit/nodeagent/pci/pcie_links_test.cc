#include "nodeagent/pci/pcie_links.h"

#include <gmock/gmock.h>

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kRoot = "0000:15:01.0";
constexpr const char* kUpper = "0000:16:00.0";  // of the switch, towards the host
constexpr const char* kToNic = "0000:17:00.0";
constexpr const char* kToGpu = "0000:17:01.0";
constexpr const char* kNic = "0000:18:00.0";
constexpr const char* kGpu = "0000:1b:00.0";

// A root port, a switch, and a NIC and a GPU below it, all at 32 GT/s on 16 lanes.
struct Bed {
  PciTree tree;
  topology::Node node;

  Bed() {
    Add(kRoot, {});
    Add(kUpper, {kRoot});
    Add(kToNic, {kRoot, kUpper});
    Add(kToGpu, {kRoot, kUpper});
    Add(kNic, {kRoot, kUpper, kToNic});
    Add(kGpu, {kRoot, kUpper, kToGpu});
    node.gpus.emplace_back();
    node.gpus[0].index = 3;
    node.gpus[0].pci = kGpu;
    node.nics.emplace_back();
    node.nics[0].name = "mlx5_3";
    node.nics[0].pci = kNic;
    node.nics[0].role = topology::NicRole::kCompute;
  }
  void Add(const char* address, std::vector<std::string> bridges) {
    PciDevice device;
    device.address = address;
    device.bridges = std::move(bridges);
    device.link = {32000, 16, 32000, 16};
    tree.devices.emplace(address, device);
  }
  PciLink& Link(const char* address) { return tree.devices.find(address)->second.link; }
  std::vector<std::string> Faults() const {
    return PcieFaults(tree, node).value_or(std::vector<std::string>{"nothing could be judged"});
  }
};

TEST(PcieLinks, AreFullWhereBothEndsDoAllTheyCan) {
  EXPECT_THAT(Bed().Faults(), IsEmpty());
}

TEST(PcieLinks, LackLanes) {
  Bed bed;
  bed.Link(kGpu).width = bed.Link(kToGpu).width = 8;
  EXPECT_THAT(bed.Faults(), ElementsAre("GPU 3 (0000:1b:00.0) has 8 of 16 PCIe lanes"));
  bed = Bed();
  bed.Link(kUpper).width = bed.Link(kRoot).width = 4;
  EXPECT_THAT(bed.Faults(),
              ElementsAre("the PCIe switch at 0000:16:00.0 (above GPU 3, mlx5_3) has 4 of 16 PCIe lanes"));
}

TEST(PcieLinks, AreFullInASlotThatHasNoMoreLanes) {
  Bed bed;
  bed.Link(kNic).width = bed.Link(kToNic).width = bed.Link(kToNic).max_width = 8;
  EXPECT_THAT(bed.Faults(), IsEmpty());
  bed.Link(kNic).speed = bed.Link(kToNic).speed = bed.Link(kToNic).max_speed = 16000;
  EXPECT_THAT(bed.Faults(), IsEmpty());
}

TEST(PcieLinks, OfAnIdleGpuMayBeSlow) {
  Bed bed;
  bed.Link(kGpu).speed = bed.Link(kToGpu).speed = 2500;
  EXPECT_THAT(bed.Faults(), IsEmpty());
}

TEST(PcieLinks, OfANicMayNotBeSlow) {
  Bed bed;
  bed.Link(kNic).speed = bed.Link(kToNic).speed = 2500;
  EXPECT_THAT(bed.Faults(), ElementsAre("mlx5_3 (0000:18:00.0) runs at 2.5 GT/s and could at 32 GT/s"));
}

TEST(PcieLinks, ThatAreNotFullLimitTheNicsBelowThem) {
  using Limits = std::map<std::string, int>;
  Bed bed;
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), Limits{});
  bed.Link(kGpu).width = bed.Link(kToGpu).width = 8;
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), Limits{}) << "the GPU's own link is above no NIC";
  bed.Link(kNic).width = bed.Link(kToNic).width = 8;
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), (Limits{{"mlx5_3", 252}}));
  bed.Link(kUpper).width = bed.Link(kRoot).width = 4;
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), (Limits{{"mlx5_3", 126}})) << "the narrowest counts";
  bed = Bed();
  bed.Link(kNic).speed = bed.Link(kToNic).speed = 5000;
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), (Limits{{"mlx5_3", 64}}));
  bed.Link(kNic) = bed.Link(kToNic) = {64000, 8, 64000, 16};
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), (Limits{{"mlx5_3", 472}}));
  bed.Link(kToNic) = {2500, 1, 2500, 1};
  EXPECT_EQ(PcieLimits(bed.tree, bed.node), Limits{}) << "a made-up port says nothing";
}

// What the ports of switches and hypervisors make up: one end says something that the other does not, or the
// whole switch says generation 1.
TEST(PcieLinks, ThatAreMadeUpSayNothing) {
  Bed bed;
  bed.Link(kUpper).speed = 2500;
  bed.Link(kToNic) = {2500, 1, 2500, 1};
  EXPECT_THAT(bed.Faults(), IsEmpty());
  bed.Link(kRoot).speed = 2500;
  EXPECT_THAT(bed.Faults(), IsEmpty());
  bed.Link(kUpper).speed = bed.Link(kRoot).speed = 16000;
  EXPECT_THAT(bed.Faults(),
              ElementsAre("the PCIe switch at 0000:16:00.0 (above GPU 3, mlx5_3) runs at 16 GT/s and "
                          "could at 32 GT/s"));
}

TEST(PcieLinks, ThatNobodyTellsAreNotJudged) {
  Bed bed;
  for (const char* port : {kRoot, kUpper, kToNic, kToGpu}) bed.Link(port) = {};
  EXPECT_EQ(PcieFaults(bed.tree, bed.node), std::nullopt);
  bed.tree.devices.erase(kToGpu);
  bed.node.gpus[0].pci = "gone";
  EXPECT_EQ(PcieFaults(bed.tree, bed.node), std::nullopt);
}

// The ports inside a switch have no link between them, whatever they say of those outside.
TEST(PcieLinks, DoNotExistInsideASwitch) {
  Bed bed;
  bed.Link(kUpper).width = bed.Link(kRoot).width = bed.Link(kUpper).max_width = bed.Link(kRoot).max_width = 8;
  bed.Link(kNic).width = bed.Link(kToNic).width = 8;
  EXPECT_THAT(bed.Faults(), ElementsAre("mlx5_3 (0000:18:00.0) has 8 of 16 PCIe lanes"));
}

}  // namespace
}  // namespace heddle::nodeagent
