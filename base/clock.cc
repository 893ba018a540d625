#include "base/clock.h"

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <mutex>

namespace heddle::base {
namespace {

using std::chrono::days;
using std::chrono::duration_cast;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

struct Fields {
  int year, month, day, hour, minute, second, microsecond;
};

Fields Split(WallTime time) {
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const auto rest = time - day;
  const auto of_day = duration_cast<seconds>(rest).count();
  return Fields{int(date.year()),
                int(unsigned(date.month())),
                int(unsigned(date.day())),
                int(of_day / 3600),
                int(of_day / 60 % 60),
                int(of_day % 60),
                int(duration_cast<microseconds>(rest).count() % 1'000'000)};
}

// Takes exactly `count` digits off the front.
std::optional<int> TakeDigits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool Take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<microseconds> TakeFraction(std::string_view& text) {
  if (!Take(text, ".")) return microseconds{0};
  int digits = 0;
  std::int64_t micros = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (digits < 6) micros = micros * 10 + (text.front() - '0');
    if (++digits > 9) return std::nullopt;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (; digits < 6; ++digits) micros *= 10;
  return microseconds{micros};
}

// The offset east of UTC.
std::optional<minutes> TakeOffset(std::string_view& text) {
  if (Take(text, "Zz")) return minutes{0};
  if (text.empty()) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!Take(text, "+-")) return std::nullopt;
  const auto hour = TakeDigits(text, 2);
  if (!hour || !Take(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  return minutes{sign * (*hour * 60 + *minute)};
}

}  // namespace

WallTime SystemClock::WallNow() {
  return std::chrono::time_point_cast<microseconds>(std::chrono::system_clock::now());
}

MonotonicTime SystemClock::Now() {
  return std::chrono::steady_clock::now();
}

bool SystemClock::SleepUntil(MonotonicTime deadline, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_until(lock, stop, deadline, [] { return false; });
  return !stop.stop_requested();
}

std::string FormatTime(WallTime time) {
  const Fields f = Split(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", f.year, f.month, f.day, f.hour, f.minute,
                     f.second);
}

std::string FormatMicroTime(WallTime time) {
  const Fields f = Split(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", f.year, f.month, f.day, f.hour, f.minute,
                     f.second, f.microsecond);
}

std::optional<WallTime> ParseTime(std::string_view text) {
  const auto year = TakeDigits(text, 4);
  if (!year || !Take(text, "-")) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || !Take(text, "-")) return std::nullopt;
  const auto day = TakeDigits(text, 2);
  if (!day || !Take(text, "Tt ")) return std::nullopt;
  const auto hour = TakeDigits(text, 2);
  if (!hour || !Take(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || !Take(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  if (!second) return std::nullopt;
  const auto fraction = TakeFraction(text);
  if (!fraction) return std::nullopt;
  const auto offset = TakeOffset(text);
  if (!offset || !text.empty()) return std::nullopt;
  const year_month_day date{std::chrono::year{*year}, std::chrono::month{unsigned(*month)},
                            std::chrono::day{unsigned(*day)}};
  // 60 is a leap second; it reads as the next minute's first second.
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return WallTime{sys_days{date} + hours{*hour} + minutes{*minute} + seconds{*second} + *fraction - *offset};
}

}  // namespace heddle::base
