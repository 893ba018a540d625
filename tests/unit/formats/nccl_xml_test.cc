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

TEST(NcclXml, KnowsAGpuAndANicWhoseClassNcclCouldNotRead) {
  const auto topology = ParseNcclXml(
      R"(<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x03"/>)"
      R"(<pci busid="0000:02:00.0" class="0x02"><nic><net name="eth0" guid="0x0" dev="0"/></nic></pci>)"
      R"(<pci busid="0000:03:00.0" class="0x02"/></cpu></system>)");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->gpus.size(), 1u);
  ASSERT_EQ(topology->nics.size(), 2u);
  EXPECT_FALSE(topology->nics[0].rdma);  // a socket's GUID is its number
  EXPECT_TRUE(topology->nics[1].rdma);
}

TEST(NcclXml, ReadsWhatItWrites) {
  NcclXmlPci gpu{"0000:1b:00.0", 0x030200, 0x10de, 0x2330, 32000, 16, NcclXmlGpu{3, 90, false, {}}, {}, {}};
  gpu.gpu->links = {{"0000:05:00.0", 0x068000, 5}, {"fffffff:ffff:ff", 0x068000, 13}};
  NcclXmlPci nic{"0000:18:00.0", 0x020700, 0x15b3, 0x1021, 32000, 16, std::nullopt, {}, {}};
  nic.nets = {{"mlx5_\"<&", 7, 400'000, 9, "0xa2b4c300034b6b50", true, 3, 1}};
  const NcclXmlPci upper{"0000:16:00.0", 0x060400, 0x1000, 0xc030, 2500, 16, std::nullopt, {}, {gpu, nic}};
  const NcclXmlCpu cpu{1, "00000000,ffffffff", "x86_64", "GenuineIntel", 6, 143, {upper}};
  const std::string xml = FormatNcclXml({cpu}, 1);
  EXPECT_THAT(xml, testing::StartsWith("<system version=\"1\">\n  <cpu numaid=\"1\" affinity="));
  EXPECT_THAT(xml, testing::HasSubstr("link_speed=\"2.5 GT/s PCIe\" link_width=\"16\">"));
  EXPECT_THAT(xml, testing::Not(testing::HasSubstr(" />")));  // NCCL's reader does not take it
  const auto read = ParseNcclXml(xml);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->gpus.size(), 1u);
  ASSERT_EQ(read->nics.size(), 1u);
  const NcclGpu& g = read->gpus[0];
  EXPECT_EQ(g.numa, 1);
  EXPECT_EQ(g.index, 3);
  EXPECT_EQ(g.sm, 90);
  EXPECT_EQ(g.device, 0x2330);
  EXPECT_THAT(g.link_targets, ElementsAre("0000:05:00.0", "fffffff:ffff:ff"));
  EXPECT_THAT(g.link_counts, ElementsAre(5, 13));
  EXPECT_EQ(g.links, 18);
  const NcclNic& n = read->nics[0];
  EXPECT_EQ(n.name, "mlx5_\"<&");
  EXPECT_EQ(n.gbps, 400);
  EXPECT_EQ(n.port, 9);
  EXPECT_EQ(n.rail, 3);
  EXPECT_EQ(n.plane, 1);
  EXPECT_TRUE(n.rdma);
  EXPECT_EQ(Distance(g, n), PciDistance::kPix);
  EXPECT_EQ(FormatNcclXml({}, 2), "<system version=\"2\"/>\n");
}

TEST(NcclXml, SaysWhatIsWrongAndWhere) {
  const auto cut = ParseNcclXml("<system>\n<cpu>\n<pci busid=\"0000:1\"");
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, testing::StartsWith("line 3: this is no XML: "));
  const auto nameless = ParseNcclXml("<system>\n<cpu>\n\n<pci class=\"0x030200\"/>\n</cpu>\n</system>\n");
  ASSERT_FALSE(nameless);
  EXPECT_EQ(nameless.error().message, "line 4: this <pci> has no busid");
  const auto other = ParseNcclXml("<?xml version=\"1.0\"?>\n<topology/>");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "line 2: not an NCCL topology: <topology> stands where <system> should");
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
  EXPECT_THAT(topology.error().message, testing::StartsWith("line 1: more than"));
}

}  // namespace
}  // namespace heddle::formats
