#include "nodeagent/nic/rdma_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/pci/driver.h"
#include "nodeagent/pci/probe.h"
#include "nodeagent/pci/slot.h"

namespace heddle::nodeagent {
namespace {

using topology::LinkState;
using topology::Transport;

constexpr std::string_view kClass = "sys/class/infiniband";
constexpr std::size_t kMaxDevices = 512;  // 32 EFA, or 8 NICs with some dozens of VFs each
constexpr std::size_t kMaxPorts = 32;
constexpr int kMaxGids = 256;  // the largest tables, ConnectX's
constexpr int kMaxGbps = 100'000;

std::string Line(const base::FileTree& files, const std::string& path) {
  const auto text = files.Read(path);
  return text ? formats::Printable(*text) : std::string();
}

// As Line; also whether the file is there and gives no answer.
std::string Line(const base::FileTree& files, const std::string& path, bool& unread) {
  const auto text = files.Read(path);
  unread = !text && text.error().code != base::Code::kNotFound;
  return text ? formats::Printable(*text) : std::string();
}

// "506b:4b03:00c3:b4a2" → "0x506b4b0300c3b4a2"
std::string ParseGuid(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ':') digits += c;
  }
  const bool good = digits.size() == 16 &&
                    digits.find_first_not_of("0123456789abcdef") == std::string::npos &&
                    digits.find_first_not_of('0') != std::string::npos;
  return good ? "0x" + digits : std::string();
}

std::string PciOf(const base::FileTree& files, const std::string& base) {
  const auto target = files.ReadLink(base + "/device");
  // rxe names its interface there, and up to Linux 5.10 calls the interface's function its own device.
  if (!target || files.Read(base + "/parent")) return {};
  const std::string_view last = std::string_view(*target).substr(target->find_last_of('/') + 1);
  return IsPciAddress(last) ? std::string(last) : std::string();
}

GidType ParseGidType(std::string_view text) {
  if (text == "RoCE v2") return GidType::kRoce2;
  return text == "IB/RoCE v1" ? GidType::kIbOrRoce1 : GidType::kUnknown;
}

// Reading an entry that is not used is an error, and an address that goes leaves a hole. A new one gets the lowest
// free entry, so many holes in a row are the table's end: of hundreds of ports nobody reads all 256 entries each.
std::vector<Gid> ReadGids(const base::FileTree& files, const std::string& port) {
  constexpr int kMostHoles = 32;  // in a row
  std::vector<Gid> gids;
  for (int index = 0, holes = 0; index < kMaxGids && holes < kMostHoles; ++index) {
    std::string netdev = Line(files, fmt::format("{}/gid_attrs/ndevs/{}", port, index));
    if (netdev.empty()) {
      ++holes;
      continue;
    }
    holes = 0;
    const std::string gid = Line(files, fmt::format("{}/gids/{}", port, index));
    gids.push_back({index, ParseGidType(Line(files, fmt::format("{}/gid_attrs/types/{}", port, index))),
                    std::move(netdev), HoldsIpv4(gid), HoldsNoAddress(gid)});
  }
  return gids;
}

std::vector<std::string> NetdevsOf(const std::vector<Gid>& gids) {
  std::vector<std::string> netdevs;
  for (const Gid& gid : gids) {
    if (std::find(netdevs.begin(), netdevs.end(), gid.netdev) == netdevs.end()) netdevs.push_back(gid.netdev);
  }
  return netdevs;
}

RdmaPort ReadPort(const base::FileTree& files, const std::string& base, int number) {
  RdmaPort port;
  port.number = number;
  port.state = ParsePortState(Line(files, base + "/state", port.state_unread));
  port.disabled = Line(files, base + "/phys_state").starts_with("3:");
  port.link_layer = Line(files, base + "/link_layer");
  port.rate_gbps = ParseRateGbps(Line(files, base + "/rate", port.rate_unread));
  std::string_view lid;
  const std::string lid_text = Line(files, base + "/lid");
  lid = lid_text;
  if (lid.starts_with("0x")) port.lid = formats::Number<std::uint16_t>(lid.substr(2), 16).value_or(0);
  if (port.link_layer != "InfiniBand") port.gids = ReadGids(files, base);
  port.netdevs = NetdevsOf(port.gids);
  return port;
}

