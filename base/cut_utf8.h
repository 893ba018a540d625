#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::base {

// At most `limit` bytes of `text`, cut in front of a character of UTF-8 and never within one: half a character is
// refused by API servers and by strict JSON.
inline std::string CutUtf8(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
  return std::string(text.substr(0, limit));
}

}  // namespace heddle::base
