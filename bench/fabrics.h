#pragma once

#include <memory>
#include <vector>

#include "placement/cluster_state.h"
#include "placement/gang.h"
#include "topology/fabric.h"

namespace heddle::bench {

inline constexpr std::uint64_t kSeed = 20261121;

// Rail-optimised units of 16 nodes of 8 H100, 400 Gb/s a GPU. More than one synthetic line makes comes in two
// halves with names of their own.
std::shared_ptr<const topology::Fabric> FabricOfNodes(int nodes);

// `percent` of the nodes taken whole and as many by half, by lot.
std::vector<placement::NodeState> Occupied(const topology::Fabric& fabric, int percent);

// tp 8, pp 8 (2 below 1,024 GPUs), the rest dp.
placement::GangRequest Gang(int world, int gpus_per_pod = 8);

// Kueue's BenchmarkTASFlavorAssignment/nodes=2500/workersOnly (pkg/cache/scheduler of kubernetes-sigs/kueue):
// 2,500 empty nodes in racks of 16 and blocks of 16 racks; each holds 12 pods (96 CPUs, 8 a pod) and 2,304 pods
// come. A pod's 8 CPUs are one GPU of 12 here; the blocks are sets of spines, the racks units with one leaf.
std::shared_ptr<const topology::Fabric> KueuesFabric();
placement::GangRequest KueuesGang();

}  // namespace heddle::bench
