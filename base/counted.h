#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace heddle::base {

// "1 node", "0 nodes", "2 nodes". `noun` is one whose plural takes an s.
template <std::integral Count>
std::string Counted(Count count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace heddle::base
