#include "cli/import.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "cli/import_hosts.h"
#include "cli/import_source.h"
#include "cli/plan.h"
#include "cli/read_path.h"
#include "crds/fabric.h"
#include "crds/node_topology.h"
#include "crds/yaml.h"
#include "tests/unit/cli/ib_dump.h"

namespace heddle::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kShared = HEDDLE_SOURCE_DIR "/../shared/data/";

// Files in memory; what is not there is read where the shared data lie.
struct Desk {
  std::map<std::string, std::string> texts;
  ReadFile read = [this](const std::string& path) -> base::Result<std::string> {
    const auto found = texts.find(path);
    return found == texts.end() ? ReadPath(kShared + path) : found->second;
  };
  ImportOptions options;

  Output Import(const std::vector<std::string>& sources) {
    options.sources = sources;
    options.now = base::WallTime(std::chrono::seconds(1'800'000'000));
    return ImportFabric(options, read, {.format = Format::kJson});
  }
};

struct Objects {
  std::map<std::string, topology::Node> nodes;
  std::map<std::string, crds::Fabric> fabrics;
};

Objects Read(const Output& output) {
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  Objects objects;
  const Json list = Json::parse(output.out, nullptr, false);
  EXPECT_EQ(list.value("kind", ""), "List");
  for (const Json& item : list["items"]) {
    if (item["kind"] == "NodeTopology") {
      const auto object = crds::NodeTopologyFromJson(item);
      EXPECT_TRUE(object) << object.error().message;
      if (object) objects.nodes[object->name] = object->status.node;
    } else {
      const auto object = crds::FabricFromJson(item);
      EXPECT_TRUE(object) << object.error().message;
      if (object) objects.fabrics[object->name] = *object;
    }
  }
  return objects;
}

const topology::SwitchDeclaration* FindSwitch(const crds::Fabric& fabric, const std::string& name) {
  for (const auto& one : fabric.spec.switches) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

Output PlanOn(Desk& desk, const Output& imported, const std::string& parallelism, int gpus_per_pod = 8) {
  desk.texts["imported.json"] = imported.out;
  const PlanOptions options{
      .ground = {.topology = {"imported.json"}}, .parallelism = parallelism, .gpus_per_pod = gpus_per_pod};
  return Plan(options, desk.read, {.format = Format::kJson});
}

TEST(ImportInfiniBand, ReadsHostsRailsLeavesAndSpines) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(2, 4, 8, 4, 2).Text();
  const Output output = desk.Import({"ib"});
  const Objects objects = Read(output);
  EXPECT_THAT(output.err, Not(HasSubstr("Warning")));
  ASSERT_EQ(objects.nodes.size(), 8u);
  const topology::Node& node = objects.nodes.at("gpu-05");
  ASSERT_EQ(node.nics.size(), 8u);
  EXPECT_EQ(node.nics[3].name, "mlx5_3");
  EXPECT_EQ(node.nics[3].rail, 3);
  EXPECT_EQ(node.nics[3].guid.substr(0, 2), "0x");
  ASSERT_EQ(node.nics[3].ports.size(), 1u);
  EXPECT_EQ(node.nics[3].ports[0].usable_gbps, 400);
  EXPECT_EQ(node.nics[3].ports[0].leaf_port, (topology::LeafPort{"leaf-1-3", "2"}));
  const crds::Fabric& fabric = objects.fabrics.at("infiniband");
  EXPECT_EQ(fabric.status.counts.leaves, 16);
  EXPECT_EQ(fabric.status.counts.spines, 4);
  EXPECT_EQ(fabric.status.counts.units, 2);
  EXPECT_EQ(fabric.status.shape, topology::Shape::kRailOptimised);
  const auto* leaf = FindSwitch(fabric, "leaf-1-3");
  ASSERT_NE(leaf, nullptr);
  EXPECT_EQ(leaf->uplinks, (std::vector<std::string>{"spine-0", "spine-1", "spine-2", "spine-3"}));
  EXPECT_EQ(leaf->uplink_gbps, 3200);
}

TEST(ImportInfiniBand, GivesAFabricThatPlansAGang) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(2, 4, 8, 4, 2).Text();
  const Output plan = PlanOn(desk, desk.Import({"ib"}), "tp=8,dp=4");
  ASSERT_EQ(plan.exit_code, Output::kOk) << plan.err;
  const Json json = Json::parse(plan.out);
  EXPECT_EQ(json["leafCrossings"], 0);
  std::set<std::string> leaves;
  for (const Json& rank : json["ranks"]) leaves.insert(rank["leaf"]);
  EXPECT_EQ(leaves.size(), 8u);
}

TEST(ImportInfiniBand, NamesASwappedCableWithBothPorts) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(2, 4, 8, 2, 1);
  dump.Swap(dump.Adapter("gpu-02", "mlx5_1"), 1, dump.Adapter("gpu-02", "mlx5_6"), 1);
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(output.err,
              HasSubstr("gpu-02 mlx5_1 is cabled to leaf-0-6 port 3; its unit's rail 1 is leaf-0-1: "
                        "swapped with gpu-02 mlx5_6"));
  const auto faults = Read(output).fabrics.at("infiniband").status.faults;
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].node, "gpu-02");
}

