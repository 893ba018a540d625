#pragma once

#include <string>

#include "base/result.h"
#include "nodeagent/health/ethtool_socket.h"

namespace heddle::nodeagent {

// How long an interface may be paused before its NIC gives up on the pause, in milliseconds, or
// lossless::kWatchdogOff, kWatchdogAuto (ETHTOOL_PFC_PREVENTION_TOUT). Errors as KernelError. Thread rule: one thread.
class PfcWatchdog {
 public:
  PfcWatchdog() = default;
  PfcWatchdog(const PfcWatchdog&) = delete;
  PfcWatchdog& operator=(const PfcWatchdog&) = delete;
  virtual ~PfcWatchdog() = default;
  [[nodiscard]] virtual base::Result<int> Read(const std::string& netdev) = 0;
  [[nodiscard]] virtual base::Status Write(const std::string& netdev, int milliseconds) = 0;
};

// By SIOCETHTOOL: ethtool's netlink has no tunables of this kind. Reading needs no rights, writing CAP_NET_ADMIN.
class EthtoolWatchdog final : public PfcWatchdog {
 public:
  [[nodiscard]] base::Result<int> Read(const std::string& netdev) override;
  [[nodiscard]] base::Status Write(const std::string& netdev, int milliseconds) override;

 private:
  [[nodiscard]] base::Status Ask(const std::string& netdev, unsigned command, std::uint16_t& value);
  EthtoolSocket socket_;
};

}  // namespace heddle::nodeagent
