#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "switches/port_counters.h"
#include "topology/suspects.h"

namespace heddle::switches {

// What stands against one port, by its counters.
struct PortSightings {
  std::string port;
  // By symptom and who saw it. by_far_end as topology::WatchedLink has it: the switch is the far end, so that of a
  // storm it is true where the switch was stopped, and false where the switch stops the host. What a lossless queue
  // marked stands beside its pause and drops and is nothing by itself: marks tell of congestion before it costs
  // packets. So do ticks without credit beside what InfiniBand counts, of which nobody says how long they are.
  std::vector<topology::Sighting> sightings;
  // What counts as nothing, for people: "in_errors went back from 120 to 4". Of the last ten minutes; empty else.
  std::string note;
  friend bool operator==(const PortSightings&, const PortSightings&) = default;
};

// What the rules look at. kQueueDrops, kStorms and kMarks are by queue, pause by priority.
enum class SwitchCount : std::uint8_t {
  kStateChanges,
  kInErrors,
  kUncorrected,
  kInDiscards,
  kPauseReceived,
  kPauseSent,
  kQueueDrops,
  kStorms,
  kOutDiscards,
  kMarks,
  kLinkDowns,
  kSymbolErrors,
  kLinkRecoveries,
  kIntegrityErrors,
  kBufferOverruns,
  kWaitTicks,
  kFecSymbols,
};

// When a counter speaks against a link, as nodeagent/health/link_rules.h has it for hosts: the same windows, thresholds
// and sources where a switch counts the same.
struct SwitchRule {
  SwitchCount count;
  topology::Symptom symptom;
  bool by_far_end;
  std::chrono::seconds window;  // an hour at most: what hosts judge over twelve is theirs
  std::uint64_t threshold;  // trouble from so many in the window on; 0: PauseThreshold or FecSymbolThreshold
  std::uint64_t calm;       // quiet as long as there are at most so many; below threshold
};
std::span<const SwitchRule> SwitchRules();
// Pause frames in the window that stop a port for half of the time. Each is counted as if it stopped for as long as one
// can, so this errs towards silence; 400 Gb/s where the speed is not known.
std::uint64_t PauseThreshold(const std::optional<int>& speed_mbps, std::chrono::seconds window);

// Pause frames that stop a port for 100 ms, the shortest time after which SONiC's watchdog takes a queue for stormed
// (sonic-swss, pfcwdorch.cpp, PFC_WD_DETECTION_TIME_MIN); 400 Gb/s where the speed is not known. At least 1.
std::uint64_t LeastPauseOfAStorm(const std::optional<int>& speed_mbps);

// What a port counted since the sample before as it does when a lossless queue drops packets or is stormed. It is
// evidence of neither, since a port does not say which queue it was, but worth a look at its queues (queue_looks.h).
struct QueueHint {
  std::string port;
  std::uint64_t discards = 0;  // packets, on the way out; 0 where no class of the port was ever paused
  std::uint64_t pause = 0;     // frames received, of the priority with most; 0 below LeastPauseOfAStorm
  friend bool operator==(const QueueHint&, const QueueHint&) = default;
};

// Wrong symbols in the window beyond which a line is out of its standard: bits that arrive wrong are to be fewer than
// 2.4 in 10,000 before they are mended (IEEE 802.3, clause 120 and those of PAM4 lines; NRZ lines have less), and a
// wrong symbol has one wrong bit at least. Up to there they are everyday, and FEC mends them. On the line 544/514 x
// 257/256 bits stand for one. 800 Gb/s where the speed is not known, which errs towards silence.
std::uint64_t FecSymbolThreshold(const std::optional<int>& speed_mbps, std::chrono::seconds window);

// The time without new evidence after which trouble is over.
inline constexpr std::chrono::minutes kSwitchQuiet(10);

// The counters of one switch over the time that the rules look back. A value: no clock, no I/O. Thread rule: one owner.
//
// Only what is counted between two samples is evidence, so the first is none. A port that does not count changes of its
// state (FlapsBy::kState) is judged by the states that samples saw: what happens between two of them is missed. A
// counter that a sample lacks was not asked for, or not said: it goes on from where it was when it comes again within
// twice the quiet time, and trouble stays until it is told to be over, or nobody has counted it for as long. One that
// goes back was reset, or its switch booted: what it did meanwhile counts as nothing, unless it is at the end of its 64
// bits. Where packets or changes of state go back, so it is of every counter of the port that was last said before: one
// that had counted little is past that again by what links do while they come up. Of an interval longer than a window
// the window's share counts. A sample older than the last is left out.
class CounterWindow {
 public:
  // Returns the ports with a hint, sorted by name: of counters that the sample before had, too, and that went forward.
  std::vector<QueueHint> Add(const CounterSample& sample);
  // Of ports that something stands against, or that have a note, sorted by name. Evidence is told anew when it has
  // doubled ("41 flaps in 10 min"), so that equal answers stay equal while little happens.
  std::vector<PortSightings> Sightings(base::MonotonicTime now) const;
  std::size_t bytes() const;  // of memory, about: a port takes about 1.5 kB, and never more than 3

 private:
  // A counter of a port: what it counts, in which direction or queue.
  struct Key {
    std::uint8_t count = 0;  // a SwitchCount, or one of the two of packets, or states that were seen
    std::uint8_t index = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // Of 32,000 ports there are half a million: 16 bytes each.
  struct Known {
    std::uint64_t raw = 0;
    std::uint32_t at =
        0;  // milliseconds of MonotonicTime, modulo 49 days; none is kept for longer than hours
    Key key;
  };
  static constexpr int kBuckets = 12;
  // What one rule has seen of one counter. Only those that moved within their window are kept.
  struct Judgement {
    std::array<std::uint32_t, kBuckets> buckets{};  // by number modulo kBuckets; saturating
    std::int64_t newest = 0;                        // number of the bucket that was filled last
    std::int64_t told = 0;                          // when its counter was last read
    std::int64_t quiet_since = -1;
    std::uint64_t reported = 0;  // of evidence; 0 = it is in no trouble
    std::uint8_t rule = 0;
    std::uint8_t index = 0;
  };
  struct Port {
    std::vector<Known> known;
    std::vector<Judgement> judgements;
    std::optional<int> speed_mbps;
    std::int64_t seen = 0;
    std::int64_t went_back_at = -1;
    std::int64_t reset_at = -1;  // when all of its counters were, as by a boot
    std::uint64_t went_back_from = 0, went_back_to = 0;
    Key went_back;
  };
  class Step;

  std::map<std::string, Port> ports_;
  std::optional<base::MonotonicTime> last_;
};

}  // namespace heddle::switches