TEST(ImportInfiniBand, KeepsASpineThatAHostIsCabledTo) {
  IbDump dump = IbDump::RailOptimised(2, 4, 4, 2, 1);
  const std::string host = dump.Adapter("gpu-00", "mlx5_3");
  dump.Unplug(host, 1);
  dump.Cable(host, 1, dump.Switch("spine-0"), 40);
  Desk desk;
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  const crds::Fabric fabric = Read(output).fabrics.at("infiniband");
  EXPECT_EQ(fabric.status.counts.spines, 2);
  ASSERT_FALSE(fabric.spec.switches.empty());
  EXPECT_EQ(fabric.spec.switches.front().uplinks.size(), 2u);
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("gpu-00 mlx5_3 is cabled to spine-0 port 40; its unit's rail 3 is leaf-0-3"),
                    Not(HasSubstr("of one tier are cabled to each other"))));
}

TEST(ImportInfiniBand, TakesADragonflyLeafWithFewHostsForALeaf) {
  IbDump dump;
  for (int leaf = 0; leaf < 4; ++leaf) {
    const std::string id = dump.Switch(fmt::format("leaf-{}", leaf));
    for (int host = 0; host < (leaf == 0 ? 1 : 4); ++host)
      dump.Cable(dump.Adapter(fmt::format("gpu-{}-{}", leaf, host), "mlx5_0"), 1, id, host + 1);
    for (int other = 0; other < leaf; ++other)
      dump.Cable(id, 10 + other, dump.Switch(fmt::format("leaf-{}", other)), 10 + leaf);
  }
  Desk desk;
  desk.texts["ib"] = dump.Text();
  const crds::Fabric fabric = Read(desk.Import({"ib"})).fabrics.at("infiniband");
  EXPECT_EQ(fabric.status.counts.spines, 0);
  ASSERT_EQ(fabric.spec.groups.size(), 1u);
  EXPECT_EQ(fabric.spec.groups[0].leaves.size(), 4u);
}

TEST(ImportInfiniBand, TakesACableOfUnknownSpeedToBeLikeThoseThatSayOneHoweverFewTheyAre) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(2, 4, 4, 2, 2);
  for (int leaf = 0; leaf < 8; ++leaf) {
    const std::string id = dump.Switch(fmt::format("leaf-{}-{}", leaf / 4, leaf % 4));
    for (int port = 5; port <= 8; ++port) {
      if (leaf != 4 || port != 7) dump.Slow(id, port, "4xundefined (0)");
    }
  }
  desk.texts["ib"] = dump.Text();
  const auto fabric = Read(desk.Import({"ib"})).fabrics.at("infiniband");
  EXPECT_EQ(FindSwitch(fabric, "leaf-1-0")->uplink_gbps, 1600) << "one cable of its four says 4xNDR";
  EXPECT_EQ(FindSwitch(fabric, "leaf-0-0")->uplink_gbps, 1600) << "none says anything";
}

TEST(ImportInfiniBand, TakesTheSpeedOfACableFromTheEndThatSaysOne) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(2, 4, 4, 2, 2);
  dump.Slow(dump.Switch("leaf-1-0"), 7, "4xHDR");
  dump.Say(dump.Switch("leaf-1-0"), 7, "");
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("leaf-1-0 port 7 says nothing and spine-1 port 9 says 4xHDR of the cable"),
                    HasSubstr("leaf-1-0 port 7 to spine-1 port 9 runs at 200 Gb/s (4xHDR)")));
  EXPECT_EQ(FindSwitch(Read(output).fabrics.at("infiniband"), "leaf-1-0")->uplink_gbps, 1400);
}

// Of four hosts, of which gpu-01 lacks mlx5_4.
std::string DumpWithAMissingHca() {
  IbDump dump = IbDump::RailOptimised(1, 4, 8, 2, 1);
  dump.Unplug(dump.Adapter("gpu-01", "mlx5_4"), 1);
  std::string text = dump.Text();
  // Without a cable ibnetdiscover does not reach the adapter at all.
  const std::size_t line = text.find("\"gpu-01 mlx5_4\"");
  text.erase(text.rfind('\n', line), text.find('\n', line) - text.rfind('\n', line));
  return text;
}

TEST(ImportInfiniBand, KeepsTheRailsOfAHostThatLacksAnHcaAndHearsLldp) {
  Desk desk;
  desk.texts["ib"] = DumpWithAMissingHca();
  desk.texts["l"] = R"({"lldp":[{"interface":[{"name":"eth0","chassis":[{"id":[{"type":"mac","value":"a"}],)"
                    R"("name":[{"value":"mgmt-1"}]}],"port":[{"id":[{"type":"local","value":"7"}]}]}]}]})";
  const Output output = desk.Import({"ib", "gpu-01=l"});
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("gpu-01 has no mlx5_4 in the fabric"), Not(HasSubstr("has no eth0"))));
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.at("gpu-01").FindNic("mlx5_5")->rail, 5);
  ASSERT_NE(objects.nodes.at("gpu-01").FindNic("eth0"), nullptr);
  EXPECT_EQ(objects.nodes.at("gpu-00").FindNic("eth0"), nullptr);
  EXPECT_THAT(objects.fabrics.at("infiniband").status.faults, IsEmpty());
}

TEST(ImportInfiniBand, KeepsAMissingHcaAsDown) {
  Desk desk;
  desk.texts["ib"] = DumpWithAMissingHca();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(output.err, HasSubstr("gpu-01 has no mlx5_4 in the fabric"));
  const Objects objects = Read(output);
  const topology::Nic* nic = objects.nodes.at("gpu-01").FindNic("mlx5_4");
  ASSERT_NE(nic, nullptr);
  EXPECT_EQ(nic->rail, 4);
  EXPECT_EQ(nic->ports[0].state, topology::LinkState::kDown);
  EXPECT_EQ(nic->ports[0].usable_gbps, 0);
  EXPECT_EQ(objects.nodes.at("gpu-01").FindNic("mlx5_5")->rail, 5);
}

