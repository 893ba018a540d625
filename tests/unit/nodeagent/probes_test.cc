#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "faulty_files.h"
#include "nodeagent/nic/exclusion.h"
#include "nodeagent/nic/net_probe.h"
#include "nodeagent/nic/rdma_mtu.h"
#include "nodeagent/nic/rdma_probe.h"
#include "nodeagent/pci/probe.h"
#include "recorded_machine.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkState;
using topology::PciDistance;
using topology::Transport;

void PutPci(test::MemoryFileTree& files, const std::string& way, const std::string& address,
            const std::string& numa = "0", const std::string& class_code = "0x030200",
            const std::string& vendor = "0x10de") {
  const std::string base = "sys/devices/" + way + "/" + address;
  files.Write(base + "/class", class_code + "\n");
  files.Write(base + "/vendor", vendor + "\n");
  files.Write(base + "/device", "0x2330\n");
  files.Write(base + "/numa_node", numa + "\n");
  files.Link("sys/bus/pci/devices/" + address, "../../../devices/" + way + "/" + address);
}

PciDevice At(std::string root, std::vector<std::string> bridges, topology::Fact<int> numa = 0) {
  PciDevice device;
  device.root = std::move(root);
  device.bridges = std::move(bridges);
  device.numa = numa;
  return device;
}

