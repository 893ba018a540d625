#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::formats {

// Something that a SONiC switch would refuse, or not do.
struct SonicFault {
  std::string where;  // "PFC_WD|Ethernet0 detection_time"
  std::string what;   // "50 is not 100 to 5000"
  std::string model;  // the published model that says so: "sonic-pfcwd.yang"
  friend bool operator==(const SonicFault&, const SonicFault&) = default;
};

// Holds the lossless tables of a configuration, with BUFFER_POOL, CABLE_LENGTH, and speed, FEC, MTU and state of PORT,
// against the rules of SONiC's published YANG models (sonic-net/sonic-buildimage, src/sonic-yang-models, as they are at
// 086b03b of 2026-08-23): ranges, words, and references to what is there. Other tables and fields are not looked at. In
// the order of tables and keys, 1,000 at most. Errors: as ParseSonicConfig's.
[[nodiscard]] base::Result<std::vector<SonicFault>> CheckSonic(std::string_view config);

}  // namespace heddle::formats
