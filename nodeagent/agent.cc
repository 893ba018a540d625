#include "nodeagent/agent.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <thread>

#include "crds/keys.h"
#include "kube/lease.h"
#include "nodeagent/allocation_events.h"
#include "nodeagent/grant_watch.h"

namespace heddle::nodeagent {
namespace {

void LogObservation(const AgentOptions& options, const Observation& before, const Observation& now,
                    bool first) {
  if (!options.log) return;
  if (first) {
    options.log(fmt::format("Discovered node={} machine=\"{}\" gpus={} nics={} driver=\"{}\"", options.node,
                            now.node.machine, now.node.gpus.size(), now.node.nics.size(),
                            now.no_driver.empty() ? "answers" : now.no_driver));
    for (const Exclusion& excluded : now.excluded) {
      options.log(fmt::format("Left out node={} device={} reason=\"{}\"", options.node, excluded.device,
                              excluded.reason));
    }
  } else {
    for (const std::string& change : topology::Diff(before.node, now.node)) {
      options.log(fmt::format("Changed node={} what=\"{}\"", options.node, change));
    }
  }
  if (first || before.problems != now.problems) {
    for (const std::string& problem : now.problems) {
      options.log(fmt::format("Could not see node={} what=\"{}\"", options.node, problem));
    }
  }
}

// Starts with the first sight of the own object, so that the Lease can belong to the same Node and go with
// it.
class Heartbeat {
 public:
  Heartbeat(kube::Client& client, base::Clock& clock, base::Random random, const AgentOptions& options)
      : client_(client), clock_(clock), random_(random), options_(options) {}

  void Start(const std::optional<kube::OwnerReference>& owner) {
    kube::HeartbeatOptions heartbeat;
    heartbeat.lease = {std::string(crds::keys::kNamespace), crds::keys::NodeLease(options_.node)};
    heartbeat.identity = options_.node;
    heartbeat.owner = owner;
    heartbeat_ = std::make_unique<kube::LeaseHeartbeat>(client_, clock_, random_, std::move(heartbeat));
    thread_ = std::jthread([this](std::stop_token stop) { heartbeat_->Run(std::move(stop)); });
  }

 private:
  kube::Client& client_;
  base::Clock& clock_;
  base::Random random_;
  const AgentOptions& options_;
  std::unique_ptr<kube::LeaseHeartbeat> heartbeat_;
  std::jthread thread_;  // last: ends before the heartbeat does
};

// Offers what containers hold, at first before this returns, so that the first publication has it.
class Grants {
 public:
  Grants(Publisher& publisher, base::Clock& clock, const AgentOptions& options, const std::stop_token& stop) {
    if (options.grants == nullptr) {
      publisher.Offer(GrantReadings());
      return;
    }
    GrantWatchOptions watching;
    watching.interval = options.interval;
    watch_ = std::make_unique<GrantWatch>(
        *options.grants, clock, watching,
        [&publisher, &options, before = std::string()](const auto& now) mutable {
          if (options.log && now.problem != before) {
            options.log(now.problem.empty() ? fmt::format("Reading grants again node={}", options.node)
                                            : fmt::format("Could not read grants node={} why=\"{}\"",
                                                          options.node, now.problem));
          }
          before = now.problem;
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

}  // namespace

void RunAgent(Discovery& discovery, kube::Client& client, base::Clock& clock, base::Random random,
              const AgentOptions& options, std::stop_token stop) {
  Heartbeat heartbeat(client, clock, random.Fork(), options);
  PublisherOptions publishing;
  publishing.node = options.node;
  publishing.jitter = options.publish_jitter;
  publishing.log = options.log;
  publishing.on_object = [&heartbeat](const auto& owner) { heartbeat.Start(owner); };
  Publisher publisher(client, clock, random.Fork(), std::move(publishing));
  const std::jthread watcher([&publisher](std::stop_token ended) { publisher.Watch(std::move(ended)); });
  const std::jthread writer([&publisher](std::stop_token ended) { publisher.Run(std::move(ended)); });

  const Grants grants(publisher, clock, options, stop);
  Observation before;
  for (bool first = true; !stop.stop_requested(); first = false) {
    Observation now = discovery.Look();
    LogObservation(options, before, now, first);
    publisher.Offer(now);
    before = std::move(now);
    // With --once there is nothing to look for again: only to wait until it is published.
    constexpr auto kPoll = std::chrono::milliseconds(100);
    while (options.once && !publisher.published() && clock.SleepFor(kPoll, stop)) {
    }
    if (options.once || !clock.SleepFor(options.interval, stop)) break;
  }
}

}  // namespace heddle::nodeagent
