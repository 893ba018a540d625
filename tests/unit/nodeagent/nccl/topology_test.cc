// NCCL's topology files in both directions: written of every recorded machine and read back, and read from the
// real ones that clouds ship.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "nodeagent/health/conditions.h"
#include "nodeagent/nccl/export.h"
#include "nodeagent/nccl/import.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/ticket.h"
#include "nvml_bed.h"
#include "recorded_machine.h"
#include "tests/support/seeds.h"
#include "tests/unit/formats/shared_data.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Pairs = std::map<std::string, std::set<std::string>>;  // PCI addresses: a GPU's, its NICs'

constexpr const char* kRealFiles[] = {"p4d-24xl-topo.xml", "ndv4-topo.xml", "mi300-topo_8p_940.xml",
                                      "mi300-topo_8p_940vm.xml"};

Pairs PairsOfFile(const formats::NcclTopology& topology) {
  Pairs pairs;
  for (const formats::NcclGpu& gpu : topology.gpus) {
    for (const std::size_t nic : formats::NearestNics(topology, gpu))
      pairs[gpu.pci].insert(topology.nics[nic].pci);
  }
  return pairs;
}

using test::PairsOf;
using test::RailsOf;

SuppliedTopology Supplied(const std::string& xml, bool alone) {
  auto topology = formats::ParseNcclXml(xml);
  EXPECT_TRUE(topology);
  return {topology.value_or(formats::NcclTopology()), "topo.xml", alone, {}};
}

Readings ReadingsOf(const std::string& machine) {
  const test::RecordedMachine recorded(machine);
  const base::DiskFileTree files(recorded.path());
  auto opened = OpenRecorded(files, recorded.path(), "");
  EXPECT_TRUE(opened);
  return opened->discovery->Read();
}

std::string XmlOf(const std::string& machine) {
  const test::RecordedMachine recorded(machine);
  const base::DiskFileTree files(recorded.path());
  const Readings readings = ReadingsOf(machine);
  return NcclTopologyOf(files, readings, Assemble(readings));
}

// Another name for every device, as another driver or a udev rule would give it.
std::string Renamed(std::string xml) {
  int number = 90;
  for (std::size_t at = 0; (at = xml.find("<net name=\"", at)) != std::string::npos;) {
    at += 11;
    xml.replace(at, xml.find('"', at) - at, "rdma" + std::to_string(number--));
  }
  return xml;
}

TEST(NcclImport, PairsAsTheFileDoesWhateverTheDevicesAreCalled) {
  for (const char* name : kRealFiles) {
    const std::string xml = test::SharedData(std::string("nccl-xml/") + name);
    const Pairs wanted = PairsOfFile(*formats::ParseNcclXml(xml));
    ASSERT_EQ(wanted.size(), 8u) << name;
    for (const std::string& text : {xml, Renamed(xml)}) {
      Readings readings;
      readings.identity.node = "vm";
      Supply(Supplied(text, true), readings);
      const Observation seen = Assemble(readings);
      EXPECT_EQ(PairsOf(seen.node), wanted) << name;
      EXPECT_THAT(topology::Check(seen.node), IsEmpty()) << name;
      EXPECT_THAT(seen.problems, ElementsAre(HasSubstr("all of this is what topo.xml says"))) << name;
    }
  }
}

