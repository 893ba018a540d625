// A NIC that the PCI bus shows, or should show, and that has no RDMA device.
#include "nodeagent/nic/silent_nics.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "faulty_files.h"
#include "nodeagent/health/conditions.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kDevices = "sys/bus/pci/devices/";
const std::string kRdma = "sys/class/infiniband/";
const std::string kNetnsMode = "sys/module/ib_core/parameters/netns_mode";

crds::Condition LinksUpOf(const Observation& seen) {
  for (const crds::Condition& condition : ConditionsOf(seen)) {
    if (condition.type == kLinksUp) return condition;
  }
  return {};
}

int RailOf(const Observation& seen, const std::string& nic) {
  const topology::Nic* found = seen.node.FindNic(nic);
  return found == nullptr ? -2 : found->rail.value_or(-1);
}

class SilentNics : public testing::Test {
 protected:
  void Machine(const std::string& shape) { test::Fill(test::ReadOf(shape), files_); }
  Observation Look() const { return test::LookAt(files_, "node-00"); }
  // As mlx5_core makes it, whether or not mlx5_ib is loaded.
  void MakeRdmaPart(const std::string& function) {
    const std::string way = files_.ReadLink(kDevices + function).value_or("");
    for (const char* part : {"rdma", "eth"}) {
      const std::string name = std::string("mlx5_core.") + part + ".";
      files_.Link("sys/bus/auxiliary/devices/" + name + function.substr(5, 2), way + "/" + name + "0");
    }
  }

  test::MemoryFileTree files_;
};

TEST_F(SilentNics, AreNamedWithTheGpuThatLostItsNic) {
  Machine("hgx-h100");
  EXPECT_EQ(LinksUpOf(Look()).status, crds::ConditionStatus::kTrue);
  files_.Remove(kRdma + "mlx5_3");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems,
              ElementsAre(HasSubstr("function 0000:5e:00.0 (15b3:1021) has no RDMA device: ")));
  ASSERT_EQ(seen.lost_nics.size(), 1U);
  EXPECT_THAT(seen.lost_nics[0], HasSubstr("GPU 3 has no NIC of its own on rail 3 and borrows mlx5_"));
  const crds::Condition links = LinksUpOf(seen);
  EXPECT_EQ(links.status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(links.reason, "NicGone");
  EXPECT_THAT(links.message, HasSubstr("GPU 3"));
  EXPECT_EQ(RailOf(seen, "mlx5_4"), 4);
}

TEST_F(SilentNics, AreOneSentenceWhereTheDriverOfAllIsAway) {
  Machine("hgx-h100");
  for (int i = 0; i < 8; ++i) files_.Remove(kRdma + "mlx5_" + std::to_string(i));
  const Observation seen = Look();
  EXPECT_THAT(seen.problems,
              ElementsAre(HasSubstr("functions 0000:18:00.0, 0000:40:00.0, 0000:4f:00.0, 0000:5e:00.0")));
  EXPECT_EQ(seen.lost_nics.size(), 8U);
  EXPECT_EQ(LinksUpOf(seen).reason, "NicGone");
}

// Two GPUs and two NICs stand behind each switch: the one that is left must not take the other's rail.
TEST_F(SilentNics, KeepTheRailsOfTheOthers) {
  Machine("dgx-a100");
  files_.Remove(kRdma + "mlx5_0");
  const Observation seen = Look();
  EXPECT_EQ(RailOf(seen, "mlx5_1"), 1);
  EXPECT_EQ(RailOf(seen, "mlx5_2"), 2);
  EXPECT_EQ(seen.node.FindNic("mlx5_4")->role, topology::NicRole::kStorage);
  EXPECT_THAT(seen.lost_nics,
              ElementsAre(HasSubstr("GPU 0 has no NIC of its own on rail 0 and borrows mlx5_1")));
}

TEST_F(SilentNics, LeaveStorageWhatItIsWhereEveryRailIsSilent) {
  Machine("dgx-a100");
  for (const char* rail : {"0", "1", "2", "3", "6", "7", "8", "9"}) files_.Remove(kRdma + "mlx5_" + rail);
  const Observation seen = Look();
  for (const char* storage : {"mlx5_4", "mlx5_5"})
    EXPECT_EQ(seen.node.FindNic(storage)->role, topology::NicRole::kStorage) << storage;
  EXPECT_EQ(seen.lost_nics.size(), 8U);
}

