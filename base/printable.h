#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::base {

// The longest name that we take from outside: LLDP allows 255 bytes, InfiniBand node descriptions have 64.
inline constexpr std::size_t kMaxName = 255;

// Names that switches, firmware and drivers chose end in API objects and logs, which take UTF-8 only. Each
// byte that is not printable ASCII becomes '?', outer blanks go, and what is over the limit is cut.
std::string Printable(std::string_view bytes, std::size_t limit = kMaxName);

}  // namespace heddle::base
