#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace heddle::base {

// Wall time is for what people and other machines read; monotonic time is for deadlines. They are different
// types, so that one is never compared with the other.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Thread rule: every member may be called from any thread.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual WallTime WallNow() = 0;
  virtual MonotonicTime Now() = 0;
  // Returns true at the deadline, false as soon as `stop` asks.
  virtual bool SleepUntil(MonotonicTime deadline, std::stop_token stop) = 0;

  bool SleepFor(std::chrono::nanoseconds duration, std::stop_token stop) {
    return SleepUntil(Now() + duration, std::move(stop));
  }
};

// The machine's clock. Only a main.cc makes one.
class SystemClock final : public Clock {
 public:
  WallTime WallNow() override;
  MonotonicTime Now() override;
  bool SleepUntil(MonotonicTime deadline, std::stop_token stop) override;
};

// RFC 3339 in UTC as Kubernetes writes it: Time has whole seconds, MicroTime (Leases) six digits.
std::string FormatTime(WallTime time);
std::string FormatMicroTime(WallTime time);
// Takes any RFC 3339 date-time with `Z` or a numeric offset and up to nine fraction digits; nothing
// otherwise.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace heddle::base
