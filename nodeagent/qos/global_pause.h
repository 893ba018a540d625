#pragma once

#include <string>

#include "base/result.h"
#include "lossless/port_settings.h"
#include "nodeagent/health/ethtool_socket.h"

namespace heddle::nodeagent {

// Link-level flow control of an interface, as it is configured. Errors as KernelError; kUnimplemented: the driver has
// no such setting, or lets nobody write it. Thread rule: one thread.
class GlobalPauseDevice {
 public:
  GlobalPauseDevice() = default;
  GlobalPauseDevice(const GlobalPauseDevice&) = delete;
  GlobalPauseDevice& operator=(const GlobalPauseDevice&) = delete;
  virtual ~GlobalPauseDevice() = default;
  [[nodiscard]] virtual base::Result<lossless::GlobalPause> Read(const std::string& netdev) = 0;
  [[nodiscard]] virtual base::Status Write(const std::string& netdev, lossless::GlobalPause pause) = 0;
};

// By SIOCETHTOOL, ETHTOOL_GPAUSEPARAM and ETHTOOL_SPAUSEPARAM: what ETHTOOL_MSG_PAUSE_GET and _SET ask the same driver,
// on kernels before 5.7 as well. Whether both ends agree on it by themselves stays as it is: several drivers take no
// other value there (mlx5 en_ethtool.c, ice_ethtool.c). Reading needs no rights, writing CAP_NET_ADMIN.
class EthtoolPause final : public GlobalPauseDevice {
 public:
  [[nodiscard]] base::Result<lossless::GlobalPause> Read(const std::string& netdev) override;
  [[nodiscard]] base::Status Write(const std::string& netdev, lossless::GlobalPause pause) override;

 private:
  EthtoolSocket socket_;
};

}  // namespace heddle::nodeagent
