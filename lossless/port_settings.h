#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::lossless {

// What makes one port lossless, as values: of a host's netdev, or of a switch port. Every setting is
// optional and stands alone: it can be wanted alone, read back alone and compared alone. Nothing = nobody
// said, which is never zero.

inline constexpr int kPriorities = 8;   // IEEE 802.1Q priorities; traffic classes and buffers are as many
inline constexpr int kDscps = 64;       // RFC 2474
inline constexpr int kNotSaid = -1;     // in tables: nothing says where this one goes
inline constexpr int kWatchdogOff = 0;  // ETHTOOL_PFC_PREVENTION_TOUT (linux/ethtool.h)
inline constexpr int kWatchdogAuto = 65535;
// Of switches: SONiC's action `alert`, by which a storm is told and goes on (sonic-swss, orchagent/pfcwdorch.cpp).
inline constexpr int kWatchdogAlerts = -2;
inline constexpr int kMinWatchdogMs = 80;  // mlx5's range (drivers/net/ethernet/mellanox/mlx5, en_ethtool.c)
inline constexpr int kMaxWatchdogMs = 8000;

// A set of priorities, 0 to 7.
class PrioritySet {
 public:
  PrioritySet() = default;
  PrioritySet(std::initializer_list<int> priorities) {
    for (const int priority : priorities) Insert(priority);
  }
  void Insert(int priority) {  // others than 0 to 7 are left out
    if (priority >= 0 && priority < kPriorities) bits_ |= std::uint8_t(1U << unsigned(priority));
  }
  bool Contains(int priority) const {
    return priority >= 0 && priority < kPriorities && (bits_ & (1U << unsigned(priority))) != 0;
  }
  std::vector<int> Members() const;  // ascending
  int size() const { return int(Members().size()); }
  bool empty() const { return bits_ == 0; }
  std::uint8_t bits() const { return bits_; }
  friend bool operator==(const PrioritySet&, const PrioritySet&) = default;

 private:
  std::uint8_t bits_ = 0;
};
std::string Text(const PrioritySet& set);  // "3,4", "none"

enum class Trust : std::uint8_t { kPcp, kDscp };  // which header field picks the priority
// Who writes DCB settings: the OS by IEEE 802.1Qaz, an agent in the NIC, or the OS in the manner of DCBX before that
// standard (CEE), in which a driver takes none of what we set as said.
enum class Dcbx : std::uint8_t { kHost, kFirmware, kHostCee };
// IEEE 802.1Qaz transmission selection. kAny: nothing is said of this class, or asked of it.
enum class Algorithm : std::uint8_t { kStrict, kEts, kCbs, kVendor, kAny };
// Link-level flow control (IEEE 802.3 annex 31B), which stops all classes of the link, as the port is configured; with
// autonegotiation that is what it offers its peer. kReceive: it stops where its peer says so.
enum class GlobalPause : std::uint8_t { kNone, kReceive, kSend, kBoth };
std::string_view TrustName(Trust trust);              // "PCP", "DSCP"
std::string_view DcbxName(Dcbx dcbx);                 // "Host", "Firmware", "HostCEE"
std::string_view AlgorithmName(Algorithm algorithm);  // "Strict", "ETS", "CBS", "Vendor", "Any"
std::string_view GlobalPauseName(GlobalPause pause);  // "None", "RX", "TX", "RXTX"
std::optional<Trust> ParseTrust(std::string_view name);
std::optional<Dcbx> ParseDcbx(std::string_view name);
std::optional<Algorithm> ParseAlgorithm(std::string_view name);
std::optional<GlobalPause> ParseGlobalPause(std::string_view name);

using DscpMap = std::array<std::int8_t, kDscps>;             // DSCP → priority, or kNotSaid
using PriorityTable = std::array<std::int8_t, kPriorities>;  // priority → class, buffer or queue, or kNotSaid
using Algorithms = std::array<Algorithm, kPriorities>;       // by traffic class
using Numbers = std::array<int, kPriorities>;                // by traffic class or buffer, or kNotSaid
DscpMap AllDscps(int priority);
PriorityTable Identity();

