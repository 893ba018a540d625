#include <gmock/gmock.h>

#include "nodeagent/assembly/nic_assembly.h"
#include "nodeagent/nic/rdma_probe.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const char* const kFunction = "sys/devices/pci0000:20/0000:21:00.0";

// As Linux 6.1 shows it: no link to a device, the interface in `parent`.
void PutSoft(test::MemoryFileTree& files, const std::string& name, const std::string& netdev) {
  const std::string base = "sys/class/infiniband/" + name;
  files.Write(base + "/parent", netdev + "\n");
  files.Write(base + "/ports/1/state", "4: ACTIVE\n");
  files.Write(base + "/ports/1/link_layer", "Ethernet\n");
  files.Write(base + "/ports/1/rate", "100 Gb/sec (4X EDR)\n");
}

void PutInterface(test::MemoryFileTree& files, const std::string& name, const std::string& function) {
  const std::string base = function + "/net/" + name;
  files.Write(base + "/operstate", "up\n");
  files.Write(base + "/type", "1\n");
  files.Link(base + "/device", "../../../" + function.substr(function.find_last_of('/') + 1));
  files.Link("sys/class/net/" + name, "../../" + base.substr(4));
}

std::vector<topology::Nic> Nics(const test::MemoryFileTree& files) {
  Readings readings;
  readings.rdma = RdmaProbe(files).Read();
  readings.net = ProbeNet(files);
  return AssembleNics(readings);
}

TEST(SoftwareRdma, StandsWhereItsInterfaceStands) {
  test::MemoryFileTree files;
  PutInterface(files, "eth0", kFunction);
  PutSoft(files, "rxe0", "eth0");
  const auto nics = Nics(files);
  ASSERT_THAT(nics, SizeIs(1));
  EXPECT_EQ(nics[0].name, "rxe0");
  EXPECT_EQ(nics[0].netdev, "eth0");
  EXPECT_EQ(nics[0].pci, "0000:21:00.0");
  EXPECT_EQ(nics[0].transport, topology::Transport::kRoce);
}

TEST(SoftwareRdma, OverABondStandsWhereTheFirstSlaveStands) {
  test::MemoryFileTree files;
  PutInterface(files, "eth1", kFunction);
  PutInterface(files, "eth2", "sys/devices/pci0000:20/0000:21:00.1");
  for (const char* slave : {"eth1", "eth2"})
    files.Link("sys/class/net/" + std::string(slave) + "/master", "../bond0");
  files.Write("sys/class/net/bond0/bonding/slaves", "eth1 eth2\n");
  PutSoft(files, "rxe0", "bond0");
  const auto nics = Nics(files);
  ASSERT_THAT(nics, SizeIs(1));
  EXPECT_EQ(nics[0].pci, "0000:21:00.0");
  EXPECT_THAT(nics[0].ports, SizeIs(2));
}

TEST(SoftwareRdma, IsLeftOutBesideHardwareThatServesTheSameInterface) {
  test::MemoryFileTree files;
  PutInterface(files, "eth0", kFunction);
  PutSoft(files, "rxe0", "eth0");
  files.Write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  files.Write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  files.Link("sys/class/infiniband/mlx5_0/device", "../../../devices/pci0000:20/0000:21:00.0");
  const RdmaReadings readings = RdmaProbe(files).Read();
  ASSERT_THAT(readings.devices, SizeIs(1));
  EXPECT_EQ(readings.devices[0].name, "mlx5_0");
  ASSERT_THAT(readings.excluded, SizeIs(1));
  EXPECT_EQ(readings.excluded[0].device, "rxe0");
  EXPECT_THAT(readings.excluded[0].reason, HasSubstr("that mlx5_0 serves in hardware"));
  EXPECT_FALSE(readings.excluded[0].whole_function);  // the interface is one all the same
  EXPECT_THAT(Nics(files), SizeIs(1));
}

TEST(SoftwareRdma, IsNoHardwareWhereTheKernelLinksItToTheFunctionOfItsInterface) {
  test::MemoryFileTree files;
  PutInterface(files, "eth0", kFunction);
  PutSoft(files, "rxe0", "eth0");
  files.Link("sys/class/infiniband/rxe0/device", "../../../devices/pci0000:20/0000:21:00.0");
  const RdmaReadings readings = RdmaProbe(files).Read();
  ASSERT_THAT(readings.devices, SizeIs(1));
  EXPECT_EQ(readings.devices[0].pci, "");
  EXPECT_THAT(readings.devices[0].netdevs, ElementsAre("eth0"));
  EXPECT_THAT(readings.excluded, IsEmpty());
}

}  // namespace
}  // namespace heddle::nodeagent
