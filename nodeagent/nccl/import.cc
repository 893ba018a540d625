#include "nodeagent/nccl/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

using formats::NcclDevice;
using formats::NcclGpu;
using formats::NcclNic;
using formats::NcclTopology;

constexpr std::size_t kMaxGpus = 64;   // as many as nvml.yaml may list
constexpr std::size_t kMaxNics = 256;  // NodeTopology takes half of it and says what it left out
constexpr int kMaxNuma = 1023;
constexpr int kMaxGbps = 100'000;
constexpr int kMaxPort = 255;

// Where the file has it. It writes one element for a switch, and Distance counts the two ports that a way
// through a switch has: the one towards the host, and one for each thing below.
void Move(const NcclDevice& from, PciDevice& device) {
  device.root = fmt::format("cpu{}", from.root);
  device.bridges.clear();
  for (std::size_t i = 0; i < from.switches.size(); ++i) {
    device.bridges.push_back(fmt::format("switch{}", from.switches[i]));
    const bool last = i + 1 == from.switches.size();
    device.bridges.push_back(last ? fmt::format("to {}", device.address)
                                  : fmt::format("to switch{}", from.switches[i + 1]));
  }
  if (from.numa && *from.numa <= kMaxNuma) device.numa = from.numa;
}

// The kernels that NCCL's makers number: sm 90 is Hopper and has NVLink 4.
int GenerationOf(const NcclGpu& gpu) {
  if (gpu.xgmi || gpu.sm == 0) return 0;
  return gpu.sm >= 100 ? 5 : gpu.sm >= 90 ? 4 : gpu.sm >= 80 ? 3 : gpu.sm >= 70 ? 2 : 1;
}

PciDevice DeviceOf(const NcclDevice& from, std::uint16_t vendor) {
  PciDevice device;
  device.address = from.pci;
  device.class_code = from.class_code;
  device.vendor = from.vendor != 0 ? from.vendor : vendor;
  device.device = from.device;
  Move(from, device);
  return device;
}

GpuReading GpuOf(const NcclGpu& from, int index, const PciDevice& device) {
  GpuReading gpu;
  gpu.index = index;
  gpu.name = fmt::format("{} GPU", device.vendor == kVendorAmd ? "AMD" : "NVIDIA");
  if (device.device != 0) gpu.name += fmt::format(" {:04x}", device.device);
  gpu.pci = from.pci;
  gpu.xgmi = from.xgmi;
  gpu.nvlink_generation = GenerationOf(from);
  for (std::size_t i = 0; i < from.link_targets.size(); ++i) {
    for (int n = 0; n < from.link_counts[i] && int(gpu.nvlinks.size()) < from.links; ++n) {
      gpu.nvlinks.push_back({int(gpu.nvlinks.size()), true, LinkEnd::kUnknown, from.link_targets[i], 0});
    }
  }
  return gpu;
}

// The links that end at no GPU of the file end at a switch.
void SettleLinkEnds(std::vector<GpuReading>& gpus) {
  std::set<std::string> known;
  for (const GpuReading& gpu : gpus) known.insert(gpu.pci);
  for (GpuReading& gpu : gpus) {
    for (NvlinkReading& link : gpu.nvlinks)
      link.end = known.contains(link.remote_pci) ? LinkEnd::kGpu : LinkEnd::kSwitch;
  }
}

topology::Transport TransportOf(const NcclNic& nic) {
  if (nic.vendor == kVendorAmazon) return topology::Transport::kEfa;
  return nic.class_code >> 8 == 0x0207 ? topology::Transport::kInfiniBand : topology::Transport::kRoce;
}

void AddNic(const NcclNic& nic, std::size_t number, Readings& readings) {
  const std::string name = nic.name.empty() ? fmt::format("nic{}", number) : nic.name;
  readings.pci.devices.emplace(nic.pci, DeviceOf(nic, 0));
  const int port = std::clamp(nic.port, 1, kMaxPort);
  if (!nic.rdma) {
    Netdev netdev;
    netdev.name = name;
    netdev.pci = nic.pci;
    netdev.hardware = true;
    netdev.type = 1;
    readings.net.netdevs.emplace(name, std::move(netdev));
    return;
  }
  auto& devices = readings.rdma.devices;
  auto found =
      std::find_if(devices.begin(), devices.end(), [&](const RdmaDevice& one) { return one.name == name; });
  if (found == devices.end()) {
    found = devices.insert(devices.end(), RdmaDevice());
    found->name = name;
    found->pci = nic.pci;
    found->transport = TransportOf(nic);
    found->rail = nic.rail;
  }
  const bool doubled = std::any_of(found->ports.begin(), found->ports.end(),
                                   [port](const RdmaPort& one) { return one.number == port; });
  if (doubled) return;
  found->ports.emplace_back();
  found->ports.back().number = port;
  found->ports.back().rate_gbps = std::clamp(nic.gbps, 0, kMaxGbps);
  found->ports.back().plane = nic.plane;
}

