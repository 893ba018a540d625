#include "nodeagent/qos/ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/port_name.h"
#include "nodeagent/pci/driver.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {
namespace {

void TakeWatched(const WatchedPort& watched, QosPort& port) {
  if (!watched.netdev.empty() || watched.of_bond) port.netdev = watched.netdev;
  if (!watched.device.empty()) {
    port.rdma_device = watched.device;
    port.rdma_port = watched.device_port;
  } else if (watched.of_bond) {
    port.rdma_port = 1;
  }
}

void ReadFunction(const base::FileTree& files, QosPort& port) {
  const std::string device = fmt::format("sys/class/net/{}/device", port.netdev);
  if (const auto link = files.ReadLink(device)) {
    std::string place = link->substr(link->find_last_of('/') + 1);
    if (IsPciAddress(place)) port.pci_address = std::move(place);
  }
  if (std::string driver = DriverOf(files, device); !driver.empty()) port.driver = std::move(driver);
}

}  // namespace

std::vector<QosPort> QosPorts(QosPortsWanted wanted, const topology::Node& node,
                              std::span<const WatchedPort> watched, const base::FileTree* files) {
  std::vector<QosPort> ports;
  for (const topology::Nic& nic : node.nics) {
    if (wanted == QosPortsWanted::kRoce && nic.transport != topology::Transport::kRoce) continue;
    for (const topology::NicPort& nic_port : nic.ports) {
      QosPort port{crds::PortName(nic, nic_port), nic.name, nic_port.number, nic.netdev, nic.pci, nic.driver};
      const auto seen = std::find_if(watched.begin(), watched.end(), [&](const WatchedPort& one) {
        return one.nic == nic.name && one.number == nic_port.number;
      });
      if (seen != watched.end()) TakeWatched(*seen, port);
      if (wanted == QosPortsWanted::kRoce && port.netdev.empty()) continue;
      if (files != nullptr && !port.netdev.empty()) ReadFunction(*files, port);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::vector<WatchedPort> WatchedPortsOfAllRoles(const Readings& readings, const topology::Node& node) {
  topology::Node all = node;
  for (topology::Nic& nic : all.nics) nic.role = topology::NicRole::kCompute;
  return WatchedPorts(readings, all);
}

}  // namespace heddle::nodeagent
