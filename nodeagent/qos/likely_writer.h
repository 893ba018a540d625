#pragma once

#include <string>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/qos/dcb_message.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// Who may have written a setting that none of us wrote, from what runs now: "firmware DCBX" where a setting of DCB is
// not in the host's hands, "lldpad" where that daemon runs (its socket, @/com/intel/lldpad in proc/net/unix, or a
// process of that name) and it is one of those that it sets from what switches say, else "manual": a person, a script,
// an operator. `state`: DCB of the port, nothing where it cannot be read.
std::string LikelyWriterOf(const base::FileTree& files, const std::optional<DcbState>& state,
                           lossless::Setting setting);

}  // namespace heddle::nodeagent
