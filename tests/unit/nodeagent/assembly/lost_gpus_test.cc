#include "nodeagent/assembly/lost_gpus.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "nodeagent/health/conditions.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::NicRole;

// Role and rail of each NIC.
std::map<std::string, std::pair<NicRole, int>> PlacesOf(const topology::Node& node) {
  std::map<std::string, std::pair<NicRole, int>> places;
  for (const topology::Nic& nic : node.nics) places[nic.name] = {nic.role, nic.rail.value_or(-1)};
  return places;
}

// As after a reboot: neither the bus nor the driver has them.
void TakeOut(const std::vector<std::string>& addresses, test::MemoryFileTree& files, bool of_driver = true) {
  GpuReadings gpus = RecordedGpus(files).Read();
  for (const std::string& address : addresses) {
    files.Remove("sys/bus/pci/devices/" + address);
    std::erase_if(gpus.gpus, [&](const GpuReading& gpu) { return gpu.pci == address; });
  }
  if (!of_driver || gpus.gpus.empty()) return;  // AMD's are in sysfs
  for (std::size_t i = 0; i < gpus.gpus.size(); ++i) gpus.gpus[i].index = int(i);
  files.Write("nvml.yaml", FormatNvmlYaml(gpus));
}

crds::Condition RailsMeasuredOf(const Observation& seen) {
  const std::vector<crds::Condition> conditions = ConditionsOf(seen);
  const crds::Condition* found = crds::FindCondition(conditions, kRailsMeasured);
  EXPECT_NE(found, nullptr);
  return found == nullptr ? crds::Condition() : *found;
}

// A GPU beside its own NIC, two GPUs beside two NICs or with four each, bonds, AMD's, Grace, a guest with NUMA nodes.
class LostGpu : public testing::TestWithParam<const char*> {};

