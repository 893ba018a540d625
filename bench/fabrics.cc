#include "bench/fabrics.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/check.h"
#include "base/random.h"
#include "topology/synthetic.h"

namespace heddle::bench {

using placement::GangRequest;
using placement::NodeState;
using placement::PodRequest;

namespace {

topology::Synthetic Parsed(const std::string& line) {
  auto synthetic = topology::ParseSynthetic(line);
  CHECK(synthetic.has_value());
  return std::move(*synthetic);
}

topology::Synthetic Units(int units) {
  return Parsed(
      fmt::format("su:{} node:16 gpu:8 nic:8 rail:8 spine:8 rate:400 transport:ib machine:h100", units));
}

void Rename(topology::Synthetic& half) {
  for (topology::Node& node : half.nodes) {
    node.name = "x" + node.name;
    if (node.nvlink_domain) node.nvlink_domain = topology::NvlinkMembership{node.name, false};
    for (topology::Gpu& gpu : node.gpus) gpu.uuid = fmt::format("GPU-{}-{}", node.name, gpu.index);
    for (topology::Nic& nic : node.nics) {
      nic.guid[9] = '4';
      for (topology::NicPort& port : nic.ports) {
        if (port.leaf_port)
          port.leaf_port = topology::LeafPort{"x" + port.leaf_port->leaf, port.leaf_port->port};
      }
    }
  }
  for (auto& leaf : half.declaration.switches) leaf.name = "x" + leaf.name;
}

}  // namespace

std::shared_ptr<const topology::Fabric> FabricOfNodes(int nodes) {
  constexpr int kLargestLine = 65'536;
  const int units = (nodes + 15) / 16;
  topology::Synthetic all = Units(nodes > kLargestLine ? units / 2 : units);
  if (nodes > kLargestLine) {
    topology::Synthetic half = Units(units - units / 2);
    Rename(half);
    std::move(half.nodes.begin(), half.nodes.end(), std::back_inserter(all.nodes));
    auto& switches = half.declaration.switches;
    std::move(switches.begin(), switches.end(), std::back_inserter(all.declaration.switches));
  }
  auto fabric =
      std::make_shared<const topology::Fabric>(topology::BuildFabric(std::move(all.nodes), all.declaration));
  CHECK(int(fabric->nodes.size()) == units * 16 && int(fabric->units.size()) == units &&
        fabric->faults.empty());
  return fabric;
}

std::vector<NodeState> Occupied(const topology::Fabric& fabric, int percent) {
  base::Random random(kSeed);
  std::vector<NodeState> nodes(fabric.nodes.size());
  for (NodeState& node : nodes) {
    const auto draw = int(random.Below(100));
    node.free_gpus = draw < percent ? 0 : draw < 2 * percent ? 0x0f : 0xff;
    node.free_milli_cpu = 192'000;
    node.free_memory_bytes = std::int64_t(2) << 40;
    node.free_pods = 110;
  }
  return nodes;
}

GangRequest Gang(int world, int gpus_per_pod) {
  GangRequest request;
  request.parallelism.tp = 8;
  request.parallelism.pp = world >= 1024 ? 8 : 2;
  request.parallelism.dp = world / 8 / request.parallelism.pp;
  PodRequest pod;
  pod.gpus = gpus_per_pod;
  pod.resources.milli_cpu = 8'000;
  request.pods.assign(std::size_t(world / gpus_per_pod), pod);
  return request;
}

std::shared_ptr<const topology::Fabric> KueuesFabric() {
  constexpr int kNodes = 2500, kNodesPerRack = 16, kRacksPerBlock = 16;
  auto line = Parsed("su:157 node:16 gpu:12 nic:1 rail:1 spine:1 rate:400 transport:ib machine:h100");
  line.nodes.resize(kNodes);  // the last rack has four
  static_assert(kNodes > 156 * kNodesPerRack);
  for (auto& leaf : line.declaration.switches) {
    int rack = 0;
    CHECK(std::sscanf(leaf.name.c_str(), "su%d-", &rack) == 1);
    leaf.uplinks = {fmt::format("block-{:02}", rack / kRacksPerBlock)};
  }
  for (int block = 0; block * kRacksPerBlock * kNodesPerRack < kNodes; ++block) {
    line.declaration.switches.push_back({fmt::format("block-{:02}", block), {"core-0"}, 0});
  }
  return std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(line.nodes), line.declaration));
}

GangRequest KueuesGang() {
  GangRequest request;
  request.parallelism.dp = 2304;
  PodRequest pod;
  pod.gpus = 1;
  pod.resources.milli_cpu = 8'000;
  request.pods.assign(2304, pod);
  return request;
}

}  // namespace heddle::bench
