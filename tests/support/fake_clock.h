#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/clock.h"

namespace heddle::test {

// Time that moves only when a test says so. Wall and monotonic time move together.
class FakeClock final : public base::Clock {
 public:
  explicit FakeClock(base::WallTime start = base::WallTime{std::chrono::seconds(1'800'000'000)});

  base::WallTime WallNow() override;
  base::MonotonicTime Now() override;
  bool SleepUntil(base::MonotonicTime deadline, std::stop_token stop) override;

  // Moves time forward, stopping at every sleeper's deadline on the way: the sleeper is released there, and
  // this goes on only when it has either gone to sleep again or left (or after a fifth of a real second of
  // doing something else). Sleepers wake in the order of their deadlines, then of their arrival.
  void Advance(std::chrono::nanoseconds duration);
  void AdvanceTo(base::MonotonicTime time);
  // Moves to the earliest deadline, if somebody sleeps. Returns whether somebody did.
  bool AdvanceToNextSleeper();

  // From now on a sleep takes no real time: time jumps to its deadline. For code on one thread.
  void set_auto_advance(bool on);
  // Wall time alone, as when somebody sets a machine's clock.
  void ShiftWall(std::chrono::nanoseconds by);

  // Blocks until at least `count` threads sleep; false after `limit` of real time.
  bool WaitForSleepers(std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds(10));
  std::size_t sleepers() const;

 private:
  using Key = std::pair<base::MonotonicTime, std::uint64_t>;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  base::MonotonicTime now_{std::chrono::hours(1)};
  base::WallTime wall_;
  std::map<Key, bool> sleeping_;  // value: released
  std::uint64_t arrivals_ = 0;
  bool auto_advance_ = false;
};

}  // namespace heddle::test