TEST_F(SilentNics, OfStorageAreNamedAndNoGpuLostOne) {
  Machine("dgx-a100");
  files_.Remove(kRdma + "mlx5_4");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("function 0000:61:00.0 (15b3:101b) has no RDMA device")));
  EXPECT_THAT(seen.lost_nics, IsEmpty());
}

TEST_F(SilentNics, OverEthernetAreKnownByTheirModel) {
  Machine("roce-dual-tor");
  EXPECT_THAT(Look().problems, IsEmpty()) << "the second function of a bond has no RDMA device of its own";
  files_.Remove(kRdma + "mlx5_bond_1");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("function 0000:97:00.0 (15b3:1021) has no RDMA device")));
  ASSERT_EQ(seen.lost_nics.size(), 4U);
  EXPECT_THAT(seen.lost_nics[0], HasSubstr("GPU 4 has no NIC of its own on rail 1 and borrows mlx5_bond_0"));
}

TEST_F(SilentNics, AreToldFromOnesThatTheBusLost) {
  Machine("hgx-h100");
  files_.Remove(kRdma + "mlx5_3");
  files_.Remove(kDevices + "0000:5e:00.0");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, Not(Contains(HasSubstr("no RDMA device"))));
  EXPECT_THAT(seen.lost_nics, ElementsAre(HasSubstr("its NIC is gone from the PCI bus")));
  EXPECT_THAT(LinksUpOf(seen).message, HasSubstr("GPU 3 has no NIC of its own on rail 3"));
}

TEST_F(SilentNics, AreNotThoseThatSomebodyTookOnPurpose) {
  Machine("hgx-h100");
  files_.Remove(kRdma + "mlx5_3");
  files_.Link("sys/devices/pci0000:5b/0000:5b:01.0/0000:5c:00.0/0000:5d:00.0/0000:5e:00.0/driver",
              "../../../../../../bus/pci/drivers/vfio-pci");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(seen.lost_nics, IsEmpty());
}

TEST_F(SilentNics, AreToldToWhoeverPlacesAndCountedAsARailThatIsNotUp) {
  Machine("hgx-h100");
  const topology::Node sound = Look().node;
  for (const topology::Gpu& gpu : sound.gpus) EXPECT_FALSE(gpu.nic_gone) << gpu.index;
  files_.Remove(kRdma + "mlx5_3");
  const topology::Node node = Look().node;
  EXPECT_EQ(node.gpus.at(3).nic_gone, (topology::LostNic{3, "0000:5e:00.0"}));
  EXPECT_FALSE(node.gpus.at(2).nic_gone);
  EXPECT_EQ(crds::Summarise(node).rails, "7/8");
  files_.Remove(kDevices + "0000:5e:00.0");
  EXPECT_EQ(Look().node.gpus.at(3).nic_gone, (topology::LostNic{3, ""}));
}

// Handed over they keep their place, and are no NIC of this machine.
TEST_F(SilentNics, ThatAVirtualMachineHasAreLeftOutAndRenameNoRail) {
  Machine("dgx-a100");
  files_.Remove(kRdma + "mlx5_0");
  const std::string address = "0000:0c:00.0";
  EXPECT_EQ(Look().node.gpus.at(0).nic_gone, (topology::LostNic{0, address}));
  const std::filesystem::path way(kDevices + files_.ReadLink(kDevices + address).value_or(""));
  files_.Link(way.lexically_normal().string() + "/driver", "../../../../../../bus/pci/drivers/vfio-pci");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(seen.lost_nics, IsEmpty());
  EXPECT_FALSE(seen.node.gpus.at(0).nic_gone);
  EXPECT_THAT(seen.excluded,
              Contains(testing::AllOf(testing::Field(&Exclusion::pci, address),
                                      testing::Field(&Exclusion::reason, HasSubstr("vfio-pci")))));
  EXPECT_EQ(RailOf(seen, "mlx5_1"), 1);
}