TEST(ImportInfiniBand, NamesSlowCablesOfHostsAndBetweenSwitches) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(2, 4, 4, 2, 2);
  dump.Slow(dump.Adapter("gpu-03", "mlx5_2"), 1, "2xNDR");
  dump.Slow(dump.Switch("leaf-1-0"), 7, "4xHDR");
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(
      output.err,
      HasSubstr("gpu-03 mlx5_2 port 1 on leaf-0-2 port 4 runs at 200 Gb/s; 7 of 8 such ports run at 400"));
  EXPECT_THAT(
      output.err,
      HasSubstr(
          "leaf-1-0 port 7 to spine-1 port 9 runs at 200 Gb/s (4xHDR); 31 cables of its kind run at 400"));
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.at("gpu-03").FindNic("mlx5_2")->ports[0].usable_gbps, 200);
  EXPECT_EQ(FindSwitch(objects.fabrics.at("infiniband"), "leaf-1-0")->uplink_gbps, 1400);
}

TEST(ImportInfiniBand, NamesACableThatLikeLeavesHave) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(2, 4, 4, 2, 2);
  dump.Unplug(dump.Switch("leaf-0-1"), 6);
  desk.texts["ib"] = dump.Text();
  EXPECT_THAT(
      desk.Import({"ib"}).err,
      HasSubstr("leaf-0-1 has 1 of the 2 cables to spine-0 that 7 like it have: nothing is on its port 6"));
}

TEST(ImportInfiniBand, NeverTakesACableThatOneEndDeniesForALeaf) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(1, 4, 2, 1, 2);
  dump.Forget(dump.Switch("leaf-0-0"), 1);
  dump.Forget(dump.Switch("spine-0"), 1);
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(output.err, HasSubstr("port 1: the other end does not say so"));
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.at("gpu-00").FindNic("mlx5_0")->ports[0].leaf_port.missing(),
            topology::Missing::kAmbiguous);
  EXPECT_EQ(FindSwitch(objects.fabrics.at("infiniband"), "leaf-0-0")->uplink_gbps, 400);
}

TEST(ImportInfiniBand, TellsHostsFromAggregationNodesStorageAndItsLeaf) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(1, 4, 4, 2, 2);
  dump.Cable(dump.Adapter("Mellanox", "Technologies Aggregation Node"), 1, dump.Switch("leaf-0-0"), 65);
  for (int i = 0; i < 3; ++i) {
    dump.Cable(dump.Adapter(fmt::format("oss-{}", i), "mlx5_0"), 1, dump.Switch("stor-leaf"), i + 1);
  }
  dump.Cable(dump.Switch("stor-leaf"), 10, dump.Switch("spine-0"), 40);
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(output.err, AllOf(HasSubstr("1 SHARP aggregation nodes, in 1 switches"),
                                HasSubstr("3 of 7 hosts are storage"), HasSubstr("left out: stor-leaf")));
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.size(), 4u);
  EXPECT_EQ(FindSwitch(objects.fabrics.at("infiniband"), "stor-leaf"), nullptr);
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.spines, 2);
}

TEST(ImportInfiniBand, TakesASlowerNicOnALeafOfItsOwnForStorage) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(1, 4, 4, 2, 2);
  for (int h = 0; h < 4; ++h) {
    dump.Cable(dump.Adapter(fmt::format("gpu-0{}", h), "mlx5_9"), 1, dump.Switch("s-leaf"), h + 1, "4xHDR");
  }
  desk.texts["ib"] = dump.Text();
  const Output output = desk.Import({"ib"});
  EXPECT_THAT(output.err, HasSubstr("mlx5_9 of 4 hosts run slower than the other NICs"));
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.at("gpu-00").FindNic("mlx5_9")->role, topology::NicRole::kStorage);
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.leaves, 4);
}

TEST(ImportInfiniBand, JoinsTheDumpsOfARailOnlyFabric) {
  Desk desk;
  for (int r = 0; r < 4; ++r) {
    IbDump dump;
    dump.Switch(fmt::format("pad-{}", r));  // GUIDs of their own
    for (int pad = 0; pad < r * 10; ++pad) dump.Switch(fmt::format("pad-{}-{}", r, pad));
    for (int h = 0; h < 4; ++h) {
      dump.Cable(dump.Adapter(fmt::format("gpu-{}", h), fmt::format("mlx5_{}", r)), 1,
                 dump.Switch(fmt::format("rail-{}", r)), h + 1);
    }
    desk.texts[fmt::format("ib{}", r)] = dump.Text();
  }
  const Objects objects = Read(desk.Import({"ib0", "ib1", "ib2", "ib3"}));
  ASSERT_EQ(objects.nodes.size(), 4u);
  EXPECT_EQ(objects.nodes.at("gpu-1").nics.size(), 4u);
  EXPECT_EQ(objects.fabrics.at("infiniband").status.shape, topology::Shape::kRailOnly);
}

