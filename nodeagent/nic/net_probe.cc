#include "nodeagent/nic/net_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {
namespace {

using topology::LinkState;

constexpr std::string_view kClass = "sys/class/net";
constexpr std::size_t kMaxNetdevs = 256;
constexpr std::size_t kMaxSlaves = 16;

std::string Line(const base::FileTree& files, const std::string& path) {
  const auto text = files.Read(path);
  return text ? formats::Printable(*text, 512) : std::string();
}

int Int(const base::FileTree& files, const std::string& path) {
  return formats::Number<int>(Line(files, path)).value_or(0);
}

std::string LastPart(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// The PCI function that an interface stands on. For virtio that is one level up: device → ../../virtio2,
// whose own place is .../0000:00:03.0/virtio2, as the interface's link tells.
void ReadDevice(const base::FileTree& files, const std::string& base, Netdev& netdev) {
  const auto device = files.ReadLink(base + "/device");
  netdev.hardware = device.has_value();
  if (!device) return;
  if (const std::string last = LastPart(*device); IsPciAddress(last)) {
    netdev.pci = last;
    return;
  }
  std::string way = files.ReadLink(base).value_or("");
  while (!way.empty() && netdev.pci.empty()) {
    if (const std::string last = LastPart(way); IsPciAddress(last)) netdev.pci = last;
    const std::size_t slash = way.find_last_of('/');
    way.resize(slash == std::string::npos ? 0 : slash);
  }
}

LinkState StateOf(std::string_view operstate) {
  if (operstate == "up") return LinkState::kActive;
  return operstate == "down" || operstate == "lowerlayerdown" ? LinkState::kDown : LinkState::kUnknown;
}

Netdev ReadNetdev(const base::FileTree& files, const std::string& name, std::vector<std::string>& problems) {
  const std::string base = fmt::format("{}/{}", kClass, name);
  Netdev netdev;
  netdev.name = formats::Printable(name, 64);
  ReadDevice(files, base, netdev);
  const std::string slave_line = Line(files, base + "/bonding/slaves");
  std::size_t beyond = 0;
  for (formats::Scanner scan(slave_line); !scan.AtEnd();) {
    std::string slave(scan.Word());
    if (netdev.slaves.size() < kMaxSlaves)
      netdev.slaves.push_back(std::move(slave));
    else
      ++beyond;
  }
  if (beyond > 0)
    problems.push_back(
        fmt::format("{} slaves of {} are left out: {} are looked at", beyond, netdev.name, kMaxSlaves));
  if (!netdev.hardware && netdev.slaves.empty()) return netdev;
  if (const auto master = files.ReadLink(base + "/master"))
    netdev.bond = formats::Printable(LastPart(*master), 64);
  const auto state = files.Read(base + "/operstate");
  netdev.state = StateOf(state ? formats::Printable(*state, 512) : std::string());
  netdev.state_unread = !state && state.error().code != base::Code::kNotFound;
  const auto speed = files.Read(base + "/speed");  // Mb/s; -1, or no value, without a carrier
  const int mbps = speed ? formats::Number<int>(formats::Printable(*speed, 512)).value_or(0) : 0;
  netdev.gbps = std::clamp(mbps, 0, 100'000'000) / 1000;
  netdev.rate_unread =
      !speed && speed.error().code != base::Code::kNotFound && speed.error().code != base::Code::kInvalid;
  netdev.mtu = std::clamp(Int(files, base + "/mtu"), 0, 65'536);
  netdev.type = Int(files, base + "/type");
  return netdev;
}

}  // namespace

NetReadings ProbeNet(const base::FileTree& files) {
  NetReadings readings;
  const auto names = files.List(kClass);
  if (!names) {
    if (names.error().code != base::Code::kNotFound) readings.problems.push_back(names.error().message);
    return readings;
  }
  std::size_t beyond = 0;
  for (const std::string& name : *names) {
    // A node has hundreds of pods' interfaces: how many of hardware are left out takes a look at each.
    if (readings.netdevs.size() >= kMaxNetdevs) {
      const std::string base = fmt::format("{}/{}", kClass, name);
      beyond += files.ReadLink(base + "/device") || files.Read(base + "/bonding/slaves") ? 1 : 0;
      continue;
    }
    Netdev netdev = ReadNetdev(files, name, readings.problems);
    if (!netdev.hardware && netdev.slaves.empty()) continue;
    const bool virtual_function =
        files.ReadLink(fmt::format("{}/{}/device/physfn", kClass, name)).has_value();
    if (auto reason = WhyExcluded({netdev.name, virtual_function, false, true})) {
      readings.excluded.push_back({netdev.name, netdev.pci, *std::move(reason)});
    } else {
      readings.netdevs.emplace(netdev.name, std::move(netdev));
    }
  }
  if (beyond > 0)
    readings.problems.push_back(
        fmt::format("{} interfaces are left out: {} are looked at", beyond, kMaxNetdevs));
  return readings;
}

}  // namespace heddle::nodeagent