// Two EFA devices for each GPU: the ports that are left are all up.
TEST_F(SilentNics, OfAGpuWithSeveralAreSaidOfItsLinks) {
  Machine("p5en-48xlarge");
  EXPECT_EQ(LinksUpOf(Look()).status, crds::ConditionStatus::kTrue);
  const topology::Node sound = Look().node;
  const std::vector<const topology::Nic*> nics = sound.NicsOfGpu(5);
  ASSERT_EQ(nics.size(), 2U);
  const std::string lost = nics[0]->name, left = nics[1]->name, pci = nics[0]->pci;
  files_.Remove(kRdma + lost);
  const Observation seen = Look();
  EXPECT_THAT(seen.problems,
              ElementsAre(HasSubstr("1 of 16 EFA functions on the PCI bus have no RDMA device")));
  EXPECT_THAT(seen.lost_nics, ElementsAre("GPU 5 lacks a NIC on rail 5 and is left with " + left +
                                          ": the other " + pci + " has no RDMA device (DiscoveryComplete)"));
  EXPECT_EQ(LinksUpOf(seen).status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(LinksUpOf(seen).reason, "NicGone");
  EXPECT_EQ(seen.node.gpus.at(5).nic_gone, (topology::LostNic{5, pci}));
  files_.Remove(kDevices + pci);
  EXPECT_THAT(Look().lost_nics,
              ElementsAre("GPU 5 lacks a NIC on rail 5 and is left with " + left +
                          ": the other is gone from the PCI bus; reseat or replace the card"));
}

// Nothing of their models is left to know them by; what their driver made for RDMA is.
TEST_F(SilentNics, OverEthernetAreKnownByTheirDriverWhereAllOfThemAre) {
  Machine("roce-dual-tor");
  const std::vector<std::string> functions{"0000:17:00.0", "0000:97:00.0"};
  for (int i : {0, 1}) files_.Remove(kRdma + "mlx5_bond_" + std::to_string(i));
  EXPECT_THAT(Look().problems, Not(Contains(HasSubstr("no RDMA device"))));
  for (const std::string& function : functions) MakeRdmaPart(function);
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, Contains(testing::AllOf(HasSubstr(functions[0]), HasSubstr(functions[1]),
                                                     HasSubstr("have no RDMA device"))));
  EXPECT_EQ(seen.lost_nics.size(), 8U);
  EXPECT_EQ(LinksUpOf(seen).reason, "NicGone");
}

// One card beside some of the GPUs, whose driver of RDMA is kept from loading: the host wants none.
TEST_F(SilentNics, ThatOnlyAPartForRdmaTellsAreNoGpusWhereSomeHaveNone) {
  Machine("roce-dual-tor");
  for (int i : {0, 1}) files_.Remove(kRdma + "mlx5_bond_" + std::to_string(i));
  MakeRdmaPart("0000:17:00.0");
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, Contains(HasSubstr("function 0000:17:00.0 (15b3:1021) has no RDMA device")));
  EXPECT_THAT(seen.lost_nics, IsEmpty());
  for (const topology::Gpu& gpu : seen.node.gpus) EXPECT_FALSE(gpu.nic_gone) << gpu.index;
  MakeRdmaPart("0000:97:00.0");
  const topology::Node without = Look().node;
  for (const topology::Gpu& gpu : without.gpus) EXPECT_TRUE(gpu.nic_gone) << gpu.index;
  files_.Write(kNetnsMode, "N\n");
  const Observation with_pods = Look();
  EXPECT_THAT(with_pods.problems, Not(Contains(HasSubstr("no RDMA device")))) << "pods may have both";
  EXPECT_THAT(with_pods.lost_nics, IsEmpty());
}

// A gang that has all of them would be told that its own NICs failed.
TEST_F(SilentNics, ThatPodsMayHaveAreNotToldToWhoeverPlaces) {
  Machine("hgx-h100");
  files_.Remove(kRdma + "mlx5_3");
  files_.Write(kNetnsMode, "Y\n");
  EXPECT_EQ(Look().node.gpus.at(3).nic_gone, (topology::LostNic{3, "0000:5e:00.0"}));
  files_.Write(kNetnsMode, "N\n");
  for (int i = 0; i < 8; ++i) files_.Remove(kRdma + "mlx5_" + std::to_string(i));
  const Observation seen = Look();
  for (const topology::Gpu& gpu : seen.node.gpus) EXPECT_FALSE(gpu.nic_gone) << gpu.index;
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("have no RDMA device")));
  EXPECT_EQ(LinksUpOf(seen).reason, "NicGone");
}

