#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/actor.h"
#include "tests/sim/pod_row.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// kube-scheduler, one active of several replicas: binds pods past their gates to nodes that their node affinity names,
// that are ready, and that have enough GPUs by its own account, its assumed pods included; asks the extender beside
// it to filter. It holds the Lease heddle-scheduler where the extenders follow it. Thread rule: as Simulation.
class PodScheduler {
 public:
  // Whether the extender on that host lets the pod onto the node; nothing when it cannot be reached.
  using Filter = std::function<std::optional<bool>(const std::string& host, const kube::Json& pod,
                                                   const std::string& node)>;
  // Replicas on these hosts; with `filter` each has an extender beside it and holds the Lease.
  PodScheduler(Simulation& simulation, test::FakeApiServer& server, std::vector<std::string> hosts,
               Filter filter);

  void Look();
  void Kick() { pace_.Kick(); }
  // The active replica dies; another takes the Lease when it has expired, or at once where it was released.
  void FailOver(bool released);
  const std::string& active() const { return active_; }

 private:
  struct Attempt {
    int failures = 0;
    base::MonotonicTime not_before{};
  };
  void TryPod(const PodRow& pod, const kube::Json& object, std::map<std::string, int>& free);
  void Bind(const kube::ObjectKey& key, const std::string& uid, const std::string& node);
  void Refuse(const kube::Json& pod, const std::string& why);
  std::map<std::string, int> FreeGpus(const std::vector<PodRow>& pods) const;
  void Renew();
  void Take(const std::string& host);

  Simulation& simulation_;
  test::FakeApiServer& server_;
  base::Random random_;
  const std::vector<std::string> hosts_;
  const Filter filter_;
  std::string active_;
  std::map<std::string, Attempt> attempts_;  // by pod UID
  struct Assumed {
    std::string node;
    int gpus = 0;
  };
  std::map<std::string, Assumed> assumed_;  // by pod UID: binding is under way
  Pace pace_;
};

}  // namespace heddle::sim
