#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace heddle::nodeagent {

// Link changes that this agent makes itself by setting a port (mlx5 takes the link down for PFC and MTU): they say
// nothing against the link. What comes in the time from `from` to `until` is taken for them, `most` changes at most,
// of which going down is one and coming back another; whatever comes beside them is evidence as always. The same
// `from` again corrects what was said.
struct OwnLinkChanges {
  std::string port;  // "mlx5_0:1"
  base::MonotonicTime from{}, until{};
  std::uint64_t most = 0;
  friend bool operator==(const OwnLinkChanges&, const OwnLinkChanges&) = default;
};

}  // namespace heddle::nodeagent
