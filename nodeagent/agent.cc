#include "nodeagent/agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "crds/keys.h"
#include "kube/events.h"
#include "kube/lease.h"
#include "nodeagent/devices/pod_watch.h"
#include "nodeagent/grants/allocation_events.h"
#include "nodeagent/grants/grant_watch.h"
#include "nodeagent/publish/node_events.h"
#include "nodeagent/qos/ports.h"

namespace heddle::nodeagent {
namespace {

void LogObservation(const AgentOptions& options, const SightPtr& before, const Sight& sight) {
  if (!options.log) return;
  const Observation& now = sight.seen;
  if (before == nullptr) {
    options.log(fmt::format("Discovered node={} machine=\"{}\" gpus={} nics={} driver=\"{}\"", options.node,
                            now.node.machine, now.node.gpus.size(), now.node.nics.size(),
                            now.no_driver.empty() ? "answers" : now.no_driver));
    for (const Exclusion& excluded : now.excluded) {
      options.log(fmt::format("Left out node={} device={} reason=\"{}\"", options.node, excluded.device,
                              excluded.reason));
    }
  } else if (before->seen.node != now.node) {
    for (const std::string& change : topology::Diff(before->seen.node, now.node)) {
      options.log(fmt::format("Changed node={} what=\"{}\"", options.node, change));
    }
  }
  if (before == nullptr || before->seen.problems != now.problems) {
    for (const std::string& problem : now.problems) {
      options.log(fmt::format("Could not see node={} what=\"{}\"", options.node, problem));
    }
  }
}

// Starts with the first sight of the own object, so that the Lease can belong to the same Node and go with
// it.
class Heartbeat {
 public:
  Heartbeat(kube::Client& client, base::Clock& clock, base::Random random, const AgentOptions& options,
            const Monitor& monitor)
      : client_(client), clock_(clock), random_(random), options_(options), monitor_(monitor) {}

  void Start(const std::optional<kube::OwnerReference>& owner) {
    kube::HeartbeatOptions heartbeat;
    heartbeat.lease = {std::string(crds::keys::kNamespace), crds::keys::NodeLease(options_.node)};
    heartbeat.identity = options_.node;
    heartbeat.owner = owner;
    // What is published of a machine that nobody looks at any more is as old as that of an agent that is gone.
    heartbeat.withheld = [this] { return StuckText(monitor_.Stuck()); };
    heartbeat_ = std::make_unique<kube::LeaseHeartbeat>(client_, clock_, random_, std::move(heartbeat));
    thread_ = std::jthread([this](std::stop_token stop) { heartbeat_->Run(std::move(stop)); });
  }

 private:
  kube::Client& client_;
  base::Clock& clock_;
  base::Random random_;
  const AgentOptions& options_;
  const Monitor& monitor_;
  std::unique_ptr<kube::LeaseHeartbeat> heartbeat_;
  std::jthread thread_;  // last: ends before the heartbeat does
};

// Looks every few seconds whether the passes end, on a thread that asks the machine nothing. Blocks until stop.
void TellStuck(const Monitor& monitor, Publisher& publisher, Metrics& metrics, base::Clock& clock,
               const AgentOptions& options, const std::stop_token& stop) {
  constexpr auto kBetween = std::chrono::seconds(10);
  std::vector<StuckPass> before;
  metrics.Stuck(before);
  while (clock.SleepFor(kBetween, stop)) {
    std::vector<StuckPass> now = monitor.Stuck();
    if (now == before) continue;
    metrics.Stuck(now);
    publisher.Stuck(now);
    if (options.log)
      options.log(now.empty() ? fmt::format("Passes end again node={}", options.node)
                              : fmt::format("Stuck node={} why=\"{}\"", options.node, StuckText(now)));
    before = std::move(now);
  }
}

// The device plugin, and the pods whose plans it follows.
class Devices {
 public:
  // on_doubt: see NodeDevicesOptions.
  Devices(Publisher& publisher, Metrics& metrics, kube::Client& client, base::Clock& clock,
          base::Random random, const AgentOptions& options,
          std::function<void(const std::string& note)> on_doubt) {
    NodeDevicesOptions offering = *options.devices;
    offering.on_doubt = std::move(on_doubt);
    if (options.follow_plans) {
      pods_ = std::make_unique<PodWatch>(client, clock, random.Fork(), options.node, options.log, [this] {
        if (devices_) devices_->PodsChanged();
      });
      offering.pods = [this] { return pods_->Pods(); };
      offering.pods_now = [this] { return pods_->Now(); };
    }
    devices_ = std::make_unique<NodeDevices>(*options.files, clock, random, std::move(offering),
                                             [&publisher, &metrics](const DeviceNews& news) {
                                               metrics.Offered(news.reports);
                                               publisher.Offer(news);
                                             });
    serving_ = std::jthread([this](std::stop_token stop) { devices_->Run(std::move(stop)); });
    if (pods_) watching_ = std::jthread([this](std::stop_token stop) { pods_->Run(std::move(stop)); });
  }
  NodeDevices* operator->() { return devices_.get(); }

