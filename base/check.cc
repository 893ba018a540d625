#include "base/check.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace heddle::base {

void CheckFailed(std::string_view condition, std::string_view file, int line) {
  fmt::print(stderr, "{}:{}: CHECK failed: {}\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace heddle::base
