#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/node.h"

namespace heddle::formats {

// NCCL's topology file (NCCL_TOPO_FILE, and what NCCL_TOPO_DUMP_FILE writes), RCCL's dialect included: what a
// cloud ships where the hypervisor hides the PCIe tree.
struct NcclDevice {
  std::string pci;  // "0000:1b:00.0", lower case
  topology::Fact<int> numa;
  std::uint32_t class_code = 0;  // 0x030200, 0x120000, 0x020700, …
  std::vector<int> switches;     // the PCIe switches above it, from the root: numbers local to this file
  int root = 0;                  // which <cpu>
  friend bool operator==(const NcclDevice&, const NcclDevice&) = default;
};
struct NcclGpu : NcclDevice {
  topology::Fact<int> index;              // `dev` where the file has a <gpu>
  std::vector<std::string> link_targets;  // NVLink or xGMI neighbours by PCI address, as listed
  int links = 0;                          // NVLinks or xGMI links of this GPU, over all of its targets
  bool xgmi = false;                      // they are xGMI
  int sm = 0;                             // compute capability: 90 = H100; 0 = not said
  friend bool operator==(const NcclGpu&, const NcclGpu&) = default;
};
struct NcclNic : NcclDevice {
  std::string name;  // "mlx5_0"; empty where the file names none
  int gbps = 0;      // 0 = not said
  int port = 0;      // 0 = not said
  topology::Fact<int> rail;
  friend bool operator==(const NcclNic&, const NcclNic&) = default;
};
struct NcclTopology {
  std::vector<NcclGpu> gpus;  // by `dev` where all have one, else by PCI address
  std::vector<NcclNic> nics;  // by PCI address
};

// Everything in the file is checked; what is not of the format is kInvalid with the place, and never a crash.
[[nodiscard]] base::Result<NcclTopology> ParseNcclXml(std::string_view xml);

// PIX: one switch; PXB: several; PHB: the same <cpu>; SYS: another.
topology::PciDistance Distance(const NcclDevice& a, const NcclDevice& b);

// All NICs at the least distance, as positions in topology.nics.
std::vector<std::size_t> NearestNics(const NcclTopology& topology, const NcclGpu& gpu);

}  // namespace heddle::formats
