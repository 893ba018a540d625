#include "nodeagent/health/counter_aliases.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle::nodeagent {
namespace {

constexpr std::array<std::string_view, kCounters> kNames = {
    "link_downed",
    "carrier_changes",
    "symbol_errors",
    "link_recoveries",
    "uncorrected_symbols",
    "receive_errors",
    "crc_errors",
    "remote_physical_errors",
    "local_link_integrity_errors",
    "buffer_overruns",
    "transmit_discards",
    "receive_discards",
    "transmit_wait",
    "out_of_sequence",
    "sequence_naks",
    "ack_timeouts",
    "retries_exceeded",
    "rnr_naks",
    "rnr_retries_exceeded",
    "adaptive_retransmits",
    "slow_restarts",
    "retransmits",
    "unresponsive_remotes",
    "out_of_buffer",
    "cnp_sent",
    "cnp_handled",
    "ecn_marked",
    "pause_received",
    "pause_sent",
    "pause_received_microseconds",
    "pause_sent_microseconds",
    "pause_storm_warnings",
    "pause_storms",
    "packets_sent",
};
static_assert(!kNames.back().empty());

constexpr Width k64{64, false};
constexpr Width k32{32, false};
constexpr Width SaturatesAt(int bits) {
  return {bits, true};
}

// The driver is the one of the PCI function: irdma sits on ice, bnxt_re on bnxt_en.
constexpr std::string_view kMlx5 = "mlx5_core";
constexpr std::string_view kBnxt = "bnxt_en";
constexpr std::string_view kIonic = "ionic";
constexpr std::string_view kIce = "ice";
constexpr std::string_view kI40e = "i40e";
constexpr std::string_view kEfa = "efa";
constexpr std::string_view kRxe = "rdma_rxe";
constexpr std::string_view kAny;

using enum Counter;
using enum CounterPlace;

constexpr auto kAliases = std::to_array<CounterAlias>({
    // The port counters of the InfiniBand specification (PortCounters of performance management), which stop at
    // their largest number. Widths: Linux, drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR. Where a driver has the
    // extended ones under the same names, its numbers go beyond these widths, which LinkHealth takes for that.
    {kLinkDowned, kPort, kAny, "link_downed", SaturatesAt(8)},
    {kSymbolErrors, kPort, kAny, "symbol_error", SaturatesAt(16)},
    {kLinkRecovery, kPort, kAny, "link_error_recovery", SaturatesAt(8)},
    {kReceiveErrors, kPort, kAny, "port_rcv_errors", SaturatesAt(16)},
    {kRemotePhysicalErrors, kPort, kAny, "port_rcv_remote_physical_errors", SaturatesAt(16)},
    {kLocalIntegrityErrors, kPort, kAny, "local_link_integrity_errors", SaturatesAt(4)},
    {kBufferOverruns, kPort, kAny, "excessive_buffer_overrun_errors", SaturatesAt(4)},
    {kTransmitDiscards, kPort, kAny, "port_xmit_discards", SaturatesAt(16)},
    {kTransmitWait, kPort, kAny, "port_xmit_wait", SaturatesAt(32)},
    {kPacketsSent, kPort, kAny, "port_xmit_packets", SaturatesAt(32)},

    // Linux, net/core/net-sysfs.c: sums of two atomic_t.
    {kCarrierChanges, kInterface, kAny, "carrier_changes", k32},

    // mlx5: Linux, drivers/infiniband/hw/mlx5/counters.c. Queue counters have 32 bits in the device, those of
    // congestion 64.
    {kOutOfSequence, kHardware, kMlx5, "out_of_sequence", k32},
    {kSequenceNaks, kHardware, kMlx5, "packet_seq_err", k32},
    {kAckTimeouts, kHardware, kMlx5, "local_ack_timeout_err", k32},
    {kRetriesExceeded, kHardware, kMlx5, "req_transport_retries_exceeded", k32},
    {kRnrRetries, kHardware, kMlx5, "rnr_nak_retry_err", k32},
    {kAdaptiveRetransmits, kHardware, kMlx5, "roce_adp_retrans", k32},
    {kSlowRestarts, kHardware, kMlx5, "roce_slow_restart", k32},
    {kOutOfBuffer, kHardware, kMlx5, "out_of_buffer", k32},
    {kCnpSent, kHardware, kMlx5, "np_cnp_sent", k64},
    {kCnpHandled, kHardware, kMlx5, "rp_cnp_handled", k64},
    {kEcnMarked, kHardware, kMlx5, "np_ecn_marked_roce_packets", k64},
    // Linux, drivers/net/ethernet/mellanox/mlx5/core/en_stats.c. A priority without PFC has no row. Kernels before
    // 5.x write a blank behind the name of the warnings.
    {kPauseReceived, kEthtool, kMlx5, "rx_prio#_pause", k64},
    {kPauseReceived, kEthtool, kMlx5, "rx_global_pause", k64},
    {kPauseSent, kEthtool, kMlx5, "tx_prio#_pause", k64},
    {kPauseSent, kEthtool, kMlx5, "tx_global_pause", k64},
    {kPauseReceivedTime, kEthtool, kMlx5, "rx_prio#_pause_duration", k64},
    {kPauseReceivedTime, kEthtool, kMlx5, "rx_global_pause_duration", k64},
    {kPauseSentTime, kEthtool, kMlx5, "tx_prio#_pause_duration", k64},
    {kPauseSentTime, kEthtool, kMlx5, "tx_global_pause_duration", k64},
    {kPauseStormWarnings, kEthtool, kMlx5, "tx_pause_storm_warning_events", k64},
    {kPauseStorms, kEthtool, kMlx5, "tx_pause_storm_error_events", k64},
    {kReceiveDiscards, kEthtool, kMlx5, "rx_discards_phy", k64},
    {kUncorrectedSymbols, kEthtool, kMlx5, "rx_pcs_symbol_err_phy", k64},
    {kCrcErrors, kEthtool, kMlx5, "rx_crc_errors_phy", k64},

    // bnxt_re: Linux, drivers/infiniband/hw/bnxt_re/hw_counters.c; the second name of each is that of Broadcom's
    // driver outside the kernel, the third that of its first releases (rocm-systems#5016).
    {kCnpSent, kHardware, kBnxt, "tx_cnp_pkts", k64},
    {kCnpSent, kHardware, kBnxt, "np_cnp_sent", k64},
    {kCnpSent, kHardware, kBnxt, "cnp_tx_pkts", k64},
    {kCnpHandled, kHardware, kBnxt, "rx_cnp_pkts", k64},
    {kCnpHandled, kHardware, kBnxt, "rp_cnp_handled", k64},
    {kCnpHandled, kHardware, kBnxt, "cnp_rx_pkts", k64},
    {kEcnMarked, kHardware, kBnxt, "rx_ecn_marked_pkts", k64},
    {kEcnMarked, kHardware, kBnxt, "np_ecn_marked_roce_packets", k64},
    {kAckTimeouts, kHardware, kBnxt, "to_retransmits", k64},
    {kAckTimeouts, kHardware, kBnxt, "local_ack_timeout_err", k64},
    {kSequenceNaks, kHardware, kBnxt, "seq_err_naks_rcvd", k64},
    {kSequenceNaks, kHardware, kBnxt, "packet_seq_err", k64},
    {kRetriesExceeded, kHardware, kBnxt, "max_retry_exceeded", k64},
    {kRnrNaks, kHardware, kBnxt, "rnr_naks_rcvd", k64},
    {kOutOfSequence, kHardware, kBnxt, "oos_drop_count", k64},
    {kOutOfSequence, kHardware, kBnxt, "res_oos_drop_count", k64},
    {kOutOfSequence, kHardware, kBnxt, "out_of_sequence", k64},
    {kReceiveErrors, kHardware, kBnxt, "rx_roce_errors", k64},
    {kReceiveErrors, kHardware, kBnxt, "rx_roce_error_pkts", k64},
    {kReceiveDiscards, kHardware, kBnxt, "rx_roce_discards", k64},
    {kReceiveDiscards, kHardware, kBnxt, "rx_roce_discard_pkts", k64},
    {kTransmitDiscards, kHardware, kBnxt, "tx_roce_discards", k64},
    // Linux, drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c.
    {kPauseReceived, kEthtool, kBnxt, "rx_pfc_ena_frames_pri#", k64},
    {kPauseReceived, kEthtool, kBnxt, "rx_pause_frames", k64},
    {kCrcErrors, kEthtool, kBnxt, "rx_fcs_err_frames", k64},
    {kPauseSent, kEthtool, kBnxt, "tx_pfc_ena_frames_pri#", k64},
    {kPauseSent, kEthtool, kBnxt, "tx_pause_frames", k64},

    // ionic: AMD's driver, ionic_stats.c; rocm-systems#5016. "outouf" is how it spells it.
    {kCnpSent, kHardware, kIonic, "tx_rdma_cnp_pkts", k64},
    {kCnpHandled, kHardware, kIonic, "rx_rdma_cnp_pkts", k64},
    {kEcnMarked, kHardware, kIonic, "rx_rdma_ecn_pkts", k64},
    {kSequenceNaks, kHardware, kIonic, "req_rx_pkt_seq_err", k64},
    {kAckTimeouts, kHardware, kIonic, "tx_rdma_ack_timeout", k64},
    {kRetriesExceeded, kHardware, kIonic, "req_tx_retry_excd_err", k64},
    {kRnrRetries, kHardware, kIonic, "req_rx_rnr_retry_err", k64},
    {kRetransmits, kHardware, kIonic, "tx_rdma_retx_pkts", k64},
    {kOutOfSequence, kHardware, kIonic, "resp_rx_outouf_seq", k64},
    {kOutOfBuffer, kHardware, kIonic, "resp_rx_outof_buf", k64},
    {kPauseReceived, kEthtool, kIonic, "frames_rx_pripause#", k64},
    {kPauseReceived, kEthtool, kIonic, "frames_rx_pause", k64},
    {kPauseSent, kEthtool, kIonic, "frames_tx_pripause#", k64},
    {kPauseSent, kEthtool, kIonic, "frames_tx_pause", k64},
    {kCrcErrors, kEthtool, kIonic, "frames_rx_bad_fcs", k64},

    // irdma: Linux, drivers/infiniband/hw/irdma/verbs.c, irdma_hw_stat_names; generation 2 counts CNPs in 32 bits.
    // Of RoCE it counts no time-outs and no packets out of sequence, only what it sent again.
    {kCnpSent, kHardware, kIce, "cnpSent", k32},
    {kCnpHandled, kHardware, kIce, "cnpHandled", k32},
    {kEcnMarked, kHardware, kIce, "RxECNMrkd", k64},
    {kRetransmits, kHardware, kIce, "tcpRetransSegs", k32},
    {kRetransmits, kHardware, kIce, "RetransSegs", k32},
    {kRnrNaks, kHardware, kIce, "RNR received", k64},
    {kReceiveDiscards, kHardware, kIce, "ip4InDiscards", k32},
    {kRetransmits, kHardware, kI40e, "tcpRetransSegs", k32},
    {kReceiveDiscards, kHardware, kI40e, "ip4InDiscards", k32},
    // Linux, drivers/net/ethernet/intel/ice/ice_ethtool.c, and i40e's.
    {kPauseReceived, kEthtool, kIce, "rx_priority_#_xoff.nic", k64},
    {kPauseReceived, kEthtool, kIce, "link_xoff_rx.nic", k64},
    {kPauseSent, kEthtool, kIce, "tx_priority_#_xoff.nic", k64},
    {kPauseSent, kEthtool, kIce, "link_xoff_tx.nic", k64},
    {kCrcErrors, kEthtool, kIce, "rx_crc_errors.nic", k64},
    {kCrcErrors, kEthtool, kI40e, "port.rx_crc_errors", k64},

    // EFA: drivers/infiniband/hw/efa/efa_verbs.c. Its network counters are of the SRD transport.
    {kReceiveDiscards, kHardware, kEfa, "rx_drops", k64},
    {kRetransmits, kHardware, kEfa, "retrans_pkts", k64},
    {kAckTimeouts, kHardware, kEfa, "retrans_timeout_events", k64},
    {kUnresponsiveRemote, kHardware, kEfa, "unresponsive_remote_events", k64},
    {kPacketsSent, kHardware, kEfa, "tx_pkts", k64},

    // rxe: Linux, drivers/infiniband/sw/rxe/rxe_hw_counters.c.
    {kLinkDowned, kHardware, kRxe, "link_downed", k64},
    {kOutOfSequence, kHardware, kRxe, "out_of_seq_request", k64},
    {kSequenceNaks, kHardware, kRxe, "rcvd_seq_err", k64},
    {kAckTimeouts, kHardware, kRxe, "completer_retry_err", k64},
    {kRetriesExceeded, kHardware, kRxe, "retry_exceeded_err", k64},
    {kRnrNaks, kHardware, kRxe, "rcvd_rnr_err", k64},
    {kRnrRetries, kHardware, kRxe, "retry_rnr_exceeded_err", k64},
    {kPacketsSent, kHardware, kRxe, "sent_pkts", k64},
});

// The places of kAliases in the order of their names: an mlx5 with all its channels has thousands of statistics to be
// told apart, and most of them are none of ours.
constexpr auto kByName = [] {
  std::array<std::uint16_t, kAliases.size()> ranks{};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = std::uint16_t(rank);
  std::sort(ranks.begin(), ranks.end(), [](std::uint16_t a, std::uint16_t b) {
    return kAliases[a].name == kAliases[b].name ? a < b : kAliases[a].name < kAliases[b].name;
  });
  return ranks;
}();

struct ByName {
  bool operator()(std::uint16_t rank, std::string_view name) const { return kAliases[rank].name < name; }
  bool operator()(std::string_view name, std::uint16_t rank) const { return name < kAliases[rank].name; }
};

// Of the aliases that are called exactly `name` the first that `driver` has there.
std::optional<std::size_t> FirstCalled(std::string_view name, std::string_view driver, CounterPlace place) {
  const auto [from, to] = std::equal_range(kByName.begin(), kByName.end(), name, ByName());
  const auto found = std::find_if(from, to, [&](std::uint16_t rank) {
    const CounterAlias& alias = kAliases[rank];
    return alias.place == place && (alias.driver.empty() || alias.driver == driver);
  });
  return found == to ? std::nullopt : std::optional<std::size_t>(*found);
}

}  // namespace

std::string_view CounterName(Counter counter) {
  const auto index = std::size_t(counter);
  return index < kNames.size() ? kNames[index] : std::string_view("unknown");
}

std::optional<Counter> ParseCounter(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return Counter(found - kNames.begin());
}

std::span<const CounterAlias> CounterAliases() {
  return kAliases;
}

std::optional<NamedCounter> FindCounter(std::string_view driver, CounterPlace place, std::string_view name) {
  std::optional<NamedCounter> best;
  const auto consider = [&](std::string_view called, int priority) {
    const auto rank = FirstCalled(called, driver, place);
    if (!rank || (best && best->rank < *rank)) return;
    best = NamedCounter{{kAliases[*rank].counter, priority}, kAliases[*rank].width, *rank};
  };
  if (name.find('#') == std::string_view::npos) consider(name, -1);
  std::string marked;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] < '0' || name[at] > '7') continue;
    marked = name;
    marked[at] = '#';
    consider(marked, name[at] - '0');
  }
  return best;
}

}  // namespace heddle::nodeagent