TEST(PciProbe, FindsTheWayFromTheHostBridge) {
  test::MemoryFileTree files;
  PutPci(files, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0", "0000:1b:00.0", "-1");
  const PciTree tree = ProbePci(files);
  EXPECT_THAT(tree.problems, IsEmpty());
  const PciDevice* gpu = tree.Find("0000:1b:00.0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->root, "pci0000:15");
  EXPECT_THAT(gpu->bridges, ElementsAre("0000:15:01.0", "0000:16:00.0", "0000:17:01.0"));
  EXPECT_FALSE(gpu->numa.known());  // -1 is not node 0
  EXPECT_TRUE(IsGpu(*gpu));
}

TEST(PciProbe, KeepsTheOthersWhenADeviceCannotBeRead) {
  test::MemoryFileTree files;
  PutPci(files, "pci0000:15", "0000:1b:00.0");
  PutPci(files, "pci0000:15", "0000:1c:00.0");
  files.FailReads("sys/bus/pci/devices/0000:1b:00.0/class",
                  {base::Code::kUnavailable, "Input/output error", {}});
  PutPci(files, "pci0000:15", "0000:1d:00.0", "0", "display");
  const PciTree tree = ProbePci(files);
  EXPECT_THAT(tree.devices, ElementsAre(testing::Key("0000:1c:00.0")));
  EXPECT_EQ(tree.problems.size(), 2u);
}

TEST(PciDistance, TellsOneSwitchFromACascadeAHostBridgeANumaNodeAndSockets) {
  const PciDevice gpu = At("pci0000:15", {"port", "up", "down0"});
  EXPECT_EQ(Distance(gpu, At("pci0000:15", {"port", "up", "down1"}), 2), PciDistance::kPix);
  EXPECT_EQ(Distance(gpu, At("pci0000:15", {"port", "up", "down1", "up2", "down2"}), 2), PciDistance::kPxb);
  EXPECT_EQ(Distance(gpu, At("pci0000:15", {"port2"}), 2), PciDistance::kPhb);
  EXPECT_EQ(Distance(gpu, At("pci0000:3d", {"port"}), 2), PciDistance::kNode);
  EXPECT_EQ(Distance(gpu, At("pci0000:97", {"port"}, 1), 2), PciDistance::kSys);
}

TEST(PciDistance, DoesNotTakeUnknownNumaForNodeZero) {
  const PciDevice gpu = At("pci0000:15", {"port"}, 0);
  const PciDevice untold = At("pci0000:3d", {"port"}, topology::Missing::kUnknown);
  EXPECT_EQ(Distance(gpu, untold, 2), PciDistance::kSys);
  EXPECT_EQ(Distance(gpu, untold, 1), PciDistance::kNode);  // there is no other node to be on
}

TEST(PciAddress, IsCheckedByForm) {
  EXPECT_TRUE(IsPciAddress("0000:1b:00.0"));
  EXPECT_TRUE(IsPciAddress("10001:1b:00.0"));
  for (const char* wrong :
       {"", "virtio2", "0000:1b:00", "0000:1b:00.00", "000g:1b:00.0", "0000-1b-00-0", "pci0000:15"}) {
    EXPECT_FALSE(IsPciAddress(wrong)) << wrong;
  }
}

void PutRdma(test::MemoryFileTree& files, const std::string& name, const std::string& layer = "InfiniBand",
             const std::string& port = "1", const std::string& state = "4: ACTIVE") {
  const std::string base = "sys/class/infiniband/" + name;
  files.Write(base + "/node_guid", "506b:4b03:00c3:b4a2\n");
  files.Write(base + "/ports/" + port + "/state", state + "\n");
  files.Write(base + "/ports/" + port + "/phys_state", state == "1: DOWN" ? "3: Disabled\n" : "5: LinkUp\n");
  files.Write(base + "/ports/" + port + "/link_layer", layer + "\n");
  files.Write(base + "/ports/" + port + "/rate", "400 Gb/sec (4X NDR)\n");
}

TEST(RdmaProbe, ReadsPortsThatAreNotPortOne) {
  test::MemoryFileTree files;
  for (const char* port : {"3", "6", "9", "12"}) PutRdma(files, "mlx5_0", "InfiniBand", port);
  const RdmaReadings readings = RdmaProbe(files).Read();
  ASSERT_EQ(readings.devices.size(), 1u);
  std::vector<int> numbers;
  for (const RdmaPort& port : readings.devices[0].ports) numbers.push_back(port.number);
  EXPECT_THAT(numbers, ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(readings.devices[0].guid, "0x506b4b0300c3b4a2");
}

TEST(RdmaProbe, LeavesOutThePortThatIsDownByDesign) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_0");
  PutRdma(files, "mlx5_0", "InfiniBand", "2", "1: DOWN");
  const RdmaReadings readings = RdmaProbe(files).Read();
  ASSERT_EQ(readings.devices.at(0).ports.size(), 1u);
}

TEST(RdmaProbe, ExcludesWhatManagesTheNvlinkSwitches) {
  test::MemoryFileTree files;
  PutRdma(files, "ibp3s0");
  files.Write("sys/devices/pci0000:03/0000:03:00.0/vpd", std::string("\x82\x10\0NVIDIA SW_MNG\0\x7f", 18));
  files.Link("sys/class/infiniband/ibp3s0/device", "../../../devices/pci0000:03/0000:03:00.0");
  PutRdma(files, "mlx5_0");
  const RdmaReadings readings = RdmaProbe(files).Read();
  ASSERT_EQ(readings.devices.size(), 1u);
  EXPECT_EQ(readings.devices[0].name, "mlx5_0");
  ASSERT_EQ(readings.excluded.size(), 1u);
  EXPECT_THAT(readings.excluded[0].reason, HasSubstr("SW_MNG"));
  EXPECT_EQ(readings.excluded[0].pci, "0000:03:00.0");
}

TEST(RdmaProbe, ReadsADevicesVpdOnce) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_0");
  files.Write("sys/class/infiniband/mlx5_0/device/vpd", "plain");
  RdmaProbe probe(files);
  for (int i = 0; i < 3; ++i) (void)probe.Read();
  const auto reads = files.reads();
  EXPECT_EQ(std::count(reads.begin(), reads.end(), "sys/class/infiniband/mlx5_0/device/vpd"), 1);
}

TEST(RdmaProbe, AsksAgainForAVpdThatCouldNotBeRead) {
  test::MemoryFileTree files;
  const std::string vpd = "sys/class/infiniband/mlx5_8/device/vpd";
  PutRdma(files, "mlx5_8");
  files.Write(vpd, "SW_MNG");
  test::FaultyFileTree faulty(files);
  faulty.Fail(vpd);
  RdmaProbe probe(faulty);
  EXPECT_EQ(probe.Read().devices.size(), 1U);
  faulty.Heal();
  EXPECT_EQ(probe.Read().excluded.size(), 1U) << "it manages the NVLink switches";
  faulty.Fail(vpd);
  EXPECT_EQ(probe.Read().excluded.size(), 1U) << "which it was asked once";
}

TEST(RdmaProbe, ExcludesVirtualFunctionsAndDevicesWithoutPorts) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_9");
  files.Link("sys/class/infiniband/mlx5_9/device/physfn", "../0000:18:00.0");
  files.MakeFolder("sys/class/infiniband/empty0");
  const RdmaReadings readings = RdmaProbe(files).Read();
  EXPECT_THAT(readings.devices, IsEmpty());
  EXPECT_EQ(readings.excluded.size(), 2u);
}

