#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "extender/gang_key.h"

namespace heddle::extender {

// How soon a gang is looked at again because something of it changed. A look reads what is known of each of its pods,
// and of a gang of thousands pods come by the hundred in a second: a look for each would cost the square of the pods.
// So one that took long rests for four times as long, and takes a fifth of the time; those of other gangs do not rest.
// Thread rule: every member may be called from any thread.
class LookRest {
 public:
  static constexpr std::chrono::nanoseconds kShort = std::chrono::milliseconds(10);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(1);

  void Took(const GangKey& gang, base::MonotonicTime started, base::MonotonicTime ended) {
    const std::lock_guard lock(mutex_);
    if (ended - started < kShort) {
      until_.erase(gang);
    } else {
      until_[gang] = ended + std::min(4 * (ended - started), kLongest);
    }
  }
  // Until the next look; zero or less = now.
  std::chrono::nanoseconds Wait(const GangKey& gang, base::MonotonicTime now) const {
    const std::lock_guard lock(mutex_);
    const auto found = until_.find(gang);
    return found == until_.end() ? std::chrono::nanoseconds(0) : found->second - now;
  }

 private:
  mutable std::mutex mutex_;
  std::map<GangKey, base::MonotonicTime> until_;
};

}  // namespace heddle::extender
