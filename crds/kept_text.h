#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::crds {

// A text as an object keeps it: valid UTF-8 (what is none becomes U+FFFD) of at most `max_characters` characters, of
// which the last is "…" where more were cut off. All codecs write texts so. Again it changes nothing: who decides on a
// text that may be too long and compares it with what is written keeps it so first, or it would differ for ever.
// Requires: max_characters > 0. Pure.
std::string KeptText(std::string_view text, std::size_t max_characters);

// Characters, as nodetopologies.yaml and fabrics.yaml have it. A sentence with names of people's choice in it says what
// to do before them: names have up to 253 characters, and the end is what is cut off.
inline constexpr std::size_t kMaxKeptReason = 512;       // of a DeviceWish, a LosslessWish and their reports
inline constexpr std::size_t kMaxKeptFault = 512;        // the sentence of a cabling fault
inline constexpr std::size_t kMaxKeptSuspectName = 512;  // "leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1"
inline constexpr std::size_t kMaxKeptEvidence = 512;     // what speaks against a suspect
inline constexpr std::size_t kMaxKeptNext = 256;         // what to do about it

}  // namespace heddle::crds