// The file's machine, whatever this one is: to see what a file says before it is put on a node.
void Replace(const SuppliedTopology& supplied, Readings& readings) {
  const NcclTopology& file = supplied.topology;
  Readings alone;
  alone.identity = readings.identity;
  if (!supplied.node.empty()) alone.identity.node = supplied.node;
  alone.file_alone = true;
  alone.storage = readings.storage;
  std::set<int> numa;
  const bool indexed =
      std::all_of(file.gpus.begin(), file.gpus.end(), [](const NcclGpu& gpu) { return gpu.index.known(); });
  std::set<int> taken;
  for (std::size_t i = 0; i < std::min(kMaxGpus, file.gpus.size()); ++i) {
    const NcclGpu& gpu = file.gpus[i];
    const PciDevice device = DeviceOf(gpu, gpu.class_code >> 16 == 0x12 ? kVendorAmd : kVendorNvidia);
    const int index = indexed ? *gpu.index : int(i);
    if (!alone.pci.devices.emplace(gpu.pci, device).second || !taken.insert(index).second) {
      alone.gpus.problems.push_back(fmt::format("{}: the GPU at {} has an address or number that another has",
                                                supplied.source, gpu.pci));
      continue;
    }
    alone.gpus.gpus.push_back(GpuOf(gpu, index, device));
    if (device.numa) numa.insert(*device.numa);
  }
  if (file.gpus.size() > kMaxGpus || file.nics.size() > kMaxNics) {
    alone.gpus.problems.push_back(fmt::format("{} has {} GPUs and {} NICs: the first {} and {} are shown",
                                              supplied.source, file.gpus.size(), file.nics.size(), kMaxGpus,
                                              kMaxNics));
  }
  SettleLinkEnds(alone.gpus.gpus);
  for (std::size_t i = 0; i < std::min(kMaxNics, file.nics.size()); ++i) {
    AddNic(file.nics[i], i, alone);
    if (file.nics[i].numa) numa.insert(*file.nics[i].numa);
  }
  alone.locality.numa_nodes = int(numa.size());
  alone.pci.problems.push_back(fmt::format(
      "all of this is what {} says; none of its devices is on the machine that reads it", supplied.source));
  alone.pci.source = supplied.source;
  readings = std::move(alone);
}

void SupplyRdma(const SuppliedTopology& supplied, Readings& readings) {
  for (RdmaDevice& device : readings.rdma.devices) {
    for (const NcclNic& nic : supplied.topology.nics) {
      if (nic.pci != device.pci) continue;
      if (nic.rail) device.rail = nic.rail;
      for (RdmaPort& port : device.ports) {
        if (nic.plane && (nic.port == 0 || nic.port == port.number)) port.plane = nic.plane;
      }
    }
  }
}

std::string Some(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  const std::size_t shown = std::min(names.size(), kShown);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "),
                     shown < names.size() ? fmt::format(" and {} more", names.size() - shown) : "");
}

}  // namespace

base::Result<SuppliedTopology> ReadSuppliedTopology(const base::FileTree& files, const std::string& name,
                                                    const std::string& source) {
  const auto text = files.Read(name);
  if (!text)
    return base::Fail(text.error().code, fmt::format("{} cannot be read ({})", source, text.error().message));
  SuppliedTopology supplied;
  supplied.source = formats::Printable(source, 256);
  ASSIGN_OR_RETURN(supplied.topology, formats::ParseNcclXml(*text), source);
  if (!supplied.topology.gpus.empty() || !supplied.topology.nics.empty()) return supplied;
  return base::Fail(base::Code::kInvalid, fmt::format("{}: it has neither a GPU nor a NIC", source));
}

void Supply(const SuppliedTopology& supplied, Readings& readings) {
  std::vector<const NcclDevice*> devices;
  for (const NcclGpu& gpu : supplied.topology.gpus) devices.push_back(&gpu);
  for (const NcclNic& nic : supplied.topology.nics) devices.push_back(&nic);
  std::set<std::string_view> placed;
  std::vector<std::string> absent;
  for (const NcclDevice* device : devices) {
    if (!placed.insert(device->pci).second) continue;  // ports of one card
    const auto found = readings.pci.devices.find(device->pci);
    // Under a <cpu> of no NUMA node and behind no switch it is nowhere in particular.
    const bool nowhere = !device->numa && device->switches.empty();
    if (found == readings.pci.devices.end())
      absent.push_back(device->pci);
    else if (!nowhere)
      Move(*device, found->second);
  }
  if (absent.size() == placed.size()) {
    if (supplied.alone) return Replace(supplied, readings);
    readings.pci.problems.push_back(
        fmt::format("{} is not used: none of its {} devices is on this machine, so it is the file of another "
                    "machine type",
                    supplied.source, placed.size()));
    return;
  }
  readings.pci.source = supplied.source;
  if (!absent.empty()) {
    readings.pci.problems.push_back(fmt::format("{} has {} devices that the PCI bus does not show: {}",
                                                supplied.source, absent.size(), Some(absent)));
  }
  std::vector<std::string> left;
  for (const auto& [address, device] : readings.pci.devices) {
    if (IsGpu(device) && !placed.contains(address)) left.push_back(address);
  }
  if (!left.empty()) {
    readings.pci.problems.push_back(
        fmt::format("{} does not have {} GPUs of this machine ({}): they stay where "
                    "sysfs shows them",
                    supplied.source, left.size(), Some(left)));
  }
  SupplyRdma(supplied, readings);
}

}  // namespace heddle::nodeagent
