#include "base/json_bounds.h"

#include <algorithm>

namespace heddle::base {

namespace {

// Calls each(byte, character, depth behind it) for all that stands in no string, until it says false; whether it
// never did.
template <class Each>
bool OutsideStrings(std::string_view json, Each each) {
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
    if (!each(i, c, depth)) return false;
  }
  return true;
}

}  // namespace

bool IsBounded(std::string_view json, std::size_t max_values, int max_depth) {
  return CountValues(json, max_values, max_depth).has_value();
}

std::optional<std::size_t> CountValues(std::string_view json, std::size_t max_values, int max_depth) {
  std::size_t values = 0;
  const bool bounded = OutsideStrings(json, [&](std::size_t, char c, int depth) {
    values += c == ',' || c == '[' || c == '{' ? 1 : 0;
    return depth <= max_depth && values <= max_values;
  });
  return bounded ? std::optional(values + 1) : std::nullopt;
}

std::size_t EndOfValue(std::string_view text) {
  std::size_t end = text.size();
  OutsideStrings(text, [&](std::size_t at, char c, int depth) {
    if (depth != 0 || (c != '}' && c != ']')) return true;
    end = at + 1;
    return false;
  });
  return end;
}

int LineOf(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  return 1 + int(std::count(before.begin(), before.end(), '\n'));
}

}  // namespace heddle::base
