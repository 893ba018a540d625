#include "formats/nccl_xml.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "shared_data.h"

namespace heddle::formats {
namespace {

using testing::ElementsAre;
using topology::PciDistance;

NcclTopology Read(const std::string& name) {
  auto topology = ParseNcclXml(test::SharedData("nccl-xml/" + name));
  EXPECT_TRUE(topology) << name << ": " << topology.error().message;
  return topology.value_or(NcclTopology());
}

std::vector<std::string> NicsOf(const NcclTopology& topology, const NcclGpu& gpu) {
  std::vector<std::string> names;
  for (const std::size_t i : NearestNics(topology, gpu)) {
    names.push_back(topology.nics[i].name.empty() ? topology.nics[i].pci : topology.nics[i].name);
  }
  return names;
}

TEST(NcclXml, PairsTwoGpusWithOneEfaOnP4d) {
  const NcclTopology topology = Read("p4d-24xl-topo.xml");
  ASSERT_EQ(topology.gpus.size(), 8u);
  ASSERT_EQ(topology.nics.size(), 4u);
  for (const NcclGpu& gpu : topology.gpus) {
    const std::string bus = gpu.pci.substr(0, 8);
    EXPECT_THAT(NicsOf(topology, gpu), ElementsAre(bus + "1b.0")) << gpu.pci;
    EXPECT_EQ(gpu.numa, gpu.pci < "0000:80" ? 0 : 1) << gpu.pci;
  }
}

TEST(NcclXml, FindsTheNumaNodesOfNdv4ByBusId) {
  const NcclTopology topology = Read("ndv4-topo.xml");
  ASSERT_EQ(topology.gpus.size(), 8u);
  const std::vector<int> numa{1, 1, 0, 0, 3, 3, 2, 2};
  for (std::size_t i = 0; i < numa.size(); ++i) {
    EXPECT_EQ(topology.gpus[i].numa, numa[i]) << topology.gpus[i].pci;
    EXPECT_EQ(NearestNics(topology, topology.gpus[i]).size(), 2u);
    EXPECT_EQ(Distance(topology.gpus[i], topology.nics[NearestNics(topology, topology.gpus[i])[0]]),
              PciDistance::kPix);
  }
}

TEST(NcclXml, PairsEachMi300WithTheNicOfItsNumber) {
  const NcclTopology topology = Read("mi300-topo_8p_940.xml");
  ASSERT_EQ(topology.gpus.size(), 8u);
  std::size_t links = 0;
  for (int i = 0; i < 8; ++i) {
    const NcclGpu& gpu = topology.gpus[std::size_t(i)];
    EXPECT_EQ(gpu.index, i);
    EXPECT_THAT(NicsOf(topology, gpu), ElementsAre("mlx5_" + std::to_string(i)));
    EXPECT_EQ(gpu.numa, i < 4 ? 0 : 1);
    links += gpu.link_targets.size();
  }
  EXPECT_EQ(links, 56u);
  EXPECT_EQ(topology.nics[0].gbps, 400);
}

TEST(NcclXml, SeesOnlyNumaInAVirtualMachine) {
  const NcclTopology topology = Read("mi300-topo_8p_940vm.xml");
  ASSERT_EQ(topology.gpus.size(), 8u);
  for (const NcclGpu& gpu : topology.gpus) {
    EXPECT_TRUE(gpu.switches.empty());
    const auto nearest = NearestNics(topology, gpu);
    EXPECT_GT(nearest.size(), 1u);
    for (const std::size_t nic : nearest) EXPECT_EQ(topology.nics[nic].numa, gpu.numa);
    EXPECT_EQ(Distance(gpu, topology.nics[nearest[0]]), PciDistance::kPhb);
  }
}

TEST(NcclXml, SaysWhatIsWrongAndWhere) {
  const auto cut = ParseNcclXml("<system><cpu><pci busid=\"0000:1\"");
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, testing::HasSubstr("at byte"));
  EXPECT_FALSE(ParseNcclXml("<topology/>"));
  EXPECT_FALSE(ParseNcclXml("<system><cpu><pci class=\"0x030200\"/></cpu></system>"));
  EXPECT_FALSE(ParseNcclXml(""));
}

TEST(NcclXml, RefusesSwitchesWithoutEnd) {
  std::string deep = "<system><cpu>";
  for (int i = 0; i < 100'000; ++i) deep += "<pci busid=\"0000:01:00.0\" class=\"0x060400\">";
  EXPECT_FALSE(ParseNcclXml(deep));  // and never runs out of stack
  deep = "<system><cpu>";
  for (int i = 0; i < 100; ++i) deep += "<pci busid=\"0000:01:00.0\" class=\"0x060400\">";
  for (int i = 0; i < 100; ++i) deep += "</pci>";
  const auto topology = ParseNcclXml(deep + "</cpu></system>");
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code, base::Code::kTooLarge);
}

}  // namespace
}  // namespace heddle::formats
