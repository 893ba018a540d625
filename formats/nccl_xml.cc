#include "formats/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <pugixml.hpp>

#include "base/json_bounds.h"
#include "base/lower_case.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using topology::PciDistance;

// NCCL itself holds at most 640 nodes (src/graph/xml.h, MAX_NODES at 2.18); depth is switches in a row.
constexpr int kMaxDevices = 4096;
constexpr int kMaxDepth = 32;
constexpr std::uint64_t kMaxSockets = 0xffff;
constexpr int kMaxLinks = 256;  // of one GPU: as the schema of NodeTopology has it

topology::Fact<int> IntAttribute(const pugi::xml_node& node, const char* name) {
  const auto value = Number<int>(node.attribute(name).value());
  return value && *value >= 0 ? topology::Fact<int>(*value) : topology::Fact<int>();
}

std::uint32_t HexAttribute(const pugi::xml_node& node, const char* name) {
  std::string_view text = node.attribute(name).value();
  if (text.starts_with("0x")) text.remove_prefix(2);
  return Number<std::uint32_t>(text, 16).value_or(0);
}

// Where NCCL could not read a class it writes the first of its three bytes alone: "0x03", "0x02".
std::uint32_t ClassOf(const pugi::xml_node& pci) {
  const std::uint32_t code = HexAttribute(pci, "class");
  return std::string_view(pci.attribute("class").value()).size() <= 4 ? code << 16 : code;
}

bool IsElement(const pugi::xml_node& node, std::string_view name) {
  return node.type() == pugi::node_element && name == node.name();
}

// As pugixml says where: -1 = it does not know.
int LineOfByte(std::string_view xml, std::ptrdiff_t byte) {
  return base::LineOf(xml, byte < 0 ? 0 : std::size_t(byte));
}

class Reader {
 public:
  explicit Reader(std::string_view xml) : xml_(xml) {}
  base::Result<NcclTopology> Read(const pugi::xml_node& system) {
    for (const pugi::xml_node& cpu : system.children("cpu")) {
      NcclDevice above;
      above.numa = IntAttribute(cpu, "numaid");
      above.root = roots_++;
      TRY(Children(cpu, above));
    }
    Sort();
    return std::move(topology_);
  }

 private:
  base::Status Children(const pugi::xml_node& parent, const NcclDevice& above) {
    for (const pugi::xml_node& child : parent.children("pci")) TRY(Pci(child, above));
    return {};
  }

  base::Status Pci(const pugi::xml_node& pci, const NcclDevice& above) {
    if (++devices_ > kMaxDevices || above.switches.size() > kMaxDepth) {
      return base::Fail(base::Code::kTooLarge,
                        fmt::format("line {}: more than {} PCI devices or {} switches in a row",
                                    LineOfByte(xml_, pci.offset_debug()), kMaxDevices, kMaxDepth));
    }
    NcclDevice device = above;
    device.pci = base::LowerCase(Printable(pci.attribute("busid").value(), 32));
    device.class_code = ClassOf(pci);
    device.vendor = std::uint16_t(std::min(0xffffU, HexAttribute(pci, "vendor")));
    device.device = std::uint16_t(std::min(0xffffU, HexAttribute(pci, "device")));
    if (device.pci.empty()) {
      return base::Fail(base::Code::kInvalid, fmt::format("line {}: this <pci> has no busid",
                                                          LineOfByte(xml_, pci.offset_debug())));
    }
    switch (device.class_code >> 16) {
      case 0x03:
      case 0x12:
        AddGpu(pci, device);
        return {};
      case 0x02:
        AddNics(pci, device);
        return {};
      default:
        break;
    }
    device.switches.push_back(switches_++);
    return Children(pci, device);
  }

  void AddGpu(const pugi::xml_node& pci, const NcclDevice& device) {
    NcclGpu gpu;
    static_cast<NcclDevice&>(gpu) = device;
    const pugi::xml_node element = pci.child("gpu");
    gpu.index = IntAttribute(element, "dev");
    gpu.sm = std::min(1000, IntAttribute(element, "sm").value_or(0));
    for (const pugi::xml_node& link : element.children()) {
      if (!IsElement(link, "nvlink") && !IsElement(link, "xgmi")) continue;
      gpu.link_targets.push_back(base::LowerCase(Printable(link.attribute("target").value(), 32)));
      gpu.link_counts.push_back(std::clamp(IntAttribute(link, "count").value_or(1), 0, kMaxLinks));
      gpu.links = std::min(kMaxLinks, gpu.links + gpu.link_counts.back());
      gpu.xgmi = gpu.xgmi || IsElement(link, "xgmi");
    }
    topology_.gpus.push_back(std::move(gpu));
  }

