#pragma once

#include "lossless/port_settings.h"

namespace heddle::lossless {

// When ECN does not slow senders down before PFC stops them: for the linter's `ecn-off` and `ecn-thresholds`, and for
// whoever asks a switch whether it marks. Pure and total.

// The priorities that PFC protects and ECN leaves out; none where nobody says either.
PrioritySet UnmarkedOf(const PortSettings& port);

// Whether a queue is marked in full where marking begins, or never.
bool LeavesNoRoom(const EcnMarking& marking);

}  // namespace heddle::lossless