// What is true of them: ../shared/data/README.md.
TEST(NcclImport, KnowsWhatIsTrueOfTheRealFiles) {
  const auto alone = [](const char* name) {
    Readings readings;
    Supply(Supplied(test::SharedData(std::string("nccl-xml/") + name), true), readings);
    return Assemble(readings).node;
  };
  const topology::Node p4d = alone("p4d-24xl-topo.xml");
  for (const topology::Nic& nic : p4d.nics) EXPECT_EQ(nic.transport, topology::Transport::kEfa);
  EXPECT_EQ(p4d.NicOfGpu(4)->pci, "0000:90:1b.0");
  EXPECT_EQ(p4d.NicOfGpu(5)->pci, "0000:90:1b.0");
  EXPECT_EQ(p4d.numa_nodes, 2);
  const topology::Node ndv4 = alone("ndv4-topo.xml");
  EXPECT_EQ(ndv4.gpus.at(0).pci, "0001:00:00.0");
  EXPECT_EQ(ndv4.gpus.at(0).numa, 1);
  EXPECT_EQ(ndv4.NicOfGpu(0)->pci, "0101:00:00.0");
  EXPECT_EQ(ndv4.NicOfGpu(0)->transport, topology::Transport::kInfiniBand);
  const topology::Node mi300 = alone("mi300-topo_8p_940.xml");
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(mi300.NicOfGpu(gpu)->name, "mlx5_" + std::to_string(gpu));
    EXPECT_EQ(mi300.NicOfGpu(gpu)->rail, gpu);
  }
  EXPECT_EQ(mi300.nvlink.links_per_gpu, 7);
  EXPECT_EQ(mi300.nvlink.generation, 0);  // xGMI is no NVLink
  EXPECT_TRUE(mi300.nvlink_domain.known());
}

// A file tells what is there. How it does nobody has read, and the host that reads the file is another machine.
TEST(NcclImport, ClaimsNoHealthOfAMachineThatOnlyAFileSpeaksOf) {
  for (const auto& [name, links] :
       {std::pair("p4d-24xl-topo.xml", 0), std::pair("mi300-topo_8p_940.xml", 7)}) {
    SCOPED_TRACE(name);
    Readings readings = ReadingsOf("plain-host");
    SuppliedTopology supplied = Supplied(test::SharedData(std::string("nccl-xml/") + name), true);
    supplied.node = "unknown";
    Supply(supplied, readings);
    const Observation seen = Assemble(readings);
    EXPECT_EQ(seen.node.name, "unknown");
    EXPECT_EQ(seen.node.nvlink.links_per_gpu, links);
    EXPECT_EQ(seen.node.nvlink_domain.known(), links > 0);
    const auto conditions = ConditionsOf(seen);
    for (const std::string_view type : {kGpusHealthy, kNvlinksUp, kLeavesKnown})
      EXPECT_EQ(crds::FindCondition(conditions, type), nullptr) << type;
    const test::RecordedMachine host("plain-host");
    const base::DiskFileTree files(host.path());
    crds::NodeTopology object;
    object.name = seen.node.name;
    const std::string text =
        Ticket(Report(object, seen, test::kTicketTime), ReadPrintedFacts(files, readings, seen));
    EXPECT_THAT(text, testing::StartsWith("Node       unknown\n"));
    for (const char* claim :
         {"healthy", "GpusHealthy", "Domain     NotApplicable", "NVLink     none", "Software"})
      EXPECT_THAT(text, Not(HasSubstr(claim)));
    if (links == 0) {
      EXPECT_THAT(text, HasSubstr("NVLink     ?\nDomain     Unknown\n"));
    }
  }
}

TEST(NcclExport, SaysOfARealGuestWhatNcclFoundThereItself) {
  const std::string machines = HEDDLE_SOURCE_DIR "/tests/fixtures/machines/";
  const base::DiskFileTree files(machines + "h200-guest");
  auto opened = OpenRecorded(files, machines + "h200-guest", "");
  ASSERT_TRUE(opened);
  const Readings readings = opened->discovery->Read();
  const auto ours = formats::ParseNcclXml(NcclTopologyOf(files, readings, Assemble(readings)));
  const auto its_own = formats::ParseNcclXml(*base::DiskFileTree(machines).Read("h200-guest.nccl.xml"));
  ASSERT_TRUE(ours && its_own);
  ASSERT_EQ(its_own->gpus.size(), 1u);
  formats::NcclGpu gpu = its_own->gpus.at(0);
  gpu.sm = 0;  // of CUDA, which the agent does not load: NCCL fills it in
  EXPECT_THAT(ours->gpus, ElementsAre(gpu));
}

