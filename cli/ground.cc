#include "cli/ground.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/gpu_use.h"
#include "crds/fabric_assembly.h"
#include "crds/gpu_indexes.h"
#include "kube/object.h"
#include "topology/synthetic.h"

namespace heddle::cli {
namespace {

using base::Code;

using Counts = std::map<std::string, int>;           // GPUs by node
using Masks = std::map<std::string, std::uint32_t>;  // positions by node

base::Result<Counts> ParseCounts(std::string_view text) {
  Counts taken;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const std::size_t equals = word.find('=');
    int count = -1;
    if (equals != std::string_view::npos)
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), count);
    if (count < 0) {
      return base::Fail(Code::kInvalid, fmt::format("--taken \"{}\": write NODE=GPUS, as node-00=4", word));
    }
    taken[std::string(word.substr(0, equals))] = count;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return taken;
}

base::Result<std::vector<topology::Fabric>> FabricsOf(const GroundOptions& options, ClusterFiles& files) {
  if (!options.synthetic.empty()) {
    ASSIGN_OR_RETURN(topology::Synthetic made, topology::ParseSynthetic(options.synthetic), "--synthetic");
    for (const topology::Node& node : made.nodes) {
      crds::NodeTopology object;
      object.name = node.name;
      object.status.node = node;
      files.topologies.push_back(std::move(object));
    }
    // One fabric even over several sites: the notation says how they are joined.
    std::vector<topology::Fabric> whole;
    whole.push_back(topology::BuildFabric(std::move(made.nodes), made.declaration));
    return whole;
  }
  if (files.topologies.empty()) {
    return base::Fail(Code::kInvalid,
                      "--topology: no NodeTopology with a status is in there; make the file with "
                      "`kubectl get nt,fabrics,gangs -A -o json`");
  }
  std::vector<topology::Node> nodes;
  for (const crds::NodeTopology& topology : files.topologies) {
    nodes.push_back(topology.status.node);
    nodes.back().name = topology.name;
  }
  std::vector<topology::Fabric> fabrics;
  for (auto& [name, fabric] : crds::AssembleFabrics(std::move(nodes), files.declared)) {
    fabrics.push_back(std::move(fabric));
  }
  return fabrics;
}

// What kubelets, pods and the plans of Gangs hold.
Masks Held(const ClusterFiles& files) {
  Masks held;
  std::map<std::string, const topology::Node*> nodes;
  for (const crds::NodeTopology& topology : files.topologies) {
    nodes[topology.name] = &topology.status.node;
    for (const crds::Grant& grant : topology.status.grants) {
      for (const auto& gpu : grant.gpus) {
        if (gpu.index >= 0 && gpu.index < 32) {
          held[topology.name] |= crds::PositionsOf(topology.status.node, 1U << gpu.index);
        }
      }
    }
  }
  for (const crds::Gang& gang : files.gangs) {
    if (!gang.status.placement || crds::IsTrue(gang.status.conditions, crds::kEnded)) continue;
    for (const crds::PlacedPod& row : crds::ToRows(*gang.status.placement)) {
      const auto node = nodes.find(row.node);
      if (node == nodes.end()) continue;
      held[row.node] |= crds::PositionsOf(*node->second, row.gpus == 0 ? ~0U : row.gpus);
    }
  }
  const auto use = FindGpuUse(files.pods, files.topologies);
  for (const Json& pod : files.pods) {
    if (const auto gpus = use.find(kube::Uid(pod)); gpus != use.end()) {
      held[kube::StringAt(pod, {"spec", "nodeName"})] |= gpus->second.positions;
    }
  }
  return held;
}

std::vector<placement::NodeState> StatesOf(const topology::Fabric& fabric, const Masks& held,
                                           const Counts& counts) {
  std::vector<placement::NodeState> states(fabric.nodes.size());
  for (std::size_t n = 0; n < states.size(); ++n) {
    const topology::Node& node = fabric.nodes[n].node;
    const auto mask = held.find(node.name);
    const auto count = counts.find(node.name);
    int left = count == counts.end() ? 0 : count->second;
    states[n].free_milli_cpu = states[n].free_memory_bytes = std::int64_t{1} << 50;
    states[n].free_pods = 1000;
    for (std::size_t p = 0; p < node.gpus.size() && p < 32; ++p) {
      if (!node.gpus[p].healthy || (mask != held.end() && (mask->second >> p & 1U) != 0)) continue;
      if (left-- <= 0) states[n].free_gpus |= 1U << p;
    }
  }
  return states;
}

}  // namespace

base::Result<std::vector<Ground>> ReadGround(const GroundOptions& options, const ReadFile& read) {
  if (options.synthetic.empty() == options.topology.empty()) {
    return base::Fail(Code::kInvalid, "give either --synthetic LINE or --topology FILE");
  }
  ClusterFiles files;
  for (const std::string& path : options.topology) {
    ASSIGN_OR_RETURN(const std::string text, read(path), "--topology");
    TRY(ReadClusterFile(path, text, files), "--topology");
  }
  ASSIGN_OR_RETURN(std::vector<topology::Fabric> fabrics, FabricsOf(options, files));
  Counts counts;
  if (options.taken.find('=') != std::string::npos) {
    ASSIGN_OR_RETURN(counts, ParseCounts(options.taken));
  } else if (!options.taken.empty()) {
    ASSIGN_OR_RETURN(const std::string text, read(options.taken), "--taken");
    TRY(ReadClusterFile(options.taken, text, files), "--taken");
  }
  for (const auto& [name, count] : counts) {
    bool known = false;
    for (const topology::Fabric& fabric : fabrics) known = known || fabric.FindNode(name) != topology::kNone;
    if (!known) {
      return base::Fail(
          Code::kInvalid,
          fmt::format("--taken: there is no node {}; the first is {}", name,
                      fabrics.front().nodes.empty() ? "none" : fabrics.front().nodes.front().node.name));
    }
  }
  const Masks held = Held(files);
  std::vector<Ground> grounds;
  for (topology::Fabric& fabric : fabrics) {
    std::vector<placement::NodeState> states = StatesOf(fabric, held, counts);
    grounds.push_back({std::make_shared<const topology::Fabric>(std::move(fabric)), std::move(states)});
  }
  return grounds;
}

}  // namespace heddle::cli
