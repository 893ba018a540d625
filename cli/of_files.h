#pragma once

#include <optional>

#include "base/clock.h"
#include "cli/flags.h"

namespace heddle::cli {

// What a command that shows a cluster says of the files in its place; nothing where there are none, or where it has to
// ask a cluster beside them. `now`: until when ages are counted.
std::optional<Output> OfFiles(const Flags& flags, const ReadFile& read, base::WallTime now,
                              const OutputOptions& look);

}  // namespace heddle::cli