TEST(ImportInfiniBand, KeepsBothPortsOfAnAdapter) {
  Desk desk;
  IbDump dump;
  for (int h = 0; h < 2; ++h) {
    const std::string hca = dump.Adapter(fmt::format("n{}", h), "HCA-1");
    dump.Cable(hca, 3, dump.Switch("a"), h + 1);
    dump.Cable(hca, 9, dump.Switch("b"), h + 1);
  }
  desk.texts["ib"] = dump.Text();
  const topology::Node node = Read(desk.Import({"ib"})).nodes.at("n1");
  ASSERT_EQ(node.nics.size(), 1u);
  ASSERT_EQ(node.nics[0].ports.size(), 2u);
  EXPECT_EQ(node.nics[0].ports[1].number, 9);
  EXPECT_EQ(node.nics[0].ports[1].leaf_port->leaf, "b");
  EXPECT_EQ(node.nics[0].usable_gbps(), 800);
}

TEST(ImportInfiniBand, NamesTwoAdaptersOfOneName) {
  Desk desk;
  IbDump dump = IbDump::RailOptimised(1, 2, 1, 0, 0);
  std::string text = dump.Text();
  text +=
      "\nCa 1 \"H-00000000000000ff\" # \"gpu-00 mlx5_0\"\n[1] \"S-0000000000001000\"[60] # \"x\" lid 1 "
      "4xNDR\n";
  desk.texts["ib"] = text;
  EXPECT_THAT(desk.Import({"ib"}).err, HasSubstr("0x00000000000000ff both call themselves `gpu-00 mlx5_0`"));
}

TEST(ImportInfiniBand, TakesLeavesWithoutSpinesForOneDragonflyGroup) {
  const Output output = Desk().Import({"ibnetdiscover/ibtopotool-1.topo"});
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.size(), 4u);
  EXPECT_THAT(output.err, HasSubstr("4 adapters carry their maker's name instead of a host's"));
  EXPECT_THAT(output.err, HasSubstr("0x0008f10400410015 port 1 says 1xSDR of the cable between them"));
  EXPECT_THAT(output.err, HasSubstr("port 12 runs at 2 Gb/s; 4 of 5 such ports run at 10"));
  EXPECT_EQ(objects.fabrics.at("infiniband").spec.groups.size(), 1u);
}

TEST(ImportInfiniBand, NamesAToolsErrorLineAndLoopsOfARealDump) {
  Desk desk;
  const Output output = desk.Import({"ibnetdiscover/ibtopotool-3.topo"});
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("line 1 is not ibnetdiscover's: `src/query_smp.c"),
                    HasSubstr("0xe41d2d030003e470 port 1 is cabled to 0xe41d2d030003e470 port 2: a loop"),
                    HasSubstr("port 19 is cabled to 0xe41d2d030003e470 port 21"),
                    HasSubstr("port 29 is cabled to 0xe41d2d030003e470 port 30")));
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.size(), 5u);
  EXPECT_EQ(objects.nodes.at("r-ufm101").nics.size(), 2u);
  EXPECT_EQ(PlanOn(desk, output, "tp=8,dp=2").exit_code, Output::kOk);
}

TEST(ImportInfiniBand, ReadsTheOtherRealDumps) {
  const Objects two = Read(Desk().Import({"ibnetdiscover/ibtopotool-2.topo"}));
  EXPECT_EQ(two.nodes.size(), 2u);
  EXPECT_EQ(two.nodes.at("compute-00-00").nics[0].ports[0].number, 2);
  EXPECT_EQ(two.fabrics.at("infiniband").status.shape, topology::Shape::kToR);
  const Objects four = Read(Desk().Import({"ibnetdiscover/ibtopotool-4.topo"}));
  ASSERT_EQ(four.nodes.size(), 1u);
  EXPECT_EQ(four.nodes.at("nsn33-43").nics[0].ports[0].rate_gbps, 40);
}

TEST(ImportMachine, GivesEveryHostTheGpusOfOneXml) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 2, 8, 1, 1).Text();
  const Objects objects = Read(desk.Import({"ib", "nccl-xml/mi300-topo_8p_940.xml"}));
  const topology::Node& node = objects.nodes.at("gpu-01");
  ASSERT_EQ(node.gpus.size(), 8u);
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(node.NicOfGpu(gpu)->name, fmt::format("mlx5_{}", gpu));
  EXPECT_EQ(node.gpus[3].numa, 0);
  EXPECT_EQ(node.nvlink.links_per_gpu, 7);
  EXPECT_TRUE(node.nvlink_domain.known());
}

TEST(ImportMachine, MatchesNicsInTheirOrderWhereTheyAreCalledOtherwise) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 2, 8, 1, 1).Text();
  const Output output = desk.Import({"ib", "nccl-xml/ndv4-topo.xml"});
  EXPECT_THAT(output.err, AllOf(HasSubstr("in their order"), HasSubstr("says nothing of NVLink")));
  const topology::Node node = Read(output).nodes.at("gpu-00");
  EXPECT_EQ(node.gpus[0].numa, 1);
  EXPECT_EQ(node.numa_nodes, 4);
  EXPECT_EQ(node.paths.size(), 16u);  // two NICs on each GPU's switch
}

TEST(ImportMachine, SaysWhenItsNicsAreOthers) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 2, 3, 1, 1).Text();
  EXPECT_THAT(desk.Import({"ib", "nccl-xml/ndv4-topo.xml"}).err,
              HasSubstr("gpu-00: its 3 compute NICs are not those of nccl-xml/ndv4-topo.xml"));
}

constexpr const char* kTwoGpus =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tSYS\tPIX\tSYS\t0-47\t0\n"
    "GPU1\tNV18\t X \tPIX\tSYS\tSYS\t48-95\t1\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n";

