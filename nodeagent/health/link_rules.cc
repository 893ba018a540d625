#include "nodeagent/health/link_rules.h"

#include <algorithm>
#include <array>

namespace heddle::nodeagent {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using topology::LinkFault;

// NVSentinel: docs/nic-health-monitor.md, its defaults. gpud: the defaults of its InfiniBand component. A rate of
// theirs is a number in the window here. Quiet times are our own: longer than a link takes to train and a subnet
// manager to sweep, short enough that a reseated cable is back soon.

constexpr auto kRules = std::to_array<LinkRule>({
    // NVSentinel calls one link_downed fatal. But a leaf that reboots takes each of its links down once, and that
    // is no flap: two are.
    {LinkFault::kFlapping, Counter::kLinkDowned, "link downs", minutes(10), 2, 0, kQuiet},
    // NVSentinel: carrier_changes over 2. Down, up, down are three.
    {LinkFault::kFlapping, Counter::kCarrierChanges, "link changes", minutes(10), 3, 0, kQuiet},
    // gpud: three returns to active within 12 hours are a flap. The link works in between, so this counts less.
    {LinkFault::kErrors, Counter::kLinkDowned, "link downs", hours(12), 3, 2, kQuiet},
    {LinkFault::kErrors, Counter::kCarrierChanges, "link changes", hours(12), 6, 5, kQuiet},
    // NVSentinel: over 120 an hour, which is what the InfiniBand specification takes for a sound link.
    {LinkFault::kErrors, Counter::kSymbolErrors, "symbol errors", hours(1), 121, 120, kQuiet},
    // NVSentinel: over 5 a minute.
    {LinkFault::kErrors, Counter::kLinkRecovery, "link recoveries", minutes(1), 6, 2, kQuiet},
    // NVSentinel: over 10 a second.
    {LinkFault::kErrors, Counter::kReceiveErrors, "receive errors", minutes(1), 601, 300, kQuiet},
    // The same of Ethernet, whose cards count elsewhere.
    {LinkFault::kErrors, Counter::kUncorrectedSymbols, "uncorrected symbols", hours(1), 121, 120, kQuiet},
    {LinkFault::kErrors, Counter::kCrcErrors, "CRC errors", minutes(1), 601, 300, kQuiet},
    // NVSentinel: any.
    {LinkFault::kErrors, Counter::kLocalIntegrityErrors, "local link integrity errors", minutes(10), 1, 0,
     kQuiet},
    {LinkFault::kErrors, Counter::kBufferOverruns, "buffer overruns", minutes(10), 1, 0, kQuiet},
    // mlx5 counts one when the NIC itself sent pause for so long that the driver's watchdog stopped it
    // (kernel, ethtool counters of mlx5: tx_pause_storm_error_events).
    {LinkFault::kPauseStorm, Counter::kPauseStorms, "pause storms stopped by the driver", minutes(10), 1, 0,
     kQuiet},
    // Half of the time stopped, in microseconds. SONiC's watchdog calls 200 ms without a pause of the pause a
    // storm; over 30 s that is far more than a burst of congestion.
    {LinkFault::kPauseStorm, Counter::kPauseReceivedTime, "microseconds stopped by received pause",
     seconds(30), 15'000'000, 3'000'000, kQuiet},
    {LinkFault::kPauseStorm, Counter::kPauseSentTime, "microseconds of sent pause", seconds(30), 15'000'000,
     3'000'000, kQuiet},
    // NVSentinel: local_ack_timeout_err over 1 a second. A negative acknowledgement says the same earlier. Packets
    // out of sequence and RNR are no evidence: adaptive routing makes the one, a slow program the other.
    {LinkFault::kPathLoss, Counter::kAckTimeouts, "acknowledgement time-outs", minutes(1), 61, 6, kQuiet},
    {LinkFault::kPathLoss, Counter::kSequenceNaks, "packets asked for again", minutes(1), 61, 6, kQuiet},
    // Congestion. NVSentinel: port_xmit_discards over 100 a second, roce_slow_restart over 10; the others are ours:
    // a thousand a second, which no idle port has and any heavy incast. It is told to the API server, so what comes
    // with each step or checkpoint of a job is one.
    {LinkFault::kNone, Counter::kTransmitDiscards, "transmit discards", minutes(1), 6'001, 600, kQuiet},
    {LinkFault::kNone, Counter::kSlowRestarts, "slow restarts", minutes(1), 601, 60, kQuiet},
    {LinkFault::kNone, Counter::kCnpHandled, "CNPs handled", minutes(1), 60'000, 6'000, kQuiet},
    {LinkFault::kNone, Counter::kCnpSent, "CNPs sent", minutes(1), 60'000, 6'000, kQuiet},
    {LinkFault::kNone, Counter::kPauseReceived, "pause frames received", minutes(1), 60'000, 6'000, kQuiet},
    {LinkFault::kNone, Counter::kPauseSent, "pause frames sent", minutes(1), 60'000, 6'000, kQuiet},
});

}  // namespace

std::span<const LinkRule> LinkRules() {
  return kRules;
}

bool IsJudged(Counter counter) {
  return std::any_of(kRules.begin(), kRules.end(), [counter](const LinkRule& rule) {
    return rule.counter == counter && rule.fault != LinkFault::kNone;
  });
}

int UsablePercent(LinkFault fault) {
  switch (fault) {
    case LinkFault::kFlapping:
    case LinkFault::kPauseStorm:
      return 0;
    case LinkFault::kErrors:
      return 50;
    case LinkFault::kPathLoss:
    case LinkFault::kNotLossless:
    case LinkFault::kNone:
      return 100;
  }
  return 100;
}

}  // namespace heddle::nodeagent
