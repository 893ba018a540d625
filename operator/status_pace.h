#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "operator/back_off.h"

namespace heddle::operators {

// When the status of an object may be written: once in `least_interval`, and one that is urgent a second time within
// that. One that the server refuses is urgent for nobody: it is tried after `least_interval`, and then after pauses
// that grow, since another try alone mends nothing. Thread rule: one thread at a time.
class StatusPace {
 public:
  // As long as the queue leaves a key alone that fails (kube/work_queue.h), so a right that is given works by then.
  static constexpr std::chrono::nanoseconds kLongestWait = std::chrono::minutes(1);

  explicit StatusPace(std::chrono::nanoseconds least_interval) : least_(least_interval) {}

  // Until it may be written; zero = it may now, and is taken to be tried: also one that then fails counts, for a server
  // in trouble is not helped by more writes.
  std::chrono::nanoseconds UntilWrite(const std::string& object, bool urgent, base::MonotonicTime now) {
    Tried& tried = tried_[object];
    const auto left = [now](const std::optional<base::MonotonicTime>& last, std::chrono::nanoseconds pause) {
      return last ? *last + pause - now : std::chrono::nanoseconds(0);
    };
    if (tried.refusals > 0) {
      const auto wait = left(tried.last, WaitAfter(tried.refusals - 1, least_, kLongestWait));
      if (wait > wait.zero()) return wait;
    } else if (const auto wait = left(tried.last, least_); wait > wait.zero()) {
      if (!urgent || left(tried.last_urgent, least_) > wait.zero()) return wait;
      tried.last_urgent = now;
    }
    tried.last = now;
    return {};
  }

  // What became of the try.
  void Answered(const std::string& object, bool refused) {
    int& refusals = tried_[object].refusals;
    refusals = refused ? refusals + 1 : 0;
  }

 private:
  struct Tried {
    std::optional<base::MonotonicTime> last, last_urgent;
    int refusals = 0;  // in a row
  };
  const std::chrono::nanoseconds least_;
  std::map<std::string, Tried> tried_;  // by what the caller calls an object
};

}  // namespace heddle::operators