TEST(ImportMachine, ReadsRailsAndRolesFromAMatrix) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 2, 3, 1, 1).Text();
  desk.texts["topo"] = kTwoGpus;
  const Output output = desk.Import({"ib", "topo"});
  const topology::Node node = Read(output).nodes.at("gpu-00");
  ASSERT_EQ(node.gpus.size(), 2u);
  EXPECT_EQ(node.NicOfGpu(0)->name, "mlx5_1");
  EXPECT_EQ(node.FindNic("mlx5_1")->rail, 0);
  EXPECT_EQ(node.FindNic("mlx5_0")->rail, 1);
  EXPECT_EQ(node.FindNic("mlx5_2")->role, topology::NicRole::kStorage);
  EXPECT_EQ(node.nvlink, (topology::NvLink{4, 18, 3600, {}}));
  EXPECT_THAT(output.err,
              HasSubstr("mlx5_2 of 2 hosts share no PCIe switch with a GPU in topo: taken for storage"));
}

TEST(ImportMachine, TakesAnotherMachineForANamedHost) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 2, 8, 1, 1).Text();
  desk.texts["topo"] = kTwoGpus;
  const Objects objects = Read(desk.Import({"ib", "nccl-xml/mi300-topo_8p_940.xml", "gpu-01=topo-m:topo"}));
  EXPECT_EQ(objects.nodes.at("gpu-00").gpus.size(), 8u);
  EXPECT_EQ(objects.nodes.at("gpu-01").gpus.size(), 2u);
}

TEST(ImportMachine, NumbersRailsByTheMachineThatMostHostsAre) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 3, 2, 1, 1).Text();
  const auto matrix = [](const char* first, const char* second) {
    return fmt::format(
        "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV18\t{0}\t{1}\nGPU1\tNV18\t X \t{1}\t{0}\n"
        "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n",
        first, second);
  };
  desk.texts["odd"] = matrix("PIX", "SYS");
  desk.texts["usual"] = matrix("SYS", "PIX");
  const Objects objects = Read(desk.Import({"ib", "gpu-00=odd", "gpu-01=usual", "gpu-02=usual"}));
  EXPECT_EQ(objects.nodes.at("gpu-01").FindNic("mlx5_1")->rail, 0);
  EXPECT_EQ(objects.nodes.at("gpu-00").FindNic("mlx5_1")->rail, 0);
}

TEST(ImportMachine, CountsTheLinksOfMeshesAndOfSwitches) {
  Desk desk;
  desk.texts["mesh"] =
      "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tNV4\tNV4\tNV4\nGPU1\tNV4\tX\tNV4\tNV4\nGPU2\tNV4\tNV4\tX\tNV4\nGPU3"
      "\tNV4\tNV4\tNV4\tX\n";
  EXPECT_EQ(Read(desk.Import({"n=mesh"})).nodes.at("n").nvlink.links_per_gpu, 12);
  desk.texts["none"] = "\tGPU0\tGPU1\nGPU0\tX\tPHB\nGPU1\tPHB\tX\n";
  const topology::Node none = Read(desk.Import({"n=none"})).nodes.at("n");
  EXPECT_EQ(none.nvlink_domain.missing(), topology::Missing::kNotApplicable);
}

TEST(ImportSlurm, ReadsATreeThatPlansAGang) {
  Desk desk;
  desk.texts["topology.conf"] =
      "SwitchName=l1 Nodes=n[01-04]\nSwitchName=l2 Nodes=n[05-08]\nSwitchName=s Switches=l[1-2]\n";
  const Output output = desk.Import({"topology.conf"});
  const Objects objects = Read(output);
  ASSERT_EQ(objects.nodes.size(), 8u);
  EXPECT_EQ(objects.nodes.at("n05").nics[7].ports[0].leaf_port->leaf, "l2");
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.spines, 1);
  EXPECT_THAT(output.err, HasSubstr("Slurm names one switch for a host"));
  EXPECT_EQ(Json::parse(PlanOn(desk, output, "tp=8,dp=4").out)["leafCrossings"], 0);
}

TEST(ImportSlurm, TakesBlocksForNvlinkDomainsWhereToldTo) {
  Desk desk;
  desk.texts["conf"] = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n";
  EXPECT_EQ(Read(desk.Import({"conf"})).fabrics.at("infiniband").status.counts.leaves, 2);
  desk.options.nvlink_blocks = true;
  desk.options.gpus_per_node = 4;
  const Output output = desk.Import({"conf"});
  EXPECT_EQ(Read(output).nodes.at("n4").nvlink_domain->id, "b2");
  EXPECT_EQ(PlanOn(desk, output, "tp=8,dp=2", 4).exit_code, Output::kOk);
}

// As of GH200 NVL32.
TEST(ImportSlurm, TakesBlocksForNvlinkDomainsOfHostsWithOneGpu) {
  Desk desk;
  desk.texts["conf"] = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n";
  desk.options.nvlink_blocks = true;
  desk.options.gpus_per_node = 1;
  const Output output = desk.Import({"conf"});
  const Objects objects = Read(output);
  ASSERT_TRUE(objects.nodes.at("n4").nvlink_domain.known());
  EXPECT_EQ(objects.nodes.at("n4").nvlink_domain->id, "b2");
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.nvlink_domains, 2);
}