 private:
  std::unique_ptr<PodWatch> pods_;
  std::unique_ptr<NodeDevices> devices_;
  std::jthread serving_, watching_;  // last: they end before the rest does
};

// Offers what containers hold, at first before this returns, so that the first publication has it.
class Grants {
 public:
  Grants(Publisher& publisher, base::Clock& clock, const AgentOptions& options, const std::stop_token& stop,
         Devices* devices) {
    if (options.grants == nullptr) {
      publisher.Offer(GrantReadings());
      return;
    }
    GrantWatchOptions watching;
    watching.interval = std::min(watching.interval, options.grants_interval);
    watch_ = std::make_unique<GrantWatch>(
        *options.grants, clock, watching,
        [&publisher, &options, devices, before = std::string()](GrantReadings now) mutable {
          if (options.log && now.problem != before) {
            options.log(now.problem.empty() ? fmt::format("Reading grants again node={}", options.node)
                                            : fmt::format("Could not read grants node={} why=\"{}\"",
                                                          options.node, now.problem));
          }
          before = now.problem;
          if (devices != nullptr) (*devices)->Hear(now);
          publisher.Offer(now);
        });
    watch_->RunOnce(stop);
    if (options.once) return;
    thread_ = std::jthread([this](std::stop_token ended) { watch_->Run(std::move(ended)); });
    if (options.device_plugins.empty()) return;
    events_ = std::jthread([this, &clock, folder = options.device_plugins](std::stop_token ended) {
      AllocationEvents(folder, clock).Run([this] { watch_->Wake(); }, std::move(ended));
    });
  }

 private:
  std::unique_ptr<GrantWatch> watch_;
  std::jthread thread_, events_;  // last: they end before the watch does
};

// Tells what became of the node. A line of the log says each event, so that one which the server never takes is
// known here; while the server is away they wait, with the time at which they happened.
class Teller {
 public:
  Teller(kube::EventRecorder& recorder, Metrics& metrics, const AgentOptions& options)
      : recorder_(recorder), metrics_(metrics), options_(options), about_(NodeReference(options.node)) {}

  void Restore(const crds::NodeTopologyStatus& published) {
    const std::lock_guard lock(mutex_);
    events_.Restore(published.node, published.boot_id);
  }
  void Learn(crds::PlaceLabels labels) {
    const std::lock_guard lock(mutex_);
    events_.Learn(std::move(labels));
  }
  void Look(const Sight& sight) {
    const std::lock_guard lock(mutex_);
    for (const NodeEvent& event : events_.Look(sight)) Tell(event.severity, event.reason, event.note);
    metrics_.Dropped(recorder_.dropped());
  }
  void Doubt(const std::string& note) {
    const std::lock_guard lock(mutex_);
    Tell(kube::Severity::kWarning, kDevicesAmbiguous, note);
  }
  void Tell(const std::vector<QosEvent>& events) {
    const std::lock_guard lock(mutex_);
    for (const QosEvent& event : events)
      Tell(event.warning ? kube::Severity::kWarning : kube::Severity::kNormal, event.reason, event.note);
  }

 private:
  void Tell(kube::Severity severity, std::string_view reason, const std::string& note) {
    if (options_.log)
      options_.log(fmt::format("Told node={} reason={} note=\"{}\"", options_.node, reason, note));
    recorder_.Record(about_, severity, reason, note);
    metrics_.Told(reason);
  }

  kube::EventRecorder& recorder_;
  Metrics& metrics_;
  const AgentOptions& options_;
  const kube::ObjectReference about_;
  std::mutex mutex_;
  NodeEvents events_;
};

// Takes the devices of a port away while it is being set.
class DeviceGate final : public PortGate {
 public:
  explicit DeviceGate(Devices* devices) : devices_(devices) {}  // not null where it is used
  void Withdraw(const std::string& port, const std::string& reason) override {
    (*devices_)->Withdraw(port, reason);
  }
  void Restore(const std::string& port) override { (*devices_)->Restore(port); }
  bool Withdrawn(const std::string& port) const override { return (*devices_)->Withdrawn(port); }
  std::string Leak() const override { return (*devices_)->Leak(); }
  std::vector<std::string> Holders(const std::string& port) const override {
    return (*devices_)->Holders(port);
  }

