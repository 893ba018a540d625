#include "nodeagent/qos/port_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

using base::Code;

std::string LastPart(std::string_view path) {
  return formats::Printable(path.substr(path.rfind('/') + 1), 64);
}

// "0000:17:00.2" of virtfn0, which is a link to that function's folder; of any other the name itself.
std::string Shown(const base::FileTree& files, const std::string& folder, const std::string& name) {
  const auto target = files.ReadLink(folder);
  return LastPart(target ? *target : name);
}

}  // namespace

PortFunctions FunctionsOf(const base::FileTree& files, std::string_view pci_address) {
  PortFunctions functions;
  if (pci_address.empty()) return functions;
  const std::string own = fmt::format("sys/bus/pci/devices/{}", pci_address);
  const auto names = files.List(own);
  if (!names) {
    if (names.error().code != Code::kNotFound)
      functions.unseen = fmt::format("its virtual functions cannot be listed: {}", names.error().message);
    return functions;
  }
  for (const std::string& name : *names) {
    if (!name.starts_with("virtfn") && name.find(".sf.") == std::string::npos) continue;
    const std::string folder = fmt::format("{}/{}", own, name);
    const auto driver = files.ReadLink(folder + "/driver");
    if (!driver && driver.error().code == Code::kNotFound) continue;
    const auto devices = files.List(folder + "/infiniband");
    if (devices && !devices->empty()) {
      functions.rdma_devices.insert(functions.rdma_devices.end(), devices->begin(), devices->end());
      continue;
    }
    // Its interface is here, so no virtual machine and no other namespace has it: it has no RDMA, and sockets outlive a
    // link that is down for a moment.
    const auto interfaces = files.List(folder + "/net");
    if (interfaces && !interfaces->empty()) continue;
    if (functions.unseen.empty()) {
      functions.unseen = fmt::format(
          "its function {} has the driver {} and no RDMA device that is seen from here, so that a virtual "
          "machine or another network namespace may use it: end that and unbind the driver",
          Shown(files, folder, name), driver ? LastPart(*driver) : driver.error().message);
    }
  }
  std::sort(functions.rdma_devices.begin(), functions.rdma_devices.end());
  return functions;
}

}  // namespace heddle::nodeagent
