#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/builders.h"
#include "topology/fabric.h"

// Fabrics that others published, with what is known to be true of them (../shared/data/README.md).

namespace heddle::topology {
namespace {

using test::NodeNamed;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kData = HEDDLE_SOURCE_DIR "/../shared/data/fabric/";

// The test cluster of unifabric: eth1-8 are the rails, eth9 storage, eth10-13 stand for NVLink.
struct Unifabric {
  std::vector<Node> nodes;
  Declaration declaration;
};

void AddEnd(const std::string& host, const std::string& netdev, const LeafPort& leaf,
            std::map<std::string, Node>& nodes) {
  Node& node = nodes[host];
  node.name = host;
  if (leaf.leaf.starts_with("switch-scaleup")) {
    node.nvlink_domain = NvlinkMembership{leaf.leaf, true};
    return;
  }
  Nic nic;
  nic.name = nic.netdev = netdev;
  nic.transport = Transport::kRoce;
  nic.role = leaf.leaf.starts_with("switch-storage") ? NicRole::kStorage : NicRole::kCompute;
  if (nic.role == NicRole::kCompute) nic.rail = std::stoi(netdev.substr(3)) - 1;
  nic.ports.push_back({1, 0, LinkState::kActive, 400, 400});
  nic.ports.back().leaf_port = leaf;
  node.nics.push_back(nic);
}

Unifabric ReadUnifabric(const nlohmann::json& file) {
  std::map<std::string, Node> nodes;
  std::map<std::string, std::vector<std::string>> uplinks;
  for (const auto& link : file.at("content").at("links")) {
    if (!link.at(0).is_object() || !link.at(1).is_object()) continue;  // "unconnected"
    const std::string from = link.at(0).at("node"), to = link.at(1).at("node");
    if (from.starts_with("switch-")) {
      uplinks[from].push_back(to);
    } else {
      AddEnd(from, link.at(0).at("interface"), {to, link.at(1).at("interface")}, nodes);
    }
  }
  Unifabric read;
  for (auto& [name, node] : nodes) read.nodes.push_back(std::move(node));
  for (auto& [name, up] : uplinks) read.declaration.switches.push_back({name, up, 0});
  return read;
}

TEST(Unifabric, SharesLeavesByPairsAndIsNotMergedByItsStorageLeaf) {
  std::ifstream file(kData + "unifabric-topology.json");
  if (!file) GTEST_SKIP() << kData << " is not here";
  const Unifabric read = ReadUnifabric(nlohmann::json::parse(file));
  const Fabric fabric = BuildFabric(read.nodes, read.declaration);
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_THAT(fabric.faults, IsEmpty());
  EXPECT_THAT(fabric.assumptions, IsEmpty());
  ASSERT_THAT(fabric.nodes, SizeIs(5)) << "four GPU servers and a storage server";
  ASSERT_THAT(fabric.units, SizeIs(2));
  EXPECT_THAT(fabric.units[0].nodes,
              ElementsAre(fabric.FindNode("node-gpu-1"), fabric.FindNode("node-gpu-2")));
  EXPECT_THAT(fabric.units[0].leaves,
              ElementsAre(fabric.FindLeaf("switch-gpu-leaf1"), fabric.FindLeaf("switch-gpu-leaf2")));
  EXPECT_THAT(fabric.units[1].leaves,
              ElementsAre(fabric.FindLeaf("switch-gpu-leaf3"), fabric.FindLeaf("switch-gpu-leaf4")));
  EXPECT_EQ(fabric.FindLeaf("switch-storage-leaf1"), kNone);
  EXPECT_EQ(fabric.nodes[std::size_t(fabric.FindNode("node-storage-1"))].unit, kNone);
  ASSERT_THAT(fabric.domains, SizeIs(2));
  EXPECT_THAT(fabric.domains[0].nodes,
              ElementsAre(fabric.FindNode("node-gpu-1"), fabric.FindNode("node-gpu-2")));
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("switch-gpu-leaf1"), fabric.FindLeaf("switch-gpu-leaf4")), 2);
  EXPECT_EQ(fabric.shape, Shape::kRailOptimised) << "four rails on each leaf";
}

// 847 hosts of a production cluster, one line each: host, DSW, PSW, ASW. ASW names recur under other PSWs.
TEST(Lingjun, Has119LeavesWhere48NamesAre) {
  std::ifstream file(kData + "lingjun-topo.csv");
  if (!file) GTEST_SKIP() << kData << " is not here";
  std::vector<Node> nodes;
  std::map<std::string, SwitchDeclaration> switches;
  std::map<std::string, std::set<std::string>> pods_of_name;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string host, core, pod, name;
    std::getline(fields, host, ',');
    std::getline(fields, core, ',');
    std::getline(fields, pod, ',');
    fields >> name;
    pods_of_name[name].insert(pod);
    const std::string leaf = pod + "/" + name;
    nodes.push_back(NodeNamed(host).Nic(leaf));
    switches[leaf] = {leaf, {pod}, 0};
    switches[pod] = {pod, {core}, 0};
  }
  EXPECT_THAT(pods_of_name, SizeIs(48));
  EXPECT_EQ(std::count_if(pods_of_name.begin(), pods_of_name.end(),
                          [](const auto& entry) { return entry.second.size() > 1; }),
            42);

  Declaration declaration;
  for (auto& [name, declared] : switches) declaration.switches.push_back(declared);
  const Fabric fabric = BuildFabric(nodes, declaration);
  EXPECT_THAT(Check(fabric), IsEmpty());
  EXPECT_THAT(fabric.nodes, SizeIs(847));
  EXPECT_THAT(fabric.leaves, SizeIs(119));
  EXPECT_THAT(fabric.units, SizeIs(119));
  EXPECT_THAT(fabric.spines, SizeIs(4));
  EXPECT_EQ(fabric.shape, Shape::kFatTree);
  std::map<std::int32_t, std::size_t> hosts_of_pod;
  for (const Unit& unit : fabric.units) {
    hosts_of_pod[fabric.leaves[std::size_t(unit.leaves.front())].spines.front()] += unit.nodes.size();
  }
  EXPECT_THAT(hosts_of_pod,
              ElementsAre(testing::Pair(0, 362u), testing::Pair(1, 306u), testing::Pair(2, 179u)));
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("P10/S14"), fabric.FindLeaf("P10/S6")), 2);
  EXPECT_EQ(fabric.Hops(fabric.FindLeaf("P10/S2"), fabric.FindLeaf("P12/S2")), 4);
}

}  // namespace
}  // namespace heddle::topology
