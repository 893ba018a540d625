#include "crds/node_use.h"

#include <algorithm>
#include <cstdint>

#include "crds/json_at.h"
#include "crds/quantity.h"

namespace heddle::crds {
namespace {

constexpr std::int64_t kMostOffered = 1024;  // of one resource, whatever a Node says

}  // namespace

std::optional<OfferedGpus> OfferedGpusOf(const Json& node) {
  const Json& allocatable = At(node, {"status", "allocatable"});
  if (!allocatable.is_object()) return std::nullopt;
  OfferedGpus offered;
  for (const auto& [name, value] : allocatable.items()) {
    if (!IsGpuResource(name)) continue;
    // As a quantity: a thousand, which time slicing may make of a few, is written 1k.
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const std::int64_t amount = ParseQuantity(text).value_or(0);
    if (amount == 0) continue;
    offered.count += int(std::min(amount, kMostOffered));
    offered.resource = name;
  }
  return offered;
}

GpuCounts CompareGpus(int allocatable, const topology::Node& found) {
  const auto healthy = std::count_if(found.gpus.begin(), found.gpus.end(),
                                     [](const topology::Gpu& gpu) { return gpu.healthy; });
  return {.allocatable = allocatable, .healthy = int(healthy), .all = int(found.gpus.size())};
}

NodeUse NodeUseOf(const Json& node) {
  const Json& conditions = ListOf(At(node, {"status", "conditions"}));
  NodeUse use;
  use.ready = std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
    return TextOf(At(condition, "type")) == "Ready" && TextOf(At(condition, "status")) == "True";
  });
  use.cordoned = IsTrue(At(node, {"spec", "unschedulable"}));
  return use;
}

std::string WhyOutOfUse(const NodeUse& use) {
  if (use.gone) return "NodeGone";
  if (!use.ready) return "NotReady";
  if (use.cordoned) return "Cordoned";
  if (!use.published.empty()) return use.published;
  if (use.silent) return "TopologyStale";
  if (use.gpus && !use.gpus->agree()) return kGpuCountMismatch;
  return {};
}

}  // namespace heddle::crds
