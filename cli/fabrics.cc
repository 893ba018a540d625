#include "cli/fabrics.h"

#include <algorithm>

#include "crds/fabric.h"
#include "crds/fabric_assembly.h"

namespace heddle::cli {
namespace {

std::map<std::string, topology::Declaration> ReadDeclarations(const std::vector<crds::Json>& objects,
                                                              std::vector<std::string>& notes) {
  std::map<std::string, topology::Declaration> declared;
  for (const crds::Json& object : objects) {
    auto fabric = crds::FabricFromJson(object);
    if (fabric) {
      declared[fabric->name] = std::move(fabric->spec);
    } else {
      notes.push_back("A Fabric could not be read, and what it declares is left out: " +
                      fabric.error().message);
    }
  }
  return declared;
}

}  // namespace

FabricReading ReadFabrics(const std::vector<crds::Json>& topologies, const std::vector<crds::Json>& fabrics) {
  FabricReading reading;
  std::vector<topology::Node> nodes;
  for (const crds::Json& object : topologies) {
    auto topology = crds::NodeTopologyFromJson(object);
    if (!topology) {
      reading.notes.push_back("A NodeTopology could not be read and is left out: " +
                              topology.error().message);
      continue;
    }
    if (!topology->status.observed_at) continue;
    crds::CountCables(*topology);
    topology->status.node.name = topology->name;
    nodes.push_back(topology->status.node);
    reading.topologies.push_back(*std::move(topology));
  }
  std::sort(reading.topologies.begin(), reading.topologies.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  reading.declared = ReadDeclarations(fabrics, reading.notes);
  for (auto& [name, fabric] : crds::AssembleFabrics(std::move(nodes), reading.declared)) {
    reading.fabrics.push_back(std::make_shared<const topology::Fabric>(std::move(fabric)));
  }
  return reading;
}

std::string Title(const topology::Fabric& fabric) {
  const std::string transport(topology::TransportName(fabric.transport));
  return fabric.site.empty() ? transport : transport + " at " + fabric.site;
}

FabricPtr FabricOfMost(const std::vector<FabricPtr>& fabrics, const std::vector<std::string>& nodes) {
  FabricPtr best;
  std::ptrdiff_t most = 0;
  for (const FabricPtr& fabric : fabrics) {
    const auto members = std::count_if(nodes.begin(), nodes.end(), [&](const std::string& node) {
      return fabric->FindNode(node) != topology::kNone;
    });
    if (members > most) {
      most = members;
      best = fabric;
    }
  }
  return best;
}

}  // namespace heddle::cli
