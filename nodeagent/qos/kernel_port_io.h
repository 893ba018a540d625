#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/qos/dcb_device.h"
#include "nodeagent/qos/dcb_settings.h"
#include "nodeagent/qos/fec_coding.h"
#include "nodeagent/qos/global_pause.h"
#include "nodeagent/qos/pfc_watchdog.h"
#include "nodeagent/qos/port_io.h"
#include "nodeagent/qos/queue_pairs.h"
#include "nodeagent/qos/setting_files.h"

namespace heddle::nodeagent {

// What stands between a KernelPortIo and the kernel; tests have their own. None is null but `fec` and `pause`.
struct QosSources {
  std::unique_ptr<SettingFiles> files;
  std::unique_ptr<DcbDevice> dcb;
  std::unique_ptr<PfcWatchdog> watchdog;
  std::unique_ptr<QueuePairs> queue_pairs;
  std::unique_ptr<EthtoolSource> statistics;
  std::unique_ptr<FecCoding> fec;            // null: nobody asks
  std::unique_ptr<GlobalPauseDevice> pause;  // null: nobody asks, and none can be set
};
// The live ones; `root` is "/".
QosSources LiveQosSources(const std::string& root = "/");

// The ports of this host: DCB by dcbnl, MTU by sysfs, the watchdog and global pause by ethtool, ECN and DCQCN by mlx5's
// files, ToS by configfs, queue pairs by RDMA netlink. It keeps nothing between two calls but open sockets.
// kTrafficClass (NCCL_IB_TC) is no setting of a port: it is neither read nor a gap, and writing it does nothing.
//
// Write goes in this order, each group one message or file: DCBX; MTU, which buffers are sized by; trust; DSCPs; ETS;
// buffers; watchdog, so that PFC is never on without one; global pause that goes, since a NIC may have one of both
// only; PFC and cable; global pause that comes back; ECN, CNPs, DCQCN, ToS. WriteBack gives DCBX back to the firmware
// last, as some drivers take nothing else from then on. Of a table only what differs is sent, and
// what is right already is not sent at all. A group is read anew before it is written, so that what somebody else
// changed in it meanwhile is kept or seen.
// Thread rule: one thread.
class KernelPortIo final : public PortIo {
 public:
  explicit KernelPortIo(QosSources sources) : sources_(std::move(sources)) {}
  QosReading Read(const QosPort& port) override;
  [[nodiscard]] base::Status Write(const QosPort& port, std::span<const lossless::Setting> settings,
                                   const lossless::PortSettings& want) override;
  [[nodiscard]] base::Status WriteBack(const QosPort& port, std::span<const lossless::Setting> settings,
                                       const lossless::PortSettings& before) override;
  [[nodiscard]] base::Status WriteRoce1(const QosPort& port) override;
  [[nodiscard]] base::Result<int> UserQueuePairs(const QosPort& port) override;
  std::vector<std::string> QueuePairHolders(const QosPort& port) override;
  [[nodiscard]] base::Result<LinkEvidence> Link(const QosPort& port) override;
  std::string LikelyWriter(const QosPort& port, lossless::Setting setting) override;

 private:
  bool Exists(const QosPort& port) const;
  void ReadMtu(const QosPort& port, QosReading& reading) const;
  std::optional<std::string> TrustFile(const QosPort& port) const;

  [[nodiscard]] base::Status WriteDcbx(const QosPort& port, const lossless::PortSettings& want);
  [[nodiscard]] base::Status WriteMtu(const QosPort& port, int mtu) const;
  [[nodiscard]] base::Status WriteTrust(const QosPort& port, const lossless::PortSettings& want);
  [[nodiscard]] base::Status WriteDscps(const QosPort& port, const lossless::PortSettings& want,
                                        Unsaid unsaid);
  [[nodiscard]] base::Status WriteAll(const QosPort& port, std::span<const lossless::Setting> settings,
                                      const lossless::PortSettings& want, Unsaid unsaid);
  // ETS, buffers, or PFC and cable: those of `settings`.
  [[nodiscard]] base::Status WriteTables(const QosPort& port, std::span<const lossless::Setting> settings,
                                         const lossless::PortSettings& want);
  [[nodiscard]] base::Status WriteWatchdog(const QosPort& port, int milliseconds);
  [[nodiscard]] base::Status WriteGlobalPause(const QosPort& port, lossless::GlobalPause pause);

  QosSources sources_;
};

}  // namespace heddle::nodeagent