TEST(RdmaProbe, KnowsEfaByItsDriverAndByItsVendorOnlyWithoutOne) {
  test::MemoryFileTree files;
  PutRdma(files, "rdmap79s0", "Unspecified");
  files.Write("sys/class/infiniband/rdmap79s0/device/vendor", "0x1d0f\n");
  EXPECT_EQ(RdmaProbe(files).Read().devices.at(0).transport, Transport::kEfa);
  files.Link("sys/class/infiniband/rdmap79s0/device/driver", "../../../../bus/pci/drivers/efa");
  files.Write("sys/class/infiniband/rdmap79s0/device/vendor", "0x1af4\n");
  EXPECT_EQ(RdmaProbe(files).Read().devices.at(0).transport, Transport::kEfa);
  files.Write("sys/class/infiniband/rdmap79s0/device/vendor", "0x1d0f\n");
  files.Remove("sys/class/infiniband/rdmap79s0/device/driver");
  files.Link("sys/class/infiniband/rdmap79s0/device/driver", "../../../../bus/pci/drivers/other");
  const RdmaDevice other = RdmaProbe(files).Read().devices.at(0);
  EXPECT_NE(other.transport, Transport::kEfa);
  EXPECT_EQ(other.driver, "other");
}

void PutGid(test::MemoryFileTree& files, int index, const std::string& gid, const std::string& type,
            const std::string& netdev) {
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1", number = std::to_string(index);
  files.Write(port + "/gids/" + number, gid + "\n");
  files.Write(port + "/gid_attrs/types/" + number, type + "\n");
  files.Write(port + "/gid_attrs/ndevs/" + number, netdev + "\n");
}

TEST(RdmaProbe, ChoosesTheGidThatRoceTrafficCanUse) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_0", "Ethernet");
  const auto put = [&files](int index, const std::string& gid, const std::string& type,
                            const std::string& netdev) { PutGid(files, index, gid, type, netdev); };
  put(0, "fe80:0000:0000:0000:0e42:a1ff:feda:09b6", "IB/RoCE v1", "eth1");
  put(1, "fe80:0000:0000:0000:0e42:a1ff:feda:09b6", "RoCE v2", "eth1");
  // 2 was an address that went; 3 is a VLAN's.
  put(3, "0000:0000:0000:0000:0000:ffff:0a01:0203", "RoCE v2", "eth1.7");
  put(4, "0000:0000:0000:0000:0000:ffff:0a01:0203", "IB/RoCE v1", "eth1");
  put(5, "0000:0000:0000:0000:0000:ffff:0a01:0203", "RoCE v2", "eth1");
  const RdmaReadings readings = RdmaProbe(files).Read();
  const RdmaPort& read = readings.devices.at(0).ports.at(0);
  EXPECT_EQ(read.gids.size(), 5u);
  EXPECT_THAT(read.netdevs, ElementsAre("eth1", "eth1.7"));
  ASSERT_NE(RoceGid(read, "eth1"), nullptr);
  EXPECT_EQ(*RoceGid(read, "eth1"), (Gid{5, GidType::kRoce2, "eth1", true}));
  EXPECT_EQ(RoceGid(read, "eth1.7")->index, 3);
  EXPECT_EQ(RoceGid(read, "eth2"), nullptr);
}

