#include "nodeagent/qos/link_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/scanner.h"
#include "nodeagent/health/counter_aliases.h"
#include "nodeagent/health/counters.h"

namespace heddle::nodeagent {
namespace {

// What the link loses, beside its errors. Of pause, marks and retries nothing: a policy is to make more of these.
bool IsLoss(Counter counter) {
  switch (counter) {
    case Counter::kSymbolErrors:
    case Counter::kUncorrectedSymbols:
    case Counter::kReceiveDiscards:
    case Counter::kOutOfSequence:
      return true;
    default:
      return false;
  }
}

bool IsLoss(std::string_view driver, CounterPlace place, std::string_view name) {
  const auto counter = FindCounter(driver, place, name);
  return counter && IsLoss(counter->id.counter);
}

void AddFiles(const base::FileTree& files, const std::string& folder, CounterPlace place,
              std::string_view driver, LinkEvidence& evidence) {
  const auto names = files.List(folder);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!IsLoss(driver, place, name)) continue;
    const auto text = base::ReadTrimmed(files, fmt::format("{}/{}", folder, name));
    const auto value = text ? formats::Number<std::uint64_t>(*text) : std::nullopt;
    if (value) evidence.errors[name] = *value;
  }
}

}  // namespace

base::Result<LinkEvidence> ReadLinkEvidence(const base::FileTree& files, EthtoolSource& statistics,
                                            const QosPort& port) {
  const std::string base = "sys/class/net/" + port.netdev;
  LinkEvidence evidence;
  const auto changes = base::ReadTrimmed(files, base + "/carrier_changes");
  if (!changes)
    return base::Fail(
        changes.error().code == base::Code::kNotFound ? base::Code::kUnavailable : changes.error().code,
        fmt::format("the link of {}: {}", port.netdev, changes.error().message));
  evidence.carrier_changes = formats::Number<std::uint64_t>(*changes).value_or(0);
  // Of an interface that is set down there is no carrier to be read.
  evidence.carrier = base::ReadTrimmed(files, base + "/carrier").value_or("0") == "1";
  if (const auto read = statistics.Read(port.netdev); read) {
    for (std::size_t i = 0; i < read->values.size(); ++i) {
      const std::string& statistic = (*read->names)[i];
      if (IsLinkError(statistic) || IsLoss(port.driver, CounterPlace::kEthtool, statistic))
        evidence.errors[statistic] = read->values[i];
    }
  } else if (read.error().code != base::Code::kNotFound) {
    return base::Fail(read.error());
  }
  if (port.rdma_device.empty()) return evidence;
  const std::string driver = RdmaDriver(files, port.rdma_device);
  const std::string counters =
      fmt::format("sys/class/infiniband/{}/ports/{}/", port.rdma_device, port.rdma_port);
  AddFiles(files, counters + "counters", CounterPlace::kPort, driver, evidence);
  AddFiles(files, counters + "hw_counters", CounterPlace::kHardware, driver, evidence);
  return evidence;
}

bool IsLinkError(std::string_view statistic) {
  // mlx5 (en_stats.c), bnxt_en (bnxt_ethtool.c), ice (ice_ethtool.c), ionic (ionic_stats.c). Faults and the count of
  // links lost are not among them: each retraining makes some, and a change of PFC is one on mlx5.
  constexpr std::array<std::string_view, 14> kNames{"rx_crc_errors_phy",
                                                    "rx_in_range_len_errors_phy",
                                                    "rx_out_of_range_len_phy",
                                                    "rx_oversize_pkts_phy",
                                                    "rx_undersize_pkts_phy",
                                                    "rx_fragments_phy",
                                                    "rx_jabbers_phy",
                                                    "tx_errors_phy",
                                                    "tx_pause_storm_error_events",
                                                    "rx_fcs_err_frames",
                                                    "tx_err",
                                                    "rx_crc_errors.nic",
                                                    "illegal_bytes.nic",
                                                    "frames_rx_bad_fcs"};
  return std::find(kNames.begin(), kNames.end(), statistic) != kNames.end();
}

std::uint64_t ToleratedOf(std::string_view counter) {
  if (counter == kCarrierCount) return kToleratedChanges;
  const auto aliases = CounterAliases();
  const auto alias = std::find_if(aliases.begin(), aliases.end(), [counter](const CounterAlias& one) {
    return one.name == counter && IsLoss(one.counter);
  });
  if (alias == aliases.end()) return kTolerated;
  const bool symbols =
      alias->counter == Counter::kSymbolErrors || alias->counter == Counter::kUncorrectedSymbols;
  return symbols ? kToleratedSymbols : kToleratedLosses;
}

}  // namespace heddle::nodeagent
