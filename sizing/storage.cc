#include "sizing/storage.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"

namespace heddle::sizing {
namespace {

std::int64_t CeilOf(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Of one block.
struct Block {
  std::int64_t leaves = 0, spines = 0, cables = 0;
};

// Nothing where two tiers of these switches do not hold it.
std::optional<Block> FitBlock(std::int64_t nodes, std::int64_t storage, int ports) {
  const std::int64_t down = nodes + storage, up = CeilOf(nodes * 3, 4) + storage;
  const std::int64_t pair_down = CeilOf(down, 2), pair_up = CeilOf(up, 2);
  if (pair_down + pair_up <= ports) return Block{2, 0, pair_up};
  for (std::int64_t leaves = std::max<std::int64_t>(2, CeilOf(down + up, ports)); leaves <= ports; ++leaves) {
    const std::int64_t each_down = CeilOf(down, leaves);
    std::optional<Block> best;
    for (std::int64_t each_up = CeilOf(up, leaves); each_down + each_up <= ports; ++each_up) {
      for (std::int64_t spines = std::max<std::int64_t>(2, CeilOf(leaves * each_up, ports));
           spines <= each_up && (!best || spines < best->spines); ++spines) {
        if (each_up % spines == 0) best = Block{leaves, spines, leaves * each_up};
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace

StorageFabric SizeStorage(const Design& design) {
  StorageFabric fabric;
  const MachineType& machine = *design.machine;
  const Request& request = design.request;
  fabric.link_gbps = machine.storage_gbps;
  fabric.type = UsualSwitch(request.transport, machine.storage_gbps);
  CHECK(fabric.type != nullptr);
  const int ports = fabric.type->PortsAt(machine.storage_gbps);
  const StorageGuide* guide = FindStorageGuide(request.storage);
  CHECK(guide != nullptr);
  fabric.read_gbs = request.storage_gbs_per_gpu > 0
                        ? request.storage_gbs_per_gpu * double(request.gpus)
                        : guide->per_unit * double(design.nodes) / kGuideUnitNodes;
  fabric.node_ports = design.nodes * machine.storage_ports;
  // Two at least, so that no cable is the only one.
  fabric.storage_ports =
      std::max<std::int64_t>(2, std::int64_t(std::ceil(fabric.read_gbs * 8 / machine.storage_gbps)));
  for (fabric.blocks = 1;; ++fabric.blocks) {
    // All ports of a node are in one block.
    const std::int64_t nodes = CeilOf(design.nodes, fabric.blocks) * machine.storage_ports;
    const std::int64_t storage = std::max<std::int64_t>(2, CeilOf(fabric.storage_ports, fabric.blocks));
    if (nodes + storage > std::int64_t(ports) * ports) continue;  // no use in trying
    const std::optional<Block> block = FitBlock(nodes, storage, ports);
    if (!block) continue;
    fabric.leaves = block->leaves * fabric.blocks;
    fabric.spines = block->spines * fabric.blocks;
    fabric.leaf_cables = block->cables * fabric.blocks;
    fabric.storage_ports = std::max(fabric.storage_ports, 2 * fabric.blocks);
    return fabric;
  }
}

}  // namespace heddle::sizing
