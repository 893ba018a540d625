#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/object.h"

namespace heddle::extender {

// Which nodes' agents have stopped renewing their Lease (heddle-node-<node>), judged by our own clock since
// we last saw the Lease change. A node whose agent never had one is not called stale: missing is not late.
// Thread rule: one owner.
class AgentLeases {
 public:
  // Returns the nodes that are stale after this look.
  std::set<std::string> Observe(const std::vector<kube::Json>& leases, base::MonotonicTime now);

 private:
  struct Sighting {
    std::string renewed;
    base::MonotonicTime changed{};
  };
  std::map<std::string, Sighting> sightings_;
};

}  // namespace heddle::extender
