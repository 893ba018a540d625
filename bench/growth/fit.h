#pragma once

#include <cmath>
#include <utility>
#include <vector>

namespace heddle::growth {

// The slope of log(time) over log(size) by least squares: 1 is linear.
inline double Exponent(const std::vector<std::pair<double, double>>& size_time) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = double(size_time.size());
  for (const auto& [size, time] : size_time) {
    const double a = std::log(size), b = std::log(time);
    x += a, y += b, xx += a * a, xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

// What N log N reads as over the same sizes.
inline double ExponentOfNLogN(std::vector<std::pair<double, double>> size_time) {
  for (auto& [size, time] : size_time) time = size * std::log2(size);
  return Exponent(size_time);
}

}  // namespace heddle::growth
