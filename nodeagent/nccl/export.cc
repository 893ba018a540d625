#include "nodeagent/nccl/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "formats/nccl_xml.h"
#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/assembly/nic_assembly.h"

namespace heddle::nodeagent {
namespace {

using formats::NcclXmlCpu;
using formats::NcclXmlPci;

constexpr std::string_view kUnseenSwitch = "fffffff:ffff:ff";  // NCCL's word for a switch that no bus shows
constexpr std::uint32_t kSwitchClass = 0x068000;

std::string Line(const base::FileTree& files, const std::string& path) {
  const auto text = base::ReadTrimmed(files, path);
  return text ? formats::Printable(*text, 512) : std::string();
}

int HexAfter(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return -1;
  return formats::Number<std::uint16_t>(text.substr(at + key.size(), 4), 16).value_or(0xffff);
}

// "cpu:type:x86,ven0000fam0006mod008F:feature:…": the kernel's numbers of the vendors NCCL knows
// (arch/x86/include/asm/processor.h: Intel 0, AMD 2, Centaur 5, Hygon 9, Zhaoxin 10).
void ReadProcessor(const base::FileTree& files, NcclXmlCpu& cpu) {
  const std::string alias = Line(files, "sys/devices/system/cpu/modalias");
  if (alias.starts_with("cpu:type:aarch64")) cpu.arch = "arm64";
  if (!alias.starts_with("cpu:type:x86")) return;
  cpu.arch = "x86_64";
  switch (HexAfter(alias, ",ven")) {
    case 0:
      cpu.vendor = "GenuineIntel";
      break;
    case 2:
      cpu.vendor = "AuthenticAMD";
      break;
    case 5:
      cpu.vendor = "CentaurHauls";
      break;
    case 9:
      cpu.vendor = "HygonGenuine";
      break;
    case 10:
      cpu.vendor = "  Shanghai  ";
      break;
    default:
      cpu.vendor = "unknown";
  }
  cpu.family = HexAfter(alias, "fam");
  cpu.model = HexAfter(alias, "mod");
}

// "0x506b4b0300c3b4a2" as NCCL prints it: verbs hold GUIDs in network order, and NCCL writes them as a number
// of the host.
std::string NetworkOrder(std::string_view guid) {
  if (guid.size() != 18) return {};
  std::string swapped = "0x";
  for (std::size_t i = 16; i >= 2; i -= 2) swapped += guid.substr(i, 2);
  return swapped;
}

int Least(int a, int b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

class Export {
 public:
  Export(const base::FileTree& files, const Readings& readings, const Observation& seen)
      : files_(files), readings_(readings), seen_(seen) {
    ReadProcessor(files_, processor_);
    gdr_ = files_.List("sys/module/nvidia_peermem").has_value() ||
           files_.List("sys/module/nv_peer_mem").has_value();
    for (const topology::Nic& nic : seen.node.nics) {
      for (const topology::NicPort& port : nic.ports) planes_.insert(port.plane);
    }
  }

  std::string Run() {
    // Those that the driver does not list have a place, too; NCCL drops what no rank uses.
    for (const auto& [address, device] : readings_.pci.devices) {
      if (IsGpu(device)) (void)Place(device);
    }
    for (const GpuReading& gpu : readings_.gpus.gpus) {
      const PciDevice* device = readings_.pci.Find(gpu.pci);
      if (device != nullptr) Place(*device).gpu = GpuOf(gpu, *device);
    }
    int number = 0;
    for (const RdmaDevice& rdma : readings_.rdma.devices) {
      const topology::Nic* nic = seen_.node.FindNic(rdma.name);
      const PciDevice* device = readings_.pci.Find(rdma.pci);
      if (device == nullptr || nic == nullptr || nic->role != topology::NicRole::kCompute) continue;
      for (const RdmaPort& port : rdma.ports)
        Place(*device).nets.push_back(NetOf(rdma, port, *nic, number++));
    }
    std::vector<NcclXmlCpu> cpus;
    for (auto& [numa, cpu] : cpus_) {
      SortByAddress(cpu.children);
      cpus.push_back(std::move(cpu));
    }
    return formats::FormatNcclXml(cpus, amd_ ? 2 : 1);
  }

 private:
  formats::NcclXmlGpu GpuOf(const GpuReading& gpu, const PciDevice& device) {
    formats::NcclXmlGpu element;
    element.dev = gpu.index;
    element.xgmi = device.vendor == kVendorAmd;
    amd_ = amd_ || element.xgmi;
    std::map<std::string, int> counts;
    for (const NvlinkReading& link : gpu.nvlinks) {
      if (!link.active || (link.remote_pci.empty() && link.end == LinkEnd::kGpu)) continue;
      ++counts[link.remote_pci.empty() ? std::string(kUnseenSwitch) : link.remote_pci];
    }
    for (const auto& [target, count] : counts) {
      const PciDevice* other = readings_.pci.Find(target);
      element.links.push_back({target, other == nullptr ? kSwitchClass : other->class_code, count});
    }
    return element;
  }

  formats::NcclXmlNet NetOf(const RdmaDevice& rdma, const RdmaPort& port, const topology::Nic& nic,
                            int number) const {
    formats::NcclXmlNet net;
    net.name = rdma.name;
    net.dev = number;
    // Its speed while it is down is not what it will have: NCCL asks when it runs.
    if (port.state == topology::LinkState::kActive) net.speed = port.rate_gbps * 1000;
    net.port = port.number;
    net.guid = NetworkOrder(rdma.system_guid);
    net.gdr = gdr_ && rdma.transport != topology::Transport::kEfa;
    net.rail = nic.rail;
    const auto same = std::find_if(nic.ports.begin(), nic.ports.end(),
                                   [&](const auto& one) { return one.number == port.number; });
    // Connections between planes are forbidden, so a plane is told only where there are several.
    if (planes_.size() > 1 && same != nic.ports.end()) net.plane = same->plane;
    return net;
  }

  NcclXmlCpu& CpuOf(const PciDevice& device) {
    const int numa = NumaOf(readings_, device.address).value_or(-1);
    const auto [found, fresh] = cpus_.try_emplace(numa, processor_);
    if (fresh) {
      found->second.numa = numa;
      if (numa >= 0)
        found->second.affinity = Line(files_, fmt::format("sys/devices/system/node/node{}/cpumap", numa));
    }
    return found->second;
  }

  // The device's element, with the switches above it.
  NcclXmlPci& Place(const PciDevice& device) {
    std::vector<const PciDevice*> way{&device};
    for (std::size_t i = device.bridges.size(); i >= 2; i -= 2) {
      const PciDevice* bridge = readings_.pci.Find(device.bridges[i - 2]);
      if (bridge != nullptr) way.push_back(bridge);
    }
    // A switch stays under the <cpu> of the first device behind it, whatever the others say of themselves.
    const auto [cpu, fresh] = cpu_of_.try_emplace(way.back()->address, nullptr);
    if (fresh) cpu->second = &CpuOf(device);
    std::vector<NcclXmlPci>* children = &cpu->second->children;
    NcclXmlPci* element = nullptr;
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
      const auto found = std::find_if(children->begin(), children->end(),
                                      [&](const NcclXmlPci& pci) { return pci.busid == (*step)->address; });
      element = found != children->end() ? &*found : &children->emplace_back(ElementOf(**step));
      children = &element->children;
    }
    return *element;
  }

  // The link has the least of what its two ends can; of the lanes, those that came up.
  NcclXmlPci ElementOf(const PciDevice& device) const {
    NcclXmlPci pci;
    pci.busid = device.address;
    pci.class_code = device.class_code;
    pci.vendor = device.vendor;
    pci.device = device.device;
    const PciDevice* port = device.bridges.empty() ? nullptr : readings_.pci.Find(device.bridges.back());
    const PciLink above = port == nullptr ? PciLink() : port->link;
    pci.link_speed = Least(device.link.max_speed, above.max_speed);
    pci.link_width = Least(device.link.width, Least(device.link.max_width, above.max_width));
    return pci;
  }

  static void SortByAddress(std::vector<NcclXmlPci>& children) {
    std::sort(children.begin(), children.end(),
              [](const NcclXmlPci& a, const NcclXmlPci& b) { return a.busid < b.busid; });
    for (NcclXmlPci& child : children) SortByAddress(child.children);
  }

  const base::FileTree& files_;
  const Readings& readings_;
  const Observation& seen_;
  NcclXmlCpu processor_;
  bool gdr_ = false;
  bool amd_ = false;
  std::set<int> planes_;
  std::map<int, NcclXmlCpu> cpus_;             // by NUMA node; -1: not known
  std::map<std::string, NcclXmlCpu*> cpu_of_;  // of the topmost element on a way
};

}  // namespace

std::string NcclTopologyOf(const base::FileTree& files, const Readings& readings, const Observation& seen) {
  return Export(files, readings, seen).Run();
}

}  // namespace heddle::nodeagent