 private:
  Devices* const devices_;
};

// Holds the ports against spec.lossless on a thread of its own. What an agent before this one left in the middle is
// taken up before this returns, so that no pod gets such a port.
class Lossless {
 public:
  Lossless(const LosslessParts& parts, PortGate* gate, base::Clock& clock, Metrics& metrics, Teller& teller,
           Publisher& publisher, Monitor& monitor, const AgentOptions& options, Devices* devices)
      : parts_(parts) {
    if (parts.io == nullptr) {
      if (devices != nullptr) (*devices)->Read({});
      return;
    }
    QosCallbacks callbacks;
    callbacks.on_readings = [&metrics, &publisher, devices](const LosslessReadings& readings) {
      metrics.Lossless(readings);
      if (devices != nullptr && readings.reports) (*devices)->Read(*readings.reports);
      publisher.Offer(readings);
    };
    callbacks.on_events = [&teller](const std::vector<QosEvent>& events) { teller.Tell(events); };
    callbacks.on_own_changes = [&monitor](const OwnLinkChanges& changes) { monitor.Expect(changes); };
    callbacks.on_pass = [&metrics](const QosCounts& counts, auto took) { metrics.QosPassed(counts, took); };
    callbacks.log = options.log;
    loop_ = std::make_unique<QosLoop>(*parts.io, *gate, *parts.journal, clock, parts.options,
                                      std::move(callbacks));
    loop_->RunOnce();
  }
  void Run() {
    if (!loop_) return;
    thread_ = std::jthread([this](std::stop_token stop) { loop_->Run(std::move(stop)); });
    if (parts_.events == nullptr) return;
    listener_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        parts_.events->Wait(stop);
        loop_->Wake();
      }
    });
  }
  // The kernel speaks of an interface: its MTU may be another.
  void Hear(const std::vector<KernelEvent>& events) {
    const bool interface = std::any_of(events.begin(), events.end(), [](const KernelEvent& event) {
      return event.kind != KernelEvent::Kind::kPort;
    });
    if (loop_ && interface) loop_->Wake();
  }
  void Restore(const crds::NodeTopologyStatus& published) {
    if (loop_) loop_->Restore(published.lossless, published.boot_id);
  }
  void Want(std::vector<crds::LosslessWish> wishes) {
    if (loop_) loop_->Want(std::move(wishes));
  }
  void Saw(const Sight& sight) {
    if (!loop_) return;
    std::vector<WatchedPort> watched;
    for (const PortHealth& port : sight.ports) watched.push_back(port.port);
    // What is watched says nothing of management NICs, and policies may select them. Only what looks found is compared:
    // while a driver is reset the files have less for a moment, and the port would pass for another NIC's.
    std::vector<QosPort> ports = QosPorts(QosPortsWanted::kAll, sight.seen.node, watched, nullptr);
    if (ports_ == ports) return;
    loop_->Have(QosPorts(QosPortsWanted::kAll, sight.seen.node, watched, parts_.files));
    ports_ = std::move(ports);
  }

 private:
  const LosslessParts& parts_;
  std::optional<std::vector<QosPort>> ports_;  // as the look that changed them last had them
  std::unique_ptr<QosLoop> loop_;
  std::jthread thread_, listener_;  // last: they end before the loop does
};

kube::EventRecorderOptions RecorderOf(const AgentOptions& options) {
  kube::EventRecorderOptions recorder;
  recorder.component = "heddle-nodeagent";
  recorder.instance = options.node;
  recorder.tries = 0;  // an outage of the server is when links break, too
  recorder.log = options.log;
  return recorder;
}

// `devices` is null where none are served. All of them outlive the callbacks.
MonitorCallbacks CallbacksOf(const AgentOptions& options, Teller& teller, Metrics& metrics, Devices* devices,
                             Publisher& publisher, Lossless& qos) {
  MonitorCallbacks callbacks;
  callbacks.on_sight = [&options, &teller, &metrics, devices, &publisher, &qos,
                        before = SightPtr()](const SightPtr& sight) mutable {
    LogObservation(options, before, *sight);
    teller.Look(*sight);
    metrics.Saw(sight);
    // The devices first: what is published of the first look must not be without them.
    if (devices != nullptr) (*devices)->Look(sight->seen);
    publisher.Offer(sight->seen);
    qos.Saw(*sight);
    before = sight;
  };
  callbacks.on_pass = [&metrics](Pass pass, auto took) { metrics.Passed(pass, took); };
  callbacks.on_events = [&metrics, &qos](const std::vector<KernelEvent>& events) {
    metrics.Heard(events);
    qos.Hear(events);
  };
  callbacks.on_sources = [&metrics](const auto& sources) { metrics.Sources(sources); };
  return callbacks;
}