TEST_P(LostGpu, ChangesNoRoleAndNoRail) {
  const RecordedFiles recorded = test::ReadOf(GetParam());
  test::MemoryFileTree whole;
  test::Fill(recorded, whole);
  const Observation good = test::LookAt(whole, "node-00");
  ASSERT_THAT(good.lost_gpus, IsEmpty());
  for (const topology::Gpu& gpu : good.node.gpus) {
    for (const bool of_driver : {true, false}) {
      SCOPED_TRACE(
          fmt::format("GPU {} at {}, {}", gpu.index, gpu.pci, of_driver ? "bus and driver" : "bus only"));
      test::MemoryFileTree files;
      test::Fill(recorded, files);
      TakeOut({gpu.pci}, files, of_driver);
      const Observation seen = test::LookAt(files, "node-00");
      EXPECT_EQ(PlacesOf(seen.node), PlacesOf(good.node));
      EXPECT_THAT(seen.lost_gpus, HasSubstr(fmt::format("1 of {} GPUs", good.node.gpus.size())));
      EXPECT_THAT(RailsMeasuredOf(seen).message, HasSubstr(seen.lost_gpus));
      EXPECT_EQ(RailsMeasuredOf(seen).reason, RailsMeasuredOf(good).reason);
      EXPECT_THAT(topology::Check(seen.node), IsEmpty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, LostGpu,
                         testing::Values("hgx-h100", "dgx-a100", "hgx-b300", "p5-48xlarge", "roce-dual-tor",
                                         "mi300x", "gb200-nvl72-tray", "nd-a100-v4-vm"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(LostGpus, TwoAtOnceChangeNoRail) {
  test::MemoryFileTree files;
  test::Fill(test::ReadOf("hgx-h100"), files);
  const Observation good = test::LookAt(files, "node-00");
  TakeOut({good.node.gpus.at(0).pci, good.node.gpus.at(6).pci}, files);
  const Observation seen = test::LookAt(files, "node-00");
  EXPECT_EQ(PlacesOf(seen.node), PlacesOf(good.node));
  EXPECT_EQ(
      seen.lost_gpus,
      "2 of 8 GPUs are gone from the PCI bus, and the rails are those that all of them had: beside mlx5_0, "
      "mlx5_6");
}

// The cable of a NIC without a GPU is no less a cable of jobs.
TEST(LostGpus, KeepTheRailOfANicThatIsDownAsWell) {
  test::MemoryFileTree files;
  test::Fill(test::ReadOf("hgx-h100"), files);
  const Observation good = test::LookAt(files, "node-00");
  files.Write("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n");
  TakeOut({good.node.gpus.at(3).pci}, files);
  EXPECT_EQ(PlacesOf(test::LookAt(files, "node-00").node), PlacesOf(good.node));
}

// One GPU and one NIC behind each of `switches` root ports, the first `lost` of them without the GPU.
struct Board {
  PciTree tree;
  std::vector<std::string> gpus;
  std::vector<PlacedNic> nics;

  explicit Board(int switches, int lost = 0) {
    for (int i = 0; i < switches; ++i) AddSwitch(i, i >= lost, "cx7");
  }
  void AddSwitch(int i, bool gpu, const std::string& model, std::size_t bridges = 3) {
    const std::string nic = fmt::format("0000:{:02x}:00.0", 16 * i + 4);
    Add(nic, i, bridges);
    nics.push_back({fmt::format("mlx5_{}", i), nic, model, topology::Transport::kInfiniBand, 400});
    if (!gpu) return;
    gpus.push_back(fmt::format("0000:{:02x}:00.0", 16 * i + 5));
    Add(gpus.back(), i, bridges);
  }
  void Add(const std::string& address, int i, std::size_t bridges) {
    PciDevice device;
    device.address = address;
    device.root = "pci0000:00";
    for (std::size_t depth = 0; depth < bridges; ++depth)
      device.bridges.push_back(fmt::format("0000:{:02x}:{:02x}.0", depth == 0 ? 0 : 16 * i + int(depth), i));
    tree.devices[address] = device;
  }
  RailGpus Find(std::size_t listed = 0) const { return FindLostGpus(tree, gpus, listed, nics); }
};

TEST(LostGpus, AreFoundByTheNicsThatStandAlone) {
  const RailGpus found = Board(8, 2).Find();
  EXPECT_EQ(found.lost, 2);
  EXPECT_THAT(found.orphans, ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_EQ(found.places.size(), 8U);
  EXPECT_EQ(found.places.at(0), "0000:04:00.0");
  EXPECT_EQ(found.places.at(2), "0000:25:00.0");
}

TEST(LostGpus, AreNotMadeUpForStorageNicsOfTheSameModelBehindSwitchesOfTheirOwn) {
  Board board(8);
  board.AddSwitch(8, false, "cx7");
  board.AddSwitch(9, false, "cx7");
  EXPECT_EQ(board.Find().lost, 0);
  EXPECT_EQ(board.Find(8).lost, 0);
  EXPECT_EQ(board.Find().places, board.gpus);
}

TEST(LostGpus, AreNotMadeUpForAnotherModelOrAnotherPlaceInTheTree) {
  for (const auto& [model, bridges] : {std::pair("cx6", 3), std::pair("cx7", 2)}) {
    Board board(7);
    board.AddSwitch(7, false, model, std::size_t(bridges));
    EXPECT_EQ(board.Find().lost, 0) << model << " " << bridges;
  }
  Board slow(7);
  slow.AddSwitch(7, false, "cx7");
  slow.nics.back().rate_gbps = 100;
  EXPECT_EQ(slow.Find().lost, 0);
}

TEST(LostGpus, AreAsManyAsTheDriverListsMore) {
  EXPECT_EQ(Board(6, 1).Find(6).lost, 1);
  EXPECT_EQ(Board(6, 1).Find(5).lost, 0) << "six GPUs are no board";
  EXPECT_EQ(Board(8, 1).Find(9).lost, 0) << "one more is gone, and nothing tells from where";
}

TEST(LostGpus, AreNotBelievedOfHalfAMachine) {
  EXPECT_EQ(Board(8, 4).Find().lost, 0);
  EXPECT_EQ(Board(2, 1).Find().lost, 0);
}

TEST(LostGpus, AreNotLookedForWhereNothingIsKnown) {
  EXPECT_EQ(FindLostGpus({}, {}, 0, {}).lost, 0);
  EXPECT_EQ(FindLostGpus({}, {"0000:01:00.0"}, 1, {{"mlx5_0", "0000:02:00.0", "cx7"}}).lost, 0);
}

}  // namespace
}  // namespace heddle::nodeagent
