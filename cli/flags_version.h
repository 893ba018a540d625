#pragma once

#include "cli/output.h"

namespace CLI {
class App;
}

namespace heddle::cli {

// `--version`, which the parser answers, and the command `version`.
void DefineVersion(CLI::App& app);

// What `version` prints: a line, or for scripts {"version": "0.1.0"}.
Output VersionOf(Format format);

}  // namespace heddle::cli
