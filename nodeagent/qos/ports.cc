#include "nodeagent/qos/ports.h"

#include <fmt/format.h>

#include "crds/port_name.h"
#include "formats/printable.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {
namespace {

// The last part of what a link says; empty where there is none.
std::string Target(const base::FileTree& files, const std::string& path) {
  const auto link = files.ReadLink(path);
  if (!link) return {};
  return formats::Printable(std::string_view(*link).substr(link->find_last_of('/') + 1), 64);
}

}  // namespace

std::vector<QosPort> QosPorts(const base::FileTree& files, std::span<const WatchedPort> watched) {
  std::vector<QosPort> ports;
  for (const WatchedPort& one : watched) {
    if (one.transport != topology::Transport::kRoce || one.netdev.empty()) continue;
    QosPort port;
    port.name = crds::PortName(one.nic, one.number);
    port.rdma_device = one.nic;
    port.rdma_port = one.device_port;
    port.netdev = one.netdev;
    const std::string device = fmt::format("sys/class/net/{}/device", one.netdev);
    if (std::string place = Target(files, device); IsPciAddress(place)) port.pci_address = std::move(place);
    port.driver = Target(files, device + "/driver");
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<QosPort> QosPorts(const base::FileTree& files, const Readings& readings,
                              const topology::Node& node) {
  topology::Node all = node;
  // Counters of management NICs are not watched.
  for (topology::Nic& nic : all.nics) nic.role = topology::NicRole::kCompute;
  return QosPorts(files, WatchedPorts(readings, all));
}

}  // namespace heddle::nodeagent
