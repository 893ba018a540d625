#pragma once

#include "base/result.h"
#include "cli/flags.h"

namespace heddle::cli {

// Whether the words of a command that asks a cluster go together: who mistyped one is told so at once, and not that a
// kubeconfig is missing first.
[[nodiscard]] base::Status CheckWords(const Flags& flags);

}  // namespace heddle::cli
