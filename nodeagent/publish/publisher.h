#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "crds/node_topology.h"
#include "kube/client.h"
#include "kube/lease.h"
#include "kube/reflector.h"
#include "kube/work_queue.h"
#include "nodeagent/assembly/assemble.h"
#include "nodeagent/devices/node_devices.h"
#include "nodeagent/grants/grants.h"
#include "nodeagent/monitor/pass_times.h"
#include "nodeagent/qos/report.h"

namespace heddle::nodeagent {

// Where NodeTopologies are served.
const kube::Resource& NodeTopologies();

struct PublisherOptions {
  std::string node;
  // A change waits a random part of this before it is written, so that 10,000 agents that see one switch
  // reboot do not write in the same second. So does the first request of all, the watch, when a site gets its power
  // back; what is published first waits for that alone.
  std::chrono::nanoseconds jitter = std::chrono::seconds(10);
  // A change of health waits a random part of this instead: a link that flaps is on the way to the planner within
  // 10 s, of which the pass over the counters takes 5 at most. The server bears it, because only those who hang
  // on one leaf change at once, some hundred nodes, and because each node has a budget: so many in a row, and one
  // more each urgent_refill. Beyond it, a change waits as any other.
  std::chrono::nanoseconds urgent_jitter = std::chrono::seconds(4);
  int urgent_burst = 4;
  std::chrono::nanoseconds urgent_refill = std::chrono::minutes(1);
  std::chrono::nanoseconds max_back_off = std::chrono::minutes(1);
  kube::Log log;
  // The first sight of the own object, with the Node that owns it; on Watch's thread.
  std::function<void(const std::optional<kube::OwnerReference>& owner, const kube::Json& object)> on_object;
  // The spec of the own object, each time that the watch shows it, at first after on_object; on Watch's thread.
  // Nothing is written before it has returned once.
  std::function<void(const kube::Json& object)> on_change;
  // How each attempt to write ended; on Run's thread.
  std::function<void(bool written)> on_write;
};

// Whether placement should know soon: the state, fault or usable bandwidth of a port, the health of a GPU, the
// NVLinks that are up, the NVLink domain. Pure.
bool HealthDiffers(const topology::Node& before, const topology::Node& now);

// Keeps the status of one NodeTopology equal to what the machine looks like: the object of this node and no
// other, and of that only /status, by PUT with its resourceVersion, so that a field which somebody else put
// there goes as well.
//
// It writes when what it wants to say differs from what the object says, whoever made them differ: a new
// observation, an edit, or the operator making the object anew. Equal content is never written twice. The
// object is the operator's to make; until it is there, nothing is asked of the server but a watch of this one
// name. Thread rule: Watch and Run each on a thread of their own; Offer and Stuck from any.
class Publisher {
 public:
  Publisher(kube::Client& client, base::Clock& clock, base::Random random, PublisherOptions options);

  void Offer(const Observation& observation);
  // Nothing is published before the first observation, but that a pass is stuck.
  void Offer(const GrantReadings& grants);
  void Offer(const DeviceNews& devices);
  // A port that is taken away or given back is as urgent as its health.
  void Offer(const LosslessReadings& lossless);
  // Passes that do not end; empty = all do again. Of a machine that was not observed yet, what an agent before this one
  // has published stays beside it.
  void Stuck(const std::vector<StuckPass>& passes);

  void Watch(std::stop_token stop);  // blocks until stop
  void Run(std::stop_token stop);    // blocks until stop; waits out any outage of the server
  // Handles what is due now, without blocking; returns whether anything was.
  bool RunOnce(std::stop_token stop);
  // Whether the object says what was last offered.
  bool published() const;
  std::uint64_t writes() const;

 private:
  enum class Outcome : std::uint8_t { kDone, kRetry };

  void ObjectChanged(kube::ChangeType type, const kube::ObjectPtr& current);
  void Handle(const std::string& key, std::stop_token stop);
  Outcome Reconcile(std::stop_token stop);
  // What the watch has last shown, or our own last write where the watch is still at what was there before
  // it.
  kube::ObjectPtr Current() const;
  // News that nothing makes urgent; `last` is what was offered of it before.
  template <class News>
  void Take(std::optional<News>& last, const News& news);
  // Under the lock: how long a change waits that nothing makes urgent.
  std::chrono::nanoseconds Wait();
  std::chrono::nanoseconds UrgentWait();  // under the lock
  // Under the lock: takes one of the budget of urgent changes, if one is left.
  bool TakeUrgent();
  Outcome Write(const crds::NodeTopology& object, const kube::Json& wanted, std::stop_token stop);
  void Say(const std::string& line);  // the same line twice in a row is said once

  kube::Client& client_;
  base::Clock& clock_;
  const PublisherOptions options_;
  kube::WorkQueue queue_;

  mutable std::mutex mutex_;  // guards what follows
  base::Random random_;
  std::optional<Observation> wanted_;
  std::optional<GrantReadings> grants_;
  std::optional<DeviceNews> devices_;
  std::optional<LosslessReadings> lossless_;
  std::vector<StuckPass> stuck_;
  double urgent_left_;
  base::MonotonicTime urgent_at_{};
  const base::MonotonicTime first_at_;  // not before: nothing is asked of the server
  bool published_ = false;
  bool settled_ = false;  // the object has once said what was offered
  bool seen_object_ = false;
  bool told_ = false;  // on_change has once returned; nothing is written before
  std::uint64_t writes_ = 0;
  // The last successful write: what was sent, and what the server made of it. Should the server drop or
  // default a field, the object never equals what was sent; comparing with this keeps us from writing for
  // ever.
  kube::Json sent_, stored_;
  kube::ObjectPtr written_;   // the whole object of that answer
  std::string written_over_;  // the resource version it replaced
  std::string last_line_;

  kube::Reflector reflector_;  // last: its callbacks use the rest
};

}  // namespace heddle::nodeagent