TEST(NcclExport, ReadBackPairsEveryRecordedMachineAsTheMachineItselfDoes) {
  for (const std::string& machine : test::FleetNames()) {
    SCOPED_TRACE(machine);
    // NCCL's file has no host bridges: there what shares one looks like what only shares its NUMA node.
    if (machine == "p4d-24xlarge") continue;
    const Readings readings = ReadingsOf(machine);
    const Observation seen = Assemble(readings);
    const std::string xml = XmlOf(machine);
    const auto file = formats::ParseNcclXml(xml);
    ASSERT_TRUE(file) << file.error().message;
    const Pairs wanted = PairsOf(seen.node);
    Pairs pairs = PairsOfFile(*file);
    // A GPU that the driver lost is in the file for its place, and in no NodeTopology.
    std::erase_if(pairs, [&](const auto& pair) { return !wanted.contains(pair.first); });
    EXPECT_EQ(pairs, wanted);
    for (const formats::NcclNic& nic : file->nics) {
      const topology::Nic* same = seen.node.FindNic(nic.name);
      ASSERT_NE(same, nullptr) << nic.name;
      EXPECT_EQ(nic.rail, same->rail);
      EXPECT_EQ(nic.pci, same->pci);
    }
    // The same machine with its PCIe tree hidden: every device on a host bridge of its own, of no NUMA node.
    Readings hidden = readings;
    for (auto& [address, device] : hidden.pci.devices) {
      device.root = "pci" + address.substr(0, 7);
      device.bridges.clear();
      device.numa = topology::Missing::kUnknown;
    }
    if (file->gpus.empty() || file->nics.empty()) continue;
    Supply(Supplied(xml, false), hidden);
    const Observation supplied = Assemble(hidden);
    EXPECT_EQ(PairsOf(supplied.node), wanted);
    EXPECT_EQ(RailsOf(supplied.node), RailsOf(seen.node));
    EXPECT_EQ(supplied.problems, seen.problems);
  }
}

