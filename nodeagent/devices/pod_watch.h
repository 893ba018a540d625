#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client.h"
#include "kube/reflector.h"

namespace heddle::nodeagent {

// The pods of one node, as far as their devices go: of each the cache holds names, times, annotations, phase, and what
// its containers ask for and may do. Thread rule: Run on a thread of its own; the rest from any.
class PodWatch {
 public:
  // on_change: after each change; must not block. It comes on Run's thread.
  PodWatch(kube::Client& client, base::Clock& clock, base::Random random, const std::string& node,
           kube::Log log, std::function<void()> on_change);

  void Run(std::stop_token stop) { reflector_.Run(std::move(stop)); }
  std::vector<kube::ObjectPtr> Pods() const { return reflector_.store().List().items(); }
  // The same, asked of the server anew, for two seconds at most; else what the watch has shown. Of a pod that was bound
  // just now the kubelet may know before the watch does.
  std::vector<kube::ObjectPtr> Now();

 private:
  kube::Client& client_;
  base::Clock& clock_;
  const std::string node_;
  kube::Reflector reflector_;
};

}  // namespace heddle::nodeagent
