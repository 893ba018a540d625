#include "nodeagent/monitor/monitor.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/poll.h"
#include "base/process.h"

namespace heddle::nodeagent {
namespace {

const std::string kKey = "pass";  // each queue has one kind of work

using States = std::map<std::string, topology::LinkState>;

States StatesOf(const std::vector<PortHealth>& ports) {
  States states;
  for (const PortHealth& port : ports) states.emplace(port.port.key, port.state);
  return states;
}

std::set<std::string> DevicesOf(const std::vector<WatchedPort>& ports) {
  std::set<std::string> devices;
  for (const WatchedPort& port : ports) {
    if (!port.device.empty()) devices.insert(port.device);
  }
  return devices;
}

bool AnyFault(const std::vector<PortHealth>& ports) {
  return std::any_of(ports.begin(), ports.end(),
                     [](const PortHealth& port) { return port.fault != topology::LinkFault::kNone; });
}

// What did not change waits for the next pass over the counters: those of traffic always do.
bool IsNews(const std::vector<LeafCounts>& before, const std::vector<LeafCounts>& now) {
  const auto same = [](const LeafCounts& a, const LeafCounts& b) {
    const auto still = [](const PmaCount& one, const PmaCount& other) {
      return !StandsStill(one.name) || one == other;
    };
    return a.guid == b.guid && a.leaf_port == b.leaf_port && a.unread == b.unread &&
           std::equal(a.counts.begin(), a.counts.end(), b.counts.begin(), b.counts.end(), still);
  };
  return !std::equal(before.begin(), before.end(), now.begin(), now.end(), same);
}

}  // namespace

Monitor::Monitor(Discovery& discovery, CounterReader& reader, KernelEvents* kernel, base::Clock& clock,
                 MonitorOptions options, LeafCountSource* leaves)
    : discovery_(discovery),
      reader_(reader),
      kernel_(kernel),
      leaves_(leaves),
      clock_(clock),
      options_(options),
      look_(clock),
      counters_(clock),
      leaf_(clock) {}

void Monitor::Run(const MonitorCallbacks& callbacks, const std::stop_token& stop) {
  look_.Add(kKey);
  const std::jthread look([&] { LookLoop(callbacks, stop); });
  std::jthread kernel;
  if (kernel_ != nullptr) kernel = std::jthread([&] { KernelLoop(callbacks, stop); });
  std::jthread leaf;
  if (leaves_ != nullptr) leaf = std::jthread([&] { LeafLoop(callbacks, stop); });
  std::jthread gpu;
  if (discovery_.gpu_news() >= 0) gpu = std::jthread([&] { GpuLoop(stop); });
  CountersLoop(callbacks, stop);
}

void Monitor::Restore(const crds::NodeTopologyStatus& published) {
  {
    const std::lock_guard lock(mutex_);
    published_ = published;
  }
  counters_.Add(kKey);
}

void Monitor::Expect(const OwnLinkChanges& changes) {
  const std::lock_guard lock(mutex_);
  expected_.push_back(changes);
}

std::vector<StuckPass> Monitor::Stuck() const {
  return under_way_.Stuck(
      {{Pass::kLook, options_.look_at_most}, {Pass::kCounterPass, options_.counters_at_most}}, clock_.Now());
}

void Monitor::LookLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop) {
  while (look_.Get(stop)) {
    const base::MonotonicTime started = clock_.Now();
    under_way_.Began(Pass::kLook, started, clock_.WallNow());
    Readings readings = discovery_.Read();
    // One that was cut short says less than there is.
    if (stop.stop_requested()) {
      under_way_.Ended(Pass::kLook);
      return;
    }
    Observation seen = discovery_.Put(readings);
    const base::MonotonicTime ended = clock_.Now();
    {
      const std::lock_guard lock(mutex_);
      looked_ = Looked{std::move(readings), std::move(seen)};
      last_look_ = ended;
    }
    under_way_.Ended(Pass::kLook);
    if (callbacks.on_pass) callbacks.on_pass(Pass::kLook, ended - started);
    counters_.Add(kKey);
    look_.Done(kKey);
    look_.AddAfter(kKey, options_.look_interval);
  }
}

void Monitor::AskForLook() {
  std::chrono::nanoseconds wait = options_.look_settle;
  {
    const std::lock_guard lock(mutex_);
    wait = std::max(wait, last_look_ + options_.look_spacing - clock_.Now());
  }
  look_.AddAfter(kKey, wait);
}

void Monitor::KernelLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::vector<KernelEvent> events = kernel_->Wait(stop);
    if (events.empty()) continue;
    counters_.AddAfter(kKey, options_.counters_settle);
    if (std::any_of(events.begin(), events.end(), [](const KernelEvent& event) { return event.topology; }))
      AskForLook();
    if (callbacks.on_events) callbacks.on_events(events);
  }
}

void Monitor::LeafLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop) {
  std::vector<LeafCounts> before;
  while (leaf_.Get(stop)) {
    std::vector<RdmaPortName> ports;
    {
      const std::lock_guard lock(mutex_);
      ports = with_leaves_;
    }
    const base::MonotonicTime started = clock_.Now();
    std::vector<LeafCounts> counted = leaves_->Read(ports);
    if (stop.stop_requested()) return;
    if (callbacks.on_pass && !ports.empty()) callbacks.on_pass(Pass::kLeafPass, clock_.Now() - started);
    const bool news = IsNews(before, counted);
    before = counted;
    {
      const std::lock_guard lock(mutex_);
      counted_ = std::move(counted);
    }
    if (news) counters_.Add(kKey);
    leaf_.Done(kKey);
    leaf_.AddAfter(kKey, options_.leaf_interval);
  }
}