TEST(NcclExport, WritesWhatNcclReads) {
  const std::string xml = XmlOf("hgx-h100");
  EXPECT_THAT(xml, testing::StartsWith("<system version=\"1\">\n  <cpu numaid=\"0\" affinity=\""));
  EXPECT_THAT(xml, HasSubstr("arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">"));
  EXPECT_THAT(xml,
              HasSubstr("<pci busid=\"0000:1b:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
                        "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"));
  EXPECT_THAT(xml, HasSubstr("<nvlink target=\"0000:05:00.0\" count=\"5\" tclass=\"0x068000\"/>"));
  EXPECT_THAT(xml, HasSubstr("speed=\"400000\" port=\"1\" guid=\"0x"));
  EXPECT_THAT(xml, HasSubstr("gdr=\"1\" rail=\"7\"/>"));
  EXPECT_THAT(xml, Not(HasSubstr("plane=")));  // one plane is no news
  EXPECT_THAT(xml, Not(HasSubstr("eno1")));
  // RCCL's dialect, as RCCL dumps it.
  const std::string amd = XmlOf("mi300x");
  EXPECT_THAT(amd, testing::StartsWith("<system version=\"2\">"));
  EXPECT_THAT(amd, HasSubstr("<xgmi target=\"0000:15:00.0\" count=\"1\" tclass=\"0x120000\"/>"));
  // NVSwitches of a VM or a rack are on no bus: NCCL's own word for them.
  EXPECT_THAT(XmlOf("hgx-b200"),
              HasSubstr("<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>"));
}

TEST(NcclExport, LeavesOutTheSpeedOfAPortThatIsDown) {
  const std::string xml = XmlOf("hgx-down");
  const std::size_t at = xml.find("<net name=\"mlx5_3\"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(xml.substr(at, xml.find("/>", at) - at), Not(HasSubstr("speed=")));
}

// The guest that the hypervisor shows nothing of its PCIe tree, with the file that its cloud ships for it.
TEST(NcclImport, GivesAGuestItsSwitches) {
  const std::string xml = test::SharedData("nccl-xml/ndv4-topo.xml");
  const Pairs wanted = PairsOfFile(*formats::ParseNcclXml(xml));
  for (const std::string& name : {std::string("nd-a100-v4-vm"), std::string("nd-a100-v4-vm-blind")}) {
    Readings readings = ReadingsOf(name);
    EXPECT_EQ(PairsOf(Assemble(readings).node).empty(), name.ends_with("-blind")) << name;
    Supply(Supplied(xml, false), readings);
    const Observation seen = Assemble(readings);
    EXPECT_EQ(PairsOf(seen.node), wanted) << name;
    EXPECT_EQ(seen.node.paths.front().distance, topology::PciDistance::kPix) << name;
    EXPECT_EQ(seen.node.gpus.at(0).numa, 1) << name;
    for (const topology::Nic& nic : seen.node.nics) EXPECT_TRUE(nic.rail.known()) << name << " " << nic.name;
    EXPECT_EQ(seen.node.NicOfGpu(3)->pci, "0104:00:00.0") << name;
  }
}

// Planes come back from a file that tells them, wherever the leaves' names do not.
TEST(NcclImport, TellsThePlanesOfPorts) {
  const std::string xml = XmlOf("hgx-b300");
  EXPECT_THAT(xml, HasSubstr("port=\"9\" guid=\"0x"));
  EXPECT_THAT(xml, HasSubstr("rail=\"5\" plane=\"2\"/>"));
  Readings readings = ReadingsOf("hgx-b300");
  readings.leaves = {};
  EXPECT_EQ(Assemble(readings).node.FindNic("mlx5_5")->ports.at(2).plane, 0);
  Supply(Supplied(xml, false), readings);
  const topology::Node node = Assemble(readings).node;
  const std::vector<topology::NicPort>& ports = node.FindNic("mlx5_5")->ports;
  ASSERT_EQ(ports.size(), 4u);
  for (int plane = 0; plane < 4; ++plane) {
    EXPECT_EQ(ports[std::size_t(plane)].number, 3 * (plane + 1));
    EXPECT_EQ(ports[std::size_t(plane)].plane, plane);
  }
}

TEST(NcclImport, SaysWhereTheFileAndTheMachineDiffer) {
  const std::string ndv4 = test::SharedData("nccl-xml/ndv4-topo.xml");
  Readings readings = ReadingsOf("hgx-h100");
  const PciTree before = readings.pci;
  Supply(Supplied(ndv4, false), readings);
  EXPECT_EQ(readings.pci.devices, before.devices);
  EXPECT_THAT(readings.pci.problems, ElementsAre(HasSubstr("none of its 16 devices is on this machine")));

  std::string xml = XmlOf("hgx-h100");
  readings = ReadingsOf("hgx-h100");
  for (const char* gone : {"0000:1b:00.0", "0000:18:00.0"}) {
    const std::size_t at = xml.find(gone);
    ASSERT_NE(at, std::string::npos);
    xml.replace(at, 4, "00ff");
  }
  Supply(Supplied(xml, false), readings);
  EXPECT_THAT(readings.pci.problems,
              ElementsAre(HasSubstr("has 2 devices that the PCI bus does not show: 00ff:"),
                          HasSubstr("does not have 1 GPUs of this machine (0000:1b:00.0)")));
  const topology::Node node = Assemble(readings).node;
  EXPECT_EQ(node.FindNic("mlx5_5")->rail, 5);
}

TEST(NcclImport, TakesARailWhereNoneIsMeasuredAndComparesItElsewhere) {
  std::string xml = XmlOf("hgx-h100");
  const std::size_t at = xml.find("rail=\"6\"");
  xml.replace(at, 8, "rail=\"2\"");
  Readings readings = ReadingsOf("hgx-h100");
  Supply(Supplied(xml, false), readings);
  const Observation seen = Assemble(readings);
  EXPECT_EQ(seen.node.FindNic("mlx5_6")->rail, 6);
  EXPECT_THAT(seen.problems, ElementsAre("mlx5_6 is on rail 6 by its place and on rail 2 by topo.xml"));
  EXPECT_EQ(seen.pci_source, "topo.xml");
  const auto conditions = ConditionsOf(seen);
  EXPECT_EQ(crds::FindCondition(conditions, kRailsMeasured)->reason, "SuppliedTopology");
}

TEST(NcclImport, IsTotalOverDamagedFiles) {
  const Readings machine = ReadingsOf("hgx-h100");
  const std::string xml = XmlOf("hgx-h100");
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const auto topology = formats::ParseNcclXml(test::Damage(xml, random));
    if (!topology) continue;
    for (const bool alone : {false, true}) {
      Readings readings = machine;
      if (alone) readings.pci = {};  // none of the file's devices is there
      Supply({*topology, "topo.xml", alone, {}}, readings);
      EXPECT_THAT(topology::Check(Assemble(readings).node), IsEmpty());
    }
  }
}

// As a person types it: a file is written, read back where the cloud would hide the tree, and shown alone.
TEST(NcclCommand, WritesAndReadsFiles) {
  const test::TemporaryFolder folder;
  const test::RecordedMachine machine("hgx-h100");
  const std::string agent = test::Built("bin/heddle-nodeagent"), file = folder.path() + "/topo.xml";
  EXPECT_EQ(test::Output(agent + " --machine " + machine.path() + " --nccl-topo " + file), "");
  EXPECT_EQ(base::DiskFileTree(folder.path()).Read("topo.xml"), XmlOf("hgx-h100"));
  EXPECT_EQ(test::Output(agent + " --machine " + machine.path() + " --nccl-topo -"), XmlOf("hgx-h100"));
  const std::string here = test::Output(agent + " --machine " + machine.path() + " --from-nccl-xml " + file +
                                        " --print -o json --node x");
  EXPECT_THAT(here, HasSubstr("from the PCIe switches of " + file));
  const std::string alone = test::Output("cd " + folder.path() + " && " + agent +
                                         " --from-nccl-xml topo.xml --print -o json --node x");
  EXPECT_THAT(alone, HasSubstr("all of this is what topo.xml says"));
  EXPECT_THAT(alone, HasSubstr("\"name\": \"mlx5_7\""));
  EXPECT_THAT(test::Output("! " + agent + " --from-nccl-xml " + folder.path() + "/none.xml --print --node x"),
              HasSubstr("none.xml cannot be read"));
  EXPECT_THAT(test::Output("! " + agent + " --machine " + machine.path() + " --nccl-topo /nonexistent/x"),
              HasSubstr("/nonexistent/x cannot be written"));
}

TEST(NcclImport, RefusesAFileThatIsNone) {
  const test::TemporaryFolder folder;
  const base::DiskFileTree files(folder.path());
  folder.Write("empty.xml", "<system version=\"1\"/>");
  folder.Write("cut.xml", "<system><cpu");
  const auto message = [&](const std::string& name) {
    const auto read = ReadSuppliedTopology(files, name, "dir/" + name);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(message("empty.xml"), "dir/empty.xml: it has neither a GPU nor a NIC");
  EXPECT_THAT(message("cut.xml"), HasSubstr("dir/cut.xml: line 1: this is no XML"));
  EXPECT_THAT(message("absent.xml"), HasSubstr("dir/absent.xml cannot be read"));
}

}  // namespace
}  // namespace heddle::nodeagent
