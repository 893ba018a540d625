#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/node_topology.h"
#include "kube/work_queue.h"
#include "nodeagent/discovery/discovery.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/health/gpu_health.h"
#include "nodeagent/health/health.h"
#include "nodeagent/health/leaf_end.h"
#include "nodeagent/health/link_health.h"
#include "nodeagent/health/nvlink_health.h"
#include "nodeagent/health/xid_memory.h"
#include "nodeagent/leaf/leaf_counts.h"
#include "nodeagent/monitor/kernel_events.h"
#include "nodeagent/monitor/pass_times.h"

namespace heddle::nodeagent {

struct MonitorOptions {
  // Between two full looks: all of discovery, some ten milliseconds.
  std::chrono::nanoseconds look_interval = std::chrono::seconds(60);
  // Between two passes over the counters, where the kernel says nothing: with the publication's own wait it keeps
  // a flap under 10 s.
  std::chrono::nanoseconds counters_interval = std::chrono::seconds(5);
  // Ethtool statistics, whose windows are 30 s, are asked for in the first pass after this.
  std::chrono::nanoseconds ethtool_interval = std::chrono::seconds(15);
  // From a word of the kernel to the pass over the counters: what it said of one cable in this time is one pass.
  std::chrono::nanoseconds counters_settle = std::chrono::milliseconds(100);
  // The same to a full look; a driver that comes back brings its ports one after the other.
  std::chrono::nanoseconds look_settle = std::chrono::seconds(1);
  // From the end of a look to one that the kernel asks for: a storm does not make a loop of them.
  std::chrono::nanoseconds look_spacing = std::chrono::seconds(5);
  // Between two questions to the leaves, on a thread of its own. With the pass that follows at once where one had news,
  // and with the publication's own wait, it keeps what a leaf counts under 15 s.
  std::chrono::nanoseconds leaf_interval = std::chrono::seconds(10);
  // Where Restore will be called, the first Sight waits for it, but no longer than this; 0: no Restore comes.
  std::chrono::nanoseconds patience{0};
  // A pass that takes longer is stuck. One over the counters, which waits for nothing, takes about a millisecond.
  std::chrono::nanoseconds counters_at_most = std::chrono::seconds(60);
  // A look that is in order may wait for the driver's start (NvmlProcessOptions::start, 60 s), for lldpd and for verbs
  // (5 s each) and for each silent InfiniBand port (0.6 s): this is twice their sum with 32 such ports. It is
  // counted from when a look began, so the interval between two is no part of it.
  std::chrono::nanoseconds look_at_most = std::chrono::minutes(3);
};

// What is known of the machine now.
struct Sight {
  Observation seen;                   // with what the counters say of its links
  std::vector<PortHealth> ports;      // compute and storage, see WatchedPorts
  std::vector<GpuReading> gpus;       // of the last look
  std::vector<HealthChange> changes;  // of verdicts, since the Sight before
  std::vector<NvlinkChange> nvlink_changes;
  base::MonotonicTime at{};
};

using SightPtr = std::shared_ptr<const Sight>;

// What a Monitor tells. All may be empty; all are called on its threads, on_sight always on the same.
struct MonitorCallbacks {
  std::function<void(const SightPtr& sight)> on_sight;  // never null
  std::function<void(const std::vector<KernelEvent>& events)> on_events;
  std::function<void(Pass pass, std::chrono::nanoseconds took)> on_pass;
  std::function<void(const std::vector<KernelSourceState>& sources)>
      on_sources;  // with each pass over the counters
};

// Watches one machine by two loops: a full look, which may wait for a driver or a daemon, and a pass over the
// counters, which never waits for it. Each runs at its interval, and soon after the kernel speaks; the look also
// after a GPU's driver does. Whatever came of either is one Sight. A third loop asks the leaves of InfiniBand ports
// what they have counted, and may wait for them.
// Thread rule: Run on one thread, which starts the others; the rest from any. What is passed must outlive it.
class Monitor {
 public:
  // `kernel`: null for a machine that is not this one. `leaves`: null = nobody asks them.
  Monitor(Discovery& discovery, CounterReader& reader, KernelEvents* kernel, base::Clock& clock,
          MonitorOptions options = {}, LeafCountSource* leaves = nullptr);

  // Blocks until stop. The full look has a thread of its own, the same from the first to the last: the driver's
  // process ends with it.
  void Run(const MonitorCallbacks& callbacks, const std::stop_token& stop);
  // The status that was published before this agent started. Once; a verdict found meanwhile outranks it.
  void Restore(const crds::NodeTopologyStatus& published);
  // This agent is about to change a link itself, or has: as LinkHealth::Expect.
  void Expect(const OwnLinkChanges& changes);
  // Looks and passes over the counters that do not end. What they last found stands, and is of before.
  std::vector<StuckPass> Stuck() const;

 private:
  struct Looked {
    Readings readings;
    Observation seen;
  };
  void LookLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop);
  void CountersLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop);
  void KernelLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop);
  void LeafLoop(const MonitorCallbacks& callbacks, const std::stop_token& stop);
  void GpuLoop(const std::stop_token& stop);
  // One pass; null while there is nothing to say yet.
  SightPtr PassOver();
  // Takes over what came from the other threads. False while there is nothing to watch yet.
  bool TakeOver();
  void TakeRestored(const crds::NodeTopologyStatus& published);
  void WatchLeaves(std::vector<RdmaPortName> ports);
  void AskForLook();

  Discovery& discovery_;
  CounterReader& reader_;
  KernelEvents* const kernel_;
  LeafCountSource* const leaves_;
  base::Clock& clock_;
  const MonitorOptions options_;
  kube::WorkQueue look_, counters_, leaf_;
  PassTimes under_way_;

  std::mutex mutex_;  // guards what follows
  std::optional<Looked> looked_;
  std::optional<crds::NodeTopologyStatus> published_;
  std::vector<OwnLinkChanges> expected_;
  std::vector<RdmaPortName> with_leaves_;
  std::vector<LeafCounts> counted_;  // by leaves, not taken over yet
  base::MonotonicTime last_look_{};

  // Of the counters' thread.
  std::optional<Observation> seen_;
  std::vector<GpuReading> gpus_;
  std::vector<LeafCounts> leaf_news_;    // of the next pass
  std::optional<GpuReadings> unjudged_;  // of a look whose GPUs and NVLinks were not judged yet
  LinkHealth links_;
  NvlinkHealth nvlinks_;
  XidMemory xids_;
  GpuHealth gpu_health_;
  bool looked_anew_ = false;  // since free memory was given back
  bool restored_ = false;
  std::optional<base::MonotonicTime> waiting_since_;
  std::optional<base::MonotonicTime> last_ethtool_;
};

}  // namespace heddle::nodeagent
