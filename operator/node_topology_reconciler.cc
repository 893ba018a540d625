#include "operator/node_topology_reconciler.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "crds/keys.h"
#include "operator/resources.h"

namespace heddle::operators {
namespace {

using kube::Json;

constexpr std::string_view kAgentLabel = "heddle.dev/agent";

// A write that found the server ahead of our cache: the cache is about to show it, and that brings the key
// back.
bool CacheIsBehind(const base::Error& error) {
  return error.code == base::Code::kAlreadyExists || error.code == base::Code::kNotFound ||
         error.code == base::Code::kConflict;
}

base::Result<Outcome> Written(const base::Result<Json>& answer, std::string_view context) {
  if (answer) return Outcome{.writes = 1};
  if (CacheIsBehind(answer.error())) return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  return base::Fail(answer.error().In(context));
}

crds::NodeTopology Wanted(const Json& node) {
  crds::NodeTopology wanted;
  wanted.name = kube::Name(node);
  wanted.owners.push_back(
      {.api_version = "v1", .kind = "Node", .name = kube::Name(node), .uid = kube::Uid(node)});
  wanted.spec.labels = crds::PlaceLabelsOf(kube::Labels(node));
  return wanted;
}

}  // namespace

bool Selects(const NodeSelection& selection, const Json& node) {
  if (selection.all || kube::Label(node, kAgentLabel) == "true") return true;
  // A GPU resource of count 0 stays in allocatable while its device plugin restarts: such a Node has GPUs.
  return std::any_of(selection.gpu_resources.begin(), selection.gpu_resources.end(),
                     [&](const std::string& name) {
                       return kube::Find(node, {"status", "allocatable", name}) != nullptr;
                     });
}

TopologyAction DecideTopology(const NodeSelection& selection, const Json* node, const Json* topology) {
  if (node == nullptr || kube::Uid(*node).empty() || kube::DeletionTimestamp(*node))
    return TopologyAction::kNothing;
  if (topology == nullptr)
    return Selects(selection, *node) ? TopologyAction::kCreate : TopologyAction::kNothing;
  if (kube::DeletionTimestamp(*topology)) return TopologyAction::kNothing;
  bool other_machine = false;
  for (const Json& owner : kube::ArrayAt(*topology, {"metadata", "ownerReferences"})) {
    if (kube::StringAt(owner, {"kind"}) != "Node") continue;
    if (kube::StringAt(owner, {"uid"}) == kube::Uid(*node))
      return SpecLabelPatch(*node, *topology) ? TopologyAction::kLabel : TopologyAction::kNothing;
    other_machine = true;
  }
  return other_machine ? TopologyAction::kReplace : TopologyAction::kAdopt;
}

std::optional<Json> SpecLabelPatch(const Json& node, const Json& topology) {
  const crds::PlaceLabels wanted = crds::PlaceLabelsOf(kube::Labels(node));
  const Json* present = kube::Find(topology, {"spec", "labels"});
  Json changes = Json::object();
  if (present != nullptr && present->is_object()) {
    for (auto label = present->begin(); label != present->end(); ++label) {
      if (!wanted.contains(label.key())) changes[label.key()] = nullptr;
    }
  }
  for (const auto& [key, value] : wanted) {
    if (kube::StringAt(topology, {"spec", "labels", key}) != value) changes[key] = value;
  }
  if (changes.empty()) return std::nullopt;
  return Json{{"metadata", {{"uid", kube::Uid(topology)}}}, {"spec", {{"labels", std::move(changes)}}}};
}

NodeTopologyReconciler::NodeTopologyReconciler(kube::Client& client, Reads reads, NodeSelection selection)
    : client_(client), reads_(reads), selection_(std::move(selection)) {}

base::Result<Outcome> NodeTopologyReconciler::Reconcile(const std::string& node,
                                                        const std::stop_token& stop) {
  const kube::ObjectKey key{"", node};
  const kube::ObjectPtr machine = reads_.nodes.Get(key);
  const kube::ObjectPtr topology = reads_.topologies.Get(key);
  switch (DecideTopology(selection_, machine.get(), topology.get())) {
    case TopologyAction::kNothing:
      return Outcome{};
    case TopologyAction::kCreate:
      return Create(*machine, stop);
    case TopologyAction::kAdopt:
      return Adopt(*machine, *topology, stop);
    case TopologyAction::kLabel:
      return Label(*machine, *topology, stop);
    case TopologyAction::kReplace:
      return Replace(*machine, *topology, stop);
  }
  return Outcome{};
}

base::Result<Outcome> NodeTopologyReconciler::Create(const Json& node, const std::stop_token& stop) {
  const auto created = client_.Create(kNodeTopologies, crds::SpecApplyJson(Wanted(node)), stop);
  if (created) spdlog::info("Created NodeTopology node={}", kube::Name(node));
  return Written(created, "create the NodeTopology of node " + kube::Name(node));
}

base::Result<Outcome> NodeTopologyReconciler::Adopt(const Json& node, const Json& topology,
                                                    const std::stop_token& stop) {
  crds::NodeTopology wanted = Wanted(node);
  wanted.uid = kube::Uid(topology);  // precondition: this very object
  const kube::ApplyOptions options{.field_manager = std::string(crds::keys::kOperatorManager), .force = true};
  const auto applied = client_.Apply(kNodeTopologies, crds::SpecApplyJson(wanted), options, stop);
  if (applied) spdlog::info("Gave NodeTopology to its Node as owner node={}", wanted.name);
  return Written(applied, "set the owner of NodeTopology " + wanted.name);
}

base::Result<Outcome> NodeTopologyReconciler::Label(const Json& node, const Json& topology,
                                                    const std::stop_token& stop) {
  // No apply: what our own POST set would stay ours, and a label that is gone would not go.
  const auto patched = client_.Patch(kNodeTopologies, {"", kube::Name(node)}, kube::PatchType::kMerge,
                                     *SpecLabelPatch(node, topology), {}, stop);
  if (patched) spdlog::info("Told NodeTopology its Node's place labels node={}", kube::Name(node));
  return Written(patched, "write the labels in the spec of NodeTopology " + kube::Name(node));
}

base::Result<Outcome> NodeTopologyReconciler::Replace(const Json& node, const Json& topology,
                                                      const std::stop_token& stop) {
  const kube::ObjectKey key{"", kube::Name(node)};
  const kube::DeleteOptions options{.uid = kube::Uid(topology),
                                    .propagation = kube::Propagation::kBackground};
  const auto deleted = client_.Delete(kNodeTopologies, key, options, stop);
  if (deleted)
    spdlog::info("Deleted NodeTopology of an earlier machine node={} uid={}", key.name, kube::Uid(topology));
  return Written(deleted, "delete the NodeTopology of the machine that was node " + key.name + " before");
}

}  // namespace heddle::operators
