#include "cli/commands.h"

#include <algorithm>
#include <utility>

#include "cli/live_cluster.h"
#include "cli/topology_view.h"
#include "crds/fabric.h"
#include "crds/fabric_assembly.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;

// Files without a node are refused where they are read.
void SayNobodyReported(Output& output) {
  output.exit_code = Output::kFailed;
  output.err +=
      "No node has reported its topology. Are the heddle-nodeagent pods running? `kubectl get nt` and "
      "`kubectl -n heddle-system get pods` say more.\n";
}

Output TopologyAnswer(FabricReading reading, const std::string& node, const OutputOptions& look) {
  if (!node.empty()) {
    std::erase_if(reading.topologies, [&](const auto& topology) { return topology.name != node; });
    if (reading.topologies.empty()) return Failure(NoSuchNode(reading, node, "a topology"));
  }
  Output output;
  output.err += NoteLines(reading.notes);
  if (reading.topologies.empty()) SayNobodyReported(output);
  if (look.format != Format::kText) {
    Json items = Json::array();
    for (const crds::NodeTopology& topology : reading.topologies) items.push_back(crds::ToJson(topology));
    output.out = Printed(node.empty() ? Json{{"items", std::move(items)}} : items.front(), look.format);
  } else if (!reading.topologies.empty()) {
    output.out = node.empty() ? NodeTable(reading.topologies, look.style)
                              : NodeTree(reading.topologies.front(), look.style);
  }
  return output;
}

Output FabricAnswer(const FabricReading& reading, const OutputOptions& look) {
  Output output;
  output.err += NoteLines(reading.notes);
  if (reading.fabrics.empty()) SayNobodyReported(output);
  if (look.format != Format::kText) {
    Json items = Json::array();
    for (const FabricPtr& fabric : reading.fabrics) {
      crds::Fabric object;
      object.name = crds::FabricName(fabric->transport, fabric->site);
      object.spec = fabric->declaration;
      object.status = crds::Summarise(*fabric);
      object.status.assumptions = fabric->assumptions;
      items.push_back(crds::ToJson(object));
    }
    output.out = Printed({{"items", std::move(items)}}, look.format);
    return output;
  }
  for (const FabricPtr& fabric : reading.fabrics) {
    if (!output.out.empty()) output.out += "\n";
    output.out += FabricText(*fabric, look.style);
  }
  return output;
}

}  // namespace

Output RunTopology(kube::Client& client, const std::string& node, const OutputOptions& look,
                   const std::stop_token& stop) {
  // Nodes alone: who may not read Fabrics sees them all the same.
  const auto objects = ListHeddle(client, keys::kNodeTopology, stop);
  return objects ? TopologyAnswer(ReadFabrics(*objects, {}), node, look) : Failure(objects.error());
}

Output ShowTopology(const std::vector<std::string>& files, const std::string& node, const ReadFile& read,
                    const OutputOptions& look) {
  auto reading = ReadFabricFiles(files, read);
  return reading ? TopologyAnswer(*std::move(reading), node, look) : FailureOfInput(reading.error());
}

Output RunFabric(kube::Client& client, const OutputOptions& look, const std::stop_token& stop) {
  const auto reading = ReadCluster(client, stop);
  return reading ? FabricAnswer(*reading, look) : Failure(reading.error());
}

Output ShowFabric(const std::vector<std::string>& files, const ReadFile& read, const OutputOptions& look) {
  const auto reading = ReadFabricFiles(files, read);
  return reading ? FabricAnswer(*reading, look) : FailureOfInput(reading.error());
}

}  // namespace heddle::cli
