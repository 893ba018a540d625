#include "operator/node_label_reconciler.h"

#include <spdlog/spdlog.h>

#include "operator/node_labels.h"

namespace heddle::operators {

NodeLabelReconciler::NodeLabelReconciler(kube::Client& client, const View& nodes,
                                         const CurrentAssembly& assembly)
    : client_(client), nodes_(nodes), assembly_(assembly) {}

base::Result<Outcome> NodeLabelReconciler::Reconcile(const std::string& node, const std::stop_token& stop) {
  const kube::ObjectKey key{"", node};
  const kube::ObjectPtr object = nodes_.Get(key);
  const AssemblyPtr assembly = assembly_.Get();
  // Before the first assembly nothing is known to be untrue.
  if (object == nullptr || assembly == nullptr || kube::Uid(*object).empty()) return Outcome{};
  const std::optional<kube::Json> patch = LabelPatch(*object, assembly->LabelsOf(node));
  if (!patch) return Outcome{};
  const auto patched = client_.Patch(kube::kNodes, key, kube::PatchType::kMerge, *patch, {}, stop);
  if (patched) {
    const kube::Json& labels = (*patch)["metadata"]["labels"];
    spdlog::info("Labelled node={} changed={}", node, labels.size());
    spdlog::debug("Labelled node={} labels={}", node, labels.dump());
    return Outcome{.writes = 1};
  }
  // The Node is gone or another one: the cache will show it.
  if (patched.error().code == base::Code::kNotFound || patched.error().code == base::Code::kConflict) {
    return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  }
  return base::Fail(patched.error().In("label node " + node));
}

}  // namespace heddle::operators