// Beside the monitor: tells of passes that hang, or ends the agent once its one look is published.
std::jthread StartWaiter(Monitor& monitor, Publisher& publisher, Metrics& metrics, base::Clock& clock,
                         const AgentOptions& options, std::stop_source& ended) {
  if (!options.once) {
    return std::jthread([&monitor, &publisher, &metrics, &clock, &options](const std::stop_token& gone) {
      TellStuck(monitor, publisher, metrics, clock, options, gone);
    });
  }
  return std::jthread([&publisher, &clock, &ended](std::stop_token gone) {
    constexpr auto kPoll = std::chrono::milliseconds(100);
    while (!publisher.published() && clock.SleepFor(kPoll, gone)) {
    }
    ended.request_stop();
  });
}

}  // namespace

void RunAgent(Monitor& monitor, kube::Client& client, base::Clock& clock, base::Random random,
              Metrics& metrics, const AgentOptions& options, std::stop_token stop) {
  Heartbeat heartbeat(client, clock, random.Fork(), options, monitor);
  kube::EventRecorder recorder(client, clock, random.Fork(), RecorderOf(options));
  Teller teller(recorder, metrics, options);
  Lossless* lossless = nullptr;
  Devices* wished = nullptr;
  PublisherOptions publishing;
  publishing.node = options.node;
  publishing.jitter = options.publish_jitter;
  publishing.log = options.log;
  publishing.on_write = [&metrics](bool written) { metrics.Wrote(written); };
  publishing.on_object = [&](const auto& owner, const kube::Json& object) {
    heartbeat.Start(owner);
    // One that makes no sense, or that no agent has written yet, has nothing to remember.
    const auto own = crds::OwnNodeTopologyFromJson(object);
    const bool has_status = own && own->has_status;
    if (own) teller.Learn(own->object.spec.labels);
    if (has_status) teller.Restore(own->object.status);
    if (has_status) lossless->Restore(own->object.status);
    if (has_status && wished != nullptr)
      (*wished)->Restore(own->object.status.devices, own->object.status.boot_id);
    monitor.Restore(has_status ? own->object.status : crds::NodeTopologyStatus());
  };
  publishing.on_change = [&](const kube::Json& object) {
    // Of what a newer operator wrote each entry is taken that can be, and one that cannot is refused by itself.
    const auto own = crds::OwnNodeTopologyFromJson(object);
    if (!own) return;
    const crds::NodeTopologySpec& spec = own->object.spec;
    if (wished != nullptr) (*wished)->Wish(spec.devices, spec.lossless);
    lossless->Want(spec.lossless);
  };
  Publisher publisher(client, clock, random.Fork(), std::move(publishing));
  std::unique_ptr<Devices> devices;  // ends after those who tell it something, and before whom it tells
  if (options.devices && !options.once)
    devices = std::make_unique<Devices>(publisher, metrics, client, clock, random.Fork(), options,
                                        [&teller](const std::string& note) { teller.Doubt(note); });
  wished = devices.get();
  DeviceGate gate(devices.get());
  Lossless qos(options.lossless, devices ? static_cast<PortGate*>(&gate) : options.lossless.gate, clock,
               metrics, teller, publisher, monitor, options, devices.get());
  lossless = &qos;
  qos.Run();
  const std::jthread watcher([&publisher](std::stop_token ended) { publisher.Watch(std::move(ended)); });
  const std::jthread writer([&publisher](std::stop_token ended) { publisher.Run(std::move(ended)); });
  const std::jthread sender([&recorder](std::stop_token ended) { recorder.Run(std::move(ended)); });

  const Grants grants(publisher, clock, options, stop, devices.get());
  std::stop_source ended;
  const std::stop_callback also(stop, [&ended] { ended.request_stop(); });
  const MonitorCallbacks callbacks = CallbacksOf(options, teller, metrics, devices.get(), publisher, qos);
  const std::jthread waiter = StartWaiter(monitor, publisher, metrics, clock, options, ended);
  monitor.Run(callbacks, ended.get_token());
}

}  // namespace heddle::nodeagent
