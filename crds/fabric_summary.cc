#include <algorithm>
#include <set>

#include "crds/fabric.h"
#include "crds/kept_text.h"

namespace heddle::crds {
namespace {

constexpr std::size_t kMaxUnits = 512;
constexpr std::size_t kMaxLeavesOfUnit = 64;
constexpr std::size_t kMaxLeaves = 4096;
constexpr std::size_t kMaxSpines = 1024;
constexpr std::size_t kMaxDomains = 256;
constexpr std::size_t kMaxFaults = 64;

// Nodes with a compute port on each leaf.
std::vector<int> NodesByLeaf(const topology::Fabric& fabric) {
  std::vector<int> nodes(fabric.leaves.size());
  for (const topology::FabricNode& node : fabric.nodes) {
    std::set<topology::LeafId> touched;
    for (const topology::Nic& nic : node.node.nics) {
      if (nic.role != topology::NicRole::kCompute) continue;
      for (const topology::NicPort& port : nic.ports) {
        if (port.leaf_port) touched.insert(fabric.FindLeaf(port.leaf_port->leaf));
      }
    }
    for (const topology::LeafId leaf : touched) {
      if (leaf != topology::kNone) ++nodes[std::size_t(leaf)];
    }
  }
  return nodes;
}

UnitSummary SummariseUnit(const topology::Fabric& fabric, const topology::Unit& unit) {
  UnitSummary summary{unit.name, int(unit.nodes.size()), {}};
  for (const topology::LeafId leaf : unit.leaves) {
    if (summary.leaves.size() == kMaxLeavesOfUnit) break;
    summary.leaves.push_back(fabric.leaves[std::size_t(leaf)].name);
  }
  return summary;
}

LeafSummary SummariseLeaf(const topology::Fabric& fabric, const topology::Leaf& leaf, int nodes) {
  const std::string unit = leaf.unit == topology::kNone ? "" : fabric.units[std::size_t(leaf.unit)].name;
  return {leaf.name, leaf.rail, leaf.plane, unit, leaf.down_gbps, leaf.up_gbps, nodes};
}

}  // namespace

FabricStatus Summarise(const topology::Fabric& fabric) {
  FabricStatus status;
  status.transport = fabric.transport;
  status.site = fabric.site;
  status.shape = fabric.shape;
  status.rails = fabric.rails;
  status.counts = {int(fabric.nodes.size()),
                   fabric.gpu_count(),
                   int(fabric.units.size()),
                   int(fabric.leaves.size()),
                   int(fabric.spines.size()),
                   int(fabric.domains.size()),
                   int(std::count_if(fabric.faults.begin(), fabric.faults.end(),
                                     [](const auto& fault) { return !fault.ambiguous; }))};
  for (std::size_t i = 0; i < std::min(fabric.units.size(), kMaxUnits); ++i) {
    status.units.push_back(SummariseUnit(fabric, fabric.units[i]));
  }
  const std::vector<int> nodes = NodesByLeaf(fabric);
  for (std::size_t i = 0; i < std::min(fabric.leaves.size(), kMaxLeaves); ++i) {
    status.leaves.push_back(SummariseLeaf(fabric, fabric.leaves[i], nodes[i]));
  }
  for (std::size_t i = 0; i < std::min(fabric.spines.size(), kMaxSpines); ++i) {
    status.spines.push_back({fabric.spines[i].name, fabric.spines[i].tier});
  }
  for (const topology::NvlinkDomain& domain : fabric.domains) {
    // A domain inside one node is that node: listing it would list the hosts.
    if (!domain.spans_nodes) continue;
    if (status.nvlink_domains.size() == kMaxDomains) break;
    status.nvlink_domains.push_back({domain.id, int(domain.nodes.size()), domain.gpus});
  }
  status.faults.assign(fabric.faults.begin(),
                       fabric.faults.begin() + std::ptrdiff_t(std::min(fabric.faults.size(), kMaxFaults)));
  // A swap names two nodes and four leaves. Longer than the status keeps it, it would be a new fault at each look.
  for (topology::CablingFault& fault : status.faults)
    fault.sentence = KeptText(fault.sentence, kMaxKeptFault);
  return status;
}

}  // namespace heddle::crds
