#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace heddle::nodeagent {

// Of every kubelet, whatever its --root-dir (k8s.io/kubelet pkg/apis/deviceplugin/v1beta1).
inline constexpr std::string_view kDevicePluginsFolder = "/var/lib/kubelet/device-plugins";

// Tells when a kubelet may have given devices to a container, or got a device plugin's new list: it writes a
// checkpoint then, kubelet_internal_checkpoint in the folder of the device plugins' sockets (k8s.io/kubernetes
// pkg/kubelet/cm/devicemanager). What is in it is the kubelet's own business; only that it was written is heard,
// and that costs nothing while nothing happens. It is not written when a pod goes.
// Thread rule: one thread.
class AllocationEvents {
 public:
  // `folder`: kDevicePluginsFolder, or where that is mounted. `clock` must outlive this.
  AllocationEvents(std::string folder, base::Clock& clock) : folder_(std::move(folder)), clock_(clock) {}

  // Calls `on_event` for each until `stop`. A folder that is not there is looked for every minute.
  void Run(const std::function<void()>& on_event, std::stop_token stop);

 private:
  // False where the folder cannot be watched.
  bool Listen(const std::function<void()>& on_event, const std::stop_token& stop);

  const std::string folder_;
  base::Clock& clock_;
};

}  // namespace heddle::nodeagent