TEST(RdmaProbe, ChoosesAGlobalIpv6AddressBeforeALinkLocalOne) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_0", "Ethernet");
  PutGid(files, 1, "fe80:0000:0000:0000:0e42:a1ff:feda:09b6", "RoCE v2", "eth1");
  PutGid(files, 2, "fe80:0000:0000:0000:0e42:a1ff:feda:09b7", "RoCE v2", "eth2");
  PutGid(files, 3, "fd00:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth1");
  PutGid(files, 5, "fd00:0000:0000:0000:0000:0000:0000:0002", "RoCE v2", "eth1");
  const RdmaReadings readings = RdmaProbe(files).Read();
  const RdmaPort& port = readings.devices.at(0).ports.at(0);
  ASSERT_NE(RoceGid(port, "eth1"), nullptr);
  EXPECT_EQ(RoceGid(port, "eth1")->index, 3);
  ASSERT_NE(RoceGid(port, "eth2"), nullptr);
  EXPECT_TRUE(RoceGid(port, "eth2")->unnumbered);
}

TEST(RdmaProbe, ALinkLocalGidAndAnEmptyOneHoldNoAddress) {
  EXPECT_TRUE(HoldsNoAddress("fe80:0000:0000:0000:0e42:a1ff:feda:09b6"));
  EXPECT_TRUE(HoldsNoAddress("febf:0000:0000:0000:0000:0000:0000:0001"));
  EXPECT_TRUE(HoldsNoAddress("0000:0000:0000:0000:0000:0000:0000:0000"));
  EXPECT_FALSE(HoldsNoAddress("fec0:0000:0000:0000:0000:0000:0000:0001"));
  EXPECT_FALSE(HoldsNoAddress("fd00:0000:0000:0000:0000:0000:0000:0001"));
  EXPECT_FALSE(HoldsNoAddress("0000:0000:0000:0000:0000:ffff:0a01:0203"));
}

TEST(RdmaProbe, FindsTheGidBehindAnyNumberOfHoles) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_0", "Ethernet");
  // Every other address went: many holes, and never two in a row.
  for (int index = 0; index < 12; index += 2)
    PutGid(files, index, "fe80:0000:0000:0000:0e42:a1ff:feda:09b6", "IB/RoCE v1", "eth1");
  PutGid(files, 13, "0000:0000:0000:0000:0000:ffff:0a01:0203", "RoCE v2", "eth1");
  const RdmaReadings readings = RdmaProbe(files).Read();
  const RdmaPort& port = readings.devices.at(0).ports.at(0);
  ASSERT_NE(RoceGid(port, "eth1"), nullptr);
  EXPECT_EQ(RoceGid(port, "eth1")->index, 13);
  EXPECT_EQ(port.gids.size(), 7u);
}

TEST(RdmaProbe, FindsTheGidFarBackInATableOf256) {
  test::MemoryFileTree files;
  PutRdma(files, "mlx5_0", "Ethernet");
  PutGid(files, 0, "fe80:0000:0000:0000:0e42:a1ff:feda:09b6", "IB/RoCE v1", "eth1");
  // Of 31 VLANs one after the other, and the port's own address last.
  for (int index = 31; index < 62; ++index)
    PutGid(files, index, "0000:0000:0000:0000:0000:ffff:0a02:0203", "RoCE v2", "eth1.7");
  PutGid(files, 62, "0000:0000:0000:0000:0000:ffff:0a01:0203", "RoCE v2", "eth1");
  for (int index = 63; index < 300; ++index)
    PutGid(files, index, "0000:0000:0000:0000:0000:ffff:0a02:0203", "RoCE v2", "eth1.7");
  const RdmaReadings readings = RdmaProbe(files).Read();
  const RdmaPort& port = readings.devices.at(0).ports.at(0);
  ASSERT_NE(RoceGid(port, "eth1"), nullptr);
  EXPECT_EQ(*RoceGid(port, "eth1"), (Gid{62, GidType::kRoce2, "eth1", true}));
  EXPECT_EQ(port.gids.back().index, 255) << "no table has more";
}

