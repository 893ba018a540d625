#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "nodeagent/qos/dcb_message.h"
#include "nodeagent/qos/netlink_exchange.h"

namespace heddle::nodeagent {

// DCB of this host's interfaces: the kernel, or a test's. Errors as KernelError has them: kUnimplemented where the
// driver has no DCB or not this part, kUnavailable where the interface is gone or busy. Thread rule: one thread.
class DcbDevice {
 public:
  DcbDevice() = default;
  DcbDevice(const DcbDevice&) = delete;
  DcbDevice& operator=(const DcbDevice&) = delete;
  virtual ~DcbDevice() = default;
  [[nodiscard]] virtual base::Result<DcbState> Read(const std::string& netdev) = 0;
  // One message. The kernel takes its parts one after the other, so one with several may be taken in part.
  [[nodiscard]] virtual base::Status Change(const std::string& netdev, const DcbChange& change) = 0;
  [[nodiscard]] virtual base::Status DeleteApps(const std::string& netdev,
                                                const std::vector<DcbApp>& apps) = 0;
  // DCB_CAP_DCBX_* together. kConflict: the driver leaves DCBX to its firmware.
  [[nodiscard]] virtual base::Status ChangeDcbx(const std::string& netdev, int flags) = 0;
};

// By dcbnl. Reading needs no rights, writing CAP_NET_ADMIN.
class NetlinkDcb final : public DcbDevice {
 public:
  NetlinkDcb();
  [[nodiscard]] base::Result<DcbState> Read(const std::string& netdev) override;
  [[nodiscard]] base::Status Change(const std::string& netdev, const DcbChange& change) override;
  [[nodiscard]] base::Status DeleteApps(const std::string& netdev, const std::vector<DcbApp>& apps) override;
  [[nodiscard]] base::Status ChangeDcbx(const std::string& netdev, int flags) override;

 private:
  [[nodiscard]] base::Result<DcbAnswer> Ask(const std::string& question, std::uint32_t sequence,
                                            const std::string& netdev);
  NetlinkExchange kernel_;
};

}  // namespace heddle::nodeagent
