#include "crds/kept_text.h"

#include <algorithm>
#include <cstdint>

namespace heddle::crds {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character at the start of `text`, 0 where it is none: overlong forms, surrogates and
// values behind U+10FFFF are none (Unicode 15, table 3-7).
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? std::uint8_t(text[i]) : std::uint8_t(0); };
  const auto follows = [&](std::size_t i, std::uint8_t low = 0x80, std::uint8_t high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const std::uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const std::uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const std::uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string KeptText(std::string_view text, std::size_t max_characters) {
  std::string clean;
  std::size_t characters = 0;
  std::size_t last = 0;  // where the last character of `clean` starts
  while (!text.empty()) {
    if (characters == max_characters) {
      clean.replace(last, std::string::npos, "…");
      break;
    }
    const std::size_t length = CharacterLength(text);
    last = clean.size();
    clean += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
    ++characters;
  }
  return clean;
}

}  // namespace heddle::crds