// An XID that ends the use of a GPU ends a job, which waits for its repair.
void Monitor::GpuLoop(const std::stop_token& stop) {
  const base::StopEvent stopped(stop);
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> ready{{{discovery_.gpu_news(), POLLIN, 0}, {stopped.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;  // EINTR
    std::uint64_t times = 0;
    if (::read(ready[0].fd, &times, sizeof times) == ssize_t(sizeof times)) AskForLook();
  }
}

void Monitor::CountersLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop) {
  while (counters_.Get(stop)) {
    const base::MonotonicTime started = clock_.Now();
    under_way_.Began(Pass::kCounterPass, started, clock_.WallNow());
    const SightPtr sight = PassOver();
    const base::MonotonicTime ended = clock_.Now();
    if (kernel_ != nullptr && callbacks.on_sources) callbacks.on_sources(kernel_->States());
    if (sight && callbacks.on_pass) callbacks.on_pass(Pass::kCounterPass, ended - started);
    if (sight && callbacks.on_sight) callbacks.on_sight(sight);
    // Only now: whoever takes a sight may read files of the machine, too, and what does not come out of it is not
    // published.
    under_way_.Ended(Pass::kCounterPass);
    // What a look read and left free is a quarter of what this process has of its own, and is not used for a minute.
    if (std::exchange(looked_anew_, false)) base::ReturnFreeMemory();
    counters_.Done(kKey);
    counters_.AddAfter(kKey, options_.counters_interval);
  }
}

void Monitor::TakeRestored(const crds::NodeTopologyStatus& published) {
  // Late, as after an API server was away: what this agent has found itself by now is newer.
  const bool late = restored_ || !links_.ports().empty();
  restored_ = true;
  xids_.Restore(published);
  gpu_health_.Restore(published);
  if (late && AnyFault(links_.ports())) return;
  if (late) {
    links_ = LinkHealth();
    nvlinks_ = NvlinkHealth();
  }
  RestoreHealth(published, links_, nvlinks_);
}

void Monitor::WatchLeaves(std::vector<RdmaPortName> ports) {
  {
    const std::lock_guard lock(mutex_);
    if (ports == with_leaves_) return;
    with_leaves_ = std::move(ports);
  }
  leaf_.Add(kKey);
}

bool Monitor::TakeOver() {
  std::optional<Looked> looked;
  std::optional<crds::NodeTopologyStatus> published;
  std::vector<OwnLinkChanges> expected;
  {
    const std::lock_guard lock(mutex_);
    expected = std::exchange(expected_, {});
    published = std::exchange(published_, std::nullopt);
    if (!counted_.empty()) leaf_news_ = std::exchange(counted_, {});
    looked = std::exchange(looked_, std::nullopt);
  }
  const base::MonotonicTime now = clock_.Now();
  if (published) TakeRestored(*published);
  for (const OwnLinkChanges& changes : expected) links_.Expect(changes);
  if (looked) {
    looked_anew_ = true;
    std::vector<WatchedPort> ports = WatchedPorts(looked->readings, looked->seen.node);
    if (kernel_ != nullptr) kernel_->Watch(DevicesOf(ports));
    if (leaves_ != nullptr) WatchLeaves(PortsWithLeaves(ports));
    reader_.Watch(std::move(ports));
    seen_ = std::move(looked->seen);
    gpus_ = looked->readings.gpus.gpus;
    unjudged_ = std::move(looked->readings.gpus);
    if (!waiting_since_) waiting_since_ = now;
  }
  return seen_ && (restored_ || now - *waiting_since_ >= options_.patience);
}

SightPtr Monitor::PassOver() {
  if (!TakeOver()) return nullptr;
  const base::MonotonicTime now = clock_.Now();
  const base::WallTime wall = clock_.WallNow();
  Ask ask = Ask::kFiles;
  if (!last_ethtool_ || now - *last_ethtool_ >= options_.ethtool_interval) {
    ask = Ask::kFilesAndEthtool;
    last_ethtool_ = now;
  }
  const States before = StatesOf(links_.ports());
  Sight sight;
  sight.at = now;
  CounterReadings readings = reader_.Read(ask);
  AddLeafEnds(std::exchange(leaf_news_, {}), readings);
  sight.changes = links_.Look(readings, now, wall);
  sight.ports = links_.ports();
  const auto unjudged = std::exchange(unjudged_, std::nullopt);
  if (unjudged) sight.nvlink_changes = nvlinks_.Look(*unjudged, now, wall);
  sight.gpus = gpus_;
  sight.seen = *seen_;
  ApplyHealth(sight.ports, &nvlinks_, sight.seen);
  xids_.Apply(sight.gpus, sight.seen);
  if (unjudged) gpu_health_.Look(sight.seen, now, wall);
  gpu_health_.Apply(sight.seen);
  if (kernel_ != nullptr) {
    for (const KernelSourceState& state : kernel_->States()) {
      if (state.closed.empty()) continue;
      sight.seen.problems.push_back(fmt::format(
          "what the kernel says by {} cannot be heard, and links are looked at every {} s instead: {}",
          state.source, std::chrono::duration_cast<std::chrono::seconds>(options_.counters_interval).count(),
          state.closed));
    }
  }
  // What a port trained to, and which leaf it hangs on, only a full look tells.
  if (!before.empty() && StatesOf(sight.ports) != before) AskForLook();
  return std::make_shared<const Sight>(std::move(sight));
}

}  // namespace heddle::nodeagent
