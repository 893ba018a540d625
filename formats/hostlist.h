#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::formats {

// More hosts than any cluster that Heddle plans for (100,000), so that a slip of a few digits is refused
// before it takes memory.
inline constexpr std::size_t kMaxHosts = 262'144;
inline constexpr std::size_t kMaxHostName = 253;  // DNS, and so Kubernetes

// Slurm's hostlist, as `scontrol show hostnames` expands it: "node[001-016,020],login1"; several brackets in
// one name multiply. Names keep the order and the leading zeros that are written. Errors: kInvalid where it
// is no hostlist, kTooLarge where it names more than `limit` hosts; nothing is allocated for those.
[[nodiscard]] base::Result<std::vector<std::string>> ExpandHostlist(std::string_view list,
                                                                    std::size_t limit = kMaxHosts);

}  // namespace heddle::formats
