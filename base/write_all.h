#pragma once

#include <cstdio>
#include <string>

#include "base/result.h"

namespace heddle::base {

// All of it, down to who reads it: a disk that is full says so at the end only. Errors: kInternal, and name standard
// output.
[[nodiscard]] Status WriteAll(const std::string& text, std::FILE* standard_output);

}  // namespace heddle::base
