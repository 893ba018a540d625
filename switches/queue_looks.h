#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switches/counter_window.h"
#include "switches/port_counters.h"

namespace heddle::switches {

// Queues that are asked for out of turn. Counters of queues are most of what a switch counts, so with many switches all
// of them are read about once a minute. What is read of ports every ten seconds moves with them: a queue that drops
// packets has its port discard some, where the chip counts them there, and nothing is stormed without being paused. So
// the queues of such ports are asked for at once. Pause and discards of lossy classes move on healthy ports, too:
//
//   - so many ports a switch and look at most, and those that wait longest first: with N ports waiting it is a port's
//     turn within N / kMostPortsAtOnce looks, rounded up. Where more wait than that, all are asked for at once, so that
//     a fault of the switch is not taken for one of some of its cables; but not with every look.
//   - a port that was asked for is left alone until it moves by more than twice as much, or was still for a minute.
//     What hides behind that is found when the turn comes to all.

// Ports of one switch after one look.
inline constexpr std::size_t kMostPortsAtOnce = 8;
// In a row, at one port. SONiC writes counters of ports every second and of queues every ten (sonic-swss,
// portsorch.cpp), so the first look may find what was before; the third is for a switch that writes late.
inline constexpr int kLooksAtAPort = 3;
// Looks at the ports from one at all queues to the next that is out of turn.
inline constexpr std::uint32_t kLooksBetweenAll = 3;
// Looks at the ports in which a port has to be still before what it moved by is forgotten: a minute.
inline constexpr std::uint32_t kLooksRemembered = 6;

// Of one switch. A value: no clock, no I/O. Thread rule: one owner. Takes 60 bytes for each port with a hint of late.
class QueueLooks {
 public:
  struct Ask {
    bool all = false;                // of every port
    std::vector<std::string> ports;  // else of these; none = of no port
    friend bool operator==(const Ask&, const Ask&) = default;
  };
  // What to ask for after a look at the ports. `hints`: what CounterWindow::Add says of that look, sorted by name;
  // `looked`: it was one at all queues, too, so nothing needs to be asked for.
  Ask Next(const std::vector<QueueHint>& hints, bool looked);

 private:
  struct Port {
    std::string name;
    std::uint32_t discards = 0, pause = 0;  // when it was last worth asking, the most of both; saturating
    std::uint32_t hinted = 0;               // number of the look of its last hint
    std::uint32_t since = 0;  // likewise since which it waits: it came then, or was asked for then
    bool asked = false;       // the latter
    int left = 0;             // looks at its queues
  };

  void Take(const QueueHint& hint);

  std::vector<Port> ports_;  // sorted by name
  std::uint32_t look_ = 0;   // number; 10 s each, so they last for 1,300 years
  std::uint32_t all_at_ = 0;
};

// The paths of SONiC's COUNTERS_DB for this, `watched`: of queues that the watchdog looks at (Pfcwd), else of all
// (Queues). Without the ports that are called as another is by its alias: SONiC takes a name in a path for an alias
// first, and would answer with the other's.
std::vector<Steps> SonicQueuePaths(const QueueLooks::Ask& ask, bool watched, const NamesByAlias& names);

}  // namespace heddle::switches
