// What is left out because there is too much of it: each cut is a sentence, and what fits is there.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "nodeagent/gpu/amd_gpus.h"
#include "nodeagent/grants/grants.h"
#include "nodeagent/health/conditions.h"
#include "nodeagent/nccl/import.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

void PutRdma(test::MemoryFileTree& files, const std::string& name, int port) {
  const std::string base = fmt::format("sys/class/infiniband/{}/ports/{}", name, port);
  files.Write(base + "/state", "4: ACTIVE\n");
  files.Write(base + "/link_layer", "InfiniBand\n");
  files.Write(base + "/rate", "400 Gb/sec (4X NDR)\n");
}

void PutPci(test::MemoryFileTree& files, const std::string& address, const char* class_code,
            const char* vendor) {
  const std::string place = "sys/devices/pci0000:00/" + address;
  files.Write(place + "/class", std::string(class_code) + "\n");
  files.Write(place + "/vendor", std::string(vendor) + "\n");
  files.Write(place + "/device", "0x2330\n");
  files.Link("sys/bus/pci/devices/" + address, "../../../devices/pci0000:00/" + address);
}

TEST(Limits, OfRdmaDevicesAndPortsAreSaid) {
  test::MemoryFileTree files;
  for (int i = 0; i < 513; ++i) PutRdma(files, fmt::format("mlx5_{}", i), 1);
  RdmaReadings readings = RdmaProbe(files).Read();
  EXPECT_EQ(readings.devices.size(), 512U);
  EXPECT_THAT(readings.problems, ElementsAre("1 RDMA devices are left out: 512 are looked at"));

  test::MemoryFileTree ports;
  for (int port = 1; port <= 40; ++port) PutRdma(ports, "mlx5_0", port);
  readings = RdmaProbe(ports).Read();
  EXPECT_EQ(readings.devices.at(0).ports.size(), 32U);
  EXPECT_THAT(readings.problems,
              ElementsAre("sys/class/infiniband/mlx5_0: 8 ports are left out: 32 are looked at"));
}

TEST(Limits, OfInterfacesAndSlavesAreSaid) {
  test::MemoryFileTree files;
  for (int i = 0; i < 300; ++i)
    files.Link(fmt::format("sys/class/net/eth{}/device", i), "../../../0000:01:00.0");
  for (int i = 0; i < 500; ++i) files.Write(fmt::format("sys/class/net/veth{}/mtu", i), "1500\n");
  NetReadings readings = ProbeNet(files);
  EXPECT_EQ(readings.netdevs.size(), 256U);
  EXPECT_THAT(readings.problems, ElementsAre("44 interfaces are left out: 256 are looked at"))
      << "those of pods are none of ours";

  test::MemoryFileTree bond;
  std::string slaves;
  for (int i = 0; i < 20; ++i) slaves += fmt::format("eth{} ", i);
  bond.Write("sys/class/net/bond0/bonding/slaves", slaves);
  readings = ProbeNet(bond);
  EXPECT_EQ(readings.netdevs.at("bond0").slaves.size(), 16U);
  EXPECT_THAT(readings.problems, ElementsAre("4 slaves of bond0 are left out: 16 are looked at"));
}

TEST(Limits, OfPciDevicesAreSaid) {
  test::MemoryFileTree files;
  for (int i = 0; i < 8200; ++i)
    PutPci(files, fmt::format("0000:{:02x}:{:02x}.{}", i / 256, i / 8 % 32, i % 8), "0x010802", "0x144d");
  const PciTree tree = ProbePci(files);
  EXPECT_EQ(tree.devices.size(), 8192U);
  EXPECT_THAT(tree.problems, ElementsAre("8 PCI devices are left out: 8192 are looked at"));

  test::MemoryFileTree unread;
  for (int i = 0; i < 25; ++i) unread.MakeFolder(fmt::format("sys/bus/pci/devices/0000:{:02x}:00.0", i));
  const PciTree broken = ProbePci(unread);
  EXPECT_EQ(broken.problems.size(), 21U);
  EXPECT_EQ(broken.problems.back(), "5 more PCI devices cannot be read and are left out");
}

TEST(Limits, OfGpusAndNvswitchesOnTheBusAreSaid) {
  test::MemoryFileTree files;
  for (int i = 0; i < 34; ++i) {
    PutPci(files, fmt::format("0000:{:02x}:00.0", i), "0x120000", "0x1002");
    PutPci(files, fmt::format("0000:{:02x}:01.0", i), "0x068000", "0x10de");
  }
  Readings readings;
  readings.pci = ProbePci(files);
  const Observation seen = Assemble(readings);
  EXPECT_EQ(seen.node.gpus.size(), 32U);
  EXPECT_EQ(seen.node.nvswitches.size(), 32U);
  EXPECT_THAT(seen.problems, ElementsAre("the GPU at 0000:20:00.0 is left out: a node has at most 32 GPUs",
                                         "the GPU at 0000:21:00.0 is left out: a node has at most 32 GPUs",
                                         "2 NVSwitches are left out: 32 are published"));
}

