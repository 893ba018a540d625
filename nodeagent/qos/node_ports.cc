#include "nodeagent/qos/node_ports.h"

#include <algorithm>

#include "crds/port_name.h"

namespace heddle::nodeagent {

std::vector<QosPort> QosPortsOf(const topology::Node& node, const std::vector<PortHealth>& watched) {
  std::vector<QosPort> ports;
  for (const topology::Nic& nic : node.nics) {
    for (const topology::NicPort& nic_port : nic.ports) {
      QosPort port{crds::PortName(nic, nic_port), nic.name, nic_port.number, nic.netdev, nic.pci, nic.driver};
      for (const PortHealth& health : watched) {
        if (health.port.nic != nic.name || health.port.number != nic_port.number) continue;
        // Of a bond DCB is set on its members, and each port has one.
        if (!health.port.netdev.empty()) port.netdev = health.port.netdev;
        if (!health.port.device.empty()) {
          port.rdma_device = health.port.device;
          port.rdma_port = health.port.device_port;
        } else if (health.port.of_bond) {
          port.rdma_port = 1;  // the bond is one port of the RDMA device
        }
      }
      ports.push_back(std::move(port));
    }
  }
  std::sort(ports.begin(), ports.end(), [](const QosPort& a, const QosPort& b) { return a.name < b.name; });
  return ports;
}

}  // namespace heddle::nodeagent
