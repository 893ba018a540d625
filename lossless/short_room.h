#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lossless/cable_compare.h"
#include "lossless/port_settings.h"

namespace heddle::lossless {

// A switch's port that cannot hold what still arrives after it has asked for a pause.
//
// No configuration says its chip's cells and delays, so its xoff is held against what the formula gives for any chip
// (LeastXoff), which leaves out much that a chip may need: what is found is too little anywhere. Of 1,450 rows for
// these speeds that SONiC ships in its tables of headroom (sonic-buildimage, device/*/pg_profile_lookup.ini), with
// SONiC's own MTU of 9100:
//   under 80 %, 32 rows: they hold only where the other end stops sooner than IEEE 802.3 lets it, which nobody says of
//     it; such a cable is unproved;
//   under 50 %, 2 rows, of one model whose table has those of slower ports. Where it is that little over a cable of a
//   metre too, it contradicts; else it is unproved, for CABLE_LENGTH is what somebody wrote.
// Between 80 and 100 % lie what the tables round, and those made before responses were counted by speed.
inline constexpr int kUnprovedBelowPercent = 80;
inline constexpr int kContradictsBelowPercent = 50;

struct ShortRoom {
  LosslessVerdict weight = LosslessVerdict::kUnproved;  // kUnproved or kContradiction
  int priority = 0;
  std::int64_t has_bytes = 0;
  std::int64_t least_bytes = 0;
  friend bool operator==(const ShortRoom&, const ShortRoom&) = default;
};

// Nothing where there is room enough, and where it cannot be judged: nobody says the xoff (the switch sizes it itself),
// the speed, the MTU or the cable's length, which of unused ports SONiC calls 0 m, or the formula lacks the speed. An
// xoff of 0 is the linter's `buffer-empty`. `speed_mbps`: at which the port runs. `priority`: 0 to 7.
std::optional<ShortRoom> FindShortRoom(const PortSettings& port, int priority,
                                       const std::optional<int>& speed_mbps);

// A setting of a switch's port that nobody says, and that loses packets if it is the wrong one.
struct Unsaid {
  Setting setting = Setting::kBufferBytes;
  std::string sentence;
  std::string next;  // what to do, a sentence
  friend bool operator==(const Unsaid&, const Unsaid&) = default;
};

// What nobody says of the buffers that hold packets of a lossless priority, 0 to 7, at `where`, "the switch":
//   lossyQueues, whether the queue that a pause for it stops has a lossy buffer. SONiC's template has rows for every
//     queue (sonic-buildimage, buffers_config.j2); of one without, SAI leaves the chip's default
//     (sonic-net/SONiC, doc/qos/reclaim-reserved-buffer.md), which may be either;
//   bufferBytes, how much holds packets after a pause: neither an xoff is said, 0 included, nor that the switch sizes
//     it itself. The same is true of a group without a row.
// Pure.
std::vector<Unsaid> FindUnsaidBuffers(const PortSettings& port, int priority, std::string_view where);

inline constexpr const char* kHeadroomShort = "headroom-short";  // the rule
// "after a pause for priority 3 there is room for 20000 bytes, and at least 70656 may still arrive at 400 Gb/s over 5 m
// with an MTU of 9100". Requires: that FindShortRoom found it of this port, at this speed.
std::string SentenceOf(const ShortRoom& found, const PortSettings& port, int speed_mbps);
std::string ValueOf(const ShortRoom& found);  // "20000 of 70656 bytes"
// What to do, a sentence.
inline constexpr const char* kGiveRoom =
    "give that priority group a profile with a larger xoff (`kubectl heddle switch render` sizes it for a "
    "chip that is "
    "known), or correct CABLE_LENGTH if the cable is shorter";

}  // namespace heddle::lossless
