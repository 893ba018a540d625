#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::lossless {

// Pause frames that would stop a port for good: each stops it for 65,535 quanta of 512 bit times at most
// (IEEE 802.3 annex 31B), so it takes this many of them in a second.
constexpr std::uint64_t FullPausePerSecond(int rate_gbps) {
  constexpr std::uint64_t kBitsOfOnePause = 65'535 * 512;
  return std::uint64_t(std::max(rate_gbps, 1)) * 1'000'000'000 / kBitsOfOnePause;
}

}  // namespace heddle::lossless
