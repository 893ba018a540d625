#pragma once

#include <string>

#include "base/result.h"

namespace heddle::cli {

// The whole file, "-" for standard input. Errors name the path: what cannot be opened, a directory, and what
// is larger than 1 GiB (the topology of 100,000 nodes is a third of that), so that a device without an end is
// no end of memory. A byte order mark of UTF-8 before the text is left out. The text has room behind it for
// simdjson's padding.
[[nodiscard]] base::Result<std::string> ReadPath(const std::string& path);

}  // namespace heddle::cli
