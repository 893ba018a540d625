#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "extender/gang_key.h"

namespace heddle::extender {

// How soon a gang of hundreds of pods and more is looked at again because something of it changed. A look reads what is
// known of each of its pods, and of such a gang they come by the hundred in a second: a look for each would cost the
// square of the pods. So one that took long rests for four times as long, and takes a fifth of the time; nobody else's
// looks rest. Thread rule: every member may be called from any thread.
class LookRest {
 public:
  static constexpr int kLarge = 512;  // pods; what else a look costs does not grow with the gang
  static constexpr std::chrono::nanoseconds kShort = std::chrono::milliseconds(10);
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(1);

  // What changes during this look is looked at when it has rested, too: as long as the last one took.
  void Began(const GangKey& gang, base::MonotonicTime now) {
    const std::lock_guard lock(mutex_);
    if (const auto known = rests_.find(gang); known != rests_.end())
      known->second.until = now + known->second.took + RestOf(known->second.took);
  }
  void Ended(const GangKey& gang, int pods, base::MonotonicTime began, base::MonotonicTime now) {
    const std::lock_guard lock(mutex_);
    const std::chrono::nanoseconds took = now - began;
    if (pods < kLarge || took < kShort) {
      rests_.erase(gang);
    } else {
      rests_[gang] = {now + RestOf(took), took};
    }
  }
  // Until the next look; zero or less = now.
  std::chrono::nanoseconds Wait(const GangKey& gang, base::MonotonicTime now) const {
    const std::lock_guard lock(mutex_);
    const auto known = rests_.find(gang);
    return known == rests_.end() ? std::chrono::nanoseconds(0) : known->second.until - now;
  }
  // Of gangs that go while somebody else leads nobody hears here.
  void Clear() {
    const std::lock_guard lock(mutex_);
    rests_.clear();
  }

 private:
  struct Rest {
    base::MonotonicTime until;
    std::chrono::nanoseconds took{};  // of the last look
  };
  static std::chrono::nanoseconds RestOf(std::chrono::nanoseconds took) {
    return std::min(4 * took, kLongest);
  }

  mutable std::mutex mutex_;
  std::map<GangKey, Rest> rests_;
};

}  // namespace heddle::extender
