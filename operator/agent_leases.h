#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/object.h"

namespace heddle::operators {

// Which nodes' agents have stopped renewing their Lease, judged as leader election does: by our own clock
// since we last saw the Lease change, so that machines need not agree on the time. Verdicts change only with
// Observe: while the API server cannot be read, nobody is called stale for it. Thread rule: every member may
// be called from any thread.
class AgentLeases {
 public:
  struct Options {
    std::chrono::nanoseconds default_duration = std::chrono::seconds(40);  // kube/lease.h's heartbeat
    // The server's cache, which we read, may be this far behind.
    std::chrono::nanoseconds slack = std::chrono::seconds(5);
  };
  AgentLeases() : AgentLeases(Options{}) {}
  explicit AgentLeases(Options options) : options_(options) {}

  // `leases` as just listed, `nodes` whose agents have ever reported. Returns whether the set of stale nodes
  // changed.
  bool Observe(const std::vector<kube::Json>& leases, const std::vector<std::string>& nodes,
               base::MonotonicTime now);

  std::set<std::string> Stale() const;

 private:
  struct Sighting {
    kube::Json spec;  // null = no Lease
    base::MonotonicTime changed{};
  };
  bool Late(const Sighting& sighting, base::MonotonicTime now) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Sighting> sightings_;
  std::set<std::string> stale_;
};

}  // namespace heddle::operators
