#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::crds {

// Heddle's annotations share one prefix, so a misspelt one can be told from somebody else's. Of an annotation of a pod
// that begins with heddle.dev/ and is none of Heddle's: a sentence that names it, the one that may be meant, and all
// that there are; nothing of any other. `name` is anybody's text. Pure and total.
std::optional<std::string> UnknownAnnotation(std::string_view name);

}  // namespace heddle::crds
