#include "nodeagent/nic/storage_nics.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/printable.h"
#include "nodeagent/nic/name_globs.h"

namespace heddle::nodeagent {

base::Result<StorageNics> StorageNics::Parse(std::string_view text) {
  StorageNics nics;
  nics.text_ = text;
  const auto refused = [](std::string_view pattern, std::string_view why) {
    return base::Fail(
        base::Code::kInvalid,
        fmt::format("\"{}\" names no NICs for storage: {}; write the names of RDMA devices, such as "
                    "mlx5_2 or mlx5_[67]",
                    formats::Printable(pattern, kMaxGlob), why));
  };
  const auto patterns = SplitGlobs(text);
  if (!patterns) return refused(patterns.error().pattern, patterns.error().why);
  for (const std::string_view pattern : *patterns) {
    if (pattern.find(':') != std::string_view::npos)
      return refused(pattern, "a NIC has one role with all of its ports, so no :PORT stands here");
    if (const std::string why = WhyNoGlob(pattern); !why.empty()) return refused(pattern, why);
    if (IsEverything(pattern))
      return refused(pattern, "it is every NIC of the node, and no rail would be left of any");
    nics.patterns_.emplace_back(pattern);
  }
  return nics;
}

std::string_view StorageNics::Naming(const std::string& device) const {
  const auto found = std::find_if(patterns_.begin(), patterns_.end(),
                                  [&](const std::string& one) { return MatchesGlob(one, device); });
  return found == patterns_.end() ? std::string_view() : std::string_view(*found);
}

}  // namespace heddle::nodeagent
