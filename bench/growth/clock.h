#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace heddle::growth {

struct Times {
  double p50 = 0, p99 = 0, max = 0;  // microseconds
  std::size_t runs = 0;
};

// Runs `work` for so many seconds, at least `least` times, after one run that does not count.
inline Times TimeOf(double seconds, std::size_t least, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  work();
  std::vector<double> micros;
  const auto begin = Clock::now();
  for (auto now = begin; micros.size() < least || now - begin < std::chrono::duration<double>(seconds);) {
    const auto start = now;
    work();
    now = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(now - start).count());
  }
  std::sort(micros.begin(), micros.end());
  return {micros[micros.size() / 2], micros[micros.size() * 99 / 100], micros.back(), micros.size()};
}

}  // namespace heddle::growth
