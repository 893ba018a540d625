#include "nodeagent/nic/virtual_functions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kPci = "sys/bus/pci/devices";

// As sysfs shows it; `driver` and `device` are empty where there is none.
void Put(test::MemoryFileTree& files, const std::string& physical, int number, const std::string& address,
         const std::string& driver, const std::string& device) {
  const std::string folder = fmt::format("{}/{}", kPci, address);
  files.Link(fmt::format("{}/{}/virtfn{}", kPci, physical, number), "../" + address);
  files.MakeFolder(folder);
  if (!driver.empty()) files.Link(folder + "/driver", "../../../bus/pci/drivers/" + driver);
  if (!device.empty()) files.MakeFolder(folder + "/infiniband/" + device);
}

topology::Nic NicAt(const std::string& name, const std::string& pci) {
  topology::Nic nic;
  nic.name = name;
  nic.pci = pci;
  return nic;
}

TEST(VirtualFunctions, AreNamedByTheirRdmaDevicesAndOfTheNicOfTheirPhysicalFunction) {
  test::MemoryFileTree files;
  Put(files, "0000:18:00.0", 0, "0000:18:00.2", "mlx5_core", "mlx5_3");
  Put(files, "0000:18:00.0", 1, "0000:18:00.3", "mlx5_core", "mlx5_4");
  Put(files, "0000:18:00.1", 0, "0000:18:08.2", "mlx5_core", "mlx5_5");
  topology::Node node;
  node.nics = {NicAt("mlx5_0", "0000:18:00.0"), NicAt("mlx5_1", "0000:18:00.1")};
  const VirtualFunctions first = ReadVirtualFunctions(files, node, node.nics[0]);
  EXPECT_THAT(first.devices, ElementsAre("mlx5_3", "mlx5_4"));
  EXPECT_FALSE(first.hidden);
  EXPECT_THAT(ReadVirtualFunctions(files, node, node.nics[1]).devices, ElementsAre("mlx5_5"));
}

TEST(VirtualFunctions, OfABondAreThoseOfBothOfItsPorts) {
  test::MemoryFileTree files;
  Put(files, "0000:29:00.0", 0, "0000:29:00.2", "mlx5_core", "mlx5_6");
  Put(files, "0000:29:00.1", 0, "0000:29:08.2", "mlx5_core", "mlx5_7");
  topology::Node node;
  node.nics = {NicAt("mlx5_bond_0", "0000:29:00.0")};
  EXPECT_THAT(ReadVirtualFunctions(files, node, node.nics[0]).devices, ElementsAre("mlx5_6", "mlx5_7"));
}

TEST(VirtualFunctions, OfAnExcludedPortOfTheCardAreNotThoseOfItsNeighbour) {
  test::MemoryFileTree files;
  Put(files, "0000:29:00.1", 0, "0000:29:08.2", "mlx5_core", "mlx5_7");
  files.MakeFolder("sys/bus/pci/devices/0000:29:00.1/infiniband/mlx5_1");
  topology::Node node;
  node.nics = {NicAt("mlx5_0", "0000:29:00.0")};
  EXPECT_EQ(ReadVirtualFunctions(files, node, node.nics[0]), VirtualFunctions());
}

TEST(VirtualFunctions, OfVirtualMachinesAndOfNobodyAreNoMatterForPods) {
  test::MemoryFileTree files;
  Put(files, "0000:29:00.0", 0, "0000:29:00.2", "vfio-pci", "");
  Put(files, "0000:29:00.0", 1, "0000:29:00.3", "mlx5_vfio_pci", "");
  Put(files, "0000:29:00.0", 2, "0000:29:00.4", "", "");
  Put(files, "0000:29:00.0", 3, "0000:29:00.5", "uio_pci_generic", "");
  files.Write("sys/module/ib_core/parameters/netns_mode", "N\n");
  topology::Node node;
  node.nics = {NicAt("mlx5_0", "0000:29:00.0")};
  EXPECT_EQ(ReadVirtualFunctions(files, node, node.nics[0]), VirtualFunctions());
}

TEST(VirtualFunctions, AreHiddenWhereADriverHasThemAndNoRdmaDeviceIsSeen) {
  test::MemoryFileTree files;
  Put(files, "0000:18:00.0", 0, "0000:18:00.2", "mlx5_core", "mlx5_3");
  Put(files, "0000:18:00.0", 1, "0000:18:00.3", "mlx5_core", "");
  topology::Node node;
  node.nics = {NicAt("mlx5_0", "0000:18:00.0")};
  EXPECT_FALSE(ReadVirtualFunctions(files, node, node.nics[0]).hidden) << "shared, the host would see it";
  files.Write("sys/module/ib_core/parameters/netns_mode", "N\n");
  const VirtualFunctions found = ReadVirtualFunctions(files, node, node.nics[0]);
  EXPECT_TRUE(found.hidden);
  EXPECT_THAT(found.devices, ElementsAre("mlx5_3"));
  // So is the folder of a device that belongs to another network namespace.
  files.Remove("sys/bus/pci/devices/0000:18:00.2/infiniband/mlx5_3");
  EXPECT_THAT(ReadVirtualFunctions(files, node, node.nics[0]).devices, IsEmpty());
}

TEST(VirtualFunctions, OfWhichNoListCanHoldTheNameAreHidden) {
  topology::Node node;
  node.nics = {NicAt("mlx5_0", "0000:18:00.0")};
  for (const std::string& name :
       {std::string("a,b:1"), std::string("=a"), std::string("a\n"), std::string(64, 'a')}) {
    test::MemoryFileTree files;
    Put(files, "0000:18:00.0", 0, "0000:18:00.2", "mlx5_core", name);
    EXPECT_EQ(ReadVirtualFunctions(files, node, node.nics[0]), (VirtualFunctions{{}, true})) << name;
  }
}

TEST(VirtualFunctions, AreNoneWhereSysfsHasNoneOrLinksThatLeadNowhere) {
  test::MemoryFileTree files;
  files.Link(fmt::format("{}/0000:18:00.0/virtfn0", kPci), "../no-address");
  files.Write(fmt::format("{}/0000:18:00.0/virtfn1", kPci), "no link\n");
  topology::Node node;
  node.nics = {NicAt("mlx5_0", "0000:18:00.0"), NicAt("rxe0", "")};
  EXPECT_EQ(ReadVirtualFunctions(files, node, node.nics[0]), VirtualFunctions());
  EXPECT_EQ(ReadVirtualFunctions(files, node, node.nics[1]), VirtualFunctions());
  EXPECT_EQ(ReadVirtualFunctions(test::MemoryFileTree(), node, node.nics[0]), VirtualFunctions());
}

}  // namespace
}  // namespace heddle::nodeagent
