// Whole machines: what the agent makes of the recorded ones, as goldens (UPDATE_GOLDEN=1 rewrites them) and
// as the few truths that a golden does not say aloud.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nodeagent/publish/report.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkState;
using topology::Missing;
using topology::Nic;
using topology::NicRole;
using topology::Node;
using topology::Transport;

constexpr base::WallTime kThen = test::kTicketTime;

crds::NodeTopology ReportOf(const Observation& seen) {
  crds::NodeTopology object;
  object.name = seen.node.name;
  return Report(object, seen, kThen);
}

void ExpectFile(const std::string& name, const std::string& text) {
  const std::string path = std::string(HEDDLE_SOURCE_DIR) + "/tests/golden/nodeagent/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(golden.str(), text) << "run with UPDATE_GOLDEN=1 if this is meant";
}

// What programs get of a machine, and what people do.
void ExpectGolden(const std::string& shape, const Observation& seen) {
  ExpectFile(shape + ".json", crds::ToJson(ReportOf(seen)).dump(1) + "\n");
  ExpectFile(shape + ".txt", test::TicketAt(test::RecordedMachine(shape).path()));
}

// "gpu:nic,nic rail" of every GPU, by what topology deals out.
std::vector<std::string> NicsOfGpus(const Node& node) {
  std::vector<std::string> lines;
  for (const topology::Gpu& gpu : node.gpus) {
    std::string line = std::to_string(gpu.index) + ":";
    for (const Nic* nic : node.NicsOfGpu(gpu.index))
      line += " " + nic->name + "@" + std::to_string(nic->rail.value_or(-1));
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> OfRole(const Node& node, NicRole role) {
  std::vector<std::string> names;
  for (const Nic& nic : node.nics) {
    if (nic.role == role) names.push_back(nic.name);
  }
  return names;
}

const crds::Condition& ConditionOf(const Observation& seen, std::string_view type) {
  static crds::Condition found;
  const auto conditions = Report({}, seen, kThen).status.conditions;
  const crds::Condition* condition = crds::FindCondition(conditions, type);
  found = condition == nullptr ? crds::Condition() : *condition;
  return found;
}
bool Says(const Observation& seen, std::string_view type, crds::ConditionStatus status) {
  return ConditionOf(seen, type).status == status;
}

TEST(Machines, DgxA100HasARailPerGpuAndTwoStorageNics) {
  const Observation seen = test::RecordedMachine("dgx-a100").Look();
  ExpectGolden("dgx-a100", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_THAT(NicsOfGpus(seen.node),
              testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_2@2", "3: mlx5_3@3", "4: mlx5_6@4",
                                   "5: mlx5_7@5", "6: mlx5_8@6", "7: mlx5_9@7"));
  EXPECT_THAT(OfRole(seen.node, NicRole::kStorage), testing::ElementsAre("mlx5_4", "mlx5_5"));
  EXPECT_EQ(seen.node.nvswitches.size(), 6u);
  EXPECT_EQ(seen.node.numa_nodes, 8);
  EXPECT_EQ(seen.node.gpus.at(0).numa, 3);
  EXPECT_EQ(seen.node.nvlink.generation, 3);
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 12);
  EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, 2400);
  EXPECT_FALSE(seen.node.nvlink_domain->spans_nodes);
}

