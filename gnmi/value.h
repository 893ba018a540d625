#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/result.h"

namespace gnmi {
class TypedValue;  // gnmi/gnmi.proto
}

namespace heddle::gnmi {

using Json = nlohmann::json;

inline constexpr int kMaxDepth = 32;  // SONiC's tables nest two deep, OpenConfig's trees some twenty

// What a value may still hold. One budget goes through all values of a message: a value takes 16 bytes of memory and
// more, where two bytes of text can say it.
struct ValueBudget {
  std::size_t values = 0;  // JSON values: objects, arrays and what is in them
};

// The value as JSON: numbers, texts and booleans as they are, JSON of both kinds parsed (of a key that stands twice,
// the last), a leaf list as an array, bytes in base64 as RFC 7951 writes them, a decimal as the number it stands for.
// kInvalid: it is no JSON, no number (NaN), or nothing at all. kUnimplemented: protobuf of a model that we do not have.
// kTooLarge: it nests too deep, or the budget does not allow it; the message is then not worth reading on.
[[nodiscard]] base::Result<Json> ValueOf(const ::gnmi::TypedValue& value, ValueBudget& budget);

}  // namespace heddle::gnmi
