#include "tests/support/fake_clock.h"

namespace heddle::test {
namespace {

// How long Advance waits for a thread that it woke to sleep again, in real time. Longer only costs when a
// thread leaves.
constexpr std::chrono::milliseconds kSettle{200};

}  // namespace

FakeClock::FakeClock(base::WallTime start) : wall_(start) {}

base::WallTime FakeClock::WallNow() {
  const std::lock_guard lock(mutex_);
  return wall_;
}

base::MonotonicTime FakeClock::Now() {
  const std::lock_guard lock(mutex_);
  return now_;
}

bool FakeClock::SleepUntil(base::MonotonicTime deadline, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (deadline <= now_ || stop.stop_requested()) return !stop.stop_requested();
  if (auto_advance_) {
    wall_ += std::chrono::duration_cast<std::chrono::microseconds>(deadline - now_);
    now_ = deadline;
    return true;
  }
  const auto entry = sleeping_.emplace(Key{deadline, arrivals_++}, false).first;
  changed_.notify_all();
  changed_.wait(lock, stop, [&] { return entry->second || now_ >= deadline; });
  sleeping_.erase(entry);
  changed_.notify_all();
  return !stop.stop_requested();
}

void FakeClock::Advance(std::chrono::nanoseconds duration) {
  AdvanceTo(Now() + duration);
}

void FakeClock::AdvanceTo(base::MonotonicTime time) {
  std::unique_lock lock(mutex_);
  const auto move_to = [&](base::MonotonicTime to) {
    if (to <= now_) return;
    wall_ += std::chrono::duration_cast<std::chrono::microseconds>(to - now_);
    now_ = to;
  };
  while (!sleeping_.empty() && sleeping_.begin()->first.first <= time) {
    const Key key = sleeping_.begin()->first;
    const std::uint64_t arrivals = arrivals_;
    move_to(key.first);
    sleeping_.begin()->second = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return !sleeping_.contains(key); });
    changed_.wait_for(lock, kSettle, [&] { return arrivals_ != arrivals; });
  }
  move_to(time);
  changed_.notify_all();
}

bool FakeClock::AdvanceToNextSleeper() {
  base::MonotonicTime deadline;
  {
    const std::lock_guard lock(mutex_);
    if (sleeping_.empty()) return false;
    deadline = sleeping_.begin()->first.first;
  }
  AdvanceTo(deadline);
  return true;
}

void FakeClock::set_auto_advance(bool on) {
  const std::lock_guard lock(mutex_);
  auto_advance_ = on;
}

void FakeClock::ShiftWall(std::chrono::nanoseconds by) {
  const std::lock_guard lock(mutex_);
  wall_ += std::chrono::duration_cast<std::chrono::microseconds>(by);
}

bool FakeClock::WaitForSleepers(std::size_t count, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return sleeping_.size() >= count; });
}

std::size_t FakeClock::sleepers() const {
  const std::lock_guard lock(mutex_);
  return sleeping_.size();
}

}  // namespace heddle::test
