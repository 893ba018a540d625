#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/cut_utf8.h"

namespace heddle::operators {

// At most `limit` bytes of `text`, which then ends in "...". Requires: limit > 3.
inline std::string CutText(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  return base::CutUtf8(text, limit - 3) + "...";
}

}  // namespace heddle::operators
