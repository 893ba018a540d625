#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/topology_view.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;

class ViewsTest : public Stage {
 protected:
  Output Topology(const std::string& node = "", Format format = Format::kText) {
    return RunTopology(client, node, {.format = format}, {});
  }
  Output FabricOf(const std::string& line, Format format = Format::kText) {
    AddCluster(line);
    return RunFabric(client, {.format = format}, {});
  }
};

TEST_F(ViewsTest, ListsNodes) {
  AddCluster(
      "su:1 node:3 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 down:node-01/rail-2 "
      "badgpu:node-02/5");
  ExpectGolden("topology.txt", Topology().out);
  ExpectFits([this](const Style& style) { return RunTopology(client, "", {.style = style}, {}).out; });
}

TEST_F(ViewsTest, DrawsANodeAsATree) {
  AddCluster(
      "su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 down:node-01/rail-2 "
      "badgpu:node-01/5");
  ExpectGolden("topology_node.txt", Topology("node-01").out);
  const auto at = [this](const Style& style) {
    return RunTopology(client, "node-01", {.style = style}, {}).out;
  };
  ExpectFits(at);
  EXPECT_EQ(WiderThan(80, at({.width = 80})), std::vector<std::string>{});
  EXPECT_THAT(at({.width = 80}),
              HasSubstr("0005:1b:00.0\n│  │  unhealthy: the synthetic line says that it is bad\n"));
}

// Of 200 Gb/s each, on one port of a leaf.
topology::Nic NicOfTwoPorts(const std::string& name, int usable_gbps, const std::string& leaf) {
  topology::Nic nic;
  nic.name = name;
  for (const int number : {1, 2}) {
    nic.ports.push_back({.number = number,
                         .state = topology::LinkState::kActive,
                         .rate_gbps = 200,
                         .usable_gbps = usable_gbps,
                         .leaf_port = topology::LeafPort{leaf, "Ethernet48"}});
  }
  return nic;
}

TEST(NodeTree, BreaksNicsOfTwoPortsAndLongSentencesBetweenTheirParts) {
  crds::NodeTopology object;
  object.name = "gpu-with-a-long-name-0017.pod-3.cluster.example";
  topology::Node& node = object.status.node;
  node.name = object.name;
  node.gpus.push_back({.index = 0, .model = "NVIDIA H100 80GB HBM3", .pci = "0000:1b:00.0"});
  topology::Nic nic = NicOfTwoPorts("mlx5_bond_0", 100, "tor-a-of-row-7.dc");
  nic.role = topology::NicRole::kCompute;
  node.nics = {nic};
  node.paths = {{.gpu = 0, .nic = "mlx5_bond_0", .distance = topology::PciDistance::kPix}};
  object.status.conditions = {
      {.type = std::string(crds::kReady),
       .status = crds::ConditionStatus::kFalse,
       .reason = "GpusUnreadable",
       .message =
           "the driver does not answer, and so nobody knows which GPUs there are or whether they are well"}};
  const auto print = [&object](const Style& style) { return NodeTree(object, style); };
  ExpectFits(print);
  const std::string narrow = print({.width = 80});
  EXPECT_EQ(WiderThan(80, narrow), std::vector<std::string>{});
  EXPECT_THAT(narrow,
              HasSubstr("\n      port 2: Active 100 Gb/s of 200  leaf tor-a-of-row-7.dc port Ethernet48\n"));
}

