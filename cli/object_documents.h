#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "crds/object_meta.h"

namespace heddle::cli {

// The JSON value of a text. Errors: kInvalid with the line, kTooLarge beyond what a cluster of 5,000 nodes has.
[[nodiscard]] base::Result<crds::Json> JsonOf(const std::string& text);

// Whether the first character that is no space begins a JSON value.
bool IsJson(const std::string& text);

// Calls `each` with every Kubernetes object of a text: JSON or YAML, one, a List, or several documents. Its first error
// ends it, with the document and the item in front. `json`: the text, where it was read already; null = it was not.
[[nodiscard]] base::Status ForEachObject(const std::string& text, const crds::Json* json,
                                         const std::function<base::Status(const crds::Json& object)>& each);

}  // namespace heddle::cli
