#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace heddle::nodeagent {

// Patterns of names as whoever runs the node writes them, with the shell's *, ? and [...] (fnmatch). Pure.

inline constexpr std::size_t kMaxGlobs = 128;  // as many as a node has NICs
inline constexpr std::size_t kMaxGlob = 64;    // characters: IB_DEVICE_NAME_MAX of the kernel

struct RefusedGlob {
  std::string_view pattern;  // of the text that was given
  std::string why;
};

// The patterns of "mlx5_1,mlx5_[45]", in order; empty text has none. Refused: an empty one, one that is too long, too
// many. What each of them says is not looked at.
[[nodiscard]] tl::expected<std::vector<std::string_view>, RefusedGlob> SplitGlobs(std::string_view text);

// Why no device's name matches it; empty: one may.
std::string WhyNoGlob(std::string_view glob);
// Only stars.
bool IsEverything(std::string_view glob);
bool MatchesGlob(const std::string& glob, const std::string& name);

}  // namespace heddle::nodeagent
