#include "nodeagent/nic/plane.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

bool IsWordLetter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::vector<std::string> Parts(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (!IsWordLetter(c))
      parts.emplace_back();
    else
      parts.back() += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  }
  return parts;
}

std::optional<int> Number(std::string_view text) {
  const auto number = formats::Number<int>(text);
  return number && *number >= 0 && *number <= topology::kMaxPlane ? number : std::nullopt;
}

// Compute NICs whose RDMA device has several ports of its own.
std::vector<topology::Nic*> MultiPort(const RdmaReadings& rdma, std::vector<topology::Nic>& nics) {
  std::vector<topology::Nic*> found;
  for (topology::Nic& nic : nics) {
    if (nic.role != topology::NicRole::kCompute) continue;
    const auto device = std::find_if(rdma.devices.begin(), rdma.devices.end(),
                                     [&nic](const RdmaDevice& one) { return one.name == nic.name; });
    if (device != rdma.devices.end() && device->ports.size() > 1) found.push_back(&nic);
  }
  return found;
}

bool AnySaid(const RdmaReadings& rdma) {
  return std::any_of(rdma.devices.begin(), rdma.devices.end(), [](const RdmaDevice& device) {
    return std::any_of(device.ports.begin(), device.ports.end(),
                       [](const RdmaPort& port) { return port.plane.known(); });
  });
}

}  // namespace

std::optional<int> PlaneOfLeaf(std::string_view leaf) {
  const std::vector<std::string> parts = Parts(leaf);
  std::optional<int> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<int> plane;
    for (const std::string_view word : {"plane", "pl", "p"}) {
      if (!plane && parts[i].starts_with(word))
        plane = Number(std::string_view(parts[i]).substr(word.size()));
    }
    if (parts[i] == "plane" && i + 1 < parts.size()) plane = Number(parts[i + 1]);
    if (!plane) continue;
    if (found && *found != *plane) return std::nullopt;
    found = plane;
  }
  return found;
}

void NamePlanes(const RdmaReadings& rdma, std::vector<topology::Nic>& nics) {
  if (AnySaid(rdma)) return;
  std::vector<std::pair<topology::NicPort*, int>> named;
  for (topology::Nic* nic : MultiPort(rdma, nics)) {
    std::set<int> planes;
    for (topology::NicPort& port : nic->ports) {
      if (port.state == topology::LinkState::kDown) continue;
      const auto plane = port.leaf_port ? PlaneOfLeaf(port.leaf_port->leaf) : std::nullopt;
      if (!plane || !planes.insert(*plane).second) return;
      named.emplace_back(&port, *plane);
    }
  }
  for (const auto& [port, plane] : named) port->plane = plane;
}

}  // namespace heddle::nodeagent
