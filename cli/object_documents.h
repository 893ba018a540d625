#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "crds/object_meta.h"

namespace heddle::cli {

// What a person reads of where a text came from: `path`, or "standard input" for -.
std::string InputName(const std::string& path);

// Whether anything can be read of a file at all: kInvalid, with `path` (- is standard input) in the sentence, where it
// is empty or no text, which a parser of YAML would call an unknown escape character of line 1. `expected`: what
// belongs there, as "NodeTopologies".
[[nodiscard]] base::Status IsText(const std::string& path, const std::string& text,
                                  std::string_view expected);

// The JSON value of a text. Errors: kInvalid with the line, kTooLarge beyond what a cluster of 5,000 nodes has.
[[nodiscard]] base::Result<crds::Json> JsonOf(const std::string& text);

// Whether the first character that is no space begins a JSON value.
bool IsJson(const std::string& text);

// Calls `each` with every Kubernetes object of a text: JSON or YAML, one, a List, or several documents. Its first error
// ends it, with the document and the item in front. `json`: the text, where it was read already; null = it was not.
[[nodiscard]] base::Status ForEachObject(const std::string& text, const crds::Json* json,
                                         const std::function<base::Status(const crds::Json& object)>& each);

}  // namespace heddle::cli
