// The agent's own monitor on this machine, to which nobody speaks but RDMA devices by verbs: its clock is set to a day,
// and what interfaces and uevents say is kept from it. A look after the first is one that an asynchronous event asked
// for. It listens to soft-RoCE, too, which the agent leaves alone (verbs_events.h). One JSON object a line, with the
// milliseconds since the start, until SIGTERM.

#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/process.h"
#include "nodeagent/monitor/monitor.h"

namespace {

using namespace heddle::nodeagent;  // NOLINT(google-build-using-namespace): a main.cc names all of them

class OnlyVerbs final : public KernelEvents {
 public:
  explicit OnlyVerbs(std::unique_ptr<KernelEvents> kernel) : kernel_(std::move(kernel)) {}
  std::vector<KernelEvent> Wait(std::stop_token stop) override {
    std::vector<KernelEvent> events;
    while (events.empty() && !stop.stop_requested()) {
      events = kernel_->Wait(stop);
      std::erase_if(events, [](const KernelEvent& event) { return event.kind != KernelEvent::Kind::kPort; });
    }
    return events;
  }
  std::vector<KernelSourceState> States() const override { return kernel_->States(); }
  void Watch(const std::set<std::string>& rdma_devices) override { kernel_->Watch(rdma_devices); }

 private:
  const std::unique_ptr<KernelEvents> kernel_;
};

}  // namespace

int main() {
  heddle::base::StopSignals signals;
  const std::stop_token stop = signals.Wait([](int) {});
  heddle::base::SystemClock clock;
  const heddle::base::DiskFileTree files("/");
  RecordedGpus no_gpus(files);
  Discovery discovery(files, no_gpus, {}, Identity{"bed", {}, {}}, {});
  LiveEthtool ethtool;
  CounterReader reader(files, ethtool);
  OnlyVerbs kernel(OpenKernelEvents([](std::string_view) { return true; }));
  MonitorOptions options;
  options.look_interval = options.counters_interval = std::chrono::hours(24);
  Monitor monitor(discovery, reader, &kernel, clock, options);

  std::mutex mutex;  // the callbacks come on several threads
  const auto started = clock.Now();
  const auto say = [&](const char* key, nlohmann::json value,
                       const std::optional<bool>& topology = std::nullopt) {
    nlohmann::json line = nlohmann::json::object();
    line[key] = std::move(value);
    if (topology) line["topology"] = *topology;
    const std::lock_guard lock(mutex);
    line["at_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - started).count();
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  };
  MonitorCallbacks callbacks;
  callbacks.on_events = [&](const std::vector<KernelEvent>& events) {
    for (const KernelEvent& event : events) say("event", event.subject + ": " + event.what, event.topology);
  };
  callbacks.on_pass = [&](Pass pass, auto) { say("pass", std::string(PassName(pass))); };
  callbacks.on_sight = [&](const SightPtr& sight) {
    nlohmann::json ports = nlohmann::json::object();
    for (const PortHealth& port : sight->ports)
      ports[NameOf(port.port, "")] = std::string(heddle::topology::LinkStateName(port.state));
    say("ports", std::move(ports));
  };
  monitor.Run(callbacks, stop);
  return 0;
}
