#include "cli/fabrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

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
  std::vector<std::string> notes;
  std::vector<crds::NodeTopology> reported;
  for (const crds::Json& object : topologies) {
    auto topology = crds::NodeTopologyFromJson(object);
    if (!topology) {
      notes.push_back("A NodeTopology could not be read and is left out: " + topology.error().message);
      continue;
    }
    if (!topology->status.observed_at) continue;
    crds::CountCables(*topology);
    reported.push_back(*std::move(topology));
  }
  std::map<std::string, topology::Declaration> declared = ReadDeclarations(fabrics, notes);
  FabricReading reading = AssembleReading(std::move(reported), std::move(declared));
  reading.notes = std::move(notes);
  return reading;
}

FabricReading AssembleReading(std::vector<crds::NodeTopology> topologies,
                              std::map<std::string, topology::Declaration> declared) {
  FabricReading reading;
  std::vector<topology::Node> nodes;
  nodes.reserve(topologies.size());
  for (crds::NodeTopology& topology : topologies) {
    topology.status.node.name = topology.name;
    nodes.push_back(topology.status.node);
  }
  reading.topologies = std::move(topologies);
  std::sort(reading.topologies.begin(), reading.topologies.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  reading.declared = std::move(declared);
  for (auto& [name, fabric] : crds::AssembleFabrics(std::move(nodes), reading.declared)) {
    reading.fabrics.push_back(std::make_shared<const topology::Fabric>(std::move(fabric)));
  }
  return reading;
}

base::Error NoSuchNode(const FabricReading& reading, const std::string& node, std::string_view what) {
  if (reading.in_files) {
    return {base::Code::kInvalid,
            fmt::format("node {} is not in the files; `kubectl heddle topology` with the same --topology "
                        "lists those that are",
                        node),
            std::nullopt};
  }
  return {
      base::Code::kNotFound,
      fmt::format("node {} has not reported {}; `kubectl heddle topology` lists those that have", node, what),
      std::nullopt};
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
