#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "kube/client.h"

namespace heddle::kube {

// A Lease as it was last read, and when we saw it change. Whether it still holds is judged by our own clock
// since that moment, never by renewTime, so machines need not agree on the time (facts 6.5).
struct ObservedLease {
  Json object;  // null until one was read
  base::MonotonicTime observed{};

  std::string Holder() const;
  std::chrono::seconds Duration() const;
  bool ValidAt(base::MonotonicTime now) const;  // held by somebody and not expired
  // Takes a newly read object; the observation time moves only if its spec differs.
  void Observe(Json fresh, base::MonotonicTime now);
};

struct LeaseOptions {
  ObjectKey lease;
  std::string identity;  // unique: host name plus something random
  // client-go's defaults. Requires: duration > renew_deadline > 1.2 * retry_period.
  std::chrono::nanoseconds duration = std::chrono::seconds(15);
  std::chrono::nanoseconds renew_deadline = std::chrono::seconds(10);
  std::chrono::nanoseconds retry_period = std::chrono::seconds(2);
  bool release_on_exit = true;
  Log log;
};

struct LeaseCallbacks {
  // Both on Run's thread and quick: start or stop the work elsewhere.
  std::function<void()> started;
  std::function<void()> stopped;
  std::function<void(const std::string& identity)> new_leader;  // optional; "" = nobody
};

// Leader election by a Lease. Leading is not fencing: every write still needs its resourceVersion or uid.
// Thread rule: Run on one thread, the rest from any.
class LeaseElector {
 public:
  LeaseElector(Client& client, base::Clock& clock, base::Random random, LeaseOptions options,
               LeaseCallbacks callbacks);

  // Waits to lead, leads, and returns: OK after stop (released), kConflict or kTimeout when the lease was
  // lost. Callers exit then, or call it again.
  [[nodiscard]] base::Status Run(std::stop_token stop);

  // False as soon as the renew deadline has passed, even if Run's thread is stuck in a request.
  bool IsLeader() const;
  std::string Holder() const;  // as last observed, "" = nobody

 private:
  bool Acquire(const std::stop_token& stop);
  base::Status Renew(const std::stop_token& stop);
  base::Result<bool> TryAcquireOrRenew(const std::stop_token& stop);
  base::Result<bool> CreateLease(const std::stop_token& stop);
  base::Result<bool> WriteLease(const Json& lease, base::MonotonicTime started, const std::stop_token& stop);
  Json ComposeLease() const;
  void Release();
  void Observed(Json lease);
  void Say(const std::string& line) const;

  Client client_;  // with a request timeout under the renew deadline
  base::Clock& clock_;
  base::Random random_;
  const LeaseOptions options_;
  const LeaseCallbacks callbacks_;
  mutable std::mutex mutex_;
  ObservedLease observed_;
  bool leading_ = false;
  base::MonotonicTime last_renewed_{};
  std::string reported_holder_;
};

// How long an observer waits for an answer. A third of the duration of kube-scheduler's Lease: on a connection that is
// half open it must not take longer to see that a Lease ran out than another takes to hold it.
inline constexpr std::chrono::seconds kObservationTimeout{5};

struct LeaseObserverOptions {
  ObjectKey lease;
  std::chrono::nanoseconds period = std::chrono::seconds(2);
  std::function<void(const std::string& holder)> on_change;  // on Run's thread; "" = nobody
};

// Watches who holds a Lease without wanting it: the extender leads while the kube-scheduler beside it does.
// Thread rule: Run or ObserveOnce on one thread, the rest from any.
class LeaseObserver {
 public:
  LeaseObserver(Client& client, base::Clock& clock, base::Random random, LeaseObserverOptions options);

  void Run(std::stop_token stop);
  [[nodiscard]] base::Status ObserveOnce(std::stop_token stop);
  // The holder, while its lease was seen to change within its duration, counted from when the read began that saw it;
  // nothing before the first read, when it expired or when it was released.
  std::optional<std::string> Holder() const;
  bool healthy() const;  // whether the last read worked

 private:
  Client client_;  // with kObservationTimeout
  base::Clock& clock_;
  base::Random random_;
  const LeaseObserverOptions options_;
  mutable std::mutex mutex_;
  ObservedLease observed_;
  bool healthy_ = false;
  std::string reported_;
};

// A daemon's sign of life, one for each node of a cluster. The kubelet renews its own every 10 s and is late after
// 40 s (kubernetes pkg/kubelet/apis/config, nodeLeaseDurationSeconds), and it is that which says that a node is
// gone. This one only says that the daemon's word is old, so a sixth of those writes will do: of 10,000 nodes 167 a
// second. The proportion is the kubelet's: four tries fit before anybody is called late.
inline constexpr std::chrono::seconds kHeartbeatPeriod{60};
inline constexpr std::chrono::seconds kHeartbeatDuration{240};

struct HeartbeatOptions {
  ObjectKey lease;
  std::string identity;
  std::chrono::nanoseconds duration = kHeartbeatDuration;
  std::chrono::nanoseconds period = kHeartbeatPeriod;
  std::optional<OwnerReference> owner;  // so that the Lease goes with its Node
  // Why there is no life to show now, a sentence; "" = there is. Asked before each renewal, on Run's thread. Null:
  // always.
  std::function<std::string()> withheld;
};

// Renews a Lease of its own as a sign of life.
// Thread rule: Run or BeatOnce on one thread, the rest from any.
class LeaseHeartbeat {
 public:
  LeaseHeartbeat(Client& client, base::Clock& clock, base::Random random, HeartbeatOptions options);

  void Run(std::stop_token stop);  // every period, with up to 20 % jitter; faster after a failure
  // kUnavailable without a request where it is withheld.
  [[nodiscard]] base::Status BeatOnce(std::stop_token stop);
  std::optional<base::Error> last_error() const;

 private:
  base::Status Write(const std::stop_token& stop);

  Client& client_;
  base::Clock& clock_;
  base::Random random_;
  const HeartbeatOptions options_;
  mutable std::mutex mutex_;
  Json known_;  // as the server last returned it; null = read it first
  std::optional<base::Error> last_error_;
};

}  // namespace heddle::kube
