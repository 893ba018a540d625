#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crds/node_devices.h"
#include "kube/http_server.h"
#include "nodeagent/monitor/kernel_events.h"
#include "nodeagent/monitor/monitor.h"
#include "nodeagent/monitor/pass_times.h"
#include "nodeagent/qos/loop.h"

namespace heddle::nodeagent {

// What the agent tells Prometheus: the links, GPUs and NVLinks of its node, and its own doings. Series are those of
// the last Sight, so one of a device that is gone goes with it. A device that merely cannot be read keeps the values
// that it had, and heddle_link_readable is 0 for it.
// Cardinality: some 60 series a port and 4 a GPU; a node with 8 GPUs and 10 NICs has 700.
// Thread rule: every member may be called from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void Saw(const SightPtr& sight);
  void Passed(Pass pass, std::chrono::nanoseconds took);
  void Stuck(const std::vector<StuckPass>& passes);  // all that do not end now
  void Heard(const std::vector<KernelEvent>& events);
  void Sources(const std::vector<KernelSourceState>& sources);   // whether the kernel can be heard
  void Offered(const std::vector<crds::DeviceReport>& devices);  // resources of which the kubelet is told
  void Wrote(bool written);                                      // an attempt to publish
  void Told(std::string_view reason);                            // an event of the Node
  void Dropped(std::uint64_t events);                            // so many were lost since the start

  void Lossless(const LosslessReadings& readings);
  void QosPassed(const QosCounts& counts, std::chrono::nanoseconds took);

  std::string NotReady() const;  // a sentence; empty once the machine was looked at, and while its passes end
  std::string Text() const;      // the text exposition format

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

// Answers /metrics, /healthz and /readyz (Metrics::NotReady). Of a pass that does not end /healthz says nothing: the
// kubelet would restart the container, and a thread that sleeps in the kernel ends by no signal, so that grants,
// devices and the word of what is wrong would go, too. `listen` as HttpServer takes it; null where it is empty.
// `metrics` must outlive it.
[[nodiscard]] base::Result<std::unique_ptr<kube::HttpServer>> Serve(const Metrics& metrics,
                                                                    const std::string& listen);

}  // namespace heddle::nodeagent
