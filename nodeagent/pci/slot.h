#pragma once

#include <string_view>

namespace heddle::nodeagent {

// "0000:5e:00" of "0000:5e:00.1": what the functions of one card have in common. What is no address comes back whole.
inline std::string_view SlotOf(std::string_view address) {
  return address.substr(0, address.find('.'));
}

}  // namespace heddle::nodeagent