  // Files written by hand for a machine type have no <nic>: then the function itself is the NIC.
  void AddNics(const pugi::xml_node& pci, const NcclDevice& device) {
    NcclNic nic;
    static_cast<NcclDevice&>(nic) = device;
    const std::size_t before = topology_.nics.size();
    for (const pugi::xml_node& net : pci.child("nic").children("net")) {
      nic.name = Printable(net.attribute("name").value());
      nic.gbps = IntAttribute(net, "speed").value_or(0) / 1000;  // Mb/s in the file
      nic.port = IntAttribute(net, "port").value_or(0);
      nic.rail = IntAttribute(net, "rail");
      nic.plane = IntAttribute(net, "plane");
      // A real GUID has a vendor's prefix; sockets have their number there, and hand-made files nothing.
      std::string_view guid = net.attribute("guid").value();
      if (guid.starts_with("0x")) guid.remove_prefix(2);
      nic.rdma = Number<std::uint64_t>(guid, 16).value_or(kMaxSockets + 1) > kMaxSockets;
      topology_.nics.push_back(nic);
    }
    if (topology_.nics.size() == before) topology_.nics.push_back(std::move(nic));
  }

  void Sort() {
    auto& gpus = topology_.gpus;
    const bool indexed =
        std::all_of(gpus.begin(), gpus.end(), [](const NcclGpu& gpu) { return gpu.index.known(); });
    std::stable_sort(gpus.begin(), gpus.end(), [indexed](const NcclGpu& a, const NcclGpu& b) {
      return indexed && *a.index != *b.index ? *a.index < *b.index : a.pci < b.pci;
    });
    std::stable_sort(topology_.nics.begin(), topology_.nics.end(),
                     [](const NcclNic& a, const NcclNic& b) { return a.pci < b.pci; });
  }

  std::string_view xml_;
  NcclTopology topology_;
  int roots_ = 0;
  int switches_ = 0;
  int devices_ = 0;
};

// Written by hand rather than by pugixml: NCCL's reader is a small one and takes `"/>`, not `" />`.
class Writer {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  void Open(std::string_view name, const Attributes& attributes, bool has_children) {
    text_ += std::string(2 * depth_, ' ');
    text_ += '<';
    text_ += name;
    for (const auto& [key, value] : attributes) text_ += fmt::format(" {}=\"{}\"", key, Escaped(value));
    text_ += has_children ? ">\n" : "/>\n";
    depth_ += has_children ? 1 : 0;
  }
  void Close(std::string_view name) {
    --depth_;
    text_ += fmt::format("{}</{}>\n", std::string(2 * depth_, ' '), name);
  }

  void Cpu(const NcclXmlCpu& cpu) {
    Attributes attributes{{"numaid", fmt::format("{}", cpu.numa)}};
    if (!cpu.affinity.empty()) attributes.emplace_back("affinity", cpu.affinity);
    if (!cpu.arch.empty()) attributes.emplace_back("arch", cpu.arch);
    if (!cpu.vendor.empty()) attributes.emplace_back("vendor", cpu.vendor);
    if (cpu.family >= 0) attributes.emplace_back("familyid", fmt::format("{}", cpu.family));
    if (cpu.model >= 0) attributes.emplace_back("modelid", fmt::format("{}", cpu.model));
    Open("cpu", attributes, !cpu.children.empty());
    for (const NcclXmlPci& pci : cpu.children) Pci(pci);
    if (!cpu.children.empty()) Close("cpu");
  }

  std::string Text() && { return std::move(text_); }

 private:
  static std::string Escaped(std::string_view value) {
    std::string text;
    for (const char c : value) {
      switch (c) {
        case '&':
          text += "&amp;";
          break;
        case '<':
          text += "&lt;";
          break;
        case '"':
          text += "&quot;";
          break;
        default:
          text += c;
      }
    }
    return text;
  }

  // As Linux 5.7 and later print it: the strings that NCCL knows.
  static std::string Speed(int speed) {
    if (speed == 0) return {};
    return fmt::format("{}.{} GT/s PCIe", speed / 1000, speed % 1000 / 100);
  }

