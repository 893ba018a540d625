#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// "0000:1b:00.0" or "10001:1b:00.0" (VMD domains have five digits): a PCI address as sysfs writes it.
bool IsPciAddress(std::string_view text);

// A PCIe link as the device at its lower end sees it. Speeds in MT/s per lane (2500 = generation 1), widths in
// lanes; 0 = not said, which is also what devices in a VM and ports without a link say.
struct PciLink {
  int speed = 0, width = 0;          // what it trained to; an idle GPU may train down to generation 1
  int max_speed = 0, max_width = 0;  // what this device can, whatever the slot can
  friend bool operator==(const PciLink&, const PciLink&) = default;
};

struct PciDevice {
  std::string address;
  std::uint32_t class_code = 0;  // 0x030200
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  topology::Fact<int> numa;  // sysfs says -1 in VMs and on boards that do not tell: that is kUnknown, not 0
  std::string root;          // "pci0000:15": the host bridge
  std::vector<std::string> bridges;  // from the root port down to the bridge just above
  bool virtual_function = false;
  PciLink link;          // of GPUs, NICs and the bridges above them; the others are not asked
  bool for_vms = false;  // of GPUs: vfio-pci, or a driver made after it, keeps it for virtual machines
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

struct PciTree {
  std::map<std::string, PciDevice, std::less<>> devices;
  std::vector<std::string> problems;  // sentences; a device that cannot be read does not hide the others
  std::string source;                 // the file that supplied the places of devices; empty: sysfs
  bool unread = false;  // there may be more than `devices`: the bus, or a device on it, could not be read

  const PciDevice* Find(std::string_view address) const;
};

// sys/bus/pci/devices: every link there names a device by its way from the host bridge.
PciTree ProbePci(const base::FileTree& files);

inline constexpr std::uint16_t kVendorNvidia = 0x10de;
inline constexpr std::uint16_t kVendorAmd = 0x1002;
inline constexpr std::uint16_t kVendorMellanox = 0x15b3;
inline constexpr std::uint16_t kVendorAmazon = 0x1d0f;

// "16.0 GT/s PCIe", "8 GT/s" in MT/s; 0 for "Unknown" and whatever is no speed of PCIe.
int ParseLinkSpeed(std::string_view text);

// A GPU that computes: 3D controllers of NVIDIA, processing accelerators of AMD. A display adapter is none.
bool IsGpu(const PciDevice& device);
// A function that the EFA driver serves: 1d0f:efa0 to efaf.
bool IsEfa(const PciDevice& device);
bool IsNvSwitch(const PciDevice& device);

// PIX when at most one bridge port stands between each of them and the bridge they share (one switch), PXB
// when more (a cascade), PHB under one host bridge, NODE on one NUMA node, else SYS. With one NUMA node in
// the machine nothing crosses sockets, whatever the devices say of themselves.
topology::PciDistance Distance(const PciDevice& a, const PciDevice& b, int numa_nodes);

}  // namespace heddle::nodeagent
