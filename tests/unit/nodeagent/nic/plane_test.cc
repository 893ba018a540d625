#include "nodeagent/nic/plane.h"

#include <gmock/gmock.h>

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;

TEST(PlaneOfLeaf, IsAPartOfTheName) {
  EXPECT_EQ(PlaneOfLeaf("su0-r3-p1"), 1);
  EXPECT_EQ(PlaneOfLeaf("leaf-r12-p0"), 0);
  EXPECT_EQ(PlaneOfLeaf("LEAF.Plane-2.07"), 2);
  EXPECT_EQ(PlaneOfLeaf("dc1_plane3_leaf12"), 3);
  EXPECT_EQ(PlaneOfLeaf("pl2/leaf 4"), 2);
}

TEST(PlaneOfLeaf, IsToldByNothingElse) {
  for (const char* name : {"", "leaf-12", "spine1", "pod1-leaf2", "p", "plane", "ap1", "p1-p2", "p99",
                           "plane-x", "Ethernet1/1", "planet1"})
    EXPECT_EQ(PlaneOfLeaf(name), std::nullopt) << name;
}

// Two NICs of two ports each, on the four leaves that are named.
struct Bed {
  RdmaReadings rdma;
  std::vector<topology::Nic> nics;

  explicit Bed(std::vector<std::string> leaves) {
    for (std::size_t i = 0; i < leaves.size(); i += 2) {
      RdmaDevice device;
      topology::Nic nic;
      nic.name = device.name = "mlx5_" + std::to_string(i / 2);
      nic.role = topology::NicRole::kCompute;
      for (int port = 0; port < 2; ++port) {
        device.ports.emplace_back();
        device.ports.back().number = port + 1;
        nic.ports.emplace_back();
        nic.ports.back().number = port + 1;
        nic.ports.back().state = topology::LinkState::kActive;
        if (const std::string& leaf = leaves[i + std::size_t(port)]; !leaf.empty())
          nic.ports.back().leaf_port = topology::LeafPort{leaf, "1"};
      }
      rdma.devices.push_back(device);
      nics.push_back(nic);
    }
  }
  std::vector<int> Planes() {
    NamePlanes(rdma, nics);
    std::vector<int> planes;
    for (const topology::Nic& nic : nics) {
      for (const topology::NicPort& port : nic.ports) planes.push_back(port.plane);
    }
    return planes;
  }
};

TEST(Planes, AreThoseOfTheLeavesNames) {
  EXPECT_THAT(Bed({"r0-p0", "r0-p1", "r1-p0", "r1-p1"}).Planes(), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Bed({"r0-p1", "r0-p0", "r1-p0", "r1-p1"}).Planes(),
              ElementsAre(1, 0, 0, 1));  // a swapped cable
}

TEST(Planes, AreOneWhereTheNamesAreNoSystem) {
  EXPECT_THAT(Bed({"r0-p0", "r0-p1", "tor-a", "r1-p1"}).Planes(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Bed({"r0-p1", "r0-p1", "r1-p0", "r1-p1"}).Planes(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Bed({"r0-p1", "", "r1-p0", "r1-p1"}).Planes(), ElementsAre(0, 0, 0, 0));
}

TEST(Planes, OfAPortWithoutLinkAreNotAsked) {
  Bed bed({"r0-p0", "", "r1-p0", "r1-p1"});
  bed.nics[0].ports[1].state = topology::LinkState::kDown;
  EXPECT_THAT(bed.Planes(), ElementsAre(0, 0, 0, 1));
}

TEST(Planes, ThatAFileToldAreLeftAlone) {
  Bed bed({"r0-p0", "r0-p1", "r1-p0", "r1-p1"});
  bed.rdma.devices[0].ports[0].plane = 5;
  bed.nics[0].ports[0].plane = 5;
  EXPECT_THAT(bed.Planes(), ElementsAre(5, 0, 0, 0));
}

TEST(Planes, OfABondAreOne) {
  Bed bed({"r0-p0", "r0-p1", "r1-p0", "r1-p1"});
  for (RdmaDevice& device : bed.rdma.devices) device.ports.resize(1);  // the driver shows a bond as one port
  EXPECT_THAT(bed.Planes(), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace heddle::nodeagent
