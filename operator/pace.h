#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/clock.h"

namespace heddle::operators {

// How often all nodes are looked at. A look costs as much as there are nodes, and while all of them change one after
// the other, as after a policy was changed, there is a reason for one all the time: looks as often as that cost the
// square of the nodes. So a look rests for nine times as long as it took, and takes a tenth of the time.
// Thread rule: every member may be called from any thread.
class Pace {
 public:
  // The same as between two writes of a status, so that nobody waits longer for what a look finds.
  static constexpr std::chrono::nanoseconds kLongestRest = std::chrono::seconds(10);

  void Took(base::MonotonicTime started, base::MonotonicTime ended) {
    const std::lock_guard lock(mutex_);
    next_ = ended + std::min(9 * (ended - started), kLongestRest);
  }
  // Until the next look may begin; zero or less = it may now.
  std::chrono::nanoseconds Wait(base::MonotonicTime now) const {
    const std::lock_guard lock(mutex_);
    return next_ - now;
  }

 private:
  mutable std::mutex mutex_;
  base::MonotonicTime next_{};
};

}  // namespace heddle::operators
