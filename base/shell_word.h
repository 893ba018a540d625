#pragma once

#include <string>
#include <string_view>

namespace heddle::base {

// In single quotes, so that a shell takes it for one word, whatever is in it.
inline std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace heddle::base
