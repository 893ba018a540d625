#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/assembly/assemble.h"

namespace heddle::bench {

struct FleetOptions {
  std::string kubeconfigs;  // a folder with one file for each node, called like it
  std::chrono::nanoseconds jitter = std::chrono::seconds(10);
  std::chrono::seconds limit{600};  // for all to have published
  std::chrono::seconds rest{0};     // how long they stay afterwards
};

struct FleetTimes {
  std::vector<double> published_s;  // since that agent started, sorted; those that did not are missing
  double started_s = 0;             // to start all
  std::size_t agents = 0;
  std::uint64_t writes = 0;
};

// Many agents in one process, each with its own connections, account, watch, publisher and Lease: what RunAgent does,
// but for the looking. All publish `seen` under their own names, starting at once.
// `on_published` is called when all have, before the rest.
[[nodiscard]] base::Result<FleetTimes> RunFleet(const FleetOptions& options,
                                                const nodeagent::Observation& seen,
                                                const base::FileTree& root, base::Clock& clock,
                                                const std::function<void(const FleetTimes&)>& on_published);

}  // namespace heddle::bench
