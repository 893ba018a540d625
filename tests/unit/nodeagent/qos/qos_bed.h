#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "lossless/policy.h"
#include "lossless/render.h"
#include "nodeagent/qos/loop.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_port_io.h"

namespace heddle::nodeagent {

// What the generic profile makes of a RoCE port.
inline lossless::PortSettings Wanted() {
  const auto resolved = lossless::Resolve({});
  return *lossless::Render(*resolved, {.transport = topology::Transport::kRoce, .device = ""}).settings;
}

// As a driver comes up: nothing is lossless, everything can be read.
inline lossless::PortSettings Fresh() {
  lossless::PortSettings have = Wanted();
  have.trust = lossless::Trust::kPcp;
  have.dscp_to_priority = lossless::AllDscps(0);
  have.pfc = lossless::PrioritySet{};
  have.watchdog_ms = 0;
  have.priority_to_class = lossless::Identity();
  have.class_algorithm->fill(lossless::Algorithm::kVendor);
  have.class_percent->fill(0);
  have.mtu = 1500;
  have.tos = 0;
  have.traffic_class.reset();
  return have;
}

inline lossless::PortSettings AsWanted() {
  lossless::PortSettings have = Fresh();
  const lossless::PortSettings want = Wanted();
  lossless::ForEachHostSetting([&](lossless::Setting setting, auto member) {
    if (want.*member && setting != lossless::Setting::kTrafficClass)
      test::FakePortIo::Take(have, setting, want);
  });
  return have;
}

inline QosPort PortOf(const std::string& name) {
  const std::string device = name.substr(0, name.find(':'));
  return {name, device, 1, "eth_" + device, "0000:17:00.0", "mlx5_core"};
}

inline crds::LosslessWish Wish(std::vector<std::string> ports) {
  crds::LosslessWish wish;
  wish.ports = std::move(ports);
  wish.policies = {"roce"};
  wish.generation = 1;
  wish.mode = crds::LosslessMode::kApply;
  wish.settings = Wanted();
  return wish;
}

// One machine and the agents that run on it one after the other.
class QosBed {
 public:
  explicit QosBed(std::vector<std::string> ports = {"mlx5_0:1"}, test::CrashPoints* crash = nullptr)
      : io(crash), journal(crash), names(std::move(ports)), crash_(crash) {
    for (const std::string& name : names) io[name].have = Fresh();
    wishes = {Wish(names)};
    options.may_write = true;
    options.boot = "boot-1";
  }

  // A new agent: what was withdrawn by the one before is not withdrawn any more.
  void Start(bool with_spec = true) {
    loop.reset();
    counts = QosCounts();
    gate = std::make_unique<test::FakeGate>(crash_);
    QosCallbacks callbacks;
    callbacks.on_readings = [this](const LosslessReadings& now) {
      readings = now;
      readings_boot = options.boot;
      ++publications;
    };
    callbacks.on_events = [this](const std::vector<QosEvent>& now) {
      events.insert(events.end(), now.begin(), now.end());
    };
    callbacks.on_pass = [this](const QosCounts& now, std::chrono::nanoseconds) { counts = now; };
    callbacks.on_own_changes = [this](const OwnLinkChanges& changes) { own_changes.push_back(changes); };
    callbacks.log = [this](std::string_view line) { log.emplace_back(line); };
    loop = std::make_unique<QosLoop>(io, *gate, journal, clock, options, callbacks);
    loop->Restore(readings.reports.value_or(std::vector<crds::LosslessReport>{}), readings_boot);
    if (!with_spec) return;
    loop->Have(Machine());
    loop->Want(wishes);
  }
  std::vector<QosPort> Machine() const {
    std::vector<QosPort> ports;
    for (const std::string& name : names) ports.push_back(PortOf(name));
    return ports;
  }
  void Want(crds::LosslessWish wish) {
    wishes = {std::move(wish)};
    loop->Want(wishes);
  }
  // Passes for so long.
  void RunFor(std::chrono::nanoseconds time) {
    const base::MonotonicTime end = clock.Now() + time;
    while (clock.Now() < end) {
      if (loop->RunOnce()) continue;
      clock.AdvanceTo(std::min(end, loop->NextDue().value_or(end)));
    }
    while (loop->RunOnce()) {
    }
  }
  void RunAll() { RunFor(std::chrono::minutes(10)); }

  const crds::LosslessReport& Report(const std::string& port = "mlx5_0:1") const {
    static const crds::LosslessReport kNone;
    const auto* report = readings.reports ? ReportOf(*readings.reports, port) : nullptr;
    return report == nullptr ? kNone : *report;
  }
  crds::LosslessState State(const std::string& port = "mlx5_0:1") const { return Report(port).state; }
  std::vector<std::string_view> Reasons() const {
    std::vector<std::string_view> reasons;
    for (const QosEvent& event : events) reasons.push_back(event.reason);
    return reasons;
  }

  test::FakeClock clock;
  test::FakePortIo io;
  test::FakeJournal journal;
  std::unique_ptr<test::FakeGate> gate;
  QosLoopOptions options;
  std::vector<std::string> names;
  std::vector<crds::LosslessWish> wishes;
  LosslessReadings readings;
  std::string readings_boot;  // of the machine's run that they are of
  int publications = 0;
  std::vector<QosEvent> events;
  QosCounts counts;
  std::vector<OwnLinkChanges> own_changes;
  std::vector<std::string> log;
  std::unique_ptr<QosLoop> loop;

 private:
  test::CrashPoints* const crash_;
};

}  // namespace heddle::nodeagent
