#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/counted.h"
#include "cli/late_agents.h"
#include "cli/status_parts.h"
#include "crds/condition.h"
#include "crds/gpu_indexes.h"
#include "crds/node_use.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

std::map<std::string, const Json*> IndexByName(const base::Result<Objects>& objects) {
  std::map<std::string, const Json*> by_name;
  if (!objects) return by_name;
  for (const Json& one : *objects) by_name.emplace(kube::Name(one), &one);
  return by_name;
}

// The Fabric that keeps a node out, by node.
std::map<std::string, std::string> ExcludingFabrics(const base::Result<Objects>& fabrics) {
  std::map<std::string, std::string> excluding;
  if (!fabrics) return excluding;
  for (const Json& fabric : *fabrics) {
    for (const Json& node : kube::ArrayAt(fabric, {"spec", "excludedNodes"})) {
      if (node.is_string()) excluding.emplace(node.get<std::string>(), kube::Name(fabric));
    }
  }
  return excluding;
}

// What its agent says of the whole report, in the planner's word.
std::string WordOfReport(const Json& topology) {
  if (kube::StringAt(topology, {"status", "observedAt"}).empty()) return "NoTopology";
  const Json* ready = kube::Condition(topology, crds::kReady);
  if (ready == nullptr) return "";
  const std::string reason = kube::StringAt(*ready, {"reason"});
  if (reason == "Contradictory") return "TopologyContradictory";
  return reason == "BusUnreadable" ? "GpusUnread" : "";
}

std::string MismatchSentence(const crds::GpuCounts& gpus) {
  std::string sentence =
      fmt::format("{} allocatable, and its agent finds {}", base::Counted(gpus.allocatable, "GPU"), gpus.all);
  if (gpus.healthy < gpus.all) sentence += fmt::format(", {} of them healthy", gpus.healthy);
  return sentence;
}

std::optional<crds::GpuCounts> CountBoth(const Json& topology, const Json& node) {
  const auto offered = crds::OfferedGpusOf(node);
  if (!offered) return std::nullopt;
  const Json& found = kube::ArrayAt(topology, {"status", "gpus"});
  const auto healthy = std::count_if(found.begin(), found.end(), [](const Json& gpu) {
    return kube::StringAt(gpu, {"health"}) == "Healthy";
  });
  return crds::GpuCounts{offered->count, int(healthy), int(found.size())};
}

}  // namespace

std::map<std::string, Unusable> FindUnusable(const StatusReading& reading) {
  std::map<std::string, Unusable> unusable;
  if (!reading.topologies) return unusable;
  const auto nodes = IndexByName(reading.nodes), topologies = IndexByName(reading.topologies);
  const auto excluding = ExcludingFabrics(reading.fabrics);
  const std::set<std::string> late =
      reading.leases ? LateAgents(*reading.leases, reading.now) : std::set<std::string>{};
  const auto judge = [&](const std::string& name, const Json& topology) -> Unusable {
    const auto node = nodes.find(name);
    const auto fabric = excluding.find(name);
    crds::NodeUse use;
    if (node != nodes.end()) {
      use = crds::NodeUseOf(*node->second);
      use.gpus = CountBoth(topology, *node->second);
    }
    use.gone = reading.nodes && node == nodes.end();
    use.published = fabric != excluding.end() ? std::string(crds::kExcludedNode) : WordOfReport(topology);
    use.silent = late.contains(name);
    Unusable why{crds::WhyOutOfUse(use), "", ""};
    if (why.word == crds::kGpuCountMismatch) why.message = MismatchSentence(*use.gpus);
    if (why.word == crds::kExcludedNode) why.fabric = fabric->second;
    return why;
  };
  for (const auto& [name, topology] : topologies) {
    if (Unusable why = judge(name, *topology); !why.word.empty()) unusable.emplace(name, std::move(why));
  }
  for (const auto& [name, node] : nodes) {
    const int gpus = crds::OfferedGpusOf(*node).value_or(crds::OfferedGpus{}).count;
    if (gpus == 0 || topologies.contains(name)) continue;
    if (const auto fabric = excluding.find(name); fabric != excluding.end()) {
      unusable.emplace(name, Unusable{crds::kExcludedNode, "", fabric->second});
    } else {
      unusable.emplace(name, Unusable{"NoTopology", base::Counted(gpus, "GPU") + " allocatable", ""});
    }
  }
  return unusable;
}

}  // namespace heddle::cli