TEST(ImportSlurm, SaysWhichHostsOfAFabricRunJobs) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(1, 4, 2, 1, 1).Text();
  desk.texts["conf"] = "SwitchName=x Nodes=gpu-[00-02],gpu-77\n";
  const Output output = desk.Import({"ib", "conf"});
  EXPECT_EQ(Read(output).nodes.size(), 3u);
  EXPECT_THAT(
      output.err,
      AllOf(
          HasSubstr(
              "1 hosts of the fabric run no jobs, since Slurm does not list them, and are left out: gpu-03"),
          HasSubstr("1 hosts that Slurm lists are not in the fabric and are left out: gpu-77")));
}

// The truth of the file: 847 hosts; leaf names recur below several spines, so 119 leaves in all.
TEST(ImportSlurm, ReadsTheTreeOfARealClusterOf847Hosts) {
  const auto csv = ReadPath(std::string(kShared) + "fabric/lingjun-topo.csv");
  ASSERT_TRUE(csv);
  std::map<std::string, std::vector<std::string>> hosts;  // by leaf
  std::map<std::string, std::set<std::string>> leaves;    // by spine
  std::istringstream lines(*csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string host, core, spine, leaf;
    std::getline(cells, host, ',');
    std::getline(cells, core, ',');
    std::getline(cells, spine, ',');
    std::getline(cells, leaf);
    while (!leaf.empty() && leaf.back() == '\r') leaf.pop_back();
    leaves[spine].insert(spine + "-" + leaf);
    hosts[spine + "-" + leaf].push_back(host);
  }
  std::string conf;
  for (const auto& [leaf, names] : hosts)
    conf += fmt::format("SwitchName={} Nodes={}\n", leaf, fmt::join(names, ","));
  std::string spines;
  for (const auto& [spine, below] : leaves) {
    conf += fmt::format("SwitchName={} Switches={}\n", spine, fmt::join(below, ","));
    spines += (spines.empty() ? "" : ",") + spine;
  }
  Desk desk;
  desk.texts["conf"] = conf + "SwitchName=G6 Switches=" + spines + "\n";
  const Output output = desk.Import({"conf"});
  const Objects objects = Read(output);
  EXPECT_EQ(objects.nodes.size(), 847u);
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.leaves, 119);
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.spines, 4);
  EXPECT_EQ(PlanOn(desk, output, "tp=8,pp=9,dp=8").exit_code, Output::kOk);
}

// The truth of the file: 255 hosts on 29 racks that have any, in two NVLink domains of 124 and 131.
TEST(ImportSlurm, ReadsTheBlocksOfAnIrregularModel) {
  const auto text = ReadPath(std::string(kShared) + "fabric/topograph-dual-xclr-irregular.yaml");
  ASSERT_TRUE(text);
  const auto model = crds::FromYaml(*text);
  ASSERT_TRUE(model);
  Json switches = Json::array();
  for (const auto& [name, one] : (*model)["switches"].items()) {
    Json kept = Json::array();
    for (const Json& child : one["switches"]) {
      const bool has_hosts = std::any_of((*model)["blocks"].begin(), (*model)["blocks"].end(),
                                         [&](const Json& block) { return block["switch"] == child; });
      if (has_hosts || (*model)["switches"].contains(child.get<std::string>())) kept.push_back(child);
    }
    switches.push_back({{"switch", name}, {"children", kept}});
  }
  for (const Json& block : (*model)["blocks"]) {
    switches.push_back({{"switch", block["switch"]}, {"nodes", block["nodes"]}});
  }
  Desk desk;
  desk.texts["topology.yaml"] =
      crds::ToYaml(Json::array({{{"topology", "m"}, {"tree", {{"switches", switches}}}}}));
  const Objects objects = Read(desk.Import({"topology.yaml"}));
  EXPECT_EQ(objects.nodes.size(), 255u);
  EXPECT_EQ(objects.fabrics.at("infiniband").status.counts.leaves, 29);
}

// What lldpd on a host of unifabric's bed would say. The truth of the file: gpu-1 and gpu-2 share leaves 1 and
// 2, gpu-3 and gpu-4 leaves 3 and 4; the storage leaf that all share joins nobody.
TEST(ImportLldp, ReadsTheHostsOfARealBed) {
  const auto text = ReadPath(std::string(kShared) + "fabric/unifabric-topology.json");
  ASSERT_TRUE(text);
  const Json bed = Json::parse(*text, nullptr, false);
  std::map<std::string, Json> interfaces;
  for (const Json& link : bed["content"]["links"]) {
    if (!link.is_array() || link.size() != 2 || !link[0].is_object() || !link[1].is_object()) continue;
    for (int end = 0; end < 2; ++end) {
      const Json &here = link[std::size_t(end)], &there = link[std::size_t(1 - end)];
      const std::string host = here.value("node", "");
      if (!host.starts_with("node-gpu-")) continue;
      interfaces[host].push_back(
          {{"name", here["interface"]},
           {"chassis",
            {{{"id", {{{"type", "mac"}, {"value", "00:11"}}}}, {"name", {{{"value", there["node"]}}}}}}},
           {"port",
            {{{"id", {{{"type", "ifname"}, {"value", there["interface"]}}}},
              {"ttl", {{{"value", "120"}}}}}}}});
    }
  }
  Desk desk;
  std::vector<std::string> sources;
  for (const auto& [host, list] : interfaces) {
    desk.texts[host + ".json"] = Json{{"lldp", Json::array({{{"interface", list}}})}}.dump();
    sources.push_back(host + "=" + host + ".json");
  }
  ASSERT_EQ(sources.size(), 4u);
  const Output output = desk.Import(sources);
  const Objects objects = Read(output);
  const crds::Fabric& fabric = objects.fabrics.at("roce");
  EXPECT_EQ(fabric.status.counts.units, 2) << output.err;
  ASSERT_EQ(fabric.status.units.size(), 2u);
  EXPECT_EQ(fabric.status.units[0].nodes, 2);
  EXPECT_EQ(PlanOn(desk, output, "tp=8,dp=2").exit_code, Output::kOk);
}

