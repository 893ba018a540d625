#include "cli/import_lldp.h"

#include <fmt/format.h>

#include "cli/import_hosts.h"

namespace heddle::cli {

topology::Node LldpHost(const std::string& host, const formats::LldpNeighbours& neighbours,
                        topology::Transport transport, ImportFindings& findings) {
  constexpr std::size_t kMaxNics = 128;  // as the schema of NodeTopology has it
  topology::Node node;
  node.name = host;
  for (const auto& [interface, heard] : neighbours) {
    if (node.nics.size() == kMaxNics) {
      findings.warnings.push_back(fmt::format(
          "{} has more than {} interfaces: {} and those behind it are left out", host, kMaxNics, interface));
      break;
    }
    topology::Nic nic;
    nic.name = nic.netdev = interface;
    nic.transport = transport;
    nic.role = RoleOfName(interface);
    topology::NicPort port;
    port.state = topology::LinkState::kActive;
    port.leaf_port = formats::LeafOf(heard);
    if (port.leaf_port) {
      if (nic.role == topology::NicRole::kCompute) nic.role = RoleOfName(port.leaf_port->leaf);
    } else if (heard.size() > 1) {
      const formats::LldpNeighbour &a = heard[0], &b = heard[1];
      findings.warnings.push_back(fmt::format(
          "{} {} hears {} different neighbours, as {} port {} and {} port {}: its leaf is not known", host,
          interface, heard.size(), a.system_name.empty() ? a.chassis_id : a.system_name, a.port_id,
          b.system_name.empty() ? b.chassis_id : b.system_name, b.port_id));
    }
    nic.ports.push_back(std::move(port));
    node.nics.push_back(std::move(nic));
  }
  return node;
}

}  // namespace heddle::cli
