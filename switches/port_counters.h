#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "crds/object_meta.h"
#include "lossless/port_settings.h"

namespace heddle::switches {

// What a switch counts of its ports, however it says it. A counter that it does not have, or did not say now, is
// nothing, and never zero.

// Of PFC, and the queues that its priorities have: the first eight.
inline constexpr int kCountedPriorities = 8;
// Ports of one sample; more are left out.
inline constexpr std::size_t kMaxCountedPorts = 4096;

// Of one port, since the switch booted.
struct PortCounters {
  std::optional<bool> up;
  std::optional<std::uint64_t> state_changes;  // of the link, both ways: two a flap
  std::optional<std::uint64_t> in_errors;      // packets that came in broken
  std::optional<std::uint64_t> uncorrected;    // code words that forward error correction could not mend
  std::optional<std::uint64_t> fec_symbols;    // symbols that came in wrong, nearly all of them mended
  std::optional<std::uint64_t> in_discards;
  std::optional<std::uint64_t> out_discards;
  std::optional<std::uint64_t> in_packets, out_packets;                       // to and from one other
  std::array<std::optional<std::uint64_t>, kCountedPriorities> pfc_received;  // pause frames, by priority
  std::array<std::optional<std::uint64_t>, kCountedPriorities> pfc_sent;
  // By queue, of the first eight; of a sample that asked for queues.
  std::map<int, std::uint64_t> queue_drops, ecn_marked, storms;  // storms: that the watchdog found
  std::set<int> storming;                                        // queues that are stopped by one now
  // Of InfiniBand.
  std::optional<std::uint64_t> link_downs;  // one a flap
  std::optional<std::uint64_t> symbol_errors, link_recoveries, integrity_errors, buffer_overruns;
  // Without credit while there was something to send; how long one is, no standard says.
  std::optional<std::uint64_t> wait_ticks;
  std::optional<int> speed_mbps;  // for how many pause frames a second would stop it wholly
  friend bool operator==(const PortCounters&, const PortCounters&) = default;
};

// One look at all ports, or at a part of what they count: whoever asks may ask for pause oftener than for queues.
struct CounterSample {
  base::MonotonicTime at;
  std::map<std::string, PortCounters> ports;  // by the switch's own name
  friend bool operator==(const CounterSample&, const CounterSample&) = default;
};

// By what flaps of a switch are seen.
enum class FlapsBy : std::uint8_t {
  kUnknown,  // no port says how it is, or all are down: SONiC counts from the first change since the boot on
  kCounter,  // ports count changes of their state
  // They say their state alone, as SONiC's do until 202311 (flap_count came with sonic-net/sonic-swss#3052, 2024-02): a
  // link that goes down and up again between two samples is not seen.
  kState,
};
FlapsBy FlapsSeenBy(const CounterSample& sample);

// A path as the names of its steps.
using Steps = std::vector<std::string>;

// SONiC's COUNTERS_DB, a field of all ports each: most of a row is something else. Pause is counted of these
// priorities: what comes for another stops nothing, and each costs two more messages a sample.
std::vector<Steps> SonicCounterPaths(const lossless::PrioritySet& paused);

// What the ports of a switch are called, by the alias that COUNTERS_DB calls them by.
using NamesByAlias = std::map<std::string, std::string, std::less<>>;

// Makes a sample of what a SONiC switch answered, JSON texts by path: those, COUNTERS/Ethernet* as a whole or one port,
// INTERFACE_COUNTERS, COUNTERS/Ethernet*/Queues and /Pfcwd, APPL_DB's PORT_TABLE, or any of them (sonic-net/sonic-gnmi,
// sonic_data_client/virtual_db.go and db_client.go). What PORT_TABLE itself says of aliases counts before `names`.
// Every value is a string of decimal digits; "", "N/A" and all else is one that is missing. Total: what cannot be read,
// and ports that no name is known for, are left out.
CounterSample ReadSonicCounters(const std::map<Steps, std::string>& answers, const NamesByAlias& names,
                                base::MonotonicTime at);

// The same of OpenConfig's /interfaces and /qos, whatever part of the tree each answer holds, as long as the
// interface's name is in it (openconfig-interfaces, -if-ethernet, -qos). These models count neither PFC by priority nor
// storms.
CounterSample ReadOpenConfigCounters(const std::map<Steps, crds::Json>& answers, base::MonotonicTime at);

}  // namespace heddle::switches