TEST_F(SilentNics, ThatAPodCannotHaveAreToldToWhoeverPlacesEverywhere) {
  Machine("hgx-h100");
  files_.Write(kNetnsMode, "N\n");
  files_.Remove(kRdma + "mlx5_3");
  files_.Remove(kRdma + "mlx5_6");
  files_.Remove(kDevices + "0000:5e:00.0");
  const topology::Node node = Look().node;
  EXPECT_EQ(node.gpus.at(3).nic_gone, (topology::LostNic{3, ""})) << "the bus lost it";
  EXPECT_FALSE(node.gpus.at(6).nic_gone);
}

TEST_F(SilentNics, OfAGpuWithSeveralAreNoFaultOfItsLinksWherePodsMayHaveThem) {
  Machine("p5en-48xlarge");
  const std::string lost = Look().node.NicsOfGpu(5).at(0)->name;
  files_.Write(kNetnsMode, "N\n");
  files_.Remove(kRdma + lost);
  const Observation seen = Look();
  EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("1 of 16 EFA functions on the PCI bus")));
  EXPECT_EQ(LinksUpOf(seen).status, crds::ConditionStatus::kTrue);
  EXPECT_FALSE(seen.node.gpus.at(5).nic_gone);
}

// Of the two NICs of a switch.
TEST_F(SilentNics, ThatAVirtualMachineHasDoNotHideThatTheNextOneLeftTheBus) {
  Machine("dgx-a100");
  const std::string address = "0000:0c:00.0", gone = Look().node.FindNic("mlx5_1")->pci;
  const std::filesystem::path way(kDevices + files_.ReadLink(kDevices + address).value_or(""));
  files_.Link(way.lexically_normal().string() + "/driver", "../../../../../../bus/pci/drivers/vfio-pci");
  for (const char* nic : {"mlx5_0", "mlx5_1"}) files_.Remove(kRdma + nic);
  files_.Remove(kDevices + gone);
  const Observation seen = Look();
  EXPECT_THAT(seen.lost_nics, ElementsAre(testing::AllOf(HasSubstr("GPU 1 has no NIC of its own on rail 1"),
                                                         HasSubstr("its NIC is gone from the PCI bus"))));
  EXPECT_EQ(seen.node.gpus.at(1).nic_gone, (topology::LostNic{1, ""}));
  EXPECT_FALSE(seen.node.gpus.at(0).nic_gone);
}

TEST_F(SilentNics, AreUnknownWhereTheListOfRdmaDevicesCannotBeRead) {
  Machine("hgx-h100");
  EXPECT_EQ(FindSilentNics(files_, ProbePci(files_), {}).size(), 8U);
  test::FaultyFileTree faulty(files_);
  faulty.Fail("sys/class/infiniband");
  EXPECT_THAT(FindSilentNics(faulty, ProbePci(files_), {}), IsEmpty());
  faulty.Heal();
  faulty.Fail("sys/class/infiniband/mlx5_3/device");
  EXPECT_THAT(FindSilentNics(faulty, ProbePci(files_), {}), IsEmpty()) << "it may be where the silent one is";
}

TEST(SilentNicsOnDisk, AreNotThoseThatManageNvlinkSwitches) {
  const test::TemporaryFolder folder;
  test::WriteMachine("hgx-b200", folder.path());
  std::filesystem::remove_all(folder.path() + "/" + kRdma + "mlx5_8");
  const Observation seen = test::LookAt(folder.path());
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(seen.lost_nics, IsEmpty());
}

TEST(SilentNicsOnDisk, AreOnNoMachineThatIsSound) {
  // Other tests of this program change these.
  const std::set<std::string> changed{"hgx-no-driver", "hgx-lost-gpu", "hgx-bad-files", "hgx-pulled",
                                      "hgx-watched"};
  int looked = 0;
  for (const std::string& name : test::FleetNames()) {
    if (changed.contains(name)) continue;
    const Observation seen = test::RecordedMachine(name).Look();
    EXPECT_THAT(seen.problems, Not(Contains(HasSubstr("no RDMA device")))) << name;
    EXPECT_THAT(seen.lost_nics, IsEmpty()) << name;
    ++looked;
  }
  EXPECT_GE(looked, 18);
}

}  // namespace
}  // namespace heddle::nodeagent
