#pragma once

#include "cli/lint.h"

namespace heddle::cli {

// Each value of the LosslessPolicies in these files as it is once profile and what follows are filled in, and who says
// so: the policy, its profile with its source, or another field. Looks at files alone; what holds no LosslessPolicy is
// left out with a note. Exit codes: 0 it is said, 2 a file could not be read, or there is no policy in any.
Output LintResolved(const LintOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