std::vector<RdmaPort> ReadPorts(const base::FileTree& files, const std::string& base,
                                std::vector<std::string>& problems) {
  std::vector<RdmaPort> ports;
  std::size_t beyond = 0;
  const auto names = files.List(base + "/ports");
  if (!names) return ports;
  for (const std::string& name : *names) {
    const auto number = formats::Number<std::uint8_t>(name);
    if (!number || *number == 0) continue;
    if (ports.size() < kMaxPorts)
      ports.push_back(ReadPort(files, fmt::format("{}/ports/{}", base, name), *number));
    else
      ++beyond;
  }
  if (beyond > 0)
    problems.push_back(fmt::format("{}: {} ports are left out: {} are looked at", formats::Printable(base),
                                   beyond, kMaxPorts));
  std::sort(ports.begin(), ports.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  const auto active = [](const RdmaPort& port) { return port.state == LinkState::kActive; };
  const bool any_active = std::any_of(ports.begin(), ports.end(), active);
  std::erase_if(ports, [any_active](const RdmaPort& port) {
    return IsDownByDesign({port.state, port.disabled, port.link_layer == "InfiniBand", any_active});
  });
  return ports;
}

// EFA is what its driver drives; its ports say "Unspecified" or, on older kernels, nothing at all. The vendor
// decides only where sysfs names no driver.
Transport TransportOf(const RdmaDevice& device, std::string_view vendor) {
  if (device.driver == "efa" || (device.driver.empty() && vendor == "0x1d0f")) return Transport::kEfa;
  const bool ethernet = std::any_of(device.ports.begin(), device.ports.end(),
                                    [](const RdmaPort& port) { return port.link_layer == "Ethernet"; });
  return ethernet ? Transport::kRoce : Transport::kInfiniBand;
}

std::set<std::string> InterfacesOf(const RdmaDevice& device) {
  std::set<std::string> names(device.netdevs.begin(), device.netdevs.end());
  for (const RdmaPort& port : device.ports) names.insert(port.netdevs.begin(), port.netdevs.end());
  return names;
}

// Both would count as NICs of the same cable.
void ExcludeSoftwareBesideHardware(RdmaReadings& readings) {
  std::map<std::string, std::string> served_by;  // interface → device in hardware
  for (const RdmaDevice& device : readings.devices) {
    if (device.pci.empty()) continue;
    for (const std::string& netdev : InterfacesOf(device)) served_by.emplace(netdev, device.name);
  }
  std::erase_if(readings.devices, [&](const RdmaDevice& device) {
    if (!device.pci.empty()) return false;
    NicFacts facts{device.name};
    for (const std::string& netdev : InterfacesOf(device)) {
      if (const auto found = served_by.find(netdev); found != served_by.end())
        facts.served_by = found->second;
    }
    auto reason = WhyExcluded(facts);
    if (!reason) return false;
    readings.excluded.push_back({device.name, {}, *std::move(reason), false});
    return true;
  });
}

// Equal for cards of one kind; a board's id tells one with two ports from one with a single port.
std::string ModelOf(const base::FileTree& files, const RdmaDevice& device) {
  std::string model = device.board;
  for (const char* id : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
    model += " " + Line(files, fmt::format("{}/{}/device/{}", kClass, device.name, id));
  return model;
}

// The interface had a carrier since its driver was loaded, by the kernel's own count (from Linux 4.16 on).
bool HadCarrier(const base::FileTree& files, const RdmaDevice& device, const RdmaPort& port) {
  std::set<std::string> netdevs(port.netdevs.begin(), port.netdevs.end());
  if (device.ports.size() == 1) netdevs = InterfacesOf(device);
  for (const std::string& netdev : netdevs) {
    const std::string count = Line(files, fmt::format("sys/class/net/{}/carrier_up_count", netdev));
    if (formats::Number<std::uint64_t>(count).value_or(0) > 0) return true;
  }
  return false;
}

bool AllUp(const std::vector<RdmaDevice>& devices) {
  return std::all_of(devices.begin(), devices.end(), [](const RdmaDevice& device) {
    return std::all_of(device.ports.begin(), device.ports.end(),
                       [](const RdmaPort& port) { return port.state == LinkState::kActive; });
  });
}

// Cards by their PCI slots. The functions of one that a hypervisor passes through, or of one with two connectors, are
// in several slots and have the system GUID in common; other drivers give each function a system GUID of its own.
class Cards {
 public:
  explicit Cards(const std::vector<RdmaDevice>& devices) {
    std::map<std::string, std::string> of_guid;
    for (const RdmaDevice& device : devices) {
      if (device.pci.empty()) continue;
      const std::string slot(SlotOf(device.pci));
      const bool alone = device.system_guid.empty();
      const std::string& card = alone ? slot : of_guid.emplace(device.system_guid, slot).first->second;
      card_of_.emplace(slot, card);
    }
    for (const auto& [slot, card] : card_of_) slots_[card].insert(slot);
  }

  // Card and place; `device` is on the PCI bus.
  void Name(const RdmaDevice& device, int port, CardPort& named) const {
    const std::string slot(SlotOf(device.pci));
    named.card = card_of_.at(slot);
    const auto& slots = slots_.at(named.card);
    named.place = fmt::format("{}{}/{}", std::distance(slots.begin(), slots.find(slot)),
                              device.pci.substr(slot.size()), port);
  }

 private:
  std::map<std::string, std::string> card_of_;          // by slot
  std::map<std::string, std::set<std::string>> slots_;  // by card
};

}  // namespace

bool HoldsIpv4(std::string_view gid) {
  return gid.starts_with("0000:0000:0000:0000:0000:ffff:");
}

bool HoldsNoAddress(std::string_view gid) {
  const bool link_local =
      gid.starts_with("fe8") || gid.starts_with("fe9") || gid.starts_with("fea") || gid.starts_with("feb");
  return link_local || gid.find_first_not_of("0:") == std::string_view::npos;
}

const Gid* RoceGid(const RdmaPort& port, std::string_view netdev) {
  const auto worth = [](const Gid& gid) { return gid.ipv4 ? 2 : gid.unnumbered ? 0 : 1; };
  const Gid* best = nullptr;
  for (const Gid& gid : port.gids) {
    if (gid.type != GidType::kRoce2 || gid.netdev != netdev) continue;
    if (best == nullptr || worth(gid) > worth(*best)) best = &gid;
  }
  return best;
}

int ParseRateGbps(std::string_view text) {
  const std::size_t unit = text.find(" Gb/sec");
  if (unit == std::string_view::npos) return 0;
  const auto whole = formats::Number<int>(text.substr(0, std::min(unit, text.find('.'))));
  return whole && *whole > 0 && *whole <= kMaxGbps ? *whole : 0;
}

LinkState ParsePortState(std::string_view text) {
  if (text.ends_with(": ACTIVE")) return LinkState::kActive;
  return text.ends_with(": DOWN") ? LinkState::kDown : LinkState::kUnknown;
}

bool RdmaProbe::ManagesNvlink(const std::string& base, const RdmaDevice& device) {
  const std::string card = device.name + " " + device.guid;
  if (const auto known = manages_nvlink_.find(card); known != manages_nvlink_.end()) return known->second;
  const auto vpd = files_.Read(base + "/device/vpd");
  if (!vpd) return false;  // asked again: it may be closed to us, or the card be busy
  return manages_nvlink_[card] = vpd->find("SW_MNG") != std::string::npos;
}

// Of a port that is left out, and of its device where none of its ports is left.
void RdmaProbe::SayUncabled(const RdmaDevice& device, const std::vector<const RdmaPort*>& left_out, bool all,
                            RdmaReadings& readings) const {
  for (const RdmaPort* port : left_out) {
    NicFacts facts{device.name};
    facts.uncabled = true;
    facts.uncabled_by = named_.Naming(device.name, port->number);
    const std::string who = all ? device.name : fmt::format("{} port {}", device.name, port->number);
    readings.excluded.push_back({who, device.pci, *WhyExcluded(facts), all && !device.pci.empty()});
    if (all) return;
  }
}

void RdmaProbe::LeaveOutUncabled(RdmaReadings& readings) {
  const Cards cards(readings.devices);
  std::map<std::string, Past> now;
  std::vector<CardPort> ports;
  std::vector<Past*> pasts;
  const bool all_up = AllUp(readings.devices);  // then there is nothing to compare
  for (const RdmaDevice& device : readings.devices) {
    const bool compared = !device.pci.empty();
    const std::string model = all_up || !compared ? std::string() : ModelOf(files_, device);
    for (const RdmaPort& port : device.ports) {
      const std::string key = fmt::format("{} {}/{}", device.name, device.guid, port.number);
      Past& past = now[key] = past_[key];
      past.up = past.up || port.state == LinkState::kActive;
      const bool up = past.up || (port.state == LinkState::kDown && HadCarrier(files_, device, port));
      CardPort& one =
          ports.emplace_back(CardPort{model, {}, {}, port.state, port.state_unread, up, past.left_out});
      const std::string_view pattern = named_.Naming(device.name, port.number);
      one.named = !pattern.empty();
      if (one.named && port.state == LinkState::kActive) {
        readings.problems.push_back(
            fmt::format("{} port {} is up, so it counts, though --uncabled says that it has no cable ({})",
                        device.name, port.number, pattern));
      }
      if (compared) {
        cards.Name(device, port.number, one);
      } else {
        one.model = one.card = one.place = "none " + key;  // in software: like no other
      }
      pasts.push_back(&past);
    }
  }
  const std::vector<bool> uncabled = UncabledByDesign(ports);
  for (std::size_t i = 0; i < pasts.size(); ++i) pasts[i]->left_out = uncabled[i];
  past_ = std::move(now);
  std::size_t next = 0;
  std::set<std::string> without_ports;
  for (RdmaDevice& device : readings.devices) {
    std::vector<RdmaPort> cabled;
    std::vector<const RdmaPort*> left_out;
    for (RdmaPort& port : device.ports) {
      if (uncabled[next++]) {
        left_out.push_back(&port);
      } else {
        cabled.push_back(std::move(port));
      }
    }
    SayUncabled(device, left_out, cabled.empty(), readings);
    if (cabled.empty() && !left_out.empty()) without_ports.insert(device.name);
    device.ports = std::move(cabled);
  }
  std::erase_if(readings.devices,
                [&](const RdmaDevice& device) { return without_ports.contains(device.name); });
}

RdmaReadings RdmaProbe::Read() {
  RdmaReadings readings;
  const auto names = files_.List(kClass);
  if (!names) {
    // No such folder: no RDMA driver is loaded, which is nothing to complain of.
    if (names.error().code != base::Code::kNotFound) readings.problems.push_back(names.error().message);
    return readings;
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    if (readings.devices.size() >= kMaxDevices) {
      readings.problems.push_back(
          fmt::format("{} RDMA devices are left out: {} are looked at", names->size() - i, kMaxDevices));
      break;
    }
    const std::string& name = (*names)[i];
    const std::string base = fmt::format("{}/{}", kClass, name);
    RdmaDevice device;
    device.name = formats::Printable(name, 64);
    device.pci = PciOf(files_, base);
    device.guid = ParseGuid(Line(files_, base + "/node_guid"));
    device.system_guid = ParseGuid(Line(files_, base + "/sys_image_guid"));
    device.board = Line(files_, base + "/board_id");
    device.driver = DriverOf(files_, base + "/device");
    device.ports = ReadPorts(files_, base, readings.problems);
    device.transport = TransportOf(device, Line(files_, base + "/device/vendor"));
    if (auto netdevs = files_.List(base + "/device/net")) device.netdevs = *std::move(netdevs);
    if (const std::string parent = Line(files_, base + "/parent"); !parent.empty()) device.netdevs = {parent};
    const bool virtual_function = files_.ReadLink(base + "/device/physfn").has_value();
    const NicFacts facts{device.name, virtual_function, !virtual_function && ManagesNvlink(base, device),
                         !device.ports.empty()};
    if (auto reason = WhyExcluded(facts)) {
      readings.excluded.push_back({device.name, device.pci, *std::move(reason), facts.has_ports});
    } else {
      readings.devices.push_back(std::move(device));
    }
  }
  ExcludeSoftwareBesideHardware(readings);
  LeaveOutUncabled(readings);
  return readings;
}

}  // namespace heddle::nodeagent
