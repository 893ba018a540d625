#pragma once

#include <cstdint>
#include <optional>
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
  std::uint16_t vendor = 0;      // 0 = not said
  std::uint16_t device = 0;
  std::vector<int> switches;  // the PCIe switches above it, from the root: numbers local to this file
  int root = 0;               // which <cpu>
  friend bool operator==(const NcclDevice&, const NcclDevice&) = default;
};
struct NcclGpu : NcclDevice {
  topology::Fact<int> index;              // `dev` where the file has a <gpu>
  std::vector<std::string> link_targets;  // NVLink or xGMI neighbours by PCI address, as listed
  std::vector<int> link_counts;           // of each of them
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
  topology::Fact<int> plane;
  bool rdma = true;  // false where the file shows a plain interface: NCCL's sockets count their GUIDs from 0
  friend bool operator==(const NcclNic&, const NcclNic&) = default;
};
struct NcclTopology {
  std::vector<NcclGpu> gpus;  // by `dev` where all have one, else by PCI address
  std::vector<NcclNic> nics;  // by PCI address
};

// Everything in the file is checked; what is not of the format is kInvalid with the place, and never a crash.
[[nodiscard]] base::Result<NcclTopology> ParseNcclXml(std::string_view xml);

// A topology to be written, in the file's own shape. What is empty, 0 or not known is left out, and NCCL then
// asks the machine itself (2.30: src/graph/xml.cc fills every attribute that a file does not set).
struct NcclXmlLink {
  std::string target;  // PCI address; "fffffff:ffff:ff" = a switch that the host does not see
  std::uint32_t target_class = 0;
  int count = 0;
};
struct NcclXmlGpu {
  int dev = 0;
  int sm = 0;
  bool xgmi = false;
  std::vector<NcclXmlLink> links;
};
struct NcclXmlNet {
  std::string name;
  int dev = 0;       // NCCL puts its own number here
  int speed = 0;     // Mb/s
  int port = 0;      // as the device numbers it
  std::string guid;  // "0x506b4b0300c3b4a2": the system image's, by which NCCL tells one card's ports
  bool gdr = false;  // GPUDirect RDMA is known to work; else NCCL finds out
  topology::Fact<int> rail;
  topology::Fact<int> plane;
};
struct NcclXmlPci {
  std::string busid;
  std::uint32_t class_code = 0;
  std::uint16_t vendor = 0, device = 0;
  int link_speed = 0;  // MT/s per lane
  int link_width = 0;
  std::optional<NcclXmlGpu> gpu;
  std::vector<NcclXmlNet> nets;
  std::vector<NcclXmlPci> children;
};
struct NcclXmlCpu {
  int numa = -1;
  std::string affinity;  // the kernel's mask
  std::string arch;      // "x86_64", "arm64"
  std::string vendor;    // "GenuineIntel", "AuthenticAMD"
  int family = -1, model = -1;
  std::vector<NcclXmlPci> children;
};

// The file. `version`: 1 is NCCL's, 2 RCCL's; each refuses the other's. No XML declaration and no comment: NCCL
// reads neither in every place. A byte that XML forbids in an attribute is escaped.
std::string FormatNcclXml(const std::vector<NcclXmlCpu>& cpus, int version);

// PIX: one switch; PXB: several; PHB: the same <cpu>; SYS: another.
topology::PciDistance Distance(const NcclDevice& a, const NcclDevice& b);

// All NICs at the least distance, as positions in topology.nics.
std::vector<std::size_t> NearestNics(const NcclTopology& topology, const NcclGpu& gpu);

}  // namespace heddle::formats