TEST(Machines, HgxH100HasEightNdrRailsAndItsOwnDomain) {
  const Observation seen = test::RecordedMachine("hgx-h100").Look();
  ExpectGolden("hgx-h100", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  for (int gpu = 0; gpu < 8; ++gpu) {
    const Nic* nic = seen.node.NicOfGpu(gpu);
    ASSERT_NE(nic, nullptr);
    EXPECT_EQ(nic->rail, gpu);
    EXPECT_EQ(nic->ports.at(0).leaf_port->leaf, "leaf-r" + std::to_string(gpu));
    EXPECT_EQ(nic->usable_gbps(), 400);
  }
  EXPECT_EQ(seen.node.nvlink_domain->id, "hgx-h100");  // NVML says a fabric there, of one host: all zeros
  EXPECT_THAT(OfRole(seen.node, NicRole::kManagement), testing::ElementsAre("eno1"));
  EXPECT_TRUE(Says(seen, "Ready", crds::ConditionStatus::kTrue));
}

TEST(Machines, Gb200TrayBelongsToTheRacksDomain) {
  const Observation seen = test::RecordedMachine("gb200-nvl72-tray").Look();
  ExpectGolden("gb200-nvl72-tray", seen);
  EXPECT_EQ(seen.node.nvlink_domain->id, "7a1c0000-0000-4000-8000-00000000000a.3");
  EXPECT_TRUE(seen.node.nvlink_domain->spans_nodes);
  // No switch joins a GPU with a NIC there; they share a Grace.
  EXPECT_THAT(NicsOfGpus(seen.node),
              testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_4@2", "3: mlx5_5@3"));
  EXPECT_EQ(ConditionOf(seen, "RailsMeasured").reason, "PciOrder");
}

// The BlueField-3s hang on the same Graces as the rails, over the same transport and with half of the rate.
TEST(Machines, Gb200TrayOverRoceKeepsItsBlueFieldsForStorageWhateverIsDown) {
  ExpectGolden("gb200-roce-tray", test::RecordedMachine("gb200-roce-tray").Look());
  struct Case {
    const char* what;
    std::vector<std::string> down;
  };
  for (const Case& of : {Case{"all up", {}}, Case{"storage unplugged", {"mlx5_2", "mlx5_6"}},
                         Case{"leaves off", {"mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"}}}) {
    SCOPED_TRACE(of.what);
    const test::TemporaryFolder folder;
    test::WriteMachine("gb200-roce-tray", folder.path());
    for (const std::string& nic : of.down) {
      folder.Write("sys/class/infiniband/" + nic + "/ports/1/state", "1: DOWN\n");
      folder.Write("sys/class/infiniband/" + nic + "/ports/1/phys_state", "3: Disabled\n");
    }
    const Observation seen = test::LookAt(folder.path());
    EXPECT_THAT(topology::Check(seen.node), IsEmpty());
    EXPECT_THAT(NicsOfGpus(seen.node),
                testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_4@2", "3: mlx5_5@3"));
    EXPECT_THAT(OfRole(seen.node, NicRole::kStorage), testing::ElementsAre("mlx5_2", "mlx5_6"));
  }
}

// The boards of A100 and H100 with fewer or other links: what is up counts, not what the chip could have.
TEST(Machines, ExportVariantsAndH200AreTheirBoardsWithOtherLinks) {
  struct Variant {
    const char* name;
    const char* board;
    int links, gbps, memory_gib;
  };
  for (const Variant& of :
       {Variant{"dgx-a800", "dgx-a100", 8, 1600, 80}, Variant{"hgx-h800", "hgx-h100", 8, 1600, 80},
        Variant{"hgx-h200", "hgx-h100", 18, 3600, 140}}) {
    const Observation seen = test::RecordedMachine(of.name).Look();
    ExpectGolden(of.name, seen);
    EXPECT_THAT(topology::Check(seen.node), IsEmpty()) << of.name;
    EXPECT_EQ(NicsOfGpus(seen.node), NicsOfGpus(test::RecordedMachine(of.board).Look().node)) << of.name;
    EXPECT_EQ(seen.node.nvlink.links_per_gpu, of.links) << of.name;
    EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, of.gbps) << of.name;
    EXPECT_EQ(seen.node.gpus.at(0).memory_gib, of.memory_gib) << of.name;
    EXPECT_TRUE(Says(seen, "NvlinksUp", crds::ConditionStatus::kTrue)) << of.name;
  }
}

TEST(Machines, HgxB200LeavesOutTheNicsThatManageItsNvlinkSwitches) {
  const Observation seen = test::RecordedMachine("hgx-b200").Look();
  ExpectGolden("hgx-b200", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_THAT(NicsOfGpus(seen.node),
              testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_2@2", "3: mlx5_3@3", "4: mlx5_4@4",
                                   "5: mlx5_5@5", "6: mlx5_6@6", "7: mlx5_7@7"));
  EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, 7200);
  EXPECT_THAT(seen.node.nvswitches, IsEmpty());  // no bus of the host shows them, and that is said
  EXPECT_EQ(ConditionOf(seen, "NvlinksUp").message,
            "18 NVLinks of every GPU are up, to NVLink switches that no PCI bus of this host shows");
  EXPECT_EQ(seen.excluded.size(), 2u);
  EXPECT_EQ(seen.node.FindNic("mlx5_8"), nullptr);
  EXPECT_THAT(ConditionOf(seen, "DiscoveryComplete").message,
              HasSubstr("mlx5_8 manages the NVLink switches"));
}

TEST(Machines, Gb300TrayHasXdrRails) {
  const Observation seen = test::RecordedMachine("gb300-nvl72-tray").Look();
  ExpectGolden("gb300-nvl72-tray", seen);
  EXPECT_EQ(seen.node.nvlink_domain->id, "7a1c0000-0000-4000-8000-00000000000a.3");
  EXPECT_THAT(NicsOfGpus(seen.node),
              testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_2@2", "3: mlx5_3@3"));
  EXPECT_EQ(seen.node.FindNic("mlx5_3")->usable_gbps(), 800);
  EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, 7200);
}

TEST(Machines, P5GivesEachGpuFourEfaDevicesOfItsRail) {
  const Observation seen = test::RecordedMachine("p5-48xlarge").Look();
  ExpectGolden("p5-48xlarge", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_EQ(OfRole(seen.node, NicRole::kCompute).size(), 32u);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const auto nics = seen.node.NicsOfGpu(gpu);
    ASSERT_EQ(nics.size(), 4u) << gpu;
    for (const Nic* nic : nics) {
      EXPECT_EQ(nic->rail, gpu);
      EXPECT_EQ(nic->transport, Transport::kEfa);
    }
  }
  EXPECT_THAT(OfRole(seen.node, NicRole::kManagement),
              testing::ElementsAre("ens32"));  // ENA is no RDMA device
  EXPECT_EQ(seen.node.FindNic("rdmap79s0")->ports.at(0).leaf_port.missing(), Missing::kUnknown);
}

TEST(Machines, P5enGivesEachGpuTwoEfaDevicesOfItsRail) {
  const Observation seen = test::RecordedMachine("p5en-48xlarge").Look();
  ExpectGolden("p5en-48xlarge", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  for (int gpu = 0; gpu < 8; ++gpu) {
    const auto nics = seen.node.NicsOfGpu(gpu);
    ASSERT_EQ(nics.size(), 2u) << gpu;
    for (const Nic* nic : nics) EXPECT_TRUE(nic->rail == gpu && nic->usable_gbps() == 200) << nic->name;
  }
}

// After what two DRA drivers published of a real one: two GPUs share the EFA on their host bridge, and no switch is
// seen. ENA devices stand on the same bridges and are no NICs for jobs.
TEST(Machines, P4dGivesTwoGpusTheEfaDeviceOfTheirHostBridge) {
  const Observation seen = test::RecordedMachine("p4d-24xlarge").Look();
  ExpectGolden("p4d-24xlarge", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_THAT(
      NicsOfGpus(seen.node),
      testing::ElementsAre("0: rdmap16s27@0", "1: rdmap16s27@0", "2: rdmap32s27@1", "3: rdmap32s27@1",
                           "4: rdmap144s27@2", "5: rdmap144s27@2", "6: rdmap160s27@3", "7: rdmap160s27@3"));
  EXPECT_EQ(seen.node.paths.front().distance, topology::PciDistance::kPhb);
  EXPECT_EQ(ConditionOf(seen, "RailsMeasured").reason, "PciOrder");
  EXPECT_THAT(OfRole(seen.node, NicRole::kManagement), testing::ElementsAre("ens129", "ens161", "ens65"));
  EXPECT_EQ(ConditionOf(seen, "LeavesKnown").reason, "NoPlaceLabel");
  EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, 2400);
}

TEST(Machines, P6B200LeavesOutTheIbpDevicesThatManageItsNvlinkSwitches) {
  const Observation seen = test::RecordedMachine("p6-b200-48xlarge").Look();
  ExpectGolden("p6-b200-48xlarge", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_EQ(OfRole(seen.node, NicRole::kCompute).size(), 8u);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const auto nics = seen.node.NicsOfGpu(gpu);
    ASSERT_EQ(nics.size(), 1u) << gpu;
    EXPECT_EQ(nics[0]->rail, gpu);
    EXPECT_EQ(nics[0]->transport, Transport::kEfa);
    EXPECT_EQ(nics[0]->usable_gbps(), 400);
  }
  EXPECT_EQ(seen.node.FindNic("ibp5s0"), nullptr);
  EXPECT_EQ(seen.node.FindNic("ibp6s0"), nullptr);
  EXPECT_THAT(ConditionOf(seen, "DiscoveryComplete").message,
              HasSubstr("ibp5s0 manages the NVLink switches"));
}

TEST(Machines, RoceDualTorIsTwoBondsOnTwoLeavesEach) {
  const Observation seen = test::RecordedMachine("roce-dual-tor").Look();
  ExpectGolden("roce-dual-tor", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  const Nic* bond = seen.node.FindNic("mlx5_bond_1");
  ASSERT_NE(bond, nullptr);
  EXPECT_EQ(bond->rail, 1);
  EXPECT_EQ(bond->netdev, "bond1");
  ASSERT_EQ(bond->ports.size(), 2u);
  EXPECT_EQ(bond->ports[0].leaf_port->leaf, "tor-a");
  EXPECT_EQ(bond->ports[1].leaf_port->leaf, "tor-b");
  EXPECT_EQ(seen.node.NicOfGpu(3)->name, "mlx5_bond_0");
  EXPECT_EQ(seen.node.NicOfGpu(4)->name, "mlx5_bond_1");
  EXPECT_EQ(seen.node.nvlink_domain.missing(), Missing::kNotApplicable);
}

// Four planes: ports 3, 6, 9 and 12 of each ConnectX-8 have a cable, into the leaf of their rail and plane.
TEST(Machines, HgxB300HasFourPlanesOnEachRail) {
  const Observation seen = test::RecordedMachine("hgx-b300").Look();
  ExpectGolden("hgx-b300", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  for (int gpu = 0; gpu < 8; ++gpu) {
    const Nic* nic = seen.node.NicOfGpu(gpu);
    ASSERT_NE(nic, nullptr);
    EXPECT_EQ(nic->rail, gpu);
    ASSERT_EQ(nic->ports.size(), 4u);
    for (int plane = 0; plane < 4; ++plane) {
      const topology::NicPort& port = nic->ports[std::size_t(plane)];
      EXPECT_EQ(port.number, 3 * (plane + 1));
      EXPECT_EQ(port.plane, plane);
      EXPECT_EQ(port.leaf_port->leaf, "leaf-r" + std::to_string(gpu) + "-p" + std::to_string(plane));
    }
    EXPECT_EQ(nic->usable_gbps(), 800);
  }
  EXPECT_THAT(seen.node.nvswitches, IsEmpty());
}

// A guest without a PCIe tree: two GPUs and two NICs on each NUMA node are all that it shows, and their order.
TEST(Machines, AGuestWithNumaNodesIsPairedWithinThem) {
  const Observation seen = test::RecordedMachine("nd-a100-v4-vm").Look();
  ExpectGolden("nd-a100-v4-vm", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_EQ(seen.node.gpus.at(0).numa, 1);
  EXPECT_THAT(NicsOfGpus(seen.node),
              testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_2@2", "3: mlx5_3@3", "4: mlx5_4@4",
                                   "5: mlx5_5@5", "6: mlx5_6@6", "7: mlx5_7@7"));
  EXPECT_EQ(seen.node.paths.front().distance, topology::PciDistance::kNode);
  EXPECT_EQ(ConditionOf(seen, "RailsMeasured").reason, "PciOrder");
  EXPECT_THAT(seen.node.nvswitches, IsEmpty());
}

// The same without NUMA nodes: nothing tells a pair, so no rail is made up; a supplied file would tell all.
TEST(Machines, AGuestWithoutNumaNodesHasUnknownRails) {
  const Observation seen = test::RecordedMachine("nd-a100-v4-vm-blind").Look();
  ExpectGolden("nd-a100-v4-vm-blind", seen);
  EXPECT_EQ(seen.node.gpus.at(0).numa.missing(), Missing::kUnknown);
  EXPECT_EQ(OfRole(seen.node, NicRole::kCompute).size(), 8u);
  for (const Nic& nic : seen.node.nics) EXPECT_FALSE(nic.rail.known()) << nic.name;
  EXPECT_TRUE(Says(seen, "RailsMeasured", crds::ConditionStatus::kFalse));
  EXPECT_THAT(seen.node.paths, IsEmpty()) << "that a pair is on two sockets nobody measured";
  EXPECT_EQ(seen.node.NicOfGpu(3)->name, "mlx5_3");
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 12);
}

// AMD's by sysfs alone. The NIC is one switch nearer to the host than the GPU: PXB.
TEST(Machines, Mi300xPairsEachGpuWithTheNicBehindItsSwitch) {
  const Observation seen = test::RecordedMachine("mi300x").Look();
  ExpectGolden("mi300x", seen);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(NicsOfGpus(seen.node),
              testing::ElementsAre("0: mlx5_0@0", "1: mlx5_1@1", "2: mlx5_2@2", "3: mlx5_3@3", "4: mlx5_4@4",
                                   "5: mlx5_5@5", "6: mlx5_6@6", "7: mlx5_7@7"));
  EXPECT_EQ(seen.node.paths.front().distance, topology::PciDistance::kPxb);
  EXPECT_EQ(seen.node.gpus.at(0).model, "AMD Instinct MI300X OAM");
  EXPECT_EQ(seen.node.gpus.at(0).memory_gib, 192);
  EXPECT_TRUE(seen.node.gpus.at(0).healthy);
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 7);
  EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, 7 * 512);
  EXPECT_EQ(seen.node.nvlink_domain->id, "mi300x");
}

TEST(Machines, P5SaysWhichEfaDevicesHaveNotComeUp) {
  const test::TemporaryFolder folder;
  test::WriteMachine("p5-48xlarge", folder.path());
  for (const char* late : {"rdmap80s0", "rdmap81s0"})
    std::filesystem::remove_all(folder.path() + "/sys/class/infiniband/" + late);
  const Observation seen = test::LookAt(folder.path());
  EXPECT_THAT(seen.problems,
              testing::ElementsAre(HasSubstr("2 of 32 EFA functions on the PCI bus have no RDMA "
                                             "device (first: 0000:50:00.0)")));
}

TEST(Machines, RoceWithoutRoce2IsSaid) {
  const test::TemporaryFolder folder;
  test::WriteMachine("roce-dual-tor", folder.path());
  EXPECT_THAT(test::LookAt(folder.path()).problems, IsEmpty());
  for (const char* index : {"1", "3"}) {
    folder.Write(std::string("sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/types/") + index,
                 "IB/RoCE v1\n");
  }
  EXPECT_THAT(
      test::LookAt(folder.path()).problems,
      testing::ElementsAre("mlx5_bond_0 port 1 has 4 GIDs and none of RoCE v2: give bond0 an IP address, or "
                           "switch RoCE v2 on"));
}

// Both ToRs still have the hostname that they came with, and the host hangs on the same port of each.
TEST(Machines, TwoTorsWithOneNameAreNoLeaf) {
  const test::TemporaryFolder folder;
  test::WriteMachine("roce-dual-tor", folder.path());
  std::string heard = base::DiskFileTree(folder.path()).Read("lldp.json").value_or("");
  for (const std::string& name : {std::string("tor-a"), std::string("tor-b")}) {
    ASSERT_THAT(heard, HasSubstr(name));
    for (std::size_t at = 0; (at = heard.find(name, at)) != std::string::npos;)
      heard.replace(at, name.size(), "sonic");
  }
  folder.Write("lldp.json", heard);
  const Observation seen = test::LookAt(folder.path());
  for (const topology::NicPort& port : seen.node.FindNic("mlx5_bond_0")->ports)
    EXPECT_EQ(port.leaf_port.missing(), Missing::kAmbiguous);
  const crds::Condition known = ConditionOf(seen, "LeavesKnown");
  EXPECT_EQ(known.status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(known.reason, "LeafAmbiguous");
  EXPECT_THAT(known.message,
              testing::ContainsRegex("4 of 4 compute ports: several neighbours answer or share a name"));
  EXPECT_THAT(
      known.message,
      testing::ContainsRegex("two switches are called sonic, chassis [0-9a-f:]+ at ens[12]f[01]np[01] and "
                             "[0-9a-f:]+ at ens[12]f[01]np[01], both with their port Ethernet[04]: give each "
                             "switch a hostname of its own"));
  EXPECT_TRUE(Says(seen, "DiscoveryComplete", crds::ConditionStatus::kTrue)) << "every probe answered";
  EXPECT_EQ(seen.node.FindNic("eno1")->ports.at(0).leaf_port->leaf, "mgmt-0");
}

TEST(Machines, PlainHostIsHonest) {
  const Observation seen = test::RecordedMachine("plain-host").Look();
  ExpectGolden("plain-host", seen);
  EXPECT_THAT(seen.node.gpus, IsEmpty());
  EXPECT_EQ(seen.node.nvlink_domain.missing(), Missing::kNotApplicable);
  EXPECT_EQ(ConditionOf(seen, "Ready").reason, "NoGpus");
  EXPECT_TRUE(Says(seen, "DiscoveryComplete", crds::ConditionStatus::kTrue));
}

// Recorded on a real one (tests/fixtures/machines/README.md), and so without a NIC that carries a job.
TEST(Machines, AGuestWithOneH200IsHealthyAndHasNeitherNvlinkNorRails) {
  const std::string folder = HEDDLE_SOURCE_DIR "/tests/fixtures/machines/h200-guest";
  const Observation seen = test::LookAt(folder);
  ExpectFile("h200-guest.json", crds::ToJson(ReportOf(seen)).dump(1) + "\n");
  ExpectFile("h200-guest.txt", test::TicketAt(folder));
  ASSERT_EQ(seen.node.gpus.size(), 1u);
  EXPECT_TRUE(seen.node.gpus.at(0).healthy) << seen.node.gpus.at(0).unhealthy_reason;
  EXPECT_EQ(seen.node.gpus.at(0).model, "NVIDIA H200");
  EXPECT_FALSE(seen.node.gpus.at(0).numa.known());  // the hypervisor says -1
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 0);     // the driver: not supported, by link and by field
  EXPECT_EQ(seen.node.nvlink_domain.missing(), Missing::kNotApplicable);
  EXPECT_THAT(OfRole(seen.node, NicRole::kManagement), testing::ElementsAre("eth0"));
  EXPECT_THAT(OfRole(seen.node, NicRole::kCompute), IsEmpty());
  EXPECT_TRUE(Says(seen, "Ready", crds::ConditionStatus::kTrue));
  EXPECT_TRUE(Says(seen, "DiscoveryComplete", crds::ConditionStatus::kTrue));
}

TEST(Machines, EmptyFolderIsAMachineOfWhichNothingIsKnown) {
  const test::TemporaryFolder folder;
  const Observation seen = test::LookAt(folder.path(), "nobody");
  ExpectFile("empty.json", crds::ToJson(ReportOf(seen)).dump(1) + "\n");
  ExpectFile("empty.txt", test::TicketAt(folder.path(), "nobody"));
  EXPECT_EQ(seen.node.numa_nodes, 0);
  EXPECT_EQ(ConditionOf(seen, "Ready").reason, "BusUnreadable");
  EXPECT_TRUE(Says(seen, "Ready", crds::ConditionStatus::kUnknown));
  EXPECT_EQ(seen.node.nvlink_domain.missing(), Missing::kUnknown);
  EXPECT_TRUE(Says(seen, "DiscoveryComplete", crds::ConditionStatus::kFalse));
}

TEST(Machines, ADownPortKeepsItsRailAndSaysSo) {
  const Observation seen = test::RecordedMachine("hgx-down").Look();
  const Nic* down = seen.node.FindNic("mlx5_3");
  EXPECT_EQ(down->role, NicRole::kCompute);
  EXPECT_EQ(down->rail, 3);
  EXPECT_EQ(down->ports.at(0).state, LinkState::kDown);
  EXPECT_EQ(down->usable_gbps(), 0);
  EXPECT_EQ(seen.node.FindNic("mlx5_5")->usable_gbps(), 200);
  EXPECT_THAT(ConditionOf(seen, "LinksUp").message,
              HasSubstr("mlx5_3 is down; mlx5_5 trained to 200 Gb/s, others to 400"));
}

TEST(Machines, ABondWithOneCablePulledIsHalfUp) {
  const Observation seen = test::RecordedMachine("roce-half").Look();
  const Nic* bond = seen.node.FindNic("mlx5_bond_0");
  EXPECT_EQ(bond->role, NicRole::kCompute);
  EXPECT_EQ(bond->usable_gbps(), 200);
  EXPECT_THAT(ConditionOf(seen, "LinksUp").message, HasSubstr("mlx5_bond_0 port 2 is down"));
}

TEST(Machines, ABadGpuIsUnhealthyWithAReason) {
  const Observation seen = test::RecordedMachine("hgx-bad-gpu").Look();
  EXPECT_FALSE(seen.node.gpus.at(5).healthy);
  EXPECT_THAT(seen.node.gpus.at(5).unhealthy_reason, HasSubstr("XID 95"));
  EXPECT_TRUE(Says(seen, "GpusHealthy", crds::ConditionStatus::kFalse));
  EXPECT_TRUE(seen.node.gpus.at(4).healthy);
}

TEST(Machines, AnNvlinkThatIsDownIsNamed) {
  test::MemoryFileTree files;
  test::Fill(test::ReadOf("hgx-h100"), files);
  GpuReadings gpus = RecordedGpus(files).Read();
  const auto message = [&] {
    files.Write("nvml.yaml", FormatNvmlYaml(gpus));
    return ConditionOf(test::LookAt(files, "node-00"), "NvlinksUp").message;
  };
  gpus.gpus.at(3).nvlinks.at(4).active = false;
  EXPECT_EQ(message(), "GPU 3 has 17 of 18 NVLinks up: link 4 is down");
  for (GpuReading& gpu : gpus.gpus) gpu.nvlinks.at(16).active = gpu.nvlinks.at(17).active = false;
  EXPECT_EQ(message(), "GPU 3 has 15 of 16 NVLinks up: link 4 is down") << "a slot that no GPU uses";
}

TEST(Machines, LeafNamesComeFromTheCable) {
  const Observation seen = test::RecordedMachine("hgx-recabled").Look();
  EXPECT_EQ(*seen.node.FindNic("mlx5_3")->ports.at(0).leaf_port, (topology::LeafPort{"su1-r3", "17"}));
}

TEST(Machines, GpusWithoutADriverAreShownAndNotUsed) {
  const test::RecordedMachine machine("hgx-no-driver");
  std::filesystem::remove(machine.path() + "/nvml.yaml");
  const Observation seen = machine.Look();
  ASSERT_EQ(seen.node.gpus.size(), 8u);
  EXPECT_FALSE(seen.node.gpus.at(0).healthy);
  EXPECT_EQ(seen.node.NicOfGpu(3)->rail, 3);
  EXPECT_EQ(ConditionOf(seen, "Ready").reason, "GpusUnreadable");
  EXPECT_EQ(seen.node.nvlink_domain.missing(), Missing::kUnknown);
}

// As on a real H200 whose device nodes the container did not get: to install a driver would have been the wrong advice.
TEST(Machines, GpusThatTheAgentIsKeptFromSayWhatTheDriverSays) {
  const test::RecordedMachine machine("hgx-no-driver");
  const base::DiskFileTree files(machine.path());
  auto opened = OpenRecorded(files, machine.path(), "");
  ASSERT_TRUE(opened);
  Readings readings = opened->discovery->Read();
  readings.gpus = {};
  readings.gpus.absent = "NVML does not start: the operating system blocks the device";
  const Observation seen = Assemble(readings);
  ASSERT_EQ(seen.node.gpus.size(), 8u);
  EXPECT_FALSE(seen.node.gpus.at(0).healthy);
  EXPECT_EQ(seen.node.gpus.at(0).unhealthy_reason, readings.gpus.absent);
  EXPECT_THAT(ConditionOf(seen, "Ready").message, HasSubstr(readings.gpus.absent));
  EXPECT_TRUE(Says(seen, "GpusHealthy", crds::ConditionStatus::kUnknown)) << "nobody could ask them";
  EXPECT_EQ(ConditionOf(seen, "GpusHealthy").message,
            "8 GPUs could not be asked: NVML does not start: the operating system blocks the device");
}

TEST(Machines, AGpuThatTheDriverLostDoesNotRenumberTheRails) {
  const test::RecordedMachine machine("hgx-lost-gpu");
  const base::DiskFileTree files(machine.path());
  GpuReadings readings = RecordedGpus(files).Read();
  readings.gpus.erase(readings.gpus.begin() + 2);
  for (std::size_t i = 0; i < readings.gpus.size(); ++i) readings.gpus[i].index = int(i);
  machine.Write("nvml.yaml", FormatNvmlYaml(readings));
  const Observation seen = machine.Look();
  EXPECT_EQ(seen.node.gpus.size(), 7u);
  EXPECT_EQ(seen.node.FindNic("mlx5_2")->rail, 2);
  EXPECT_EQ(seen.node.FindNic("mlx5_7")->rail, 7);
  EXPECT_THAT(ConditionOf(seen, "DiscoveryComplete").message, HasSubstr("0000:52:00.0 is on the PCI bus"));
  EXPECT_TRUE(Says(seen, "GpusHealthy", crds::ConditionStatus::kFalse));
  EXPECT_EQ(
      ConditionOf(seen, "GpusHealthy").message,
      "the GPU at 0000:52:00.0 is on the PCI bus and the driver does not list it: see dmesg, and reset it or "
      "power-cycle the node");
}

TEST(Machines, GpusThatAreKeptForVirtualMachinesAreLeftOutAndNoFault) {
  const test::TemporaryFolder folder;
  test::WriteMachine("hgx-h100", folder.path());
  const std::vector<GpuReading> gpus = RecordedGpus(base::DiskFileTree(folder.path())).Read().gpus;
  const auto keep = [&folder](const GpuReading& gpu) {
    std::filesystem::create_symlink("../../../../bus/pci/drivers/vfio-pci",
                                    folder.path() + "/sys/bus/pci/devices/" + gpu.pci + "/driver");
  };
  GpuReadings seven;
  seven.gpus.assign(gpus.begin(), gpus.end() - 1);
  folder.Write("nvml.yaml", FormatNvmlYaml(seven));
  keep(gpus.at(7));
  const Observation seen = test::LookAt(folder.path());
  EXPECT_EQ(seen.node.gpus.size(), 7u);
  EXPECT_TRUE(Says(seen, "GpusHealthy", crds::ConditionStatus::kTrue));
  EXPECT_EQ(ConditionOf(seen, "DiscoveryComplete").message,
            "left out: " + gpus[7].pci + " is a GPU that vfio-pci keeps for virtual machines");
  EXPECT_EQ(seen.node.FindNic("mlx5_7")->rail, 7);
  // All of them, and no driver of NVIDIA: nothing is missing.
  for (const GpuReading& gpu : seven.gpus) keep(gpu);
  folder.Write("nvml.yaml", "absent: no driver\ngpus: []\n");
  EXPECT_EQ(ConditionOf(test::LookAt(folder.path()), "Ready").reason, "NoGpus");
}

// As drivers without nvmlDeviceGetNvLinkRemoteDeviceType answer.
TEST(Machines, NvlinksWhoseEndTheDriverDoesNotSayEndAtTheSwitchesOfTheBus) {
  const test::RecordedMachine machine("hgx-h100");
  const base::DiskFileTree files(machine.path());
  auto opened = OpenRecorded(files, machine.path(), "");
  ASSERT_TRUE(opened);
  Readings readings = opened->discovery->Read();
  const Observation told = Assemble(readings);
  for (GpuReading& gpu : readings.gpus.gpus) {
    for (NvlinkReading& link : gpu.nvlinks) link.end = LinkEnd::kUnknown;
  }
  const Observation seen = Assemble(readings);
  EXPECT_TRUE(seen.node.nvlink_domain.known());
  EXPECT_EQ(seen.node, told.node);
  EXPECT_EQ(seen.problems, told.problems);
  for (GpuReading& gpu : readings.gpus.gpus) {
    for (NvlinkReading& link : gpu.nvlinks) link.remote_pci.clear();
  }
  const Observation blind = Assemble(readings);
  EXPECT_EQ(blind.node.nvlink_domain.missing(), Missing::kUnknown) << "nobody said that only some are joined";
  EXPECT_THAT(blind.problems, testing::Contains(HasSubstr("says where the NVLinks of GPU 0 end")));
}

TEST(Machines, OneBadFileHidesNothingElse) {
  const test::RecordedMachine machine("hgx-bad-files");
  const base::DiskFileTree files(machine.path());
  for (const char* bad : {"nvml.yaml", "lldp.json", "ib.txt"}) {
    const std::string good = files.Read(bad).value_or("");
    machine.Write(bad, std::string("\0\xff{[garbage\n", 12));
    const Observation seen = machine.Look();
    EXPECT_THAT(seen.problems, testing::Contains(HasSubstr(bad))) << bad;
    EXPECT_EQ(OfRole(seen.node, NicRole::kCompute).size(), 8u) << bad;
    EXPECT_EQ(seen.node.FindNic("mlx5_3")->rail, 3) << bad;
    (void)ReportOf(seen);  // must be valid UTF-8
    machine.Write(bad, good);
  }
}

TEST(Machines, ALoopOfLinksEnds) {
  const test::TemporaryFolder folder;
  test::WriteMachine("plain-host", folder.path());
  std::filesystem::create_symlink("0000:66:00.0", folder.path() + "/sys/bus/pci/devices/0000:66:00.0");
  std::filesystem::create_symlink("infiniband", folder.path() + "/sys/class/infiniband");
  std::filesystem::create_symlink("..", folder.path() + "/sys/class/net/loop");
  const Observation seen = test::LookAt(folder.path());
  EXPECT_THAT(seen.problems, testing::Contains(HasSubstr("0000:66:00.0")));
  EXPECT_NE(seen.node.FindNic("eno1"), nullptr);
}

}  // namespace
}  // namespace heddle::nodeagent