TEST(ImportLldp, WantsToKnowWhoseNeighboursTheyAre) {
  Desk desk;
  desk.texts["l"] = R"({"lldp":[{}]})";
  const Output output = desk.Import({"l"});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("write HOST=l"));
}

TEST(ImportLldp, NamesTwoNeighboursOnOneInterface) {
  Desk desk;
  const auto neighbour = [](const char* name) {
    return fmt::format(
        R"({{"name":"eth1","chassis":[{{"id":[{{"type":"mac","value":"a"}}],"name":[{{"value":"{}"}}]}}],)"
        R"("port":[{{"id":[{{"type":"local","value":"7"}}]}}]}})",
        name);
  };
  desk.texts["l"] = R"({"lldp":[{"interface":[)" + neighbour("tor-1") + "," + neighbour("tor-2") + "]}]}";
  const Output output = desk.Import({"n1=l"});
  EXPECT_THAT(output.err,
              HasSubstr("n1 eth1 hears 2 different neighbours, as tor-1 port 7 and tor-2 port 7"));
  EXPECT_EQ(Read(output).nodes.at("n1").nics[0].ports[0].leaf_port.missing(), topology::Missing::kAmbiguous);
}

TEST(ImportSource, IsRecognisedByContent) {
  EXPECT_EQ(*RecogniseSource("junk\nSwitch 36 \"S-1\" # \"x\"\n"), SourceKind::kIbnetdiscover);
  EXPECT_EQ(*RecogniseSource("# c\n  switchname=a Nodes=b\n"), SourceKind::kSlurmConf);
  EXPECT_EQ(*RecogniseSource("---\n- topology: a\n"), SourceKind::kSlurmYaml);
  EXPECT_EQ(*RecogniseSource("<?xml version=\"1.0\"?>\n<system version=\"1\">"), SourceKind::kNcclXml);
  EXPECT_EQ(*RecogniseSource(kTwoGpus), SourceKind::kTopoMatrix);
  EXPECT_EQ(*RecogniseSource("{\n\"lldp\": [] }"), SourceKind::kLldp);
}

TEST(ImportSource, SaysWhenItIsUnsureOrKnowsNothing) {
  EXPECT_THAT(RecogniseSource("SwitchName=a Nodes=b\nSwitch 36 \"S-1\" # \"x\"\n").error().message,
              HasSubstr("it could be slurm-conf and ibnetdiscover: write KIND:FILE"));
  EXPECT_THAT(RecogniseSource("hello\nworld\n").error().message, HasSubstr("it begins with `hello`"));
  EXPECT_THAT(RecogniseSource(" \n\n").error().message, HasSubstr("it is empty"));
  EXPECT_THAT(RecogniseSource("{\"apiVersion\":\"heddle.dev/v1alpha1\"}").error().message,
              HasSubstr("plan --topology"));
  EXPECT_THAT(RecogniseSource("kind: List\nitems:\n- apiVersion: heddle.dev/v1alpha1\n").error().message,
              HasSubstr("plan --topology"));
  EXPECT_THAT(RecogniseSource("apiVersion: batch/v1\nkind: Job\nmetadata:\n  annotations:\n"
                              "    heddle.dev/parallelism: tp=8,dp=2\n")
                  .error()
                  .message,
              HasSubstr("it begins with `apiVersion: batch/v1`"));
}

TEST(ImportSource, ReadsKindAndHostOfAWord) {
  EXPECT_EQ(ParseSourceWord("a/b.txt"), (SourceWord{std::nullopt, "", "a/b.txt"}));
  EXPECT_EQ(ParseSourceWord("lldp:x"), (SourceWord{SourceKind::kLldp, "", "x"}));
  EXPECT_EQ(ParseSourceWord("n1=lldp:x=y"), (SourceWord{SourceKind::kLldp, "n1", "x=y"}));
  EXPECT_EQ(ParseSourceWord("lldp:n1=x=y"), (SourceWord{SourceKind::kLldp, "n1", "x=y"}));
  EXPECT_EQ(ParseSourceWord("lldp:topo-m:x"), (SourceWord{SourceKind::kLldp, "", "topo-m:x"}));
  EXPECT_EQ(ParseSourceWord("dir/a=b"), (SourceWord{std::nullopt, "", "dir/a=b"}));
  EXPECT_EQ(ParseSourceWord("other:x"), (SourceWord{std::nullopt, "", "other:x"}));
}

