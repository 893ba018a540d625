#include "crds/fabric_assembly.h"

#include "base/lower_case.h"
#include "crds/label_value.h"

namespace heddle::crds {
namespace {

topology::Fabric Declared(topology::Fabric measured, const topology::Declaration& declaration) {
  if (declaration == topology::Declaration{}) return measured;
  std::vector<topology::Node> nodes;
  nodes.reserve(measured.nodes.size());
  for (topology::FabricNode& member : measured.nodes) nodes.push_back(std::move(member.node));
  topology::Fabric fabric = topology::BuildFabric(std::move(nodes), declaration);
  fabric.transport = measured.transport;
  fabric.site = measured.site;
  return fabric;
}

}  // namespace

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
  std::map<std::string, topology::Fabric> fabrics;
  for (topology::Fabric& measured : topology::BuildFabrics(std::move(nodes), {})) {
    std::string name = FabricName(measured.transport, measured.site);
    const auto declaration = declared.find(name);
    fabrics.emplace(std::move(name), declaration == declared.end()
                                         ? std::move(measured)
                                         : Declared(std::move(measured), declaration->second));
  }
  return fabrics;
}

}  // namespace heddle::crds