TEST(NodeTree, SaysOfWhichGpusTheNvlinksCarryLess) {
  crds::NodeTopology object;
  object.name = "gpu-017";
  topology::Node& node = object.status.node;
  for (int index = 0; index < 3; ++index) node.gpus.push_back({.index = index});
  node.nvlink = {4, 18, 3600, {{1, 17}, {2, 18, 3500}}};
  const std::string text = NodeTree(object, {});
  EXPECT_THAT(text, HasSubstr("NVLink 3400 Gb/s of 3600\n"));
  EXPECT_THAT(text, HasSubstr("NVLink 3500 Gb/s of 3600\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("NVLink 3600 Gb/s of")));
}

TEST(NodeTree, SaysOfWhichGpuTheNicIsGone) {
  crds::NodeTopology object;
  object.name = "gpu-017";
  for (int index = 0; index < 2; ++index) object.status.node.gpus.push_back({.index = index});
  EXPECT_THAT(NodeTree(object, {}), testing::Not(HasSubstr("is gone")));
  object.status.node.gpus[1].nic_gone = topology::LostNic{1, "0000:5e:00.0"};
  const std::string text = NodeTree(object, {});
  EXPECT_THAT(text.substr(text.find("GPU 1")), HasSubstr("a NIC on rail 1 is gone\n"));
}

TEST(NodeTree, SaysBesideItsPortThatItIsCongested) {
  crds::NodeTopology object;
  object.name = "gpu-017";
  topology::Node& node = object.status.node;
  node.gpus.push_back({.index = 0, .model = "NVIDIA H100 80GB HBM3", .pci = "0000:1b:00.0"});
  for (const char* name : {"mlx5_0", "mlx5_1", "mlx5_2"}) {
    topology::Nic nic;
    nic.name = name;
    nic.ports.push_back(
        {.number = 1, .state = topology::LinkState::kActive, .rate_gbps = 400, .usable_gbps = 400});
    node.nics.push_back(nic);
  }
  node.paths = {{.gpu = 0, .nic = "mlx5_0", .distance = topology::PciDistance::kPix}};
  const std::string before = NodeTree(object, {});
  const base::WallTime since = *base::ParseTime("2026-11-22T01:46:30Z");
  object.status.congestion = {{"mlx5_0", 1, since, "70000 CNPs handled in 1 min"},
                              {"mlx5_0", 2, since, "of no port"},
                              {"mlx5_2", 1, since, "61000 CNPs sent\x1b[31m in 1 min"},
                              {"mlx5_9", 1, since, "of no NIC"}};
  std::string text = NodeTree(object, {});
  for (const char* part : {"  congested since 2026-11-22T01:46:30Z: 70000 CNPs handled in 1 min",
                           "  congested since 2026-11-22T01:46:30Z: 61000 CNPs sent?[31m in 1 min"}) {
    const std::size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part << "\n" << text;
    text.erase(at, std::string_view(part).size());
  }
  EXPECT_EQ(text, before);
}

TEST(NodeTree, SaysWhichOfSeveralPortsIsCongested) {
  crds::NodeTopology object;
  object.name = "gpu-017";
  topology::Node& node = object.status.node;
  node.gpus.push_back({.index = 0, .model = "NVIDIA H100 80GB HBM3", .pci = "0000:1b:00.0"});
  for (const char* name : {"mlx5_0", "mlx5_1"}) node.nics.push_back(NicOfTwoPorts(name, 200, "tor-a"));
  node.paths = {{.gpu = 0, .nic = "mlx5_0", .distance = topology::PciDistance::kPix}};
  const base::WallTime since = *base::ParseTime("2026-11-22T01:46:30Z");
  object.status.congestion = {{"mlx5_0", 2, since, "70000 CNPs handled in 1 min"},
                              {"mlx5_1", 2, since, "61000 CNPs sent in 1 min"}};
  const std::string text = NodeTree(object, {});
  EXPECT_THAT(text, HasSubstr("  port 2: Active 200 Gb/s  leaf tor-a port Ethernet48  congested since "
                              "2026-11-22T01:46:30Z: 70000 CNPs handled in 1 min\n"));
  EXPECT_THAT(text, HasSubstr("  port 2 congested since 2026-11-22T01:46:30Z: 61000 CNPs sent in 1 min\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("port 1 congested")));
}

TEST_F(ViewsTest, WritesNodesAsJson) {
  AddCluster("su:1 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100");
  EXPECT_EQ(Json::parse(Topology("", Format::kJson).out)["items"].size(), 2U);
  EXPECT_EQ(Json::parse(Topology("node-01", Format::kJson).out)["kind"], "NodeTopology");
}

TEST_F(ViewsTest, SaysWhatIsMissingWhenNobodyReported) {
  EXPECT_EQ(Topology().exit_code, Output::kFailed);
  EXPECT_THAT(Topology().err, HasSubstr("heddle-nodeagent"));
  EXPECT_THAT(Topology("node-9").err, HasSubstr("kubectl heddle topology"));
  EXPECT_EQ(RunFabric(client, {}, {}).exit_code, Output::kFailed);
  for (const Format format : {Format::kJson, Format::kYaml}) {
    for (const Output& output : {Topology("", format), RunFabric(client, {.format = format}, {})}) {
      EXPECT_EQ(output.exit_code, Output::kFailed) << "as the table's";
      EXPECT_THAT(output.out, HasSubstr("items"));
      EXPECT_THAT(output.err, HasSubstr("heddle-nodeagent"));
    }
  }
}

TEST_F(ViewsTest, SaysThatHeddleIsNotInstalled) {
  server.FailNext({.method = "GET", .path_contains = "nodetopologies", .status = 404});
  const Output output = Topology();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("Is Heddle installed here?"));
}

TEST_F(ViewsTest, ShowsRailsByUnitAndWhatIsWrong) {
  ExpectGolden("fabric.txt",
               FabricOf("su:2 node:3 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100 "
                        "swap:node-01/rail-2/rail-3")
                   .out);
  ExpectFits([this](const Style& style) { return RunFabric(client, {.style = style}, {}).out; });
}

TEST_F(ViewsTest, ShowsRacks) {
  ExpectGolden("fabric_nvl72.txt", FabricOf("rack:2 tray:18 gpu:4 nic:4 rail:4 rate:400 nvl").out);
}

TEST_F(ViewsTest, ShowsPlainTors) {
  ExpectGolden("fabric_tor.txt", FabricOf("tor:2 node:2 gpu:8 nic:2 rate:100 transport:roce").out);
}

TEST_F(ViewsTest, FitsFabricsIntoATerminalOf80Columns) {
  AddCluster("su:2 node:3 gpu:8 nic:8 rail:8 transport:ib swap:node-01/rail-2/rail-3");
  const Output output = RunFabric(client, {.style = {.width = 80}}, {});
  EXPECT_EQ(WiderThan(80, output.out), std::vector<std::string>{});
  EXPECT_THAT(output.out, HasSubstr("\n  node-01 mlx5_2 is cabled to su0-r3 port 2"));
}

TEST_F(ViewsTest, PutsUnitsBelowEachOtherWhereTheTerminalHasNoRoomAndMarksTheirLeaves) {
  AddCluster(
      "su:16 node:3 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 down:node-01/rail-2 "
      "swap:node-03/rail-0/rail-1 down:node-06/rail-5 down:node-07/rail-5 down:node-08/rail-5 "
      "half:node-47/rail-7");
  const std::string narrow = RunFabric(client, {.style = {.width = 80}}, {}).out;
  EXPECT_EQ(WiderThan(80, narrow), std::vector<std::string>{});
  ExpectGolden("fabric_80.txt", narrow);
  ExpectFits([this](const Style& style) { return RunFabric(client, {.style = style}, {}).out; });
  const std::string coloured = RunFabric(client, {.style = {.colours = true, .width = 80}}, {}).out;
  EXPECT_THAT(coloured, HasSubstr("\x1b[31msu0-r2!\x1b[0m"));
  EXPECT_THAT(coloured, HasSubstr("\x1b[31m×\x1b[0m"));
}

TEST_F(ViewsTest, MarksOtherwiseWhatNobodyCanTell) {
  AddCluster("su:2 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100 swap:node-01/rail-2/rail-3");
  const std::string text = RunFabric(client, {.style = {.colours = true}}, {}).out;
  EXPECT_THAT(text, HasSubstr("   2  su0-r2?  su1-r2\n   3  su0-r3?  su1-r3\n"));
  EXPECT_THAT(text, HasSubstr("\n? 2 leaves: nobody can tell"));
  EXPECT_THAT(text, testing::Not(HasSubstr("!")));
}

topology::Fabric FabricOfLine(const std::string& line, const std::function<void(topology::Node&)>& change) {
  auto synthetic = topology::ParseSynthetic(line);
  if (!synthetic) return {};
  for (topology::Node& node : synthetic->nodes) change(node);
  return topology::BuildFabric(std::move(synthetic->nodes), synthetic->declaration);
}

TEST(FabricText, MarksALeafOfWhichNoPortIsUpByItsName) {
  const std::string text =
      FabricText(FabricOfLine("tor:2 node:2 gpu:8 nic:2 rate:100 transport:roce",
                              [](topology::Node& node) {
                                for (topology::Nic& nic : node.nics) {
                                  for (topology::NicPort& port : nic.ports) {
                                    if (!port.leaf_port || port.leaf_port->leaf != "tor-1") continue;
                                    port.state = topology::LinkState::kDown;
                                    port.usable_gbps = 0;
                                  }
                                }
                              }),
                 {});
  EXPECT_THAT(text, HasSubstr("\ntor-1×  "));
  EXPECT_THAT(text, HasSubstr("\ntor-0   "));
  EXPECT_THAT(text, HasSubstr("\n× 1 leaf: no host port can be used\n"));
}

TEST(FabricText, BreaksTheLeavesOfManyPlanesIntoTheWidthOfTheTerminal) {
  const topology::Fabric fabric =
      FabricOfLine("su:2 node:2 gpu:8 nic:8 rail:8 plane:8 rate:400 transport:roce", [](topology::Node&) {});
  ASSERT_EQ(fabric.leaves.size(), 128U);
  const std::string text = FabricText(fabric, {.width = 80});
  EXPECT_EQ(WiderThan(80, text), std::vector<std::string>{});
  for (const topology::Leaf& leaf : fabric.leaves) EXPECT_THAT(text, HasSubstr(leaf.name));
}

TEST_F(ViewsTest, WritesFabricsAsJson) {
  const Output output = FabricOf("tor:2 node:2 gpu:8 nic:2 rate:100 transport:roce", Format::kJson);
  const Json fabric = Json::parse(output.out)["items"][0];
  EXPECT_EQ(fabric["metadata"]["name"], "roce") << "of the object that the operator writes";
  EXPECT_EQ(fabric["status"]["transport"], "RoCE");
}

}  // namespace
}  // namespace heddle::cli
