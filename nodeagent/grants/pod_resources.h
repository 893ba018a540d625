#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_tree.h"
#include "nodeagent/grants/grants.h"

namespace heddle::nodeagent {

// Where a kubelet with the usual --root-dir listens: the folder moves with that (k8s.io/kubernetes
// pkg/kubelet/kubelet_getters.go).
inline constexpr std::string_view kPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

struct PodResourcesOptions {
  std::string socket{kPodResourcesSocket};
  // For both calls together. The kubelet answers from memory in milliseconds.
  std::chrono::milliseconds deadline{5'000};
  // Of one answer. 110 pods of ten devices each take 100 KB.
  int max_message = 4 << 20;
};

// The kubelet's pod-resources API over its Unix socket. Every Read connects anew: nothing is kept open and no
// thread of gRPC's runs in between, a kubelet that was restarted is found at once, and there is no reconnecting
// behind our back. Thread rule: one thread.
class PodResources final : public GrantSource {
 public:
  // `files`: rooted at "/", for what sysfs says of device ids. It must outlive this.
  PodResources(const base::FileTree& files, PodResourcesOptions options)
      : files_(files), options_(std::move(options)) {}
  GrantReadings Read(std::stop_token stop) override;

 private:
  const base::FileTree& files_;
  const PodResourcesOptions options_;
};

// What one encoded ListPodResourcesResponse says, sorted, without `functions`. kNoAnswer: it is none, or beyond all
// bounds. Pure and total.
GrantReadings GrantsOfAnswer(std::string_view message);

// For --print: asks once, and nobody where there is no kubelet (null). Where no socket was `named`, that none is there
// says nothing: who prints a machine that is no node has not asked for its kubelet.
GrantReadings ReadOnce(GrantSource* kubelet, bool named, const std::stop_token& stop);

// The kubelet that listens on a socket; null for "".
std::unique_ptr<GrantSource> OpenKubelet(const base::FileTree& files, const std::string& socket,
                                         std::chrono::milliseconds deadline = PodResourcesOptions().deadline);

}  // namespace heddle::nodeagent
