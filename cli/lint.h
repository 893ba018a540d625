#pragma once

#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/output.h"

namespace heddle::cli {

struct LintOptions {
  std::vector<std::string> files;
  bool rules = false;     // instead: what the rules are
  bool resolved = false;  // instead: what policies resolve to (lint_resolved.h)
};

// Looks at files alone and asks no cluster. Exit codes: 0 nothing was found, 3 something was, 2 a file or a port in one
// could not be read, whatever was found of the others, which were looked at all the same; or there was nothing to look
// at.
Output Lint(const LintOptions& options, const ReadFile& read, const OutputOptions& look);

// Every rule, as a table or for scripts.
Output LintRules(const OutputOptions& look);

}  // namespace heddle::cli
