#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "lossless/pause.h"
#include "nodeagent/health/counter_aliases.h"
#include "topology/node.h"

namespace heddle::nodeagent {

// When a counter speaks against a link. A window is counted in kBuckets buckets of equal length, aligned to the
// clock, so what falls out of it does so within a twelfth of its length.
inline constexpr int kBuckets = 12;

struct LinkRule {
  topology::LinkFault fault;  // kNone: congestion, which is named and no fault of the link
  Counter counter;            // with priorities: each for itself
  std::string_view what;      // "symbol errors", as evidence names it
  std::chrono::seconds window;
  std::uint64_t threshold;     // trouble from so many in the window on
  std::uint64_t calm;          // quiet as long as there are at most so many; below threshold
  std::chrono::seconds quiet;  // this long, and the trouble is over
};

// The thresholds, each with its source beside it.
std::span<const LinkRule> LinkRules();
// Whether one of them makes a fault of it, and not only congestion.
bool IsJudged(Counter counter);

// How long a fault that was published before a restart stays without new evidence, as that of the rules.
inline constexpr std::chrono::minutes kQuiet(10);

// Pause frames without a count of the time that they took speak of a storm when they would have stopped the port
// for good, and it sent fewer packets than it got of them.
inline constexpr std::chrono::seconds kPauseWindow(30);
using lossless::FullPausePerSecond;

// How much of a port's rate placement may count on, in percent.
//   Flapping     0: a collective stalls at every flap until its time-out, so there is no rate to count on
//   PauseStorm   0: a class that is paused carries nothing
//   Errors      50: retransmission takes what is lost and more, and how much nobody measured; a node with all
//                   of its rails sound must win, and one that is up must beat one that is down
//   PathLoss   100: the cause may be any port on the way, or a peer that died, whom all others lose at once
int UsablePercent(topology::LinkFault fault);

}  // namespace heddle::nodeagent
