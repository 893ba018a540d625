#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "crds/object_meta.h"

namespace heddle::crds {

inline constexpr std::size_t kMaxYaml = std::size_t(32) << 20;

// The same values as YAML, for people: what another reader might take for a number or a word of its own is
// quoted.
std::string ToYaml(const Json& json);

// The first document. Errors: kInvalid with the line, kTooLarge past kMaxYaml bytes or where aliases
// multiply.
[[nodiscard]] base::Result<Json> FromYaml(const std::string& text);

}  // namespace heddle::crds