TEST(Import, RefusesWhatIsNoSource) {
  Desk desk;
  desk.texts = {{"empty", ""}, {"junk", "no such thing\n"}, {"conf", "SwitchName=a Nodes=n[0-999999999]\n"}};
  const auto refusal = [&desk](const std::vector<std::string>& sources) {
    const Output output = desk.Import(sources);
    EXPECT_EQ(output.exit_code, Output::kUsage) << output.err;
    EXPECT_THAT(output.out, IsEmpty());
    return output.err;
  };
  EXPECT_THAT(refusal({"empty"}), HasSubstr("empty: it is empty"));
  desk.texts["-"] = "\n";
  EXPECT_THAT(refusal({"-"}), HasSubstr("Error: standard input: it is empty"));
  EXPECT_THAT(refusal({"ibnetdiscover:empty"}), HasSubstr("no switch and no adapter is in it"));
  EXPECT_THAT(refusal({"ibnetdiscover:junk"}), HasSubstr("line 1 is not ibnetdiscover's: `no such thing`"));
  EXPECT_THAT(refusal({"conf"}), HasSubstr("conf: slurm-conf: line 1: nodes: `n[0-999999999]`"));
  EXPECT_THAT(refusal({"nowhere"}), HasSubstr("No such file"));
  EXPECT_THAT(refusal({"nccl-xml"}), HasSubstr("Is a directory"));
  EXPECT_THAT(refusal({"h="}), HasSubstr("names no file"));
  EXPECT_THAT(refusal({"nccl-xml/ndv4-topo.xml"}), HasSubstr("no file names a host"));
  EXPECT_THAT(refusal({"nccl-xml/ndv4-topo.xml", "nccl-xml/p4d-24xl-topo.xml"}),
              HasSubstr("describes every host already"));
  EXPECT_THAT(refusal({"n=ibnetdiscover/ibtopotool-1.topo"}), HasSubstr("describes no single host"));
  desk.options.gpus_per_node = 33;
  EXPECT_THAT(refusal({"ibnetdiscover/ibtopotool-2.topo"}), HasSubstr("--gpus-per-node 33"));
  desk.options.gpus_per_node = 0;
  EXPECT_THAT(refusal({"ibnetdiscover/ibtopotool-2.topo"}), HasSubstr("--gpus-per-node 0 does not fit"));
  desk.options.gpus_per_node.reset();
  desk.options.link_gbps = 0;
  EXPECT_THAT(refusal({"ibnetdiscover/ibtopotool-2.topo"}), HasSubstr("--link-gbps 0 does not fit"));
  desk.options.link_gbps.reset();
  desk.options.transport = "token-ring";
  EXPECT_THAT(refusal({"ibnetdiscover/ibtopotool-2.topo"}), HasSubstr("--transport \"token-ring\""));
  desk.options.transport = "";
  desk.options.nvlink_blocks = true;
  EXPECT_THAT(refusal({"ibnetdiscover/ibtopotool-2.topo"}), HasSubstr("--nvlink-blocks"));
}

TEST(Import, OfHostsOnOneSwitchStaysInsideTheSchema) {
  Desk desk;
  desk.texts["conf"] = "SwitchName=all Nodes=n[1-200]\n";
  desk.options.link_gbps = 1'000'000;
  EXPECT_EQ(PlanOn(desk, desk.Import({"conf"}), "tp=8,dp=2").exit_code, Output::kOk);
}

TEST(Import, WritesYamlThatIsTheSameObjects) {
  Desk desk;
  const Output json = desk.Import({"ibnetdiscover/ibtopotool-3.topo"});
  const Output yaml = ImportFabric(desk.options, desk.read, {});
  EXPECT_EQ(*crds::FromYaml(yaml.out), Json::parse(json.out));
}

TEST(Import, SaysTheSameOfTheSameFiles) {
  Desk desk;
  desk.texts["ib"] = IbDump::RailOptimised(2, 4, 4, 2, 1).Text();
  const Output once = desk.Import({"ib", "nccl-xml/ndv4-topo.xml"});
  const Output twice = desk.Import({"nccl-xml/ndv4-topo.xml", "ib"});
  EXPECT_EQ(once.out, twice.out);
}

TEST(ReadPath, RefusesADirectoryAndReadsAFile) {
  EXPECT_THAT(ReadPath(HEDDLE_SOURCE_DIR).error().message, HasSubstr("Is a directory; name the files in it"));
  EXPECT_EQ(ReadPath(HEDDLE_SOURCE_DIR).error().code, base::Code::kInvalid);
  EXPECT_EQ(ReadPath("/dev/null").value_or("x"), "");
  EXPECT_EQ(ReadPath("/nowhere").error().code, base::Code::kNotFound);
}

TEST(Names, CountAsPeopleDo) {
  EXPECT_TRUE(CountsBefore("mlx5_2", "mlx5_10"));
  EXPECT_FALSE(CountsBefore("mlx5_10", "mlx5_2"));
  EXPECT_TRUE(CountsBefore("a", "b"));
  EXPECT_TRUE(CountsBefore("a", "a1"));
  EXPECT_FALSE(CountsBefore("a1", "a1"));
  EXPECT_TRUE(CountsBefore("a01", "a1"));
  EXPECT_FALSE(CountsBefore("a1", "a01"));
  // Bytes beyond ASCII come last, whatever the processor takes a char for.
  EXPECT_TRUE(CountsBefore("leaf-z", "leaf-ä"));
  EXPECT_FALSE(CountsBefore("leaf-ä", "leaf-z"));
}

TEST(Names, SayStorageAndManagement) {
  EXPECT_EQ(RoleOfName("oss-03"), topology::NicRole::kStorage);
  EXPECT_EQ(RoleOfName("DC1-Lustre-2"), topology::NicRole::kStorage);
  EXPECT_EQ(RoleOfName("login1"), topology::NicRole::kManagement);
  EXPECT_EQ(RoleOfName("boss-1"), topology::NicRole::kCompute);
  EXPECT_EQ(RoleOfName("gpu-017"), topology::NicRole::kCompute);
}

}  // namespace
}  // namespace heddle::cli
