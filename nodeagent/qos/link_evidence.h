#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/qos/port_io.h"

namespace heddle::nodeagent {

// What the link of a port says now: carrier and its changes by sysfs, errors and losses by the driver's statistics
// (ethtool) and by the counters of its RDMA device (ports/N/counters, ports/N/hw_counters). A counter file that cannot
// be read is left out, as it is compared with nothing. kUnavailable: the interface is gone.
[[nodiscard]] base::Result<LinkEvidence> ReadLinkEvidence(const base::FileTree& files,
                                                          EthtoolSource& statistics, const QosPort& port);

// Statistics that only ever grow when something is wrong with the link, by the names of the drivers: what a write must
// not make grow. Those of congestion and pause are none. Pure.
bool IsLinkError(std::string_view statistic);

// How much of it within the settle window is no worse than what a bounce, or a sound link, makes by itself. By the name
// of the driver; of what it does not know as of errors. Pure.
std::uint64_t ToleratedOf(std::string_view counter);
// Of errors: frames that were cut off while the link trained.
inline constexpr std::uint64_t kTolerated = 10;
// NVSentinel (docs/nic-health-monitor.md): 120 an hour are what the InfiniBand specification takes for a sound link.
inline constexpr std::uint64_t kToleratedSymbols = 120;
// Discards, and packets out of sequence: NVSentinel takes more than one a second, for a minute, for a fault.
inline constexpr std::uint64_t kToleratedLosses = 60;
// Down and up once: an optical link may train twice.
inline constexpr std::uint64_t kToleratedChanges = 2;
// As Growth and noise call the carrier's changes.
inline constexpr std::string_view kCarrierCount = "carrier_changes";

}  // namespace heddle::nodeagent
