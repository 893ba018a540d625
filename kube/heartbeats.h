#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/lease.h"
#include "kube/object.h"

namespace heddle::kube {

// Who has stopped renewing a Lease of their own, named <prefix><who>. Judged as leader election does: by our
// own clock since we last saw the Lease change, so that machines need not agree on the time. Verdicts change
// only with Observe: while the API server cannot be read, nobody is called late for it. Thread rule: every
// member may be called from any thread.
class Heartbeats {
 public:
  struct Options {
    std::string prefix;
    std::chrono::nanoseconds default_duration = kHeartbeatDuration;
    // The server's cache, which we read, may be this far behind; add the time between two looks.
    std::chrono::nanoseconds slack = std::chrono::seconds(5);
  };
  explicit Heartbeats(Options options) : options_(std::move(options)) {}

  // `leases` as just listed; `expected` are those who ought to have one, and are late without. Without
  // `expected` whoever has a Lease is judged and nobody else. Returns whether the set of the late changed.
  bool Observe(const std::vector<Json>& leases, const std::optional<std::vector<std::string>>& expected,
               base::MonotonicTime now);

  std::set<std::string> Late() const;

 private:
  struct Sighting {
    Json spec;  // null = no Lease
    base::MonotonicTime changed{};
  };
  bool IsLate(const Sighting& sighting, base::MonotonicTime now) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Sighting> sightings_;
  std::set<std::string> late_;
};

}  // namespace heddle::kube
