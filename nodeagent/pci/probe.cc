#include "nodeagent/pci/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/pci/driver.h"

namespace heddle::nodeagent {
namespace {

using topology::PciDistance;

constexpr std::string_view kDevices = "sys/bus/pci/devices";
constexpr std::size_t kMaxDevices = 8192;  // an 8-socket server with SR-IOV has about 3000
constexpr std::size_t kMaxProblems = 20;

bool AllHex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<std::uint32_t> ReadHex(const base::FileTree& files, const std::string& path) {
  const auto text = base::ReadTrimmed(files, path);
  if (!text || !text->starts_with("0x")) return std::nullopt;
  return formats::Number<std::uint32_t>(std::string_view(*text).substr(2), 16);
}

topology::Fact<int> ReadNuma(const base::FileTree& files, const std::string& path) {
  const auto text = base::ReadTrimmed(files, path);
  const auto number = text ? formats::Number<int>(*text) : std::nullopt;
  return number && *number >= 0 ? topology::Fact<int>(*number) : topology::Fact<int>();
}

// "../../../devices/pci0000:15/0000:15:01.0/0000:1b:00.0"
bool ReadWay(std::string_view target, PciDevice& device) {
  while (!target.empty()) {
    const std::size_t slash = target.find('/');
    const std::string_view part = target.substr(0, slash);
    target.remove_prefix(slash == std::string_view::npos ? target.size() : slash + 1);
    if (part.starts_with("pci") && part.find(':') != std::string_view::npos) {
      // A host bridge below a bridge is VMD's: what is behind it is a tree of its own.
      device.root = formats::Printable(part, 32);
      device.bridges.clear();
    } else if (IsPciAddress(part)) {
      device.bridges.emplace_back(part);
    }
  }
  if (device.root.empty() || device.bridges.empty() || device.bridges.back() != device.address) return false;
  device.bridges.pop_back();
  return true;
}

// On Grace it is nvgrace-gpu-vfio-pci.
bool IsKeptForVms(const base::FileTree& files, const std::string& base) {
  return DriverOf(files, base).ends_with("vfio-pci");
}

bool ReadDevice(const base::FileTree& files, const std::string& base, PciDevice& device) {
  const auto target = files.ReadLink(base);
  const auto class_code = ReadHex(files, base + "/class");
  const auto vendor = ReadHex(files, base + "/vendor");
  const auto model = ReadHex(files, base + "/device");
  if (!target || !ReadWay(*target, device) || !class_code || !vendor || !model) return false;
  device.class_code = *class_code;
  device.vendor = std::uint16_t(*vendor);
  device.device = std::uint16_t(*model);
  device.numa = ReadNuma(files, base + "/numa_node");
  device.virtual_function = files.ReadLink(base + "/physfn").has_value();
  device.for_vms = IsGpu(device) && IsKeptForVms(files, base);
  return true;
}

// Lanes as PCIe has them. A device that is off the bus answers all ones, which sysfs prints as 63 or 255.
int ReadWidth(const base::FileTree& files, const std::string& path) {
  constexpr std::array<int, 7> kWidths{1, 2, 4, 8, 12, 16, 32};
  const auto text = base::ReadTrimmed(files, path);
  const int width = text ? formats::Number<int>(*text).value_or(0) : 0;
  return std::find(kWidths.begin(), kWidths.end(), width) != kWidths.end() ? width : 0;
}

int ReadSpeed(const base::FileTree& files, const std::string& path) {
  const auto text = base::ReadTrimmed(files, path);
  return text ? ParseLinkSpeed(*text) : 0;
}

bool HasLinkOfInterest(const PciDevice& device) {
  const std::uint32_t kind = device.class_code >> 16;
  return !device.virtual_function && (kind == 0x02 || kind == 0x03 || kind == 0x12);
}

// Four files a device, so only where the answer matters.
void ReadLinks(const base::FileTree& files, PciTree& tree) {
  std::set<std::string> wanted;
  for (const auto& [address, device] : tree.devices) {
    if (!HasLinkOfInterest(device)) continue;
    wanted.insert(address);
    wanted.insert(device.bridges.begin(), device.bridges.end());
  }
  for (const std::string& address : wanted) {
    const auto found = tree.devices.find(address);
    if (found == tree.devices.end()) continue;
    const std::string base = fmt::format("{}/{}", kDevices, address);
    found->second.link = {
        ReadSpeed(files, base + "/current_link_speed"), ReadWidth(files, base + "/current_link_width"),
        ReadSpeed(files, base + "/max_link_speed"), ReadWidth(files, base + "/max_link_width")};
  }
}

// A kernel without PCI, as in some virtual machines: there are other buses, so sysfs is there.
bool HasNoPci(const base::FileTree& files) {
  const auto buses = files.List("sys/bus");
  return buses && !buses->empty() && std::find(buses->begin(), buses->end(), "pci") == buses->end();
}

}  // namespace

bool IsPciAddress(std::string_view text) {
  const std::size_t domain = text.find(':');
  if (domain == std::string_view::npos || domain < 4 || domain > 8 || text.size() != domain + 8) return false;
  return AllHex(text.substr(0, domain)) && AllHex(text.substr(domain + 1, 2)) && text[domain + 3] == ':' &&
         AllHex(text.substr(domain + 4, 2)) && text[domain + 6] == '.' && AllHex(text.substr(domain + 7));
}

const PciDevice* PciTree::Find(std::string_view address) const {
  const auto found = devices.find(address);
  return found == devices.end() ? nullptr : &found->second;
}

PciTree ProbePci(const base::FileTree& files) {
  PciTree tree;
  const auto names = files.List(kDevices);
  if (!names) {
    tree.unread = !HasNoPci(files);
    tree.problems.push_back(fmt::format("the PCI tree cannot be read ({})", names.error().message));
    return tree;
  }
  std::size_t unread = 0, beyond = 0;
  for (const std::string& name : *names) {
    if (!IsPciAddress(name)) continue;
    if (tree.devices.size() >= kMaxDevices) {
      ++beyond;
      continue;
    }
    PciDevice device;
    device.address = name;
    if (ReadDevice(files, fmt::format("{}/{}", kDevices, name), device)) {
      tree.devices.emplace(name, std::move(device));
    } else if (++unread <= kMaxProblems) {
      tree.problems.push_back(fmt::format("PCI device {} cannot be read and is left out", name));
    }
  }
  tree.unread = unread > 0 || beyond > 0;
  if (unread > kMaxProblems)
    tree.problems.push_back(
        fmt::format("{} more PCI devices cannot be read and are left out", unread - kMaxProblems));
  if (beyond > 0)
    tree.problems.push_back(
        fmt::format("{} PCI devices are left out: {} are looked at", beyond, kMaxDevices));
  ReadLinks(files, tree);
  return tree;
}

int ParseLinkSpeed(std::string_view text) {
  const std::size_t unit = text.find(" GT/s");
  if (unit == std::string_view::npos) return 0;
  const std::string_view number = text.substr(0, unit);
  if (number == "2.5") return 2500;
  const auto whole = formats::Number<int>(number.substr(0, number.find('.')));
  constexpr std::array<int, 6> kSpeeds{5, 8, 16, 32, 64, 128};  // GT/s of generations 2 to 7
  return whole && std::find(kSpeeds.begin(), kSpeeds.end(), *whole) != kSpeeds.end() ? *whole * 1000 : 0;
}

bool IsGpu(const PciDevice& device) {
  const std::uint32_t kind = device.class_code >> 8;
  return !device.virtual_function && ((device.vendor == kVendorNvidia && kind == 0x0302) ||
                                      (device.vendor == kVendorAmd && (kind == 0x1200 || kind == 0x0302)));
}

bool IsEfa(const PciDevice& device) {
  return device.vendor == kVendorAmazon && (device.device & 0xfff0) == 0xefa0;
}

bool IsNvSwitch(const PciDevice& device) {
  return device.vendor == kVendorNvidia && device.class_code >> 8 == 0x0680;
}

PciDistance Distance(const PciDevice& a, const PciDevice& b, int numa_nodes) {
  const auto [ours, theirs] =
      std::mismatch(a.bridges.begin(), a.bridges.end(), b.bridges.begin(), b.bridges.end());
  if (a.root == b.root && ours != a.bridges.begin()) {
    const bool one_switch = a.bridges.end() - ours <= 1 && b.bridges.end() - theirs <= 1;
    return one_switch ? PciDistance::kPix : PciDistance::kPxb;
  }
  const bool apart = a.numa && b.numa && *a.numa != *b.numa;
  if (a.root == b.root && !apart) return PciDistance::kPhb;
  const bool together = a.numa && b.numa && *a.numa == *b.numa;
  return together || numa_nodes == 1 ? PciDistance::kNode : PciDistance::kSys;
}

}  // namespace heddle::nodeagent
