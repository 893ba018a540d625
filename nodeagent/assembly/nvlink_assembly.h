#pragma once

#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// What the driver says of NVLinks, and xGMI, into `seen`: counts and domain of its node, and all else that an
// observation says of links before ApplyHealth. Problems found on the way are appended. Total. Requires: that `seen`
// has its name, GPUs and NVSwitches, `gpus_unreadable` and `file_alone`.
void AssembleNvlink(const Readings& readings, Observation& seen);

}  // namespace heddle::nodeagent
