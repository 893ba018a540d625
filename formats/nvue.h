#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lossless/switch_render.h"

namespace heddle::formats {

// What one port of a Cumulus Linux switch should have.
struct NvueWish {
  std::string port;  // "swp1"
  lossless::SwitchRendering rendering;
};

// `nv set` lines (NVIDIA Cumulus Linux 5.x, NVUE command reference, QoS), each block with why and from whom as a
// comment. Ports with the same settings share profiles named after the policy. What NVUE has no command for, and what
// it has only for the whole switch, is said as a comment; so is every gap. There is no `nv config apply` among the
// lines: that is a person's to type.
std::string NvueLines(std::string_view policy, const std::vector<NvueWish>& wishes);

}  // namespace heddle::formats
