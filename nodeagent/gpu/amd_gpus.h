#pragma once

#include "base/file_tree.h"
#include "nodeagent/gpu/probe.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {

// AMD's GPUs, from sysfs alone: no library of AMD's is asked, and a recording holds all of it.
//   sys/class/kfd/kfd/topology/nodes/N   order, PCI address, unique_id, memory, xGMI links (type 11)
//   sys/bus/pci/devices/ADDRESS          unique_id, product_name, mem_info_vram_total, ras/umc_err_count
// The kernel shows a KFD node's properties only to who may use the GPU (its device cgroup); where it does not,
// what amdgpu says of the PCI device is all there is, and the xGMI links are unknown: that is one problem.
// A GPU that is split into compute partitions has several KFD nodes and is one GPU.
//
// Appends to what NVML said; indexes count on from there.
void AddAmdGpus(const base::FileTree& files, const PciTree& tree, GpuReadings& readings);

}  // namespace heddle::nodeagent