// 32 GPUs that are equally far from 64 NICs of 12 ports, twice as many NICs as rails have conditions.
TEST(Limits, OfWhatIsPublishedAreSaid) {
  Readings readings;
  readings.locality.numa_nodes = 1;
  for (int i = 0; i < 32; ++i) {
    PciDevice gpu;
    gpu.address = fmt::format("0000:{:02x}:00.0", i);
    gpu.vendor = kVendorAmd;
    gpu.class_code = 0x120000;
    gpu.root = "pci0000:00";
    readings.pci.devices[gpu.address] = gpu;
  }
  for (int i = 0; i < 140; ++i) {
    RdmaDevice device;
    device.name = fmt::format("mlx5_{}", i);
    device.pci = fmt::format("0001:{:02x}:00.0", i);
    PciDevice place;
    place.address = device.pci;
    place.root = "pci0000:00";
    readings.pci.devices[place.address] = place;
    for (int port = 1; port <= (i == 0 ? 12 : 1); ++port) {
      device.ports.emplace_back();
      device.ports.back().number = port;
      device.ports.back().state = topology::LinkState::kActive;
      device.ports.back().rate_gbps = i == 0 ? 50 : 400;
    }
    readings.rdma.devices.push_back(device);
  }
  const Observation seen = Assemble(readings);
  EXPECT_THAT(seen.problems, ElementsAre("12 NICs are left out: 128 are published",
                                         "4 ports of mlx5_0 are left out: 8 are published",
                                         "3072 pairs of a GPU and a NIC are left out: 1024 are published"));
  EXPECT_EQ(seen.node.nics.size(), 128U);
}

TEST(Limits, OfRailsWithAConditionAreSaid) {
  Observation seen;
  for (int rail = 0; rail < 40; ++rail) {
    topology::Nic nic;
    nic.name = fmt::format("mlx5_{}", rail);
    nic.role = topology::NicRole::kCompute;
    nic.rail = rail;
    nic.ports.emplace_back();
    seen.node.nics.push_back(nic);
  }
  const auto conditions = ConditionsOf(seen);
  EXPECT_EQ(crds::FindCondition(conditions, kDiscoveryComplete)->message,
            "8 rails have no condition of their own: the first 32 have");
  EXPECT_EQ(crds::FindCondition(conditions, RailHealthy(32)), nullptr);
}

TEST(Limits, OfNvmlYamlAreSaid) {
  std::string yaml = "gpus:\n";
  for (int i = 0; i < 70; ++i) yaml += fmt::format("- {{index: {}}}\n", i);
  GpuReadings readings = ParseNvmlYaml(yaml);
  EXPECT_EQ(readings.gpus.size(), 64U);
  EXPECT_THAT(readings.problems, ElementsAre("nvml.yaml: 6 GPU entries are left out: 64 are looked at"));
  yaml = "gpus:\n- index: 0\n  nvlinks:\n";
  for (int i = 0; i < 80; ++i) yaml += fmt::format("  - {{link: {}}}\n", i);
  readings = ParseNvmlYaml(yaml);
  EXPECT_EQ(readings.gpus.at(0).nvlinks.size(), 72U);
  EXPECT_THAT(readings.problems, ElementsAre("nvml.yaml: 8 NVLinks of GPU 0 are left out: 72 are looked at"));
}

TEST(Limits, OfKfdAreSaid) {
  test::MemoryFileTree files;
  PutPci(files, "0000:01:00.0", "0x120000", "0x1002");
  for (int i = 0; i < 260; ++i)
    files.Write(fmt::format("sys/class/kfd/kfd/topology/nodes/{}/properties", i), "simd_count 0\n");
  GpuReadings readings;
  AddAmdGpus(files, ProbePci(files), readings);
  EXPECT_THAT(readings.problems,
              Contains("4 entries of sys/class/kfd/kfd/topology/nodes are left out: 256 are looked at"));
}

TEST(Limits, OfASuppliedFileAreSaid) {
  SuppliedTopology supplied;
  supplied.source = "topo.xml";
  supplied.alone = true;
  for (int i = 0; i < 70; ++i) {
    formats::NcclGpu gpu;
    gpu.pci = fmt::format("0000:{:02x}:00.0", i);
    supplied.topology.gpus.push_back(gpu);
  }
  Readings readings;
  Supply(supplied, readings);
  EXPECT_EQ(readings.gpus.gpus.size(), 64U);
  EXPECT_THAT(readings.gpus.problems,
              ElementsAre("topo.xml has 70 GPUs and 0 NICs: the first 64 and 256 are shown"));
}

TEST(Limits, OfAGrantAreSaid) {
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  ContainerDevices container{"ml", "train-0", "main", {}};
  for (int i = 0; i < 20; ++i) {
    container.devices.push_back({fmt::format("example.com/dev{:02}", i), false, {"a", "b"}});
  }
  readings.containers.push_back(container);
  const JoinedGrants joined = JoinGrants(readings, {});
  ASSERT_EQ(joined.grants.size(), 1U);
  EXPECT_EQ(joined.grants[0].resources.size(), 16U);
  EXPECT_EQ(joined.grants[0].unmatched.size(), 32U);
  EXPECT_THAT(joined.notes,
              ElementsAre("4 resources of ml/train-0 are left out: 16 are shown",
                          "8 device ids that name nothing here of ml/train-0 are left out: 32 are shown"));
}

}  // namespace
}  // namespace heddle::nodeagent
