#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace heddle::nodeagent {

enum class Pass : std::uint8_t { kLook, kCounterPass, kLeafPass };
std::string_view PassName(Pass pass);  // "look", "counters", "leaf"

// A pass that has been under way for longer than one ever takes that is in order: it is in a call into the kernel that
// does not come back, and nothing can end that.
struct StuckPass {
  Pass pass = Pass::kLook;
  base::WallTime since{};  // when it began
  friend bool operator==(const StuckPass&, const StuckPass&) = default;
};

// "the pass over the counters has not ended since …", for people; empty without any.
std::string StuckText(const std::vector<StuckPass>& passes);

// Which passes are under way, and since when. Thread rule: every member may be called from any thread.
class PassTimes {
 public:
  // One of a kind at a time.
  void Began(Pass pass, base::MonotonicTime now, base::WallTime wall);
  void Ended(Pass pass);
  // Those of `at_most` that have been under way for longer than it says, in the order of Pass.
  std::vector<StuckPass> Stuck(const std::map<Pass, std::chrono::nanoseconds>& at_most,
                               base::MonotonicTime now) const;

 private:
  struct Begin {
    base::MonotonicTime at{};
    base::WallTime wall{};
  };
  mutable std::mutex mutex_;
  std::map<Pass, Begin> under_way_;
};

}  // namespace heddle::nodeagent
