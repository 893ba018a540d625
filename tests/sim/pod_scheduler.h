#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/actor.h"
#include "tests/sim/pod_row.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// kube-scheduler, one active of several replicas: binds pods past their gates to nodes that their node affinity names,
// that are ready, and that have enough GPUs by its own account, its assumed pods included, and a channel for a pod that
// claims one (each node has one); asks the extender beside
// it to filter and to prioritize, and to preempt where a pod of no gang with a higher priority finds no room. It holds the Lease heddle-scheduler where the extenders follow it. Thread rule: as Simulation.
class PodScheduler {
 public:
  // What the extender on that host answers to "/filter" and its like; nothing when it cannot be reached.
  using Verb = std::function<std::optional<kube::Json>(const std::string& host, const std::string& path,
                                                       const kube::Json& body)>;
  // Told of an answer that kube-scheduler would stumble over.
  using Wrong = std::function<void(const std::string& sentence)>;
  // Replicas on these hosts; with `verb` each has an extender beside it and holds the Lease.
  PodScheduler(Simulation& simulation, test::FakeApiServer& server, std::vector<std::string> hosts, Verb verb,
               Wrong wrong);

  void Look();
  void Kick() { pace_.Kick(); }
  // The active replica dies; another takes the Lease when it has expired, or at once where it was released.
  void FailOver(bool released);
  // The active replica dies and is started again: what it had assumed and whom it let wait is forgotten. Of its
  // bindings some were sent before and land.
  void Restart();
  const std::string& active() const { return active_; }

 private:
  struct Attempt {
    int failures = 0;
    base::MonotonicTime not_before{};
    std::string nominated;  // where others were told to make room for it
  };
  void TryPod(const PodRow& pod, const kube::Json& object, const std::vector<PodRow>& pods,
              std::map<std::string, int>& free);
  std::optional<std::vector<std::string>> Filtered(const kube::Json& pod,
                                                   const std::vector<std::string>& nodes);
  std::string Best(const kube::Json& pod, const std::vector<std::string>& nodes);
  void Preempt(const PodRow& pod, const kube::Json& object, const std::vector<PodRow>& pods,
               const std::map<std::string, int>& free);
  void Forget();
  void Bind(const kube::ObjectKey& key, const std::string& uid, const std::string& node);
  void Refuse(const kube::Json& pod, const std::string& why);
  std::map<std::string, int> FreeGpus(const std::vector<PodRow>& pods) const;
  std::set<std::string> TakenChannels(const std::vector<PodRow>& pods) const;
  void Renew();
  void Take(const std::string& host);

  Simulation& simulation_;
  test::FakeApiServer& server_;
  base::Random random_;
  const std::vector<std::string> hosts_;
  const Verb verb_;
  const Wrong wrong_;
  std::string active_;
  std::map<std::string, Attempt> attempts_;  // by pod UID
  struct Assumed {
    std::string node;
    int gpus = 0;
    bool channel = false;
  };
  std::map<std::string, Assumed> assumed_;  // by pod UID: binding is under way
  std::set<std::string> landing_;           // pod UIDs: sent by a replica that has died since
  Pace pace_;
};

}  // namespace heddle::sim
