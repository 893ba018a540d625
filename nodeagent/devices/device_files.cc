#include "nodeagent/devices/device_files.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "formats/printable.h"
#include "nodeagent/nic/rdma_probe.h"
#include "nodeagent/nic/virtual_functions.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kVerbs = "sys/class/infiniband_verbs";

// "uverbs12": it becomes a path on the host.
bool IsVerbs(std::string_view name) {
  constexpr std::string_view kPrefix = "uverbs";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() && name.size() <= kPrefix.size() + 4 &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

void ReadAddresses(const base::FileTree& files, const topology::Nic& nic, DeviceFiles& found) {
  if (nic.transport != topology::Transport::kRoce) return;
  for (const topology::NicPort& port : nic.ports) {
    if (!port.gid_index) continue;
    const auto gid = base::ReadTrimmed(files, fmt::format("sys/class/infiniband/{}/ports/{}/gids/{}",
                                                          nic.name, port.number, *port.gid_index));
    if (!gid || gid->empty() || HoldsIpv4(*gid)) continue;
    (HoldsNoAddress(*gid) ? found.unnumbered : found.without_ipv4).emplace(nic.name, port.number);
  }
}

void ReadFunctions(const base::FileTree& files, const topology::Node& node, const topology::Nic& nic,
                   DeviceFiles& found) {
  const bool verbs =
      nic.transport == topology::Transport::kInfiniBand || nic.transport == topology::Transport::kRoce;
  if (!verbs || nic.role != topology::NicRole::kCompute) return;
  VirtualFunctions functions = ReadVirtualFunctions(files, node, nic);
  if (functions.hidden) found.hidden_functions.insert(nic.name);
  if (!functions.devices.empty()) found.functions.emplace(nic.name, std::move(functions.devices));
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
    ReadAddresses(files, nic, found);
    ReadFunctions(files, node, nic, found);
  }
  return found;
}

}  // namespace heddle::nodeagent
