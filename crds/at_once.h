#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace heddle::crds {

// What the containers of a pod take that run at the same time, as kube-scheduler counts it (PodRequests of
// k8s.io/component-helpers/resource): all of spec.containers beside the sidecars, which are the init containers with
// restartPolicy Always, or the one init container that takes the most beside the sidecars before it, whichever is more.
// Overhead and resources of the whole pod are the caller's.
//
// `Amount`: nothing when it is made, with Add(const Amount&), and Raise(const Amount&) to no less than that.
// Thread rule: one owner.
template <class Amount>
class AtOnce {
 public:
  // In the order of spec.initContainers.
  void AddInit(const Amount& own, bool sidecar) {
    Amount beside = sidecars_;
    beside.Add(own);
    starting_.Raise(beside);
    if (sidecar) sidecars_ = std::move(beside);
  }
  void AddMain(const Amount& own) { running_.Add(own); }
  Amount Most() const {
    Amount most = running_;
    most.Add(sidecars_);
    most.Raise(starting_);
    return most;
  }

 private:
  Amount running_, sidecars_, starting_;
};

// Of one resource. Requires: its sums fit.
struct CountAtOnce {
  std::int64_t count = 0;
  void Add(const CountAtOnce& more) { count += more.count; }
  void Raise(const CountAtOnce& least) { count = std::max(count, least.count); }
};

}  // namespace heddle::crds
