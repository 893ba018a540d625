#include "formats/json_bounds.h"

#include <algorithm>

namespace heddle::formats {

bool IsBounded(std::string_view json, std::size_t max_values, int max_depth) {
  std::size_t values = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    values += c == ',' || c == '[' || c == '{' ? 1 : 0;
    if (depth > max_depth || values > max_values) return false;
  }
  return true;
}

int LineOf(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  return 1 + int(std::count(before.begin(), before.end(), '\n'));
}

}  // namespace heddle::formats
