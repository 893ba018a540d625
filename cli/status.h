#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/cluster_files.h"
#include "cli/output.h"
#include "cli/trouble.h"
#include "kube/client.h"

namespace heddle::cli {

// `kubectl heddle status`: what is wrong in a cluster, the worst first. Nothing is judged anew, but which nodes the
// planner leaves out (no object says it), and cables and ports in files, where nobody has: conditions, statuses and
// Leases say what operator, extender and agents have found.

struct StatusOptions {
  std::string ns;                     // of the gangs; empty = all
  bool all = false;                   // equal things one by one
  std::vector<std::string> topology;  // files in place of a cluster
};

using Objects = std::vector<crds::Json>;

// Each kind, or why it could not be read. What is written there is other people's: anything may be missing or of
// another type.
struct StatusReading {
  base::Result<Objects> topologies, fabrics, gangs, lossless, devices, switches, nodes, pods, leases;
  base::WallTime now;  // by the clock of the API server
};

struct StatusTotals {
  int nodes = 0, unusable_nodes = 0;
  // GPUs of nodes that cannot be used, or that are unhealthy, are out of use, whoever holds them.
  int gpus = 0, bound = 0, free = 0, out_of_use = 0;
  bool bound_known = true;
  int running = 0, waiting = 0, stopped = 0;  // gangs; `stopped` hold GPUs and do not run
  friend bool operator==(const StatusTotals&, const StatusTotals&) = default;
};

struct StatusReport {
  std::vector<Trouble> troubles;  // not folded
  StatusTotals totals;
  std::vector<std::string> notes;  // what could not be read, and what is missing for that
  bool wrong() const;              // more than notes
};

// Pure and total.
StatusReport ReportStatus(const StatusReading& reading);

crds::Json StatusJson(const StatusReport& report, const StatusOptions& options);
std::string StatusText(const StatusReport& report, const StatusOptions& options, base::WallTime now,
                       const Style& style);

// Exit codes: 0 nothing is wrong, 3 something is, 1 nobody could be asked. `clock` is the API server's.
Output RunStatus(kube::Client& client, base::Clock& clock, const StatusOptions& options,
                 const OutputOptions& look, const std::stop_token& stop);
// The same of options.topology, as far as they tell; 2 where the files cannot be read. What is not in them is left out,
// and a note says so. Files do not say when they were made: ages are up to `now`.
Output ShowStatus(const StatusOptions& options, base::WallTime now, const ReadFile& read,
                  const OutputOptions& look);

}  // namespace heddle::cli