// The DSCPs of one priority, as ranges: "0-25,27-47,49-63"; empty = none. Back: nothing where the text is no
// such list of numbers 0 to 63 (each once, at most 256 characters).
std::string DscpRanges(const DscpMap& map, int priority);
std::optional<std::vector<int>> ParseDscpRanges(std::string_view text);

// DCQCN as mlx5 has it (drivers/infiniband/hw/mlx5/cong.c): names are the kernel's debugfs files in
// lowerCamelCase, values and units its own (rates Mb/s, times µs). rp = reaction point (the sender), np =
// notification point.
enum class DcqcnParameter : std::uint8_t {
  kRpAiRate,
  kRpByteReset,
  kRpClampTgtRate,
  kRpDceTcpG,
  kRpGd,
  kRpHaiRate,
  kRpInitialAlphaValue,
  kRpMinDecFac,
  kRpMinRate,
  kRpRateReduceMonitorPeriod,
  kRpRateToSetOnFirstCnp,
  kRpThreshold,
  kRpTimeReset,
  kNpMinTimeBetweenCnps,
};
inline constexpr int kDcqcnParameters = 14;
std::span<const std::string_view> DcqcnParameterNames();  // in the order of the values: "rpAiRate", …
std::string_view DcqcnParameterName(DcqcnParameter parameter);
std::optional<DcqcnParameter> ParseDcqcnParameter(std::string_view name);
using Dcqcn = std::map<DcqcnParameter, int>;

// Where a queue begins to mark packets as having met congestion, and where it marks all it still takes.
struct EcnMarking {
  int min_bytes = 0;
  int max_bytes = 0;
  int probability_percent = 0;  // at max_bytes
  friend bool operator==(const EcnMarking&, const EcnMarking&) = default;
};
using EcnMarkings = std::map<int, EcnMarking>;  // by priority

struct PortSettings {
  std::optional<Dcbx> dcbx;
  std::optional<Trust> trust;
  std::optional<DscpMap> dscp_to_priority;
  std::optional<PrioritySet> pfc;
  // How long pause may last: kWatchdogOff, kWatchdogAuto, kWatchdogAlerts, or milliseconds.
  std::optional<int> watchdog_ms;
  std::optional<int> cable_metres;  // by which the driver sizes the headroom, 0 to 1000
  std::optional<PriorityTable> priority_to_class;
  std::optional<Algorithms> class_algorithm;
  std::optional<Numbers> class_percent;
  std::optional<PriorityTable> priority_to_buffer;
  std::optional<Numbers> buffer_bytes;
  std::optional<int> mtu;          // of IP packets, bytes
  std::optional<PrioritySet> ecn;  // hosts: DCQCN acts on these; switches: their queues mark
  std::optional<int> cnp_dscp;
  std::optional<int> cnp_priority;
  std::optional<int> tos;            // the ToS byte of RDMA connections that say none (rdma_cm)
  std::optional<int> traffic_class;  // the ToS byte of NCCL: NCCL_IB_TC
  std::optional<Dcqcn> dcqcn;
  std::optional<GlobalPause> global_pause;

  // Of switches only.
  // The priority that pauses the sender of this one: the number of its group, where no map says another.
  std::optional<PriorityTable> priority_to_group;
  std::optional<PriorityTable> priority_to_queue;
  std::optional<PriorityTable> pause_to_queue;  // the queue that a pause for this priority stops
  std::optional<PrioritySet> watched;           // the watchdog looks at these
  std::optional<EcnMarkings> marking;
  // The queue that a pause for these stops has a lossy buffer, or one that is not. Of what is in neither nobody says.
  std::optional<PrioritySet> lossy_queues;
  std::optional<PrioritySet> lossless_queues;
  std::optional<PrioritySet>
      sized_by_switch;  // it reckons the headroom of these itself: no buffer_bytes are said
  friend bool operator==(const PortSettings&, const PortSettings&) = default;
};

