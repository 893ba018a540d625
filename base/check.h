#pragma once

#include <string_view>

namespace heddle::base {
[[noreturn]] void CheckFailed(std::string_view condition, std::string_view file, int line);
}

// A bug in Heddle, on in release too. Never on bytes that came from outside: those are a Result.
#define CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::heddle::base::CheckFailed(#condition, __FILE__, __LINE__))
