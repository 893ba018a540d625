#pragma once

#include <span>
#include <string_view>

namespace heddle::cli {

// The text of crds/*.yaml as of this build; CMake writes the other half of this header.
std::span<const std::string_view> KnownCrdTexts();

}  // namespace heddle::cli
