#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nodeagent/monitor/kernel_events.h"

namespace heddle::nodeagent {

// What an asynchronous event of an RDMA device (ibv_event_type of infiniband/verbs.h) says; `port` where it is
// about one. Nothing: it is about a queue pair of somebody, or what we do not know.
std::optional<KernelEvent> OfAsyncEvent(const std::string& device, int type, int port);

// Whether a driver takes its device away from those who have it open. Where it does not, an open device pins the
// module, and whoever removes the device waits until all have closed it: rmmod, `rdma link delete`, unplugging.
// `driver`: what `device/driver` of the RDMA device links to; empty for those in software.
bool LetsGoOfOpen(std::string_view driver);

// Asynchronous events of RDMA devices by libibverbs. A device is open while it is listened to, which takes nothing
// of it but a context; one that goes away closes itself. Those whose driver does not let go are left alone: nobody
// may have to wait for us, and what happens to their ports is seen by their interfaces and counters.
// Thread rule: one thread.
class VerbsDevices {
 public:
  // `opens`: of which drivers devices are opened; tests of this class have others.
  explicit VerbsDevices(std::function<bool(std::string_view driver)> opens = LetsGoOfOpen)
      : opens_(std::move(opens)) {}
  VerbsDevices(const VerbsDevices&) = delete;
  VerbsDevices& operator=(const VerbsDevices&) = delete;
  ~VerbsDevices();

  // Opens those of `wanted` that are not open and closes the others. Empty, or which cannot be opened and why.
  std::string Open(const std::set<std::string>& wanted);
  // Those to be waited for until one is readable.
  std::vector<int> descriptors() const;
  // What is there of one descriptor, without waiting.
  void Take(int descriptor, std::vector<KernelEvent>& events);

 private:
  struct Device {
    void* context = nullptr;  // ibv_context
    int descriptor = -1;
  };
  static void Close(const Device& device);

  const std::function<bool(std::string_view driver)> opens_;
  std::map<std::string, Device> devices_;
  std::set<std::string> left_alone_;
};

}  // namespace heddle::nodeagent
