#pragma once

#include <string>

#include "base/result.h"
#include "sizing/design.h"
#include "topology/synthetic.h"

namespace heddle::sizing {

// The design as a cluster that `plan` takes: the line of topology/synthetic.h, and what it makes.
// Errors: kTooLarge where it is beyond what one line makes (kMaxSyntheticNodes and its like).
[[nodiscard]] base::Result<std::string> LineOf(const Design& design);
// As ParseSynthetic makes it of the line, but that a spine's uplinks are those cores that the design cables it to:
// the line can only say that every spine meets every core. Where units or pods differ in size each switch says its own
// way up, for which the line has one ratio.
[[nodiscard]] base::Result<topology::Synthetic> Draw(const Design& design);

}  // namespace heddle::sizing
