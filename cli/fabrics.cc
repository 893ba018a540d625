#include "cli/fabrics.h"

#include <algorithm>

#include "crds/fabric.h"

namespace heddle::cli {
namespace {

struct Declared {
  std::string name;
  crds::FabricStatus status;
  topology::Declaration declaration;

  // By its name, "infiniband", until the operator has written which transport and site it stands for.
  bool StandsFor(const topology::Fabric& fabric) const {
    std::string plain(topology::TransportName(fabric.transport));
    for (char& c : plain) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (fabric.site.empty()) return name == plain;
    return name == plain + "-" + fabric.site ||
           (status.counts.nodes > 0 && status.transport == fabric.transport && status.site == fabric.site);
  }
};

std::vector<Declared> ReadDeclarations(const std::vector<crds::Json>& objects,
                                       std::vector<std::string>& notes) {
  std::vector<Declared> declared;
  for (const crds::Json& object : objects) {
    auto fabric = crds::FabricFromJson(object);
    if (fabric) {
      declared.push_back({fabric->name, std::move(fabric->status), std::move(fabric->spec)});
    } else {
      notes.push_back("A Fabric could not be read, and what it declares is left out: " +
                      fabric.error().message);
    }
  }
  return declared;
}

topology::Fabric Apply(topology::Fabric measured, const std::vector<Declared>& all) {
  const auto mine =
      std::find_if(all.begin(), all.end(), [&](const Declared& one) { return one.StandsFor(measured); });
  if (mine == all.end() || mine->declaration == topology::Declaration{}) return measured;
  std::vector<topology::Node> nodes;
  for (topology::FabricNode& member : measured.nodes) nodes.push_back(std::move(member.node));
  topology::Fabric fabric = topology::BuildFabric(std::move(nodes), mine->declaration);
  fabric.transport = measured.transport;
  fabric.site = measured.site;
  return fabric;
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
    topology->status.node.name = topology->name;
    nodes.push_back(topology->status.node);
    reading.topologies.push_back(*std::move(topology));
  }
  std::sort(reading.topologies.begin(), reading.topologies.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const std::vector<Declared> declared = ReadDeclarations(fabrics, reading.notes);
  for (topology::Fabric& fabric : topology::BuildFabrics(std::move(nodes), {})) {
    reading.fabrics.push_back(std::make_shared<const topology::Fabric>(Apply(std::move(fabric), declared)));
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
