#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <vector>

namespace heddle::growth {

struct Times {
  double p50 = 0, p99 = 0, max = 0;  // microseconds
  std::size_t runs = 0;
};

// What passes: on a shared machine other programs' turns are in it. Or what this thread computed, the kernel's
// part for it included: for work that waits for nothing that is the wall time of an idle machine.
enum class Clock : clockid_t { kWall = CLOCK_MONOTONIC, kThread = CLOCK_THREAD_CPUTIME_ID };

inline double Micros(Clock clock) {
  timespec now{};
  clock_gettime(clockid_t(clock), &now);
  return double(now.tv_sec) * 1e6 + double(now.tv_nsec) / 1e3;
}

// Runs `work` for so many seconds, at least `least` times, after one run that does not count.
inline Times TimeOf(Clock clock, double seconds, std::size_t least, const std::function<void()>& work) {
  work();
  std::vector<double> micros;
  const double end = Micros(Clock::kWall) + seconds * 1e6;
  while (micros.size() < least || Micros(Clock::kWall) < end) {
    const double start = Micros(clock);
    work();
    micros.push_back(Micros(clock) - start);
  }
  std::sort(micros.begin(), micros.end());
  return {micros[micros.size() / 2], micros[micros.size() * 99 / 100], micros.back(), micros.size()};
}

}  // namespace heddle::growth
