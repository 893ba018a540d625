#include "extender/slimming.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "kube/packed.h"

namespace heddle::extender {
namespace {

// A Node's status moves with every heartbeat; only this much of it is read here.
kube::Json SlimNode(const kube::Json& node) {
  kube::Json slim = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", kube::Json::object()}};
  for (const char* field : {"name", "uid", "resourceVersion", "labels"}) {
    if (const kube::Json* value = kube::Find(node, {"metadata", field})) slim["metadata"][field] = *value;
  }
  for (const char* field : {"taints", "unschedulable"}) {
    if (const kube::Json* value = kube::Find(node, {"spec", field})) slim["spec"][field] = *value;
  }
  if (const kube::Json* value = kube::Find(node, {"status", "allocatable"}))
    slim["status"]["allocatable"] = *value;
  if (const kube::Json* ready = kube::Condition(node, "Ready")) {
    slim["status"]["conditions"] =
        kube::Json::array({{{"type", "Ready"}, {"status", kube::StringAt(*ready, {"status"})}}});
  }
  return kube::Packed(std::move(slim));
}

// Health in words, what is applied and what is wanted are for people and for the agent: half of the object.
kube::Json SlimTopology(kube::Json topology) {
  const auto drop = [](kube::Json& from, std::initializer_list<const char*> fields) {
    if (!from.is_object()) return;
    for (const char* field : fields) from.erase(field);
  };
  // Of the spec, planning reads which cables count less than whole.
  const kube::Json* cables = kube::Find(topology, {"spec", "cables"});
  kube::Json kept = cables == nullptr ? kube::Json() : *cables;
  drop(topology, {"spec"});
  if (!kept.is_null()) topology["spec"]["cables"] = std::move(kept);
  if (topology.contains("metadata")) {
    drop(topology["metadata"],
         {"managedFields", "ownerReferences", "labels", "annotations", "creationTimestamp"});
  }
  if (topology.contains("status"))
    drop(topology["status"], {"conditions", "summary", "lossless", "devices", "congestion"});
  return kube::Packed(std::move(topology));
}

kube::Json SlimFabric(kube::Json fabric) {
  fabric = kube::DropManagedFields(std::move(fabric));
  if (fabric.is_object()) fabric.erase("status");
  return fabric;
}

// The note on a packed pod is its gang's key, or nothing, and this before it; no namespace begins so.
constexpr char kPassedTheGate = '!';

PodKind ReadKind(const kube::Json& pod, Mode mode) {
  PodKind kind;
  if (IsGangPod(pod, mode)) kind.gang = MembershipOf(pod).key;
  kind.passed_the_gate = PassedTheGate(pod);
  return kind;
}

kube::Json SlimPodFor(Mode mode, kube::Json pod) {
  kube::Json slim = SlimPod(std::move(pod));
  const PodKind kind = ReadKind(slim, mode);
  std::string note(kind.passed_the_gate ? 1 : 0, kPassedTheGate);
  if (kind.gang) note += kind.gang->ToString();
  return kube::Packed(std::move(slim), note);
}

kube::Json SlimOwner(kube::Json owner) {
  owner = kube::DropManagedFields(std::move(owner));
  if (const auto spec = owner.find("spec"); spec != owner.end() && spec->is_object()) {
    spec->erase("template");
    spec->erase("volumeClaimTemplates");
  }
  return owner;
}

}  // namespace

Slimming SlimPods(Mode mode) {
  return {[mode](kube::Json pod) { return SlimPodFor(mode, std::move(pod)); }, PodPruning()};
}

PodKind KindOfPod(const kube::Json& pod, Mode mode) {
  if (!kube::IsPacked(pod)) return ReadKind(pod, mode);
  std::string_view note = kube::NoteOf(pod);
  const bool passed_the_gate = note.starts_with(kPassedTheGate);
  if (passed_the_gate) note.remove_prefix(1);
  return {GangKey::Parse(note), passed_the_gate};
}

Slimming SlimNodes() {
  return {SlimNode,
          kube::Pruning(
              {"metadata.annotations", "metadata.creationTimestamp", "metadata.finalizers", "spec.podCIDR",
               "spec.podCIDRs", "spec.providerID", "status.addresses", "status.capacity", "status.config",
               "status.daemonEndpoints", "status.features", "status.images", "status.nodeInfo",
               "status.runtimeHandlers", "status.volumesAttached", "status.volumesInUse"},
              {{"status.conditions", "type", "Ready"}})};
}

Slimming SlimTopologies() {
  return {SlimTopology, kube::Pruning({"metadata.labels", "metadata.annotations", "metadata.ownerReferences",
                                       "metadata.creationTimestamp", "spec.labels", "spec.lossless",
                                       "spec.devices", "status.conditions", "status.summary",
                                       "status.lossless", "status.devices", "status.congestion"})};
}

// What the operator says of a fabric changes with each cable that is looked at, and is not planned by.
Slimming SlimFabrics() {
  return {SlimFabric, kube::Pruning({"status"})};
}

// Of what makes pods, the pods' template is the most, and is read from the pods.
Slimming SlimOwners() {
  return {SlimOwner, kube::Pruning({"spec.template", "spec.volumeClaimTemplates"})};
}

Slimming SlimGangs() {
  return {kube::DropManagedFields, {}};
}

}  // namespace heddle::extender
