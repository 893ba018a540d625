#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace heddle::nodeagent {

// What a counter counts, whatever a driver calls it. The order is that of counter_aliases.cc's names.
enum class Counter : std::uint8_t {
  // of the link
  kLinkDowned,            // times that the link went down
  kCarrierChanges,        // of the interface, both ways
  kSymbolErrors,          // minor errors on the wire
  kLinkRecovery,          // retrainings that succeeded without the link going down
  kUncorrectedSymbols,    // what forward error correction of Ethernet could not mend
  kReceiveErrors,         // packets that came in broken
  kCrcErrors,             // frames of Ethernet that came in broken
  kRemotePhysicalErrors,  // packets that the other end had marked as broken
  kLocalIntegrityErrors,  // too many errors on the wire for too long
  kBufferOverruns,        // flow control of the link failed
  kTransmitDiscards,
  kReceiveDiscards,
  kTransmitWait,  // ticks with data and without credit to send it
  // of the transport, whose cause may be anywhere on the way
  kOutOfSequence,    // packets that came in out of order; adaptive routing makes them, too
  kSequenceNaks,     // the other end asked for packets again
  kAckTimeouts,      // no answer in time
  kRetriesExceeded,  // a connection was given up
  kRnrNaks,          // the other end had no buffer posted
  kRnrRetries,       // a connection was given up for that
  kAdaptiveRetransmits,
  kSlowRestarts,
  kRetransmits,         // packets sent again
  kUnresponsiveRemote,  // EFA: a peer that stopped to answer
  kOutOfBuffer,         // nothing posted to receive into
  // of congestion
  kCnpSent,
  kCnpHandled,
  kEcnMarked,
  kPauseReceived,      // frames, by priority
  kPauseSent,          // frames, by priority
  kPauseReceivedTime,  // microseconds stopped, by priority
  kPauseSentTime,      // microseconds, by priority
  kPauseStormWarnings,
  kPauseStorms,  // the NIC sent pause for so long that its driver stopped it
  // of traffic
  kPacketsSent,
  kLast = kPacketsSent
};
inline constexpr std::size_t kCounters = std::size_t(Counter::kLast) + 1;

// "symbol_errors": for metrics and messages.
std::string_view CounterName(Counter counter);
std::optional<Counter> ParseCounter(std::string_view name);

struct CounterId {
  Counter counter = Counter::kLinkDowned;
  int priority = -1;  // 0 to 7 where it is counted by priority, else -1
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in it for a pointer
  friend auto operator<=>(const CounterId&, const CounterId&) = default;
};

// How far a counter counts. One that saturates stops at its largest number, all others begin again at 0.
struct Width {
  int bits = 64;
  bool saturates = false;
  std::uint64_t max() const { return bits >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1; }
  friend bool operator==(const Width&, const Width&) = default;
};

// Where a counter stands: ports/N/counters, ports/N/hw_counters, the interface, its ethtool statistics.
enum class CounterPlace : std::uint8_t { kPort, kHardware, kInterface, kEthtool };

struct CounterAlias {
  Counter counter;
  CounterPlace place;
  std::string_view driver;  // of the kernel, by the link device/driver; empty = every driver
  std::string_view name;    // an ethtool name may have one '#', which stands for the priority
  Width width;
};

// Of several names that a driver has for one counter, the first in this table counts.
std::span<const CounterAlias> CounterAliases();

struct NamedCounter {
  CounterId id;
  Width width;
  std::size_t rank = 0;  // of several names for one counter, the lowest counts
};
// What a file or statistic of that name counts; nothing where it is none of ours.
std::optional<NamedCounter> FindCounter(std::string_view driver, CounterPlace place, std::string_view name);

}  // namespace heddle::nodeagent
