#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "crds/object_meta.h"

namespace heddle::crds {

// What stands in objects of other people's kinds. Never throws: what is missing or of another type is null.
inline const Json& At(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json kNone;
  const Json* at = &object;
  for (const std::string_view key : path) {
    if (!at->is_object()) return kNone;
    const auto found = at->find(key);
    if (found == at->end()) return kNone;
    at = &*found;
  }
  return *at;
}
inline const Json& At(const Json& object, std::string_view key) {
  return At(object, {key});
}

inline std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}
inline bool IsTrue(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}
// The items of a list; none where it is no list.
inline const Json& ListOf(const Json& value) {
  static const Json kNone = Json::array();
  return value.is_array() ? value : kNone;
}

}  // namespace heddle::crds
