#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "crds/node_topology.h"
#include "kube/client.h"
#include "operator/outcome.h"
#include "operator/view.h"

namespace heddle::operators {

// Which Nodes get a NodeTopology.
struct NodeSelection {
  bool all = true;  // else: those that offer one of gpu_resources or carry the label heddle.dev/agent=true
  std::vector<std::string> gpu_resources{"nvidia.com/gpu"};
};
bool Selects(const NodeSelection& selection, const kube::Json& node);

enum class TopologyAction : std::uint8_t {
  kNothing,
  kCreate,
  kAdopt,    // it is there and no Node owns it
  kLabel,    // its spec does not say what the Node's labels do
  kReplace,  // it describes a machine that had this name before: delete it, the next look creates it
};

// What the object of one Node needs. Null = there is no such Node, no such object.
// An object is never deleted because its Node is no longer selected: a device plugin that restarts would cost
// the whole topology. With its Node it goes by garbage collection.
TopologyAction DecideTopology(const NodeSelection& selection, const kube::Json* node,
                              const kube::Json* topology);

// The merge patch that makes the labels in a NodeTopology's spec those of its Node; nothing when they already are.
std::optional<kube::Json> SpecLabelPatch(const kube::Json& node, const kube::Json& topology);

// Keeps one NodeTopology for each Node, named as it and owned by it (by UID), so that it goes when the Node
// goes, and with the labels in its spec by which the Node's cloud says where it hangs.
class NodeTopologyReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
  };
  NodeTopologyReconciler(kube::Client& client, Reads reads, NodeSelection selection);

  [[nodiscard]] base::Result<Outcome> Reconcile(const std::string& node, const std::stop_token& stop);

 private:
  base::Result<Outcome> Create(const kube::Json& node, const std::stop_token& stop);
  base::Result<Outcome> Adopt(const kube::Json& node, const kube::Json& topology,
                              const std::stop_token& stop);
  base::Result<Outcome> Label(const kube::Json& node, const kube::Json& topology,
                              const std::stop_token& stop);
  base::Result<Outcome> Replace(const kube::Json& node, const kube::Json& topology,
                                const std::stop_token& stop);

  kube::Client& client_;
  const Reads reads_;
  const NodeSelection selection_;
};

}  // namespace heddle::operators
