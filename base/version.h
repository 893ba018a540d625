#pragma once

#include <string_view>

namespace heddle::base {

// Of every program of this tree. The chart's appVersion is the same; a test compares them.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace heddle::base
