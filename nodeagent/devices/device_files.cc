#include "nodeagent/devices/device_files.h"

#include <fmt/format.h>

#include <string_view>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kVerbs = "sys/class/infiniband_verbs";
constexpr std::string_view kMappedIpv4 = "0000:0000:0000:0000:0000:ffff:";  // as sysfs writes a GID

// "uverbs12": it becomes a path on the host.
bool IsVerbs(std::string_view name) {
  constexpr std::string_view kPrefix = "uverbs";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() && name.size() <= kPrefix.size() + 4 &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

}  // namespace

DeviceFiles ReadDeviceFiles(const base::FileTree& files, const topology::Node& node) {
  DeviceFiles found;
  const auto names = files.List(kVerbs);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (!IsVerbs(name)) continue;
    const auto device = base::ReadTrimmed(files, fmt::format("{}/{}/ibdev", kVerbs, name));
    if (device && !device->empty()) found.verbs.emplace(formats::Printable(*device), name);
  }
  found.rdma_cm = files.List("sys/class/misc/rdma_cm").has_value();
  for (const topology::Nic& nic : node.nics) {
    if (nic.transport != topology::Transport::kRoce) continue;
    for (const topology::NicPort& port : nic.ports) {
      if (!port.gid_index) continue;
      const auto gid = base::ReadTrimmed(files, fmt::format("sys/class/infiniband/{}/ports/{}/gids/{}",
                                                            nic.name, port.number, *port.gid_index));
      if (gid && !gid->empty() && !gid->starts_with(kMappedIpv4))
        found.without_ipv4.emplace(nic.name, port.number);
    }
  }
  return found;
}

}  // namespace heddle::nodeagent
