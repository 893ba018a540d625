#include "nodeagent/nic/virtual_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "formats/printable.h"
#include "nodeagent/nic/silent_nics.h"
#include "nodeagent/pci/driver.h"
#include "nodeagent/pci/probe.h"
#include "nodeagent/pci/slot.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kPci = "sys/bus/pci/devices";
constexpr int kFunctions = 8;             // of one PCI slot
constexpr std::size_t kMaxListable = 63;  // netIf::prefix of NCCL's src/include/utils.h

bool IsListable(std::string_view name) {
  return !name.empty() && name.size() <= kMaxListable &&
         name.find_first_of(",:=^ ") == std::string_view::npos && formats::Printable(name) == name;
}

// The RDMA device of a virtual function is a child of its PCI function, as any other.
void ReadOne(const base::FileTree& files, const std::string& address, VirtualFunctions& found) {
  const std::string function = fmt::format("{}/{}", kPci, address);
  const auto devices = files.List(function + "/infiniband");
  if (!devices || devices->empty()) {
    // Where RDMA devices are shared by all network namespaces the host sees each: a function without has none to hide.
    const std::string driver = DriverOf(files, function);
    found.hidden = found.hidden || (!driver.empty() && !IsGivenAway(driver) && RdmaIsExclusive(files));
    return;
  }
  for (const std::string& device : *devices) {
    if (IsListable(device)) {
      found.devices.push_back(device);
    } else {
      found.hidden = true;
    }
  }
}

bool IsOfAnother(const topology::Node& node, const topology::Nic& nic, const std::string& address) {
  return std::any_of(node.nics.begin(), node.nics.end(), [&](const topology::Nic& other) {
    return other.name != nic.name && other.pci == address;
  });
}

}  // namespace

VirtualFunctions ReadVirtualFunctions(const base::FileTree& files, const topology::Node& node,
                                      const topology::Nic& nic) {
  VirtualFunctions found;
  if (!IsPciAddress(nic.pci)) return found;
  for (int number = 0; number < kFunctions; ++number) {
    const std::string physical = fmt::format("{}.{}", SlotOf(nic.pci), number);
    if (IsOfAnother(node, nic, physical)) continue;
    const std::string folder = fmt::format("{}/{}", kPci, physical);
    // Another function with an RDMA device of its own is no second port of a bond.
    const auto own = physical == nic.pci ? std::nullopt : std::optional(files.List(folder + "/infiniband"));
    if (own && *own && !(*own)->empty()) continue;
    const auto entries = files.List(folder);
    for (const std::string& entry : entries ? *entries : std::vector<std::string>()) {
      if (!entry.starts_with("virtfn")) continue;
      const auto target = files.ReadLink(fmt::format("{}/{}", folder, entry));
      if (!target) continue;
      const std::string address = target->substr(target->find_last_of('/') + 1);
      if (IsPciAddress(address)) ReadOne(files, address, found);
    }
  }
  return found;
}

}  // namespace heddle::nodeagent
