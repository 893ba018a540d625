#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"
#include "operator/other_plugins.h"
#include "operator/outcome.h"
#include "operator/policies.h"
#include "operator/view.h"

namespace heddle::operators {

// Where the objects of other RDMA device plugins are made, and of which images. No image, no plugin.
struct OtherPlugins {
  std::string ns = "heddle-system";
  std::map<crds::DevicePlugin, std::string> images;
  std::string kubelet_root{kKubeletRoot};  // the kubelets' --root-dir
  PluginPods pods;
};

// Keeps a ConfigMap and a DaemonSet for each class of nodes, and the label of each node that picks its class. What
// somebody took away or a crash left half done is put right within a minute. Nothing is asked of the server while
// there is no class and no node has such a label. Thread rule: one thread at a time.
class PluginObjects {
 public:
  // `labels_client` writes as field manager heddle-operator-labels.
  PluginObjects(kube::Client& client, kube::Client& labels_client, base::Clock& clock, OtherPlugins plugins)
      : client_(client), labels_client_(labels_client), clock_(clock), plugins_(std::move(plugins)) {}

  const OtherPlugins& plugins() const { return plugins_; }
  // `unread`: nobody knows which class these are of, so they stay in the one that their label picks.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::vector<PluginClass>& classes, const View& nodes,
                                                const std::vector<UnreadNode>& unread,
                                                const std::stop_token& stop);
  // The next look asks the server, also where nothing is wanted: another leader may have left something behind.
  void Forget() { last_look_.reset(); }

 private:
  using Wanted = std::map<std::string, kube::Json>;      // by name
  using Seen = std::map<std::string, kube::ObjectList>;  // what there was of ours in this look, by kind
  using Kept = std::map<std::string, std::string>;       // the class of each unread node that has one
  base::Result<const kube::ObjectList*> There(const kube::Resource& kind, Seen& seen,
                                              const std::stop_token& stop);
  // Makes what is missing or other, counted in `total`.
  base::Status Make(const kube::Resource& kind, const Wanted& wanted, Seen& seen, const std::stop_token& stop,
                    Outcome& total);
  base::Status Sweep(const kube::Resource& kind, const Wanted& wanted, const Kept& kept, Seen& seen,
                     const std::stop_token& stop, Outcome& total);
  base::Status Label(const std::vector<PluginClass>& classes, const Kept& kept, const View& nodes,
                     const std::stop_token& stop, Outcome& total);

  kube::Client& client_;
  kube::Client& labels_client_;
  base::Clock& clock_;
  const OtherPlugins plugins_;
  bool idle_ = false;  // the last look found nothing of ours and wanted nothing
  std::vector<PluginClass> last_;
  Kept last_kept_;
  std::optional<base::MonotonicTime> last_look_;
};

}  // namespace heddle::operators
