#pragma once

#include <string>
#include <string_view>

#include "kube/object.h"

namespace heddle::operators::page {

// What is no UTF-8 becomes U+FFFD: objects come from whoever may write them.
inline std::string Dump(const kube::Json& json) {
  return json.dump(-1, ' ', false, kube::Json::error_handler_t::replace);
}

// At most `limit` bytes, cut at a character border of UTF-8.
inline std::string Cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace heddle::operators::page
