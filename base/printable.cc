#include "base/printable.h"

#include <algorithm>

namespace heddle::base {

std::string Printable(std::string_view bytes, std::size_t limit) {
  constexpr std::string_view kBlank(" \t\r\n\0", 5);
  const std::size_t begin = bytes.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  bytes = bytes.substr(begin, bytes.find_last_not_of(kBlank) - begin + 1);
  std::string text(bytes.substr(0, limit));
  text.resize(text.find_last_not_of(kBlank) + 1);  // a cut may end in a blank; npos + 1 is 0
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

}  // namespace heddle::base