  void Pci(const NcclXmlPci& pci) {
    Attributes attributes{{"busid", pci.busid}, {"class", fmt::format("0x{:06x}", pci.class_code)}};
    if (pci.vendor != 0) {
      attributes.emplace_back("vendor", fmt::format("0x{:04x}", pci.vendor));
      attributes.emplace_back("device", fmt::format("0x{:04x}", pci.device));
    }
    // NCCL wants both of every device; empty and 0 are what it writes itself where a VM hides them.
    attributes.emplace_back("link_speed", Speed(pci.link_speed));
    attributes.emplace_back("link_width", fmt::format("{}", pci.link_width));
    const bool has_children = pci.gpu || !pci.nets.empty() || !pci.children.empty();
    Open("pci", attributes, has_children);
    if (pci.gpu) Gpu(*pci.gpu);
    if (!pci.nets.empty()) {
      Open("nic", {}, true);
      for (const NcclXmlNet& net : pci.nets) Net(net);
      Close("nic");
    }
    for (const NcclXmlPci& child : pci.children) Pci(child);
    if (has_children) Close("pci");
  }

  void Gpu(const NcclXmlGpu& gpu) {
    Attributes attributes{{"dev", fmt::format("{}", gpu.dev)}};
    if (gpu.sm > 0) attributes.emplace_back("sm", fmt::format("{}", gpu.sm));
    Open("gpu", attributes, !gpu.links.empty());
    for (const NcclXmlLink& link : gpu.links) {
      Open(gpu.xgmi ? "xgmi" : "nvlink",
           {{"target", link.target},
            {"count", fmt::format("{}", link.count)},
            {"tclass", fmt::format("0x{:06x}", link.target_class)}},
           false);
    }
    if (!gpu.links.empty()) Close("gpu");
  }

  void Net(const NcclXmlNet& net) {
    Attributes attributes{{"name", net.name}, {"dev", fmt::format("{}", net.dev)}};
    if (net.speed > 0) attributes.emplace_back("speed", fmt::format("{}", net.speed));
    if (net.port > 0) attributes.emplace_back("port", fmt::format("{}", net.port));
    if (!net.guid.empty()) attributes.emplace_back("guid", net.guid);
    if (net.gdr) attributes.emplace_back("gdr", "1");
    if (net.rail) attributes.emplace_back("rail", fmt::format("{}", *net.rail));
    if (net.plane) attributes.emplace_back("plane", fmt::format("{}", *net.plane));
    Open("net", attributes, false);
  }

  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace

base::Result<NcclTopology> ParseNcclXml(std::string_view xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  if (!parsed) {
    return base::Fail(
        base::Code::kInvalid,
        fmt::format("line {}: this is no XML: {}", LineOfByte(xml, parsed.offset), parsed.description()));
  }
  const pugi::xml_node system = document.child("system");
  if (!system) {
    const pugi::xml_node root = document.document_element();
    return base::Fail(base::Code::kInvalid,
                      fmt::format("line {}: not an NCCL topology: <{}> stands where <system> should",
                                  LineOfByte(xml, root.offset_debug()), Printable(root.name(), 60)));
  }
  return Reader(xml).Read(system);
}

std::string FormatNcclXml(const std::vector<NcclXmlCpu>& cpus, int version) {
  Writer writer;
  writer.Open("system", {{"version", fmt::format("{}", version)}}, !cpus.empty());
  for (const NcclXmlCpu& cpu : cpus) writer.Cpu(cpu);
  if (!cpus.empty()) writer.Close("system");
  return std::move(writer).Text();
}

PciDistance Distance(const NcclDevice& a, const NcclDevice& b) {
  if (a.root != b.root) return PciDistance::kSys;
  const auto [ours, theirs] =
      std::mismatch(a.switches.begin(), a.switches.end(), b.switches.begin(), b.switches.end());
  if (ours == a.switches.begin()) return PciDistance::kPhb;
  return ours == a.switches.end() && theirs == b.switches.end() ? PciDistance::kPix : PciDistance::kPxb;
}

std::vector<std::size_t> NearestNics(const NcclTopology& topology, const NcclGpu& gpu) {
  std::vector<std::size_t> nearest;
  PciDistance best = PciDistance::kSys;
  for (std::size_t i = 0; i < topology.nics.size(); ++i) {
    const PciDistance distance = Distance(gpu, topology.nics[i]);
    if (nearest.empty() || distance < best) {
      nearest.clear();
      best = distance;
    }
    if (distance == best) nearest.push_back(i);
  }
  return nearest;
}

}  // namespace heddle::formats
