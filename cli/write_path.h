#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace heddle::cli {

// Puts a text where a path says; main.cc writes the disk.
using WriteFile = std::function<base::Status(const std::string& path, const std::string& text)>;

// The whole file, which is replaced where it is there already. Errors name the path.
[[nodiscard]] base::Status WritePath(const std::string& path, const std::string& text);

}  // namespace heddle::cli