TEST(RdmaMtu, IsDerivedAsTheKernelDoes) {
  EXPECT_EQ(RoceMtu(1500), 1024);
  EXPECT_EQ(RoceMtu(4191), 2048);
  EXPECT_EQ(RoceMtu(4192), 4096);
  EXPECT_EQ(RoceMtu(9000), 4096);
  EXPECT_EQ(RoceMtu(300), 0);
  EXPECT_EQ(RoceMtu(0), 0);
}

TEST(RdmaMtu, IsComparedAmongTheNicsOfJobs) {
  topology::Node node;
  EXPECT_EQ(CompareRdmaMtus(node), std::nullopt);
  const auto add = [&node](const char* name, topology::Transport transport, topology::NicRole role, int mtu) {
    topology::Nic& nic = node.nics.emplace_back();
    nic.name = name;
    nic.netdev = std::string("eth-") + name;
    nic.transport = transport;
    nic.role = role;
    nic.mtu = transport == Transport::kRoce ? mtu : 0;
    nic.ports.emplace_back();
    nic.ports[0].rdma_mtu = transport == Transport::kRoce ? RoceMtu(mtu) : mtu;
  };
  using topology::NicRole;
  add("a", Transport::kRoce, NicRole::kCompute, 9000);
  add("b", Transport::kRoce, NicRole::kCompute, 4200);  // as much in one RDMA packet
  add("c", Transport::kEfa, NicRole::kCompute, 2048);
  add("d", Transport::kRoce, NicRole::kStorage, 1500);
  add("e", Transport::kRoce, NicRole::kCompute, 0);  // not said
  ASSERT_TRUE(CompareRdmaMtus(node));
  EXPECT_EQ(CompareRdmaMtus(node)->bytes, 4096);
  EXPECT_THAT(CompareRdmaMtus(node)->faults, IsEmpty());
  add("f", Transport::kRoce, NicRole::kCompute, 1500);
  EXPECT_THAT(CompareRdmaMtus(node)->faults,
              ElementsAre("f carries 1024 bytes (eth-f has MTU 1500), others 4096"));
  add("g", Transport::kInfiniBand, NicRole::kCompute, 2048);
  EXPECT_EQ(CompareRdmaMtus(node)->faults.at(1), "g carries 2048 bytes, others 4096");
}

TEST(RdmaProbe, ReadsARealNodeOfEightRailsAndABond) {
  const test::TemporaryFolder folder;
  folder.Write("sys/class/infiniband/.keep", "");
  test::Output("tar xzf " HEDDLE_SOURCE_DIR "/../shared/data/sysfs/class-infiniband-h100.tar.gz -C " +
               folder.path() + "/sys/class/infiniband");
  const base::DiskFileTree files(folder.path());
  const RdmaReadings readings = RdmaProbe(files).Read();
  std::vector<std::string> rails;
  for (const RdmaDevice& device : readings.devices) {
    if (device.transport != Transport::kInfiniBand) {
      EXPECT_EQ(device.name, "mlx5_bond_0");
      EXPECT_EQ(device.transport, Transport::kRoce);
      continue;
    }
    rails.push_back(device.name);
    EXPECT_EQ(device.ports.at(0).rate_gbps, 400);
    EXPECT_EQ(device.ports.at(0).state, LinkState::kActive);
  }
  EXPECT_THAT(rails,
              ElementsAre("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"));
}

