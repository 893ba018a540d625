#include "cli/commands.h"

#include <algorithm>

#include "cli/live_cluster.h"
#include "cli/topology_view.h"
#include "crds/fabric.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;

std::string NoTopology() {
  return "No node has reported its topology. Are the heddle-nodeagent pods running? `kubectl get nt` and "
         "`kubectl -n heddle-system get pods` say more.\n";
}

}  // namespace

Output RunTopology(kube::Client& client, const std::string& node, const OutputOptions& look,
                   const std::stop_token& stop) {
  auto objects = ListHeddle(client, keys::kNodeTopology, stop);
  if (!objects) return Failure(objects.error());
  FabricReading reading = ReadFabrics(*objects, {});
  if (!node.empty()) {
    std::erase_if(reading.topologies, [&](const auto& topology) { return topology.name != node; });
    if (reading.topologies.empty()) {
      return Failure({Code::kNotFound, "node " + node +
                                           " has not reported a topology; `kubectl heddle topology` lists "
                                           "those that have"});
    }
  }
  Output output;
  for (const std::string& note : reading.notes) output.err += "Note: " + Printable(note) + "\n";
  if (look.format != Format::kText) {
    Json items = Json::array();
    for (const crds::NodeTopology& topology : reading.topologies) items.push_back(crds::ToJson(topology));
    output.out = Printed(node.empty() ? Json{{"items", std::move(items)}} : items.front(), look.format);
  } else if (reading.topologies.empty()) {
    output.exit_code = Output::kFailed;
    output.err += NoTopology();
  } else {
    output.out = node.empty() ? NodeTable(reading.topologies, look.style)
                              : NodeTree(reading.topologies.front(), look.style);
  }
  return output;
}

Output RunFabric(kube::Client& client, const OutputOptions& look, const std::stop_token& stop) {
  const auto reading = ReadCluster(client, stop);
  if (!reading) return Failure(reading.error());
  Output output;
  for (const std::string& note : reading->notes) output.err += "Note: " + Printable(note) + "\n";
  if (look.format != Format::kText) {
    Json items = Json::array();
    for (const FabricPtr& fabric : reading->fabrics) {
      crds::Fabric object;
      object.spec = fabric->declaration;
      object.status = crds::Summarise(*fabric);
      object.status.assumptions = fabric->assumptions;
      items.push_back(crds::ToJson(object));
    }
    output.out = Printed({{"items", std::move(items)}}, look.format);
    return output;
  }
  if (reading->fabrics.empty()) {
    output.exit_code = Output::kFailed;
    output.err += NoTopology();
  }
  for (const FabricPtr& fabric : reading->fabrics) {
    if (!output.out.empty()) output.out += "\n";
    output.out += FabricText(*fabric, look.style);
  }
  return output;
}

}  // namespace heddle::cli
