#pragma once

#include <stop_token>
#include <string>

#include "kube/client.h"
#include "operator/assembly.h"
#include "operator/outcome.h"
#include "operator/view.h"

namespace heddle::operators {

// Puts the topology labels of the current assembly on the Nodes, by a merge patch of only what differs.
class NodeLabelReconciler {
 public:
  // `client` writes as field manager heddle-operator-labels.
  NodeLabelReconciler(kube::Client& client, const View& nodes, const CurrentAssembly& assembly);

  [[nodiscard]] base::Result<Outcome> Reconcile(const std::string& node, const std::stop_token& stop);

 private:
  kube::Client& client_;
  const View& nodes_;
  const CurrentAssembly& assembly_;
};

}  // namespace heddle::operators
