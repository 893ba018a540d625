#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace gnmi {
class TypedValue;  // gnmi/gnmi.proto
}

namespace heddle::gnmi {

using Json = nlohmann::json;

inline constexpr int kMaxDepth = 32;  // SONiC's tables nest two deep, OpenConfig's trees some twenty

// What a value may still hold. One budget goes through all values of a message: in a tree a value takes 16 bytes of
// memory and more, where two bytes of text can say it.
struct ValueBudget {
  std::size_t values = 0;  // JSON values: objects, arrays and what is in them
};

// The value as JSON text: JSON of both kinds as the switch wrote it, which TreeOf may find to be none; numbers, texts
// and booleans, a leaf list as an array, bytes in base64 as RFC 7951 writes them, a decimal as the number it means.
// A text, since counters are most of what a switch says, and whoever wants a few of them makes no tree of all.
// kInvalid: no number (NaN), or nothing at all. kUnimplemented: protobuf of a model that we do not have.
// kTooLarge: the budget does not allow it, or a list nests too deep; the message is then not worth reading on.
[[nodiscard]] base::Result<std::string> JsonOf(const ::gnmi::TypedValue& value, ValueBudget& budget);

// Such a text as a tree; of a key that stands twice, the last. kInvalid: it is no JSON. kTooLarge: it nests too deep.
[[nodiscard]] base::Result<Json> TreeOf(const std::string& json);

}  // namespace heddle::gnmi
