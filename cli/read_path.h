#pragma once

#include <string>

#include "base/result.h"

namespace heddle::cli {

// What a file holds; "-" is standard input. Reads in large pieces and without a second copy: the file may be half the
// memory of the machine. The text has room for simdjson's padding.
[[nodiscard]] base::Result<std::string> ReadPath(const std::string& path);

}  // namespace heddle::cli
