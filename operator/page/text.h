#pragma once

#include <string>
#include <string_view>

#include "base/cut_utf8.h"
#include "kube/object.h"

namespace heddle::operators::page {

// What is no UTF-8 becomes U+FFFD: objects come from whoever may write them.
inline std::string Dump(const kube::Json& json) {
  return json.dump(-1, ' ', false, kube::Json::error_handler_t::replace);
}

// At most `limit` bytes, cut at a character border of UTF-8.
inline std::string Cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  return base::CutUtf8(text, limit) + "…";
}

}  // namespace heddle::operators::page
