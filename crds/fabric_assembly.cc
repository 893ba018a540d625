#include "crds/fabric_assembly.h"

#include "base/lower_case.h"
#include "crds/label_value.h"

namespace heddle::crds {

std::string FabricName(topology::Transport transport, const std::string& site) {
  std::string name = base::LowerCase(std::string(topology::TransportName(transport)));
  return site.empty() ? name : name + "-" + DnsName(site);
}

std::optional<topology::Transport> TransportOfName(const std::string& fabric_name) {
  for (const std::string_view name : topology::TransportNames()) {
    const auto transport = topology::ParseTransport(name);
    const std::string plain = FabricName(*transport, "");
    if (fabric_name == plain || fabric_name.starts_with(plain + "-")) return transport;
  }
  return std::nullopt;
}

std::map<std::string, topology::Fabric> AssembleFabrics(
    std::vector<topology::Node> nodes, const std::map<std::string, topology::Declaration>& declared) {
  const auto declaration_of = [&](topology::Transport transport, const std::string& site) {
    const auto found = declared.find(FabricName(transport, site));
    return found == declared.end() ? nullptr : &found->second;
  };
  std::map<std::string, topology::Fabric> fabrics;
  for (topology::Fabric& fabric : topology::BuildDeclaredFabrics(std::move(nodes), declaration_of)) {
    std::string name = FabricName(fabric.transport, fabric.site);
    fabrics.emplace(std::move(name), std::move(fabric));
  }
  return fabrics;
}

}  // namespace heddle::crds