TEST(RateAndState, AreReadAsTheKernelPrintsThem) {
  EXPECT_EQ(ParseRateGbps("400 Gb/sec (4X NDR)"), 400);
  EXPECT_EQ(ParseRateGbps("2.5 Gb/sec (1X SDR)"), 2);
  for (const char* wrong : {"", "fast", "Gb/sec", "-1 Gb/sec", "99999999999 Gb/sec"})
    EXPECT_EQ(ParseRateGbps(wrong), 0) << wrong;
  EXPECT_EQ(ParsePortState("4: ACTIVE"), LinkState::kActive);
  EXPECT_EQ(ParsePortState("1: DOWN"), LinkState::kDown);
  EXPECT_EQ(ParsePortState("2: INIT"), LinkState::kUnknown);
}

TEST(NetProbe, FindsBondsAndLeavesOutWhatHasNoHardware) {
  test::MemoryFileTree files;
  for (const char* name : {"eth1", "eth2"}) {
    const std::string base = std::string("sys/class/net/") + name;
    files.Write(base + "/operstate", "up\n");
    files.Write(base + "/speed", "200000\n");
    files.Write(base + "/mtu", "9000\n");
    files.Write(base + "/type", "1\n");
    files.Link(base + "/device", std::string("../../../devices/pci0000:40/0000:41:00.") + name[3]);
    files.Link(base + "/master", "../bond0");
  }
  files.Write("sys/class/net/bond0/bonding/slaves", "eth1 eth2\n");
  files.Write("sys/class/net/bond0/operstate", "up\n");
  files.Write("sys/class/net/veth12/operstate", "up\n");
  const NetReadings readings = ProbeNet(files);
  EXPECT_THAT(readings.netdevs,
              ElementsAre(testing::Key("bond0"), testing::Key("eth1"), testing::Key("eth2")));
  EXPECT_THAT(readings.netdevs.at("bond0").slaves, ElementsAre("eth1", "eth2"));
  EXPECT_EQ(readings.netdevs.at("eth1").bond, "bond0");
  EXPECT_EQ(readings.netdevs.at("eth1").gbps, 200);
}

TEST(NetProbe, FindsThePciFunctionBelowVirtio) {
  test::MemoryFileTree files;
  const std::string place = "sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0";
  files.Write(place + "/operstate", "up\n");
  files.Link(place + "/device", "../../../virtio2");
  files.Link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0");
  EXPECT_EQ(ProbeNet(files).netdevs.at("eth0").pci, "0000:00:03.0");
}

TEST(Exclusion, NeedsEvidence) {
  EXPECT_FALSE(WhyExcluded({"mlx5_0"}));
  EXPECT_TRUE(WhyExcluded({"mlx5_0", true}));
  EXPECT_TRUE(WhyExcluded({"mlx5_0", false, true}));
  EXPECT_FALSE(
      IsDownByDesign({LinkState::kDown, true, false, true}));  // RoCE says Disabled of a pulled cable
  EXPECT_FALSE(IsDownByDesign({LinkState::kDown, true, true, false}));  // the only port
  EXPECT_TRUE(IsDownByDesign({LinkState::kDown, true, true, true}));
}

// What the kernel of whoever runs this has in a folder; none where it has no such folder.
std::set<std::string> NamesIn(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    names.insert(entry.path().filename().string());
  return names;
}

// Recorded and made machines have what their makers thought of. This one has what it has.
TEST(ThisVeryHost, HasTheDevicesThatItsKernelShows) {
  const base::DiskFileTree root("/");
  std::set<std::string> found;
  for (const auto& [address, device] : ProbePci(root).devices) found.insert(address);
  EXPECT_EQ(found, NamesIn("/sys/bus/pci/devices"));
  const RdmaReadings rdma = RdmaProbe(root).Read();
  const std::set<std::string> shown = NamesIn("/sys/class/infiniband");
  std::set<std::string> counted, told;
  for (const RdmaDevice& device : rdma.devices) counted.insert(device.name);
  for (const Exclusion& excluded : rdma.excluded) told.insert(excluded.device);
  for (const std::string& name : shown) EXPECT_TRUE(counted.contains(name) || told.contains(name)) << name;
  for (const std::string& name : counted) EXPECT_TRUE(shown.contains(name)) << name;
}

}  // namespace
}  // namespace heddle::nodeagent
