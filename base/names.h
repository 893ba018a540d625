#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace heddle::base {

// The value of an enum whose values from 0 on have these names; nothing where none is `name`.
template <class Value, std::size_t kCount>
std::optional<Value> ValueNamed(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return Value(found - names.begin());
}

}  // namespace heddle::base