enum class Setting : std::uint8_t {
  kDcbx,
  kTrust,
  kDscpToPriority,
  kPfc,
  kWatchdogMs,
  kCableMetres,
  kPriorityToClass,
  kClassAlgorithm,
  kClassPercent,
  kPriorityToBuffer,
  kBufferBytes,
  kMtu,
  kEcn,
  kCnpDscp,
  kCnpPriority,
  kTos,
  kTrafficClass,
  kDcqcn,
  kGlobalPause,
  kPriorityToGroup,
  kPriorityToQueue,
  kPauseToQueue,
  kWatched,
  kMarking,
  kLossyQueues,
  kLosslessQueues,
  kSizedBySwitch,
};
inline constexpr int kHostSettings = 19;  // the first ones; the rest is of switches only
inline constexpr int kSettings = 27;
// In the order of the values, as the fields of our resources are called: "dscpToPriority".
std::span<const std::string_view> SettingNames();
std::string_view SettingName(Setting setting);
std::optional<Setting> ParseSetting(std::string_view name);

// Calls each(setting, member) with a pointer to every member that hosts have.
template <class Each>
void ForEachHostSetting(Each each) {
  each(Setting::kDcbx, &PortSettings::dcbx);
  each(Setting::kTrust, &PortSettings::trust);
  each(Setting::kDscpToPriority, &PortSettings::dscp_to_priority);
  each(Setting::kPfc, &PortSettings::pfc);
  each(Setting::kWatchdogMs, &PortSettings::watchdog_ms);
  each(Setting::kCableMetres, &PortSettings::cable_metres);
  each(Setting::kPriorityToClass, &PortSettings::priority_to_class);
  each(Setting::kClassAlgorithm, &PortSettings::class_algorithm);
  each(Setting::kClassPercent, &PortSettings::class_percent);
  each(Setting::kPriorityToBuffer, &PortSettings::priority_to_buffer);
  each(Setting::kBufferBytes, &PortSettings::buffer_bytes);
  each(Setting::kMtu, &PortSettings::mtu);
  each(Setting::kEcn, &PortSettings::ecn);
  each(Setting::kCnpDscp, &PortSettings::cnp_dscp);
  each(Setting::kCnpPriority, &PortSettings::cnp_priority);
  each(Setting::kTos, &PortSettings::tos);
  each(Setting::kTrafficClass, &PortSettings::traffic_class);
  each(Setting::kDcqcn, &PortSettings::dcqcn);
  each(Setting::kGlobalPause, &PortSettings::global_pause);
}
// All of them, those of switches last.
template <class Each>
void ForEachSetting(Each each) {
  ForEachHostSetting(each);
  each(Setting::kPriorityToGroup, &PortSettings::priority_to_group);
  each(Setting::kPriorityToQueue, &PortSettings::priority_to_queue);
  each(Setting::kPauseToQueue, &PortSettings::pause_to_queue);
  each(Setting::kWatched, &PortSettings::watched);
  each(Setting::kMarking, &PortSettings::marking);
  each(Setting::kLossyQueues, &PortSettings::lossy_queues);
  each(Setting::kLosslessQueues, &PortSettings::lossless_queues);
  each(Setting::kSizedBySwitch, &PortSettings::sized_by_switch);
}

// The priority by which a packet of this DSCP is paused, or kNotSaid: over the group, where a switch has one.
int PriorityOf(const PortSettings& settings, int dscp);
// Whether its class is lossless: nothing where neither the map nor PFC is known.
std::optional<bool> IsLossless(const PortSettings& settings, int dscp);
// What a host's port is held against: what is wanted of it, and what follows. Where a priority has PFC there is to be
// no global pause: it stops all classes at once, and where a NIC has only one of both, PFC is not in force. Where the
// VLAN tag is trusted no DSCP picks a priority: a map that is left over is no drift, and one that is not there is not
// written, as drivers without a word for trust would trust DSCPs again with its first entry.
PortSettings WithWhatFollows(PortSettings wanted);
// The DSCP of data: of the ToS byte of rdma_cm, else of NCCL's.
std::optional<int> DataDscp(const PortSettings& settings);

}  // namespace heddle::lossless
